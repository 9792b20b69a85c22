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
    """The parts of an answer that the reader asked to see, and the width for them.

    Parameters
    ----------
    show : collection of str or None
        The names of the parts to show; None means all that the document shows by default.
    digits : int or None
        Significant digits; None means 8 for statistics and 5 for cells.
    full : bool
        Whether every group and every value is shown; otherwise long tables are cut in the middle.
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
    """A title, and lines, each a label with its facts, between which a writer puts a gap or a comma."""

    title: str
    lines: tuple[tuple[str, tuple[str, ...]], ...]


_SHORT = 4096
"""The most values of an array that is formatted in one step."""

GAP = "…"
"""The sign for cells, rows or columns that are left out."""

GUTTER = "   "
"""The space between facts on one line, and between matrices."""


class Line(NamedTuple):
    """Facts on one line; `mark` is True for good (✓), False for bad (✗), None for neither.

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
    """A row of a table; its first cell has the colour of group number `group`, None for no colour."""

    cells: tuple[str, ...]
    group: int | None = None


class Table(NamedTuple):
    """A table: a title, named columns, and rows; None in place of a row stands for rows left out.

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
    """A two-dimensional slice of a tensor as text.

    Parameters
    ----------
    name : str
        The slice's index along the outer axes, `n=0 c=1`; "" if there are none.
    cells : sequence of rows of str
        `…` stands for cells left out.
    groups : sequence of rows of int or None
        The number of each cell's group, which colours it; None for a cell without group.
    row_labels, column_labels : sequence of str
    """

    name: str
    cells: Sequence[Sequence[str]]
    groups: Sequence[Sequence[int | None]]
    row_labels: Sequence[str]
    column_labels: Sequence[str]


class Blocks(NamedTuple):
    """A tensor as matrices of its last two axes, in bands: lists of matrices side by side.

    A band holds the matrices along the third axis from the end; there is one for each index along the axes
    before it. None in a band stands for matrices left out, and None in place of a band for bands left out.
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
    """A sentence on a step of a calculation, and its equations; None stands for equations left out."""

    title: str
    equations: tuple[Equation | None, ...] = ()
    note: str | None = None


Section = Facts | Line | Table | Blocks | Formulas


class Entry(NamedTuple):
    """A line on an HTML page that lists judged things, such as layers; a click on it opens its `sections`.

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
        What the click opens.
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
    """The interface between answers and writers: each answer has these methods, and each writer calls one.

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
    """A document whose rows of CSV are its JSON-lines records, with a record's members as cells."""

    @property
    def row_names(self) -> Sequence[str]:
        """The members of a record that are columns of CSV; empty (the default) for all members."""
        return ()

    def rows(self) -> Iterator[Sequence[Any]]:
        """Return a header, and one row for each record."""
        return flatten_records(self.records(), self.row_names)


class Page(NamedTuple):
    """The content of an HTML page: results of one tensor, of which the reader sees one at a time.

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
    """Return a value in a form for JSON: enumeration members by their values, named tuples as objects.

    Infinities and NaN become texts. Arrays become lists; an array of over 4,096 values becomes a `NestedLists`,
    whose text is made in pieces when it is written.

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
    """Yield the rows of a CSV table: the names of the columns, then the cells of each record.

    A dict within a record is replaced by its members; a list becomes its items with blanks between them.
    `columns` are the names, and choose the members of a row. Without `columns`, the names are those of the
    first record, and nothing is yielded if there are no records.
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
