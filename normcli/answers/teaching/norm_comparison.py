"""The answer of `normcli compare`: norms side by side, as a document."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.answers.calculating.calculation import Answer
from normcli.documents.axes_words import find_reduction, list_assumed
from normcli.documents.document import (
    GAP,
    SCHEMA,
    Blocks,
    Facts,
    Line,
    Page,
    Table,
    TableRow,
    describe_members,
    describe_value,
    flatten_records,
)
from normcli.documents.excerpt import cut_beyond
from normcli.documents.matrix_blocks import build_map, list_slices
from normcli.documents.number_format import CELL_DIGITS, format_shape, format_statistic
from normcli.documents.plan_header import (
    describe_tensor,
    format_formula,
    format_options,
    list_facts,
    list_selection,
)
from normcli.norms.rules import Centre
from normcli.teach.equalities import PARAMETERS, Likeness, format_parameters
from normcli.teach.value_index import format_index
from normcli.tensors.formats.json_lists import describe_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.documents.document import Section, View
    from normcli.documents.scene import Scene
    from normcli.teach.equalities import Equality
    from normcli.teach.side_by_side import NormColumn, NormComparison
    from normcli.tensors.tensor import Tensor

_MOST_MEMBERS = 8
"""The most values of a group that are written; longer groups are cut in the middle."""

_LEAST_MEAN = 1e-6
"""The size below which the mean of a centred output is rounding, and is written with two digits."""

_SIGNS = {Likeness.IDENTICAL: "=", Likeness.COINCIDENT: "=", Likeness.SIMILAR: "≈"}

_FAR = 0.5
"""The largest difference of standardized values for which norms with equal groups are called equal."""


@dataclass(frozen=True)
class ComparisonAnswer:
    """The document of `normcli compare`: norms of one tensor, a column for each norm.

    Parameters
    ----------
    comparison : NormComparison
    tensor : Tensor
        The input of all norms.
    """

    comparison: NormComparison
    tensor: Tensor

    def sections(self, view: View) -> Iterator[Section]:
        """Yield a header, and the sections on facts, equalities, values and groups that the view shows."""
        columns = self.comparison.columns
        facts = list_facts(self.tensor, columns[0].result.dtype)
        assumed = list_assumed(column.result.plan for column in columns)
        yield Facts(f"compare · {self.page().title}", (("input", facts), *assumed, *self._list_given()))
        if view.shows("facts"):
            yield self._tabulate(view)
            yield from _list_reasons(columns)
        if view.shows("equalities"):
            yield from self._list_equalities()
        if view.shows("y"):
            outputs = {column.name: (column.result.normalized, column.result) for column in columns}
            tensors = {"input": (self.tensor.values, None), **outputs}
            yield from list_slices("y, normalized", tensors, columns[0].result.plan.grid, view)
        if view.shows("groups"):
            for column in columns:
                yield _map_groups(column, view)

    def _list_given(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield pairs (label, facts) for the header: the mask, and the norms that use running statistics."""
        results = [column.result for column in self.comparison.columns]
        lines = (list_selection(result.plan, result.input, result.selection, None) for result in results)
        yield from dict.fromkeys(itertools.chain.from_iterable(lines))
        evaluated = {column.name: column.result.running for column in self.comparison.columns}
        known = {name: running for name, running in evaluated.items() if running is not None}
        if known:
            told = "with the running statistics that were given"
            if all(not running.mean.any() and (running.var == 1.0).all() for running in known.values()):
                told = "with running statistics as they begin, mean 0 and variance 1"
            yield "evaluated", (", ".join(known), told)

    def data(self) -> Mapping[str, Any]:
        """Return the comparison as a JSON object: `columns`, the answer of each norm, and `equalities`."""
        return {
            "schema": SCHEMA,
            "input": describe_tensor(self.tensor),
            "columns": list(self.records()),
            "equalities": [_describe_equality(equality) for equality in self.comparison.equalities],
        }

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Yield a JSON object per norm: its facts, first group, and its answer as of `normcli NORM`."""
        for column in self.comparison.columns:
            yield {
                "name": column.name,
                **_describe_column(column),
                "first_group": describe_value(column.first_group),
                **Answer(column.result, self.tensor).describe(),
            }

    def rows(self) -> Iterator[Sequence[Any]]:
        """Return one row per norm, with facts and no values; the names of the columns come first."""
        return flatten_records(map(_describe_flat, self.comparison.columns))

    def page(self) -> Page:
        """Return the page, with the equalities below."""
        names = [column.name for column in self.comparison.columns]
        results = [column.result for column in self.comparison.columns]
        title = ", ".join(names)
        return Page(title, results, self.tensor, names=names, further=lambda _: self._list_equalities())

    def scene(self) -> Scene:
        """Return the picture of the norms side by side."""
        from normcli.pictures.draw import draw

        page = self.page()
        return draw(page.results, page.tensor, names=page.names)

    def _tabulate(self, view: View) -> Table:
        columns = self.comparison.columns
        texts = [_format_facts(column, view) for column in columns]
        rows = [TableRow((label, *(facts[label] for facts in texts))) for label in texts[0]]
        names = ("", *(column.name for column in columns))
        return Table(None, names, (False,) * len(names), rows, wraps=True)

    def _list_equalities(self) -> Iterator[Section]:
        """Yield the equalities between the compared norms, and those with norms that are not compared.

        If no compared norms are equal, or the tensor is empty, a line says so.
        """
        equalities = self.comparison.equalities
        if not self.tensor.values.size:
            yield Line(("no values, so the norms do not differ",))
            return
        if all(equality.related for equality in equalities):
            given = {name for column in self.comparison.columns for name in column.result.inputs.parameters}
            before = _format_before([name for name in PARAMETERS if name in given])
            yield Line((f"no two of these are equal on this tensor{before}",))
        for title, related in (
            ("equalities on this tensor", False),
            ("equal norms that are not compared here", True),
        ):
            chosen = [equality for equality in equalities if equality.related is related]
            if chosen:
                yield Facts(title, tuple(map(_format_equality, chosen)))


def _format_facts(column: NormColumn, view: View) -> dict[str, str]:
    """Return the cells of a norm's column in the table of facts, by the labels of the rows."""
    plan = column.result.plan
    over, keeps, shapes, groups = find_reduction(plan, given=column.result.running is not None)
    alone = column.batch_of_one
    works = {None: "no batch axis", True: "yes", False: "no"}[alone.works]
    vanishes = plan.norm.centre is Centre.MEAN and abs(column.mean) < _LEAST_MEAN
    return {
        "norm": plan.norm.title,
        "reduces": over if not plan.groups_overlap else f"a window {over}",
        "keeps": keeps,
        "shape of the stats": shapes or "as the tensor",
        "groups": groups,
        "a group, such as": _abbreviate(column, view),
        "depends on the batch": "yes" if column.depends_on_batch else "no",
        "with a batch of one": works if alone.becomes is None else f"{works}: it is “{alone.becomes}” then",
        "gamma, beta": _format_parameters(column),
        "formula": format_formula(plan, column.result.inputs.parameters),
        "options": format_options(plan) or "none",
        "typical use": plan.norm.use,
        "output's mean": format_statistic(column.mean, view.digits or (2 if vanishes else None)),
        "output's variance": format_statistic(column.var, view.digits),
    }


