"""The content of an answer, before any writer formats it: a `Document`.

Each verb makes a document, and each writer writes any document, so that every verb has every format.
"""

from __future__ import annotations

import enum
import json
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from normcli.tensors.formats.json_lists import NestedLists, describe_number, join_json, to_lists
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from normcli.documents.scene import Scene
    from normcli.results.result import Result
    from normcli.tensors.tensor import Tensor


SCHEMA = "normcli/1"
"""The version of the JSON that normcli writes and reads back."""


class View(NamedTuple):
    """The parts that the reader asked to see, and the room for them.

    Parameters
    ----------
    show : collection of str or None
        The names of the parts to show; None means all that the document shows by default.
    digits : int or None
        Significant digits; None means 8 for statistics and 5 for cells.
    full : bool
        Show every group and every value.
    width : int or None
        The terminal's columns; None where nothing bounds the width (a pipe, a file).
    colour : bool
        Whether colours may be used.
    """

    show: Collection[str] | None = None
    digits: int | None = None
    full: bool = False
    width: int | None = None
    colour: bool = False

    def shows(self, part: str) -> bool:
        """Whether a part is to be shown."""
        return self.show is None or part in self.show


class Facts(NamedTuple):
    """A title, and lines of a label and its facts; a writer sets facts apart from each other."""

    title: str
    lines: tuple[tuple[str, tuple[str, ...]], ...]


_SHORT = 4096
"""The most values of an array that is formatted in one step."""

GAP = "…"
"""The sign for cells, rows or columns that are left out."""

GUTTER = "   "
"""The space between facts on one line, and between matrices."""


class Line(NamedTuple):
    """Facts on one line; `mark` is True for good, False for bad, None for neither.

    `details` are lines below it, each a label, which may be empty, and a text.
    """

    facts: tuple[str, ...]
    mark: bool | None = None
    details: tuple[tuple[str, str], ...] = ()

    @property
    def marked(self) -> tuple[str, ...]:
        """The facts with the mark before the first."""
        if self.mark is None:
            return self.facts
        return (f"{'✓' if self.mark else '✗'} {self.facts[0]}", *self.facts[1:])


class TableRow(NamedTuple):
    """A row of a table; `group` numbers the colour of its first cell."""

    cells: tuple[str, ...]
    group: int | None = None


class Table(NamedTuple):
    """A table: a title, named columns, rows; None in place of a row marks rows left out.

    Parameters
    ----------
    numeric : sequence of bool
        For each column, whether it is set flush right.
    note : str or None
        A note on the rows left out; None without one.
    wraps : bool
        Whether a table that is wider than the terminal is split into tables of fewer columns, with wrapped
        cells. Otherwise each of its rows becomes a paragraph, with a line for each cell.
    """

    title: str | None
    columns: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: Sequence[TableRow | None] = ()
    note: str | None = None
    wraps: bool = False


class Matrix(NamedTuple):
    """A two-dimensional piece of a tensor as text.

    Parameters
    ----------
    name : str
        The piece's index along the outer axes, `n=0 c=1`; "" if there are none.
    cells : sequence of rows of str
        `…` stands for cells left out.
    groups : sequence of rows of int, or None
        The number of each cell's group, which colours it; None for a cell without group.
    row_labels, column_labels : sequence of str
    """

    name: str
    cells: Sequence[Sequence[str]]
    groups: Sequence[Sequence[int | None]]
    row_labels: Sequence[str]
    column_labels: Sequence[str]


class Blocks(NamedTuple):
    """The matrices of a tensor's last two axes, in bands: lists of matrices side by side.

    A band holds the matrices along the third axis from the end; there is one for each index of the axes before.
    None in a band stands for matrices that are left out, and None in place of a band for left-out bands.
    """

    title: str
    caption: str
    bands: Sequence[Sequence[Matrix | None] | None]
    note: str | None = None


class Equation(NamedTuple):
    """A line of arithmetic.

    Parameters
    ----------
    text : str
        For a terminal: `μ = (1 + 2) / 2 = 1.5`.
    latex : tuple of str
        The same for a page that sets formulas, cut before each sign of equality.
    """

    text: str
    latex: tuple[str, ...]


class Formulas(NamedTuple):
    """A sentence on a step of a calculation, and its arithmetic; None stands for lines that are left out."""

    title: str
    equations: tuple[Equation | None, ...] = ()
    note: str | None = None


Section = Facts | Line | Table | Blocks | Formulas


