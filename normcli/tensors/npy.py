"""NumPy's `.npy` format, versions 1 to 3 (https://numpy.org/neps/nep-0001-npy-format.html)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.lib import format as npy_format

from normcli.dtypes import MOST_AXES, require_real
from normcli.errors import DataError
from normcli.tensors.mapped import Region
from normcli.tensors.pieces import iterate_pieces

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAGIC = b"\x93NUMPY"


def _read_header(stream: BinaryIO, name: str) -> Region:
    """Read and check the header at the start of a stream; return where the array lies.

    Raises
    ------
    DataError
        If it is not one, or of a dtype that holds no real numbers.
    """
    try:
        version = npy_format.read_magic(stream)
        # Version 3 differs from 2 in the encoding of field names alone, and dtypes with fields are refused.
        read = npy_format.read_array_header_1_0 if version == (1, 0) else npy_format.read_array_header_2_0
        shape, fortran_order, dtype = read(stream)
    except Exception as error:  # NumPy's parser of untrusted headers raises a dozen kinds
        raise DataError(f"{name} is no readable .npy file: its header is damaged or missing") from error
    if len(shape) > MOST_AXES or any(type(n) is not int or not 0 <= n <= sys.maxsize for n in shape):
        raise DataError(f"{name} is no readable .npy file: its header claims an impossible shape")
    require_real(dtype, name)
    return Region(dtype, shape, stream.tell(), "F" if fortran_order else "C")


def read_npy(stream: BinaryIO, name: str) -> NDArray[Any]:
    """Return the array that a seekable stream holds: in memory, or as a read-only map of a large file.

    Raises
    ------
    DataError
        If the header is damaged, or claims more data than there is.
    """
    return _read_header(stream, name).load(stream, name)


def start_npy(stream: BinaryIO, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Write a header; return the room for the values, behind it, as a writable memory map in C order.

    Raises
    ------
    OSError
        If there is no room.
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
