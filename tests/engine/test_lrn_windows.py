"""Windows: mean squares, inverse divisors and values are the exact ones, rounded once, at any scale."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from normcli import normalize
from tests.marks import costly, sampled, slowly
from tests.reference.real import Real
from tests.reference.rounding import round_once


def divide(square, size):
    """Return a quotient rounded once, to even, and infinite beyond doubles."""
    try:
        return square.numerator / (square.denominator * size)
    except OverflowError:
        return math.inf


def check(x, dtype="float64", **options):
    """Hold every window of the rows of x against exact arithmetic."""
    result = normalize(x, "lrn", dtype=dtype, **options)
    window = result.plan.spec.window
    for n, c in np.ndindex(*x.shape):
        members = x[n, max(0, c - window.before) : c + window.after + 1]
        square = sum(Fraction(v) ** 2 for v in members.tolist())
        assert result.ms[n, c] == divide(square, window.size)
        base = Fraction(window.k) + Fraction(window.alpha) * square / window.divisor
        if base == 0 or (base < 0 and window.exponent % 1.0):
            continue
        sign = -1 if base < 0 and window.exponent % 2.0 else 1
        factor = Real.of(abs(base)).power(-Fraction(window.exponent)) * sign
        assert result.rstd[n, c] == round_once(factor, "float64")
        assert result.normalized[n, c] == round_once(factor * x[n, c].item(), dtype)


NEAR = np.nextafter(1.0, 2.0)
KINDS = {
    "normal": lambda random, x: x,
    "integers": lambda random, x: np.round(x * 8),
    "short": lambda random, x: x.astype(np.float32).astype(np.float64),
    "mixed": lambda random, x: x * 10.0 ** random.uniform(-300, 300, x.shape),
    "subnormal": lambda random, x: x * 10.0 ** random.uniform(-322, -290, x.shape),
    "large": lambda random, x: x * 10.0 ** random.uniform(300, 307, x.shape),
}


def draw(kind, shape=(2, 9)):
    random = np.random.default_rng(3)
    return KINDS[kind](random, random.standard_normal(shape))


@sampled
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("exponent", [0.75, -2.5, *slowly([0.0, 1.0, 0.1, 8.0, -1.0, math.pi])])
@pytest.mark.parametrize(
    "constants",
    [
        (1e-4, 1.0),
        (1.0, 0.0),
        (-0.5, 1.0),
        *slowly([(2.0, -1.0), (1e300, 1e-300), (1e-300, 1e300), (1.0, 1e-320)]),
    ],
    ids=str,
)
def test_windows_are_exact(kind, exponent, constants):
    alpha, k = constants
    check(draw(kind), size=3, alpha=alpha, k=k, exponent=exponent)


def test_0_is_0_where_the_factor_is_beyond_doubles():
    found = normalize([[0.0, 5e-324], [-0.0, 5e-324]], "lrn", size=2, alpha=1.0, k=0.0, exponent=2.0)
    assert found.rstd[0, 0] == np.inf
    assert found.normalized.tolist() == [[0.0, np.inf]] * 2
    assert np.signbit(found.normalized[:, 0]).tolist() == [False, True]


def test_a_factor_that_makes_a_tie_as_far_as_it_is_kept():
    """One over √(4 + 2⁻⁷⁹) is kept as ½, of which 3 · 2⁻¹⁰⁷⁴ would lie in the middle of two doubles."""
    x = np.array([[3.0 * 2.0**-1074, 2.0**30]])
    check(x, size=2, alpha=2.0**-138, k=4.0, exponent=0.5)
    assert normalize(x, "lrn", size=2, alpha=2.0**-138, k=4.0, exponent=0.5).normalized[0, 0] == 2.0**-1074


LONG = [[2**62 + 1, 2**53 + 1, -3, 2**60 - 1, -(2**63)], [0, 1, 2**54 + 3, 0, 7]]
ROUNDED = np.round(np.random.default_rng(4).standard_normal((2, 60)) * 2.0**27)
BESIDE_SMALL = np.where(np.arange(60) % 20, ROUNDED * 2.0**-40, 1e-200)
BELOW_A_POWER = [[2.0**56 - 8, 929887677, 191360, 171], [2.0**56 - 8, 929887677, 191334, 3159]]
CANCELLING = {"size": 1, "alpha": 1.0, "k": -1.0}
TRIPLES = [
    [3 * 0.4, 4 * 0.4],
    [5 * (2 / 13), 12 * (2 / 13)],
    [8 * (2 / 17), 15 * (2 / 17)],
    [20 * (2 / 29), 21 * (2 / 29)],
]


@pytest.mark.all_tried
@pytest.mark.parametrize(
    ("x", "options"),
    [
        *(pytest.param(draw("normal"), {"size": n, "alpha": 1.0}, id=f"size {n}") for n in (1, 2, 4, 5, 8, 40)),
        pytest.param(draw("short"), {"size": 8, "alpha": 1.0}, id="short numbers"),
        pytest.param(ROUNDED, {"size": 4}, id="mean squares between two doubles"),
        pytest.param(ROUNDED, {"size": 5}, id="mean squares near the middle of two doubles"),
        pytest.param(BESIDE_SMALL, {"size": 4}, id="mean squares beside values that are scaled"),
        pytest.param(BESIDE_SMALL * 1e-145, {"size": 1}, id="all of them scaled"),
        pytest.param(BELOW_A_POWER, {"size": 4}, id="a quarter of a unit below a power of two"),
        pytest.param(np.ldexp(BELOW_A_POWER, -60), {"size": 4}, id="the same, smaller"),
        pytest.param(TRIPLES, {"size": 2, "k": 0.0, "alpha": 1.0}, id="a term that is nearly 1"),
        pytest.param([[NEAR, 1.0, 3.0]], CANCELLING | {"exponent": 2.0}, id="a base that cancels"),
        pytest.param([[NEAR, 1.0, 3.0]], CANCELLING | {"exponent": 0.7}, id="a power of a base that cancels"),
        pytest.param(
            [[1.0, 2.0**-70, -1.0]], {"size": 3, "alpha": 3.0, "k": -1.0, "exponent": 3.0}, id="other sizes that cancel"
        ),
        pytest.param([[1.25, 0.5]], {"size": 1, "alpha": 1e-9, "exponent": 1e9}, id="a steep power near 1"),
        pytest.param(LONG, {"size": 3, "alpha": 1.0}, id="long integers"),
        pytest.param(LONG, {"size": 1, "alpha": 1e-30, "exponent": -1.5}, id="long integers with a negative exponent"),
        *(
            pytest.param(np.zeros((1, 2)), {"size": 1, "k": k, "exponent": exponent}, id=f"zeros beside {k}")
            for k, exponent in ((-6.856897012870585, 3.0), (-6.8125755404154, 7.0), (-3.9292746437519157, -5.0))
        ),
    ],
)  # fmt: skip
def test_windows_that_are_hard_are_exact(x, options):
    check(np.array(x), **options)


def find_near_a_tie(offset):
    """Return odd numbers of 53 bits whose squares' last 53 bits are half a unit and an offset, of ones modulo 8."""
    square, root = 2**52 + offset, 1
    for bit in range(3, 53):
        root += (((root * root - square) >> bit) & 1) << (bit - 1)
    roots = {sign * (root + step) % 2**53 for sign in (1, -1) for step in (0, 2**52)}
    return [number for number in sorted(roots) if number * number >= 2**105]


