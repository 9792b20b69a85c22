"""The kernel: normalizes a block of values with what is known of their groups, and rounds once.

Mean, divisor, gamma and beta are taken as exact numbers. Usual values are calculated in pairs, or in doubles
where results are shorter floats, with a bound; what it does not decide is calculated again, at any magnitude.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import is_short_float
from normcli.numerics.deciding import PAIRS, PRECISIONS
from normcli.numerics.elements.in_pairs import Elements, calculate
from normcli.numerics.pairs import Pair, is_faint, pair_divide, pair_multiply, two_diff, two_sum
from normcli.numerics.rounding import store, widen_exactly
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.numerics.elements.gate import Gated
    from normcli.numerics.statistics.divisor import Solution


CHUNK = 1 << 15
"""The most values that one call works on: with fewer, calls take longer than the arithmetic."""


class Parameters(NamedTuple):
    """The parameters of the affine step y = gamma · x̂ + beta.

    Parameters
    ----------
    gamma, beta : ndarray or None
        Arrays of as many axes as the values, which broadcast against them; None for 1 and 0.
    gate : Gated or None
        A gate that multiplies y; its arrays broadcast against the values.
    """

    gamma: Floats | None = None
    beta: Floats | None = None
    gate: Gated | None = None


_NEITHER = Parameters()


def apply(
    raw: NDArray[Any], out: NDArray[Any], solution: Solution | None, parameters: Parameters = _NEITHER
) -> NDArray[np.intp] | None:
    """Write gamma * (x - mean) / divisor + beta, times the gate if there is one, to `out`, rounded once.

    Parameters
    ----------
    raw : ndarray
        Values of any float or integer dtype; they are not written to.
    out : ndarray
        An array of the shape of raw and a float dtype, of any strides, that does not overlap raw.
    solution : Solution or None
        Its arrays have as many axes as raw, and broadcast against it. None if raw is x̂ (or y before the gate),
        as rounded by a convention: nothing is subtracted, and nothing divided.
    parameters : Parameters

    Returns
    -------
    ndarray of int or None
        Flat indices into raw, in C order, of the values that are not decided, as the errors of mean and divisor
        allow two roundings. None if there are none.
    """
    gamma, beta, gate = parameters
    elements = Elements(raw, None, None, gamma, beta, gate=gate)
    if solution is not None:
        mean = solution.mean if solution.centred else None
        elements = elements._replace(mean=mean, divisor=solution.divisor, error=solution.error)
    return _apply(elements, out)


def _apply(elements: Elements, out: NDArray[Any]) -> NDArray[np.intp] | None:
    """Write the results of elements to `out`, and return the flat indices of the undecided ones, or None.

    A result is undecided if the errors of mean and divisor allow two roundings. None if there are no such
    results.
    """
    raw = elements.x
    if not raw.size:
        return None
    with np.errstate(all="ignore"):
        gate, wide, place = elements.gate, _leave_unusual(elements), out
        if gate is None:
            wide, place = _widen(wide, out)
        elif gate.less is not None or not is_short_float(out.dtype):  # all are calculated at any magnitude
            return _calculate_all(elements, out, np.arange(raw.size))
        if place.ndim and place.shape[-1] >= _LONG_LINE:
            np.setbufsize(_SMALL_BUFFER)  # `errstate` restores it
        places = _apply_by_chunks(wide, place)
        np.setbufsize(_USUAL_BUFFER)
        return _calculate_all(elements, out, places)


def _calculate_all(elements: Elements, out: NDArray[Any], places: NDArray[np.intp]) -> NDArray[np.intp] | None:
    """Calculate results at some flat indices in pairs, and return the indices that stay undecided, or None."""
    undecided = [
        calculate_again(elements, out, places[start : start + _TOGETHER])
        for start in range(0, len(places), _TOGETHER)
    ]
    found = [places for places in undecided if places is not None]
    return np.concatenate(found) if found else None


def calculate_again(elements: Elements, out: NDArray[Any], places: NDArray[np.intp]) -> NDArray[np.intp] | None:
    """Calculate values at some flat indices in pairs, at any magnitude, and write them to `out`.

    Return the flat indices of those that are still not decided; None if there are none.

    Parameters
    ----------
    elements : Elements
    out : ndarray
        An array of the shape of `elements.x`.
    places : ndarray of int
        Flat indices into `out`, in C order.
    """
    shape = elements.x.shape
    index = np.unravel_index(places, shape)
    chosen = elements.map(lambda a: np.broadcast_to(a, shape)[index])
    x, low = widen_exactly(chosen.x)
    chosen = chosen._replace(x=x, low=chosen.low if low is None else low)
    results = calculate(chosen, PRECISIONS[out.dtype.name])
    values = np.empty(len(places), out.dtype)
    store(values, results.values)
    out[index] = values
    return None if results.undecided is None else places[results.undecided]


_USUAL_BUFFER, _SMALL_BUFFER = np.getbufsize(), 16
_LONG_LINE = 256
"""In lines of this length and more, NumPy's buffer is made small: it copies broadcast operands otherwise."""

