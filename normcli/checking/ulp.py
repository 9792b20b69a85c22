"""Distances from exact values, in units of the last place of a dtype."""

from __future__ import annotations

import bisect
import functools
import math
import operator
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import find_type, get_eps, get_smallest, is_float
from normcli.errors import UsageError
from normcli.numerics.rounding import store
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from normcli.dtypes import Floats


_EXPONENT = np.int64(0x7FF0_0000_0000_0000)
"""The bits of a float64's exponent: alone they are the power of two at or below it."""


ROUNDED_ONCE = 0.501
"""The largest distance in ulp of a result that was rounded once: ½, and a little for errors in comparing."""


_TOLERATED: Mapping[str, tuple[float, float]] = MappingProxyType(
    {"float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7)}
)
"""rtol and atol of each format: the defaults of `torch.testing.assert_close` (PyTorch 2.13)."""


class Tolerance(NamedTuple):
    """A tolerance: |actual − expected| ≤ atol + rtol · |expected|, or at most `max_ulp`.

    Parameters
    ----------
    dtype : numpy.dtype
        The dtype in whose last place distances are counted.
    rtol, atol : float
    max_ulp : float or None
        The limit in ulp, in place of rtol and atol; None if these hold.
    derived : str
        The name of the algorithm whose rounding errors bound each value, in place of all these limits; empty if
        they hold.
    """

    dtype: np.dtype[Any]
    rtol: float
    atol: float
    max_ulp: float | None = None
    derived: str = ""

    def measure_excess(self, error: Floats, ulp: Floats, expected: Floats) -> Floats:
        """Return each value's distance as a multiple of its tolerance: above 1, it is not tolerated.

        With `max_ulp`, this is ulp / max_ulp alone; without, error / (atol + rtol · |expected|), and `ulp` is
        not read. 0 for equal values, ∞ for an error of ∞.

        Parameters
        ----------
        error, ulp : ndarray of float64
            |actual − expected|, and the distance in ulp.
        expected : ndarray of float64
        """
        if self.max_ulp is not None:
            return np.where(ulp == 0.0, 0.0, ulp / self.max_ulp)
        excess = error / (self.atol + self.rtol * np.abs(expected))
        excess[error == 0.0] = 0.0
        excess[error == np.inf] = np.inf  # of what is infinite, nothing is tolerated
        return excess


def choose_tolerance(
    dtype: np.dtype[Any],
    rtol: float | None = None,
    atol: float | None = None,
    max_ulp: float | None = None,
    scale: float = 1.0,
) -> Tolerance:
    """Return the tolerance for values of a dtype, with the defaults of torch's `assert_close`.

    Parameters
    ----------
    dtype : numpy.dtype
    rtol, atol : float or None
        The limits; None for torch's default of the dtype.
    max_ulp : float or None
        The limit in ulp, in place of rtol and atol; None if these hold.
    scale : float
        The largest |expected|; if it is below 1, the default atol is multiplied by it, but stays large enough
        that subnormals that were rounded once are tolerated.

    Raises
    ------
    UsageError
        If a limit is negative or not a finite number, or if `max_ulp` is given with rtol or atol.

    Examples
    --------
    >>> choose_tolerance(np.dtype("float32"), atol=0.0)
    Tolerance(dtype=dtype('float32'), rtol=1.3e-06, atol=0.0, max_ulp=None, derived='')
    """
    rtol, atol, max_ulp = _read_limit("rtol", rtol), _read_limit("atol", atol), _read_limit("max-ulp", max_ulp)
    if max_ulp is not None and (rtol is not None or atol is not None):
        raise UsageError("max-ulp takes the place of rtol and atol; give one or the other")
    usual_rtol, usual_atol = _TOLERATED[dtype.name]
    usual_atol = max(usual_atol * min(1.0, scale), ROUNDED_ONCE * get_smallest(dtype.name))
    rtol, atol = usual_rtol if rtol is None else rtol, usual_atol if atol is None else atol
    return Tolerance(dtype, rtol, atol, max_ulp)


def _read_limit(name: str, value: Any) -> float | None:
    """Return a limit as a float, or None for None; raise `UsageError` unless it is a finite number ≥ 0.

    `name` is the limit's name in the message.
    """
    try:
        number = None if value is None else float(operator.pos(value))  # a string has no sign
    except (TypeError, ValueError, OverflowError) as error:
        raise UsageError(f"{name} {value!r} is not a number") from error
    if number is not None and not 0 <= number < math.inf:
        raise UsageError(f"{name} {value} is not a finite number ≥ 0")
    return number


def raise_limit(least: float, error: Floats, fixed: Floats, factor: Floats) -> float:
    """Return the smallest float64 t ≥ `least` with error ≤ fixed + factor · t for every value; ∞ if none.

    The comparison is in float64 arithmetic; `error`, `fixed` and `factor` are arrays of one shape.
    """
    while least < math.inf:
        failing = error > fixed + factor * least
        if not failing.any():
            break
        error, fixed, factor = error[failing], fixed[failing], factor[failing]
        furthest = ((error - fixed) / factor).argmax()
        off, own, slope = (float(values[furthest]) for values in (error, fixed, factor))
        is_enough = functools.partial(_is_enough, error=off, fixed=own, factor=slope)
        bits = bisect.bisect_left(range(int(_EXPONENT)), 1, key=is_enough)
        least = float(np.int64(bits).view(np.float64))
    return least


def _is_enough(bits: int, error: float, fixed: float, factor: float) -> bool:
    """Whether error ≤ fixed + factor · t for the t ≥ 0 with these bits; floats are ordered as they are."""
    return error <= fixed + factor * float(np.int64(bits).view(np.float64))


def choose_counting_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype in whose last place distances are counted for values of a dtype.

    It is the dtype itself, in native byte order, if it is float16, bfloat16, float32 or float64; else float64.
    """
    return dtype.newbyteorder("=") if is_float(dtype) and dtype.name in _TOLERATED else np.dtype(np.float64)


def measure_unit(values: Floats, dtype: np.dtype[Any]) -> Floats:
    """Return the unit in the last place (ulp) of a dtype at each value, in float64."""
    unit: Floats = (np.ascontiguousarray(values).view(np.int64) & _EXPONENT).view(np.float64)
    np.maximum(unit, get_smallest(dtype.name) / get_eps(dtype), out=unit)  # below it, subnormals share one unit
    unit *= get_eps(dtype)
    return unit


def measure_distance(actual: Floats, expected: Floats, dtype: np.dtype[Any]) -> tuple[Floats, Floats]:
    """Return |actual − expected|, and that distance in ulp of a dtype at the expected value.

    Parameters
    ----------
    actual, expected : ndarray of float64
        Values of one shape; the expected ones are not rounded to the dtype.
    dtype : numpy.dtype
        A float of up to 8 bytes.

    Returns
    -------
    tuple of ndarray of float64
        Both distances are 0 where both are NaN, and where the actual value is the infinity that the expected
        value is or rounds to. They are infinite for all other pairs with a value that is not finite.

    Examples
    --------
    >>> expected = np.array([1.0, 1.0, 0.0, np.nan, 1e6])
    >>> actual = np.array([1.0009765625, np.inf, 2.0**-24, np.nan, np.inf])
    >>> measure_distance(actual, expected, np.dtype("float16"))[1]
    array([ 1., inf,  1.,  0.,  0.])
    """
    with np.errstate(all="ignore"):
        error = np.abs(actual - expected)
        ulp = error / measure_unit(expected, dtype)
        odd = ~(ulp < np.inf)
        if odd.any():
            agree = _agree(actual[odd], expected[odd], dtype)
            ulp[odd] = np.where(agree, 0.0, np.inf)
            error[odd] = np.where(agree, 0.0, np.nan_to_num(error[odd], nan=np.inf, posinf=np.inf))
    return error, ulp


def _agree(actual: Floats, expected: Floats, dtype: np.dtype[Any]) -> NDArray[np.bool_]:
    rounded = np.empty(expected.shape, dtype)
    store(rounded, expected)
    agree: NDArray[np.bool_] = (actual == rounded.astype(np.float64)) | (np.isnan(actual) & np.isnan(expected))
    return agree


MOST_ROUNDINGS = 32.0
"""The errors of careless but right kernels, in machine epsilons, as a part of the sum of the terms' sizes."""


def bound_lost(offset: Floats | float, count: int, precision: str, roundings: float = MOST_ROUNDINGS) -> Floats:
    """Return the largest rounding error of a group's mean, divided by the group's deviation.

    Parameters
    ----------
    offset : ndarray or float
        |mean| / deviation.
    count : int
        The number of values in the group; it limits `roundings`.
    precision : str
        The dtype of the calculation.
    roundings : float
        The error assumed for the mean, in machine epsilons of `precision`, relative to |mean|.
    """
    return np.asarray(min(roundings, float(count)) * get_eps(np.dtype(find_type(precision))) * offset)
