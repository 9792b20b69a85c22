"""Quotients rounded once to a format's numbers: the nearest, of two the even one, at most the largest.

A midpoint between two numbers times a divisor is exact in float64, as both have few bits. So an exact value
lies on the same side of such a product as its own rounding to float64; only where the rounded value equals the
product, the side is open. A divisor of more bits, such as 1 / scale, may round a quotient to a midpoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.errors import DataError
from normcli.numerics.workspace import Workspace
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.quantizing.formats import NumberGrid, QuantizedFormat


class GridNumbers(NamedTuple):
    """Quotients rounded to the numbers of a grid.

    Parameters
    ----------
    values : ndarray of float64
        The rounded quotients, with their signs.
    is_midpoint : ndarray of bool
        Whether each quotient is halfway between two numbers of the grid.
    is_saturated : ndarray of bool
        Whether each quotient, rounded without a limit, is larger than the largest number of the grid.
    """

    values: Floats
    is_midpoint: Selected
    is_saturated: Selected


def round_quotients(
    values: Floats, divisor: Any, grid: NumberGrid, work: Workspace | None = None
) -> GridNumbers:
    """Return values / divisor, rounded once to the numbers of a grid: to nearest, halves to even.

    Parameters
    ----------
    values : ndarray of float64
        The values, none of them NaN.
    divisor : float or ndarray
        The positive divisor, which broadcasts against the values. With at most 32 bits its product with a
        midpoint is exact in float64, and the result too; with more, of exact midpoints only nearly.
    grid : NumberGrid
    work : Workspace or None
        The memory for the result, which is valid until it is used again; None: new memory.
    """
    work, shape = work or Workspace(), values.shape
    sizes = np.abs(values, out=work.get("sizes", shape))
    quotients = np.divide(sizes, divisor, out=work.get("quotients", shape))
    units = find_units(quotients, grid, work)
    shift = np.multiply(units, _SHIFT, out=work.get("shift", shape))
    nearest = np.add(quotients, shift, out=work.get("nearest", shape))
    nearest -= shift
    gap = np.subtract(nearest, quotients, out=shift)
    np.abs(gap, out=gap)
    gap += gap
    is_midpoint = gap == units
    if is_midpoint.any():  # perhaps only as the quotient was rounded, by a divisor of many bits
        with np.errstate(invalid="ignore"):  # inf · 0, for an infinite divisor, is no midpoint
            rest = np.where(is_midpoint, sizes - quotients * divisor, 0.0)
        moved = np.nextafter(quotients, np.copysign(np.inf, rest))
        nearest = np.where(rest == 0.0, nearest, (moved + units * _SHIFT) - units * _SHIFT)
        is_midpoint &= rest == 0.0
    is_saturated = nearest > grid.largest
    np.minimum(nearest, grid.largest, out=nearest)
    return GridNumbers(np.copysign(nearest, values, out=nearest), is_midpoint, is_saturated)


_SHIFT = 2.0**52
"""The float64 from which on all are whole: adding as many units rounds to units, halves to even."""


def find_units(sizes: Floats, grid: NumberGrid, work: Workspace | None = None) -> Floats:
    """Return the distance between neighbouring numbers of a grid (its ulp) at each of some magnitudes ≥ 0.

    The result lies in the memory of `work` if it is given, and is valid until that is used again.
    """
    units: Floats = (work or Workspace()).get("units", sizes.shape)
    if grid.is_integer:
        units[...] = 1.0
        return units
    np.bitwise_and(sizes.view(np.int64), _EXPONENT, out=units.view(np.int64))
    np.maximum(units, 2.0**grid.least, out=units)
    units *= 2.0**-grid.digits
    return units


_EXPONENT = 0x7FF << 52
"""The bits of a double's exponent: alone they are the power of two below it."""


def encode(values: Floats, grid: NumberGrid, work: Workspace | None = None) -> NDArray[Any]:
    """Return the codes of numbers: int8 for an integer grid, otherwise sign, exponent and digits as uint8.

    The values must be numbers of the grid, as `round_quotients` returns them, and not NaN: they are not rounded
    here. `work` lends memory for the calculation; the result does not lie in it.

    Examples
    --------
    >>> from normcli.quantizing.formats import E4M3
    >>> encode(np.array([448.0, -1.0, 2.0**-9]), E4M3).tolist()
    [126, 184, 1]
    """
    if grid.is_integer:
        return values.astype(np.int8)
    as_double: Floats = np.abs(values, out=(work or Workspace()).get("units", values.shape))
    as_double *= 2.0 ** (_LEAST_OF_DOUBLES - grid.least)  # its subnormals are then those of the grid
    steps = as_double.view(np.int64)
    steps >>= _DIGITS_OF_DOUBLES - grid.digits
    codes = steps.astype(np.uint8)
    return codes | (np.signbit(values).view(np.uint8) << grid.sign_place).astype(np.uint8)


_DIGITS_OF_DOUBLES, _LEAST_OF_DOUBLES = 52, -1022


def decode(codes: NDArray[Any], grid: NumberGrid) -> Floats:
    """Return the numbers of codes in float64; NaN for bits that are no finite number of a float format.

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


def read_codes(codes: NDArray[Any], shape: tuple[int, ...], row: QuantizedFormat) -> Floats:
    """Return the numbers that codes in a format `row` stand for, in float64 and of the tensor's shape.

    Raises
    ------
    DataError
        If they have another shape than the tensor, or are numbers that the format does not have.
    """
    grid = row.grid
    if codes.dtype == np.uint8 and not grid.is_integer:
        if grid.sign_place < 4 and shape and codes.shape == (*shape[:-1], shape[-1] // 2):
            codes = np.stack([codes & 15, codes >> 4], axis=-1).reshape(shape)
        numbers = decode(codes, grid)
    else:
        numbers = codes.astype(np.float64)
    if numbers.shape != shape:
        raise DataError(f"codes have the shape {codes.shape}, not {shape}")
    if codes.dtype != np.uint8 or grid.is_integer:
        _require_codes(numbers, codes.dtype, row)
    return numbers


def _require_codes(numbers: Floats, dtype: np.dtype[Any], row: QuantizedFormat) -> None:
    """Raise `DataError` unless the format has a code for each number; `dtype` is theirs, for the message.

    −128 of int8, and NaN and infinities of 8-bit floats, are accepted, though exact codes never are these.
    """
    grid, is_finite = row.grid, np.isfinite(numbers)
    right = round_quotients(np.where(is_finite, numbers, 0.0), 1.0, grid).values == numbers
    if grid.is_integer:
        right |= numbers == -grid.largest - 1.0
    elif grid.sign_place == _SIGN_OF_EIGHT_BITS:
        right |= ~is_finite
    if not right.all():
        wrong = numbers[~right].reshape(-1)[0]
        raise DataError(
            f"--actual holds {dtype} numbers that are no {row.name} codes, such as {wrong:g}"
            + ("" if dtype.kind in "biu" else "; is it the result before quantizing?")
        )


_SIGN_OF_EIGHT_BITS = 7
"""The number of the sign's bit in a code of 8 bits, from 0."""
