"""Rows grouped by a column: read some at a time, each added to the sums of its own group."""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from normcli.errors import DataError
from normcli.fitting.gather import SharedSums, gather
from normcli.fitting.sums import Sums
from normcli.tensors.held_files import refuse_changed
from normcli.tensors.mapped import fetch
from normcli.tensors.pieces import forget

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.engine.walk import Effort
    from normcli.fitting.subject import Subject
    from normcli.tensors.tensor import Tensor

_VALUES = 1 << 17
"""Values of the rows that are read at a time."""


def warn_of_unnamed(labels: Collection[str]) -> tuple[str, ...]:
    """Return the warning that the group of some rows has no name; no warning where every group has one."""
    return ("rows whose group has no name make one group",) if "" in labels else ()


def iterate_rows(tensor: Tensor) -> Iterator[tuple[slice, list[str]]]:
    """Yield some rows at a time, and the value of each in the column that they are grouped by.

    Raises
    ------
    DataError
        If the file of the table has changed since its numbers were read.
    """
    values, by = tensor.values, tensor.by
    assert by is not None
    texts, step = by.read(), max(1, _VALUES // values.shape[1])
    for start in range(0, len(values), step):
        rows = slice(start, min(start + step, len(values)))
        labels = list(itertools.islice(texts, step))
        if len(labels) != rows.stop - start:
            refuse_changed(tensor.source)
        yield rows, labels
        forget(values)
    if tensor.opened is not None:
        tensor.opened.require_unchanged()


def number_groups_of(rows: NDArray[np.intp] | Sequence[int], columns: int) -> NDArray[np.intp]:
    """Return the numbers of the statistics in some rows of these, each of which has one for each column."""
    return np.add.outer(np.asarray(rows, np.intp) * columns, np.arange(columns)).reshape(-1)


def gather_by_column(subject: Subject, tensor: Tensor, effort: Effort) -> tuple[Subject, Sums]:
    """Return the sums of each group of a table's rows, in the order of the subject's labels.

    Parameters
    ----------
    subject : Subject
        Whose labels are replaced by those of the table.
    tensor : Tensor
    effort : Effort
    """
    numbers: defaultdict[str, int] = defaultdict(itertools.count().__next__)
    sums, width = Sums.zeros(0), tensor.values.shape[1]
    for rows, labels in iterate_rows(tensor):
        own = list(map(numbers.__getitem__, labels))
        if len(numbers) * width > len(sums.count):  # twice as many: labels that come one by one are copied once
            grown = Sums.zeros(2 * len(numbers) * width)
            grown.merge(sums, slice(0, len(sums.count)))
            sums = grown
        piece = fetch(tensor.values[rows])[np.newaxis]
        plan = subject._replace(labels=tuple(labels)).plan(1)
        gather(plan, piece, effort, shared=SharedSums(sums, number_groups_of(own, width)))
    order = sorted(numbers)
    if any("\0" in label for label in order):
        raise DataError(f"{tensor.source}: a value of {subject.by} has a character that no stats file can keep")
    found = sums.take(number_groups_of([numbers[label] for label in order], width))
    return subject._replace(labels=tuple(order)), found
