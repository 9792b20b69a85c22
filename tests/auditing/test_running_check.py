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
        pytest.param({"momentum": 0.5}, "momentum or the batch is another", id="other"),
    ],
)
def test_wrong_ones_have_a_cause(check, changes, cause):
    _, var = keep(np.ones(4), np.full(4, 2.0), **changes)
    ran = check("--actual-running-var", write("b.npy", var), "-f", "json")
    (told,) = ran.json["checked"]
    assert (ran.code, told["cause"].startswith(f"running_var differs: {cause}")) == (1, True)


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
