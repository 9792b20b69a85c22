"""The sliding window of local response normalization: the one computation that no group can express."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine.inputs import COUNT, zero_unselected
from normcli.engine.lrn.window_sums import WindowSums, count_in_windows, divide_by_size, list_lines, sum_squares
from normcli.engine.passes import Passes
from normcli.numerics.bounds import LOGARITHM, POWER
from normcli.numerics.deciding import PRECISIONS, is_decided, round_quotient, round_real
from normcli.numerics.elements.in_pairs import KNOWN, round_pair
from normcli.numerics.integers import widen_exactly
from normcli.numerics.pairs import (
    Pair,
    divide_by_count,
    quick_two_sum,
    take_exponents,
    two_prod,
    two_sum,
)
from normcli.numerics.powers import (
    SPLIT_BITS,
    raise_exactly,
    raise_to_power,
    split_exactly,
)
from normcli.numerics.rounding import Scaled, store
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Integers, Selected
    from normcli.engine.tiling.geometry import Slices
    from normcli.norms.plan import Plan
    from normcli.norms.spec import Window
    from normcli.numerics.deciding import Precision
    from normcli.numerics.workspace import Workspace

    Places = tuple[NDArray[np.intp], ...]


_OUT_OF_REACH = 2000
"""Of two numbers whose exponents differ by more, the smaller one changes no bit of what is known."""

_LARGEST_EXPONENT = 5000
"""A value times a larger power of two than that, or divided by it, is infinite or 0 in any case."""


class WindowFactors(NamedTuple):
    """What values are multiplied by.

    Parameters
    ----------
    known : Scaled
        1/divisor, within `KNOWN` of itself.
    plain : ndarray
        1/divisor where it is not a positive or negative number, but 0, infinite or NaN.
    ordinary : ndarray of bool
        Which of the two holds.
    """

    known: Scaled
    plain: Floats
    ordinary: Selected


def normalize_windows(
    plan: Plan, x: NDArray[Any], axes: tuple[int, ...], precision: Precision
) -> tuple[Floats, dict[str, Floats]]:
    """Divide each value by (k + α · Σx²/divisor)^exponent; outside the tensor x counts as 0.

    Parameters
    ----------
    plan : Plan
        With a window.
    x : ndarray
        Whole along the window's axis.
    axes : tuple of int
        That axis.
    precision : Precision
        Of the dtype that the result is then rounded to.

    Returns
    -------
    tuple of (ndarray, dict)
        The result, of float64, or so that it is rounded to a shorter dtype as if exact; `ms`, the mean
        square Σx²/size, and `rstd`, one over the divisor: all of the shape of x.

    Notes
    -----
    Each value is multiplied by one over the divisor, a pair; where that does not decide how the product is
    rounded, by the power to as many bits as it takes.
    """
    assert plan.spec.window is not None  # by the plan: every row that divides by a window has one
    window = plan.spec.window
    values = np.moveaxis(x, axes[0], 0)
    high, low = widen_exactly(values)
    with np.errstate(all="ignore"):
        sums = sum_squares(high if low is None else values, window)
        mean_square = divide_by_size(sums, window)
        known, plain, ordinary = _find_factors(sums, window)
        factors = _round(known, PRECISIONS["float64"], sums, window, ordinary)
        rstd = np.where(ordinary, factors, plain)
        usual = ordinary & np.isfinite(high)
        products = _round(_multiply(high, low, known), precision, sums, window, usual, (high, low))
        result = np.where(usual, np.where(high == 0.0, high, products), high * rstd)
    y, ms, r = (np.moveaxis(array, 0, axes[0]) for array in (result, mean_square, rstd))
    return y, {"ms": ms, "rstd": r}


def _find_factors(sums: WindowSums, window: Window) -> WindowFactors:
    """Return (k + α · Σx²/divisor)^−exponent."""
    squares = sums.squares
    alpha, alpha_exponent = math.frexp(window.alpha)
    product = two_prod(squares.hi, alpha)
    term = divide_by_count(quick_two_sum(product.hi, product.lo + squares.lo * alpha), window.divisor)
    base, top = _add(Scaled(term, alpha_exponent - 2 * sums.scale), window.k)
    size = np.abs(base.hi)
    plain = np.power(window.k + window.alpha * squares.hi, -window.exponent)  # of 0, infinities and NaN
    ordinary = np.isfinite(squares.hi) & ((term.hi != 0.0) | (window.k != 0.0))
    usable = ordinary & (size > 0.0)
    sign = np.where(base.hi < 0.0, _find_sign_of_negative(window.exponent), 1.0)
    magnitude = Pair(
        np.where(usable, size, 1.0), np.where(usable, np.where(base.hi < 0, -base.lo, base.lo), 0.0)
    )
    power = raise_to_power(magnitude, -window.exponent, exponent=top)
    cancelled = np.ldexp(np.abs(term.hi), alpha_exponent - 2 * sums.scale - top) / size
    error = abs(window.exponent) * cancelled * sums.error
    error += (np.abs(power.exponent) + 1) * LOGARITHM.error + POWER.error
    undecided = ~(error <= KNOWN) & ordinary & (np.abs(power.exponent) < _LARGEST_EXPONENT)
    value = power.value.map(lambda part: part * sign)
    ordinary &= ~np.isnan(sign)
    plain = np.where(np.isnan(sign), np.nan, plain)
    factors = WindowFactors(Scaled(value, power.exponent), plain, ordinary)
    for place in list_lines(undecided):
        _replace(factors, place, sums, window)
    return factors


def _add(term: Scaled, constant: float) -> tuple[Pair, Integers]:
    """Return the sum of a pair and a double, and the exponent of 2 that it is multiplied by."""
    mantissa, own_exponent = math.frexp(constant)
    _, exponent = np.frexp(term.value.hi)
    top = np.asarray(exponent + term.exponent)
    if mantissa:
        top = np.where(term.value.hi == 0.0, own_exponent, np.maximum(top, own_exponent))
    shift = np.maximum(term.exponent - top, -_OUT_OF_REACH)
    scaled = term.value.map(lambda part: np.ldexp(part, shift))
    total = two_sum(np.ldexp(mantissa, np.maximum(own_exponent - top, -_OUT_OF_REACH)), scaled.hi)
    return quick_two_sum(total.hi, total.lo + scaled.lo), top


def _find_sign_of_negative(exponent: float) -> float:
    """Return the sign of a negative number's power; NaN where it has none."""
    return math.nan if exponent % 1.0 else 1.0 - 2.0 * (exponent % 2.0)


