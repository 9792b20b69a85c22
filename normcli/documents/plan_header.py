"""A plan in every answer: its members in JSON, the lines of the header, the table of its groups."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from normcli.documents.assumptions import list_assumed
from normcli.documents.document import SCHEMA, Facts, Table, TableRow, describe_members
from normcli.documents.excerpt import build_excerpt
from normcli.documents.number_format import format_shape, format_statistic
from normcli.norms.norm import QUARTILES
from normcli.norms.options import find_option
from normcli.norms.request import Fill
from normcli.norms.rules import EpsMode, GroupOrder, ParameterRule
from normcli.norms.shapes.parameter_shapes import place_parameter
from normcli.printable import format_count, make_printable
from normcli.tensors.formats.json_lists import describe_number
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from normcli.documents.document import View
    from normcli.engine.inputs import Inputs, Selection
    from normcli.norms.grid import Grid
    from normcli.norms.plan import Plan
    from normcli.norms.spec import Iteration
    from normcli.tensors.tensor import Tensor

    HeaderLine = tuple[str, tuple[str, ...]]

_MOST_PARAMETERS = 8

_RUNNING = ("running mean", "running var")
"""The header's words for running statistics, in place of the reduced axes."""

_WORDS: tuple[HeaderLine, ...] = (("words", ("normcli help words",)),)
"""The hint for a reader at a terminal: where the words of an answer are explained."""

_WINDOW_OPTIONS = ("size", "alpha", "exponent", "k")
_WINDOW_MEMBERS = ("size", "before", "after", "alpha", "exponent", "k")

_CHOSEN = ("range", "quantiles", "over", "no_mean", "no_scale", "u", "v")
"""The options that are members of JSON where they are given."""

_FILLED = {
    Fill.PASS: "what does not is passed through",
    Fill.ZERO: "what does not becomes 0",
    Fill.NAN: "what does not becomes NaN",
    Fill.NORMALIZE: "what does not is normalized with the others' statistics",
}


def describe_plan(plan: Plan, subject: Mapping[str, Any]) -> dict[str, Any]:
    """Return the first members of the JSON of every answer about a norm.

    Parameters
    ----------
    plan : Plan
    subject : mapping
        The members on the input, such as those of `describe_tensor` under the key `input`.
    """
    grid, spec, window = plan.grid, plan.spec, plan.spec.window
    return {
        "schema": SCHEMA,
        "norm": plan.norm.name,
        "formula": plan.formula,
        **subject,
        "layout": grid.layout.text,
        **({} if grid.columns is None else describe_members(grid, "columns")),
        **describe_members(grid, "axes", "kept", "group_count", "group_size"),
        **({} if grid.groups is None else describe_members(grid, "groups", "group_order")),
        **describe_members(spec, "eps", "eps_mode"),
        "ddof": spec.ddof if find_option("ddof").belongs_to(plan.norm) else None,
        **({} if spec.p is None else {"p": describe_number(spec.p)}),
        **({} if spec.rows is None else describe_members(spec, "rows")),
        **({} if spec.iteration is None else {"iterations": spec.iteration.steps}),
        **({} if window is None else {"window": describe_members(window, *_WINDOW_MEMBERS)}),
        "like": spec.like,
        **{name: getattr(plan.request, name) for name in _CHOSEN if getattr(plan.request, name) is not None},
        **(describe_members(spec, "gamma_offset") if spec.gamma_offset else {}),
        **({} if plan.parameters.own is None else {"parameter_axes": list(plan.parameters.axes)}),
    }


def describe_column(grid: Grid, index: Mapping[str, int]) -> Mapping[str, Any]:
    """Return the name of the column that a group lies in, as a member of JSON; none where it has no name."""
    column = grid.find_column(index)
    return {} if column is None else {"column": column}


def describe_tensor(tensor: Tensor) -> Mapping[str, Any]:
    """Return the source, the shape and the dtype of a tensor."""
    values = tensor.values
    return {"source": tensor.source, "shape": list(values.shape), "dtype": values.dtype.name}


