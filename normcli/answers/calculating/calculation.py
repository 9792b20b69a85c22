"""The answer of `normcli NORM`: a `Result` as a document."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.documents.document import Line, Page, describe_members, describe_value, flatten_records
from normcli.documents.excerpt import iterate_long, pick_from
from normcli.documents.matrix_blocks import build_blocks
from normcli.documents.number_format import format_statistic
from normcli.documents.plan_header import (
    build_header,
    describe_column,
    describe_plan,
    describe_selection,
    describe_tensor,
    list_facts,
    list_groups,
    list_selection,
    name_inputs,
    name_output,
)
from normcli.errors import UsageError
from normcli.tensors.formats.json_lists import to_lists
from normcli.tensors.pieces import forget, iterate_pieces
from normcli.writers import FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.documents.document import Facts, Section, View
    from normcli.documents.excerpt import Column
    from normcli.documents.scene import Scene
    from normcli.norms.plan import Plan
    from normcli.results.promises import Check
    from normcli.results.result import Result
    from normcli.tensors.tensor import Tensor

_ATTRIBUTES = {"xhat": "standardized", "y": "normalized"}
"""Field of `--print` → the attribute of a result that holds it, where the names differ."""

_CHECKED = ("target", "lowest", "highest", "overall", "largest_error", "tolerance", "ok")
"""The members of a check in JSON."""

_ROUNDING = 2.0**-32
"""The relative difference up to which an estimated σ counts as the largest singular value."""

_NEAR = 0.01
"""The distance from its target within which a check of all groups is written with ≈."""


@dataclass(frozen=True, eq=False, repr=False)
class Answer:
    """The document of `normcli NORM`: one result with its statistics and normalized values.

    Parameters
    ----------
    result : Result
    tensor : Tensor
        The input, with its source and the names of its columns.
    statistics_alone : bool
        True: records and rows are one for each group, without normalized values. False: records have the values
        too, and there is a row for each value.
    updated : mapping of str to ndarray
        The running statistics after the batch, `running_mean` and `running_var`; empty if none are updated.
    """

    result: Result
    tensor: Tensor
    statistics_alone: bool = field(default=False, kw_only=True)
    updated: Mapping[str, NDArray[Any]] = field(default_factory=dict, kw_only=True)

    def sections(self, view: View) -> Iterator[Section]:
        """Yield a header, and the sections on input, statistics, x̂, y and check that `view.show` names."""
        result, plan = self.result, self.result.plan
        affine = " and ".join(result.inputs.steps)
        yield self._build_header(view)
        if view.shows("input"):
            yield build_blocks("input", result.input, result, view)
        if view.shows("stats"):
            columns = {"count": count_group_values(result), **result.statistics}
            yield list_groups(plan, columns, view)
        if view.show is not None and view.shows("xhat"):
            title = f"x̂, before {affine}" if affine else "x̂, which is y"
            yield build_blocks(title, result.standardized, result, view)
        if view.shows("y"):
            yield build_blocks(name_output(result.inputs.steps), result.normalized, result, view)
        if view.shows("check"):
            yield self._build_check()

    def data(self) -> Mapping[str, Any]:
        """Return the result as a JSON object: plan, input, statistics, parameters, values, check and warnings.

        Its key `schema` is the version of the keys.
        """
        result, plan, inputs = self.result, self.result.plan, self.result.inputs
        gate, clip = inputs.gate, inputs.clip
        counts = None if result.counts is None else result.counts.astype(np.int64)
        return {
            **describe_plan(plan, {"input": describe_tensor(self.tensor)}),
            "dtype": result.dtype.name,
            **({"evaluation": result.running is not None} if plan.norm.tracks else {}),
            **({} if result.selection is None else {"counts": describe_value(counts)}),
            **describe_selection(result.selection),
            "stats_shape": list(plan.grid.keepdims_shape),
            "stats": describe_value(result.statistics),
            **describe_members(result, "gamma", "beta"),
            **({} if gate is None else describe_value({"gate": gate.values, "gate_act": gate.activation})),
            **({} if clip is None else {"clip_output": list(clip)}),
            **{name: describe_value(values) for name, values in self._outputs.items()},
            "check": {check.quantity: describe_members(check, *_CHECKED) for check in result.check},
            "warnings": list(result.warnings),
        }

    def describe(self) -> dict[str, Any]:
        """Return the JSON object without `schema` and `input`, for one of several results of a tensor."""
        return {name: value for name, value in self.data().items() if name not in ("schema", "input")}

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Yield a JSON object per group: index, count, statistics and, unless left out, normalized values."""
        result, plan = self.result, self.result.plan
        outputs = {} if self.statistics_alone else self._outputs
        views = {name: values.reshape(plan.grid.view_shape) for name, values in outputs.items()}
        columns = {"count": count_group_values(result), **result.statistics}
        groups = plan.grid.walk_groups()
        for pieces in zip(*map(iterate_pieces, columns.values()), strict=True):
            lists = [to_lists(piece) for piece in pieces]
            for numbers, (index, place) in zip(zip(*lists, strict=True), groups, strict=False):
                yield {
                    "group": index,
                    **describe_column(plan.grid, index),
                    **dict(zip(columns, numbers, strict=True)),
                    **{name: describe_value(np.asarray(view[place])) for name, view in views.items()},
                }
            for view in views.values():
                forget(view)

    def rows(self) -> Iterator[Sequence[Any]]:
        """Yield the rows of a CSV table, one per value: its index, input, statistics, output; names come first.

        With `statistics_alone`, there is one row per group: its index, count and statistics.
        """
        grid = self.result.plan.grid
        if self.statistics_alone:
            column = describe_column(grid, grid.group_index(0)) if grid.group_count else {}
            names = (*grid.kept_names, *column, "count", *self.result.statistics)
            return flatten_records(self.records(), names)
        return iterate_long(grid.layout.names, grid.shape, self.columns())

    def columns(self) -> dict[str, Column]:
        """Return the columns of the result as a table with a row per value: name → function that reads values.

        A function takes a tuple of index arrays, one for each axis of the tensor, and returns the column at
        these indices. Columns are the input, the normalized values, each statistic of the value's group, with a
        mask whether the value counts (0 or 1), and for a table the name of its column.
        """
        result, grid, selection = self.result, self.result.plan.grid, self.result.selection

        def spread(array: NDArray[Any]) -> Column:
            return lambda index: array.reshape(-1)[grid.locate_groups(index)]

        names = None if grid.columns is None else np.array(grid.columns, dtype=object)
        columns: dict[str, Column] = {} if names is None else {"column": lambda index: names[index[-1]]}
        columns["input"] = pick_from(result.input)
        if selection is not None:
            columns["counts"] = lambda index: selection.select(result.input, index).astype(np.int64)
        columns |= {name: spread(array) for name, array in result.statistics.items()}
        return columns | {name: pick_from(values) for name, values in self._outputs.items()}

    @property
    def _outputs(self) -> dict[str, NDArray[Any]]:
        """The normalized values by name; before them x̂ (`x_hat`) if gamma, a gate or the like changes it."""
        own = {"x_hat": self.result.standardized} if self.result.inputs.scales else {}
        return {**own, "normalized": self.result.normalized}

    def page(self) -> Page:
        """Return the page of the result; raise `UsageError` for a selection, or rounding before a gate."""
        require_page(self.result)
        norm = self.result.plan.norm
        return Page(f"{norm.name} · {norm.title}", (self.result,), self.tensor)

    def scene(self) -> Scene:
        """Return the picture of the result."""
        from normcli.pictures.draw import draw

        return draw([self.result], self.tensor)

    def field(self, name: str) -> NDArray[Any]:
        """Return the field that `--print NAME` prints, as an array.

        Raises
        ------
        UsageError
            If the norm has no such field, or a parameter of this name was not given.
        """
        result = self.result
        names = (*result.statistics, *self.updated, *result.plan.norm.vector_names, *FIELDS)
        if name in self.updated:
            return self.updated[name]
        if name not in names:
            raise UsageError(f"--print {name}: {result.plan.norm.name} has {', '.join(names)}")
        if name == "count":
            return count_group_values(result)
        value = result.plan.grid.shape if name == "shape" else getattr(result, _ATTRIBUTES.get(name, name))
        if value is None:
            raise UsageError(f"--print {name}: no {name} was given")
        return np.asarray(value)

    def _build_header(self, view: View) -> Facts:
        result, plan = self.result, self.result.plan
        parameters = name_inputs(result.inputs)
        counting = list_selection(plan, result.input, result.selection, result.counts)
        if result.inputs.clip is not None:
            counting = (
                *counting,
                ("clip", (f"y is brought between {' and '.join(map(str, result.inputs.clip))}",)),
            )
        title = f"{plan.norm.name} · {plan.norm.title}"
        return build_header(title, plan, list_facts(self.tensor, result.dtype), view, parameters, counting)

    def _build_check(self) -> Line:
        """Return a line that says if y has the mean 0, variance 1 or length 1 that its norm should give it.

        If the norm fixes none of these, or there are no values to check, the line says so. For spectral norm,
        it compares σ with the largest singular value instead.
        """
        checks = self.result.check
        if self.result.running is not None:
            return Line(("y: running statistics promise nothing of its mean and variance to check",))
        if not self.result.input.size:
            return Line(("y: no values to check",))
        if self.result.plan.spec.iteration is not None:
            return _tell_estimate(self.result)
        if not checks:
            return Line(("y: this norm promises no mean, variance or length to check",))
        if all(math.isnan(check.lowest) for check in checks):
            return Line(("y: no group is finite, so there is nothing to check",), mark=False)
        scaled = self.result.inputs.scales
        first, *others = (_format_check(check, self.result.plan) for check in checks)
        reasons = [
            f"eps keeps {check.quantity} below {check.target:g}"
            for check in checks
            if _is_near(check) and check.highest < check.target - check.tolerance
        ]
        return Line(
            (f"{'x̂' if scaled else 'y'}: {first}", *others, *reasons), all(check.ok for check in checks)
        )