def _format_parameters(column: NormColumn) -> str:
    plan = column.result.plan
    name = format_parameters(plan)
    if not plan.norm.parameter_names:
        return name
    sizes = format_shape(plan.parameters.shape)
    alone = "" if plan.norm.takes_beta else ", gamma alone"
    return f"{name if name == sizes else f'{name} = {sizes}'}{alone}"


def _abbreviate(column: NormColumn, view: View) -> str:
    values = column.first_group
    chosen = cut_beyond(_MOST_MEMBERS, values.size, _MOST_MEMBERS - 2, 1)
    texts = [format_statistic(float(values[i]), view.digits or CELL_DIGITS) for i in chosen.shown]
    return f"[{', '.join(chosen.open_gap(texts, GAP))}]"


def _list_reasons(columns: Sequence[NormColumn]) -> Iterator[Line]:
    """Yield a line for each reason why norms do not work with a batch of one, with the norms' names."""
    for reason in filter(None, dict.fromkeys(column.batch_of_one.reason for column in columns)):
        names = [column.name for column in columns if column.batch_of_one.reason == reason]
        yield Line((f"{' and '.join(names)} with a batch of one: {reason}",))


def _format_equality(equality: Equality) -> tuple[str, tuple[str, ...]]:
    """Return two equal norms, joined by their sign (=, ≈, ≠), and the facts on their equality."""
    exactly = "bit for bit" if equality.max_abs == 0 else f"apart by {equality.max_abs:.2g} at most"
    if math.isinf(equality.max_abs):
        exactly = "one is not finite where the other is"
    exactly += _format_before(equality.before)
    differ = (f"they differ in {'; in '.join(equality.differences)}",) if equality.differences else ()
    sign = "≠" if equality.max_abs > _FAR else _SIGNS[equality.kind]
    return f" {sign} ".join(equality.names), (equality.reason, exactly, *differ)


