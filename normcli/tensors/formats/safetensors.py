"""Safetensors files (https://huggingface.co/docs/safetensors): a header in JSON, then the bytes of the tensors.

The `safetensors` library checks that a file is sound; the offsets of tensors are read from the header.
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
"""The longest header in bytes; the library refuses longer ones."""

_DAMAGED = "{} is no readable .safetensors file: it is damaged or cut short"

_WIDENED = {"F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2"}
"""8-bit floats in the format → their names in `ml_dtypes`; they are read as float32."""

_COMPLEX, _NAME = "C64", "safetensors"
"""The format's name of complex64; and the metadata key under which a dtype of raw bytes keeps such a name."""

_ALIGNMENT = 8
"""The number of bytes to a multiple of which headers are padded with spaces, as by the library."""


_OF_TORCH = {"format": "pt"}
"""The metadata in the header of files from `safetensors.torch`."""


def starts_like_safetensors(head: bytes) -> bool:
    """Whether a file's first bytes look like safetensors: a plausible header length, then an opening brace."""
    length = int.from_bytes(head[:_LENGTH_BYTES], "little")
    return length <= _LONGEST_HEADER and head[_LENGTH_BYTES : _LENGTH_BYTES + 1] == b"{"


def list_names(stream: BinaryIO) -> list[str]:
    """Return the names of the tensors in a file, without a check of the file.

    Raises `ValueError` if the header is no JSON.
    """
    return [name for name in json.loads(_read_text(stream)) if name != "__metadata__"]


def read_safetensors(stream: BinaryIO, name: str, key: str | None, *, takes_any: bool = False) -> NDArray[Any]:
    """Return one tensor of a file: the one called `key`, or if that is None the only one.

    It is in memory, or a read-only memory map if it is large. 8-bit floats become float32.

    Parameters
    ----------
    stream : BinaryIO
        A seekable stream.
    name : str
        The file's name in messages.
    key : str or None
    takes_any : bool
        Whether complex64 is read too, and any other dtype as raw bytes (such as `V2`). The metadata of their
        dtype have the format's name, so that `write_named` can write the tensor unchanged.

    Raises
    ------
    UsageError
        If there are several tensors and no key, or no tensor called `key`.
    DataError
        If the file is damaged, or the tensor is of a dtype that is not read.
    MissingExtraError
        If the library `safetensors` is missing.
    """
    regions = find_regions(stream, name)
    chosen = choose_key(regions, name, key)
    region = regions[chosen]
    where = f"{name}:{chosen}" if isinstance(region, str) or len(region.shape) > MOST_AXES else name
    if takes_any and isinstance(region, str) and (opaque := _find_opaque(stream, chosen)) is not None:
        return opaque.read(stream, where)
    return load_region(region, stream, where)


def start_safetensors(stream: BinaryIO, shape: tuple[int, ...], dtype: np.dtype[Any], key: str) -> NDArray[Any]:
    """Write the header of a single tensor called `key`; return a writable memory map for the values after it.

    Raises
    ------
    DataError
        If the format does not have the dtype.
    OSError
        If the disk has no room for the values.
    """
    offset = stream.write(format_header({key: _describe(shape, dtype, 0)}))
    return Region(dtype.newbyteorder("<"), shape, offset).reserve(stream)


def write_named(
    stream: BinaryIO, arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, str] | None = _OF_TORCH
) -> None:
    """Write tensors under their names, the widest dtypes first, so that all values are aligned.

    By default the header has the metadata of `safetensors.torch`, which some readers require; None: without.

    Raises
    ------
    DataError
        If the format does not have a dtype.
    """
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": metadata}
    widest_first = sorted(arrays.items(), key=lambda item: -item[1].dtype.itemsize)
    end = 0
    for key, values in widest_first:
        header[key] = _describe(values.shape, values.dtype, end)
        end += values.nbytes
    stream.write(format_header(header))
    for _, values in widest_first:
        little = np.asarray(values, values.dtype.newbyteorder("<"), order="C")
        stream.write(little.reshape(-1).view(np.uint8).data)


def _describe(shape: tuple[int, ...], dtype: np.dtype[Any], start: int) -> dict[str, Any]:
    """Return the header's entry for a tensor whose values start `start` bytes after the header."""
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