def describe_selection(selection: Selection | None) -> Mapping[str, Any]:
    """Return which values count, as a member of JSON; none where all do."""
    if selection is None:
        return {}
    masked = selection.mask is not None
    return {"counting": {"mask": masked, "omits_nan": selection.omits_nan, "fill": selection.fill}}


def build_header(
    title: str,
    plan: Plan,
    source: tuple[str, ...],
    view: View,
    parameters: Mapping[str, NDArray[Any] | None] | None = None,
    more: Iterable[HeaderLine] = (),
) -> Facts:
    """Return the header of an answer: the definition, the input, the groups and the parameters.

    Parameters
    ----------
    title : str
    plan : Plan
    source : tuple of str
        The facts of the line `input`, such as `list_facts` of a tensor.
    view : View
    parameters : mapping of str to ndarray or None
        gamma, beta and what else is given beside the tensor, by its label; of the shapes that the plan has.
    more : iterable
        Further lines.
    """
    given = {name: values for name, values in (parameters or {}).items() if values is not None}
    formula = tuple(filter(None, (format_formula(plan, given), format_options(plan))))
    affine = (
        (name, _abbreviate(values, view, _name_places(plan, name, values))) for name, values in given.items()
    )
    groups = format_running(plan) if _RUNNING[0] in given else format_reduction(plan)
    lines = (("formula", formula), ("input", source), ("groups", groups))
    return Facts(title, (*lines, *list_assumed([plan]), *affine, *more, *(_WORDS if view.width else ())))


def list_facts(tensor: Tensor, output: np.dtype[Any] | None = None) -> tuple[str, ...]:
    """Return the source, shape and dtype of a tensor, with the dtype of the output where there is one."""
    dtype = tensor.values.dtype.name
    dtypes = dtype if output is None else f"{dtype} → {output.name}"
    return make_printable(tensor.source), format_shape(tensor.values.shape), dtypes


def list_selection(
    plan: Plan, values: NDArray[Any], selection: Selection | None, counts: NDArray[np.float64] | None
) -> tuple[HeaderLine, ...]:
    """Return the header's line on how many values count, and on what happens to the others.

    Parameters
    ----------
    plan : Plan
    values : ndarray
        The tensor.
    selection : Selection or None
        None if all values count: then there is no line.
    counts : ndarray or None
        The number of values of each group that count; None if it is not known.
    """
    if selection is None:
        return ()
    unknown = counts is None or plan.groups_overlap  # windows overlap
    counted = selection.count(values) if counts is None or unknown else int(counts.sum())
    nan = ("NaN does not",) if selection.omits_nan else ()
    return (
        ("counting", (f"{counted:,} of {format_count(values.size, 'value')}", *nan, _FILLED[selection.fill])),
    )


def list_groups(plan: Plan, columns: Mapping[str, NDArray[Any]], view: View) -> Table:
    """Return the table of groups: the name of each on its colour, and its statistics.

    Parameters
    ----------
    plan : Plan
    columns : mapping of str to ndarray
        By their titles: integers, or numbers to be rounded for the reader; of `Grid.stats_shape`.
    view : View
    """

    def make_row(group: int) -> TableRow:
        cells = (format_value(values.flat[group], view) for values in columns.values())
        return TableRow((plan.grid.group_name(group), *cells), None if plan.groups_overlap else group)

    table = Table(None, ("group", *columns), (False, *(True,) * len(columns)))
    return build_excerpt(table, make_row, plan.grid.group_count, "group", view)


def format_formula(plan: Plan, given: Collection[str]) -> str:
    """Return the definition, with gamma and beta if they are given: `… · gamma + beta`."""
    gamma = f" · ({plan.spec.gamma_offset} + gamma)" if plan.spec.gamma_offset else " · gamma"
    affine = (text for name, text in (("gamma", gamma), ("beta", " + beta")) if name in given)
    text = plan.formula + "".join(affine)
    for name in given:
        if name.startswith(_GATE):
            act = name[len(_GATE) + 1 :].partition(")")[0]
            gate = "gate" if act == "none" else f"{act}(gate)"
            return f"{text} of x · {gate}" if name.endswith(_BEFORE) else f"({text}) · {gate}"
    return text


