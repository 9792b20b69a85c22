"""The answer of `normcli NORM`: a `Result` as a document."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.documents.blocks import NOBODY, build_blocks
from normcli.documents.document import Facts, Line, Page, Row, Table
from normcli.documents.excerpt import choose_groups
from normcli.documents.numbers import format_statistic
from normcli.documents.plans import (
    describe_asked,
    describe_problem,
    describe_selection,
    label_group,
    name_inputs,
    tell_selection,
)
from normcli.errors import UsageError
from normcli.tensors.pieces import forget, iterate_pieces

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.documents.blocks import Locate
    from normcli.documents.document import Section, View
    from normcli.norms.plan import Plan
    from normcli.results.promises import Check
    from normcli.results.result import Result
    from normcli.tensors.delimited import Column
    from normcli.tensors.tensor import Tensor

PRINTABLE = ("shape", "axes", "group_count", "group_size", "count", "normalized", "gamma", "beta")
"""What `--print` takes besides the norm's statistics."""

_SHORT_GROUP = 4096
"""The values of groups up to here are put into words at once."""

_NO_PROMISE = "normalized: this norm promises no mean, variance or length to check"

_NOTHING_FIXED = "normalized: running statistics promise nothing of its mean and variance to check"

_NEAR = 0.01
"""A check whose groups are all so near its target is said to be ≈ it."""


class Answer:
    """A result and the tensor it is of.

    Parameters
    ----------
    result : Result
    tensor : Tensor
        Where the input came from, and the names of its columns.
    """

    def __init__(self, result: Result, tensor: Tensor) -> None:
        self.result = result
        self.tensor = tensor

    def sections(self, view: View) -> Iterator[Section]:
        """Return the header and the parts that the view shows."""
        result, plan = self.result, self.result.plan
        yield self._header(view)
        if view.shows("input"):
            yield build_blocks("input", result.input, plan, view, self._locate)
        if view.shows("stats"):
            yield self._group_table(view)
        if view.shows("normalized"):
            yield build_blocks("normalized", result.normalized, plan, view, self._locate)
        if view.shows("check"):
            yield self._check_line()

    def data(self) -> Mapping[str, Any]:
        """Return the object that DESIGN calls normcli/1."""
        from normcli.tensors.nested import NestedLists

        result, plan = self.result, self.result.plan
        return {
            **describe_asked(plan, self.tensor),
            "dtype": result.dtype.name,
            **({"evaluation": result.running is not None} if plan.norm.tracks else {}),
            **self._describe_selection(),
            "stats_shape": list(plan.grid.keepdims_shape),
            "stats": {name: NestedLists(array) for name, array in result.statistics.items()},
            "gamma": None if result.gamma is None else NestedLists(result.gamma),
            "beta": None if result.beta is None else NestedLists(result.beta),
            "normalized": NestedLists(result.normalized),
            "check": {check.quantity: _describe_check(check) for check in result.check},
            "warnings": list(result.warnings),
        }

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Return one object a group: its index, count, statistics and normalized values."""
        from normcli.tensors.nested import NestedLists, to_lists

        result, plan = self.result, self.result.plan
        view = result.normalized.reshape(plan.grid.view_shape)
        short = plan.spec.window is not None or plan.grid.group_size <= _SHORT_GROUP
        spell = to_lists if short else NestedLists
        groups = enumerate(plan.grid.walk_groups())
        for pieces in zip(*map(iterate_pieces, result.statistics.values()), strict=True):
            lists = [to_lists(piece) for piece in pieces]
            for statistics, (number, (index, place)) in zip(zip(*lists, strict=True), groups, strict=False):
                yield {
                    "group": index,
                    "count": count_values(result, number),
                    **dict(zip(result.statistics, statistics, strict=True)),
                    "normalized": spell(np.asarray(view[place])),
                }
            forget(view)

    def rows(self) -> Iterator[Sequence[Any]]:
        """Return one line a value: its index per axis, the input, its group's statistics, the output."""
        from normcli.tensors.delimited import iterate_long

        return iterate_long(self.axis_names, self.result.plan.grid.shape, self.columns())

    def page(self) -> Page:
        """Return the page of the one result.

        Raises
        ------
        UsageError
            If not all values count: a page would not show which.
        """
        if self.result.selection is not None:
            raise UsageError("a page does not show which values count; leave out the mask, lengths or nan omit")
        norm = self.result.plan.norm
        return Page(f"{norm.name} · {norm.title}", (self.result,), self.tensor)

    @property
    def axis_names(self) -> tuple[str, ...]:
        """What the axes are called."""
        plan = self.result.plan
        return tuple(plan.grid.layout.name(axis) for axis in range(len(plan.grid.shape)))

    def columns(self) -> dict[str, Column]:
        """Return input, statistics and output: each a function from index arrays to the values there."""
        from normcli.tensors.delimited import pick_from

        result, plan = self.result, self.result.plan

        def spread(array: NDArray[Any]) -> Column:
            flat = array.reshape(-1)
            return lambda index: flat[plan.grid.locate_groups(index)]

        statistics = {name: spread(array) for name, array in result.statistics.items()}
        selection, counts = result.selection, {}
        if selection is not None:
            counts = {"counts": lambda index: selection.select(result.input, index).astype(np.int64)}
        return {
            "input": pick_from(result.input),
            **counts,
            **statistics,
            "normalized": pick_from(result.normalized),
        }

    def field(self, name: str) -> NDArray[Any]:
        """Return what `--print NAME` prints, as an array.

        Raises
        ------
        UsageError
            If the answer has no such field.
        """
        result, plan = self.result, self.result.plan
        if name in result.statistics:
            return result.statistics[name]
        if name == "count":
            return count_groups(result)
        if name not in PRINTABLE:
            raise UsageError(
                f"--print {name}: {plan.norm.name} has {', '.join((*result.statistics, *PRINTABLE))}"
            )
        value = getattr(plan.grid if name in ("shape", "axes", "group_count", "group_size") else result, name)
        if value is None:
            raise UsageError(f"--print {name}: no {name} was given")
        return np.asarray(value)

    def _header(self, view: View) -> Facts:
        result, plan = self.result, self.result.plan
        dtypes = f"{result.input.dtype.name} → {result.dtype.name}"
        parameters = name_inputs(result.inputs)
        told = tell_selection(plan, result.input, result.selection, result.counts)
        lines = (*describe_problem(plan, self.tensor, dtypes, parameters, view), *told)
        return Facts(f"{plan.norm.name} · {plan.norm.title}", lines)

    def _group_table(self, view: View) -> Table:
        result, plan = self.result, self.result.plan
        names = tuple(result.statistics)
        flat = {name: array.reshape(-1) for name, array in result.statistics.items()}
        chosen = choose_groups(plan.grid.group_count, full=view.full)
        rows: list[Row | None] = []
        for place, group in enumerate(chosen.shown):
            if place == chosen.gap:
                rows.append(None)
            cells = (format_statistic(float(flat[name][group]), view.digits) for name in names)
            colour = None if plan.spec.window is not None else group
            rows.append(Row((self.label_group(group), str(count_values(result, group)), *cells), colour))
        hidden = plan.grid.group_count - chosen.size
        note = f"{hidden:,} of {plan.grid.group_count:,} groups hidden; --full shows all" if hidden else None
        return Table(None, ("group", "count", *names), (False, *(True for _ in ("count", *names))), rows, note)

    def label_group(self, group: int) -> str:
        """Return what a group is called, with the name of its column where the source named some."""
        return label_group(self.result.plan, self.tensor, group)

    @property
    def _locate(self) -> Locate | None:
        """What finds the groups of cells, where some are of none because they do not count."""
        result, selection = self.result, self.result.selection
        if selection is None or result.plan.spec.window is not None:
            return None

        def locate(index: Sequence[NDArray[np.intp]]) -> NDArray[np.intp]:
            return np.where(
                selection.select(result.input, index), result.plan.grid.locate_groups(index), NOBODY
            )

        return locate

    def _describe_selection(self) -> Mapping[str, Any]:
        from normcli.tensors.nested import NestedLists

        selection, counts = self.result.selection, self.result.counts
        if selection is None:
            return {}
        return {
            "counts": None if counts is None else NestedLists(counts.astype(np.int64)),
            **describe_selection(selection),
        }

    def _check_line(self) -> Line:
        checks = self.result.check
        if self.result.running is not None:
            return Line((_NOTHING_FIXED,))
        if not checks:
            return Line(("normalized: no values to check",) if not self.result.input.size else (_NO_PROMISE,))
        if all(math.isnan(check.lowest) for check in checks):
            return Line(("normalized: no group is finite, so there is nothing to check",), mark=False)
        scaled = self.result.inputs.scales
        first, *others = (_phrase_check(check, self.result.plan) for check in checks)
        title = "normalized before gamma and beta" if scaled else "normalized"
        return Line((f"{title}: {first}", *others), all(check.ok for check in checks))


