"""Results held against exact rationals: rounded once to every dtype, ties to even."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import ml_dtypes
import numpy as np
import pytest

from normcli.numerics.elements import kernel
from normcli.numerics.elements.in_fractions import normalize, settle
from normcli.numerics.elements.kernel import Parameters, apply
from normcli.numerics.pairs import Pair, Triple
from normcli.numerics.statistics.divisor import Solution, make_neutral
from tests.numerics.exact_parts import add_up, lay
from tests.reference.rounding import round_once

DTYPES = {"float64": np.float64, "float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


class Case(NamedTuple):
    """Values of shape (groups, n), and the numbers that they are normalized with."""

    x: np.ndarray
    mean: Triple | None
    divisor: Pair
    gamma: np.ndarray | None = None
    beta: np.ndarray | None = None


def draw(rng, scale) -> Fraction:
    """Return a number of some 160 bits."""
    parts = rng.normal(size=3) * 2.0 ** np.array([0.0, -53.0, -106.0])
    return sum(map(Fraction, parts)) * Fraction(float(scale))


to_fractions = np.vectorize(Fraction, otypes=[object])


def find_exactly(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Return the exact quotients of a case, and its exact results."""
    means = [0 if case.mean is None else add_up(case.mean, (i, 0)) for i in range(len(case.x))]
    rows = zip(case.x, means, strict=True)
    quotients = np.array([[Fraction(value.item()) - mean for value in row] for row, mean in rows], object)
    quotients = quotients / np.array([[add_up(case.divisor, (i, 0))] for i in range(len(case.x))], object)
    results = quotients if case.gamma is None else quotients * to_fractions(case.gamma)
    return quotients, results if case.beta is None else results + to_fractions(case.beta)


def calculate(case: Case, dtype: str) -> tuple[np.ndarray, int]:
    """Return the results, and how many of them are left to fractions."""
    out = np.empty(case.x.shape, DTYPES[dtype])
    zero = np.zeros((len(case.x), 1))
    solution = Solution(case.mean or Triple(zero, zero, zero), case.divisor, centred=case.mean is not None)
    parameters = Parameters(case.gamma, case.beta)
    undecided = apply(case.x, out, solution, parameters)
    if undecided is not None:
        settle(case.x, out, undecided, solution, parameters)
    return out, 0 if undecided is None else len(undecided)


def check(case: Case, dtype: str) -> int:
    """Hold results against the exact ones, rounded once; return how many are left to fractions."""
    out, undecided = calculate(case, dtype)
    expected = [[round_once(exact, dtype) for exact in row] for row in find_exactly(case)[1]]
    np.testing.assert_array_equal(out.astype(np.float64), expected)
    return undecided


def draw_case(kind: str, rng: np.random.Generator, groups: int = 6, n: int = 12) -> Case:
    scales = np.ones(groups)
    if kind in ("huge mean", "wide"):
        scales = 2.0 ** rng.integers(5, 62, groups)
    mean = Triple(*lay([draw(rng, s) for s in scales], 3))
    sizes = np.ones(groups)
    if kind == "near the mean":
        sizes = 2.0 ** -rng.integers(0, 70, groups).astype(float)
    if kind == "subnormal":
        sizes = np.full(groups, 2.0**1020)
    divisor = Pair(*lay([abs(draw(rng, s)) + Fraction(s) for s in sizes], 2))
    match kind:
        case "wide":
            x = np.ldexp(rng.normal(size=(groups, n)), rng.integers(-60, 60, (groups, n)))
        case "near the mean":
            x = mean.hi + rng.integers(-4, 5, (groups, n)) * np.spacing(mean.hi)
        case "integers":
            x = np.ldexp(rng.integers(-(2**20), 2**20, (groups, n)) * 1.0, rng.integers(-3, 40, (groups, n)))
            whole = np.ldexp(rng.integers(-1024, 1024, (groups, 1)) * 1.0, rng.integers(-45, 2, (groups, 1)))
            mean = Triple(whole, np.zeros((groups, 1)), np.zeros((groups, 1)))
            odd = rng.choice([1.0, 3.0, 5.0], (groups, 1))
            divisor = Pair(np.ldexp(odd, rng.integers(-2, 54, (groups, 1))), np.zeros((groups, 1)))
        case _:
            x = mean.hi + rng.normal(size=(groups, n)) * 2.0
    return Case(x, mean, divisor)


KINDS = ("moderate", "huge mean", "near the mean", "wide", "subnormal", "integers")


