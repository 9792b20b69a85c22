"""A tensor with its source, and its name: `-`, a file, the key of an archive, or a place in a store."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from normcli.dtypes import is_long_float
from normcli.errors import DataError, UsageError
from normcli.printable import make_printable
from normcli.tensors.tables.column_choice import match_names
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from normcli.tensors.formats.stored_array import Stored
    from normcli.tensors.held_files import Opened, StoreVersion
    from normcli.tensors.residual import Addends
    from normcli.tensors.tables.numerals import Label, Numerals
    from normcli.tensors.tables.tables import FileTable


STANDARD_STREAM = "-"
"""The file name that stands for standard input and output."""


STREAMED = ("npy", "csv", "tsv", "json", "jsonl", "parquet")
"""The formats in which a tensor can be written to standard output; the first is the default without a table."""


class GroupingColumns(NamedTuple):
    """The columns by which the rows of a table are grouped.

    Parameters
    ----------
    names : tuple of str
        The names of the columns.
    read : callable
        Takes nothing, and yields a tuple for each row of the file: its cells in these columns, None for a
        missing one. Cells of a delimited file are texts as they stand; those of other files the texts that
        `name_value` makes of their values.
    numerals : Numerals or None
        The notation of numbers in the texts of a delimited file; None for files whose cells have types.
    rows : slice
        The rows of the file that are in the tensor.
    """

    names: tuple[str, ...]
    read: Callable[[], Iterator[Label]]
    numerals: Numerals | None = None
    rows: slice = slice(None)


class Tensor(NamedTuple):
    """A tensor: its values, and their origin.

    Parameters
    ----------
    values : ndarray
        The values, of an integer, boolean or float dtype.
    source : str
        The origin of the values, for messages: `x.npy`, `standard input`, `randint [0, 10), ...`.
    columns : tuple of str or None
        A name for each index of the last axis, such as the header of a CSV file; None without names.
    note : str or None
        A note for the user on how the values were read; None without one.
    table : FileTable or None
        The table whose columns the values are; a result is written among its other columns.
    has_no_dtype : bool
        Whether the source is text or a table, in which the dtype of whole numbers depends on the values.
    opened : Opened, StoreVersion or None
        The state of the file or store when it was opened, to detect changes; None if no other process can
        change the values.
    stored : Stored or None
        The array of a Zarr or HDF5 store that the values were read from; None for any other source.
    addends : Addends or None
        The two addends, if a residual was added; the values are their sum.
    by : GroupingColumns or None
        The columns by which the rows are grouped; None if they are not.
    """

    values: NDArray[Any]
    source: str
    columns: tuple[str, ...] | None = None
    note: str | None = None
    table: FileTable | None = None
    has_no_dtype: bool = False
    opened: Opened | StoreVersion | None = None
    stored: Stored | None = None
    addends: Addends | None = None
    by: GroupingColumns | None = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of this tensor as users see it: float64 for whole numbers from text or a table."""
        import numpy as np  # on use: the command line imports this module's constants, often without NumPy

        whole = self.has_no_dtype and self.values.dtype.kind in "biu"
        return np.dtype(np.float64) if whole else self.values.dtype

    @property
    def output_dtype(self) -> str | None:
        """The default dtype of results, if a residual was added exactly in a wider one; else None."""
        return None if self.addends is None else self.addends.output_dtype

    @property
    def dimensions(self) -> tuple[str, ...] | None:
        """The names of this tensor's axes in its Zarr or HDF5 store; None without names or without a store."""
        return None if self.stored is None else self.stored.dimensions

    @property
    def remarks(self) -> tuple[str, ...]:
        """The notes for the user on how the values were read or will be rounded."""
        notes = [self.note]
        if is_long_float(self.values.dtype):
            notes.append(f"{self.values.dtype} is calculated with as float64, to which its values are rounded")
        return tuple(note for note in notes if note is not None)

    def arrange(self, wanted: tuple[str, ...] | None) -> NDArray[Any]:
        """Return this tensor's values with the columns (the last axis) in the order of the wanted names.

        The values are returned unchanged if `wanted` is None, the tensor has no column names, or none of its
        names is wanted.

        Raises
        ------
        DataError
            If the tensor has some of the wanted names, and lacks one, has a further one, or has one twice.
        """
        if wanted is None or self.columns is None or not set(wanted) & set(self.columns):
            return self.values
        places = match_names(self.columns, wanted, self.source)
        return self.values if places == list(range(len(wanted))) else self.values[..., places]


def choose_key(names: Collection[str], archive: str, key: str | None) -> str:
    """Return the name of the chosen array of an archive: `key`, or if that is None the only one.

    Parameters
    ----------
    names : collection of str
        The names of all arrays.
    archive : str
        The archive's name in messages.
    key : str or None

    Raises
    ------
    UsageError
        If there are several arrays and no key, or no array called `key`.
    DataError
        If there are no arrays.
    """
    if not names:
        raise DataError(f"{archive} holds no arrays")
    if key is None:
        if len(names) > 1:
            raise UsageError(f"{archive} holds {len(names)} arrays; say which: {_suggest(archive, names)}")
        return next(iter(names))
    if key not in names:
        raise UsageError(f"{archive} holds no array {key!r}; it has {_suggest(archive, names)}")
    return key


def _suggest(archive: str, names: Collection[str]) -> str:
    shown = ", ".join(_quote(f"{archive}:{name}") for name in list(names)[:_MOST_NAMED])
    return shown + (", …" if len(names) > _MOST_NAMED else "")


def _quote(specification: str) -> str:
    """Return a name as a shell reads it: in `$'…'`, with escape sequences, if a terminal cannot show it."""
    shown = make_printable(specification.replace("\\", r"\\").replace("'", r"\'"))
    return specification if make_printable(specification) == specification else f"$'{shown}'"


_MOST_NAMED = 8
"""Arrays of an archive that a message lists."""

_SPECIFICATION = r"(?is)(.+?(\.zarr|\.h5|\.hdf5|\.nc))(?::(.+)|/*)"
"""`STORE` or `STORE:ARRAY`."""


class Place(NamedTuple):
    """The path of a Zarr or HDF5 store, and the name of an array in it.

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
        return self.suffix == ".zarr"

    @property
    def is_remote(self) -> bool:
        """Whether the path is a URL."""
        return "://" in self.path


def find_place(specification: str) -> Place | None:
    """Split the name of a store, or of an array in it; return None for any other text, such as a file's name.

    Examples
    --------
    >>> find_place("s3://data/store.zarr:group/x")
    Place(path='s3://data/store.zarr', suffix='.zarr', key='group/x')
    >>> find_place("x.npy")
    """
    found = re.fullmatch(_SPECIFICATION, specification)
    if found is None:
        return None
    path, suffix, key = found.groups()
    return Place(path, suffix.lower(), key)


def locate(specification: str) -> str:
    """Return the name of a file, or of an array in a store, as an absolute path; a URL unchanged."""
    return specification if "://" in specification else os.path.abspath(specification)  # noqa: PTH100
