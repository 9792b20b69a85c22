"""NumPy's `.npz` archives: a zip file of `.npy` members."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from normcli.errors import DataError, NormError
from normcli.tensors.npy import read_npy, write_npy
from normcli.tensors.tensor import choose_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import DTypeLike, NDArray

MAGICS = (b"PK\x03\x04", b"PK\x05\x06")
"""The first bytes of a zip file, and of an empty one."""

_SUFFIX = ".npy"


def find_arrays(archive: zipfile.ZipFile) -> dict[str, str]:
    """Return the arrays of an archive, by name: the member that each lies in."""
    return {name.removesuffix(_SUFFIX): name for name in archive.namelist() if name.endswith(_SUFFIX)}


def read_npz(stream: BinaryIO, name: str, key: str | None) -> NDArray[Any]:
    """Read one array of an archive: the one called `key`, or the only one.

    Raises
    ------
    UsageError
        If there are several arrays and no key, or none of that name.
    DataError
        If the archive or the array is damaged.
    """
    try:
        with zipfile.ZipFile(stream) as archive:
            members = find_arrays(archive)
            if key is not None and key not in members:
                key = key.removesuffix(_SUFFIX)
            chosen = choose_key(members, name, key)
            data = archive.read(members[chosen])
    except (NormError, MemoryError):
        raise
    except Exception as error:  # a damaged archive raises whatever its bytes happen to break
        raise DataError(f"{name} is no readable .npz archive: it is damaged or cut short") from error
    return read_npy(io.BytesIO(data), f"{name}:{chosen}")


def load_members(path: str, kind: str, schema: str) -> dict[str, NDArray[Any]]:
    """Return all arrays of an archive that normcli wrote, by name.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    DataError
        If it cannot be read, or is of another schema; the message calls it a file of a kind.
    """
    try:
        with Path(path).open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            members = {name: archive[name] for name in archive.files}
    except FileNotFoundError:
        raise
    except Exception as error:  # a damaged archive raises whatever its bytes happen to break
        if isinstance(error, OSError) and error.errno is not None:
            raise DataError(f"{path} cannot be read: {error.strerror or 'I/O error'}") from error
        raise DataError(f"{path} is no readable {kind} file: it is damaged, cut short, or none") from error
    found = read_word(members, "schema")
    if found is None:
        raise DataError(f"{path} is no {kind} file of normcli: it has no schema")
    if found != schema:
        raise DataError(f"{path} is of the version {found}, not {schema}")
    return members


def read_word(members: Mapping[str, NDArray[Any]], name: str) -> str | None:
    """Return the text that a member holds; None if there is no such member, or it is no single text."""
    member = members.get(name)
    return str(member) if member is not None and member.dtype.kind == "U" and member.ndim == 0 else None


def require_member(
    members: Mapping[str, NDArray[Any]], name: str, dtype: DTypeLike, shape: tuple[int, ...]
) -> NDArray[Any]:
    """Return a member; raise `KeyError` if it is missing, `ValueError` if it is of another dtype or shape."""
    array = members[name]
    if array.dtype != dtype or array.shape != shape:
        raise ValueError(name)
    return array


def write_npz(stream: BinaryIO, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays under their names, uncompressed, as `numpy.savez` does."""
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, values in arrays.items():
            with archive.open(name + _SUFFIX, "w", force_zip64=True) as member:
                write_npy(member, values)  # type: ignore[arg-type]  # a binary stream by another class
