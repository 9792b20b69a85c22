"""The fixed sequence of doubles by which values are normalized, and what they take of each group.

For float64, NumPy has no fused instruction, so products have to be exact for another reason: x − mean is cut
into T of 26 bits and a rest r, 1/divisor into H of 26 bits and a rest L; the quotient is then T·H, which is
exact, and T·L + r/divisor, whose error is below 2⁻⁷⁴ of it. It ends with two sums, of all that is
known less and more its error: where they differ, another way has to decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.bounds import (
    PRODUCT_BEFORE_BETA,
    QUOTIENT,
    SMALL_TERMS,
)
from normcli.numerics.integers import widen_exactly
from normcli.numerics.pairs import Pair, split
from normcli.numerics.rounding import store
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.numerics.elements.in_pairs import Elements
    from normcli.numerics.workspace import Workspace


class Operands(NamedTuple):
    """The numbers with which values are calculated: arrays that broadcast against them, or None.

    Parameters
    ----------
    centre, second : ndarray or None
        The first two doubles of the mean. None for norms that do not centre; the second also where it is 0.
    off : ndarray or None
        How far off quotients may be by what these leave of the mean, and by the rounding of the second.
    top, low : ndarray or None
        One over the divisor: the first 26 bits of it, and the others.
    factor : ndarray
        One over the divisor.
    gamma, gamma_top, gamma_low : ndarray or None
        Gamma, its first 26 bits, and the others.
    beta : ndarray or None
    """

    centre: Any = None
    second: Any = None
    off: Any = None
    top: Any = None
    low: Any = None
    factor: Any = None
    gamma: Any = None
    gamma_top: Any = None
    gamma_low: Any = None
    beta: Any = None

    def map(self, function: Callable[..., Any]) -> Operands:
        """Return the operands with a function (an index, a reshape) applied to each array."""
        return Operands(*(None if a is None else function(a) for a in self))


# -- what is prepared once for each group

_TOP_BITS = ~((1 << 27) - 1)
"""The bits of a double that hold its sign, exponent and first 26 bits."""

_LEAST_DIVISOR, _LARGEST_DIVISOR = 2.0**-600, 2.0**600
_LEAST, _LARGEST, _LEAST_MEAN = 2.0**-300, 2.0**300, 2.0**-800
"""With others, intermediate results could leave float64: values are then calculated by themselves."""


def _find_beyond(values: Floats) -> Selected:
    """Return which numbers are too small or too large; 0, infinities and NaN are not."""
    size = np.abs(values)
    return np.asarray((size != 0.0) & np.isfinite(size) & ~((size >= _LEAST) & (size <= _LARGEST)))


_OFF = 2.0**-101
"""What three operations take of the second double, and all that the third has, as parts of the first."""


def prepare(elements: Elements) -> Operands:
    """Return what results are calculated with."""
    _, mean, divisor, gamma, beta, *_ = elements
    if divisor is None:
        divisor = Pair(*(np.full((1,) * elements.x.ndim, value) for value in (1.0, 0.0)))
    hi = divisor.hi
    usable = (hi >= _LEAST_DIVISOR) & (hi <= _LARGEST_DIVISOR)
    factor = 1.0 / hi
    bits = factor.view(np.int64) + (1 << 26)
    bits &= _TOP_BITS
    top = np.where(usable, bits.view(np.float64), np.nan)
    of_divisor = (hi.view(np.int64) & _TOP_BITS).view(np.float64)
    # Products of 26 and 27 bits are exact, and so is the first difference.
    low = (((1.0 - top * of_divisor) - top * (hi - of_divisor)) - top * divisor.lo) * factor
    if mean is not None:
        top = np.where((mean.mid != 0.0) & (np.abs(mean.hi) < _LEAST_MEAN), np.nan, top)
    operands = Operands(top=top, low=low, factor=factor, beta=beta)
    if gamma is not None:
        gamma = np.where(_find_beyond(gamma), np.nan, gamma)
        halves = split(gamma)
        operands = operands._replace(gamma=gamma, gamma_top=halves.hi, gamma_low=halves.lo)
    if mean is None:
        return operands
    off = np.where(mean.mid == 0.0, 0.0, np.abs(mean.hi) * (_OFF * factor))
    return operands._replace(centre=mean.hi, second=mean.mid if mean.mid.any() else None, off=off)


# -- the sequence


_LEAST_QUOTIENT, _LARGEST_QUOTIENT = 2.0**-600, 2.0**600
"""Quotients are right within these, where no product underflows."""


def apply_doubles(raw: NDArray[Any], out: NDArray[Any], operands: Operands, work: Workspace) -> Selected | None:
    """Write results; return which of them the sequence has not reached, or None."""
    x, low = widen_exactly(raw, work)
    y = out if out.dtype == np.float64 and out.flags.c_contiguous else work.get("y", raw.shape)
    t, r = work.get("t", raw.shape), work.get("r", raw.shape)
    if operands.centre is None:
        _split(x, t, r)
    else:
        _subtract(x, operands.centre, t, r, work)
        if operands.second is not None:
            np.subtract(r, operands.second, out=r)
    off = operands.off
    if low is not None:
        np.add(r, low, out=r)
        off = None if operands.centre is None else np.abs(operands.centre) * (_OFF * operands.factor)
    np.multiply(t, operands.top, out=y)
    np.multiply(t, operands.low, out=t)
    np.multiply(r, operands.factor, out=r)
    np.add(t, r, out=t)
    missed = _find_outside(x, y, r, operands)
    error = np.multiply(r, QUOTIENT.error if operands.gamma is None else PRODUCT_BEFORE_BETA.error, out=r)
    if off is not None:
        np.add(error, off, out=error)
    if operands.gamma is not None:
        first = work.get("first", raw.shape)
        _split(y, first, y)
        np.add(t, y, out=t)
        np.multiply(first, operands.gamma_top, out=y)
        np.multiply(first, operands.gamma_low, out=first)
        np.multiply(t, operands.gamma, out=t)
        np.add(t, first, out=t)
        np.multiply(error, np.abs(operands.gamma), out=error)
    if operands.beta is not None:
        total = work.get("total", raw.shape)
        rest = _add_exactly(y, operands.beta, total, work)
        np.add(t, rest, out=t)
        np.abs(t, out=rest)
        np.add(error, np.multiply(rest, SMALL_TERMS.error, out=rest), out=error)
        y, total = total, y
    missed = _join(missed, _round(y, t, error, work))
    _write_zeros(x, y, operands)
    if y is out:
        return missed
    if out.dtype == np.float64:
        store(out, y)
        return missed
    other = work.get("shorter", out.shape, out.dtype)
    store(out, np.multiply(y, 1.0 - _LAST_BIT, out=t))
    store(other, np.multiply(y, 1.0 + _LAST_BIT, out=t))
    bits = f"u{out.itemsize}"  # halves are not compared one by one then
    return _join(missed, _find_any(np.not_equal(out.view(bits), other.view(bits))))


_LAST_BIT = 2.0**-52
"""What the rounding to a double takes of a number, which may be in the middle of two shorter ones then."""


def _write_zeros(x: Floats, y: Floats, operands: Operands) -> None:
    """Write results of 0 with their signs."""
    zero = y == 0.0
    if zero.any():
        plain = x if operands.centre is None else x - operands.centre
        plain = plain if operands.gamma is None else plain * operands.gamma
        np.copyto(y, plain if operands.beta is None else plain + operands.beta, where=zero & (plain == 0.0))


def _add_exactly(y: Floats, beta: Floats, total: Floats, work: Workspace) -> Floats:
    """Write y + beta to `total`, and return its rounding error; what y holds is lost."""
    back, rest = work.get("back", y.shape), work.get("rest", y.shape)
    np.add(y, beta, out=total)
    np.subtract(total, y, out=back)
    np.subtract(total, back, out=rest)
    np.subtract(y, rest, out=y)
    np.subtract(beta, back, out=back)
    np.add(y, back, out=rest)
    return rest


def _round(y: Floats, t: Floats, error: Any, work: Workspace) -> Selected | None:
    """Leave y + t in y, and return which of them are rounded in two ways within an error; None if none is."""
    other = np.add(t, error, out=work.get("other", y.shape))
    np.add(y, other, out=other)
    np.subtract(t, error, out=t)
    np.add(y, t, out=y)
    return _find_any(np.not_equal(y, other))


def _find_any(chosen: Selected) -> Selected | None:
    return chosen if chosen.any() else None


def _join(one: Selected | None, other: Selected | None) -> Selected | None:
    return other if one is None else one if other is None else one | other


def _subtract(x: Floats, centre: Floats, top: Floats, rest: Floats, work: Workspace) -> None:
    """Write x − centre as its first 26 bits and all others."""
    back = work.get("back", x.shape)
    np.subtract(x, centre, out=top)
    np.subtract(top, x, out=rest)
    np.subtract(top, rest, out=back)
    np.subtract(x, back, out=back)
    np.add(rest, centre, out=rest)
    np.subtract(back, rest, out=rest)  # the rounding error, as of `two_diff`
    np.copyto(back, top)
    _split(back, top, back)
    np.add(rest, back, out=rest)


def _split(x: Floats, top: Floats, low: Floats) -> None:
    """Split values into their first 26 bits and the other 27; x may be `low`."""
    np.bitwise_and(x.view(np.int64), _TOP_BITS, out=top.view(np.int64))
    np.subtract(x, top, out=low)


def _find_outside(x: Floats, quotients: Floats, memory: Floats, operands: Operands) -> Selected | None:
    """Return which quotients are too small or too large for the sequence, or NaN; None if none is."""
    sizes = np.abs(quotients, out=memory)
    missed = _find_any(np.less(sizes, _LEAST_QUOTIENT))
    if missed is not None:
        is_mean = x == (0.0 if operands.centre is None else operands.centre)
        missed = _find_any(missed & ~(is_mean & (operands.second is None or operands.second == 0.0)))
    if not np.maximum.reduce(sizes, axis=None) <= _LARGEST_QUOTIENT:  # or NaN
        missed = _join(missed, ~(sizes <= _LARGEST_QUOTIENT))
    return missed
