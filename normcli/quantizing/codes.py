"""Quotients rounded once onto a format's grid: the nearest number, of two the even one, at most the largest.

A midpoint of a grid times a divisor is a double, as both have few bits. So a value that is no such product
is on the same side of it as its own rounding to float64, and only where the two are equal is anything left to
ask.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.quantizing.formats import NumberGrid


class GridNumbers(NamedTuple):
    """Quotients on a grid.

    Parameters
    ----------
    values : ndarray of float64
        The numbers of the grid, with their signs.
    is_midpoint : ndarray of bool
        Where the quotient is halfway between two numbers of the grid.
    is_saturated : ndarray of bool
        Where the nearest multiple of a unit is beyond the largest number.
    """

    values: Floats
    is_midpoint: Selected
    is_saturated: Selected


def round_quotients(values: Floats, divisor: Any, grid: NumberGrid) -> GridNumbers:
    """Return values / divisor, rounded once to the numbers of a grid.

    Parameters
    ----------
    values : ndarray of float64
        Not NaN.
    divisor : float or ndarray
        Positive, of at most 32 bits, so that its product with a midpoint is a double; it broadcasts.
    grid : NumberGrid
    """
    quotients = np.abs(values) / divisor
    units = find_units(quotients, grid)
    steps = quotients / units
    is_midpoint = steps - np.floor(steps) == 0.5
    if is_midpoint.any():  # by a quotient that was rounded, perhaps
        rest = np.abs(values) - quotients * divisor
        steps = np.where(is_midpoint & (rest != 0.0), np.nextafter(steps, np.copysign(np.inf, rest)), steps)
        is_midpoint &= rest == 0.0
    nearest = np.rint(steps) * units
    found = np.minimum(nearest, grid.largest)
    return GridNumbers(np.copysign(found, values), is_midpoint, nearest > grid.largest)


def find_units(sizes: Floats, grid: NumberGrid) -> Floats:
    """Return the distance of a grid's numbers at some sizes."""
    if grid.is_integer:
        return np.ones_like(sizes)
    return np.ldexp(1.0, _find_exponents(sizes, grid) - grid.digits)


def _find_exponents(sizes: Floats, grid: NumberGrid) -> NDArray[np.int32]:
    """Return the exponents that sizes have on a grid: those of subnormals and of 0 are the least."""
    return np.where(sizes == 0.0, grid.least, np.maximum(np.frexp(sizes)[1] - 1, grid.least))


def encode(values: Floats, grid: NumberGrid) -> NDArray[Any]:
    """Return the codes of numbers of a grid: int8 of integers, else sign, exponent and digits as uint8.

    Examples
    --------
    >>> from normcli.quantizing.formats import E4M3
    >>> encode(np.array([448.0, -1.0, 2.0**-9]), E4M3).tolist()
    [126, 184, 1]
    """
    if grid.is_integer:
        return values.astype(np.int8)
    sizes = np.abs(values)
    exponents = _find_exponents(sizes, grid)
    steps = np.ldexp(sizes, grid.digits - exponents).astype(np.int64)
    bits = ((exponents - grid.least).astype(np.int64) << grid.digits) + steps
    return (bits | (np.signbit(values).astype(np.int64) << grid.sign_place)).astype(np.uint8)


def decode(codes: NDArray[Any], grid: NumberGrid) -> Floats:
    """Return the numbers of codes: integers themselves, floats by their bits; NaN where the bits are no number.

    Examples
    --------
    >>> from normcli.quantizing.formats import E4M3
    >>> decode(np.array([126, 184, 1], np.uint8), E4M3).tolist()
    [448.0, -1.0, 0.001953125]
    """
    if grid.is_integer:
        return codes.astype(np.float64)
    size = 1 << grid.sign_place
    steps = np.arange(size)
    exponents, digits = steps >> grid.digits, steps & ((1 << grid.digits) - 1)
    leading = np.where(exponents > 0, 1 << grid.digits, 0)
    numbers = np.ldexp(
        (digits + leading).astype(np.float64), np.maximum(exponents - 1, 0) + grid.least - grid.digits
    )
    numbers[numbers > grid.largest] = np.nan
    found: Floats = np.concatenate([numbers, -numbers])[codes.astype(np.intp) & (2 * size - 1)]
    return found
