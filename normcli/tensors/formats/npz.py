"""NumPy's `.npz` archives, zip files of `.npy` members; members of stats and state files, checked."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn, cast

import numpy as np

from normcli.dtypes import require_real
from normcli.errors import DataError, NormError
from normcli.printable import shorten
from normcli.tensors.formats.npy import read_header, write_npy
from normcli.tensors.held_files import NoFileError, Opened, open_regular
from normcli.tensors.spool import store
from normcli.tensors.tensor import choose_key
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Integers, Selected
    from normcli.tensors.mapped import Region


MAGICS = (b"PK\x03\x04", b"PK\x05\x06")
"""The first bytes of a zip file, and of an empty one."""

_SUFFIX = ".npy"

_PIECE = 1 << 20
"""The number of bytes that are unpacked at a time."""

_LEAST_UNPACKED = 1 << 26
"""The size in bytes to which a stats or state file may unpack; a file that is larger, to its own size."""

_MOST_NAMED = 8
"""The most arrays that a message names."""

_MEMBER_KINDS = "biufU"
"""NumPy's kinds of dtypes that stats and state files may hold: numbers and text."""

_LARGEST_CHARACTER = 0x10FFFF
"""The largest code point of Unicode."""

_LOCAL_HEADER = 30
"""The bytes of a zip member's local header before its name; the last four are the lengths of name and extra."""


def find_arrays(archive: zipfile.ZipFile) -> dict[str, str]:
    """Return the arrays of an archive: name → the member that holds the array (`x` → `x.npy`).

    Raises
    ------
    BadZipFile
        If two members have the same name.
    """
    members = [name for name in archive.namelist() if name.endswith(_SUFFIX)]
    if len(set(members)) < len(members):
        raise zipfile.BadZipFile("two members have one name")
    return {name.removesuffix(_SUFFIX): name for name in members}


def read_npz(stream: BinaryIO, name: str, key: str | None, *, takes_any: bool = False) -> NDArray[Any]:
    """Return one array of an archive: the one called `key`, or if that is None the only one.

    A large array is a read-only memory map: of the archive if the array is uncompressed in a file, otherwise of
    a temporary file. With `takes_any`, an array of complex numbers is returned, too.

    Raises
    ------
    UsageError
        If there are several arrays and no key, or no array called `key`.
    DataError
        If the archive is damaged or empty, the array has not the length that its header says, or its dtype is
        not read; or the temporary folder has no room.
    """
    try:
        with zipfile.ZipFile(stream) as archive:
            members = find_arrays(archive)
            if key is not None and key not in members:
                key = key.removesuffix(_SUFFIX)
            chosen = choose_key(members, name, key)
            info = archive.getinfo(members[chosen])
            return _read_array(archive, info, stream, f"{name}:{chosen}", takes_complex=takes_any)
    except (NormError, MemoryError):
        raise
    except Exception as error:  # a damaged archive raises whatever its bytes happen to break
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise DataError(f"{name} is no readable .npz archive: it is damaged or cut short") from error


def _read_array(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, stream: BinaryIO, name: str, *, takes_complex: bool
) -> NDArray[Any]:
    """Return the array of a member, which is read to its end once, so that its checksum is verified.

    Parameters
    ----------
    archive : ZipFile
    info : ZipInfo
        The member.
    stream : BinaryIO
        The stream of the archive, in which an uncompressed large array is mapped.
    name : str
        The array's name in messages.
    takes_complex : bool
        Whether complex numbers are read, too.
    """
    with archive.open(info) as unpacked:
        member = cast("BinaryIO", unpacked)
        region = _read_header(member, info, name)
        if not (takes_complex and region.dtype.kind == "c"):
            require_real(region.dtype, name)
        if not region.is_large:
            return region.read(member, name)
        if info.compress_type != zipfile.ZIP_STORED or isinstance(stream, io.BytesIO):
            return store(member, region, name)
        while member.read(_PIECE):  # read to the end, so that the checksum is verified
            pass
    return region._replace(offset=_find_content(stream, info) + region.offset).map(stream)