def name_output(given: Iterable[str]) -> str:
    """Return the heading of y: what it comes after, gamma, beta or both."""
    affine = " and ".join(given)
    return f"y, after {affine}" if affine else "y, normalized"


_GATE, _BEFORE = "gate ", " before"
"""A gate's label begins with the first, its activation follows; before the norm, it ends with the second."""


def name_inputs(inputs: Inputs) -> Mapping[str, NDArray[Any] | None]:
    """Return gamma, beta, running statistics and the gate under the labels that they have in a header."""
    running = {} if inputs.given is None else dict(zip(_RUNNING, inputs.given, strict=True))
    gates = {}
    for gate, end in ((inputs.gate, ""), (inputs.gated_input, _BEFORE)):
        if gate is not None:
            gates[f"{_GATE}({gate.activation}){end}"] = gate.values
    return {"gamma": inputs.gamma, "beta": inputs.beta, **running, **gates}


def format_running(plan: Plan) -> tuple[str, ...]:
    """Return the facts of the same line where the statistics are given, and nothing is reduced."""
    return "reduces nothing", f"has statistics given for {find_reduction(plan, given=True).keeps}"


class ReductionWords(NamedTuple):
    """The reduction of a plan, in words.

    Parameters
    ----------
    over : str
        The reduced axes with their lengths; for a window, its reach and axis.
    keeps : str
        The kept axes, with the number of statistics along each.
    shapes : str or None
        The shapes of tensor and statistics, `nchw → 1c11`; None for a window, where they are equal.
    groups : str
        The number of groups, and their size.
    """

    over: str
    keeps: str
    shapes: str | None
    groups: str


def format_reduction(plan: Plan) -> tuple[str, ...]:
    """Return the reduction as facts of one line: reduced axes, kept axes, shapes, groups × size.

    Examples
    --------
    >>> import numpy as np
    >>> from normcli.norms.plan import make_plan
    >>> from normcli.norms.request import Request
    >>> format_reduction(make_plan(Request("bn"), (2, 3, 4, 4), np.dtype("f8")))
    ('reduces N×H×W = 2×4×4', 'keeps C = 3', 'nchw → 1c11', '3 groups × 32')
    """
    over, keeps, shapes, groups = find_reduction(plan)
    reduces = "window" if shapes is None else "reduces"
    return tuple(filter(None, (f"{reduces} {over}", f"keeps {keeps}", shapes, groups)))


def find_reduction(plan: Plan, *, given: bool = False) -> ReductionWords:
    """Return the reduction of a plan in words: reduced and kept axes, number of groups.

    Parameters
    ----------
    plan : Plan
    given : bool
        Whether running statistics are given, so that no axis is reduced.

    Examples
    --------
    >>> import numpy as np
    >>> from normcli.norms.plan import make_plan
    >>> from normcli.norms.request import Request
    >>> find_reduction(make_plan(Request("ln", layout="bnd"), (2, 3, 4), np.dtype("f8")))
    ReductionWords(over='D = 4', keeps='B×N = 2×3', shapes='bnd → bn1', groups='6 groups × 4')
    """
    grid, names, window = plan.grid, plan.grid.layout.names, plan.spec.window
    if given:
        running = grid.running
        kept = [name.upper() if running.layout.letters else name for name in running.kept_names]
        count = format_count(math.prod(running.stats_shape), "group")
        return ReductionWords(
            "nothing", _multiply(kept, running.stats_shape), format_shape(running.stats_shape), count
        )
    short = [name.upper() if grid.layout.letters else name for name in names]
    kept = [name.upper() if grid.layout.letters or name == "g" else name for name in grid.kept_names]
    keeps = _multiply(kept, grid.stats_shape)
    if window is not None:
        name, along = names[grid.axes[0]], short[grid.axes[0]]
        reach = f"{name}−{window.before} … {name}+{window.after} along {along}"
        return ReductionWords(
            reach, keeps, None, f"{format_count(grid.group_count, 'window')} of {grid.group_size}"
        )
    split = None if grid.split is None else grid.split.axis
    reduced = [f"{short[axis]}/G" if axis == split else short[axis] for axis in grid.axes]
    over = _multiply(reduced, tuple(grid.view_shape[axis] for axis in grid.view_axes))
    groups = f"{format_count(grid.group_count, 'group')} × {grid.group_size:,}"
    return ReductionWords(over, keeps, _format_shapes(plan), groups)


