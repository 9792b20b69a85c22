"""The sliding window of local response normalization: the one computation that no group can express."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine.inputs import COUNT, zero_unselected
from normcli.engine.lrn.window_sums import LARGEST, LEAST, WindowSums, count_in_windows, sum_squares
from normcli.engine.passes import Passes
from normcli.numerics.deciding import (
    LOGARITHM,
    PAIR,
    PAIRS,
    POWER,
    PRECISIONS,
    is_decided,
    is_double_decided,
    round_quotient,
    round_real,
)
from normcli.numerics.elements.in_pairs import KNOWN, round_pair
from normcli.numerics.pairs import (
    Pair,
    divide_by_count,
    is_exact_quotient,
    pair_add,
    pair_multiply,
    quick_two_sum,
    take_exponents,
    two_prod,
)
from normcli.numerics.powers import raise_exactly, raise_to_power
from normcli.numerics.rational import round_once, scale
from normcli.numerics.rounding import Scaled, store, widen_exactly
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.engine.tiling.geometry import Slices
    from normcli.norms.plan import Plan
    from normcli.norms.spec import Window
    from normcli.numerics.deciding import Precision
    from normcli.numerics.workspace import Workspace

    Place = tuple[Any, ...]


_FURTHEST, _LARGEST_WHOLE = 5000, 64
"""A value times 2^e is infinite for e above the first, and 0 for e below minus the first.