def _find_base(sums: WindowSums, place: tuple[Any, ...], window: Window) -> Fraction:
    """Return k + α · Σx²/divisor of one window."""
    return Fraction(window.k) + Fraction(window.alpha) * sums.sum_exactly(place).sum_squares() / window.divisor


def _replace(factors: WindowFactors, place: tuple[Any, ...], sums: WindowSums, window: Window) -> None:
    """Put the factor of one window in its place, from its exact sum of squares."""
    base = _find_base(sums, place, window)
    sign = _find_sign_of_negative(window.exponent) if base < 0 else 1.0
    factors.ordinary[place] = base != 0 and not math.isnan(sign)
    if not factors.ordinary[place]:
        factors.plain[place] = math.nan if base else np.power(0.0, -window.exponent)
        return
    exact = split_exactly(raise_exactly(abs(base), -window.exponent, SPLIT_BITS))
    (hi, lo), exponent = factors.known
    hi[place], lo[place], exponent[place] = sign * exact.hi, sign * exact.lo, exact.exponent


def _multiply(x: Floats, low: Floats | None, factor: Scaled) -> Scaled:
    """Return products; `low` is what x leaves of integers."""
    mantissa, exponent = np.frexp(x)
    product = two_prod(mantissa, factor.value.hi)
    rest = mantissa * factor.value.lo
    if low is not None:
        rest += np.ldexp(low, -exponent) * factor.value.hi
    total = quick_two_sum(product.hi, product.lo + rest)
    return Scaled(total, factor.exponent + exponent)


_PRODUCT_ERROR = 2.0**-76
"""An upper bound of the error of a product with what is known of a factor, as a part of it."""


def _round(
    number: Scaled,
    precision: Precision,
    sums: WindowSums,
    window: Window,
    chosen: Selected,
    x: tuple[Floats, Floats | None] | None = None,
) -> Floats:
    """Return chosen products of values with one over the divisors of their windows, or the latter alone.

    Parameters
    ----------
    number : Scaled
        The products within `_PRODUCT_ERROR`.
    precision : Precision
        Of the dtype that they are then rounded to.
    sums : WindowSums
    window : Window
    chosen : ndarray of bool
    x : tuple of (ndarray, ndarray or None), or None
        The values, and what doubles leave of them; None for 1.
    """
    total, own = take_exponents(number.value)
    exponent = np.clip(own + number.exponent, -_LARGEST_EXPONENT, _LARGEST_EXPONENT)
    decided = is_decided(total, exponent, np.abs(total.hi) * _PRODUCT_ERROR, precision)
    rounded = round_pair(total, exponent, precision)
    rounding = functools.partial(round_quotient, precision=precision)
    for place in list_lines(chosen & ~decided & (total.hi != 0.0)):
        parts = [1.0] if x is None else [part[place] for part in x if part is not None]
        value, base = sum(map(Fraction, parts), Fraction(0)), _find_base(sums, place, window)
        rounded[place] = round_real(functools.partial(_multiply_exactly, value, base, window), rounding)
    return rounded


def _multiply_exactly(value: Fraction, base: Fraction, window: Window, bits: int) -> tuple[Fraction, Fraction]:
    """Return value · base^−exponent, its power to so many bits, and a bound of its error."""
    if window.exponent.is_integer() and abs(window.exponent) <= _LARGEST_WHOLE:
        return value * base ** -int(window.exponent), Fraction(0)
    sign = Fraction(_find_sign_of_negative(window.exponent) if base < 0 else 1)
    product = sign * value * raise_exactly(abs(base), -window.exponent, bits)
    return product, abs(product) / 2**bits


_LARGEST_WHOLE = 64
"""Larger whole exponents make fractions too long."""


MOST_VALUES = 1 << 14
"""Values in a tile: the many arrays of its size that powers take then lie in a core's L2 cache."""


class WindowPasses(Passes):
    """The pass of a norm with a sliding window."""

    def measure(self) -> dict[str, Floats]:
        """Apply the computation to every tile, write the results, and return the statistics."""
        self.walk.expect(1)
        self.walk.each(self._compute, whole=True, most=MOST_VALUES)
        return self.statistics

    def _compute(self, tile: Slices, work: Workspace) -> None:
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
            if self.selection is not None and selected is not None:
                self.selection.fill(place, raw, selected)
            self.sink.put(tile, place, work)
