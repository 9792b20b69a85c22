"""The dtypes that input and output may have, their limits, and the most axes of a tensor.

bfloat16 is no dtype of NumPy's own: only this module knows how it differs from those that are.
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
"""The names of the dtypes that a result can have."""

EXTRA = "safetensors"
"""The extra of this package that installs `ml_dtypes`, for bfloat16, and `safetensors`."""

_BFLOAT16 = "bfloat16"

_REAL_KINDS = "biuf"
"""NumPy's kinds of dtypes of real numbers: bool, int, unsigned int, float."""

_EPS = {"float16": 2.0**-10, _BFLOAT16: 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
"""Output dtype → the distance from 1 to the next number."""

_LARGEST = {
    "float16": 65504.0,
    _BFLOAT16: (2.0 - 2.0**-7) * 2.0**127,
    "float32": (2.0 - 2.0**-23) * 2.0**127,
    "float64": (2.0 - 2.0**-52) * 2.0**1023,
}
"""Output dtype → its largest finite number."""

_SMALLEST = {"float16": 2.0**-24, _BFLOAT16: 2.0**-133, "float32": 2.0**-149, "float64": 2.0**-1074}
"""Output dtype → its smallest number above 0, which is subnormal."""

_HALF_BYTES, _SHORT_BYTES = 2, 4

LARGEST_EXACT = 2**53
"""The number up to which every whole number is a float64."""

MOST_AXES = 32
"""The most axes of a tensor: some of NumPy's functions take no more, although its arrays have up to 64."""


def is_bfloat16(dtype: np.dtype[Any]) -> bool:
    """Whether a dtype is bfloat16, which NumPy can cast, but has no `finfo` and no kind of its own for."""
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
    """Return the distance from 1 to the next number of an output's dtype; `KeyError` for other dtypes."""
    return _EPS[dtype.name]


def get_largest(name: str) -> float:
    """Return the largest finite number of an output's dtype, given its name; `KeyError` for other names."""
    return _LARGEST[name]


def get_smallest(name: str) -> float:
    """Return the smallest number above 0 of an output's dtype, given its name; `KeyError` for other names."""
    return _SMALLEST[name]


def choose_arithmetic(dtype: np.dtype[Any]) -> Any:
    """Return the dtype in which values of a dtype are read for arithmetic, as NumPy takes it.

    It is float32 for short floats, float64 for other floats and for short integers, and for long integers their
    own dtype in native byte order. Only long doubles are rounded by it. float16 becomes float32 as NumPy
    compares halves one by one, which is slow.
    """
    if is_long_integer(dtype):
        return dtype.newbyteorder("=")
    return "float32" if is_short_float(dtype) else "float64"


def find_type(name: str) -> Any:
    """Return the dtype called `name`, as NumPy takes it: the name itself, or a type of `ml_dtypes`.

    Raises
    ------
    MissingExtraError
        If the name is bfloat16 or an 8-bit float, and `ml_dtypes` is not installed.
    """
    if name != _BFLOAT16 and not name.startswith("float8"):
        return name
    try:
        import ml_dtypes  # on use: it takes a while to import
    except ImportError as error:
        raise MissingExtraError.of(name, EXTRA) from error
    return getattr(ml_dtypes, name)


def require_few_axes(count: int, name: str) -> None:
    """Raise `DataError` if `count`, the number of axes of a tensor called `name`, is beyond `MOST_AXES`."""
    if count > MOST_AXES:
        raise DataError(f"{name} has {count} axes; at most {MOST_AXES} are taken")


def require_real(dtype: np.dtype[Any], name: str) -> None:
    """Raise `DataError` if a dtype is none of real numbers; `name` is what has it, for the message."""
    if not is_real(dtype):
        if dtype.kind == "V" and dtype.itemsize <= 2 and dtype.names is None:
            raise DataError(
                f"{name} holds {dtype}, as NumPy saves float8 and bfloat16 of ml_dtypes; save .safetensors, or "
                "codes by .view(np.uint8)"
            )
        label = "Python objects" if dtype.kind == "O" else str(dtype)
        raise DataError(f"{name} holds {label}; integers, booleans and floats are taken")
