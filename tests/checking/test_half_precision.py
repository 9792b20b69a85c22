"""Half precision that was saved as float32 is judged as what it was, where x is of it too."""

from __future__ import annotations

import numpy as np
import pytest

import normcli
from normcli.checking.half_precision import find_common_half, find_saved_dtype
from normcli.dtypes import find_type
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
    judged = normcli.check(y, x if dtype is None else x.astype(dtype), "ln")
    assert judged.ok
    assert judged.found.comparisons["normalized"].tolerance.dtype == x.dtype
    assert judged.diagnosis.cause == f"ln agrees: y holds {name} numbers, saved as float32"


def test_a_wrong_one_is_told_as_one_of_half_precision():
    x = INPUTS["float16"]
    judged = normcli.check(make(x, ddof=1).astype("f2").astype("f4"), x, "ln")
    assert not judged.ok
    assert judged.diagnosis.cause == "ln differs: ddof is 1, not 0"
    assert judged.diagnosis.evidence[0] == "y holds float16 numbers, saved as float32"


def test_of_a_wider_x_the_cast_is_the_fault():
    judged = normcli.check(make(X).astype("f2").astype("f4"), X, "ln")
    assert not judged.ok
    assert (judged.diagnosis.fault, judged.diagnosis.cause) == (
        "after-cast",
        "ln differs: y is rounded to float16",
    )


def test_the_dtype_that_is_asked_for_counts():
    x = INPUTS["float16"]
    assert not normcli.check(make(x).astype("f2").astype("f4"), x, "ln", dtype="float32").ok


@pytest.mark.parametrize(
    "y",
    [X, X.astype("f2"), np.round(X), np.arange(32)],
    ids=["float32", "float16", "round numbers", "integers"],
)
def test_what_was_not_saved_from_half_precision(y):
    assert find_saved_dtype(y) is None
    assert find_common_half([y], y) is None