Whole exponents β up to the second are raised as fractions; larger ones make them too long."""


def _list_lines(chosen: Selected) -> Iterator[Place]:
    """Yield the index of each True, line after line along the first axis."""
    *others, first = np.nonzero(np.moveaxis(chosen, 0, -1))
    return zip(first.tolist(), *(index.tolist() for index in others), strict=True)


def _divide_by_size(sums: WindowSums, window: Window) -> Floats:
    """Return the mean square of each window, rounded once."""
    quotient = divide_by_count(sums.squares, window.size)
    finite = np.isfinite(sums.squares.hi)
    result = np.asarray(np.where(finite, quotient.hi, sums.squares.hi))
    undecided = finite & ~(is_double_decided(quotient, sums.error + PAIR.error) & sums.known)
    if sums.exact and undecided.any():  # squares of short floats make many a mean that lies in the middle
        number, found = (pair.map(lambda a: a[undecided]) for pair in (sums.squares, quotient))
        undecided[undecided] = ~(is_exact_quotient(number, found, window.size) & sums.known[undecided])
    for place in _list_lines(undecided):
        result[place] = round_once(sums.sum_exactly(place) / window.size)
    return result


def find_bases(sums: WindowSums, window: Window) -> tuple[Pair, Floats]:
    """Return k + α · Σx²/divisor of each window, and a bound of its relative error, infinite where unknown."""
    zero = np.zeros_like(sums.squares.hi)
    product = pair_multiply(sums.squares, Pair(window.alpha, 0.0))
    finite = np.isfinite(sums.squares.hi)
    term = divide_by_count(product.map(lambda a: np.where(finite, a, 0.0)), window.divisor)
    value = pair_add(Pair(zero + window.k, zero), term)
    error = np.abs(term.hi / value.hi) * (sums.error + PAIRS.error) + PAIR.error
    constants = np.array([window.alpha, window.k])
    usual = ((np.abs(constants) > LEAST) & (np.abs(constants) < LARGEST)) | (constants == 0.0)
    return value, np.where(finite & sums.known & usual.all(), error, np.inf)


class WindowFactors(NamedTuple):
    """One over the divisor of each window.

    Parameters
    ----------
    value : Scaled
        1/divisor as a pair and a power of two; its relative error is at most `KNOWN` where `known` is True.
    known : ndarray of bool
        False where nothing is known of `value`.
    plain : ndarray
        1/divisor in doubles, which is the result where `ordinary` is False: 0, infinite or NaN.
    ordinary : ndarray of bool
        True where the result is neither 0 nor infinite nor NaN, as far as x alone tells.
    """

    value: Scaled
    known: Selected
    plain: Floats
    ordinary: Selected


def normalize_windows(
    plan: Plan, x: NDArray[Any], axes: tuple[int, ...], precision: Precision
) -> tuple[Floats, dict[str, Floats]]:
    """Divide each value by (k + α · Σx²/divisor)^exponent; outside the tensor x counts as 0.

    Parameters
    ----------
    plan : Plan
        The plan of a norm with sliding windows.
    x : ndarray
        A tile with every value along the windows' axis.
    axes : tuple of int
        The windows' axis alone.
    precision : Precision
        The precision of the dtype that the result is rounded to.

    Returns
    -------
    tuple of (ndarray, dict)
        The rounded result as float64; `ms`, the mean square Σx²/size, and `rstd`, one over the divisor, each of
        x's shape.
    """
    assert plan.spec.window is not None  # by the plan: every row that divides by a window has one
    window = plan.spec.window
    values = np.moveaxis(x, axes[0], 0)
    high, _ = widen_exactly(values)
    with np.errstate(all="ignore"):
        sums = sum_squares(values if values.dtype.kind in "iu" else high, window)
        mean_square = _divide_by_size(sums, window)
        factors = _find_factors(sums, window)

        @functools.cache
        def find_base(place: Place) -> Fraction:
            square = sums.sum_exactly(place)
            return Fraction(window.k) + Fraction(window.alpha) * square / window.divisor

        def finish(x: NDArray[Any], number: Scaled, precision: Precision, usual: Selected) -> Floats:
            rounded, undecided = _round(number, precision)
            rounding = functools.partial(round_quotient, precision=precision)
            for place in _list_lines(usual & (undecided | ~factors.known)):
                rounded[place] = _multiply_exactly(x[place].item(), find_base(place), window, rounding)
            return rounded

        once = np.broadcast_to(1.0, high.shape)
        factor = finish(once, factors.value, PRECISIONS["float64"], factors.ordinary)
        rstd = np.where(factors.ordinary, factor, factors.plain)
        usual = factors.ordinary & np.isfinite(high)
        products = finish(values, _multiply(high, factors.value), precision, usual)
        result = np.where(usual, products, high * rstd)
    y, ms, r = (np.moveaxis(array, 0, axes[0]) for array in (result, mean_square, rstd))
    return y, {"ms": ms, "rstd": r}


def _find_factors(sums: WindowSums, window: Window) -> WindowFactors:
    """Return 1/divisor of each window, (k + α · Σx²/divisor)^−exponent, and where it is known closely."""
    squares, (base, off) = sums.squares, find_bases(sums, window)
    plain = np.power(window.k + window.alpha * squares.hi, -window.exponent)  # of 0, infinities and NaN
    is_something = ((squares.hi != 0.0) & (window.alpha != 0.0)) | (window.k != 0.0)
    ordinary = np.isfinite(squares.hi) & (is_something | ~sums.known)
    sign = np.where(base.hi < 0.0, _find_sign_of_negative(window.exponent), 1.0)
    usable = np.isfinite(off) & (base.hi != 0.0)
    size = base.map(lambda part: np.where(base.hi < 0.0, -part, part))
    power = raise_to_power(size.keep(usable, 1.0), -window.exponent)
    error = abs(window.exponent) * off + (np.abs(power.exponent) + 1) * LOGARITHM.error + POWER.error
    known = usable & ((error <= KNOWN) | (np.abs(power.exponent) >= _FURTHEST))
    has_none = known & np.isnan(sign)
    value = Scaled(power.value.map(lambda part: part * sign), power.exponent)
    return WindowFactors(value, known, np.where(has_none, np.nan, plain), ordinary & ~has_none)


def _find_sign_of_negative(exponent: float) -> float:
    """Return the sign (1 or −1) of a negative number's power; NaN if the exponent is not whole."""
    return math.nan if exponent % 1.0 else 1.0 - 2.0 * (exponent % 2.0)