class Entry(NamedTuple):
    """A line of a page that lists checked things; clicking the line opens the answer on one of them.

    Parameters
    ----------
    name, kind : str
        The name of the thing, such as a layer, and its kind.
    ulp : float or None
        The largest error in ulp, which a bar shows; None if nothing was measured.
    distance, said : str
        The largest error in words; the verdict and its cause.
    ok : bool or None
        Whether it is right; None if it could not be judged.
    sections : sequence of Section
        The answer.
    """

    name: str
    kind: str
    ulp: float | None
    distance: str
    said: str
    ok: bool | None
    sections: Sequence[Section]


class Listing(NamedTuple):
    """A page that lists entries, below the verdict on all of them."""

    title: str
    verdict: Line
    entries: Sequence[Entry]


class LongList(NamedTuple):
    """A list of a JSON object, formatted some items at a time: its text may not fit into memory.

    Parameters
    ----------
    chunks : iterable of list
        Consecutive parts of the list, none of them empty.
    """

    chunks: Iterable[list[Any]]

    def format_json(self) -> Iterator[str]:
        """Return the pieces of the JSON text."""
        return join_json([json.dumps(chunk, allow_nan=False)[1:-1]] for chunk in self.chunks)


class Document(Protocol):
    """The interface between answers and writers.

    Values in JSON objects may be `LongList`s, or other objects that have a method `format_json`.
    """

    def sections(self, view: View) -> Iterable[Section]:
        """Return the sections for a reader, from top to bottom."""

    def data(self) -> Mapping[str, Any]:
        """Return the whole answer as one object of strict JSON."""

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Return the whole answer as objects, for JSON lines."""

    def rows(self) -> Iterator[Sequence[Any]]:
        """Return the whole answer as rows of a CSV file, the header first."""


class RecordDocument(Document, Protocol):
    """A document whose rows of CSV are its records."""

    @property
    def row_names(self) -> Sequence[str]:
        """The members of a record that are columns of CSV; empty (the default) for all members."""
        return ()

    def rows(self) -> Iterator[Sequence[Any]]:
        """Return a header, and one row for each record."""
        return flatten_records(self.records(), self.row_names)


class Page(NamedTuple):
    """The content of a page: results of one tensor, of which the reader sees one at a time.

    Parameters
    ----------
    title : str
    results : sequence of Result
    tensor : Tensor
        The tensor of all results.
    at : tuple of int or None
        The index of the value at which the page opens; None for the first one.
    names : sequence of str or None
        The results' names; None to use the names of their norms.
    further : callable or None
        Takes a view, and returns the sections to show below the results; None if there are none.
    picture : Scene or None
        The picture above these sections; None without one.
    """

    title: str
    results: Sequence[Result]
    tensor: Tensor
    at: tuple[int, ...] | None = None
    names: Sequence[str] | None = None
    further: Callable[[View], Iterable[Section]] | None = None
    picture: Scene | None = None


class Drawable(Document, Protocol):
    """A document that can be a picture too."""

    def scene(self) -> Scene:
        """Return the shapes of the picture."""


def describe_members(record: object, *names: str) -> dict[str, Any]:
    """Return some fields of a record by name, each converted by `describe_value`."""
    return {name: describe_value(getattr(record, name)) for name in names}


def describe_value(value: Any) -> Any:
    """Return a value as JSON can hold it: a member of an enumeration by its value, records as objects.

    Arrays become lists; long ones `NestedLists`, whose text is made piece by piece where it is written.

    Examples
    --------
    >>> describe_value((1, None, float("inf")))
    [1, None, 'inf']
    """
    if isinstance(value, float):
        return describe_number(value)
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, np.ndarray):
        return to_lists(value) if value.size <= _SHORT else NestedLists(value)
    if isinstance(value, dict):
        return {name: describe_value(member) for name, member in value.items()}
    if hasattr(value, "_fields"):
        return describe_members(value, *value._fields)
    return list(map(describe_value, value)) if isinstance(value, tuple) else value


def flatten_records(
    records: Iterable[Mapping[str, Any]], columns: Sequence[str] = ()
) -> Iterator[Sequence[Any]]:
    """Yield a header, and a row for each record; a list in a cell becomes its items with blanks between them.

    A dict within a record is replaced by its members. The header is `columns`, which also choose the members of
    a row; without `columns`, it is the names of the first record's members, and nothing is yielded without
    records.
    """
    names = columns
    if names:
        yield names
    for record in records:
        members: dict[str, Any] = {}
        for name, value in record.items():
            members |= value if isinstance(value, dict) else {name: value}
        if not names:
            names = tuple(members)
            yield names
        cells = [members[name] for name in names]
        yield [" ".join(map(str, cell)) if isinstance(cell, list) else cell for cell in cells]
