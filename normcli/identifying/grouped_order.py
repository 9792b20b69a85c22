"""Tables whose rows stand in another order than the input's, or were grouped by other columns."""

from __future__ import annotations

import contextlib
import itertools
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from normcli.checking.fault import find_fault
from normcli.errors import NormError
from normcli.fitting.by_column import find_groups
from normcli.identifying.faults.tables.places import name_order
from normcli.identifying.question import Diagnosis, Kind
from normcli.tensors.mapped import fetch
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.identifying.grouped_check import GroupedCheck, GroupedTable
    from normcli.norms.request import Request
    from normcli.tensors.tensor import GroupingColumns

_MOST_ROWS, _MOST_COLUMNS = 1 << 20, 16
"""The most rows of a table for which other orders and groups are looked for, and the most columns of it."""

_BACK = "put the rows into the order of the input"


class OtherRequest(NamedTuple):
    """Another request that a table may be the result of, and the command-line options that lead to it."""

    option: str
    request: Request


def find_labelled_order(found: GroupedCheck) -> Diagnosis | None:
    """Return the diagnosis of an actual table whose group columns show that its rows are in another order.

    None if there is no such row, if groups have other labels or sizes, or without group columns in the actual
    table.
    """
    actual, mine = found.table.actual, found.groups.labels
    if actual.by is None:
        return None
    theirs = find_groups(actual)
    if mine != theirs.labels:
        return None
    here, there = found.places, theirs.places[fetch(theirs.met)]
    if (here == there).all() or (np.bincount(here) != np.bincount(there)).any():
        return None
    row = int((here != there).argmax())
    cells = (actual.by.names, *(mine[places[row]] for places in (here, there)))
    names, own, other = (", ".join(cell or "" for cell in each) for each in cells)
    cause = f"{found.plan.norm.name} differs: rows are in another order"
    shown = f"row {row + 1} is of {names} {other} in --actual, of {own} in --input"
    return Diagnosis(Kind.NORM, cause, (shown,), remedy=_BACK)


@np.errstate(all="ignore")
def find_order(found: GroupedCheck) -> Diagnosis | None:
    """Return the diagnosis of a table that has the exact rows in another order, as their values show; or None.

    None for more than 2²⁰ rows.
    """
    table, places = found.table, found.places
    if len(places) > _MOST_ROWS:
        return None
    right, y = table.normalize(found.stats), fetch(table.actual.values).astype(np.float64)
    keys = 1.0 / np.sqrt(np.arange(1.0, 1.0 + y.shape[1]))  # by which rows that are alike in one column differ
    ours, theirs = (np.argsort(rows @ keys, kind="stable") for rows in (right, y))
    if not table.agrees(y[theirs], right[ours]):
        return None
    order = np.empty(len(y), np.intp)
    order[theirs] = ours
    words, fault = _name_order(order, found)
    moved = np.flatnonzero(order != np.arange(len(order)))
    shown = [f"row {moved[0] + 1} of --actual is row {order[moved[0]] + 1} of --input"]
    if (places[order] == places).all():
        shown.append("every row stands within its group")
    cause = f"{found.plan.norm.name} differs: {words}"
    return Diagnosis(Kind.FAULT, cause, tuple(shown), remedy=_BACK, fault=fault)


def _name_order(order: NDArray[np.intp], found: GroupedCheck) -> tuple[str, str]:
    """Return the words for an order of rows, and the id of the fault.

    `order` has for each row of the actual table its index in the input.
    """
    places, by = found.places, ", ".join(found.stats.subject.by or ())
    met = np.unique(places, return_index=True)[1][places]  # the first row of each row's group
    if any(np.array_equal(order, np.argsort(one, kind="stable")) for one in (places, met)):
        return f"rows are sorted by {by}", "order-permuted"
    kind, _, values = next(name_order("n", order))
    fault = find_fault(f"order-{kind}")
    return fault.words.format(**values), fault.id


def find_other_columns(found: GroupedCheck, others: Sequence[OtherRequest]) -> Diagnosis | None:
    """Return the diagnosis of a table whose rows were grouped by other columns of the file; None if not so.

    Tried are each other column, the columns that were asked for without one of them, and with one more; each
    with the request itself, and with `others` without eps.
    """
    norm, table, by = found.plan.norm.name, found.table, found.table.tensor.by
    assert by is not None
    asked = ",".join(by.names)
    requests = [OtherRequest("", found.request), *(one for one in others if "--eps" not in one.option)]
    for columns in _list_groupings(table):
        other = table._replace(tensor=table.tensor._replace(by=columns))
        for one in _list_agreeing(other, requests):
            compared = other.compare(one.request)
            if compared.checked.ok and 2 * compared.unjudged[1] <= table.tensor.values.size:
                names = ",".join(columns.names)
                cause = f"{norm} differs: rows are grouped by {names}, not by {asked}"
                shown = (
                    f"every value agrees with {one.option}" if one.option else "every value agrees with that"
                )
                remedy = f"normcli {norm} … --by {names} {one.option}".rstrip()
                return Diagnosis(Kind.NORM, cause, (shown,), remedy=remedy)
    return None


def _list_agreeing(table: GroupedTable, requests: Sequence[OtherRequest]) -> Iterator[OtherRequest]:
    """Yield the requests with which the rows of the largest group agree, if it has three rows or more."""
    groups = find_groups(table.tensor)
    places = groups.places[fetch(groups.met)]
    sizes = np.bincount(places)
    if sizes.max() < _LEAST_ROWS:
        return
    for one in requests:
        with contextlib.suppress(NormError):
            if table.judge(one.request, places == sizes.argmax())[-1].ok:
                yield one


_LEAST_ROWS = 3
"""The fewest rows of the largest group of other columns: of fewer, columns are no groups."""


def _list_groupings(table: GroupedTable) -> Iterator[GroupingColumns]:
    """Yield other choices of grouping columns of the table's file; nothing for an array or a large file."""
    file, by = table.tensor.table, table.tensor.by
    is_large = len(table.tensor.values) > _MOST_ROWS
    if file is None or by is None or file.rows.width > _MOST_COLUMNS or is_large:
        return
    names = file.rows.names or tuple(map(str, range(file.rows.width)))
    own = [names.index(name) for name in by.names]
    rest = [place for place in range(file.rows.width) if place not in own]
    fewer = [[place for place in own if place != left] for left in own if len(own) > 1]
    for places in itertools.chain(([place] for place in rest), fewer, ([*own, place] for place in rest)):
        chosen = tuple(names[place] for place in places)
        yield by._replace(names=chosen, read=partial(file.rows.read_labels, places))
