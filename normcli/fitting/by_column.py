"""Rows grouped by columns: numbered once, then read some at a time, each added to the sums of its own group."""

from __future__ import annotations

import itertools
from collections import defaultdict
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
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.engine.walk import Effort
    from normcli.fitting.subject import Subject
    from normcli.tensors.tables.numerals import Label, Numerals
    from normcli.tensors.tensor import Tensor

_VALUES = 1 << 17
"""The number of values in the rows that are read at a time."""


class RowGroups(NamedTuple):
    """The groups of a table's rows: a group for each different value of the grouping columns.

    Parameters
    ----------
    labels : tuple of Label
        The names of the groups, sorted by `sort_labels`.
    met : ndarray of int, shape (rows,)
        For each row, the number of the spelling of its label. Spellings are numbered from 0 in order of first
        appearance; `1` and `1.0` are two spellings, which may belong to one group. The array may be mapped from
        a temporary file.
    places : ndarray of int, shape (spellings,)
        For each spelling, the index of its group in `labels`.
    """

    labels: tuple[Label, ...]
    met: NDArray[np.intp]
    places: NDArray[np.intp]

    def iterate_rows(self, values: NDArray[Any]) -> Iterator[tuple[slice, NDArray[np.intp]]]:
        """Yield pairs (rows, indices) that cover the rows of a table in order, block by block.

        `rows` is the slice of a block, of at most 131,072 values (or one row); `indices` has for each row of
        the block the index of its group in `labels`.

        Parameters
        ----------
        values : ndarray, shape (rows, columns)
            The table, which is not read here; its mapped memory is released after each slice.
        """
        step = max(1, _VALUES // values.shape[1])
        for start in range(0, len(values), step):
            rows = slice(start, min(start + step, len(values)))
            yield rows, self.places[fetch(self.met[rows])]
            forget(values)
            forget(self.met)


def sort_labels(labels: Iterable[Label]) -> tuple[Label, ...]:
    """Return the names of groups in order: missing cells, then numbers by size, then texts."""
    return tuple(sorted(labels, key=lambda label: tuple(map(_rank, label))))


def _rank(cell: str | None) -> tuple[int, float, str]:
    """Return the sorting key of a cell: missing first, then numbers by size, then texts."""
    if cell is None:
        return 0, 0.0, ""
    number = AS_PYTHON.read(cell)
    return (2, 0.0, cell) if number is None or number != number else (1, number, cell)


def find_groups(tensor: Tensor, known: Subject | None = None) -> RowGroups:
    """Return the groups of a table's rows; the cells of the grouping columns are read once.

    Parameters
    ----------
    tensor : Tensor
        The table, whose `by` is not None.
    known : Subject or None
        The subject of fitted statistics: the result has its labels, and every row must belong to one of them.
        None: the result has the labels that the table has, sorted.

    Raises
    ------
    DataError
        If the file of the table has changed since its numbers were read, the statistics are grouped by another
        number of columns, or a row's group is not among the known ones.
    """
    by, count = tensor.by, len(tensor.values)
    assert by is not None
    known_labels = () if known is None else known.labels
    if known_labels and len(known_labels[0]) != len(by.names):
        wanted = format_count(len(known_labels[0]), "column")
        raise DataError(
            f"{tensor.source}: the statistics are of rows grouped by {wanted}, not by {len(by.names)}"
        )
    cells: Iterator[Label] = itertools.islice(by.read(), by.rows.start, by.rows.stop)
    spellings: defaultdict[Label, int] = defaultdict(itertools.count().__next__)
    with Collected(tensor.source) as collected:
        while block := list(itertools.islice(cells, _VALUES)):
            collected.add(np.array(list(map(spellings.__getitem__, block)), np.intp))
        met = collected.finish((-1,), np.dtype(np.intp))
    if len(met) != count:
        refuse_changed(tensor.source)
    if tensor.opened is not None:
        tensor.opened.require_unchanged()
    names = [_name(label, by.numerals) for label in spellings]
    labels = known_labels or sort_labels({*names})
    order = {label: place for place, label in enumerate(labels)}
    named = {_name(label, AS_PYTHON): place for label, place in order.items()}
    order = named | order if len(named) == len(order) else order  # older files have 1 and 1.0 as two groups
    found = (order.get(label, order.get(name, -1)) for label, name in zip(spellings, names, strict=True))
    places = np.fromiter(found, np.intp, len(names))
    if known is not None and -1 in places:
        number = int((places < 0).argmax())
        missing = ", ".join(repr(shorten(cell or "")) for cell in list(spellings)[number])
        others = len({name for name, place in zip(names, places, strict=True) if place < 0}) - 1
        more, them, their = (f", nor of {others:,} more", "them", "their") if others else ("", "it", "its")
        raise DataError(
            f"{tensor.source}, row {int((met == number).argmax()) + 1}: there are no statistics of the group "
            f"{missing} of {', '.join(known.by or ())}{more}; fit {them} too, or leave {their} rows out"
        )
    return RowGroups(labels, met, places)


def _name(label: Label, numerals: Numerals | None) -> Label:
    """Return a row's label with one spelling for each number, if cells are texts; otherwise unchanged."""
    return label if numerals is None else tuple(map(numerals.name_cell, label))


def number_groups_of(rows: NDArray[np.intp] | Sequence[int], columns: int) -> NDArray[np.intp]:
    """Return the flat numbers of the statistics in some rows of a table of statistics with `columns` columns.

    For rows [0, 2] of 3 columns these are [0, 1, 2, 6, 7, 8].
    """
    return np.add.outer(np.asarray(rows, np.intp) * columns, np.arange(columns)).reshape(-1)


def gather_by_column(subject: Subject, tensor: Tensor, effort: Effort) -> tuple[Subject, Sums]:
    """Return the sums of each group of a table's rows, and before them a `Subject` with the groups' names.

    Parameters
    ----------
    subject : Subject
        The norm and the columns of the table. The first result is a copy with the groups' names as `labels`.
    tensor : Tensor
        The table, with `by`.
    effort : Effort

    Raises
    ------
    DataError
        If the file has changed since it was opened, or the name of a group holds a NUL character.
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
