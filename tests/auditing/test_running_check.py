"""Running statistics after some batches, checked against those before."""

from __future__ import annotations

import numpy as np
import pytest

RNG = np.random.default_rng(3)
BATCHES = [RNG.normal(1.0, 2.0, (5, 4, 3)) for _ in range(2)]


def keep(mean, var, ddof=1, momentum=0.1):
    for x in BATCHES:
        mean = (1.0 - momentum) * mean + momentum * x.mean((0, 2))
        var = (1.0 - momentum) * var + momentum * x.var((0, 2), ddof=ddof)
    return mean, var


@pytest.fixture
def check(normcli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number, x in enumerate(BATCHES):
        np.save(f"x{number}.npy", x)
    np.save("m.npy", np.ones(4))
    np.save("v.npy", np.full(4, 2.0))
    given = ("-i", "x0.npy", "-i", "x1.npy", "--running-mean", "m.npy", "--running-var", "v.npy")
    return lambda *more: normcli("check", "bn", *given, *more)


def write(name, values):
    np.save(name, values)
    return name


def test_right_ones_agree_after_all_batches(check):
    mean, var = keep(np.ones(4), np.full(4, 2.0), momentum=0.3)
    actual = ("--actual-running-mean", write("a.npy", mean), "--actual-running-var", write("b.npy", var))
    ran = check("--momentum", "0.3", *actual)
    assert (ran.code, ran.err, ran.out.count("✓")) == (0, "", 2)


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        pytest.param({"ddof": 0}, "the variance that enters is of another ddof", id="ddof"),
        pytest.param({"momentum": 0.9}, "momentum is the weight of the other", id="momentum"),
        pytest.param({"momentum": 0.0}, "it was not updated", id="not updated"),
        pytest.param({"momentum": 0.19}, "momentum is 0.19, not 0.1", id="another momentum"),
        pytest.param({"momentum": 1.0}, "momentum is 1, not 0.1", id="the last batch's"),
    ],
)
def test_wrong_ones_have_a_cause(check, changes, cause):
    _, var = keep(np.ones(4), np.full(4, 2.0), **changes)
    ran = check("--actual-running-var", write("b.npy", var), "-f", "json")
    (told,) = ran.json["checked"]
    assert (ran.code, told["cause"].startswith(f"running_var differs: {cause}")) == (1, True)
    assert f"✗ {told['cause']}." in check("--actual-running-var", "b.npy").out.splitlines()


def keep_others(change):
    """Return the running variance of a kernel with other variances, where `change` returns one."""
    mean, var = np.ones(4), np.full(4, 2.0)
    for x in BATCHES:
        old, mean = mean, 0.9 * mean + 0.1 * x.mean((0, 2))
        var = 0.9 * var + 0.1 * change(x, x.var((0, 2), ddof=1), old, mean)
    return var


def about(x, centre):
    return np.square(x - centre[:, None]).mean((0, 2))


RIGHT = keep(np.ones(4), np.full(4, 2.0))[1]


@pytest.mark.parametrize(
    ("wrong", "cause"),
    [
        pytest.param(keep_others(lambda x, var, *_: np.sqrt(var)), "the standard deviation enters, not the variance", id="std"),
        pytest.param(keep_others(lambda x, var, *_: x.var((0, 2)) * 5 / 4), "the variance that enters is multiplied by 5/4, as if of 5 values", id="count"),
        pytest.param(keep_others(lambda x, var, *_: var + 0.1), "0.1 is added to the variance that enters", id="eps"),
        pytest.param(keep_others(lambda x, var, *_: 3.0 * var), "the variance that enters is multiplied by 3", id="factor"),
        pytest.param(keep_others(lambda x, var, old, new: about(x, new)), "the variance that enters is about the updated running mean", id="updated mean"),
        pytest.param(keep_others(lambda x, var, old, new: about(x, old) * 15 / 14), "the variance that enters is about the old running mean", id="old mean"),
        pytest.param(RIGHT.astype("f2").astype("f4"), "it is rounded to float16", id="float16"),
        pytest.param(RIGHT * 10, "every value is 10 times what it should be", id="as in Adam"),
        pytest.param(RIGHT + np.arange(4), "no momentum gives it from the batch, nor does a known fault", id="unknown"),
        pytest.param([np.nan, *RIGHT[1:]], "no momentum gives it from the batch, nor does a known fault", id="not finite"),
    ],
)  # fmt: skip
def test_momentum_is_not_blamed_where_no_momentum_gives_it(check, wrong, cause):
    ran = check("--actual-running-var", write("b.npy", wrong), "-f", "json")
    assert [one["cause"] for one in ran.json["checked"]] == [f"running_var differs: {cause}"]


def test_of_one_channel_any_momentum_may_be_the_cause(normcli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", BATCHES[0][:, :1])
    state = ("--running-mean", write("m.npy", [5.0]), "--running-var", write("v.npy", [2.0]))
    actual = write("a.npy", 0.7 * 5.0 + 0.3 * BATCHES[0][:, 0].mean(keepdims=True)[0])
    ran = normcli("check", "bn", "-i", "x.npy", *state, "--actual-running-mean", actual, "-f", "json")
    (told,) = ran.json["checked"]
    assert told["cause"] == "running_mean differs: momentum is 0.3, not 0.1, or the batch is another"


@pytest.mark.parametrize(
    ("more", "code", "message"),
    [
        pytest.param(["--actual", "x0.npy"], 2, "--actual is of one batch", id="another array"),
        pytest.param(["--eval"], 2, "the state before is --running-mean and --running-var", id="evaluation"),
        pytest.param(["--actual-running-var", "x0.npy"], 3, "--actual-running-var x0.npy: it has 60 values, not 4", id="size"),
    ],
)  # fmt: skip
def test_refusals(check, more, code, message):
    ran = check("--actual-running-mean", "m.npy", *more)
    assert (ran.code, ran.out) == (code, "")
    assert message in ran.err