def _read_header(member: BinaryIO, info: zipfile.ZipInfo, name: str) -> Region:
    """Return the dtype, shape and offset of the array in an archive's member, by its header.

    Raises `DataError` if the member is longer or shorter than the header says, or its dtype is of objects.
    """
    region = read_header(member, name)
    region.require_exact(name, info.file_size - region.offset)
    return region


def _find_content(stream: BinaryIO, info: zipfile.ZipInfo) -> int:
    """Return the offset in an archive of an uncompressed member's first byte."""
    stream.seek(info.header_offset)
    header = stream.read(_LOCAL_HEADER)
    lengths = (int.from_bytes(header[at : at + 2], "little") for at in (_LOCAL_HEADER - 4, _LOCAL_HEADER - 2))
    return info.header_offset + _LOCAL_HEADER + sum(lengths)


class FileKind(NamedTuple):
    """A kind of archive that normcli writes: stats or state files.

    Parameters
    ----------
    name : str
        The word for such a file in messages: stats or state.
    schemas : tuple of str
        The names of the versions that can be read.
    origin : str
        A hint on which command writes such files, for messages about other files.
    """

    name: str
    schemas: tuple[str, ...]
    origin: str


def load_members(path: str, kind: FileKind) -> dict[str, NDArray[Any]]:
    """Return name → array for all arrays of an archive that normcli wrote.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    NoFileError
        If the path is a pipe, a socket or a device.
    DataError
        If the file cannot be read, changes meanwhile, or is of another kind or version.
    """
    what = f"{path} is no {kind.name} file of normcli"
    try:
        with open_regular(path) as stream:
            opened = Opened.describe(stream, path, Path(path))
            head = stream.read(len(MAGICS[0]))
            is_archive = not head or head.startswith(MAGICS)
            members = _read_members(stream) if is_archive else {}
    except (FileNotFoundError, NoFileError):
        raise
    except Exception as error:  # a damaged archive raises whatever its bytes happen to break
        if isinstance(error, OSError) and error.errno is not None:
            raise DataError(f"{path} cannot be read: {error.strerror or 'I/O error'}") from error
        raise DataError(f"{path} is no readable {kind.name} file: it is damaged, cut short, or none") from error
    opened.require_unchanged()
    if not is_archive:
        raise DataError(f"{what}: it is no .npz; {kind.origin}")
    schema = members.get("schema")
    if schema is None or schema.dtype.kind != "U" or schema.ndim:
        names = ", ".join(map(shorten, list(members)[:_MOST_NAMED])) or "nothing"
        raise DataError(f"{what}: it holds {names}, and no schema; {kind.origin}")
    if (found := str(schema)) not in kind.schemas:
        raise DataError(f"{what}: it is of {shorten(found)}, not {' or '.join(kind.schemas)}; {kind.origin}")
    return members


def _read_members(stream: BinaryIO) -> dict[str, NDArray[Any]]:
    """Return all arrays of an archive by name; raise an exception of any type if it is damaged.

    `ValueError` is raised if an array holds neither numbers nor text, or if all together unpack to more than
    64 MiB and more than the archive's own size.
    """
    size = stream.seek(0, io.SEEK_END)
    archive = zipfile.ZipFile(stream)
    infos = {name: archive.getinfo(member) for name, member in find_arrays(archive).items()}
    if sum(info.file_size for info in infos.values()) > max(_LEAST_UNPACKED, size):
        raise ValueError("the archive unpacks to more than such files hold")
    members = {}
    for name, info in infos.items():
        with archive.open(info) as unpacked:
            member = cast("BinaryIO", unpacked)
            region = _read_header(member, info, name)
            if region.dtype.kind not in _MEMBER_KINDS:
                raise ValueError(name)
            members[name] = region.read(member, name)
        if region.dtype.kind == "U":
            _require_characters(members[name])
    return members


