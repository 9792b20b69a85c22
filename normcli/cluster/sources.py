"""The sources of a worker's blocks: an array of a store, or a file from which blocks can be cut."""

from __future__ import annotations

import contextlib
import os
from functools import lru_cache

import numpy as np

from normcli.cluster import require_dask
from normcli.errors import UsageError
from normcli.tensors.files import load
from normcli.tensors.formats.store_places import find_place, locate
from normcli.tensors.formats.stored_array import Stored
from normcli.tensors.formats.stores import choose_chunks, limit_threads, open_store
from normcli.tensors.held_files import StoreRules, Stores, StoreVersion
from normcli.tuples import NamedTuple

with require_dask():
    from distributed import get_worker


class Origin(NamedTuple):
    """The path or URL of an array, sent to workers, each of which opens it once.

    Parameters
    ----------
    place : str
        A path as workers find it, or a URL.
    opened : bytes
        Random bytes, drawn anew for each run, so that no worker uses an array that it opened in an earlier run.
    rules : StoreRules
    """

    place: str
    opened: bytes
    rules: StoreRules

    @classmethod
    def name(cls, source: str) -> Origin:
        """Return the origin for a path or URL, which each worker opens anew."""
        return cls(locate(source), os.urandom(8), Stores.rules)

    def open(self) -> Stored:
        """Return the array; a process opens each origin once and keeps the last 16."""
        return _open_once(self)


@lru_cache(maxsize=16)  # of a worker, which reads many blocks of one array
def _open_once(origin: Origin) -> Stored:
    Stores.rules = origin.rules
    return open_source(origin.place)


def open_source(source: str) -> Stored:
    """Return the array at a path or URL.

    Raises
    ------
    UsageError
        If the file is text or a table, of which no blocks can be read.
    DataError
        If the array cannot be read.
    """
    place = find_place(source)
    if place is None:
        return _open_file(source)
    if place.is_zarr:
        with contextlib.suppress(ValueError):  # where this is no worker
            limit_threads(get_worker().state.nthreads)
    return open_store(place, source)


def _open_file(source: str) -> Stored:
    tensor = load(source)
    if tensor.has_no_dtype:
        raise UsageError(
            f"{source} is text or a table, of which one machine reads all: without --workers and --scheduler"
        )
    values, version = tensor.values, tensor.opened or StoreVersion.describe(source, None)
    lies_in_file = isinstance(values, np.memmap)
    chunks = choose_chunks(values.shape, values.dtype) if lies_in_file else values.shape
    return Stored(source, values, chunks, version)
