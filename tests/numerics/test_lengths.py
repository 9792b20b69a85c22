"""ℓp lengths for every real p: rounded once, whatever the values' scale, and as torch has them where they are special."""

from __future__ import annotations

import decimal
import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from normcli import normalize
from normcli.engine import passes as engine_passes
from normcli.engine.run import measure
from normcli.engine.tiling import tiles as engine_tiles
from normcli.engine.walk import Effort
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.rules import EpsMode
from normcli.numerics.deciding import Bound
from normcli.numerics.powers import (
    find_to_bits,
    raise_decimal,
    use_digits,
)
from normcli.numerics.rounding import Scaled
from normcli.numerics.statistics.lengths import (
    find_length_of_all,
    fold_powers,
    measure_powers,
    merge_powers,
)
from normcli.numerics.statistics.solution import solve
from normcli.numerics.workspace import Workspace
from tests.marks import sampled, slowly
from tests.reference.rounding import round_once
from tests.test_exactness import check

EXACT = decimal.Context(100, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)
INF, NAN = math.inf, math.nan


def find_exactly(values, p):
    """Return a length to 90 digits, straight from its definition."""
    with decimal.localcontext(EXACT):
        sizes = [decimal.Decimal(abs(v)) for v in values if v]
        exponent = decimal.Decimal(p)
        return sum(size**exponent for size in sizes) ** (1 / exponent)


EXPONENTS = [3.0, 0.5, -1.0, 1.7, -2.3, 511.0, *slowly([0.25, 1.5, 4.0, 16.0, 17.0, 100.0, -0.3, -600.0, 513.5, 1e9])]  # fmt: skip

KINDS = {
    "normal": lambda random, x: x,
    "equal": lambda random, x: np.full_like(x, 0.7),
    "nearly equal": lambda random, x: 3.0 * (1.0 + np.round(x * 3) * 2.0**-52),
    "mixed": lambda random, x: x * 10.0 ** random.uniform(-30, 30, x.shape),
    "far apart": lambda random, x: x * 10.0 ** random.uniform(-300, 300, x.shape),
    "small": lambda random, x: x * 1e-290,
    "subnormal": lambda random, x: x * 1e-315,
    "large": lambda random, x: np.clip(x, -1.7, 1.7) * 1e308,
}


@sampled
@pytest.mark.parametrize("p", EXPONENTS)
@pytest.mark.parametrize("kind", KINDS)
def test_lengths_are_rounded_once(kind, p):
    random = np.random.default_rng(7)
    check(normalize(KINDS[kind](random, random.standard_normal((3, 6))), "lp", p=p, eps=0.0))


def test_the_largest_p():
    random = np.random.default_rng(8)
    x = random.standard_normal((3, 6))
    for p in (1e16, 1e300):
        np.testing.assert_array_equal(normalize(x, "lp", p=p).norm, np.abs(x).max(axis=1))
        np.testing.assert_array_equal(normalize(x, "lp", p=-p).norm, np.abs(x).min(axis=1))


def test_the_least_p_of_one_value():
    np.testing.assert_array_equal(normalize([[3e-5, 0.0], [0.0, 0.0]], "lp", p=1e-5).norm, [3e-5, 0.0])
    assert normalize([[1.0, 2.0]], "lp", p=1e-5).norm[0] == INF


@pytest.mark.parametrize(("rows", "count"), [(40, 6), (2, 9000)])
def test_sums_of_sizes_are_rounded_once(rows, count):
    x = np.random.default_rng(12).standard_normal((rows, count))
    norms = normalize(x, "lp", p=1.0).norm.tolist()
    assert norms == [math.fsum(np.abs(row).tolist()) for row in x]


def test_an_eps_above_a_length_beyond_which_values_lie():
    x = np.array([[1e-300, 1e300]])
    np.testing.assert_array_equal(normalize(x, "lp", p=-2.5, eps=1e4).normalized, x / 1e4)


SPECIAL = [[INF, 1.0], [INF, INF], [NAN, 1.0], [NAN, 0.0], [0.0, 0.0], [0.0, 2.0], [-3.0, 4.0]]


@pytest.mark.parametrize(
    ("p", "expected"),
    [
        pytest.param(-1.0, [1.0, INF, NAN, NAN, 0.0, 0.0, 12 / 7], id="-1"),
        pytest.param(-INF, [1.0, INF, NAN, NAN, 0.0, 0.0, 3.0], id="-inf"),
        pytest.param(1.0, [INF, INF, NAN, NAN, 0.0, 2.0, 7.0], id="1"),
        pytest.param(2.0, [INF, INF, NAN, NAN, 0.0, 2.0, 5.0], id="2"),
        pytest.param(3.0, [INF, INF, NAN, NAN, 0.0, 2.0, 91 ** (1 / 3)], id="3"),
        pytest.param(600.0, [INF, INF, NAN, NAN, 0.0, 2.0, 4.0], id="600"),
        pytest.param(INF, [INF, INF, NAN, NAN, 0.0, 2.0, 4.0], id="inf"),
    ],
)
def test_infinities_nan_and_zeros_as_in_torch(p, expected):
    result = normalize(SPECIAL, "lp", p=p)
    np.testing.assert_allclose(result.norm, expected, rtol=2e-16)
    with np.errstate(invalid="ignore"):
        quotients = SPECIAL / np.maximum(np.array(expected), 1e-12)[:, None]
    np.testing.assert_allclose(result.normalized, quotients, rtol=4e-16)


