"""Chunked stores: Zarr (formats 2 and 3, also sharded) and HDF5, whose arrays are compressed chunk by chunk.

A large array is not loaded: `Chunked` reads its chunks when they are needed. Zarr needs the extra `zarr`, HDF5
the extra `hdf5`.
"""

from __future__ import annotations

import contextlib
import math
import os
import warnings
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import is_bfloat16, require_real
from normcli.errors import DataError, MissingExtraError, NormError, UsageError
from normcli.tensors.formats.coordinates import (
    choose_attributes,
    copy_coordinates,
    describe_packing,
    drop_coordinates,
    find_arrays,
    list_coordinates,
    read_names,
)
from normcli.tensors.formats.stored_array import (
    Box,
    Chunked,
    Stored,
    choose_chunks,
    describe_failure,
    make_stored,
    require_held,
)
from normcli.tensors.held_files import FOLLOW, Opened, Stores, StoreVersion, open_regular
from normcli.tensors.mapped import SMALLEST_MAPPED, fetch
from normcli.tensors.pieces import forget
from normcli.tensors.tensor import Tensor, choose_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from normcli.tensors.tensor import Place

_WRITERS = 4
"""The number of threads that compress and write chunks."""


# -- opening


def load_store(place: Place, source: str) -> Tensor:
    """Load an array of a store: into memory, or as a `Chunked` if it has 64 MiB or more.

    Raises
    ------
    UsageError
        If there are several arrays and no key, or no array called so.
    DataError
        If the store does not exist, is damaged, changes meanwhile, or the array holds no real numbers.
    MissingExtraError
        If the library for such stores is missing.
    """
    stored = open_store(place, source)
    require_real(stored.array.dtype, source)
    shape = tuple(stored.array.shape)
    note = describe_packing(stored.array)
    if math.prod(shape) * stored.array.dtype.itemsize >= SMALLEST_MAPPED:
        return Tensor(Chunked.make(stored), source, note=note, opened=stored.version, stored=stored)
    values = stored.read((slice(None),) * len(shape))
    stored.version.require_unchanged()
    return Tensor(values, source, note=note, opened=stored.version, stored=stored)


def open_store(place: Place, source: str) -> Stored:
    """Open an array of a store, of any dtype, without reading its values.

    Raises
    ------
    UsageError
        If there are several arrays and no key, or no array called so.
    DataError
        If the store does not exist or is damaged.
    MissingExtraError
        If the library for such stores is missing.
    """
    try:
        return (_open_zarr if place.is_zarr else _open_hdf5)(place, source)
    except NormError:
        raise
    except FileNotFoundError as error:
        raise DataError(f"{place.path}: there is no such {'store' if place.is_zarr else 'file'}") from error
    except Exception as error:  # whatever a damaged store or a file system raises
        raise DataError(f"{place.path} cannot be read: {describe_failure(error)}") from error


def limit_threads(count: int) -> None:
    """Set the number of threads in which Zarr reads and unpacks chunks, unless its own configuration sets it.

    By default, each of several processes would start as many threads as there are processors.
    """
    config = _import("zarr", "a Zarr store").config
    if config.get("threading.max_workers") is None:
        config.set({"threading.max_workers": count})


def _open_zarr(place: Place, source: str) -> Stored:
    """Open an array of a Zarr store without reading its values; `source` is its name in messages."""
    zarr = _import("zarr", "a Zarr store")
    root = _open_root(zarr, place)
    if isinstance(root, zarr.Array):
        if place.key is not None:
            raise UsageError(f"{place.path} is one array, and holds none called {place.key!r}")
        array = root
    else:
        arrays = find_arrays(zarr, root)
        named = arrays if place.key is not None else drop_coordinates(arrays)
        array = arrays[choose_key(named, place.path, place.key)]
    version = StoreVersion.describe(source, None if place.is_remote else f"{place.path}/{array.path}")
    if version.folder is not None:
        names = (name for _, _, files in os.walk(version.folder) for name in files)
        require_held(source, array, array.shards or array.chunks, sum(n not in _METADATA for n in names))
    return make_stored(source, array, array.chunks, version, read_names(array))


_METADATA = ("zarr.json", ".zarray", ".zattrs", ".zmetadata")
"""The names of a Zarr array's files that are no chunks."""


