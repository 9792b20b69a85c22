"""Chunked stores: Zarr (formats 2 and 3, sharded too) and HDF5. Arrays in chunks, each compressed on its own.

A large array is worked on where it lies: `Chunked` is an array whose values are made when they are read, chunk
by chunk. Zarr needs the extra `zarr`, HDF5 the extra `hdf5`.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from normcli.dtypes import is_bfloat16, require_real
from normcli.errors import DataError, MissingExtraError, UsageError
from normcli.tensors.mapped import SMALLEST_MAPPED, Mapped, Region, fetch
from normcli.tensors.opened import StoreVersion
from normcli.tensors.pieces import cut_boxes, forget
from normcli.tensors.spool import open_temporary
from normcli.tensors.tensor import Tensor, choose_key

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import NoReturn

    from numpy.typing import NDArray

    from normcli.tensors.places import Place

Box = tuple[slice, ...]

CACHE = 1 << 26
"""Bytes of chunks of an array that are kept while values beside each other are read."""

CHUNK = 1 << 22
"""Bytes in a chunk of a store that is written, unless the input says otherwise."""

_WRITERS = 4
"""How many chunks are compressed and written at a time."""


class Stored(NamedTuple):
    """An array of a store.

    Parameters
    ----------
    name : str
        What messages call it.
    array : zarr.Array or h5py.Dataset
        Which gives a box by its slices.
    chunks : tuple of int
        The lengths of what is read at once.
    version : StoreVersion
    dimensions : tuple of str or None
        The names of the axes, where all of them have one.
    """

    name: str
    array: Any
    chunks: tuple[int, ...]
    version: StoreVersion
    dimensions: tuple[str, ...] | None = None

    def read(self, box: Box) -> NDArray[Any]:
        """Return what lies in a box.

        Raises
        ------
        DataError
            If a chunk cannot be read.
        """
        try:
            return np.asarray(self.array[box])
        except Exception as error:  # whatever a codec or a file system raises
            corner = ", ".join(f"{cut.start or 0}" for cut in box)
            raise DataError(
                f"{self.name}: the chunk at ({corner}) cannot be read: {_describe(error)}"
            ) from error

    def cut(self, chunks: tuple[int, ...] | None = None) -> Iterator[Box]:
        """Yield the boxes of all chunks, or of blocks of other lengths, in C order."""
        shape = self.array.shape
        ranges = (range(0, n, max(1, step)) for n, step in zip(shape, chunks or self.chunks, strict=True))
        for starts in itertools.product(*ranges):
            yield tuple(
                slice(start, min(start + max(1, step), n))
                for start, step, n in zip(starts, chunks or self.chunks, shape, strict=True)
            )


class Chunked(Mapped):
    """An array of a store, in C order: its file holds nothing, and its values are made when they are read.

    Where a row of chunks is too large to be kept, all of them are written to the file, once, on the first read.
    """

    stored: Stored
    _kept: OrderedDict[tuple[int, ...], NDArray[Any]]
    _lock: threading.Lock
    _is_filled: bool

    @classmethod
    def make(cls, stored: Stored) -> Chunked:
        """Return the array of a store.

        Raises
        ------
        DataError
            If NumPy has no arrays of its shape.
        """
        array = stored.array
        region = Region(array.dtype, tuple(array.shape))
        with open_temporary() as stream:
            stream.truncate(region.byte_count)  # which takes no room on the disk before it is filled
            made = cast("Chunked", region.map(stream, "r+", cls))
        made.stored, made.temporary, made.has_positions = stored, True, False
        made.opened = stored.version
        made._kept, made._lock, made._is_filled = OrderedDict(), threading.Lock(), False
        return made

    @property
    def row_bytes(self) -> int:
        """The size of the chunks that hold a row along the axes behind the first that is cut."""
        shape, chunks = self.stored.array.shape, self.stored.chunks
        first = next((axis for axis, n in enumerate(shape) if chunks[axis] < n), 0)
        lengths = [
            min(c, n) if axis <= first else n for axis, (c, n) in enumerate(zip(chunks, shape, strict=True))
        ]
        return int(math.prod(lengths) * self.itemsize)

    def _read_into(self, missing: memoryview, place: int) -> None:
        if self.row_bytes > CACHE:
            self._fill()
        if self._is_filled:
            super()._read_into(missing, place)
            return
        buffer = np.frombuffer(missing, self.dtype)
        start = place // self.itemsize
        for outside, box in cut_boxes(self.shape, start, start + buffer.size):
            self._copy(box, buffer[outside].reshape([cut.stop - cut.start for cut in box]))

    def _copy(self, box: Box, target: NDArray[Any]) -> None:
        """Copy a box of values from the chunks that hold it."""
        ranges = [
            range(cut.start // c, -(-cut.stop // c)) for cut, c in zip(box, self.stored.chunks, strict=True)
        ]
        for number in itertools.product(*ranges):
            chunk, inside, outside = self._get_chunk(number), [], []
            for cut, c, at in zip(box, self.stored.chunks, number, strict=True):
                start, stop = max(cut.start, at * c), min(cut.stop, (at + 1) * c)
                inside.append(slice(start - at * c, stop - at * c))
                outside.append(slice(start - cut.start, stop - cut.start))
            target[tuple(outside)] = chunk[tuple(inside)]

    def _get_chunk(self, number: tuple[int, ...]) -> NDArray[Any]:
        with self._lock:
            if number in self._kept:
                self._kept.move_to_end(number)
                return self._kept[number]
        box = tuple(
            slice(at * c, min((at + 1) * c, n))
            for at, c, n in zip(number, self.stored.chunks, self.shape, strict=True)
        )
        chunk = self.stored.read(box)
        with self._lock:
            self._kept[number] = chunk
            while len(self._kept) > 1 and sum(one.nbytes for one in self._kept.values()) > CACHE:
                self._kept.popitem(last=False)
        return chunk

    def _fill(self) -> None:
        """Write all chunks to the file."""
        with self._lock:
            if self._is_filled:
                return
            room = self.view(np.ndarray)
            for box in self.stored.cut():
                room[box] = self.stored.read(box)
                forget(self)  # it is in the file
            self._is_filled = True


# -- opening


def load_store(place: Place, source: str) -> Tensor:
    """Load an array of a store: into memory, or as a `Chunked` if it is large.

    Raises
    ------
    UsageError
        If there are several arrays and no key, or none of that name.
    DataError
        If there is no such store, it is damaged, or holds no real numbers.
    MissingExtraError
        If the library that reads it is missing.
    """
    stored = open_store(place, source)
    require_real(stored.array.dtype, source)
    shape = tuple(stored.array.shape)
    if math.prod(shape) * stored.array.dtype.itemsize >= SMALLEST_MAPPED:
        return Tensor(Chunked.make(stored), source, opened=stored.version, stored=stored)
    values = stored.read((slice(None),) * len(shape)) if shape else np.asarray(stored.array[()])
    stored.version.require_unchanged()
    return Tensor(values, source, opened=stored.version, stored=stored)


def open_store(place: Place, source: str) -> Stored:
    """Open an array of a store."""
    return (_open_zarr if place.is_zarr else _open_hdf5)(place, source)


def limit_threads(count: int) -> None:
    """Have Zarr read and unpack chunks in so many threads of this process, unless it was told how many.

    It would take as many as there are processors, in each of the processes that share them.
    """
    config = _import("zarr", "a Zarr store").config
    if config.get("threading.max_workers") is None:
        config.set({"threading.max_workers": count})


def _open_zarr(place: Place, source: str) -> Stored:
    zarr = _import("zarr", "a Zarr store")
    try:
        root = zarr.open(place.path, mode="r")
        if isinstance(root, zarr.Array):
            array = root if place.key is None else _refuse_key(place)
        else:
            members = dict(root.members(max_depth=None))
            arrays = {name: member for name, member in members.items() if isinstance(member, zarr.Array)}
            array = arrays[choose_key(arrays, place.path, place.key)]
    except FileNotFoundError as error:
        raise DataError(f"{place.path}: there is no such store") from error
    except (DataError, UsageError):
        raise
    except Exception as error:  # whatever a damaged store or a file system raises
        raise DataError(f"{place.path} cannot be read: {_describe(error)}") from error
    count = partial(_count_chunks, array if "://" not in place.path else None)
    # Format 3 has names of its own; of format 2, xarray keeps them as an attribute.
    names = getattr(array.metadata, "dimension_names", None) or array.attrs.get("_ARRAY_DIMENSIONS")
    version = StoreVersion(source, count(), count)
    return Stored(source, array, tuple(array.chunks), version, _read_dimensions(names, array.ndim))


def _read_dimensions(names: Any, ndim: int) -> tuple[str, ...] | None:
    """Return the names of all axes; None of anything else."""
    if not isinstance(names, list | tuple) or len(names) != ndim:
        return None
    return tuple(names) if all(isinstance(name, str) and name for name in names) else None


def list_others(place: Place) -> list[str]:
    """Return the names of the arrays of a Zarr store that are not at a place; of what is no store, its files.

    Raises
    ------
    MissingExtraError
        If the library that reads it is missing.
    """
    zarr = _import("zarr", "a Zarr store")
    try:
        root = zarr.open(place.path, mode="r")
    except Exception:  # whatever a damaged store, or a folder that is none, raises
        return sorted(path.name for path in Path(place.path).iterdir())
    if isinstance(root, zarr.Array):
        return [] if place.key is None else ["an array without a key"]
    members = root.members(max_depth=None)
    return [name for name, member in members if isinstance(member, zarr.Array) and name != place.key]


def _count_chunks(array: Any) -> int | None:
    return None if array is None else array.nchunks_initialized


def _open_hdf5(place: Place, source: str) -> Stored:
    h5py = _import("h5py", "an HDF5 file")
    path = Path(place.path)
    try:
        file = h5py.File(path, "r")
        arrays: dict[str, Any] = {}
        file.visititems(
            lambda name, item: arrays.update({name: item} if isinstance(item, h5py.Dataset) else {})
        )
        array = arrays[choose_key(arrays, place.path, place.key)]
    except FileNotFoundError as error:
        raise DataError(f"{place.path}: there is no such file") from error
    except (OSError, RuntimeError, KeyError) as error:
        raise DataError(f"{place.path} cannot be read: {_describe(error)}") from error

    count = partial(_date, path)
    chunks = array.chunks or choose_chunks(tuple(array.shape), array.dtype)
    names = [dim.label or (dim[0].name.rpartition("/")[2] if len(dim) else "") for dim in array.dims]
    version = StoreVersion(source, count(), count)
    return Stored(source, array, tuple(chunks), version, _read_dimensions(names, array.ndim))


def _date(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def _refuse_key(place: Place) -> NoReturn:
    raise UsageError(f"{place.path} is one array, and holds none called {place.key!r}")


def _describe(error: Exception) -> str:
    return str(error).strip().split("\n")[0] or type(error).__name__


_EXTRAS = {"zarr": "zarr", "h5py": "hdf5"}


def _import(module: str, what: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(what, _EXTRAS[module]) from error


# -- writing


def choose_chunks(shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[int, ...]:
    """Return the lengths of chunks of some MiB: whole along as many of the last axes as fit.

    Examples
    --------
    >>> choose_chunks((1000, 64, 32, 32), np.dtype("float32"))
    (16, 64, 32, 32)
    """
    room, lengths = CHUNK // dtype.itemsize, []
    for length in reversed(shape):
        lengths.append(max(1, min(length, room)))
        room //= max(1, length)
    return tuple(reversed(lengths))


def require_storable(dtype: np.dtype[Any]) -> None:
    """Raise `UsageError` if Zarr has no such dtype; `MissingExtraError` without the library that writes."""
    _import("zarr", "a Zarr store")
    if is_bfloat16(dtype):
        raise UsageError("a Zarr store holds no bfloat16; .safetensors does, or --dtype chooses another")


def create_array(
    folder: Path, key: str | None, shape: tuple[int, ...], dtype: np.dtype[Any], like: Stored | None
) -> Any:
    """Make a Zarr store of one array in an empty folder, and return the `zarr.Array`, to be filled.

    Parameters
    ----------
    folder : Path
    key : str or None
        The array's place in the store; None where the store is the array.
    shape, dtype
        The array's.
    like : Stored or None
        An array of a Zarr store, whose format, chunks, shards and compression are taken.

    Raises
    ------
    MissingExtraError
        If the library is missing.
    """
    require_storable(dtype)
    zarr = _import("zarr", "a Zarr store")
    options: dict[str, Any] = {"chunks": choose_chunks(shape, dtype)}
    if like is not None and isinstance(like.array, zarr.Array):
        model = like.array
        options = {"chunks": model.chunks, "shards": model.shards, "compressors": model.compressors}
        options |= {"zarr_format": model.metadata.zarr_format, "attributes": dict(model.attrs)}
        names = getattr(model.metadata, "dimension_names", None)
        options |= {} if names is None else {"dimension_names": names}
    return zarr.create_array(str(folder), name=key, shape=shape, dtype=dtype, **options)


def write_store(folder: Path, key: str | None, values: NDArray[Any], like: Stored | None) -> None:
    """Write a Zarr store of one array into an empty folder; each task writes whole chunks, or whole shards.

    Parameters are those of `create_array`, and the values.
    """
    array = create_array(folder, key, values.shape, values.dtype, like)
    written = Stored(
        str(folder), array, tuple(array.shards or array.chunks), StoreVersion("", None, lambda: None)
    )

    def write(box: Box) -> None:
        array[box] = fetch(values[box])
        forget(values)

    if not values.ndim:
        array[...] = values
        return
    with ThreadPoolExecutor(_WRITERS) as pool:
        for _ in pool.map(write, written.cut()):
            pass
