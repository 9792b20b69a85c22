"""The exact reference, against other arithmetic than its own: mpmath, the standard library, and NumPy's rounding."""

from __future__ import annotations

import ast
import math
import statistics
from fractions import Fraction

import ml_dtypes
import mpmath
import numpy as np
import pytest

from normcli import normalize
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from tests.conftest import ROOT
from tests.reference.groups import find_length, solve_group, solve_window, to_integers
from tests.reference.measuring import Elements, measure_elements, measure_result
from tests.reference.real import Real
from tests.reference.rounding import measure_ulp, round_once

PLAN = make_plan(Request("ln", eps=0.0, ddof=1), (6,), np.dtype("f8"))
VALUES = np.array([1e-3, 2.5, -7.0, 2.5, 1e9, 3.0])


def make_window(**options):
    return make_plan(Request("lrn", **options), (1, 4), np.dtype("f8")).spec.window


def enclose(number: Real, bits: int) -> tuple[Fraction, Fraction]:
    low, high, exponent = number.enclose(bits)
    return low * Fraction(2) ** exponent, high * Fraction(2) ** exponent


def from_mpmath(value: mpmath.mpf) -> Fraction:
    sign, digits, exponent, _ = value._mpf_
    return (-1) ** sign * int(digits) * Fraction(2) ** exponent


@pytest.mark.parametrize(
    "base", [Fraction(1, 3), Fraction(2), Fraction(10) ** 300, Fraction(7, 10**200), Fraction(1)]
)
@pytest.mark.parametrize(
    "p", [0.5, 0.75, 3, 1e-5, 511.0, 600.5, -2.5, -1, Fraction(1, 3), Fraction(1, 511), 1e-300], ids=float
)
def test_powers_lie_between_their_bounds(base, p):
    low, high = enclose(Real.of(base).power(p), 120)
    with mpmath.workprec(3000):
        exponent = mpmath.mpf(Fraction(p).numerator) / Fraction(p).denominator
        exact = from_mpmath((mpmath.mpf(base.numerator) / base.denominator) ** exponent)
    assert low * (1 - Fraction(1, 2**900)) <= exact <= high * (1 + Fraction(1, 2**900))
    assert (high - low) * 2**110 <= high


def test_sums_of_what_cancels_and_of_what_lies_far_apart():
    root = Real.of(2).root()
    assert (root - Fraction(math.sqrt(2))).compare(0) != 0
    assert (root * root).compare(2) == 0  # equal in as many bits as are looked at
    far = Real.of(Fraction(10) ** 400).root() * root + Real.of(Fraction(1, 10**400)) * root
    low, high = enclose(far, 80)
    assert 0 < high - low < high / 2**70


DTYPES = ["float16", ml_dtypes.bfloat16, "float32", "float64"]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
def test_rounding_is_that_of_the_formats(dtype):
    name, info = np.dtype(dtype).name, ml_dtypes.finfo(dtype)
    rng = np.random.default_rng(1)
    wide = rng.standard_normal(300) * 2.0 ** rng.integers(info.minexp - info.nmant - 2, info.maxexp + 1, 300)
    wide[:4] = float(info.max) * (1 + 2.0 ** (-info.nmant - 2)), float(info.tiny) / 2, 0.0, -float(info.max)
    with np.errstate(over="ignore"):
        here = wide.astype(dtype)  # of a double once, but for bfloat16, which NumPy rounds twice
    for value, rounded in zip(wide.tolist(), here.astype(float).tolist(), strict=True):
        nearest = round_once(value, name)
        with np.errstate(over="ignore"):
            error = measure_ulp(np.array(nearest, dtype), value, name)
        assert error <= 0.5
        assert (
            nearest == rounded
            or error == measure_ulp(np.array(rounded, dtype), value, name)
            or name == "bfloat16"
        )


@pytest.mark.parametrize(
    ("value", "exact", "dtype", "error"),
    [
        (1.0, Fraction(1) + Fraction(1, 2**53), "float64", 0.5),
        (2.0, Fraction(1), "float32", 2.0**23),
        (0.0, Fraction(1, 2**1075), "float64", 0.5),
        (5e-324, Fraction(0), "float64", 1.0),
        (math.inf, Fraction(2) ** 1024, "float64", 0.0),
        (math.inf, Fraction(2) ** 1024 - Fraction(2) ** 970, "float64", 0.5),
        (-math.inf, Fraction(10) ** 1000, "float64", 2.0**53 * 5),
        (65504.0, Fraction(65520), "float16", 0.5),
        (math.nan, Fraction(1), "float64", math.inf),
        (0.0, Fraction(1, 10**1000), "float64", 0.0),
    ],
)
def test_errors_in_ulp(value, exact, dtype, error):
    assert measure_ulp(np.array(value, dtype), exact, dtype) == error