@pytest.mark.parametrize("offset", [1, -7, 17, -15])
def test_mean_squares_that_are_hardly_beyond_the_middle_of_two_doubles(offset):
    numbers = find_near_a_tie(offset)
    assert numbers
    assert all((number * number - offset) % 2**53 == 2**52 for number in numbers)
    check(np.array([numbers], dtype=float), size=1)
    check(np.array([numbers], dtype=float) * 2.0**-600, size=1)
    check(np.array([numbers], dtype=float) * 2.0**480, size=1)  # a mean square beyond doubles


@pytest.mark.parametrize("missing", [7, 15, 23])
def test_mean_squares_that_a_second_value_lifts_beyond_the_middle_of_two_doubles(missing):
    """By so little that two doubles do not tell."""
    rest = np.nextafter(math.sqrt(missing), math.inf)
    assert 0 < Fraction(rest) ** 2 - missing < Fraction(1, 2**45)
    check(np.array([[number, rest] for number in find_near_a_tie(-missing)], dtype=float), size=2)


@pytest.mark.parametrize(
    ("exponent", "sign"), [pytest.param(2.0, 1.0, id="even"), pytest.param(3.0, -1.0, id="odd")]
)
def test_negative_bases_have_powers_of_whole_exponents(exponent, sign):
    result = normalize(np.array([[1.0]]), "lrn", size=1, alpha=1.0, k=-3.0, exponent=exponent)
    assert result.normalized[0, 0] == sign * 2.0**-exponent
    assert np.isnan(
        normalize(np.array([[1.0]]), "lrn", size=1, alpha=1.0, k=-3.0, exponent=0.5).normalized[0, 0]
    )


def test_a_divisor_of_0():
    result = normalize(np.array([[2.0, 0.0]]), "lrn", size=1, alpha=1.0, k=-4.0, exponent=0.5)
    assert result.normalized[0, 0] == result.rstd[0, 0] == math.inf


def test_infinities_and_nan_stay_in_their_windows():
    result = normalize(np.array([[math.inf, 1.0, 2.0, math.nan, 3.0]]), "lrn", size=3)
    np.testing.assert_array_equal(result.normalized[0, :2], [np.nan, 0.0])
    assert np.isnan(result.normalized[0, 2:]).all()
    np.testing.assert_array_equal(result.ms[0], [math.inf, math.inf, math.nan, math.nan, math.nan])


@pytest.mark.slow
@costly
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [65, 160, 1000])
def test_long_windows_are_exact(kind, size):
    check(draw(kind, (1, 100)), size=size)


def test_what_is_not_finite_is_of_its_own_windows_alone():
    x = np.round(np.random.default_rng(2).normal(size=(1, 400)) * 8)
    y = x.copy()
    y[0, 0] = np.inf
    far = slice(200, None)
    for name in ("normalized", "ms", "rstd"):
        found, expected = (getattr(normalize(each, "lrn", size=129), name)[0, far] for each in (y, x))
        assert found.tobytes() == expected.tobytes()