def _format_shapes(plan: Plan) -> str:
    grid, names = plan.grid, plan.grid.layout.names
    if grid.layout.letters is None:
        return f"{format_shape(grid.shape)} → {format_shape(grid.keepdims_shape)}"
    after = dict(zip(grid.kept, grid.kept_names, strict=True))
    return f"{''.join(names)} → {''.join(after.get(axis, '1') for axis in range(len(names)))}"


def _multiply(names: Sequence[str], sizes: tuple[int, ...]) -> str:
    return f"{'×'.join(names)} = {'×'.join(map(str, sizes))}" if names else "nothing"


def format_options(plan: Plan) -> str:
    """Return eps and its place, ddof, p and the rest; empty where a norm has no such thing."""
    spec = plan.spec
    parts = []
    if spec.eps is not None:
        place = f" {spec.eps_mode} the root" if spec.eps_mode in (EpsMode.INSIDE, EpsMode.OUTSIDE) else ""
        parts.append(f"eps {spec.eps:g}{place}")
    if plan.grid.group_order is GroupOrder.INTERLEAVED:
        parts.append("groups interleaved")
    if spec.ddof and find_option("ddof").belongs_to(plan.norm):
        parts.append(f"ddof {spec.ddof}")
    if spec.p is not None and find_option("p").belongs_to(plan.norm):  # else it is in the formula
        parts.append(f"p {spec.p:g}")
    if spec.rows is not None:
        names = " and ".join(plan.grid.layout.name(axis) for axis in spec.rows) or "none"
        parts.append(f"rows of X along {names}")
    if spec.iteration is not None:
        parts.append(format_iteration(spec.iteration))
    if spec.range is not None:
        parts.append(f"range {find_option('range').format(spec.range)}")
    if spec.quantiles not in (None, QUARTILES):
        parts.append(f"quantiles {find_option('quantiles').format(spec.quantiles)} %")
    if plan.request.over is not None:
        parts.append(f"over {find_option('over').format(plan.request.over)}")
    if spec.window is not None:
        parts += [f"{name} {getattr(spec.window, name):g}" for name in _WINDOW_OPTIONS]
    if spec.like is not None:
        parts.append(f"like {spec.like}")
    return ", ".join(parts)


def format_iteration(iteration: Iteration) -> str:
    """Return how a singular value is estimated: `3 power iterations from u`."""
    if not iteration.steps:
        return "of u and v as they are"
    return f"{format_count(iteration.steps, 'power iteration')} from {iteration.start}"


def _name_places(plan: Plan, name: str, values: NDArray[Any]) -> tuple[str, ...]:
    """Return along which axes gamma or beta lies, where its shape is not the norm's own or has two meanings."""
    if name not in plan.norm.parameter_names or values.size == 1:
        return ()
    layout, parameters = plan.grid.layout, plan.parameters
    if parameters.rule is ParameterRule.GIVEN:
        along = f"along {' '.join(map(layout.name, parameters.axes))}"
        return (along if plan.spreads_parameters else f"{along}, in groups",)
    if plan.request.feature_axes is not None or len(place_parameter(plan.grid, parameters, values.shape)) == 1:
        return ()
    axes = " ".join(map(layout.name, parameters.axes))
    return (f"along {axes}, as {plan.norm.name} has it; --feature-axes lays it along others",)


def _abbreviate(parameter: NDArray[Any], view: View, places: tuple[str, ...]) -> tuple[str, ...]:
    flat = parameter.reshape(-1)
    shown = flat if view.full else flat[:_MOST_PARAMETERS]
    texts = ", ".join(format_statistic(float(value), view.digits) for value in shown)
    more = f", … {flat.size - shown.size:,} more (--full)" if shown.size < flat.size else ""
    return format_shape(parameter.shape), *places, f"{texts}{more}"


def format_value(value: np.generic, view: View) -> str:
    """Return an integer as it is, another number rounded for the reader."""
    return str(value) if value.dtype.kind in "iu" else format_statistic(float(value), view.digits)