@pytest.mark.parametrize("centred", [True, False], ids=["centred", "not centred"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_elements_are_rounded_once(kind, dtype, centred, rng):
    """Of doubles, and of short floats of the dtype of the results."""
    case = draw_case(kind, rng)
    shape = (1, case.x.shape[1])
    whole = kind == "integers"
    gamma, beta = (
        np.ldexp(rng.integers(1, 8, shape) * 1.0, -2) if whole else rng.normal(size=shape) for _ in "ab"
    )
    with np.errstate(over="ignore"):
        short = np.nan_to_num(case.x.astype(DTYPES[dtype]).astype(np.float64), posinf=1.0, neginf=1.0)
    for parameters in ((None, None), (gamma, None), (None, beta), (gamma, beta)):
        for x in (case.x, short.astype(DTYPES[dtype])):
            check(Case(x, case.mean if centred else None, case.divisor, *parameters), dtype)


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize(
    "least", [2.0**-12, 1.0, 4.0, 8.0], ids=["small", "usual", "nearly the largest", "large"]
)
def test_quotients_of_any_size_are_rounded_once(least, affine, rng):
    """On both sides of the ends of the sequence for values that are centred."""
    case = draw_case("moderate", rng, groups=2)
    quotients = rng.uniform(least / 2, 2.0 * least, (2, 40)) * rng.choice([-1.0, 1.0], (2, 40))
    case = case._replace(x=case.mean.hi + quotients * case.divisor.hi)
    if affine:
        case = case._replace(gamma=rng.uniform(1.0, 2.0, (1, 40)), beta=rng.normal(size=(1, 40)))
    assert check(case, "float64") == 0


CANCELLED = [
    ("float64", 9),
    ("float64", 11),
    ("float64", 14),
    ("float64", 20),
    ("float32", 40),
    ("float32", 50),
]


@pytest.mark.parametrize(("dtype", "gone"), CANCELLED)
@pytest.mark.parametrize("centred", [True, False], ids=["centred", "not centred"])
def test_beta_may_cancel_nearly_all(dtype, gone, centred, rng):
    """What is left of 2⁻ᵍᵒⁿᵉ is right, or is said not to be decided."""
    case = draw_case("moderate", rng, n=40)
    case = case._replace(mean=case.mean if centred else None)
    case = case._replace(gamma=rng.normal(size=case.x.shape))
    beta = [
        [float(-result * (1 + Fraction(1 + rng.random()) / 2**gone)) for result in row]
        for row in find_exactly(case)[1]
    ]
    undecided = check(case._replace(beta=np.array(beta)), dtype)
    assert (undecided > 0) == ((dtype, gone) in {("float64", 20), ("float32", 50)})


LARGEST = 8
"""Beyond quotients as large of centred values, bounds do not hold: they are calculated again."""


@pytest.mark.parametrize("name", ["_divide_pairs", "_divide_doubles"])
@pytest.mark.parametrize("affine", ["", "gamma", "beta", "gamma and beta"])
@pytest.mark.parametrize("centred", [True, False], ids=["centred", "not centred"])
def test_results_lie_within_half_of_the_bound_by_which_they_are_decided(
    centred, affine, name, rng, monkeypatch
):
    found, before = [], getattr(kernel, name)

    def record(elements):
        value, error = before(elements)
        found.append(np.broadcast_arrays(*value, error, elements.x))
        return value, error

    monkeypatch.setattr(kernel, name, record)
    for kind in ("moderate", "huge mean", "near the mean", "wide") * 3:
        case = draw_case(kind, rng, groups=1, n=64)
        drawn = {part: rng.normal(size=(1, 64)) * 2.0 ** rng.integers(-10, 30) for part in ("gamma", "beta")}
        drawn = {part: values if part in affine else None for part, values in drawn.items()}
        case = case._replace(mean=case.mean if centred else None, **drawn)
        calculate(case, "float64" if name == "_divide_pairs" else "float32")
        quotients, results = find_exactly(case)
        for quotient, exact, hi, lo, error in zip(
            quotients[0], results[0], *(part[0] for part in found.pop()[:3]), strict=True
        ):
            if not centred or abs(quotient) <= LARGEST:
                assert abs(Fraction(hi) + Fraction(lo) - exact) <= Fraction(error) / 2


def test_beta_may_cancel_what_snapping_a_product_costs():
    x, size = np.array([[507644733292544.0]]), np.array([[32768.0]])
    gamma, beta = np.array([[-1.292823205895575]]), np.array([[20022945149.541843]])
    check(Case(x, None, Pair(size, 0.0 * size), gamma, beta), "float64")


def test_a_tie_is_rounded_to_even():
    x = np.array([[-51200, 53, 3584]], DTYPES["bfloat16"])
    low, size = np.array([[-51200.0]]), np.array([[54784.0]])
    check(Case(x, Triple(low, 0.0 * low, 0.0 * low), Pair(size, 0.0 * size)), "bfloat16")


def test_ties_that_beta_leaves_of_a_rounded_quotient_go_to_even(rng):
    """γ / divisor is 1, though the quotient is rounded: 2⁻¹⁰⁰ more than the tie would decide it; fractions do."""
    ties = (257.0 + 2.0 * np.arange(128)) * 2.0**-68
    centre = Triple(*lay([-1 - Fraction(tie) for tie in ties], 3))
    odd = 2.0 * rng.integers(2**19, 2**20, (128, 1)) + 1.0
    zero, one = np.zeros((128, 1)), np.ones((128, 1))
    assert check(Case(zero.astype(ml_dtypes.bfloat16), centre, Pair(odd, zero), odd, -one), "bfloat16") == 128


@pytest.mark.parametrize("x", [math.inf, -math.inf, math.nan, 0.0, -0.0, 1.0, 5e-324])
@pytest.mark.parametrize("size", [math.inf, math.nan, 0.0, 5e-324, 1.0])
def test_infinities_nan_and_zeros_are_those_of_doubles(x, size):
    values, sizes, zero = np.array([[x]]), np.array([[size]]), np.zeros((1, 1))
    out = np.empty_like(values)
    for mean in (None, 0.0, 3.0, -math.inf):
        centre = Triple(zero + (mean or 0.0), zero, zero)
        solution = Solution(centre, Pair(sizes, zero), centred=mean is not None)
        apply(values, out, solution)
        with np.errstate(all="ignore"):
            wanted = (values if mean is None else values - mean) / sizes
        np.testing.assert_array_equal(out, wanted)
        if not math.isnan(wanted[0, 0]):
            assert np.signbit(out[0, 0]) == np.signbit(wanted[0, 0])


@pytest.mark.parametrize("dtype", DTYPES)
def test_affine_steps_after_a_rounding_are_exact_before_the_next(dtype, rng):
    x = rng.normal(size=300).astype(DTYPES[dtype])
    gamma = rng.normal(size=300)
    beta = -gamma * x.astype(np.float64) * (1.0 + np.ldexp(1.0, -rng.integers(0, 60, 300)))
    out, parameters = np.empty_like(x), Parameters(gamma, beta)
    undecided = apply(x, out, None, parameters)
    if undecided is not None:
        settle(x, out, undecided, make_neutral(1), parameters)
    exact = [Fraction(float(a)) * Fraction(b) + Fraction(c) for a, b, c in zip(x, gamma, beta, strict=True)]
    assert out.astype(np.float64).tolist() == [round_once(value, dtype) for value in exact]


@pytest.mark.parametrize("lowest", [0, 1, 2])
def test_quotients_half_between_two_floats_go_to_the_even_one(lowest):
    """As few bits as the quotients have, the factor 1/3 is rounded: the product alone is beside the tie."""
    quotients = 1.0 + (np.arange(64) * 8 + lowest * 2 + 1) * 2.0**-24
    centre = np.array([[3.0 * quotient] for quotient in -quotients])
    zero = np.zeros_like(centre)
    solution = Solution(Triple(centre, zero, zero), Pair(zero + 3.0, zero), centred=True)
    out = normalize(np.zeros(centre.shape, np.float32), np.dtype(np.float32), solution, Parameters())
    np.testing.assert_array_equal(out[:, 0], quotients.astype(np.float32))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("centred", [True, False], ids=["centred", "not centred"])
def test_ordinary_values_are_calculated_once(centred, dtype, rng, monkeypatch):
    """None is calculated again by itself, which takes a hundred times as long."""
    monkeypatch.setattr("normcli.numerics.elements.kernel.calculate_again", None)
    mean = Triple(np.array([[1.0]]), np.array([[2.0**-55]]), np.array([[2.0**-110]]))
    out = np.empty((1, 64), dtype)
    solution = Solution(mean, Pair(np.array([[3.0]]), np.array([[2.0**-54]])), centred)
    for least, gamma in ((2.0**-11, None), (2.0**-8, rng.uniform(1.0, 2.0, (1, 64)))):
        quotients = np.concatenate([[least, 7.5], rng.uniform(0.01, 7.0, 62)]) * rng.choice([-1.0, 1.0], 64)
        x = (quotients * 3.0 + centred)[None].astype(out.dtype)
        assert apply(x, out, solution, Parameters(gamma)) is None
        expected = quotients * (1.0 if gamma is None else gamma[0])
        np.testing.assert_allclose(out[0], expected, rtol=1e-12 if dtype == np.float64 else 1e-3)