def _format_before(names: Sequence[str]) -> str:
    """Return a text such as ` before gamma and beta`, from the names of parameters; "" without names."""
    return f" before {' and '.join(names)}" if names else ""


def _describe_equality(equality: Equality) -> Mapping[str, Any]:
    members = describe_members(equality, "kind", "reason", "differences", "max_abs", "before", "related")
    return {"norms": list(equality.names), **members}


def _describe_column(column: NormColumn) -> dict[str, Any]:
    plan = column.result.plan
    return {
        **describe_members(plan.norm, "title", "use"),
        **describe_members(column, "depends_on_batch", "batch_of_one"),
        "parameter_shape": list(plan.parameters.shape) if plan.norm.parameter_names else None,
        "output_mean": describe_number(column.mean),
        "output_var": describe_number(column.var),
    }


def _describe_flat(column: NormColumn) -> Mapping[str, Any]:
    """Return the facts on one norm of the comparison as a mapping of names to single values, a row of a CSV."""
    plan, own = column.result.plan, _describe_column(column)
    alone = own.pop("batch_of_one")
    return {
        "name": column.name,
        "norm": plan.norm.name,
        **describe_members(plan.grid, "axes", "kept", "group_count", "group_size"),
        **describe_members(plan.spec, "eps", "eps_mode", "ddof"),
        **{f"batch_of_one_{name}": value for name, value in alone.items()},
        **own,
    }


def _map_groups(column: NormColumn, view: View) -> Blocks:
    """Return matrices with the number of its group in each cell.

    For a norm with sliding windows, 1 marks the window that begins at the first value; elsewhere is 0.
    """
    grid, window = column.result.plan.grid, column.result.plan.spec.window
    if window is None:
        return build_map(f"groups of {column.name}", grid.locate_groups, column.result, view)
    at = [0] * len(grid.shape)
    at[grid.axes[0]] = max(0, min(window.before, grid.shape[grid.axes[0]] - 1))
    last = list(at)
    last[grid.axes[0]] += window.after

    def mark(index: Sequence[NDArray[np.intp]]) -> NDArray[np.intp]:
        """Return 1 within the window, which begins at the first value, and 0 elsewhere."""
        within = (places <= end for places, end in zip(index, last, strict=True))
        return functools.reduce(np.logical_and, within).astype(np.intp)

    place = format_index(at, grid.layout)
    return build_map(f"window of {column.name} at {place}", mark, column.result, view)
