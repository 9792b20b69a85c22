"""Integers of 64 bits, which float64 rounds beyond 2⁵³: each is exactly the sum of two doubles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import LARGEST_EXACT, is_long_integer
from normcli.numerics.pairs import Pair, two_sum

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.numerics.workspace import Workspace


_HALF = 32
"""Bits of a half of an integer, which any float64 holds."""


def split_integers(x: NDArray[Any]) -> Pair:
    """Return integers as pairs: the nearest doubles, and what those leave.

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
    """Return the nearest doubles to values, and what those leave; None for nothing.

    Parameters
    ----------
    x : ndarray
        Of any real dtype; float64 is returned as it is.
    work : Workspace or None
        Whose memory takes what is of another dtype; None for memory of its own.
    name : str
        Of that memory.
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
    """Return values of any real dtype as pairs; of 0, never −0."""
    high, low = widen_exactly(x)
    return Pair(high + 0.0, np.zeros_like(high) if low is None else low)


def find_magnitudes(x: NDArray[Any]) -> NDArray[Any]:
    """Return |x|: of floats as such, of integers of 64 bits as unsigned ones, which hold that of −2⁶³ too.

    Others become float64.
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