def format_header(members: Mapping[str, Any], least: int = 0) -> bytes:
    """Return the bytes of a header, its length in front, padded with spaces to at least `least` bytes."""
    header = json.dumps(members).encode()
    size = max(len(header), least - _LENGTH_BYTES)
    size += -size % _ALIGNMENT
    return size.to_bytes(_LENGTH_BYTES, "little") + header.ljust(size)


def read_metadata(path: str) -> dict[str, str]:
    """Return the metadata of a file, name → text, as stored beside the tensors; empty without any.

    Raises
    ------
    DataError
        If the file cannot be read, or its header is damaged.
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
    """Return the bytes of the header at the start of a stream, without its length."""
    length = int.from_bytes(stream.read(_LENGTH_BYTES), "little")
    return stream.read(min(length, _LONGEST_HEADER))


def find_regions(stream: BinaryIO, name: str) -> dict[str, Region | str]:
    """Return name → dtype, shape and offset of each tensor in a file, after the library has checked the file.

    In place of a `Region`, a tensor of a dtype that is not read has the format's name of the dtype, such as
    `C64`.

    Raises
    ------
    DataError
        If the file is damaged or changes meanwhile.
    MissingExtraError
        If the library `safetensors` is missing.
    """
    _validate(stream, name)
    stream.seek(0)
    text = _read_text(stream)
    try:
        header: dict[str, Mapping[str, Any]] = json.loads(text, object_pairs_hook=make_object)
    except RepeatedNameError as error:  # the library takes the last of equal names
        raise DataError(f"{name} is damaged: its header {error}") from error
    except ValueError:  # the file was replaced after it was checked
        refuse_changed(name)
    header.pop("__metadata__", None)
    return {key: _read_region(entry, _LENGTH_BYTES + len(text)) for key, entry in header.items()}


def _find_opaque(stream: BinaryIO, key: str) -> Region | None:
    """Return dtype, shape and offset of a tensor as complex64 or raw bytes; move the stream to its first byte.

    None if NumPy has no such array: a value takes less than a byte, or there are too many axes. The file must
    have been checked by `find_regions`.
    """
    stream.seek(0)
    text = _read_text(stream)
    entry = json.loads(text)[key]
    first, end = entry["data_offsets"]
    name, shape, count = entry["dtype"], tuple(entry["shape"]), math.prod(entry["shape"])
    size = (end - first) // count if count else 1
    if size * count != (end - first) or not size or len(shape) > MOST_AXES:
        return None
    dtype = np.dtype("<c8") if name == _COMPLEX else np.dtype(f"V{size}", metadata={_NAME: name})
    return Region(dtype, shape, stream.seek(_LENGTH_BYTES + len(text) + first))


def _read_region(entry: Mapping[str, Any], start: int) -> Region | str:
    """Return dtype, shape and offset of a tensor by its header entry; only the dtype's name if it is not read.

    `start` is the file offset of the first tensor's values.
    """
    known = {**_DTYPES, **_WIDENED}
    if entry["dtype"] not in known:
        return str(entry["dtype"])
    dtype = np.dtype(find_type(known[entry["dtype"]])).newbyteorder("<")
    return Region(dtype, tuple(entry["shape"]), start + entry["data_offsets"][0])


def load_region(region: Region | str, stream: BinaryIO, name: str) -> NDArray[Any]:
    """Return one tensor of a file: in memory, or as a read-only memory map; 8-bit floats become float32.

    Parameters
    ----------
    region : Region or str
        The tensor's dtype, shape and offset, or the name of a dtype that is not read, as from `find_regions`.
    stream : BinaryIO
    name : str
        The tensor's name in messages.

    Raises
    ------
    DataError
        If the dtype is not read, there are too many axes, or the file is cut short.
    """
    if isinstance(region, str):
        raise DataError(f"{name} holds {region}; {', '.join((*_DTYPES, *_WIDENED))} are taken")
    require_few_axes(len(region.shape), name)
    values = region.load(stream, name)
    is_eight_bits = values.dtype.itemsize == 1 and values.dtype.kind not in "biu"
    return values.astype(np.float32) if is_eight_bits else values


def _validate(stream: BinaryIO, name: str) -> None:
    """Raise `DataError` if the library finds a file damaged, `MissingExtraError` if the library is missing."""
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
