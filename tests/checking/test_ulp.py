"""Distances in units of the last place, against exact rational arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from normcli.checking.ulp import choose_counting_dtype, choose_tolerance, measure_distance
from normcli.dtypes import OUTPUT_DTYPES, find_type, get_smallest
from normcli.errors import UsageError

FORMS = {"float16": (11, -14), "bfloat16": (8, -126), "float32": (24, -126), "float64": (53, -1022)}


def measure(actual, expected, dtype):
    actual, expected = (np.array([value], dtype=np.float64) for value in (actual, expected))
    return measure_distance(actual, expected, np.dtype(find_type(dtype)))[1][0]


def exact_unit(expected: float, dtype: str) -> Fraction:
    precision, least = FORMS[dtype]
    exponent = max(math.frexp(expected)[1] - 1, least) if expected else least
    return Fraction(2) ** (exponent - precision + 1)


@pytest.mark.parametrize("dtype", OUTPUT_DTYPES)
@given(expected=st.floats(-6e4, 6e4), actual=st.floats(-6e4, 6e4))
def test_it_is_the_difference_over_the_unit(dtype, expected, actual):
    distance = abs(Fraction(actual) - Fraction(expected)) / exact_unit(expected, dtype)
    try:
        wanted = float(distance)
    except OverflowError:
        wanted = math.inf
    assert measure(actual, expected, dtype) == pytest.approx(wanted, rel=1e-15)


@pytest.mark.parametrize(
    ("actual", "expected", "dtype", "ulp"),
    [
        pytest.param(math.nan, math.nan, "float32", 0.0, id="NaN for NaN"),
        pytest.param(math.nan, 1.0, "float32", math.inf, id="NaN for a number"),
        pytest.param(1.0, math.nan, "float32", math.inf, id="a number for NaN"),
        pytest.param(math.inf, math.inf, "float32", 0.0, id="the infinity"),
        pytest.param(-math.inf, math.inf, "float32", math.inf, id="the other infinity"),
        pytest.param(1.0, math.inf, "float32", math.inf, id="a number for an infinity"),
        pytest.param(math.inf, 1.0, "float32", math.inf, id="an infinity for a number"),
        pytest.param(math.inf, 65520.0, "float16", 0.0, id="what rounds to infinity"),
        pytest.param(math.inf, 65519.0, "float16", math.inf, id="what does not"),
        pytest.param(math.inf, 3.5e38, "bfloat16", 0.0, id="bfloat16 too"),
        pytest.param(-1e308, 1e308, "float64", math.inf, id="too far for float64"),
        pytest.param(-0.0, 0.0, "float32", 0.0, id="the other zero"),
        pytest.param(5e-324, 0.0, "float64", 1.0, id="the least number"),
        pytest.param(2.0**-149, 0.0, "float32", 1.0, id="of float32"),
        pytest.param(2.0**-149, 2.0**-150, "float32", 0.5, id="half of it"),
    ],
)
def test_edges(actual, expected, dtype, ulp):
    assert measure(actual, expected, dtype) == ulp


@pytest.mark.parametrize(
    ("actual", "expected", "error"),
    [
        (1.0, math.inf, math.inf),
        (-math.inf, math.inf, math.inf),
        (math.inf, 1.0, math.inf),
        (math.nan, 1.0, math.inf),
        (math.nan, math.nan, 0.0),
        (math.inf, math.inf, 0.0),
        (-1e308, 1e308, math.inf),
        (1e300, 0.0, 1e300),
    ],
)
def test_what_is_not_finite_is_infinitely_far_away_in_numbers_too(actual, expected, error):
    assert measure_distance(np.array([actual]), np.array([expected]), np.dtype("f8"))[0] == error


def test_tolerances_are_those_of_torch_unless_they_are_given():
    assert choose_tolerance(np.dtype("f2"))[1:3] == (1e-3, 1e-5)
    assert choose_tolerance(np.dtype("f4"))[1:3] == (1.3e-6, 1e-5)
    assert choose_tolerance(np.dtype("f8"), rtol=0.0)[1:3] == (0.0, 1e-7)
    assert choose_tolerance(np.dtype("f8"), max_ulp=3.0).max_ulp == 3.0


@pytest.mark.parametrize(("scale", "atol"), [(0.25, 0.25e-5), (1.0, 1e-5), (4.0, 1e-5)])
def test_of_small_values_the_absolute_tolerance_is_smaller(scale, atol):
    assert choose_tolerance(np.dtype("f4"), scale=scale).atol == atol
    assert choose_tolerance(np.dtype("f4"), atol=0.5, scale=scale).atol == 0.5


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("steps", [0.5, 1.25, 3.5])
def test_subnormals_that_were_rounded_once_are_tolerated_however_small_all_values_are(name, steps):
    dtype, step = np.dtype(find_type(name)), get_smallest(name)
    expected = np.array([steps * step])
    actual = expected.astype(dtype).astype(np.float64)
    tolerance = choose_tolerance(dtype, scale=float(expected[0]))
    error, ulp = measure_distance(actual, expected, dtype)
    assert tolerance.measure_excess(error, ulp, expected)[0] <= 1.0
    assert tolerance.measure_excess(error + step, ulp + 1.0, expected)[0] > 1.0


@pytest.mark.parametrize(
    "given",
    [
        {"rtol": -1.0}, {"atol": math.nan}, {"max_ulp": 1.0, "rtol": 0.0}, {"max_ulp": 1.0, "atol": 0.0},
        {"max_ulp": "2"}, {"rtol": [1.0]}, {"rtol": math.inf},
    ],
)  # fmt: skip
def test_tolerances_that_make_no_sense(given):
    with pytest.raises(UsageError):
        choose_tolerance(np.dtype("f4"), **given)


@pytest.mark.parametrize(
    ("dtype", "counted"), [("i4", "f8"), (">f4", "f4"), ("?", "f8"), ("f2", "f2"), ("g", "f8"), ("c8", "f8")]
)
def test_what_has_no_last_place_counts_as_float64(dtype, counted):
    assert choose_counting_dtype(np.dtype(dtype)) == np.dtype(counted)
