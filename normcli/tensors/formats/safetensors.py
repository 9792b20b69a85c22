"""Safetensors files (https://huggingface.co/docs/safetensors): a header in JSON, then the values as they lie.

The `safetensors` library checks that a file is sound; its header says where the tensors lie.
"""

from __future__ import annotations

import io
import json
import math
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from normcli.dtypes import EXTRA, MOST_AXES, find_type, require_few_axes
from normcli.errors import DataError, MissingExtraError
from normcli.tensors.formats.json_items import RepeatedNameError, make_object
from normcli.tensors.held_files import open_regular, refuse_changed
from normcli.tensors.mapped import Region
from normcli.tensors.tensor import choose_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

_DTYPES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "BOOL": "bool",
    "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8",
    "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8",
}  # fmt: skip
"""The names of dtypes in the format → NumPy's names."""

_LENGTH_BYTES = 8
_LONGEST_HEADER = 100_000_000
"""In bytes; the library refuses longer ones."""

_DAMAGED = "{} is no readable .safetensors file: it is damaged or cut short"

_WIDENED = {"F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2"}
"""Dtypes that float32 holds, which they are read as; the library of bfloat16 knows them by these names."""

_COMPLEX, _NAME = "C64", "safetensors"
"""Complex numbers in the format; and under what a dtype of mere bytes keeps its name there."""

_ALIGNMENT = 8
"""Headers are padded with spaces to a multiple of this many bytes, as the library pads them."""


def starts_like_safetensors(head: bytes) -> bool:
    """Whether a file that begins with these bytes has the length of a header and its opening brace there."""
    length = int.from_bytes(head[:_LENGTH_BYTES], "little")
    return length <= _LONGEST_HEADER and head[_LENGTH_BYTES : _LENGTH_BYTES + 1] == b"{"


def list_names(stream: BinaryIO) -> list[str]:
    """Return the names of the tensors of a file that nobody has checked, or raise `ValueError`."""
    return [name for name in json.loads(_read_text(stream)) if name != "__metadata__"]


def read_safetensors(stream: BinaryIO, name: str, key: str | None) -> NDArray[Any]:
    """Return one tensor of a file, the one called `key` or the only one: in memory, or as a read-only map.

    Raises
    ------
    UsageError
        If there are several tensors and no key, or none of that name.
    DataError
        If the file is damaged, or the tensor of a dtype that NumPy has not; or the library is missing.
    """
    regions = find_regions(stream, name)
    chosen = choose_key(regions, name, key)
    region = regions[chosen]
    where = f"{name}:{chosen}" if isinstance(region, str) or len(region.shape) > MOST_AXES else name
    return load_region(region, stream, where)


def start_safetensors(stream: BinaryIO, shape: tuple[int, ...], dtype: np.dtype[Any], key: str) -> NDArray[Any]:
    """Write the header of a single tensor; return the room for its values, behind it, as a writable memory map.

    Raises
    ------
    OSError
        If there is no room.
    """
    return _write_header(stream, key, shape, dtype).reserve(stream)


def write_safetensors(stream: BinaryIO, key: str, values: NDArray[Any]) -> None:
    """Write a single tensor under a name."""
    region = _write_header(stream, key, values.shape, values.dtype)
    _write_values(stream, values, region.dtype)


def write_named(stream: BinaryIO, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write tensors under their names, the widest dtypes first, so that each lies where its dtype wants it.

    As `safetensors.torch` does, it says that they are of PyTorch, which some readers ask for.
    """
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    widest_first = sorted(arrays.items(), key=lambda item: -item[1].dtype.itemsize)
    end = 0
    for key, values in widest_first:
        header[key] = _describe(values.shape, values.dtype, end)
        end += values.nbytes
    _write_text(stream, header)
    for _, values in widest_first:
        _write_values(stream, values, values.dtype.newbyteorder("<"))


def _write_values(stream: BinaryIO, values: NDArray[Any], dtype: np.dtype[Any]) -> None:
    stream.write(np.asarray(values, dtype, order="C").reshape(-1).view(np.uint8).data)


def _write_header(stream: BinaryIO, key: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Region:
    """Write the header of a single tensor; return where its values are to go."""
    offset = _write_text(stream, {key: _describe(shape, dtype, 0)})
    return Region(dtype.newbyteorder("<"), shape, offset)


def _describe(shape: tuple[int, ...], dtype: np.dtype[Any], start: int) -> dict[str, Any]:
    """Return the header's entry of a tensor; offsets count from the end of the header."""
    end = start + math.prod(shape) * dtype.itemsize
    return {"dtype": name_dtype(dtype), "shape": shape, "data_offsets": [start, end]}


def name_dtype(dtype: np.dtype[Any]) -> str:
    """Return the format's name of a dtype, or raise `DataError` if it has none."""
    if dtype.metadata is not None and _NAME in dtype.metadata:
        return str(dtype.metadata[_NAME])
    known = {**_DTYPES, _COMPLEX: "complex64"}
    name = next((name for name, other in known.items() if other == dtype.name), None)
    if name is None:
        raise DataError(f"safetensors has no {dtype}")
    return name


def _write_text(stream: BinaryIO, members: Mapping[str, Any]) -> int:
    """Write a header; return its length in bytes, the 8 bytes of the length field included."""
    return stream.write(format_header(members))


def format_header(members: Mapping[str, Any], least: int = 0) -> bytes:
    """Return a header behind its length, in `least` bytes or more."""
    header = json.dumps(members).encode()
    size = max(len(header), least - _LENGTH_BYTES)
    size += -size % _ALIGNMENT
    return size.to_bytes(_LENGTH_BYTES, "little") + header.ljust(size)


def read_metadata(path: str) -> dict[str, str]:
    """Return the texts that a file has beside its tensors, by their names.

    Raises
    ------
    DataError
        If it cannot be read, or is no such file.
    """
    try:
        with open_regular(path) as stream:
            header = json.loads(_read_text(stream))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or 'I/O error'}") from error
    except (ValueError, RecursionError) as error:
        raise DataError(_DAMAGED.format(path)) from error
    texts = header.get("__metadata__", {}) if isinstance(header, dict) else None
    if not isinstance(texts, dict):
        raise DataError(_DAMAGED.format(path))
    return {name: text for name, text in texts.items() if isinstance(text, str)}