def _multiply(x: Floats, factor: Scaled) -> Scaled:
    """Return x times a factor; where x is 0, x."""
    mantissa, exponent = np.frexp(x)
    product = two_prod(mantissa, factor.value.hi)
    total = quick_two_sum(product.hi, product.lo + mantissa * factor.value.lo)
    return Scaled(total._replace(hi=np.where(x == 0.0, x, total.hi)), factor.exponent + exponent)


_PRODUCT_ERROR = 2.0**-76
"""An upper bound of the relative error of a value times a known factor."""


def _round(number: Scaled, precision: Precision) -> tuple[Floats, Selected]:
    """Return numbers rounded to a precision, and an array that is True where that is not decided."""
    total, own = take_exponents(number.value)
    exponent = np.clip(own + number.exponent, -_FURTHEST, _FURTHEST)
    decided = is_decided(total, exponent, np.abs(total.hi) * _PRODUCT_ERROR, precision)
    return round_pair(total, exponent, precision), ~decided & (total.hi != 0.0)


def _multiply_exactly(x: float, base: Fraction, window: Window, rounding: Callable[[int, int], float]) -> float:
    """Return x · base^−exponent, rounded once; `base` is k + α · Σx²/divisor of its window, exactly."""
    sign = 1.0 if base >= 0 else _find_sign_of_negative(window.exponent)
    if not base or math.isnan(sign):
        return float(x * (math.nan if base else np.power(0.0, -window.exponent)))
    if not x:
        return float(x)
    value = Fraction(x) * Fraction(sign)

    def evaluate(bits: int) -> tuple[Fraction, Fraction]:
        power, error = _raise(abs(base), -window.exponent, bits)
        return value * power, abs(value) * error

    return round_real(evaluate, rounding)


def _raise(base: Fraction, exponent: float, bits: int) -> tuple[Fraction, Fraction]:
    """Return base^exponent to `bits` bits, and a bound of its error.

    A power beyond 2^±`_FURTHEST` is returned as that power of two, with an error of 0.
    """
    if exponent.is_integer() and abs(exponent) <= _LARGEST_WHOLE:
        return base ** int(exponent), Fraction(0)
    logarithm = (math.log2(base.numerator) - math.log2(base.denominator)) * exponent
    if abs(logarithm) > _FURTHEST:
        return scale(Fraction(1), int(math.copysign(_FURTHEST, logarithm))), Fraction(0)
    power = raise_exactly(base, exponent, bits)
    return power, power / 2**bits


MOST_VALUES = 1 << 14
"""The most values in a tile: the many arrays of its size that powers take then lie in a core's L2 cache."""


class WindowPasses(Passes):
    """The pass over a tensor of a norm with a sliding window."""

    def measure(self) -> dict[str, Floats]:
        """Normalize every tile, write the results if there is a sink, and return the statistics by name."""
        self.walk.expect(1)
        self.walk.each(self._compute, whole=True, most=MOST_VALUES)
        return self.statistics

    def _compute(self, tile: Slices, work: Workspace) -> None:
        """Normalize a tile, keep its statistics, and write the result if there is a sink."""
        window, runs, reduced = self.plan.spec.window, self.geometry.runs, self.geometry.reduced_runs
        assert window is not None  # of every norm that has such passes
        raw = self._load(tile, work, runs)
        selected = self.select(raw, tile, runs)
        precision = PRECISIONS["float64" if self.sink is None else self.sink.dtype.name]
        y, statistics = normalize_windows(self.plan, zero_unselected(raw, selected), reduced, precision)
        if selected is not None:
            statistics[COUNT] = count_in_windows(selected, window, reduced[0])
        self.keep(statistics, tuple(tile[run] for run in runs), tuple(self.geometry.dims[run] for run in runs))
        if self.sink is not None:
            place = self.sink.open(tile, work)
            store(place, y)
            self.fill_unselected(place, raw, selected)
            self.sink.put(tile, place, work)
