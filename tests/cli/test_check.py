"""`normcli check`: the verdict, its exit code, and every way to ask wrongly."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from normcli import NORMS, normalize
from tests.conftest import require_refusal, save
from tests.strategies import options_for

SHAPE = (2, 4, 3, 2)
X = np.random.default_rng(1).normal(size=SHAPE).astype("f4")


@pytest.fixture
def folder(here):
    result = normalize(X, "bn", gamma=[1, 2, 3, 4], beta=[0, 1, 2, 3])
    y, bad = result.normalized, result.normalized.copy()
    bad[1, 2, 0, 1] += 0.01
    rstd = (result.rstd * 1.01).astype("f4").reshape(1, 4, 1, 1)
    save(x=X, y=y, bad=bad, mean=result.mean.astype("f4"), rstd=rstd, turned=y.transpose(0, 1, 3, 2))
    return here


BN = ["check", "bn", "-i", "x.npy", "--gamma", "[1,2,3,4]", "--beta", "[0,1,2,3]"]


def test_agreement_is_exit_code_0(normcli, folder):
    ran = normcli(*BN, "--actual", "y.npy", "--max-ulp", 0.501)
    assert (ran.code, ran.err) == (0, "")
    assert "✓ normalized: 48 values agree" in ran.out
    assert "actual   y.npy   float32   up to 0.501 ulp" in ran.out


@pytest.mark.costly
@pytest.mark.parametrize(
    "limits", [{"--rtol": 1e-8, "--atol": 1e-9}, {"--rtol": 0, "--atol": 0}, {"--atol": 0}, {"--max-ulp": 0.6}]
)
def test_the_tolerance_that_is_suggested_passes_and_no_smaller_one_does(normcli, folder, limits):
    x = np.random.default_rng(0).normal(3.0, 1.0, (8, 64)).astype("f4")
    moved = x - x.mean(-1, keepdims=True)
    save(x=x, y=moved / np.sqrt(np.square(moved).mean(-1, keepdims=True) + np.float32(1e-5)))
    asked = ["check", "ln", "-i", "x.npy", "--actual", "y.npy"]
    told = normcli(*asked, *itertools.chain(*limits.items()), "-fjson").json["diagnosis"]
    assert told["cause"] == "ln differs by rounding alone"
    begin, _, suggested = told["remedy"].partition(" … ")
    option, number = suggested.split()
    assert begin == "normcli check ln"
    for value, code in ((number, 0), (0.99 * float(number), 1)):
        assert normcli(*asked, *itertools.chain(*{**limits, option: value}.items())).code == code


def test_a_gate_multiplies_what_is_expected(normcli, folder):
    z = np.random.default_rng(2).normal(size=SHAPE).astype("f4")
    save(z=z, gated=np.load("y.npy") * np.tanh(z))
    asked = [*BN, "--actual", "gated.npy", "--gate", "z.npy"]
    ran = normcli(*asked, "--gate-act", "tanh")
    assert (ran.code, ran.err, "gate (tanh)" in ran.out) == (0, "", True)
    ran = normcli(*asked, "-fjson")
    assert (ran.code, ran.json["diagnosis"]["fault"]) == (1, "after-gate-activation")
    assert "--gate is of one machine" in normcli(*asked, "--workers", 2).err


def test_a_missing_residual_is_named(normcli, folder):
    np.save("r.npy", np.random.default_rng(2).normal(size=SHAPE).astype("f4"))
    ran = normcli(*BN, "--actual", "y.npy", "--residual", "r.npy", "-fjson")
    assert (ran.code, ran.json["diagnosis"]["fault"]) == (1, "before-residual-missing")


@pytest.mark.slow
def test_json(normcli, folder):
    actual = ("--actual", "bad.npy", "--actual-mean", "mean.npy", "--actual-rstd", "rstd.npy")
    ran = normcli(*BN, *actual, "-fjson")
    found, worst = ran.json["check"], ran.json["check"]["worst"]
    assert (ran.code, found["ok"], found["compared"], found["mismatches"]) == (1, False, 48, 1)
    assert (found["rtol"], found["atol"]) == (1.3e-6, 1e-5)
    assert (worst["index"], worst["group"]) == ({"n": 1, "c": 2, "h": 0, "w": 1}, {"c": 2})
    assert worst["actual"] == pytest.approx(worst["expected"] + 0.01, rel=1e-5)
    assert sum(part["count"] for part in found["histogram"]) == 48
    assert found["groups"] == [{"group": {"c": 2}, "mismatches": 1, "max_ulp": found["max_ulp"]}]
    assert found["groups_with_mismatches"] == 1
    statistics = ran.json["statistics"]
    assert (statistics["mean"]["ok"], statistics["rstd"]["ok"], ran.json["ok"]) == (True, False, False)


def test_lines_hold_each_group_that_differs(normcli, folder):
    arguments = [*BN, "--actual", "bad.npy", "--actual-rstd", "rstd.npy"]
    rows = normcli(*arguments, "-fcsv").lines
    assert rows[0] == "compared,c,mismatches,max_ulp"
    assert [row.split(",")[:3] for row in rows[1:]] == [
        ["normalized", "2", "1"],
        *(["rstd", str(c), "1"] for c in range(4)),
    ]
    records = [json.loads(line) for line in normcli(*arguments, "-fjsonl").lines]
    assert [record["group"]["c"] for record in records] == [2, 0, 1, 2, 3]


@pytest.mark.parametrize("norm", NORMS)
def test_every_norm_agrees_with_itself(norm, normcli, folder):
    groups = ["--groups", options_for(norm, SHAPE)["groups"]] if options_for(norm, SHAPE) else []
    saved = ["-o", "z.npy", "--stats-output", "s.npz", "--show", "stats"]
    assert normcli(norm, "-i", "x.npy", *groups, *saved).code == 0
    statistics = [part for name in NORMS[norm].statistics for part in (f"--actual-{name}", f"s.npz:{name}")]
    for actual in (["--actual", "z.npy", "--max-ulp", 0.501], [*statistics, "--max-ulp", 3]):
        ran = normcli("check", norm, "-i", "x.npy", *groups, *actual)
        assert (ran.code, ran.err) == (0, "")


def test_text_counts_in_the_dtype_that_is_asked_for(normcli, folder):
    (folder / "y.json").write_text(json.dumps(normalize(X, "ln").normalized.tolist()))
    arguments = ["check", "ln", "-i", "x.npy", "--actual", "y.json", "--max-ulp", "0.501"]
    assert normcli(*arguments).code == 1
    assert normcli(*arguments, "--dtype", "float32").code == 0


@pytest.mark.slow
def test_a_nan_is_a_difference_and_no_error(normcli, folder):
    y = np.load("y.npy")
    y[0, 1, 2, 0] = np.nan
    np.save("nan.npy", y)
    ran = normcli(*BN, "--actual", "nan.npy", "-fjson")
    assert (ran.code, ran.err) == (1, "")
    assert ran.json["check"]["worst"]["index"] == {"n": 0, "c": 1, "h": 2, "w": 0}
    assert (ran.json["check"]["worst"]["actual"], ran.json["check"]["max_ulp"]) == ("nan", "inf")
    table = normcli(*BN, "--actual", "nan.npy").out
    assert "no tolerance passes: NaN where " in table
    assert "not finite" in table


def test_degenerate_groups_are_warned_of(normcli, folder):
    np.save("flat.npy", np.ones((3, 2), "f4"))
    arguments = ["check", "bn", "-i", "flat.npy", "--actual", "flat.npy"]
    ran = normcli(*arguments)
    assert (ran.code, ran.err) == (1, "normcli: bn: group c=0 (and 1 more group) is constant: its variance is 0 and "
                                      "its normalized values 0\n")  # fmt: skip
    assert normcli(*arguments, "--quiet").err == ""
    assert normcli(*arguments, "--strict").code == 4


USAGE, DATA = 2, 3


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        pytest.param("bn -i x.npy", USAGE, "there is nothing to check: give --actual FILE", id="nothing"),
        pytest.param("bn -i - --actual -", USAGE, "standard input holds one of the tensors", id="stdin twice"),
        pytest.param("bn -i x.npy --actual turned.npy", DATA,
                     "--actual turned.npy: the shape is (2, 4, 2, 3); that of the input is (2, 4, 3, 2)", id="turned"),
        pytest.param("bn -i x.npy --actual-mean y.npy", DATA,
                     "--actual-mean y.npy: the shape is (2, 4, 3, 2); there is one mean for each of (4,)", id="mean"),
        pytest.param("bn -i x.npy --actual y.npy --max-ulp 1 --rtol 0", USAGE, "max-ulp takes the place", id="both"),
        pytest.param("bn -i x.npy --actual y.npy --gate-act tanh", USAGE, "give --gate too", id="no gate"),
        pytest.param("bn -i x.npy --actual y.npy --gate [1,2,3]", DATA, "gate", id="gate"),
        pytest.param("rms -i x.npy --actual-mean y.npy", USAGE, "No such option", id="no mean"),
    ],
)  # fmt: skip
def test_bad_input(line, code, message, normcli, folder):
    require_refusal(normcli("check", *line.split()), code, message)


@pytest.mark.usefixtures("folder")
def test_the_convention_that_is_asked_for_is_the_one_that_is_spoken_of(normcli):
    x = np.random.default_rng(5).normal(0.0, 2.0, (8, 50)).astype("f4")
    save(x=x, g=x[0], y=normalize(x, "rms", gamma=x[0], like="keras").normalized)
    line = "check rms -i x.npy --actual y.npy --gamma g.npy --like gemma -f json"
    told = normcli(*line.split()).json["diagnosis"]
    assert told["cause"] == "rms differs: gamma multiplies, not 1 + gamma"


class TestDeclaredAlgorithm:
    """A kernel is held to what the roundings of the algorithm that it is said to be come to."""

    @pytest.fixture(autouse=True)
    def _files(self, here):
        x = np.random.default_rng(0).normal(3.0, 1.0, (4, 64)).astype(np.float32)
        centred = x - x.mean(1, keepdims=True)
        y = centred / np.sqrt((centred * centred).mean(1, keepdims=True) + np.float32(1e-5))
        save(x=x, y=y, z=y * np.float32(1.0 + 3e-6))

    def test_right_kernels_pass_and_errors_that_torch_tolerates_do_not(self, normcli):
        check = ("check", "ln", "-i", "x.npy", "--accumulate", "float32")
        assert normcli(*check, "--actual", "y.npy").code == 0
        assert normcli(*check, "--actual", "y.npy", "--algorithm", "welford").code == 0
        assert normcli("check", "ln", "-i", "x.npy", "--actual", "z.npy", "--rtol", "1e-5").code == 0
        assert normcli(*check[:-2], "--accumulate", "float64", "--actual", "z.npy").code == 1

    @pytest.mark.parametrize(
        ("options", "told"),
        [
            (["--algorithm", "welford"], "give --accumulate, such as float32"),
            (["--accumulate", "float32", "--max-ulp", "1"], "--accumulate takes the place of --max-ulp"),
            (["--accumulate", "float32", "--algorithm", "foo"], "foo"),
            (["--accumulate", "float32", "--gate", "1"], "--accumulate is of --actual alone"),
            (["--accumulate", "float16"], "float16 does not hold every float32"),
        ],
    )
    def test_what_is_refused(self, normcli, options, told):
        require_refusal(normcli("check", "ln", "-i", "x.npy", "--actual", "y.npy", *options), 2, told)


@pytest.mark.parametrize(
    ("norm", "places", "words"),
    [
        ("ln", (0, 32), "statistics are over all of c, not 0:8"),
        ("rms", (4, 12), "statistics are over 4:12 of c, not 0:8"),
        ("lp", (0, 32), "statistics are over all values, not 0:8 (as torch)"),
        ("lp", (0, 9), "the divisor is wrong"),
    ],
)
def test_the_slice_is_named_that_statistics_are_over(normcli, folder, norm, places, words):
    x = np.random.default_rng(0).normal(1.0, 2.0, (16, 32)).astype("f4")
    wide, part = x.astype("f8"), x[:, slice(*places)].astype("f8")
    mean = part.mean(-1, keepdims=True) if norm == "ln" else 0.0
    square = np.square(part - mean).mean(-1, keepdims=True) * (part.shape[1] if norm == "lp" else 1)
    save(x=x, y=((wide - mean) / np.sqrt(square)).astype("f4"))
    eps = [] if norm == "lp" else ["--eps", 1e-12]
    ran = normcli("check", norm, "-i", "x.npy", "--actual", "y.npy", "--over", "0:8", *eps, "-fjson")
    assert (ran.code, ran.json["diagnosis"]["cause"]) == (1, f"{norm} differs: {words}")


def test_a_norm_of_all_values_is_no_norm_of_a_slice(normcli, folder):
    x = np.random.default_rng(0).normal(1.0, 2.0, (16, 32)).astype("f4")
    gamma = np.linspace(0.5, 1.5, 32)
    save(x=x, y=(normalize(x.astype("f8"), "ln").normalized * gamma).astype("f4"))
    ran = normcli("check", "ln", "-i", "x.npy", "--actual", "y.npy", "--over", "0:8", "-fjson")
    assert ran.json["diagnosis"]["cause"].startswith("ln differs: statistics are over all values,")


REWARDS = "prompt,reward,advantage\na,1,-0.70703\na,3,0.70703\nb,2,-0.7070818\nb,6,0.7070818\n"


@pytest.mark.parametrize(
    ("actual", "by"),
    [("both.csv:advantage", "prompt"), ("both.csv:2", "0"), ("plain.csv", "prompt"), ("y.npy", "0")],
)
def test_advantages_need_not_have_the_name_of_the_rewards(normcli, here, actual, by):
    Path("both.csv").write_text(REWARDS)
    advantages = [line.split(",")[2] for line in REWARDS.splitlines()[1:]]
    Path("plain.csv").write_text("\n".join(advantages))
    np.save("y.npy", np.array(advantages, np.float64))
    asked = ("zscore", "-i", "both.csv:reward", "--by", by, "--like", "trl", "--actual", actual)
    ran = normcli("check", *asked, "--atol", "1e-4", "-fjson")
    assert (ran.code, ran.json["ok"]) == (0, True)
    assert ran.json["input"]["shape"] == [4, 1]
    assert ran.json["check"]["max_abs"] == pytest.approx(2.678e-5, rel=1e-3)
