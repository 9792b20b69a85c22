"""From any dtype to float64, exactly; and the last step of every result: rounded once, to its dtype.

Integers of 64 bits, which float64 rounds beyond 2⁵³, are each exactly the sum of two doubles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import LARGEST_EXACT, is_bfloat16, is_long_integer
from normcli.numerics.pairs import Pair, two_sum
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.numerics.workspace import Workspace


_BFLOAT16 = "bfloat16"

_MOST_SHIFT = 10_000
"""More than any exponent of float64, and few enough bits for `ldexp`."""

_LEAST_EXPONENT = -1074
_LEAST_NORMAL, _LEAST = 2.0**-1022, 2.0**_LEAST_EXPONENT


class Scaled(NamedTuple):
    """Numbers value · 2^exponent, which may be beyond the range of doubles; one exponent for each or all."""

    value: Pair
    exponent: Any


def widen(values: NDArray[Any]) -> Floats:
    """Return numbers as float64, in an array of their own; NumPy warns where it casts a signalling NaN."""
    with np.errstate(invalid="ignore"):
        return values.astype(np.float64)


def store(out: NDArray[Any], values: Floats) -> None:
    """Write float64 values to an array of floats, each rounded once, to nearest even."""
    with np.errstate(over="ignore", invalid="ignore"):  # what is beyond the dtype is infinite
        np.copyto(out, round_to_odd(values) if is_bfloat16(out.dtype) else values, casting="same_kind")


def round_to_odd(values: Floats) -> NDArray[np.float32]:
    """Return float64 values as float32, inexact ones rounded to the neighbour whose last bit is 1.

    NumPy casts to bfloat16 by way of float32, and two roundings to nearest can differ from one: the first may
    produce a tie that was none. After rounding to odd, the second rounding is always right (Boldo & Melquiond
    2008).
    """
    with np.errstate(over="ignore", invalid="ignore"):  # of infinities, and of signalling NaN
        nearest = np.asarray(values, dtype=np.float32)
        back = nearest.astype(np.float64)
    bits = nearest.view(np.int32)
    bits -= np.abs(back) > np.abs(values)
    bits |= back != values
    return nearest


def round_to_short(values: Floats, name: str) -> Floats:
    """Return float64 values rounded once to float16, bfloat16 or float32, as float64, without a library."""
    with np.errstate(over="ignore"):
        if name != _BFLOAT16:
            return values.astype(name).astype(np.float64)
        bits = round_to_odd(values).view(np.uint32)
    rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32)
    return np.where(np.isnan(values), np.nan, rounded.astype(np.float64))


def round_scaled(number: Scaled) -> Floats:
    """Return numbers as the nearest doubles; 0 or ±infinity if they are beyond the range of doubles.

    In each pair of `number.value`, hi must be the double nearest to hi + lo.
    """
    (hi, lo), exponent = number
    exponent = np.clip(exponent, -_MOST_SHIFT, _MOST_SHIFT)
    rounded = np.asarray(np.ldexp(hi, exponent))
    small = (np.abs(rounded) < _LEAST_NORMAL) & (hi != 0.0)
    if small.any():  # of numbers between two subnormal ones, the second double tells which is nearer
        rest = hi - np.ldexp(rounded, -exponent)
        half = np.ldexp(0.5, _LEAST_EXPONENT - exponent)
        further = small & (np.abs(rest) == half) & (rest * lo > 0.0)
        rounded = rounded + np.where(further, np.copysign(_LEAST, rest), 0.0)
    return rounded


_HALF = 32
"""Bits of a half of an integer, which any float64 holds."""


def split_integers(x: NDArray[Any]) -> Pair:
    """Return integers as pairs: the nearest doubles, and the remainders (integer − double).

    Examples
    --------
    >>> split_integers(np.array([2**53 + 1, -(2**63)]))
    Pair(hi=array([ 9.00719925e+15, -9.22337204e+18]), lo=array([1., 0.]))
    """
    half = x.dtype.type(_HALF)
    high, low = (x >> half).astype(np.float64), (x & x.dtype.type((1 << _HALF) - 1)).astype(np.float64)
    return two_sum(high * 2.0**_HALF, low)


def widen_exactly(
    x: NDArray[Any], work: Workspace | None = None, name: str = "x"
) -> tuple[Floats, Floats | None]:
    """Return the doubles nearest to values, and the remainders (value − double); None if all of these are 0.

    Parameters
    ----------
    x : ndarray
        Values of any real dtype; float64 is returned as it is.
    work : Workspace or None
        A workspace for the doubles of values of other dtypes; None for a new array.
    name : str
        The name of the workspace's buffer.
    """
    if x.dtype == np.float64:
        return x, None
    if is_long_integer(x.dtype) and x.size:
        low, high = np.minimum.reduce(x, axis=None), np.maximum.reduce(x, axis=None)
        if int(high) > LARGEST_EXACT or int(low) < -LARGEST_EXACT:
            return split_integers(x)
    wide = np.empty(x.shape) if work is None else work.get(name, x.shape)
    np.copyto(wide, x)
    return wide, None


def widen_to_pair(x: NDArray[Any]) -> Pair:
    """Return values of any real dtype as pairs; −0 becomes 0."""
    high, low = widen_exactly(x)
    return Pair(high + 0.0, np.zeros_like(high) if low is None else low)


def find_magnitudes(x: NDArray[Any]) -> NDArray[Any]:
    """Return |x|: floats in their dtype, integers of 64 bits as unsigned ones, and all others as float64.

    Unsigned integers hold the magnitude of −2⁶³, too.
    """
    if not is_long_integer(x.dtype) and x.dtype.kind != "f":
        x = x.astype(np.float64)
    sizes: NDArray[Any] = np.abs(x)
    return sizes.view(np.uint64) if sizes.dtype.kind == "i" else sizes


def find_limits(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """Return the least and the largest value of a dtype, infinities among them."""
    if dtype.kind in "iu":
        kind = np.iinfo(dtype)
        return dtype.type(kind.min), dtype.type(kind.max)
    return dtype.type(-np.inf), dtype.type(np.inf)