def _open_root(zarr: Any, place: Place) -> Any:
    """Open a Zarr store for reading; return its root, an array or a group."""
    store: Any = place.path
    if not place.is_remote:
        from normcli.tensors.formats.guarded_store import GuardedStore

        store = GuardedStore(place.path, read_only=True)
    with warnings.catch_warnings(action="ignore"):  # warnings about metadata that later versions will refuse
        return zarr.open(store, mode="r")


def list_others(place: Place) -> list[str]:
    """Return the names of a Zarr store's arrays except the one called `place.key` and its coordinates.

    If the store itself is a single array, the list is empty without a key, and else has one text, which says
    so. If the folder is no readable store, the list has the names of its files. `MissingExtraError` is raised
    if the library is missing.
    """
    zarr = _import("zarr", "a Zarr store")
    try:
        root = _open_root(zarr, place)
    except Exception:  # whatever a damaged store, or a folder that is none, raises
        return sorted(path.name for path in Path(place.path).iterdir())
    if isinstance(root, zarr.Array):
        return [] if place.key is None else ["an array without a key"]
    arrays = find_arrays(zarr, root)
    own = [place.key, *list_coordinates(place.key, arrays)] if place.key in arrays else []
    return [name for name in arrays if name not in own]


def _open_hdf5(place: Place, source: str) -> Stored:
    """Open an array of an HDF5 file without reading its values; `source` is its name in messages."""
    h5py = _import("h5py", "an HDF5 file")
    with open_regular(place.path) as stream:
        version = Opened.describe(stream, source, Path(place.path))
    file = h5py.File(place.path, "r")
    arrays: dict[str, Any] = {}
    file.visititems(lambda name, item: arrays.update({name: item} if isinstance(item, h5py.Dataset) else {}))
    if Stores.rules.follows_links and place.key:
        _require_linked_files(h5py, file, place.key)
    if Stores.rules.follows_links and isinstance(linked := file.get(place.key or ""), h5py.Dataset):
        arrays[str(place.key)] = linked
    array = arrays[choose_key(arrays, place.path, place.key)]
    _require_whole(array, source)
    chunks = array.chunks or choose_chunks(tuple(array.shape), array.dtype)
    if array.chunks is not None:
        require_held(source, array, chunks, array.id.get_num_chunks())
    elif not array.is_virtual:
        require_held(source, array, array.shape, int(array.id.get_storage_size() > 0))
    names = [dim.label or (dim[0].name.rpartition("/")[2] if len(dim) else "") for dim in array.dims]
    return make_stored(source, array, chunks, version, names)


def _require_whole(array: Any, source: str) -> None:
    """Raise `DataError` if a dataset of HDF5 has no shape, has a damaged chunk, or lies in other files.

    If `Stores.rules.follows_links` is set, other files are allowed: those that exist must be regular files.
    """
    if array.shape is None:
        raise DataError(f"{source} is a dataset without a shape, which holds nothing")
    others = [place[0] for place in array.external or ()]
    if array.is_virtual:
        others += [place.file_name for place in array.virtual_sources() if place.file_name != "."]
    if others and not Stores.rules.follows_links:
        raise DataError(f"{source} lies in {others[0]}, another file; {FOLLOW}")
    for name in others:
        _require_file(array.file.filename, name)
    # HDF5 2.0 reads on before a chunk that is shorter than its checksum, of four bytes.
    if array.fletcher32 and array.id.chunk_iter(lambda chunk: chunk.size < 4 or None):
        raise DataError(f"{source} is damaged: a chunk is shorter than its checksum")


def _require_linked_files(h5py: Any, file: Any, key: str, depth: int = 0) -> None:
    """Raise `DataError` if an external link on a dataset's path leads to a pipe or device, where HDF5 hangs.

    `key` is the dataset's path in `file`; `depth` is the number of links that were followed to this file.
    """
    names = key.strip("/").split("/")
    for count in range(1, len(names) + 1):
        link = file.get("/".join(names[:count]), getlink=True)
        if not isinstance(link, h5py.ExternalLink):
            continue
        path = _require_file(file.filename, link.filename)
        if path is not None and depth < _MOST_LINKS:
            rest = "/".join([link.path, *names[count:]])
            with h5py.File(path, "r") as other:
                _require_linked_files(h5py, other, rest, depth + 1)
        return