def test_numbers_far_from_any_float():
    power = Real.of(Fraction(10) ** 400).root() * Real.of(2).root()
    assert measure_ulp(1.0, power * 0 + 1, "float64") == 0.0
    assert round_once(-(Fraction(2) ** 1000 + Fraction(1, 2**1074)), "float64") == -(2.0**1000)
    assert round_once(Fraction(10) ** 400, "float64") == math.inf
    values, solved = np.zeros(3), solve_window(make_window(exponent=8.0, k=1e-300), [0.0])
    assert measure_elements(Elements(values, values), solved) == [0.0] * 3  # divided by 10^-2400


def test_statistics_are_those_of_the_standard_library():
    exact = [Fraction(value) for value in VALUES.tolist()]
    solved = solve_group(PLAN, VALUES)
    assert solved.centre == statistics.mean(exact)
    assert solved.statistics["var"].rational == statistics.variance(exact)
    assert float(solved.statistics["std"]) == statistics.stdev(exact)
    robust = solve_group(make_plan(Request("robust"), (6,), np.dtype("f8")), VALUES)
    quartiles = statistics.quantiles(exact, n=4, method="inclusive")
    assert [robust.statistics[name].rational for name in ("q1", "median", "q3")] == quartiles


@pytest.mark.parametrize(
    ("p", "length"),
    [(2, 5), (1, 7), (0, 2), (math.inf, 4), (-math.inf, 3), (-1, Fraction(12, 7)), (0.5, None), (-3, None)],
)
def test_lengths(p, length):
    found = find_length(to_integers([3.0, -4.0]), p)
    if length is None:
        with mpmath.workprec(200):
            expected = (mpmath.mpf(3) ** p + mpmath.mpf(4) ** p) ** (1 / mpmath.mpf(p))
        assert abs(found.compare(from_mpmath(expected))) == 1
        assert measure_ulp(float(expected), found, "float64") <= 0.51
    else:
        assert found.compare(length) == 0
    assert find_length(to_integers([3.0, 0.0]), p).compare(0) == (0 if p < 0 else 1)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)
def test_elements_are_judged_one_by_one(dtype):
    values = np.array([1, 2, 3, 8], dtype)
    plan = make_plan(Request("ln", eps=0.0), (4,), values.dtype)
    with mpmath.workprec(300):
        root = mpmath.sqrt(mpmath.mpf(29) / 4)
        exact = [2 * (mpmath.mpf(float(v)) - mpmath.mpf(7) / 2) / root - 1 for v in values]
        got = np.array([round_once(from_mpmath(value), values.dtype.name) for value in exact]).astype(dtype)
        expected = [measure_ulp(g, from_mpmath(v), values.dtype.name) for g, v in zip(got, exact, strict=True)]
    elements = Elements(got, values, np.full(4, 1.0), np.full(4, -1.0), offset=1)
    assert measure_elements(elements, solve_group(plan, values)) == pytest.approx(expected, abs=1e-8)


def test_a_wrong_bit_is_seen():
    result = normalize(VALUES[None], "ln")
    before = measure_result(result)
    result.normalized[0, 2] = np.nextafter(result.normalized[0, 2], 9.0)
    result.statistics["var"][0] = np.nextafter(result.var[0], 0.0)
    after = measure_result(result)
    assert after.element > before.element
    assert after.statistics["var"] > before.statistics["var"] + 0.4


def test_what_does_not_count_is_left_out():
    x = np.array([[1.0, 2.0, 4.0, np.nan, 1e300]])
    result = normalize(x, "ln", mask=[[1, 1, 1, 1, 0]], nan="omit")
    assert measure_result(result).element < 4.0
    assert measure_result(normalize(x, "ln")) == (0.0, dict.fromkeys(result.statistics, 0.0))


def test_nothing_that_is_exact_is_taken_from_what_is_judged():
    for path in (ROOT / "tests" / "reference").glob("*.py"):
        imported = {
            node.module for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)
        }
        assert not {name for name in imported if name.startswith(("normcli.numerics", "normcli.engine"))}
