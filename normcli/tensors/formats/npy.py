"""NumPy's `.npy` format, versions 1 to 3 (https://numpy.org/neps/nep-0001-npy-format.html)."""

from __future__ import annotations

import io
import sys
import warnings
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.lib import format as npy_format

from normcli.dtypes import require_few_axes, require_real
from normcli.errors import DataError
from normcli.tensors.mapped import Region
from normcli.tensors.pieces import iterate_pieces

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAGIC = b"\x93NUMPY"

_LONGEST_HEADER = 10_000
"""The longest header that NumPy reads, in bytes."""


def read_header(stream: BinaryIO, name: str) -> Region:
    """Read the header at the start of a stream, not a byte more; return the array's dtype, shape and offset.

    Raises
    ------
    DataError
        If there is no valid header, or it has too many axes or impossible lengths.
    """
    try:
        version = npy_format.read_magic(stream)
        # Version 3 differs from 2 in the encoding of field names alone, and dtypes with fields are refused.
        is_first = version == (1, 0)
        read = npy_format.read_array_header_1_0 if is_first else npy_format.read_array_header_2_0
        length = stream.read(2 if is_first else 4)
        size = int.from_bytes(length, "little")
        if size > _LONGEST_HEADER:  # checked before NumPy allocates memory for it
            raise ValueError(size)
        with warnings.catch_warnings(action="ignore"):  # warnings about headers by Python 2, and odd literals
            shape, fortran_order, dtype = read(io.BytesIO(length + stream.read(size)))
    except OSError:
        raise
    except Exception as error:  # NumPy's parser of untrusted headers raises a dozen kinds
        raise DataError(f"{name} is no readable .npy file: its header is damaged or missing") from error
    require_few_axes(len(shape), name)
    if any(type(n) is not int or not 0 <= n <= sys.maxsize for n in shape):
        raise DataError(f"{name} is no readable .npy file: its header claims an impossible shape")
    return Region(dtype, shape, npy_format.MAGIC_LEN + len(length) + size, "F" if fortran_order else "C")


def read_npy(stream: BinaryIO, name: str) -> NDArray[Any]:
    """Return the array that a seekable stream holds: in memory, or as a read-only map of a large file.

    Raises
    ------
    DataError
        If the header is damaged, states another size than that of the data, or a dtype of no real numbers.
    """
    region = read_header(stream, name)
    require_real(region.dtype, name)
    region.require_exact(name, stream.seek(0, io.SEEK_END) - region.offset)
    return region.load(stream, name)


def start_npy(stream: BinaryIO, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Write a header; return a writable memory map, in C order, for the values after it.

    Raises
    ------
    OSError
        If the disk has no room for the values.
    """
    _write_header(stream, shape, dtype)
    return Region(dtype, shape, stream.tell()).reserve(stream)


def write_npy(stream: BinaryIO, values: NDArray[Any]) -> None:
    """Write an array, in C order, to a stream that need not be seekable."""
    _write_header(stream, values.shape, values.dtype)
    for piece in iterate_pieces(values):
        stream.write(np.ascontiguousarray(piece).view(np.uint8).data)


def _write_header(stream: BinaryIO, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    descr = npy_format.dtype_to_descr(dtype)
    npy_format.write_array_header_1_0(stream, {"descr": descr, "fortran_order": False, "shape": shape})
