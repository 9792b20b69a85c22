"""Names of arrays in chunked stores: `store.zarr`, `store.zarr:group/x`, `file.h5:x`."""

from __future__ import annotations

import os
import re

from normcli.tuples import NamedTuple

_SPECIFICATION = re.compile(r"(.+?(\.zarr|\.h5|\.hdf5|\.nc))(?::(.+)|/*)", re.IGNORECASE | re.DOTALL)
"""`STORE` or `STORE:ARRAY`."""

_KIND_OF = {".zarr": "zarr", ".h5": "hdf5", ".hdf5": "hdf5", ".nc": "hdf5"}


class Place(NamedTuple):
    """The place of an array in a store.

    Parameters
    ----------
    path : str
        The store's path, or a URL that zarr opens.
    suffix : str
        The store's suffix in lower case: `.zarr`, `.h5`, `.hdf5` or `.nc`.
    key : str or None
        The array's name in the store; None if none is given.
    """

    path: str
    suffix: str
    key: str | None

    @property
    def is_zarr(self) -> bool:
        """Whether the store is Zarr (and not HDF5)."""
        return _KIND_OF[self.suffix] == "zarr"

    @property
    def is_remote(self) -> bool:
        """Whether the path is a URL."""
        return "://" in self.path


def find_place(specification: str) -> Place | None:
    """Return the place in a store that a text names; None if it names none.

    Examples
    --------
    >>> find_place("s3://data/store.zarr:group/x")
    Place(path='s3://data/store.zarr', suffix='.zarr', key='group/x')
    >>> find_place("x.npy")
    """
    found = _SPECIFICATION.fullmatch(specification)
    if found is None:
        return None
    path, suffix, key = found.groups()
    return Place(path, suffix.lower(), key)


def locate(specification: str) -> str:
    """Return the name of a file, or of an array in a store, as an absolute path; a URL unchanged."""
    return specification if "://" in specification else os.path.abspath(specification)  # noqa: PTH100