def _require_characters(text: NDArray[Any]) -> None:
    """Raise `ValueError` if text holds code points beyond U+10FFFF, on which Python fails later."""
    codes = text.reshape(-1).view(np.uint32)
    if not text.dtype.isnative:
        codes = codes.byteswap()
    if (codes > _LARGEST_CHARACTER).any():
        raise ValueError("no text")


def write_npz(stream: BinaryIO, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays under their names, uncompressed, as `numpy.savez` does."""
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, values in arrays.items():
            with archive.open(name + _SUFFIX, "w", force_zip64=True) as member:
                write_npy(member, values)  # type: ignore[arg-type]  # a binary stream by another class


MOST_COUNTED = 2**53
"""The largest count in such files: exact in float64, and a thousand of them can be added in int64."""


class Members:
    """The arrays of a stats or state file of normcli, by name; its methods raise `DataError` for a wrong one.

    Parameters
    ----------
    path : str
    kind : FileKind
        The kind of file that it must be.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    DataError
        If the file cannot be read, or is of another kind or version.
    """

    def __init__(self, path: str, kind: FileKind) -> None:
        self._path, self._kind = path, kind
        self._arrays = load_members(path, kind)

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def refuse(self, name: str, problem: str) -> NoReturn:
        """Raise `DataError` with the file, a member's name and its problem."""
        raise DataError(f"{self._path} is no {self._kind.name} file of normcli: {name} {problem}")

    def get_shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a member."""
        return self._get(name).shape

    def take_integers(self, name: str, shape: tuple[int, ...], low: int, high: int) -> Integers:
        """Return an int64 member of a shape, whose values are from low to high, both included.

        All methods `take_…` raise `DataError` if the member is missing, or of another dtype, shape or range.
        """
        values = self._take(name, np.dtype(np.int64), shape)
        self.require(name, (values >= low) & (values <= high), values, f"not from {low} to {high}")
        return values

    def take_floats(self, name: str, shape: tuple[int, ...]) -> Floats:
        """Return a float64 member of a shape; NaN and infinities are taken."""
        return self._take(name, np.dtype(np.float64), shape)

    def take_integer(self, name: str, low: int, high: int) -> int:
        """Return a member that is one integer from low to high, both included."""
        return int(self.take_integers(name, (), low, high))

    def take_word(self, name: str, known: Sequence[str] = ()) -> str:
        """Return a member that is a single text; if `known` is not empty, the text must be in it."""
        (word,) = self.take_words(name)
        if known and word not in known:
            self.refuse(name, f"is {shorten(repr(word))}, none of {', '.join(known)}")
        return word

    def take_words(self, name: str, *shape: int) -> tuple[str, ...]:
        """Return the texts of a member of a shape, in C order."""
        dtype = self._get(name).dtype
        if dtype.kind != "U":
            self.refuse(name, f"is {dtype}, and no text")
        texts = tuple(map(str, self._take(name, dtype, shape).reshape(-1)))
        try:
            "".join(texts).encode()
        except UnicodeEncodeError:  # halves of characters, which can be neither printed nor written
            self.refuse(name, "has what is no character")
        return texts

    def require(self, name: str, right: Selected, values: NDArray[Any], problem: str) -> None:
        """Raise `DataError` with a member's first wrong value, unless the mask `right` is True everywhere.

        `problem` is the end of the message, after the value: `not from 0 to 9`.
        """
        if not right.all():
            self.refuse(name, f"is {values[~right].reshape(-1)[0]}, {problem}")

    def _get(self, name: str) -> NDArray[Any]:
        if name not in self._arrays:
            self.refuse(name, "is missing")
        return self._arrays[name]

    def _take(self, name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        array = self._get(name)
        if array.dtype != dtype:
            self.refuse(name, f"is {array.dtype}, not {dtype}")
        if array.shape != shape:
            self.refuse(name, f"has the shape {array.shape}, not {shape}")
        return array
