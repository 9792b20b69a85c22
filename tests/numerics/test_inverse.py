"""Inverses are the exact ones of the numbers that they are calculated with, rounded once."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from normcli.numerics.deciding import PRECISIONS, round_to
from normcli.numerics.elements import in_fractions, inverse
from normcli.numerics.elements.in_pairs import Elements
from normcli.numerics.elements.inverse import invert
from normcli.numerics.pairs import Pair, Triple
from normcli.numerics.rational import find_root
from normcli.numerics.rounding import store
from normcli.numerics.statistics.divisor import Solution
from tests.numerics.exact_parts import add_up, lay
from tests.reference.rounding import round_once as round_reference

DTYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32, "float64": np.float64}


def solve(elements):
    """Return the solution that has nothing but what the elements have."""
    nothing = np.zeros(elements.divisor.hi.shape)
    mean = elements.mean or Triple(nothing, nothing, nothing)
    return Solution(mean, elements.divisor, centred=elements.mean is not None)


def calculate(elements, dtype):
    out = np.empty(elements.x.shape, DTYPES[dtype])
    with np.errstate(all="ignore"):
        store(out, invert(elements, solve(elements), PRECISIONS[dtype]))
    return out


def check(elements, dtype):
    """Hold that results are what is exact, rounded once."""
    for i, value in enumerate(calculate(elements, dtype).tolist()):
        exact = add_up(elements.x, i) - (0 if elements.beta is None else add_up(elements.beta, i))
        exact = (
            exact / (1 if elements.gamma is None else add_up(elements.gamma, i)) * add_up(elements.divisor, i)
        )
        exact += 0 if elements.mean is None else add_up(elements.mean, i)
        assert value == round_reference(exact, dtype)


def draw(seed, count=300, *, centred=True, affine=False, spread=1.0):
    random = np.random.default_rng(seed)
    x, gamma, beta, hi = random.standard_normal((4, count))
    divisor = Pair(np.abs(hi) * spread, np.abs(hi) * spread * 2.0**-60)
    mean = random.standard_normal(count)
    mean = Triple(mean, mean * 2.0**-55, mean * 2.0**-110) if centred else None
    return Elements(x, mean, divisor, *((gamma, beta) if affine else (None, None)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("centred", [False, True])
def test_moderate_numbers(dtype, affine, centred):
    elements = draw(1, centred=centred, affine=affine)
    check(elements, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("affine", [False, True])
def test_where_the_mean_cancels_what_is_added_to_it(dtype, affine):
    elements = draw(2, affine=affine)
    divisor = elements.divisor.hi + elements.divisor.lo
    gamma, beta = (1.0, 0.0) if elements.gamma is None else (elements.gamma, elements.beta)
    elements = elements._replace(x=-elements.mean.hi / divisor * gamma + beta)
    check(elements, dtype)


def test_numbers_at_the_ends_of_the_range():
    x = np.array([1.7e308, 1.7e308, 5e-324, 1e-320, -1e308])
    beta = np.array([-1.7e308, 1.0, 0.0, -5e-324, 1e308])
    gamma = np.array([4.0, 1e300, 1e-10, 3e-320, 1e10])
    one = np.ones(5)
    elements = Elements(x, Triple(one * 3e-310, 0 * one, 0 * one), Pair(one, one * 2.0**-70), gamma, beta)
    check(elements, "float64")


def test_what_is_not_finite_is_what_doubles_give():
    one = np.ones(6)
    mean, size = np.array([1.0, 1.0, np.inf, 2.0, np.nan, 1.0]), np.array([1.0, 1.0, 1.0, np.inf, 1.0, 0.0])
    x = np.array([np.inf, np.nan, 1.0, -1.0, 1.0, 5.0])
    found = calculate(Elements(x, Triple(mean, 0 * one, 0 * one), Pair(size, 0 * one), None, None), "float64")
    np.testing.assert_array_equal(found, [np.inf, np.nan, np.inf, -np.inf, np.nan, 1.0])


def test_products_near_the_ends_of_the_range_are_rounded_once_beside_usual_ones():
    x = np.array([[2.0**-1074, 3 * 2.0**-1074, -(2.0**-1060), 2.0**1022, *np.ones(600)]])
    divisor = Fraction(3, 2) - Fraction(1, 2**60)
    kept = Pair(*lay([divisor], 2))
    solution = Solution(
        Triple(*np.zeros((3, 1, 1))), kept, centred=False, ask=lambda *_: (Fraction(0), divisor)
    )
    found = invert(Elements(x, None, kept, None, None), solution, PRECISIONS["float64"])
    assert found[0].tolist() == [round_reference(Fraction(value) * divisor, "float64") for value in x[0]]


def test_equal_values_are_calculated_exactly_once(monkeypatch):
    """Of a column that is mostly 0, every 0 comes back as the same."""
    calls = []
    rounding = lambda up, down, precision: calls.append(up) or up / down  # noqa: E731
    monkeypatch.setattr(in_fractions, "round_quotient", rounding)
    one, exact = np.ones(1), Fraction(3, 10)
    mean, divisor = Triple(one, 0 * one, 0 * one), Pair(*(part[:, 0] for part in lay([exact], 2)))
    solution = Solution(mean, divisor, centred=True, ask=lambda *_: (Fraction(1), exact))
    elements = Elements(np.full(10_000, -1.0 / 0.3), mean, divisor, None, None)
    assert np.unique(invert(elements, solution, PRECISIONS["float64"])).size == 1
    assert len(calls) == 1


def test_moderate_numbers_need_no_exact_arithmetic(monkeypatch):
    monkeypatch.setattr(inverse, "find_exactly", None)
    calculate(draw(6, affine=True), "float64")


MEANS, DIVISORS = (Fraction(1, 3), Fraction(-5, 7)), (Fraction(2, 7), Fraction(11, 3))
GAMMA, BETA = np.array([2.0, 0.3, -1.5]), np.array([0.1, 1.0, -3.0])


def make_group_elements(scale=Fraction(1), *, centred=True, low=None, gamma=GAMMA, beta=BETA):
    """Return two groups of three values, and the solution that recalls their means and divisors."""
    x = np.array([[0.5, -1.0, 3.0], [0.1, 2.0, -0.7]])
    means = [mean * scale if centred else Fraction(0) for mean in MEANS]
    mean, divisor = Triple(*lay(means, 3)), Pair(*lay(DIVISORS, 2))
    asked = lambda number, _: (means[number], DIVISORS[number])  # noqa: E731
    solution = Solution(mean, divisor, centred=centred, ask=asked)
    return Elements(x, mean if centred else None, divisor, gamma, beta, low), solution, means


def define_inverses(elements, means, precision):
    gamma = 1.0 if elements.gamma is None else elements.gamma
    parts = (0.0 if part is None else part for part in (elements.x, elements.low, elements.beta, gamma))
    y, low, beta, gamma = (np.vectorize(Fraction, otypes=[object])(part) for part in parts)
    divisors, means = (np.array(numbers, object)[:, None] for numbers in (DIVISORS, means))
    return [
        [round_to(value, precision) for value in row] for row in (y + low - beta) / gamma * divisors + means
    ]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="about the mean"),
        pytest.param({"centred": False}, id="about zero"),
        pytest.param({"gamma": None, "beta": None}, id="plain"),
        pytest.param({"low": np.full((2, 3), 2.0**-60)}, id="of integers"),
    ],
)
def test_what_pairs_do_not_decide_is_of_what_groups_recall(options, dtype, monkeypatch):
    elements, solution, means = make_group_elements(**options)
    precision = PRECISIONS[dtype]
    expected = define_inverses(elements, means, precision)
    in_pairs = np.empty((2, 3), dtype)
    store(in_pairs, invert(elements, solution, precision))
    assert in_pairs.tolist() == expected
    monkeypatch.setattr(inverse, "is_decided", lambda value, *_: np.zeros(value.hi.shape, bool))
    assert invert(elements, solution, precision).tolist() == expected


def test_values_about_a_faint_mean_are_of_what_groups_recall():
    elements, solution, means = make_group_elements(Fraction(1, 2**800))
    elements = elements._replace(
        x=np.broadcast_to(elements.beta, (2, 3)).copy()
    )  # nothing is added to the mean
    found = invert(elements, solution, PRECISIONS["float64"])
    assert found[0].tolist() == [float(means[0])] * 3


def test_what_cancels_is_of_what_groups_recall():
    """Of values that are the beginning of −mean / divisor, what is kept of a divisor does not tell what is left."""
    elements, solution, means = make_group_elements(gamma=None, beta=None)
    x = np.array([[float(-mean / divisor)] * 3 for mean, divisor in zip(means, DIVISORS, strict=True)])
    elements = elements._replace(x=x)
    found = invert(elements, solution, PRECISIONS["float64"])
    assert found.tolist() == define_inverses(elements, means, PRECISIONS["float64"])


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_ties_of_divisors_that_are_kept_are_decided_in_pairs(dtype, monkeypatch):
    """Of x · 3, every other one lies in the middle between two floats."""
    monkeypatch.setattr(inverse, "find_exactly", None)
    x = np.random.default_rng(7).standard_normal(1000).astype(DTYPES[dtype]).astype(np.float64)
    three, mean = np.full(1000, 3.0), np.full(1000, 0.25)
    check(Elements(x, None, Pair(three, 0 * three), None, None), dtype)
    rounded = np.round(x * 64.0) / 64.0
    check(Elements(rounded, Triple(mean, 0 * mean, 0 * mean), Pair(three, 0 * three), None, None), dtype)


def test_what_pairs_take_for_a_tie_is_of_what_groups_recall():
    """A mean and a root that is irrational, of which only bits that are not kept tell on which side it lies."""
    square = 1 + Fraction(1, 2**90)
    mean, nothing = np.array([2.0**-53]), np.zeros(1)
    for sign in (1, -1):
        root = find_root(1 + sign * (square - 1), 600)
        solution = Solution(
            Triple(mean, nothing, nothing), Pair(nothing + 1.0, nothing), centred=True,
            ask=lambda _, bits, sign=sign: (Fraction(1, 2**53), find_root(1 + sign * (square - 1), max(bits, 300))),
        )  # fmt: skip
        elements = Elements(nothing + 1.0, solution.mean, solution.divisor, None, None)
        expected = float(root + Fraction(1, 2**53))
        assert expected == (1.0 + 2.0**-52 if sign > 0 else 1.0)
        assert invert(elements, solution, PRECISIONS["float64"]).tolist() == [expected]
