"""Which numbers are taken and given: the dtypes of input and output, and NumPy's limit of axes.

bfloat16 is no dtype of NumPy's own: what it is, and how it differs from those, is known here alone.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from normcli.errors import DataError, MissingExtraError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]
    Selected = NDArray[np.bool_]

OUTPUT_DTYPES = ("float16", "bfloat16", "float32", "float64")
"""The dtypes that a result can be asked for in."""

EXTRA = "safetensors"
"""The extra of this package that brings bfloat16, and the files that hold it."""

_BFLOAT16 = "bfloat16"

_REAL_KINDS = "biuf"
"""NumPy's kinds of dtype that hold real numbers: bool, int, unsigned, float."""

_EPS = {"float16": 2.0**-10, _BFLOAT16: 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
"""From 1 to the next number."""

_LARGEST = {
    "float16": 65504.0,
    _BFLOAT16: (2.0 - 2.0**-7) * 2.0**127,
    "float32": (2.0 - 2.0**-23) * 2.0**127,
    "float64": (2.0 - 2.0**-52) * 2.0**1023,
}
"""The largest finite number."""

_SMALLEST = {"float16": 2.0**-24, _BFLOAT16: 2.0**-133, "float32": 2.0**-149, "float64": 2.0**-1074}
"""The smallest number above 0, which is subnormal."""

_HALF_BYTES, _SHORT_BYTES = 2, 4

LARGEST_EXACT = 2**53
"""Up to this, every whole number is a float64."""

MOST_AXES = 32
"""Of NumPy's functions some take no more (its arrays take 64)."""


def is_bfloat16(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is bfloat16, which NumPy casts to and from but has no format, `finfo` or kind for."""
    return dtype.kind == "V" and dtype.name == _BFLOAT16  # the kind first: NumPy takes a while to make the name


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype holds floats."""
    return dtype.kind == "f" or is_bfloat16(dtype)


def is_short_float(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype holds floats of 24 significant bits at most."""
    return is_float(dtype) and dtype.itemsize <= _SHORT_BYTES


def is_long_float(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype holds floats that float64 may round: long doubles."""
    return dtype.kind == "f" and dtype.itemsize > 2 * _SHORT_BYTES


def is_half(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype holds floats of 2 bytes, which kernels calculate in float32."""
    return is_float(dtype) and dtype.itemsize == _HALF_BYTES


def is_long_integer(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype holds integers that float64 may round."""
    return dtype.kind in "iu" and dtype.itemsize > _SHORT_BYTES


def is_real(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype holds real numbers."""
    return dtype.kind in _REAL_KINDS or is_bfloat16(dtype)


@functools.cache  # NumPy takes a while to make the name
def get_eps(dtype: np.dtype[Any]) -> float:
    """Return the distance from 1 to the next number of an output's dtype."""
    return _EPS[dtype.name]


def get_largest(name: str) -> float:
    """Return the largest finite number of an output's dtype."""
    return _LARGEST[name]


def get_smallest(name: str) -> float:
    """Return the smallest number above 0 of an output's dtype."""
    return _SMALLEST[name]


def choose_arithmetic(dtype: np.dtype[Any]) -> Any:
    """Return what NumPy takes for the dtype that values are read as: in native order, none rounded.

    float16 becomes float32: NumPy compares halves one by one, which takes longer than all else.
    """
    if is_long_integer(dtype):
        return dtype.newbyteorder("=")
    return "float32" if is_short_float(dtype) else "float64"


def find_type(name: str) -> Any:
    """Return what NumPy takes for the dtype of a name.

    Raises
    ------
    MissingExtraError
        If NumPy has it not, and the library that has it is missing.
    """
    if name != _BFLOAT16 and not name.startswith("float8"):
        return name
    try:
        import ml_dtypes  # for those alone who ask for it: it takes a while to import
    except ImportError as error:
        raise MissingExtraError.of(name, EXTRA) from error
    return getattr(ml_dtypes, name)


def require_few_axes(count: int, name: str) -> None:
    """Raise `DataError` if a tensor has more axes than are taken."""
    if count > MOST_AXES:
        raise DataError(f"{name} has {count} axes; at most {MOST_AXES} are taken")


def require_real(dtype: np.dtype[Any], name: str) -> None:
    """Raise `DataError` unless a dtype holds real numbers."""
    if not is_real(dtype):
        if dtype.kind == "V" and dtype.itemsize <= 2 and dtype.names is None:
            raise DataError(
                f"{name} holds {dtype}, as NumPy saves float8 and bfloat16 of ml_dtypes; save .safetensors, or "
                "codes by .view(np.uint8)"
            )
        label = "Python objects" if dtype.kind == "O" else str(dtype)
        raise DataError(f"{name} holds {label}; integers, booleans and floats are taken")
