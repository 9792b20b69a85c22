"""The lines of a framework's own call for a norm, with the axes transposed into the call's order."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from normcli.codegen.by_hand import RUNNING, Statement, write_affine, write_axes
from normcli.norms.calls import GroupKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from normcli.codegen.arrays import Arrays
    from normcli.norms.calls import Call
    from normcli.norms.plan import Plan


def write_own_call(
    call: Call, plan: Plan, arrays: Arrays, dtype: str, *, evaluation: bool
) -> Iterator[Statement]:
    """Yield the statements from `x` to `y` that call the framework, with gamma and beta where they are given.

    Parameters
    ----------
    call : Call
        A call that can express the plan: one without obstacles.
    plan : Plan
    arrays : Arrays
    dtype : str
        The dtype of x and y, as code.
    evaluation : bool
        Whether mean and variance are the constants `RUNNING_MEAN` and `RUNNING_VAR`.
    """
    shape = plan.grid.shape
    order = _order_axes(call, plan)
    moved = tuple(shape[axis] for axis in order)
    if order != tuple(range(len(shape))):
        yield Statement(f"x = {arrays.write('transpose', x='x', order=order)}", str(moved))
    own = call.affine.split(", ") if call.takes_parameters(plan) else []
    places = _fill_places(call, plan, order, own, evaluation=evaluation) | {"dtype": dtype}
    if plan.spec.iteration is not None:
        start = arrays.write("constant", x=call.iterates.upper())
        places |= {"iterations": plan.spec.iteration.steps, "start": start}
    if evaluation and not call.layer:
        yield from _write_running(call, plan, arrays)
    elif call.measure:
        yield Statement(call.measure.format(**places))
    if call.layer:
        yield Statement(f"layer = {call.layer.format(**places)}")
        yield from (Statement(line.format(**places)) for line in call.build)
        yield from _fill_layer(call, own, places, evaluation=evaluation)
    y = (call.run or call.call).format(**places)
    yield Statement(f"y = {y}", str(moved))
    if order != tuple(range(len(shape))):
        back = tuple(order.index(axis) for axis in range(len(shape)))
        yield Statement(f"y = {arrays.write('transpose', x='y', order=back)}", str(shape))
    rest = tuple(name for name in plan.norm.parameter_names if name not in own)
    if rest:
        yield from write_affine(plan, arrays, plan.parameters.full_shape, rest)


def _fill_layer(
    call: Call, own: list[str], places: dict[str, object], *, evaluation: bool
) -> Iterator[Statement]:
    """Yield the statements that assign parameters and running statistics to a layer object.

    Parameters
    ----------
    call : Call
    own : list of str
        The parameters that the layer applies itself.
    places : dict of str to object
        The values for the names in braces in templates, as `_fill_places` returns them.
    evaluation : bool
        Whether running statistics are given.
    """
    for name in own:
        yield Statement(f"if {name} is not None:")
        yield Statement(call.assign[name].format(x=name, **places), "", 1)
    for name, constant in RUNNING.items() if evaluation else ():
        yield Statement(call.assign[name].format(x=constant, **places))


def _write_running(call: Call, plan: Plan, arrays: Arrays) -> Iterator[Statement]:
    """Yield the statements that make arrays of running statistics, in the shape that the call takes."""
    running = plan.grid.running
    for name, constant in RUNNING.items():
        code, shape = arrays.write("constant", x=constant), running.stats_shape
        if call.groups is GroupKind.ANY:  # it broadcasts
            shape = running.keepdims_shape
            code = arrays.write("reshape", x=code, shape=shape)
        yield Statement(f"{name} = {code}", str(shape))


def _order_axes(call: Call, plan: Plan) -> tuple[int, ...]:
    """Return the tensor's axes in the order in which the call takes them."""
    grid = plan.grid
    channel = _find_channel(call, plan)
    ends: dict[int | None, str | None] = {channel: call.channel, grid.layout.batch: call.batch}
    for axis in grid.axes if call.reduced else ():
        ends[axis] = "last"
    placed = {axis: place for axis, place in ends.items() if axis is not None and place is not None}
    rest = [axis for axis in range(len(grid.shape)) if axis not in placed]
    order = [axis for axis, place in placed.items() if place == "first"] + rest
    order += sorted(axis for axis, place in placed.items() if place == "last")
    if call.channel == "second" and channel is not None:
        order.insert(1, channel)
    return tuple(order)


def _find_channel(call: Call, plan: Plan) -> int | None:
    """Return the tensor's axis that becomes the call's channel axis; None if there is no such axis."""
    if call.groups is GroupKind.ONE_KEPT:
        return plan.grid.kept[0]
    if call.groups is GroupKind.ALL and plan.spec.rows:
        return plan.spec.rows[0]
    return plan.grid.axes[0] if call.groups is GroupKind.WINDOW else plan.grid.layout.channel


def _fill_places(
    call: Call, plan: Plan, order: tuple[int, ...], own: list[str], *, evaluation: bool
) -> dict[str, object]:
    """Return the values for the names in braces in a call's templates, by name.

    Parameters
    ----------
    call : Call
    plan : Plan
    order : tuple of int
        The tensor's axes in the order in which the call takes them.
    own : list of str
        The parameters that the call applies itself.
    evaluation : bool
        Whether running statistics are given.
    """
    grid, spec, window = plan.grid, plan.spec, plan.spec.window
    axes = tuple(sorted(order.index(axis) for axis in grid.axes))
    if call.reduced:
        axes = tuple(range(-len(axes), 0))
    channel = _find_channel(call, plan)
    lengths = tuple(grid.shape[order[axis]] for axis in axes)
    p = 2.0 if spec.p is None else spec.p
    places: dict[str, object] = {
        "eps": spec.eps or 0.0,
        "axes": write_axes(axes),
        "axis_list": list(axes),
        "first": axes[0] if axes else 0,
        "lengths": lengths,
        "length": lengths[0] if call.groups is GroupKind.ONE_REDUCED else 0,
        "groups": grid.groups,
        "p": 'float("inf")' if p == math.inf else 'float("-inf")' if p == -math.inf else p,
        "whole_p": int(p) if p in (1, 2) else 0,
        "evaluation": evaluation,
        "training": not evaluation,
    }
    if channel is not None:
        places["channel"] = order.index(channel)
        if call.groups is not GroupKind.ONE_REDUCED:
            places["length"] = grid.shape[channel]
        places["ones"] = tuple(n if axis == channel else 1 for axis, n in enumerate(grid.shape))
    takes_statistics = evaluation or bool(call.measure)
    places |= {name: name if takes_statistics else None for name in RUNNING}
    for name in ("gamma", "beta"):
        places |= {
            name: name if name in own else None,
            f"has_{name}": f"{name} is not None" if name in own else False,
        }
    if window is not None:
        divisor = window.size if call.convention.divides_alpha else 1
        alpha = window.alpha if divisor == window.divisor else window.alpha / window.divisor * divisor
        places |= {**window._asdict(), "alpha": alpha, "radius": window.size // 2}
    return places
