"""Safetensors files (https://huggingface.co/docs/safetensors): a header in JSON, then the values as they lie.

The `safetensors` library judges a file; where its tensors lie, the header says.
"""

from __future__ import annotations

import io
import json
import math
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np

from normcli.dtypes import EXTRA, find_type
from normcli.errors import DataError, MissingExtraError
from normcli.tensors import mapped
from normcli.tensors.tensor import choose_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

_DTYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "BOOL": "bool",
    "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8",
    "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8",
}  # fmt: skip
"""What the format calls dtypes → their names."""

_LENGTH_BYTES = 8
_LONGEST_HEADER = 100_000_000
"""The library takes no longer one."""

_ALIGNMENT = 8
"""Headers are filled up with spaces to a multiple of this, as the library does."""


class Entry(NamedTuple):
    """A tensor of a file: its dtype and shape, and where its values start, in bytes."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int

    @property
    def byte_count(self) -> int:
        """The size of the values, in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


def starts_like_safetensors(head: bytes) -> bool:
    """Whether first bytes are the length of a header and its brace."""
    length = int.from_bytes(head[:_LENGTH_BYTES], "little")
    return length <= _LONGEST_HEADER and head[_LENGTH_BYTES : _LENGTH_BYTES + 1] == b"{"


def read_safetensors(stream: BinaryIO, name: str, key: str | None) -> NDArray[Any]:
    """Read one tensor of a file: the one called `key`, or the only one.

    Raises
    ------
    UsageError
        If there are several tensors and no key, or none of that name.
    DataError
        If the file is damaged, or the tensor of a dtype that NumPy has not; or the library is missing.
    """
    entry = _find_entry(stream, name, key)
    try:
        values = np.empty(entry.shape, entry.dtype)
    except MemoryError as error:
        raise DataError(f"{name} of {entry.byte_count} bytes does not fit into memory") from error
    stream.seek(entry.offset)
    stream.readinto(values.reshape(-1).view(np.uint8))  # type: ignore[attr-defined]  # every seekable stream has it
    return values


def map_safetensors(stream: BinaryIO, name: str, key: str | None) -> NDArray[Any] | None:
    """Return a large tensor of a file as a read-only memory map, or None where it is small enough to be read.

    Raises
    ------
    NormError
        As `read_safetensors`.
    """
    entry = _find_entry(stream, name, key)
    if entry.byte_count < mapped.SMALLEST_MAPPED:
        return None
    return mapped.map_array(stream, entry.dtype, "r", entry.offset, entry.shape)


def start_safetensors(stream: BinaryIO, key: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Write the header of a single tensor, reserve the room behind it, and return that as a writable map.

    Raises
    ------
    OSError
        If there is no room.
    """
    entry = _write_header(stream, key, shape, dtype)
    return mapped.make_mapped(stream, entry.dtype, entry.offset, shape)


def write_safetensors(stream: BinaryIO, key: str, values: NDArray[Any]) -> None:
    """Write a single tensor under a name."""
    entry = _write_header(stream, key, values.shape, values.dtype)
    stream.write(np.asarray(values, entry.dtype, order="C").reshape(-1).view(np.uint8).data)


def _write_header(stream: BinaryIO, key: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Entry:
    name = next(name for name, other in _DTYPES.items() if other == dtype.name)
    size = math.prod(shape) * dtype.itemsize
    header = json.dumps({key: {"dtype": name, "shape": shape, "data_offsets": [0, size]}}).encode()
    header += b" " * (-len(header) % _ALIGNMENT)
    stream.write(len(header).to_bytes(_LENGTH_BYTES, "little") + header)
    return Entry(dtype.newbyteorder("<"), shape, _LENGTH_BYTES + len(header))


def _find_entry(stream: BinaryIO, name: str, key: str | None) -> Entry:
    """Return what the header says of a tensor, once the library has found the file sound."""
    _validate(stream, name)
    stream.seek(0)
    length = int.from_bytes(stream.read(_LENGTH_BYTES), "little")
    header: dict[str, Mapping[str, Any]] = json.loads(stream.read(length))
    header.pop("__metadata__", None)
    chosen = choose_key(header, name, key)
    told = header[chosen]
    if told["dtype"] not in _DTYPES:
        raise DataError(f"{name}:{chosen} holds {told['dtype']}; {', '.join(_DTYPES)} are taken")
    offset = _LENGTH_BYTES + length + told["data_offsets"][0]
    dtype = np.dtype(find_type(_DTYPES[told["dtype"]])).newbyteorder("<")
    return Entry(dtype, tuple(told["shape"]), offset)


def _validate(stream: BinaryIO, name: str) -> None:
    try:
        from safetensors import deserialize, safe_open
    except ImportError as error:
        raise MissingExtraError(name, EXTRA) from error
    try:
        if isinstance(stream, io.BytesIO):
            deserialize(stream.getvalue())
            return
        # By its number: the file that is open, whatever has its name by now, if it has one.
        with safe_open(f"/dev/fd/{stream.fileno()}", framework="numpy"):
            pass
    except Exception as error:  # the library's own kind, and whatever else damaged bytes break
        raise DataError(f"{name} is no readable .safetensors file: it is damaged or cut short") from error
