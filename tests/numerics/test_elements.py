"""Results held against exact rationals: rounded once to every dtype, ties to even."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

import ml_dtypes
import numpy as np
import pytest

from normcli.numerics.deciding import PRECISIONS
from normcli.numerics.elements.in_fractions import normalize, settle
from normcli.numerics.elements.in_pairs import round_pair
from normcli.numerics.elements.kernel import Parameters, apply
from normcli.numerics.pairs import Pair, Triple
from normcli.numerics.statistics.divisor import Solution, make_neutral

DTYPES = {"float64": np.float64, "float32": np.float32, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}
ALLOWED, WRONG = 0.5, 1000


class Case(NamedTuple):
    """Values of shape (groups, n), and the numbers that they are normalized with."""

    x: np.ndarray
    mean: Triple | None
    divisor: Pair
    gamma: np.ndarray | None = None
    beta: np.ndarray | None = None


def keep_mean(value: Fraction) -> tuple[float, float, float]:
    hi = float(value)
    mid = float(value - Fraction(hi))
    rest = value - Fraction(hi) - Fraction(mid)
    unit = Fraction(2) ** (math.frexp(mid)[1] - 77)
    return hi, mid, float(round(rest / unit) * unit)


def keep_divisor(value: Fraction) -> tuple[float, float]:
    hi = float(value)
    unit = Fraction(2) ** (math.frexp(hi)[1] - 77)
    return hi, float(round((value - Fraction(hi)) / unit) * unit)


def draw(rng, scale) -> Fraction:
    """Return a number of some 160 bits."""
    parts = rng.normal(size=3) * 2.0 ** np.array([0.0, -53.0, -106.0])
    return sum(map(Fraction, parts)) * Fraction(float(scale))


def lay(kept, parts) -> list[np.ndarray]:
    return [np.array([k[i] for k in kept]).reshape(-1, 1) for i in range(parts)]


def measure_error(got: float, exact: Fraction, dtype: str) -> float:
    """Return the error in ulp of the exact result; one that is not the exact one, rounded to even, counts as 1000."""
    bits, least = PRECISIONS[dtype]
    exponent = least
    if exact:
        size = abs(exact)
        exponent = size.numerator.bit_length() - size.denominator.bit_length()
        exponent = max(least, exponent - (Fraction(2) ** exponent > size))
    ulp = Fraction(2) ** (exponent - bits + 1)
    if math.isinf(got):
        return 0.0 if abs(exact) >= Fraction(2) ** (1 - least) and (got > 0) == (exact > 0) else math.inf
    wanted, reached = exact / ulp, Fraction(got) / ulp
    return float(abs(reached - wanted)) if reached == round(wanted) else WRONG


def find_worst(case: Case, dtype: str) -> tuple[float, int]:
    """Return the largest error of the results in ulp, and how many of them are settled by fractions."""
    out = np.empty(case.x.shape, DTYPES[dtype])
    zero = np.zeros((len(case.x), 1))
    solution = Solution(case.mean or Triple(zero, zero, zero), case.divisor, centred=case.mean is not None)
    parameters = Parameters(case.gamma, case.beta)
    undecided = apply(case.x, out, solution, parameters)
    if undecided is not None:
        settle(case.x, out, undecided, solution, parameters)
    worst = 0.0
    for place in range(out.size):
        i, j = divmod(place, out.shape[1])
        result = Fraction(float(case.x[i, j]))
        if case.mean is not None:
            result -= sum(Fraction(float(part[i, 0])) for part in case.mean)
        result /= sum(Fraction(float(part[i, 0])) for part in case.divisor)
        for parameter, operate in ((case.gamma, Fraction.__mul__), (case.beta, Fraction.__add__)):
            if parameter is not None:
                result = operate(result, Fraction(float(np.broadcast_to(parameter, out.shape)[i, j])))
        worst = max(worst, measure_error(float(out[i, j]), result, dtype))
    return worst, 0 if undecided is None else len(undecided)


def draw_case(kind: str, rng: np.random.Generator, groups: int = 6, n: int = 12) -> Case:
    scales = np.ones(groups)
    if kind in ("huge mean", "wide"):
        scales = 2.0 ** rng.integers(5, 62, groups)
    mean = Triple(*lay([keep_mean(draw(rng, s)) for s in scales], 3))
    sizes = np.ones(groups)
    if kind == "near the mean":
        sizes = 2.0 ** -rng.integers(0, 70, groups).astype(float)
    if kind == "subnormal":
        sizes = np.full(groups, 2.0**1020)
    divisor = Pair(*lay([keep_divisor(abs(draw(rng, s)) + Fraction(s)) for s in sizes], 2))
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
    case = draw_case(kind, rng)
    shape = (1, case.x.shape[1])
    gamma = np.ldexp(rng.integers(1, 8, shape) * 1.0, -2) if kind == "integers" else rng.normal(size=shape)
    beta = np.ldexp(rng.integers(1, 8, shape) * 1.0, -2) if kind == "integers" else rng.normal(size=shape)
    case = case._replace(mean=case.mean if centred else None)
    for parameters in ((None, None), (gamma, None), (None, beta), (gamma, beta)):
        worst, _ = find_worst(case._replace(gamma=parameters[0], beta=parameters[1]), dtype)
        assert worst <= ALLOWED


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
    worst, undecided = find_worst(case, "float64")
    assert worst <= ALLOWED
    assert undecided == 0


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("kind", ["moderate", "integers", "near the mean"])
def test_short_floats_are_calculated_in_doubles(kind, dtype, rng):
    case = draw_case(kind, rng)
    with np.errstate(over="ignore"):
        x = np.nan_to_num(case.x.astype(DTYPES[dtype]).astype(np.float64), posinf=1.0, neginf=1.0)
    gamma, beta = rng.normal(size=(2, 1, x.shape[1]))
    for parameters in ((None, None), (gamma, None), (gamma, beta)):
        case = case._replace(x=x.astype(DTYPES[dtype]), gamma=parameters[0], beta=parameters[1])
        assert find_worst(case, dtype)[0] <= ALLOWED


@pytest.mark.parametrize(
    ("dtype", "gone"),
    [
        ("float64", 9),
        ("float64", 11),
        ("float64", 14),
        ("float64", 20),
        ("float32", 40),
        ("float32", 50),
        ("bfloat16", 45),
    ],
)
@pytest.mark.parametrize("centred", [True, False], ids=["centred", "not centred"])
def test_beta_may_cancel_nearly_all(dtype, gone, centred, rng):
    """What is left of 2⁻ᵍᵒⁿᵉ is right, or is said not to be decided."""
    case = draw_case("moderate", rng, n=40)
    case = case._replace(mean=case.mean if centred else None)
    gamma = rng.normal(size=case.x.shape)
    beta = np.empty_like(gamma)
    for (i, j), x in np.ndenumerate(case.x):
        quotient = Fraction(x) - sum(Fraction(float(part[i, 0])) for part in case.mean or ())
        quotient *= Fraction(gamma[i, j]) / sum(Fraction(float(part[i, 0])) for part in case.divisor)
        beta[i, j] = float(-quotient * (1 + Fraction(1 + rng.random()) / 2**gone))
    worst, undecided = find_worst(case._replace(gamma=gamma, beta=beta), dtype)
    assert worst <= ALLOWED
    assert (undecided > 0) == ((dtype, gone) in {("float64", 20), ("float32", 50)})


def test_beta_may_cancel_what_snapping_a_product_costs():
    x, size = np.array([[507644733292544.0]]), np.array([[32768.0]])
    gamma, beta = np.array([[-1.292823205895575]]), np.array([[20022945149.541843]])
    assert find_worst(Case(x, None, Pair(size, 0.0 * size), gamma, beta), "float64")[0] <= ALLOWED


def test_a_tie_is_rounded_to_even():
    x = np.array([[-51200, 53, 3584]], DTYPES["bfloat16"])
    low, size = np.array([[-51200.0]]), np.array([[54784.0]])
    case = Case(x, Triple(low, 0.0 * low, 0.0 * low), Pair(size, 0.0 * size))
    assert find_worst(case, "bfloat16")[0] <= 0.5
    out = np.empty_like(x)
    apply(x, out, Solution(case.mean, case.divisor, centred=True))
    assert float(out[0, 1]) == 0.9375


def test_ties_that_beta_leaves_of_a_rounded_quotient_go_to_even(rng):
    """γ / divisor is 1, though the quotient is rounded: 2⁻¹⁰⁰ more than the tie would decide it; fractions do."""
    ties = (257.0 + 2.0 * np.arange(128)) * 2.0**-68
    centre = Triple(*lay([keep_mean(-1 - Fraction(tie)) for tie in ties], 3))
    odd = 2.0 * rng.integers(2**19, 2**20, (128, 1)) + 1.0
    zero, one = np.zeros((128, 1)), np.ones((128, 1))
    case = Case(zero.astype(ml_dtypes.bfloat16), centre, Pair(odd, zero), odd, -one)
    assert find_worst(case, "bfloat16") == (0.5, 128)


def test_a_difference_may_be_beyond_float64():
    largest, one = np.array([[1.7e308]]), np.ones((1, 1))
    case = Case(largest, Triple(-largest, 0 * one, 0 * one), Pair(1e154 * one, 0 * one))
    assert find_worst(case, "float64") == (pytest.approx(0.0, abs=0.5), 0)


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
    errors = [measure_error(float(got), want, dtype) for got, want in zip(out, exact, strict=True)]
    assert max(errors) <= ALLOWED


@pytest.mark.parametrize("affine", [False, True], ids=["plain", "affine"])
@pytest.mark.parametrize("centred", [True, False], ids=["centred", "not centred"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_neighbours_and_chunks_change_no_bit(dtype, centred, affine, rng, monkeypatch):
    x = (rng.normal(size=(40, 300)) * 10.0 ** rng.integers(-6, 3, (40, 300))).astype(dtype)
    zero = np.zeros((40, 1))
    mean, size = rng.normal(size=(40, 1)), 0.5 + rng.random((40, 1))
    solution = Solution(Triple(mean, mean * 2.0**-55, zero), Pair(size, size * 2.0**-55), centred)
    parameters = Parameters(*rng.normal(size=(2, 1, 300))) if affine else Parameters()
    whole = np.empty_like(x)
    apply(x, whole, solution, parameters)
    monkeypatch.setattr("normcli.numerics.elements.kernel.CHUNK", 100)
    pieces = np.empty_like(x)
    apply(x, pieces, solution, parameters)
    assert pieces.tobytes() == whole.tobytes()
    alone = np.empty_like(x)
    for j in range(0, 300, 7):
        cut = Parameters(*(None if a is None else a[:, j : j + 7] for a in parameters))
        apply(x[:, j : j + 7], alone[:, j : j + 7], solution, cut)
    assert alone.tobytes() == whole.tobytes()


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_values_over_a_divisor_of_0_are_infinite(dtype):
    solution = Solution(Triple(*np.zeros((3, 1, 1))), Pair(*np.zeros((2, 1, 1))), centred=True)
    out = np.empty((1, 2), DTYPES[dtype])
    x = np.array([[2.0, -3.0]], DTYPES[dtype])
    with np.errstate(all="ignore"):
        apply(x, out, solution, Parameters(None, None))
    np.testing.assert_array_equal(out, [[np.inf, -np.inf]])


@pytest.mark.parametrize("lowest", [0, 1, 2])
def test_quotients_half_between_two_floats_go_to_the_even_one(lowest):
    """As few bits as the quotients have, the factor 1/3 is rounded: the product alone is beside the tie."""
    quotients = 1.0 + (np.arange(64) * 8 + lowest * 2 + 1) * 2.0**-24
    centre = np.array([[3.0 * quotient] for quotient in -quotients])
    zero = np.zeros_like(centre)
    solution = Solution(Triple(centre, zero, zero), Pair(zero + 3.0, zero), centred=True)
    out = normalize(np.zeros(centre.shape, np.float32), np.dtype(np.float32), solution, Parameters())
    np.testing.assert_array_equal(out[:, 0], quotients.astype(np.float32))


@pytest.mark.parametrize("lo", [0.0, 2.0**-60, -(2.0**-60)], ids=["a tie", "above", "below"])
def test_subnormal_results_are_rounded_once(lo):
    hi = np.array([0.5 + step / 16 for step in range(9)] + [-0.5625, -0.6875])
    for exponent in (-1075, -1073, -1071):
        total = Pair(hi, np.full(hi.shape, lo))
        found = round_pair(total, np.full(hi.shape, exponent), PRECISIONS["float64"])
        assert found.tolist() == [float((Fraction(a) + Fraction(lo)) * Fraction(2) ** exponent) for a in hi]


@pytest.mark.parametrize("gamma", [0.0, -0.0])
@pytest.mark.parametrize("x", [1e300, 3.0, 1e-300])
def test_of_a_gamma_of_0_beta_is_left(x, gamma):
    one = np.ones((1, 1))
    for beta in (1e-300, -2.5, 5e-324):
        case = Case(
            x * one, Triple(one, 0 * one, 0 * one), Pair(3 * one, one * 2.0**-60), gamma * one, beta * one
        )
        assert find_worst(case, "float64") == (0.0, 0)


@pytest.mark.parametrize("centred", [True, False], ids=["centred", "not centred"])
@pytest.mark.parametrize("size", [3, 2**20 + 1, 2**60 + 1])
def test_long_integers_are_rounded_once(size, centred, rng):
    """They are two doubles each."""
    x = rng.integers(-(2**62), 2**62, (3, 20)) + np.arange(20)
    x[:, 10:] = 2**61 + rng.integers(-4 * size, 4 * size, (3, 10))
    means = [2**61 + Fraction(number, 3) for number in range(3)]
    centres = Triple(*lay([keep_mean(mean) for mean in means], 3))
    divisors = Pair(*lay([keep_divisor(Fraction(3 * size, 2))] * 3, 2))
    beta = rng.normal(size=(3, 20))
    for parameters in (Parameters(), Parameters(None, beta), Parameters(1.0 + beta * beta, None)):
        out = np.empty(x.shape)
        solution = Solution(centres, divisors, centred)
        places = apply(x, out, solution, parameters)
        if places is not None:
            settle(x, out, places, solution, parameters)
        for (i, j), value in np.ndenumerate(x):
            exact = int(value) - (sum(Fraction(part[i, 0]) for part in centres) if centred else 0)
            exact /= sum(Fraction(part[i, 0]) for part in divisors)
            exact *= Fraction(1 if parameters.gamma is None else parameters.gamma[i, j])
            exact += Fraction(0 if parameters.beta is None else parameters.beta[i, j])
            assert measure_error(out[i, j], exact, "float64") <= ALLOWED


def test_no_values_have_no_results():
    zero, one = np.zeros((0, 1)), np.ones((0, 1))
    solution = Solution(Triple(zero, zero, zero), Pair(one, zero), centred=True)
    assert apply(np.empty((0, 3)), np.empty((0, 3)), solution) is None


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


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_quotient_that_underflows_before_gamma_is_not_0(dtype):
    size, gamma = np.array([[2.0**290]]), np.array([[2.0**290]])
    x, out = np.array([[3.0 * 2.0**-900, -5e-324, 2.0**-140]]), np.empty((1, 3), dtype)
    zero = np.zeros((1, 1))
    solution = Solution(Triple(zero, zero, zero), Pair(size, zero), centred=False, error=0.0)
    apply(x, out, solution, Parameters(gamma))
    np.testing.assert_array_equal(out, x.astype(dtype))
    assert np.signbit(out[0]).tolist() == [False, True, False]
