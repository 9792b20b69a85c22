"""A plan in every answer: its members in JSON, the lines of the header, the table of its groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from normcli.documents.axes_words import format_reduction, format_running, list_assumed
from normcli.documents.document import SCHEMA, Facts, Table, TableRow, describe_members
from normcli.documents.excerpt import build_excerpt
from normcli.documents.number_format import format_shape, format_statistic
from normcli.norms.axes import place_parameter
from normcli.norms.norm import QUARTILES
from normcli.norms.options import find_option
from normcli.norms.request import Fill
from normcli.norms.rules import EpsMode, GroupOrder, ParameterRule
from normcli.printable import format_count, make_printable
from normcli.tensors.formats.json_lists import describe_number

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

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
"""The options that are members of JSON if they are given."""

_FILLED = {
    Fill.PASS: "what does not is passed through",
    Fill.ZERO: "what does not becomes 0",
    Fill.NAN: "what does not becomes NaN",
    Fill.NORMALIZE: "what does not is normalized with the others' statistics",
}


def describe_plan(plan: Plan, subject: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members with which the JSON of every answer about a norm begins: the norm and its options.

    Parameters
    ----------
    plan : Plan
    subject : mapping
        Members that describe the input, such as the key `input` with the result of `describe_tensor`; they
        follow the formula.
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
    """Return the name of a group's column as the member `column` of a JSON object; empty if it has no name."""
    column = grid.find_column(index)
    return {} if column is None else {"column": column}


def describe_tensor(tensor: Tensor) -> Mapping[str, Any]:
    """Return the source, the shape and the dtype of a tensor as a JSON object."""
    values = tensor.values
    return {"source": tensor.source, "shape": list(values.shape), "dtype": values.dtype.name}


def describe_selection(selection: Selection | None) -> Mapping[str, Any]:
    """Return the JSON member `counting`, on the values that count; empty if `selection` is None."""
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
        gamma, beta and other arrays of the request, by label, in the shapes that the plan has; None for one
        that is not given.
    more : iterable of (str, tuple of str)
        Further lines: a label and its facts.
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
    """Return the source, shape and dtype of a tensor in words; with an output dtype, `float32 → float64`."""
    dtype = tensor.values.dtype.name
    dtypes = dtype if output is None else f"{dtype} → {output.name}"
    return make_printable(tensor.source), format_shape(tensor.values.shape), dtypes


def list_selection(
    plan: Plan, values: NDArray[Any], selection: Selection | None, counts: NDArray[np.float64] | None
) -> tuple[HeaderLine, ...]:
    """Return the header's line on how many values count, and on what the others become; () if all count.

    Parameters
    ----------
    plan : Plan
    values : ndarray
        The tensor.
    selection : Selection or None
        None if all values count.
    counts : ndarray or None
        The number of values of each group that count; None: they are counted here.
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
    """Return the table of groups, a row for each: the name on the group's colour, and the statistics.

    Parameters
    ----------
    plan : Plan
    columns : mapping of str to ndarray
        The statistics by column title, in the shape `Grid.stats_shape`; floats are rounded for the reader.
    view : View
    """

    def make_row(group: int) -> TableRow:
        cells = (format_value(values.flat[group], view) for values in columns.values())
        return TableRow((plan.grid.group_name(group), *cells), None if plan.groups_overlap else group)

    table = Table(None, ("group", *columns), (False, *(True,) * len(columns)))
    return build_excerpt(table, make_row, plan.grid.group_count, "group", view)


def format_formula(plan: Plan, given: Collection[str]) -> str:
    """Return the norm's formula, with gamma, beta and a gate if their labels are given: `… · gamma + beta`.

    A gate's label is `gate (ACT)`, and ends with `before` if the gate multiplies the tensor.
    """
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
    """Return the heading of y, given the names of the steps after the norm: `y, after gamma and beta`."""
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


def format_options(plan: Plan) -> str:
    """Return the options of a plan on one line: eps, inside or outside the root, ddof, p …; "" without any."""
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
    """Return the estimation of a singular value in words: `3 power iterations from u`."""
    if not iteration.steps:
        return "of u and v as they are"
    return f"{format_count(iteration.steps, 'power iteration')} from {iteration.start}"


def _name_places(plan: Plan, name: str, values: NDArray[Any]) -> tuple[str, ...]:
    """Return words on the axes along which gamma or beta lies; () if the shape of `values` leaves no choice."""
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
    """Return an integer in full, or another number rounded to the view's digits, as text."""
    return str(value) if value.dtype.kind in "iu" else format_statistic(float(value), view.digits)
