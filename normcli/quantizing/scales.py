"""One scale for each group of values, by the rule of a format, and the stored form of scales."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.errors import DataError
from normcli.quantizing.codes import decode, encode, round_quotients
from normcli.quantizing.formats import FLOAT32, ScaleRounding
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.quantizing.formats import QuantizedFormat

LEAST_POWER = 127
"""The exponents of E8M0 are from −127 to 127; a code is the exponent plus 127."""


class Scales(NamedTuple):
    """The scales of groups of values.

    Parameters
    ----------
    values : ndarray of float64
        The scales, without the scale of the whole tensor.
    is_boundary : ndarray of bool
        Whether each group's largest magnitude lies on a boundary between two scales, so that its rounding to
        float64 may have changed the scale.
    """

    values: Floats
    is_boundary: Selected


def find_tensor_scale(largest: float, row: QuantizedFormat) -> Scales:
    """Return the scale of a whole tensor: largest magnitude / (largest scale · largest code), in float32.

    `row` has to be a format whose scales have few bits (`nvfp4`).
    """
    assert row.scale is not None
    return _divide(np.array([largest]), row.scale.largest * row.grid.largest)


def find_scales(
    largest: Floats, row: QuantizedFormat, rounding: str | None, tensor_scale: float = 1.0
) -> Scales:
    """Return the scale of each group, from its largest magnitude.

    Parameters
    ----------
    largest : ndarray of float64
        The largest magnitude of each group.
    row : QuantizedFormat
    rounding : str or None
        The name of a `ScaleRounding` for scales that are powers of two; None: `floor`.
    tensor_scale : float
        The scale of the whole tensor, by which scales of nvfp4 are divided.

    Raises
    ------
    DataError
        If a scale is too large for float32 or E8M0.
    """
    if row.scale is None:
        return _find_powers(largest, row, ScaleRounding(rounding or ScaleRounding.FLOOR))
    if not row.has_tensor_scale:
        return _divide(largest, row.grid.largest)
    found = round_quotients(largest, row.grid.largest * tensor_scale, row.scale)
    return Scales(found.values, found.is_midpoint)


def _divide(largest: Floats, divisor: float) -> Scales:
    """Return largest / divisor rounded to float32, at least its smallest subnormal; 1 where `largest` is 0.

    Raises `DataError` if a quotient is too large for float32.
    """
    found = round_quotients(largest, divisor, FLOAT32)
    if found.is_saturated.any():
        raise DataError(f"a value of magnitude {float(np.max(largest)):g} has no scale in float32")
    positive = np.maximum(found.values, float(np.finfo(np.float32).smallest_subnormal))
    return Scales(np.where(largest == 0.0, 1.0, positive), found.is_midpoint)


def _find_powers(largest: Floats, row: QuantizedFormat, rounding: ScaleRounding) -> Scales:
    """Return the power of two for each group's largest magnitude, by a rule such as `ScaleRounding.FLOOR`.

    A power below 2⁻¹²⁷, also that of a group of zeros, is 2⁻¹²⁷. Raises `DataError` for one above 2¹²⁷.
    """
    part, exponents = np.frexp(largest)
    part, exponents = part * 2.0, exponents - 1 - int(np.frexp(row.grid.largest)[1] - 1)
    top: Any = np.frexp(row.grid.largest)[0] * 2.0
    raises, boundary = {
        ScaleRounding.FLOOR: (np.zeros_like(exponents), 1.0),
        ScaleRounding.CEIL: (part > 1.0, 1.0),
        ScaleRounding.RCEIL: (part > top, top),
        ScaleRounding.EVEN: (part >= 2.0 - 2.0 ** -(row.grid.digits + 1), 2.0 - 2.0 ** -(row.grid.digits + 1)),
    }[rounding]
    found = np.where(largest == 0.0, -LEAST_POWER, exponents + raises)
    if (found > LEAST_POWER).any():
        raise DataError(f"a value of magnitude {float(np.max(largest)):g} has no scale in E8M0")
    return Scales(np.ldexp(1.0, np.maximum(found, -LEAST_POWER)), part == boundary)


def encode_scales(scales: Floats, row: QuantizedFormat) -> NDArray[Any]:
    """Return scales as they are stored: float32, or the bits of E4M3 or E8M0."""
    if row.scale is None:
        return (np.frexp(scales)[1] - 1 + LEAST_POWER).astype(np.uint8)
    return encode(scales, row.scale) if row.has_tensor_scale else scales.astype(np.float32)


def decode_scales(stored: NDArray[Any], row: QuantizedFormat) -> Floats:
    """Return the numbers of stored scales in float64.

    Arrays of uint8 are bits of E8M0 or E4M3 if the format has such scales; all others are the numbers
    themselves.
    """
    if stored.dtype != np.uint8:
        return stored.astype(np.float64)
    if row.scale is None:
        return np.ldexp(1.0, stored.astype(np.int64) - LEAST_POWER)
    return decode(stored, row.scale) if row.has_tensor_scale else stored.astype(np.float64)
