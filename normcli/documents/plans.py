"""What was asked, as every answer begins: the definition and its options, the input, the groups, parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from normcli.documents.document import SCHEMA
from normcli.documents.numbers import format_shape, format_statistic
from normcli.norms.request import Fill
from normcli.norms.table import EpsMode, GroupOrder
from normcli.printable import make_printable
from normcli.tensors.nested import describe_number

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from normcli.documents.document import View
    from normcli.engine.inputs import Inputs, Selection
    from normcli.norms.plan import Plan
    from normcli.tensors.tensor import Tensor

_MOST_PARAMETERS = 8

_FILLED = {
    Fill.PASS: "what does not is passed through",
    Fill.ZERO: "what does not becomes 0",
    Fill.NAN: "what does not becomes NaN",
    Fill.NORMALIZE: "what does not is normalized with the others' statistics",
}


def describe_asked(plan: Plan, tensor: Tensor) -> Mapping[str, Any]:
    """Return the members that the JSON of every answer to a norm begins with."""
    return {
        "schema": SCHEMA,
        "norm": plan.norm.name,
        "formula": plan.formula,
        "input": {
            "source": tensor.source,
            "shape": list(plan.grid.shape),
            "dtype": tensor.values.dtype.name,
        },
        "layout": plan.grid.layout.letters,
        "axes": list(plan.grid.axes),
        "kept": list(plan.grid.kept),
        "group_count": plan.grid.group_count,
        "group_size": plan.grid.group_size,
        **(
            {}
            if plan.grid.groups is None
            else {"groups": plan.grid.groups, "group_order": plan.grid.group_order}
        ),
        "eps": plan.spec.eps,
        "eps_mode": plan.spec.eps_mode,
        "ddof": plan.spec.ddof if "ddof" in plan.norm.options else None,
        **({} if plan.spec.p is None else {"p": describe_number(plan.spec.p)}),
        **_describe_window(plan),
        "like": plan.spec.like,
        **({"gamma_offset": plan.spec.gamma_offset} if plan.spec.gamma_offset else {}),
    }


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
        ("input", (make_printable(tensor.source), format_shape(plan.grid.shape), dtypes)),
        ("groups", describe_reduction(plan)),
        *((name, _abbreviate(values, view)) for name, values in given.items()),
    )


def write_formula(plan: Plan, given: Container[str]) -> str:
    """Return the definition with as much of an affine step as there is: `… · gamma + beta`."""
    gamma = f" · ({plan.spec.gamma_offset} + gamma)" if plan.spec.gamma_offset else " · gamma"
    affine = (text for name, text in (("gamma", gamma), ("beta", " + beta")) if name in given)
    return plan.formula + "".join(affine)


def name_inputs(inputs: Inputs) -> Mapping[str, NDArray[Any] | None]:
    """Return gamma, beta and running statistics under the labels that they have in a header."""
    running = {} if inputs.given is None else inputs.given._asdict()
    named = {f"running {name}": array for name, array in running.items()}
    return {"gamma": inputs.gamma, "beta": inputs.beta, **named}


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
    >>> import numpy as np
    >>> from normcli.norms.plan import make_plan
    >>> from normcli.norms.request import Request
    >>> describe_reduction(make_plan(Request("bn"), (2, 3, 4, 4), np.dtype("f8")))
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
    >>> import numpy as np
    >>> from normcli.norms.plan import make_plan
    >>> from normcli.norms.request import Request
    >>> find_reduction(make_plan(Request("ln", layout="bnd"), (2, 3, 4), np.dtype("f8")))
    Reduction(over='D = 4', keeps='B×N = 2×3', shapes='bnd → bn1', groups='6 groups × 4')
    """
    names = [plan.grid.layout.name(axis) for axis in range(len(plan.grid.shape))]
    short = [name.upper() if plan.grid.layout.letters else name for name in names]
    kept = [name.upper() if plan.grid.layout.letters or name == "g" else name for name in plan.grid.kept_names]
    keeps = _multiply(kept, plan.grid.stats_shape)
    groups = (
        f"{plan.grid.group_count:,} group{'' if plan.grid.group_count == 1 else 's'} × {plan.grid.group_size:,}"
    )
    if plan.spec.window is not None:
        c = names[plan.grid.axes[0]]
        window = (
            f"{c}−{plan.spec.window.before} … {c}+{plan.spec.window.after} along {short[plan.grid.axes[0]]}"
        )
        return Reduction(window, keeps, None, f"{plan.grid.group_count:,} windows of {plan.grid.group_size}")
    split = plan.grid.layout.channel if plan.grid.groups is not None else None
    reduced = [f"{short[axis]}/G" if axis == split else short[axis] for axis in plan.grid.axes]
    sizes = tuple(plan.grid.view_shape[axis] for axis in plan.grid.view_axes)
    return Reduction(_multiply(reduced, sizes), keeps, _draw_shapes(plan, names), groups)


