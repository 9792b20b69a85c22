"""The answer of `normcli NORM`: a `Result` as a document."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.errors import UsageError
from normcli.norms import EpsMode, GroupOrder
from normcli.printable import make_printable
from normcli.render.blocks import NOBODY, build_blocks
from normcli.render.document import SCHEMA, Facts, Grid, Line, Page, Row
from normcli.render.excerpt import choose_groups
from normcli.render.numbers import format_shape, format_statistic
from normcli.request import Fill
from normcli.tensors.pieces import forget, iterate_pieces

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.engine.counting import Selection
    from normcli.numerics.solution import Given
    from normcli.plan import Plan
    from normcli.promises import Check
    from normcli.render.blocks import Locate
    from normcli.render.document import Section, View
    from normcli.result import Result
    from normcli.tensors.delimited import Column
    from normcli.tensors.tensor import Tensor

PRINTABLE = ("shape", "axes", "group_count", "group_size", "count", "normalized", "gamma", "beta")
"""What `--print` takes besides the norm's statistics."""

_MOST_PARAMETERS = 8

_SHORT_GROUP = 4096
"""The values of groups up to here are put into words at once."""

_NO_PROMISE = "normalized: this norm promises no mean, variance or length to check"

_NOTHING_FIXED = "normalized: running statistics promise nothing of its mean and variance to check"