def _read_text(stream: BinaryIO) -> bytes:
    """Return the header as it stands."""
    length = int.from_bytes(stream.read(_LENGTH_BYTES), "little")
    return stream.read(min(length, _LONGEST_HEADER))


def find_regions(stream: BinaryIO, name: str) -> dict[str, Region | str]:
    """Return where each tensor lies, after the library has found no fault in the file; or a dtype not taken.

    Raises
    ------
    DataError
        If the file is damaged, or the library is missing.
    """
    _validate(stream, name)
    stream.seek(0)
    length = int.from_bytes(stream.read(_LENGTH_BYTES), "little")
    try:
        text = stream.read(min(length, _LONGEST_HEADER))
        header: dict[str, Mapping[str, Any]] = json.loads(text, object_pairs_hook=make_object)
    except RepeatedNameError as error:  # of which the library takes the last
        raise DataError(f"{name} is damaged: its header {error}") from error
    except ValueError:  # another file than the one that was checked
        refuse_changed(name)
    header.pop("__metadata__", None)
    return {key: _read_region(entry, _LENGTH_BYTES + length) for key, entry in header.items()}


def load_opaque(path: str, key: str) -> NDArray[Any]:
    """Return a tensor of a dtype that is not calculated with, as it lies in a file that was read before.

    Its dtype is complex, or bytes that know their name in the format: `write_named` writes them as they were.
    """
    with open_regular(path) as stream:
        text = _read_text(stream)
        entry = json.loads(text)[key]
        first, end = entry["data_offsets"]
        stream.seek(_LENGTH_BYTES + len(text) + first)
        name, shape = entry["dtype"], entry["shape"]
        size = (end - first) // max(1, math.prod(shape))
        dtype = np.dtype("<c8") if name == _COMPLEX else np.dtype(f"V{size}", metadata={_NAME: name})
        return np.frombuffer(stream.read(end - first), dtype).reshape(shape)


def _read_region(entry: Mapping[str, Any], start: int) -> Region | str:
    known = {**_DTYPES, **_WIDENED}
    if entry["dtype"] not in known:
        return str(entry["dtype"])
    dtype = np.dtype(find_type(known[entry["dtype"]])).newbyteorder("<")
    return Region(dtype, tuple(entry["shape"]), start + entry["data_offsets"][0])


def load_region(region: Region | str, stream: BinaryIO, name: str) -> NDArray[Any]:
    """Return the tensor of a region: in memory, or as a read-only map; 8-bit floats as float32.

    Raises
    ------
    DataError
        If it is of a dtype or has axes that are not taken, or the file is cut short.
    """
    if isinstance(region, str):
        raise DataError(f"{name} holds {region}; {', '.join((*_DTYPES, *_WIDENED))} are taken")
    require_few_axes(len(region.shape), name)
    values = region.load(stream, name)
    is_eight_bits = values.dtype.itemsize == 1 and values.dtype.kind not in "biu"
    return values.astype(np.float32) if is_eight_bits else values


def _validate(stream: BinaryIO, name: str) -> None:
    try:
        from safetensors import deserialize, safe_open
    except ImportError as error:
        raise MissingExtraError.of(name, EXTRA) from error
    try:
        if isinstance(stream, io.BytesIO):
            deserialize(stream.getvalue())
            return
        # By its descriptor: by now another file may have its name, or it may have none.
        with safe_open(f"/dev/fd/{stream.fileno()}", framework="numpy"):
            pass
    except Exception as error:  # besides the library's own, damaged bytes raise many kinds
        raise DataError(_DAMAGED.format(name)) from error
