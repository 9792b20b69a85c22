"""Numbers as people read them: aligned cells, statistics, and exact full precision."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import is_float

if TYPE_CHECKING:
    from numpy.typing import NDArray

STATISTIC_DIGITS = 8
"""The default number of significant digits of statistics: float32's seven and one to spare."""

CELL_DIGITS = 5
"""The default number of significant digits of the largest value in a matrix; all values have its decimals."""

_SMALLEST_FIXED = -5
"""Below 10 to this power a matrix is set in scientific notation."""


def format_statistic(value: float, digits: int | None) -> str:
    """Return a statistic with `digits` significant digits (None: 8): `6.1005859`.

    Examples
    --------
    >>> format_statistic(9.0458984375, None), format_statistic(5.0, None)
    ('9.0458984', '5')
    """
    return _drop_sign_of_zero(f"{value:.{digits or STATISTIC_DIGITS}g}")


def format_cells(values: NDArray[Any], digits: int | None) -> list[str]:
    """Return values as strings of one width that align on the decimal point.

    Parameters
    ----------
    values : ndarray
        Any shape; the strings are in C order.
    digits : int or None
        Significant digits of each value. None: the largest value has five, and all have its decimals; if it is
        very large or small, they are in scientific notation. Integers, and floats that are all small whole
        numbers, have no decimals.

    Examples
    --------
    >>> format_cells(np.array([1.5, -0.2512]), 3)
    [' 1.50 ', '-0.251']
    >>> format_cells(np.array([1.5, -0.2512]), None)
    [' 1.5000', '-0.2512']
    >>> format_cells(np.array([3.0, 10.0]), None)
    [' 3', '10']
    """
    flat = np.asarray(values).reshape(-1)
    specification = _choose_format(flat, digits)
    texts = [_drop_sign_of_zero(format(value, specification)) for value in flat.tolist()]
    if specification.startswith("#"):
        texts = _align_points(texts)
    width = max(map(len, texts), default=0)
    return [text.rjust(width) for text in texts]


def _align_points(texts: list[str]) -> list[str]:
    """Return numbers padded with blanks on both sides, so that their decimal points are in one column."""
    written = [text.replace(".e", "e").removesuffix(".") for text in texts]
    parts = [re.fullmatch(r"(-?\d+)(.*)", text) for text in written]
    before, behind = (max((len(part[i]) for part in parts if part), default=0) for i in (1, 2))
    return [
        text if part is None else part[1].rjust(before) + part[2].ljust(behind)  # None: not finite
        for text, part in zip(written, parts, strict=True)
    ]


def format_shape(shape: tuple[int, ...]) -> str:
    """Return a shape as Python writes a tuple."""
    return str(tuple(shape))


def _choose_format(flat: NDArray[Any], digits: int | None) -> str:
    """Return the format specification for all values: for integers, fixed or scientific notation.

    `digits` are the significant digits of each value; None: the largest value has five.
    """
    if not is_float(flat.dtype):
        return "d"
    with np.errstate(invalid="ignore"):  # a signalling NaN is one like any other
        finite = flat[np.isfinite(flat)].astype(np.float64)
    largest = float(np.abs(finite).max(initial=0.0))
    if largest < 10.0 ** (digits or CELL_DIGITS) and (finite == np.round(finite)).all():
        return ".0f"
    if digits is not None:
        return f"#.{digits}g"
    digits = CELL_DIGITS
    exponent = math.floor(math.log10(largest)) if largest else 0
    if not _SMALLEST_FIXED < exponent < digits + 1:
        return f".{digits - 1}e"
    return f".{max(0, digits - 1 - exponent)}f"


def _drop_sign_of_zero(text: str) -> str:
    return text[1:] if text.startswith("-") and not text.strip("-0.e+") else text
