"""Lines through most of the values, where a few are wrong.

Least squares spread a wrong value over its whole line. So the values that are furthest off are left out and the
others are fitted again, until rounding explains those; what was left out is judged like any other value.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from normcli.dtypes import Floats

_BEYOND = 64.0
"""Values are left out from the start that are so many times as far from the middle one as half of them are."""

_MOST_WRONG = 0.2
"""The part of the values that may be left out."""

_ROUNDS = 24
"""Times that values are left out; those that are half as far off as a line's worst, or further, go at once."""


class Fitted(Protocol):
    """How far each value is off what was fitted, and how far it may be."""

    @property
    def rest(self) -> Floats:
        """NaN where a value was left out."""

    @property
    def allowed(self) -> Floats:
        """Of the same shape."""


_AnyFit = TypeVar("_AnyFit", bound=Fitted)


def leave_out_extremes(y: Floats) -> Floats:
    """Return y with NaN where a value is not finite, or so large that least squares would see nothing else."""
    if not np.isfinite(y).any():
        return np.full_like(y, np.nan)
    finite = np.where(np.isfinite(y), y, np.nan)
    distance = np.abs(finite - np.nanmedian(finite))
    return np.where(distance <= _BEYOND * np.nanmedian(distance), finite, np.nan)


def leave_out(
    fit: Callable[[Floats], _AnyFit], y: Floats, axes: tuple[int, ...], most: float = math.inf
) -> tuple[Floats, _AnyFit] | None:
    """Return y less the values that are off by more than is allowed, as NaN, and the fit of the others.

    None where these are too many.

    Parameters
    ----------
    fit : callable
        Fits values, of which NaN does not count.
    y : ndarray
    axes : tuple of int
        There is a line for each index of these.
    most : float
        Where half of the values are off by more times of what is allowed than this at first, none is left out.
    """
    others = tuple(axis for axis in range(y.ndim) if axis not in axes)
    for number in range(_ROUNDS):
        if float(np.isnan(y).mean()) > _MOST_WRONG:
            return None
        fitted = fit(y)
        over = np.nan_to_num(fitted.rest / fitted.allowed, nan=0.0, posinf=np.inf)
        if number == 0 and float(np.median(over)) > most:
            return None
        left_out = over > np.maximum(over.max(axis=others, keepdims=True) / 2.0, 1.0)
        if not left_out.any():
            return y, fitted
        y = np.where(left_out, np.nan, y)
    return None