_MOST_LINKS = 16
"""The most files that a chain of external links is followed through, as in HDF5 itself."""


def _require_file(beside: str, name: str) -> Path | None:
    """Return the path of the file `name`: in the folder of the file `beside`, else in the working folder.

    None if it is in neither. `DataError` is raised if it is no regular file.
    """
    for path in (Path(beside).parent / name, Path(name)):
        if path.exists():
            open_regular(path).close()
            return path
    return None


_EXTRAS = {"zarr": "zarr", "h5py": "hdf5"}


def _import(module: str, what: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError.of(what, _EXTRAS[module]) from error


# -- writing


def require_storable(dtype: np.dtype[Any]) -> None:
    """Raise `UsageError` if a Zarr store cannot hold a dtype, `MissingExtraError` if the library is missing."""
    _import("zarr", "a Zarr store")
    if is_bfloat16(dtype):
        raise UsageError("a Zarr store holds no bfloat16; .safetensors does, or --dtype chooses another")


def create_array(
    folder: Path, key: str | None, shape: tuple[int, ...], dtype: np.dtype[Any], like: Stored | None
) -> Any:
    """Make a Zarr store with one array in an empty folder; return the `zarr.Array`, still to be filled.

    Parameters
    ----------
    folder : Path
    key : str or None
        The array's name in the store; None if the array is the root of the store.
    shape, dtype
        The array's shape and dtype.
    like : Stored or None
        The array from which the new one takes format, chunks, shards, compression, attributes and, if `key` is
        given, coordinates. None, or an array of no Zarr store: the defaults.

    Raises
    ------
    UsageError
        If Zarr cannot hold the dtype.
    DataError
        If Zarr fails to make the store, apart from errors of the file system.
    MissingExtraError
        If the library is missing.
    """
    require_storable(dtype)
    zarr = _import("zarr", "a Zarr store")
    options: dict[str, Any] = {"chunks": choose_chunks(shape, dtype)}
    model = like.array if like is not None and isinstance(like.array, zarr.Array) else None
    if model is not None:
        options = {"chunks": model.chunks, "shards": model.shards, "compressors": model.compressors}
        options |= {"zarr_format": model.metadata.zarr_format, "attributes": choose_attributes(model, dtype)}
        names = getattr(model.metadata, "dimension_names", None)
        options |= {} if names is None else {"dimension_names": names}
        if dtype.kind == "f":  # xarray reads values equal to it as missing, in format 2
            options |= {"fill_value": np.nan}
    with _explain_likeness(like):
        array = zarr.create_array(str(folder), name=key, shape=shape, dtype=dtype, **options)
        if key is not None and model is not None:
            copy_coordinates(zarr, folder, key, model)
        return array


@contextlib.contextmanager
def _explain_likeness(like: Stored | None) -> Iterator[None]:
    """Turn exceptions of zarr in a `with` block, except `OSError`, into `DataError`; a context manager."""
    try:
        yield
    except (NormError, OSError):
        raise
    except MemoryError as error:
        raise DataError("a chunk of the store that is to be written is larger than the memory") from error
    except Exception as error:  # a damaged model raises exceptions of many kinds
        name = "zarr" if like is None else f"a store like {like.name}"
        raise DataError(f"{name} cannot be written: {describe_failure(error)}") from error


def write_store(folder: Path, key: str | None, values: NDArray[Any], like: Stored | None) -> None:
    """Write an array as a Zarr store into an empty folder, with several threads, each a whole chunk or shard.

    Parameters
    ----------
    folder : Path
    key : str or None
        The array's name in the store; None if the array is the root of the store.
    values : ndarray
    like : Stored or None
        The array from which format, chunks, compression and attributes are taken; None for the defaults.

    `UsageError`, `DataError` and `MissingExtraError` are raised as by `create_array`.
    """
    array = create_array(folder, key, values.shape, values.dtype, like)
    written = Stored(str(folder), array, tuple(array.shards or array.chunks), StoreVersion.describe("", None))

    def write(box: Box) -> None:
        array[box] = fetch(values[box])
        forget(values)

    if not values.ndim:
        array[...] = values
        return
    with _explain_likeness(like), ThreadPoolExecutor(_WRITERS) as pool:
        for _ in pool.map(write, written.cut()):
            pass
