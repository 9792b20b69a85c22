"""Half precision that was saved as float32 is judged as what it was, where x is of it too."""

from __future__ import annotations

import json

import numpy as np
import pytest

from normcli import backward, check, identify
from normcli.checking.gradient_check import check_gradients
from normcli.checking.half_precision import find_saved_dtype
from normcli.dtypes import find_type
from tests.conftest import pose
from tests.identifying.faulty import draw, standardize

X = draw((16, 32))
INPUTS = {name: X.astype(find_type(name)) for name in ("bfloat16", "float16")}


def make(x, ddof=0):
    x = x.astype("f8")
    return standardize(x, square=x.var(-1, ddof=ddof, keepdims=True))


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("dtype", [None, "f4", "f8"])
def test_a_right_kernel_of_half_precision_passes(name, dtype):
    x = INPUTS[name]
    y = make(x).astype(x.dtype).astype("f4")
    judged = check(y, x if dtype is None else x.astype(dtype), "ln")
    assert judged.ok
    assert judged.found.comparisons["normalized"].tolerance.dtype == x.dtype
    assert judged.diagnosis.cause == f"ln agrees: y holds {name} numbers, saved as float32"


def test_a_wrong_one_is_told_as_one_of_half_precision():
    x = INPUTS["float16"]
    judged = check(make(x, ddof=1).astype("f2").astype("f4"), x, "ln")
    assert not judged.ok
    assert judged.diagnosis.cause == "ln differs: ddof is 1, not 0"
    assert judged.diagnosis.evidence[0] == "y holds float16 numbers, saved as float32"


def test_the_dtype_that_is_asked_for_counts():
    x = INPUTS["float16"]
    assert not check(make(x).astype("f2").astype("f4"), x, "ln", dtype="float32").ok


@pytest.mark.parametrize(
    "y",
    [X, X.astype("f2"), np.round(X), np.arange(32)],
    ids=["float32", "float16", "round numbers", "integers"],
)
def test_what_was_not_saved_from_half_precision(y):
    assert find_saved_dtype(y) is None
    assert find_saved_dtype(y, [y]) is None


def test_few_values_are_of_half_precision_where_all_are_the_exact_ones_rounded():
    bfloat16 = find_type("bfloat16")
    x = (1000 + np.random.default_rng(0).normal(size=(12, 7))).astype(bfloat16).astype("f4")
    y = make(x).astype(bfloat16).astype("f4")  # 0 in nine rows, and four other values
    judged = check(y, x, "ln")
    assert judged.ok
    assert judged.diagnosis.cause == "ln agrees: y holds bfloat16 numbers, saved as float32"
    assert identify(y, x).diagnosis.cause == "y may be layer normalization over c"
    y[1] = [2, 0, 0, 0, 0, 0, -2]
    assert not check(y, x, "ln").ok
    assert not check(np.sign(y), x, "ln").ok


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_check_and_identify_say_alike_of_a_wider_x_that_y_was_cast(dtype):
    x = draw((6, 64)).astype(dtype)
    y = make(x).astype(find_type("bfloat16")).astype(dtype)
    for judged in (check(y, x, "ln"), identify(y, x)):
        assert not judged
        assert judged.diagnosis.fault == "after-cast"
        assert judged.diagnosis.cause.endswith("y is rounded to bfloat16")


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("shape", [(12, 40), (4, 5)], ids=["many values", "few values"])
def test_gradients_of_half_precision_are_each_judged_as_such(name, shape, normcli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    half = find_type(name)
    drawn = (draw(shape), draw(shape, seed=1), draw(shape[1:]), draw(shape, seed=2))
    x, dy, gamma, gate = (values.astype(half).astype("f8") for values in drawn)
    right = backward(x, dy, "ln", gamma=gamma, beta=np.zeros(shape[1:]), gate=gate)
    given = {"input": x, "dy": dy, "gamma": gamma, "beta": np.zeros(shape[1:]), "gate": gate}
    given |= {f"actual-{key}": getattr(right, key).astype(half) for key in ("dx", "dgamma", "dbeta", "dgate")}
    for key, values in given.items():
        np.save(f"{key}.npy", values.astype("f4"))
    words = [word for key in given for word in (f"--{key}", f"{key}.npy")]
    ran = normcli("check", "ln", "--backward", *words, "-f", "json")
    told = json.loads(ran.out)["gradients"]
    assert [each["dtype"] for each in told.values()] == [name] * 4
    assert [each["evidence"] for each in told.values()] == [
        f"{key} holds {name} numbers, saved as float32; it is judged as {name}" for key in told
    ]
    assert ran.code == 0
    np.save("actual-dx.npy", np.load("actual-dx.npy") * np.float32(-1))
    ran = normcli("check", "ln", "--backward", *words)
    assert ran.code == 1
    assert "dx: its sign is turned" in ran.out
    assert f"dgate holds {name} numbers, saved as float32   it is judged as {name}" in ran.out


def test_a_value_that_both_half_precisions_hold_is_of_the_one_of_the_inputs():
    x, y = INPUTS["float16"], np.array([1.5, 0.75], "f4")
    assert find_saved_dtype(y, [x], few=True) == np.dtype("f2")
    assert find_saved_dtype(y, [INPUTS["bfloat16"]], few=True).name == "bfloat16"
    assert find_saved_dtype(y, [x, INPUTS["bfloat16"]], few=True) is None


def check_sums(name, cuts):
    """Return what is found of dgamma and dbeta where sums of blocks of rows are added in half precision."""
    half = find_type(name)
    rng = np.random.default_rng(6)
    x, dy = (rng.normal(mean, 1.0, (64, 96)).astype(half) for mean in (30.0, 0.0))
    gamma = rng.normal(1.0, 0.3, 96).astype(half)
    wide = x.astype("f4")
    xhat = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + np.float32(1e-5))
    exact = backward(x, dy, "ln", gamma=gamma, beta=np.zeros(96))
    actual = {}
    for key, terms in (("dgamma", dy.astype("f4") * xhat), ("dbeta", dy.astype("f4"))):
        actual[key] = sum(block.sum(0).astype(half) for block in np.split(terms, cuts))
    return check_gradients(pose(exact.plan, x, exact.inputs, dy), actual).causes


@pytest.mark.parametrize("name", INPUTS)
def test_sums_of_blocks_in_half_precision_are_named_by_their_very_bits(name):
    found = check_sums(name, range(16, 64, 16))
    for key in ("dgamma", "dbeta"):
        assert found[key].sentence == f"{key}: it is summed in {name}, in blocks of 16."


@pytest.mark.parametrize("name", INPUTS)
def test_the_mean_is_not_blamed_where_its_rounding_does_not_suffice(name):
    for key, one in check_sums(name, (9, 20, 33, 50)).items():
        assert one.sentence == f"{key}: rounding of its terms in {name} may explain the difference."
        assert not any("mean" in clause for clause in one.evidence)