def _draw_shapes(plan: Plan, names: Sequence[str]) -> str:
    if plan.grid.layout.letters is None:
        return f"{format_shape(plan.grid.shape)} → {format_shape(plan.grid.keepdims_shape)}"
    after = dict(zip(plan.grid.kept, plan.grid.kept_names, strict=True))
    return f"{''.join(names)} → {''.join(after.get(axis, '1') for axis in range(len(names)))}"


def _multiply(names: Sequence[str], sizes: tuple[int, ...]) -> str:
    return f"{'×'.join(names)} = {'×'.join(map(str, sizes))}" if names else "nothing"


def describe_options(plan: Plan) -> tuple[str, ...]:
    """Return eps and its place, ddof, p and the rest as one fact; none where a norm has no such thing."""
    options = plan.norm.options
    parts = []
    if plan.spec.eps is not None:
        place = (
            f" {plan.spec.eps_mode} the root" if plan.spec.eps_mode in (EpsMode.INSIDE, EpsMode.OUTSIDE) else ""
        )
        parts.append(f"eps {plan.spec.eps:g}{place}")
    if plan.grid.group_order is GroupOrder.INTERLEAVED:
        parts.append("groups interleaved")
    if "ddof" in options and plan.spec.ddof:
        parts.append(f"ddof {plan.spec.ddof}")
    if plan.spec.p is not None and "p" in options:  # else it is in the formula
        parts.append(f"p {plan.spec.p:g}")
    if plan.spec.window is not None:
        parts += [f"{name} {getattr(plan.spec.window, name):g}" for name in ("size", "alpha", "exponent", "k")]
    if plan.spec.like is not None:
        parts.append(f"like {plan.spec.like}")
    return (", ".join(parts),) if parts else ()


def _abbreviate(parameter: NDArray[Any], view: View) -> tuple[str, ...]:
    flat = parameter.reshape(-1)
    shown = flat if view.full else flat[:_MOST_PARAMETERS]
    texts = ", ".join(format_statistic(float(value), view.digits) for value in shown)
    more = f", … {flat.size - shown.size:,} more (--full)" if shown.size < flat.size else ""
    return format_shape(parameter.shape), f"{texts}{more}"


def _describe_window(plan: Plan) -> Mapping[str, Any]:
    if plan.spec.window is None:
        return {}
    names = ("size", "before", "after", "alpha", "exponent", "k")
    return {"window": {name: getattr(plan.spec.window, name) for name in names}}


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
    known = counts is not None and plan.spec.window is None  # windows overlap
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


def label_group(plan: Plan, tensor: Tensor, group: int) -> str:
    """Return what a group is called, with the name of its column where the tensor's source named some."""
    name, columns = plan.grid.group_name(group), tensor.columns
    last = len(plan.grid.shape) - 1
    if columns is None or last not in plan.grid.kept or plan.grid.groups is not None:
        return name
    column = plan.grid.group_index(group)[plan.grid.kept_names[plan.grid.kept.index(last)]]
    return f"{name} {make_printable(columns[column])}"
