"""NumPy's `.npy` format, versions 1 to 3 (https://numpy.org/neps/nep-0001-npy-format.html)."""

from __future__ import annotations

import io
import math
import sys
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, NamedTuple

import numpy as np
from numpy.lib import format as npy_format

from normcli.dtypes import MOST_AXES, require_real
from normcli.errors import DataError
from normcli.tensors import mapped
from normcli.tensors.pieces import iterate_pieces

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAGIC = b"\x93NUMPY"


class Header(NamedTuple):
    """What an `.npy` file says of its data.

    Parameters
    ----------
    shape : tuple of int
    fortran_order : bool
    dtype : numpy.dtype
    offset : int
        Where the data start, in bytes.
    """

    shape: tuple[int, ...]
    fortran_order: bool
    dtype: np.dtype[Any]
    offset: int

    @property
    def byte_count(self) -> int:
        """The size of the data, in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_header(stream: BinaryIO, name: str) -> Header:
    """Read and check the header at the start of a stream.

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
    return Header(shape, fortran_order, dtype, stream.tell())


def read_npy(stream: BinaryIO, name: str) -> NDArray[Any]:
    """Read the array that a seekable stream holds.

    Raises
    ------
    DataError
        If the header is damaged, or claims more data than there is.
    """
    header = read_header(stream, name)
    available = stream.seek(0, io.SEEK_END) - header.offset
    if available < header.byte_count:
        raise DataError(
            f"{name} is cut short: its header says {header.shape} {header.dtype}, "
            f"{header.byte_count} bytes; {available} are there"
        )
    stream.seek(header.offset)
    try:
        values = np.empty(math.prod(header.shape), dtype=header.dtype)
    except MemoryError as error:
        raise DataError(f"{name} of {header.byte_count} bytes does not fit into memory") from error
    stream.readinto(values.view(np.uint8))  # type: ignore[attr-defined]  # every seekable binary stream has it
    try:
        return values.reshape(header.shape, order="F" if header.fortran_order else "C")
    except ValueError as error:  # (2**62, 0, 16): no values, and yet beyond what NumPy can index
        raise DataError(f"{name} has the shape {header.shape}, which NumPy cannot hold") from error


def map_npy(stream: BinaryIO, name: str) -> NDArray[Any] | None:
    """Return the array of a large file as a read-only memory map, or None where it is small enough to be read.

    Raises
    ------
    DataError
        As `read_npy`.
    """
    header = read_header(stream, name)
    available = stream.seek(0, io.SEEK_END) - header.offset
    if not mapped.SMALLEST_MAPPED <= header.byte_count <= available:
        return None
    order: Literal["C", "F"] = "F" if header.fortran_order else "C"
    return mapped.map_array(stream, header.dtype, "r", header.offset, header.shape, order)


def start_npy(stream: BinaryIO, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Write a header, reserve the room behind it, and return that as a writable memory map in C order.

    Raises
    ------
    OSError
        If there is no room.
    """
    descr = npy_format.dtype_to_descr(dtype)
    npy_format.write_array_header_1_0(stream, {"descr": descr, "fortran_order": False, "shape": shape})
    return mapped.make_mapped(stream, dtype, stream.tell(), shape)


def write_npy(stream: BinaryIO, values: NDArray[Any]) -> None:
    """Write an array, in C order, to a stream that need not be seekable."""
    descr = npy_format.dtype_to_descr(values.dtype)
    npy_format.write_array_header_1_0(stream, {"descr": descr, "fortran_order": False, "shape": values.shape})
    for piece in iterate_pieces(values):
        stream.write(np.ascontiguousarray(piece).view(np.uint8).data)