_FILLED = {
    Fill.PASS: "what does not is passed through",
    Fill.ZERO: "what does not becomes 0",
    Fill.NAN: "what does not becomes NaN",
    Fill.NORMALIZE: "what does not is normalized with the others' statistics",
}

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
        values = result.input
        return {
            "schema": SCHEMA,
            "norm": plan.norm.name,
            "formula": plan.formula,
            "input": {
                "source": self.tensor.source,
                "shape": list(values.shape),
                "dtype": values.dtype.name,
            },
            "layout": plan.layout.letters,
            "axes": list(plan.axes),
            "kept": list(plan.kept),
            "group_count": plan.group_count,
            "group_size": plan.group_size,
            **({} if plan.groups is None else {"groups": plan.groups, "group_order": plan.group_order}),
            "eps": plan.eps,
            "eps_mode": plan.eps_mode,
            "ddof": plan.ddof if "ddof" in plan.norm.options else None,
            **({} if plan.p is None else {"p": _spell_number(plan.p)}),
            **_describe_window(plan),
            "like": plan.like,
            "dtype": result.dtype.name,
            **({"evaluation": result.running is not None} if plan.norm.tracks else {}),
            **self._describe_selection(),
            "stats_shape": list(plan.keepdims_shape),
            "stats": {name: NestedLists(array) for name, array in result.statistics.items()},
            **({"gamma_offset": plan.gamma_offset} if plan.gamma_offset else {}),
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
        view = result.normalized.reshape(plan.view_shape)
        short = plan.window is not None or plan.group_size <= _SHORT_GROUP
        spell = to_lists if short else NestedLists
        groups = enumerate(plan.walk_groups())
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

        return iterate_long(self.axis_names, self.result.plan.shape, self.columns())

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
        return tuple(plan.layout.name(axis) for axis in range(len(plan.shape)))

    def columns(self) -> dict[str, Column]:
        """Return input, statistics and output: each a function from index arrays to the values there."""
        from normcli.tensors.delimited import pick_from

        result, plan = self.result, self.result.plan

        def spread(array: NDArray[Any]) -> Column:
            flat = array.reshape(-1)
            return lambda index: flat[plan.locate_groups(index)]

        statistics = {name: spread(array) for name, array in result.statistics.items()}
        selection, counts = result.selection, {}
        if selection is not None:
            counts = {"counts": lambda index: selection.mark(result.input, index).astype(np.int64)}
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
        value = getattr(plan if name in ("shape", "axes", "group_count", "group_size") else result, name)
        if value is None:
            raise UsageError(f"--print {name}: no {name} was given")
        return np.asarray(value)

    def _header(self, view: View) -> Facts:
        result, plan = self.result, self.result.plan
        dtypes = f"{result.input.dtype.name} → {result.dtype.name}"
        parameters = {"gamma": result.gamma, "beta": result.beta, **name_running(result.running)}
        told = tell_selection(plan, result.input, result.selection, result.counts)
        lines = (*describe_problem(plan, self.tensor, dtypes, parameters, view), *told)
        return Facts(f"{plan.norm.name} · {plan.norm.title}", lines)

    def _group_table(self, view: View) -> Grid:
        result, plan = self.result, self.result.plan
        names = tuple(result.statistics)
        flat = {name: array.reshape(-1) for name, array in result.statistics.items()}
        chosen = choose_groups(plan.group_count, full=view.full)
        rows: list[Row | None] = []
        for place, group in enumerate(chosen.shown):
            if place == chosen.gap:
                rows.append(None)
            cells = (format_statistic(float(flat[name][group]), view.digits) for name in names)
            colour = None if plan.window is not None else group
            rows.append(Row((self.label_group(group), str(count_values(result, group)), *cells), colour))
        hidden = plan.group_count - chosen.size
        note = f"{hidden:,} of {plan.group_count:,} groups hidden; --full shows all" if hidden else None
        return Grid(None, ("group", "count", *names), (False, *(True for _ in ("count", *names))), rows, note)

    def label_group(self, group: int) -> str:
        """Return what a group is called, with the name of its column where the source named some."""
        plan, columns = self.result.plan, self.tensor.columns
        name = plan.group_name(group)
        last = len(plan.shape) - 1
        if columns is None or last not in plan.kept or plan.groups is not None:
            return name
        return (
            f"{name} {make_printable(columns[plan.group_index(group)[plan.kept_names[plan.kept.index(last)]]])}"
        )

    @property
    def _locate(self) -> Locate | None:
        """What finds the groups of cells, where some are of none because they do not count."""
        result, selection = self.result, self.result.selection
        if selection is None or result.plan.window is not None:
            return None

        def locate(index: Sequence[NDArray[np.intp]]) -> NDArray[np.intp]:
            return np.where(selection.mark(result.input, index), result.plan.locate_groups(index), NOBODY)

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
        scaled = self.result.gamma is not None or self.result.beta is not None
        first, *others = (_phrase_check(check, self.result.plan) for check in checks)
        title = "normalized before gamma and beta" if scaled else "normalized"
        return Line((f"{title}: {first}", *others), all(check.ok for check in checks))


def tell_selection(
    plan: Plan, values: NDArray[Any], selection: Selection | None, counts: NDArray[np.float64] | None
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the line of a header that says how many values count, and what becomes of the others.

    Parameters
    ----------
    plan : Plan
    values : ndarray
        The tensor.
    selection : Selection or None
        None where all values count: then there is no line.
    counts : ndarray or None
        How many of each group do, where that is known.
    """
    if selection is None:
        return ()
    known = counts is not None and plan.window is None  # windows overlap
    counted = int(counts.sum()) if known and counts is not None else selection.count(values)
    told = ("NaN does not",) if selection.omits_nan else ()
    facts = (f"{counted:,} of {values.size:,} values", *told, _FILLED[selection.fill])
    return (("counting", facts),)


def describe_selection(selection: Selection | None) -> Mapping[str, Any]:
    """Return what JSON says of which values count; nothing where all do."""
    if selection is None:
        return {}
    masked = selection.mask is not None
    return {"counting": {"mask": masked, "omits_nan": selection.omits_nan, "fill": selection.fill}}


def count_groups(result: Result) -> NDArray[np.int64]:
    """Return `count_values` of every group, of the shape of the statistics."""
    plan = result.plan
    if result.counts is not None:
        return result.counts.astype(np.int64)
    if plan.window is None:
        return np.full(plan.stats_shape, plan.group_size, dtype=np.int64)
    axis = plan.axes[0]
    places = np.arange(plan.shape[axis])
    last = np.minimum(places + plan.window.after, plan.shape[axis] - 1)
    counts = last - np.maximum(places - plan.window.before, 0) + 1
    along = [-1 if other == axis else 1 for other in range(len(plan.shape))]
    return np.broadcast_to(counts.reshape(along), plan.shape)


def count_values(result: Result, group: int) -> int:
    """Return how many values a group's statistics are of; a window is cut off at the edges."""
    plan = result.plan
    if result.counts is not None:
        return int(result.counts.reshape(-1)[group])
    if plan.window is None:
        return plan.group_size
    axis = plan.axes[0]
    channel = int(np.unravel_index(group, plan.shape)[axis])
    first = max(0, channel - plan.window.before)
    return min(plan.shape[axis] - 1, channel + plan.window.after) - first + 1


def describe_problem(
    plan: Plan, tensor: Tensor, dtypes: str, parameters: Mapping[str, NDArray[Any] | None], view: View
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the lines of a header: the definition and its options, the input, the groups, gamma and beta.

    Parameters
    ----------
    plan : Plan
    tensor : Tensor
    dtypes : str
        Of the input, and of what comes out where something does.
    parameters : mapping of str to ndarray or None
        gamma, beta and what else is given beside the tensor, by its label; of the shapes that the plan has.
    view : View
    """
    given = {name: values for name, values in parameters.items() if values is not None}
    return (
        ("formula", (write_formula(plan, given), *describe_options(plan))),
        ("input", (make_printable(tensor.source), format_shape(plan.shape), dtypes)),
        ("groups", describe_reduction(plan)),
        *((name, _abbreviate(values, view)) for name, values in given.items()),
    )


def write_formula(plan: Plan, given: Container[str]) -> str:
    """Return the definition with as much of an affine step as there is: `… · gamma + beta`."""
    gamma = f" · ({plan.gamma_offset} + gamma)" if plan.gamma_offset else " · gamma"
    affine = (text for name, text in (("gamma", gamma), ("beta", " + beta")) if name in given)
    return plan.formula + "".join(affine)


def name_running(running: Given | None) -> Mapping[str, NDArray[Any]]:
    """Return running statistics under the labels that they have in a header."""
    return {} if running is None else {f"running {name}": array for name, array in running._asdict().items()}


class Reduction(NamedTuple):
    """What a plan reduces, in words.

    Parameters
    ----------
    over : str
        The axes reduced, with their lengths; of a window, its reach and axis.
    keeps : str
    shapes : str or None
        What becomes of the shape; None for a window, which leaves it.
    groups : str
        Their number and size.
    """

    over: str
    keeps: str
    shapes: str | None
    groups: str


def describe_reduction(plan: Plan) -> tuple[str, ...]:
    """Return the facts of one line: what is reduced, what is kept, the shapes, groups × size.

    Examples
    --------
    >>> from normcli.plan import make_plan
    >>> from normcli.request import Request
    >>> describe_reduction(make_plan(Request("bn"), (2, 3, 4, 4)))
    ('reduces N×H×W = 2×4×4', 'keeps C = 3', 'nchw → 1c11', '3 groups × 32')
    """
    over, keeps, shapes, groups = find_reduction(plan)
    if shapes is None:
        return f"window {over}", f"keeps {keeps}", groups
    return f"reduces {over}", f"keeps {keeps}", shapes, groups


def find_reduction(plan: Plan) -> Reduction:
    """Return what a plan reduces and keeps, and into how many groups that parts the tensor.

    Examples
    --------
    >>> from normcli.plan import make_plan
    >>> from normcli.request import Request
    >>> find_reduction(make_plan(Request("ln", layout="bnd"), (2, 3, 4)))
    Reduction(over='D = 4', keeps='B×N = 2×3', shapes='bnd → bn1', groups='6 groups × 4')
    """
    names = [plan.layout.name(axis) for axis in range(len(plan.shape))]
    short = [name.upper() if plan.layout.letters else name for name in names]
    kept = [name.upper() if plan.layout.letters or name == "g" else name for name in plan.kept_names]
    keeps = _multiply(kept, plan.stats_shape)
    groups = f"{plan.group_count:,} group{'' if plan.group_count == 1 else 's'} × {plan.group_size:,}"
    if plan.window is not None:
        c = names[plan.axes[0]]
        window = f"{c}−{plan.window.before} … {c}+{plan.window.after} along {short[plan.axes[0]]}"
        return Reduction(window, keeps, None, f"{plan.group_count:,} windows of {plan.window.length}")
    split = plan.layout.channel if plan.groups is not None else None
    reduced = [f"{short[axis]}/G" if axis == split else short[axis] for axis in plan.axes]
    sizes = tuple(plan.view_shape[axis] for axis in plan.view_axes)
    return Reduction(_multiply(reduced, sizes), keeps, _draw_shapes(plan, names), groups)


def _draw_shapes(plan: Plan, names: Sequence[str]) -> str:
    if plan.layout.letters is None:
        return f"{format_shape(plan.shape)} → {format_shape(plan.keepdims_shape)}"
    after = dict(zip(plan.kept, plan.kept_names, strict=True))
    return f"{''.join(names)} → {''.join(after.get(axis, '1') for axis in range(len(names)))}"


def _multiply(names: Sequence[str], sizes: tuple[int, ...]) -> str:
    return f"{'×'.join(names)} = {'×'.join(map(str, sizes))}" if names else "nothing"


def describe_options(plan: Plan) -> tuple[str, ...]:
    """Return eps and its place, ddof, p and the rest as one fact; none where a norm has no such thing."""
    options = plan.norm.options
    parts = []
    if plan.eps is not None:
        place = f" {plan.eps_mode} the root" if plan.eps_mode in (EpsMode.INSIDE, EpsMode.OUTSIDE) else ""
        parts.append(f"eps {plan.eps:g}{place}")
    if plan.group_order is GroupOrder.INTERLEAVED:
        parts.append("groups interleaved")
    if "ddof" in options and plan.ddof:
        parts.append(f"ddof {plan.ddof}")
    if plan.p is not None and "p" in options:  # else it is in the formula
        parts.append(f"p {plan.p:g}")
    if plan.window is not None:
        parts += [f"{name} {getattr(plan.window, name):g}" for name in ("size", "alpha", "exponent", "k")]
    if plan.like is not None:
        parts.append(f"like {plan.like}")
    return (", ".join(parts),) if parts else ()


def _abbreviate(parameter: NDArray[Any], view: View) -> tuple[str, ...]:
    flat = parameter.reshape(-1)
    shown = flat if view.full else flat[:_MOST_PARAMETERS]
    texts = ", ".join(format_statistic(float(value), view.digits) for value in shown)
    more = f", … {flat.size - shown.size:,} more (--full)" if shown.size < flat.size else ""
    return format_shape(parameter.shape), f"{texts}{more}"


def _describe_window(plan: Plan) -> Mapping[str, Any]:
    if plan.window is None:
        return {}
    names = ("size", "before", "after", "alpha", "exponent", "k")
    return {"window": {name: getattr(plan.window, name) for name in names}}


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
        f"as the statistics{' and eps' if plan.eps else ''} predict{failed}"
    )


def _format_check(check: Check, value: float) -> str:
    return format_statistic(value, 2 if check.target == 0 else None)


def _spell_number(value: float) -> Any:
    from normcli.tensors.nested import to_lists

    return to_lists(np.asarray(value))