_TOGETHER = 1 << 12
"""Values that are calculated again in one call: some thirty float64 arrays of that many are made."""


def _apply_by_chunks(elements: Elements, out: NDArray[Any]) -> NDArray[np.intp]:
    """Write results by fast arithmetic, chunk by chunk; return the flat indices of those it does not decide."""
    found: list[NDArray[np.intp]] = []

    def walk(elements: Elements, out: NDArray[Any], start: int) -> None:
        length, size = out.shape[0] if out.ndim else 1, out.size
        if size <= CHUNK or (out.ndim == 1 and length <= 2 * CHUNK):
            if (missed := apply_usual(elements, out)) is not None:
                if elements.gate is None:
                    missed = missed & ~np.isnan(elements.x)  # NaN stays what it is
                found.append(np.flatnonzero(missed) + start)
        elif length == 1 or size // length > CHUNK:
            for i in range(length):
                part = elements.map(functools.partial(_take, i, 0))
                walk(part, out[i], start + i * (size // length))
        else:
            rows = max(1, CHUNK // (size // length))
            for i in range(0, length, rows):
                s = slice(i, i + rows)
                part = elements.map(functools.partial(_take, s, ...))
                walk(part, out[s], start + i * (size // length))

    walk(elements, out, 0)
    return np.concatenate(found) if found else np.empty(0, np.intp)


def _take(index: Any, of_one: Any, values: NDArray[Any]) -> Any:
    """Return the part of an array at an index; for an array of length 1, the part at `of_one`."""
    return values[index if len(values) > 1 else of_one]


_WIDE = 1024
"""Shorter lines are joined to about this length: NumPy takes a while for each line."""


def _widen(elements: Elements, out: NDArray[Any]) -> tuple[Elements, NDArray[Any]]:
    """Return elements and output with short lines joined into longer ones, if only x varies between lines.

    A line lies along the last axis. They are returned as they are if lines are long already.
    """
    raw = elements.x
    if raw.ndim < 2 or raw.shape[-1] >= _WIDE // 2:
        return elements, out
    lines, line = raw.shape[-2:]
    arrays = *(elements.mean or ()), *(elements.divisor or ()), elements.gamma, elements.beta, elements.error
    shapes = [a.shape[-2:] for a in arrays if isinstance(a, np.ndarray)]
    varies = any(count > 1 for count, _ in shapes) or all(length == 1 for _, length in shapes)
    if varies or not (raw.flags.c_contiguous and out.flags.c_contiguous):
        return elements, out
    together = math.gcd(lines, 1 << max(0, (_WIDE // line).bit_length() - 1))
    shape = (*raw.shape[:-2], lines // together, line * together)
    # As `np.tile`, which takes longer than all the arithmetic on a small tensor.
    wide = elements._replace(x=raw[..., :1]).map(
        lambda a: a if a.shape[-1] == 1 else a.repeat(together, axis=-2).reshape(*a.shape[:-2], 1, -1)
    )
    return wide._replace(x=raw.reshape(shape)), out.reshape(shape)


# -- usual numbers

_LEAST, _LARGEST = 2.0**-600, 2.0**600
"""Quotients that are not between these could leave the range of doubles on the way."""

_LEAST_FACTOR, _LARGEST_FACTOR = 2.0**-300, 2.0**300
"""Values with a divisor or gamma that is not between these are calculated at any magnitude."""

_OFF = 2.0**-101
"""An upper bound of a mean's third double and of the second's roundings, as a part of its first double."""

_SECOND_ORDER = 1.25
"""A factor of bounds that makes room for products of errors."""

_LAST_BIT = 2.0**-52
"""An upper bound of the relative error of a rounding to double, which may make a tie between shorter floats."""


def _leave_unusual(elements: Elements) -> Elements:
    """Return elements with NaN for divisors and gammas so large or small that doubles have no error bound."""
    mean, divisor, gamma = elements.mean, elements.divisor, elements.gamma
    if divisor is not None:
        usable = (divisor.hi >= _LEAST_FACTOR) & (divisor.hi <= _LARGEST_FACTOR)
        if mean is not None:
            usable = usable & ~is_faint(mean)
        divisor = Pair(np.where(usable, divisor.hi, np.nan), divisor.lo)
    if gamma is not None:
        size = np.abs(gamma)
        beyond = (size != 0.0) & ~((size >= _LEAST_FACTOR) & (size <= _LARGEST_FACTOR))
        gamma = np.where(beyond, np.nan, gamma)
    return elements._replace(divisor=divisor, gamma=gamma)


def apply_usual(elements: Elements, out: NDArray[Any]) -> Selected | None:
    """Write results to `out`, rounded once; return an array that is True where one is undecided or NaN.

    Results of float64 are calculated in pairs, of shorter floats in doubles; they are NaN where no bound of the
    error holds (unusual numbers). None is returned if every result is decided and not NaN.
    """
    x, low = widen_exactly(elements.x)
    elements = elements._replace(x=x, low=low)
    value, error = (_divide_doubles if is_short_float(out.dtype) else _divide_pairs)(elements)
    if elements.gate is not None:
        value, error = _multiply_doubles(value.hi, error, elements)
    low_end, high_end = (value.hi + (value.lo + end) for end in (-error, error))
    zero = value.hi == 0.0
    if elements.gate is None and zero.any():  # with its sign
        plain = x if elements.mean is None else x - elements.mean.hi
        for function, other in ((np.multiply, elements.gamma), (np.add, elements.beta)):
            plain = plain if other is None else function(plain, other)
        for end in (low_end, high_end):
            np.copyto(end, plain, where=zero & (plain == 0.0) & (end == 0.0))
    if out.dtype == np.float64:
        out[...] = low_end
        missed = low_end != high_end
    else:
        other = np.empty(out.shape, out.dtype)
        store(out, low_end)
        store(other, high_end)
        bits = f"u{out.itemsize}"  # halves are not compared one by one then
        missed = (out.view(bits) != other.view(bits)) | np.isnan(low_end)
    return missed if missed.any() else None


def _divide_pairs(elements: Elements) -> tuple[Pair, Any]:
    """Return γ · (x − mean) / divisor + β as pairs, and a bound of their errors; NaN for unusual values."""
    x, mean, divisor, gamma, beta, low, off, _ = elements
    z, error = Pair(x, np.zeros(()) if low is None else low), _find_off(elements)
    if mean is not None:
        d, rest = two_diff(x, mean.hi)
        z = two_sum(d, (rest if low is None else rest + low) - mean.mid)
    if divisor is not None:
        quotient = pair_divide(z, divisor)
        z = quotient._replace(hi=_leave_far(z.hi, quotient.hi))
    if gamma is not None:
        z = pair_multiply(z, Pair(gamma, 0.0))
    error = error + np.abs(z.hi) * (PAIRS.error if divisor is None else off + PAIRS.error)
    if beta is not None:
        total, rest = two_sum(z.hi, beta)
        error, z = error + np.abs(total) * PAIRS.error, two_sum(total, rest + z.lo)
    return z, error


def _divide_doubles(elements: Elements) -> tuple[Pair, Any]:
    """Return γ · (x − mean) / divisor + β as doubles, in a pair, and a bound of their errors."""
    x, mean, divisor, gamma, beta, low, off, _ = elements
    value = x if mean is None else x - mean.hi
    value = value if low is None else value + low
    value = value if mean is None else value - mean.mid
    if divisor is not None:
        value = _leave_far(value, value / divisor.hi)
    if gamma is not None:
        value = value * gamma
    error = _find_off(elements) + np.abs(value) * (
        4.0 * _LAST_BIT if divisor is None else off + 4.0 * _LAST_BIT
    )
    if beta is not None:
        value = value + beta
    return Pair(value, np.zeros(())), error + np.abs(value) * _LAST_BIT


def _multiply_doubles(value: Floats, error: Any, elements: Elements) -> tuple[Pair, Any]:
    """Return values times the factors of the elements' gate, in a pair, and a bound of their errors.

    The bound is NaN for a gate that is not finite, and for a product of 0 (unless a factor is 0 and beta None).
    """
    assert elements.gate is not None
    (z, _), _ = elements.gate.columns
    factor, off = elements.gate.estimate()
    product, size = value * factor + 0.0, np.abs(factor)
    error = _SECOND_ORDER * (error * (size + off) + np.abs(value) * off + np.abs(product) * _LAST_BIT)
    usual = product != 0.0
    if elements.beta is None:  # with it, a value may be that of a mean, whose sign counts
        usual = usual | ((size == 0.0) & (off == 0.0) & (value != 0.0) & np.isfinite(value))
    return Pair(product, np.zeros(())), np.where(usual & np.isfinite(z), error, np.nan)


def _find_off(elements: Elements) -> Any:
    """Return an upper bound of the error that the mean's error causes in each result; 0 without a mean."""
    _, mean, divisor, gamma, _, low, *_ = elements
    if mean is None:
        return 0.0
    error = np.abs(mean.hi) * _OFF
    error = error if low is not None else np.where(mean.mid == 0.0, 0.0, error)
    error = error if divisor is None else error / divisor.hi
    return error if gamma is None else error * np.abs(gamma)


def _leave_far(values: Floats, quotients: Floats) -> Floats:
    """Return quotients with NaN for those beyond 2^±600, except where a value and its quotient are 0."""
    sizes = np.abs(quotients)
    if np.max(sizes, initial=0.0) <= _LARGEST and not (sizes < _LEAST).any():
        return quotients
    return np.where((sizes <= _LARGEST) & ((sizes >= _LEAST) | (values == 0.0)), quotients, np.nan)
