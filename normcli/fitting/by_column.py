"""Rows grouped by columns: numbered once, then read some at a time, each added to the sums of its own group."""

from __future__ import annotations

import itertools
from collections import defaultdict
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.errors import DataError
from normcli.fitting.gather import SharedSums, gather
from normcli.fitting.sums import Sums
from normcli.printable import format_count, shorten
from normcli.tensors.held_files import refuse_changed
from normcli.tensors.mapped import fetch
from normcli.tensors.pieces import forget
from normcli.tensors.spool import Collected
from normcli.tensors.tables.numerals import AS_PYTHON
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.engine.walk import Effort
    from normcli.fitting.subject import Subject
    from normcli.tensors.tables.numerals import Label, Numerals
    from normcli.tensors.tensor import GroupingColumns, Tensor

_VALUES = 1 << 17
"""Values of the rows that are read at a time."""

_REMEMBERED = 1 << 16
"""Cells of which it is remembered how they are named."""


class RowGroups(NamedTuple):
    """The groups of a table's rows.

    Parameters
    ----------
    labels : tuple of Label
        Sorted by `sort_labels`.
    met : ndarray of int, shape (rows,)
        The number of each row's group in the order in which groups are met, in a file where rows are many.
    places : ndarray of int, shape (groups,)
        Where each group of that order stands among the labels.
    """

    labels: tuple[Label, ...]
    met: NDArray[np.intp]
    places: NDArray[np.intp]

    def among(self, labels: Sequence[Label]) -> RowGroups:
        """Return the groups among those of all files."""
        order = {label: place for place, label in enumerate(labels)}
        here = np.array([order[label] for label in self.labels], np.intp)
        return self._replace(places=here[self.places])

    def iterate_rows(self, values: NDArray[Any]) -> Iterator[tuple[slice, NDArray[np.intp]]]:
        """Yield some rows at a time, and where the group of each stands among the labels."""
        step = max(1, _VALUES // values.shape[1])
        for start in range(0, len(values), step):
            rows = slice(start, min(start + step, len(values)))
            yield rows, self.places[fetch(self.met[rows])]
            forget(values)
            forget(self.met)


def warn_of_unnamed(labels: Collection[Label]) -> tuple[str, ...]:
    """Return the warning that the group of some rows has no name; no warning where every group has one."""
    is_unnamed = any(not cell for label in labels for cell in label)
    return ("rows whose group has no name make one group",) if is_unnamed else ()


def sort_labels(labels: Iterable[Label]) -> tuple[Label, ...]:
    """Return the names of groups in order: what is missing, then numbers by their size, then texts."""
    return tuple(sorted(labels, key=lambda label: tuple(map(_rank, label))))


def _rank(cell: str | None) -> tuple[int, float, str]:
    if cell is None:
        return 0, 0.0, ""
    number = AS_PYTHON.read(cell)
    return (2, 0.0, cell) if number is None or number != number else (1, number, cell)


def find_groups(tensor: Tensor, known: Subject | None = None) -> RowGroups:
    """Return the groups of a table's rows, whose cells are read once.

    Parameters
    ----------
    tensor : Tensor
    known : Subject or None
        Whose groups there are statistics of: no others may be met, and the labels are its own.

    Raises
    ------
    DataError
        If the file of the table has changed since its numbers were read, or a group is none of the known ones.
    """
    by, count = tensor.by, len(tensor.values)
    assert by is not None
    known_labels = () if known is None else known.labels
    if known_labels and len(known_labels[0]) != len(by.names):
        wanted = format_count(len(known_labels[0]), "column")
        raise DataError(
            f"{tensor.source}: the statistics are of rows grouped by {wanted}, not by {len(by.names)}"
        )
    numeric = _find_numeric(by, known_labels)
    cells: Iterator[Label] = itertools.islice(by.read(), by.rows.start, by.rows.stop)
    if by.numerals is not None and numeric:
        cells = map(lru_cache(_REMEMBERED)(partial(_name, numerals=by.numerals, places=numeric)), cells)
    numbers: defaultdict[Label, int] = defaultdict(itertools.count().__next__)
    with Collected(tensor.source) as collected:
        while block := list(itertools.islice(cells, _VALUES)):
            collected.add(np.array(list(map(numbers.__getitem__, block)), np.intp))
        met = collected.finish((-1,), np.dtype(np.intp))
    if len(met) != count:
        refuse_changed(tensor.source)
    if tensor.opened is not None:
        tensor.opened.require_unchanged()
    labels = known_labels or sort_labels(numbers)
    order = {label: place for place, label in enumerate(labels)}
    order = {_name(label, AS_PYTHON, numeric): place for label, place in order.items()} | order
    places = np.array([order.get(label, -1) for label in numbers], np.intp)
    if known is not None and -1 in places:
        number = int((places < 0).argmax())
        missing = ", ".join(repr(shorten(cell or "")) for cell in list(numbers)[number])
        raise DataError(
            f"{tensor.source}, row {int((met == number).argmax()) + 1}: there are no statistics of the group "
            f"{missing} of {', '.join(known.by or ())}; fit it too, or leave its rows out"
        )
    return RowGroups(labels, met, places)


def _find_numeric(by: GroupingColumns, known: Sequence[Label]) -> frozenset[int]:
    """Return which columns hold numbers alone, and are compared as numbers: the known groups', or all rows'."""
    numerals, places = AS_PYTHON if known else by.numerals, frozenset(range(len(by.names)))
    if numerals is None:
        return frozenset()
    is_number = lru_cache(_REMEMBERED)(numerals.is_number)
    for label in known or by.read():
        places -= {place for place in places if not is_number(label[place] or "")}
        if not places:
            break
    named = {_name(label, AS_PYTHON, places) for label in known}
    return places if len(named) == len(known) else frozenset()  # files of old have told 1 and 1.0 apart


def _name(label: Label, numerals: Numerals, places: Collection[int]) -> Label:
    """Return the cells of a row with one name for all spellings of a number, in some of the columns."""
    return tuple(
        numerals.name(cell) if place in places and cell is not None and numerals.is_number(cell) else cell
        for place, cell in enumerate(label)
    )


def number_groups_of(rows: NDArray[np.intp] | Sequence[int], columns: int) -> NDArray[np.intp]:
    """Return the numbers of the statistics in some rows of these, each of which has one for each column."""
    return np.add.outer(np.asarray(rows, np.intp) * columns, np.arange(columns)).reshape(-1)


def gather_by_column(subject: Subject, tensor: Tensor, effort: Effort) -> tuple[Subject, Sums]:
    """Return the sums of each group of a table's rows, and the subject with the names of these groups.

    Parameters
    ----------
    subject : Subject
    tensor : Tensor
    effort : Effort
    """
    groups, width = find_groups(tensor), tensor.values.shape[1]
    if any("\0" in (cell or "") for label in groups.labels for cell in label):
        names = ", ".join(subject.by or ())
        raise DataError(f"{tensor.source}: a value of {names} has a character that no stats file can keep")
    subject, sums = subject._replace(labels=groups.labels), Sums.zeros(len(groups.labels) * width)
    for rows, numbers in groups.iterate_rows(tensor.values):
        piece = fetch(tensor.values[rows])[np.newaxis]
        plan = subject._replace(labels=(("",),) * len(numbers)).plan(1)
        gather(plan, piece, effort, shared=SharedSums(sums, number_groups_of(numbers, width)))
    return subject, sums