@pytest.mark.parametrize("p", [-1.0, -INF, 3.0, 0.3])
def test_values_that_do_not_count_have_no_part_in_a_length(p):
    x = np.array([[5.0, 1.0, 7.0], [1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
    mask = np.array([[True, False, True], [True, True, True], [False, False, False]])
    result = normalize(x, "lp", p=p, mask=mask)
    alone = normalize([[5.0, 7.0]], "lp", p=p)
    assert result.norm[0] == alone.norm[0]
    assert result.norm[2] == 0.0


@sampled
@pytest.mark.parametrize("p", [3.0, -1.3, 0.4, INF, -INF, 0.0])
@pytest.mark.parametrize("far", [8, 300])
def test_leaves_of_any_cut_have_the_same_length(p, far):
    random = np.random.default_rng(9)
    x = random.standard_normal((2, 60)) * 10.0 ** random.uniform(-far, far, (2, 60))
    found = []
    for size in (60, 20, 3, 1):
        leaves = measure_powers(x.reshape(-1, size), Workspace(), p=p).reshape((2, -1))
        found.append(merge_powers(leaves, 60, None, p=p))
        half = leaves.count.shape[1] // 2 or 1
        parts = [
            fold_powers(leaves.map(lambda a, s=slice(start, start + half): a[..., s]), p).arrays()
            for start in range(0, leaves.count.shape[1], half)
        ]
        folded = type(leaves)(*(np.stack(a, axis=-1) for a in zip(*parts, strict=True)))
        found.append(merge_powers(folded, 60, None, p=p))
    for lengths in found[1:]:
        assert_same_lengths(lengths, found[0])


@pytest.mark.parametrize(
    ("leaves", "total", "extreme"),
    [
        pytest.param([[1.0, INF], [2.0, 3.0]], INF, False, id="infinite"),
        pytest.param([[1.0, NAN], [2.0, 3.0]], NAN, False, id="NaN"),
        pytest.param([[2.0**60, 1.0], [2.0**-20, 0.0]], 2.0**60, False, id="two doubles"),
        pytest.param([[2.0**90, 2.0**20], [2.0**-60, 0.0]], 2.0**90, True, id="more than two doubles"),
    ],
)
def test_sums_of_two_leaves_are_exact_or_say_that_they_are_not(leaves, total, extreme):
    with np.errstate(invalid="ignore"):
        records = measure_powers(np.array(leaves), Workspace(), p=1.0)
        folded = fold_powers(records.reshape((1, 2)), 1.0)
    np.testing.assert_array_equal(folded.hi, [total])
    assert folded.extreme.tolist() == [extreme]
    assert (
        extreme
        or not math.isfinite(total)
        or Fraction(folded.hi[0]) + Fraction(folded.lo[0]) == sum(map(Fraction, np.ravel(leaves)))
    )


@pytest.mark.parametrize("p", [3.0, -1.3])
@pytest.mark.parametrize("whole", [pytest.param(1 << 20, id="whole groups"), pytest.param(0, id="in passes")])
def test_undecided_lengths_are_calculated_in_decimals(p, whole, monkeypatch):
    x = np.random.default_rng(10).standard_normal((2, 40))
    x[1] *= 1e300
    plan = make_plan(Request("lp", p=p), x.shape, x.dtype)
    expected = measure(plan, x)["norm"]
    lengths = "normcli.numerics.statistics.lengths"
    monkeypatch.setattr(f"{lengths}.SUM_OF_POWERS", Bound(-9, "it is wrong", "below"))
    monkeypatch.setattr(f"{lengths}.take_root", lambda total, _: Scaled(total, np.int64(7)))
    effort = Effort(block=16, threads=2, whole=whole)
    np.testing.assert_array_equal(measure(plan, x, effort=effort)["norm"], expected)


@pytest.mark.slow
def test_a_length_just_above_its_largest_value_breaks_ties():
    """The second value makes the length larger by 2⁻¹⁵⁶⁵ of itself: the third is that much below a tie."""
    x = np.array([[2.0**127, 0.121 * 2.0**127, 0.0859375]]).astype(ml_dtypes.bfloat16)
    y = normalize(x, "lp", axes=(1,), p=511.0).normalized
    assert float(y[0, 2]) == 5 * 2.0**-133
    x[0, 1] = 0.0
    y = normalize(x, "lp", axes=(1,), p=511.0).normalized
    assert float(y[0, 2]) == 6 * 2.0**-133


@pytest.mark.slow
def test_a_length_between_two_doubles_is_a_tie():
    value = 1.0 + 2.0**-47
    x = np.full((1, 9), value)  # of p = ½ 81 times the value, which ends in half a unit
    assert normalize(x, "lp", p=0.5).norm[0] == round_once(81 * Fraction(value), "float64")
    assert Fraction(81 * value) != 81 * Fraction(value)


def assert_same_lengths(found, expected):
    """Lengths that are exact are the same; others are within what is said of them."""
    (hi, lo), (other, rest) = found.length, expected.length
    off = 2.0 * expected.error * np.abs(hi)
    assert (np.abs((hi - other) + (lo - rest)) <= off).all()


@pytest.mark.parametrize("p", [1e300, 7.0, 1.0, -7.0, -1e300])
@pytest.mark.parametrize("order", [1, -1], ids=["rising", "falling"])
def test_lengths_in_decimals_of_values_that_come_one_after_another(p, order):
    """Of any p: powers are taken of what is no larger than 1, and those before are made to fit."""
    values = np.array([1e-300, 2.0, 3.0, 1e300])[::order]
    found = float(find_to_bits((values[:1], np.zeros(2), values[1:3], values[3:]), p, 250))
    assert found == pytest.approx({True: 1e300, False: 1e-300}[p > 0], rel=1e-15)


@pytest.mark.parametrize("p", [1.0, 0.5, 3.0])
@pytest.mark.parametrize("scale", [2.0**-500, 1.0, 2.0**500])
def test_the_length_of_all_is_rounded_once(p, scale):
    """Of more values than a leaf has, too: of equal ones, it is what one is times a number that is known."""
    values = np.random.default_rng(13).standard_normal(9) * scale
    assert find_length_of_all(values, p) == round_once(Fraction(find_exactly(values.tolist(), p)), "float64")
    assert find_length_of_all(np.full(2**15, scale), p) == math.ldexp(scale, round(15 / p))


@sampled("options")
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("options", [{"p": 3.0}, {"p": 1.0}, {"p": -0.7}, {"p": INF}, {"p": 3.0, "eps": 0.5}])
def test_the_divisor_is_recalled_to_as_many_bits_as_are_asked_for(options, whole, monkeypatch):
    module = engine_tiles if whole else engine_passes
    kept, x = [], np.random.default_rng(5).standard_normal((3, 80))
    monkeypatch.setattr(module, "solve", lambda *args, **more: kept.append(solve(*args, **more)) or kept[-1])
    plan = make_plan(Request("lp", axes=(1,), **{"eps": 0.0, **options}), x.shape, x.dtype)
    measure(plan, x, effort=Effort(threads=1, block=100) if whole else Effort(threads=1, block=16, whole=1))
    divisors = [
        solution.recall(group, 1000)[1] for solution in kept for group in range(solution.divisor.hi.size)
    ]
    is_floor = plan.spec.eps_mode is EpsMode.FLOOR
    for row, divisor in zip(x, divisors, strict=True):
        p, sizes = options["p"], [abs(Fraction(v)) for v in row.tolist()]
        length = max(sizes)
        if p != INF:
            with use_digits(350):
                length = Fraction(sum(raise_decimal(size, p) for size in sizes) ** (1 / decimal.Decimal(p)))
        eps = Fraction(options.get("eps", 0))
        expected = max(length, eps) if is_floor else length + eps
        assert abs(divisor - expected) <= expected / 2**1000
    assert [not solution.error.any() for solution in kept] == [options["p"] in (1.0, INF)] * len(kept)


@pytest.mark.parametrize("p", [1.5, 2.5, 3.0, 3.5, 5.0, 7.0])
def test_a_subnormal_length_that_is_kept_as_a_tie(p):
    """k · 2^(1/p) lies 2⁻⁴⁰ from the middle of two whole numbers: 2⁻⁸⁰ of itself."""
    with use_digits(60):
        root = rest = Fraction(decimal.Decimal(2) ** (1 / decimal.Decimal(p)))
    (up, down), before, found = (1, 0), (0, 1), []
    while down < 2**51:  # continued fractions
        whole = math.floor(rest)
        (up, down), before = (whole * up + before[0], whole * down + before[1]), (up, down)
        rest = 1 / (rest - whole)
        if up % 2 and not down % 2 and 2**40 < down < 2**51:
            found.append(down // 2)
    x = np.ldexp(np.repeat(np.array(found, np.float64)[:, None], 2, axis=1), -1074)
    norm = normalize(x, "lp", p=p, eps=0.0).norm
    assert norm.tolist() == [math.ldexp(round(k * root), -1074) for k in found]


def test_a_length_of_0_is_recalled_as_it_is():
    """Of p below 0 one 0 makes it, and 1 stands for it: an integer that no double holds is rounded by itself."""
    x = np.array([[0, 3, 2**53 + 1, 2**54 + 6]])
    found = normalize(x, "lp", p=-2.5, eps=0.0, axes=1)
    assert found.norm.tolist() == [0.0]
    assert found.normalized[0].tolist() == [0.0, 3.0, 2.0**53, 2.0**54 + 8.0]