def count_group_values(result: Result) -> NDArray[np.int64]:
    """Return the number of values that each group's statistics are calculated from.

    Returns
    -------
    ndarray
        The counts, in the shape of the statistics. A window at an end of the axis counts only the values within
        the tensor. The array may be read-only, a broadcast of a single number.
    """
    grid, window = result.plan.grid, result.plan.spec.window
    if result.counts is not None:
        return result.counts.astype(np.int64)
    counts: NDArray[np.int64] = np.array(grid.group_size)
    if window is not None and grid.group_count:
        axis, length = grid.axes[0], grid.shape[grid.axes[0]]
        places = np.arange(length)
        counts = np.minimum(places + window.after, length - 1) - np.maximum(places - window.before, 0) + 1
        counts = counts.reshape([-1 if other == axis else 1 for other in range(len(grid.shape))])
    return np.broadcast_to(counts, grid.stats_shape)


def _tell_estimate(result: Result) -> Line:
    """Return a line that compares the σ of power iterations with the largest singular value.

    Of several matrices, it is about the one with the largest relative error.
    """
    from normcli.engine.sn.passes import iterate_matrices  # of one norm alone
    from normcli.engine.sn.sigma_of_groups import approximate_largest

    matrices = iterate_matrices(result.plan, result.input, result.inputs)
    sigma, largest = result.sigma.reshape(-1), np.array([*map(approximate_largest, matrices)])
    usable = np.isfinite(largest) & (largest > 0.0)
    if not usable.any():
        return Line(("y: there is no largest singular value to hold σ against",))
    sigma, largest = sigma[usable], largest[usable]
    off = sigma / largest - 1.0
    worst = int(np.argmax(np.abs(off)))
    size, share = f"{largest[worst]:.6g}", f"{100.0 * abs(off[worst]):.3g} %"
    if abs(off[worst]) <= _ROUNDING:
        return Line((f"σ is the largest singular value, {size}, to rounding",))
    after = f"that of y is {largest[worst] / sigma[worst]:.6g}" if sigma[worst] else "y is not finite"
    told = f"σ is {share} above the largest singular value, {size}"
    if off[worst] < 0.0:
        told = f"σ is {share} below the largest singular value, {size}"
    return Line((told, after, *(("of other matrices nearer",) if usable.sum() > 1 else ())))


def _is_near(check: Check) -> bool:
    return max(abs(check.lowest - check.target), abs(check.highest - check.target)) < _NEAR


def _format_check(check: Check, plan: Plan) -> str:
    digits = 2 if check.target == 0 else None
    low, high = (format_statistic(value, digits) for value in (check.lowest, check.highest))
    measured = low if low == high else f"{low} … {high}"
    failed = "" if check.ok else f", off by {check.largest_error:.2g} where {check.tolerance:.2g} is rounding"
    if _is_near(check):
        return f"{check.quantity} ≈ {check.target:g} ({measured}{failed})"
    return (
        f"{check.quantity} {measured} rather than {check.target:g}, "
        f"as the statistics{' and eps' if plan.spec.eps else ''} predict{failed}"
    )


def require_page(result: Result) -> None:
    """Raise `UsageError` for results that a page cannot show: with a selection, or rounding before a gate."""
    if result.selection is not None:
        raise UsageError("a page does not show which values count; leave out the mask, lengths or nan omit")
    if result.inputs.gate is not None and result.plan.spec.rounds_before_gamma:
        raise UsageError("a page does not show what --like rounds before a gate; leave out --gate or --like")