def count_groups(result: Result) -> NDArray[np.int64]:
    """Return `count_values` of every group, of the shape of the statistics."""
    plan = result.plan
    if result.counts is not None:
        return result.counts.astype(np.int64)
    if plan.spec.window is None:
        return np.full(plan.grid.stats_shape, plan.grid.group_size, dtype=np.int64)
    axis = plan.grid.axes[0]
    places = np.arange(plan.grid.shape[axis])
    last = np.minimum(places + plan.spec.window.after, plan.grid.shape[axis] - 1)
    counts = last - np.maximum(places - plan.spec.window.before, 0) + 1
    along = [-1 if other == axis else 1 for other in range(len(plan.grid.shape))]
    return np.broadcast_to(counts.reshape(along), plan.grid.shape)


def count_values(result: Result, group: int) -> int:
    """Return how many values a group's statistics are of; a window is cut off at the edges."""
    plan = result.plan
    if result.counts is not None:
        return int(result.counts.reshape(-1)[group])
    if plan.spec.window is None:
        return plan.grid.group_size
    axis = plan.grid.axes[0]
    channel = int(np.unravel_index(group, plan.grid.shape)[axis])
    first = max(0, channel - plan.spec.window.before)
    return min(plan.grid.shape[axis] - 1, channel + plan.spec.window.after) - first + 1


def _describe_check(check: Check) -> Mapping[str, Any]:
    numbers = ("target", "lowest", "highest", "overall", "largest_error", "tolerance")
    return {**{name: _spell_number(getattr(check, name)) for name in numbers}, "ok": check.ok}


def _phrase_check(check: Check, plan: Plan) -> str:
    low, high = (_format_check(check, value) for value in (check.lowest, check.highest))
    measured = low if low == high else f"{low} … {high}"
    failed = "" if check.ok else f", off by {check.largest_error:.2g} where {check.tolerance:.2g} is rounding"
    if max(abs(check.lowest - check.target), abs(check.highest - check.target)) < _NEAR:
        return f"{check.quantity} ≈ {check.target:g} ({measured}{failed})"
    return (
        f"{check.quantity} {measured} rather than {check.target:g}, "
        f"as the statistics{' and eps' if plan.spec.eps else ''} predict{failed}"
    )


def _format_check(check: Check, value: float) -> str:
    return format_statistic(value, 2 if check.target == 0 else None)


def _spell_number(value: float) -> Any:
    from normcli.tensors.nested import to_lists

    return to_lists(np.asarray(value))
