"""Assertions for the tests of kernels: what they take, what they say, and what they refuse."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest
from ml_dtypes import bfloat16

from normcli import backward, normalize
from normcli.errors import DataError, UsageError
from normcli.testing import assert_backward_matches, assert_matches

RNG = np.random.default_rng(17)
X = RNG.normal(3.0, 2.0, (2, 3, 16)).astype(np.float32)
DY = RNG.normal(1.0, 1.0, X.shape).astype(np.float32)
GAMMA = RNG.normal(1.0, 0.5, 16).astype(np.float32)
EPS = 1e-5


def fail(assertion, *arguments, **options):
    """Return the message of an assertion that fails."""
    with pytest.raises(AssertionError) as caught:
        assertion(*arguments, **options)
    return str(caught.value)


def port(x=X, ddof=0):
    """A port of layer norm, which divides by n − ddof."""
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True, ddof=ddof) + np.float32(EPS))


@pytest.mark.parametrize("dtype", ["float16", bfloat16, "float32", "float64"])
@pytest.mark.parametrize("norm", ["ln", "bn", "rms", "lp", "lrn"])
def test_what_is_exact_passes_to_half_an_ulp(norm, dtype):
    x = X.astype(dtype)
    assert_matches(normalize(x, norm).normalized, x, norm, max_ulp=0.501)
    exact = backward(x, DY, norm)
    parameters = {name: exact.field(name) for name in ("dgamma", "dbeta")}
    assert_backward_matches(exact.dx, x, DY, norm, max_ulp=0.501, **parameters)


def test_a_value_that_is_not_finite_is_infinitely_far():
    y = normalize(X, "ln", layout="bnd").normalized.copy()
    y[0, 0, 0] = np.inf
    first = fail(assert_matches, y, X, "ln", layout="bnd").splitlines()[0]
    assert first == "ln: 1 of 96 values differs, some infinitely far"


@pytest.mark.slow
def test_every_option_of_normalize_is_one_of_the_assertions():
    options = {"like": "llama", "gamma": GAMMA.astype(np.float16), "layout": "bnd"}
    x = X.astype(np.float16)
    assert_matches(normalize(x, "rms", **options).normalized, x, "rms", max_ulp=0.501, **options)
    fail(assert_matches, normalize(x, "rms", **options).normalized, x, "rms", max_ulp=0.501)
    with pytest.raises(UsageError, match="assert_matches has no option 'out'"):
        assert_matches(X, X, "ln", out=X)


@pytest.mark.slow
def test_the_message_is_the_report_of_check():
    message = fail(assert_matches, port(ddof=1), X, "ln", layout="bnd")
    first, blank, *report = message.splitlines()
    assert re.fullmatch("ln: 96 of 96 values differ, by up to .* ulp of float32", first)
    assert (blank, report[0]) == ("", "check ln · layer normalization")
    words = " ".join(report)
    assert re.search(
        "worst value of normalized at +b=.*6 of 6 groups differ.*✗ ln differs: ddof is 1, not 0.", words
    )
    assert max(map(len, report)) <= 76, "80 columns, of which pytest takes a margin"


def test_the_worst_gradient_is_named_with_its_group_and_its_fault():
    exact = backward(X, DY, "ln", gamma=GAMMA, layout="bnd")
    wrong = {"dgamma": exact.dbeta, "dbeta": exact.dbeta}
    message = fail(assert_backward_matches, -exact.dx, X, DY, "ln", gamma=GAMMA, layout="bnd", **wrong)
    assert message.startswith("ln: dx: 96 of 96 values differ")
    assert "; dgamma: 16 of 16 values differ" in message
    assert "dx: its sign is turned." in message
    assert "dgamma: it and dbeta are exchanged." in message
    assert "✓ dbeta: 16 values agree" in message
    assert max(map(len, message.splitlines()[1:])) <= 76, "80 columns, of which pytest takes a margin"


def test_a_wrong_shape_or_dtype_fails_before_any_value_is_compared():
    assert "actual has the shape (2, 3, 15); x has (2, 3, 16)" in fail(assert_matches, X[..., 1:], X, "ln")
    assert "dgamma has the shape (3,); it takes (16,)" in fail(
        assert_backward_matches, None, X, DY, "ln", dgamma=np.ones(3)
    )
    message = fail(assert_matches, port().astype(np.float16), X, "ln")
    assert message == "ln: actual is float16; ln of float32 gives float32 (dtype='float16' says otherwise)"
    half = normalize(X, "ln", dtype="float16").normalized
    assert_matches(half, X, "ln", dtype="float16", max_ulp=0.501)
    assert "dx is float64; ln of float32" in fail(assert_backward_matches, X.astype("f8"), X, DY, "ln")


def test_backward_passes_that_cannot_be_checked_are_errors_and_no_failures():
    with pytest.raises(UsageError, match="there is nothing to check"):
        assert_backward_matches(None, X, DY, "ln")
    with pytest.raises(UsageError, match="robust has no backward pass"):
        assert_backward_matches(X, X, DY, "robust")
    with pytest.raises(DataError, match="dy has the shape"):
        assert_backward_matches(X, X, DY[0], "ln")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"accumulate": "flaot32"}, "accumulate 'flaot32' is none of float16"),
        ({"accumulate": "int8"}, "there is no dtype of sums 'int8'"),
        ({"accumulate": "float32", "algorithm": 3}, "algorithm 3 is not a name"),
        ({"ep": 1}, "has no option 'ep'"),
        ({"max_ulp": "2"}, "max-ulp '2' is not a number"),
        ({"max_ulp": 1, "rtol": 1e-3}, "max-ulp takes the place of rtol"),
        ({"atol": -1}, "atol -1 is not a finite number"),
        ({"threads": 0}, "threads 0 is less than one"),
    ],
    ids=repr,
)
@pytest.mark.all_quick
def test_arguments_of_another_kind_are_errors_and_no_failures(options, message):
    with pytest.raises(UsageError, match=message):
        assert_matches(port(), X, "ln", **options)
    with pytest.raises(UsageError, match=message):
        assert_backward_matches(X, X, DY, "ln", **options)


@pytest.mark.slow
@pytest.mark.parametrize("accumulate", [np.float32, np.dtype("float32"), "f4"], ids=repr)
def test_sums_are_declared_by_any_word_for_their_dtype(accumulate):
    assert_matches(normalize(X, "ln").normalized, X, "ln", accumulate=accumulate)
    message = fail(assert_matches, np.zeros_like(X), X, "ln", accumulate=accumulate)
    assert "two-pass:float32" in message


FOREIGN = {
    "get": lambda values: SimpleNamespace(dtype=values.dtype, get=lambda: values),
    "numpy": lambda values: SimpleNamespace(dtype=values.dtype, numpy=lambda: values),
    "DLPack": lambda values: SimpleNamespace(
        dtype=values.dtype, __dlpack__=values.__dlpack__, __dlpack_device__=values.__dlpack_device__
    ),
}
"""Arrays that give their values by one way alone: copied as CuPy's are, copied by `numpy()`, shared."""


@pytest.mark.parametrize("make", FOREIGN.values(), ids=FOREIGN)
def test_arrays_of_other_libraries(make):
    y, dx = port(), backward(X, DY, "ln").dx
    assert_matches(make(y), make(X), "ln")
    assert_backward_matches(make(dx), make(X), make(DY), "ln")
    assert "sign is turned" in fail(assert_backward_matches, make(-dx), make(X), make(DY), "ln")
    assert "actual is float64" in fail(assert_matches, make(y.astype("f8")), make(X), "ln")
