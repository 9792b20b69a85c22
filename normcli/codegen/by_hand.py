"""The lines of a norm by hand: its definitions, one after another, over whole arrays."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from normcli.codegen.formula import NAMES, Writer
from normcli.errors import UsageError
from normcli.teach.formulas.definitions import define_group, define_value
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from normcli.codegen.arrays import Arrays
    from normcli.norms.plan import Plan
    from normcli.norms.spec import Iteration
    from normcli.teach.formulas.definitions import Definition

    Shape = tuple[int, ...]

RUNNING = {"mean": "RUNNING_MEAN", "var": "RUNNING_VAR"}
"""Statistic → the constant that holds the running one."""

_ENDS = {0.0: "min", 100.0: "max"}
"""The quantiles, in per cent, that have a function of their own."""


_LEAST_LENGTH = 1e-12
"""The least divisor of a vector: the eps of torch, Flax and Equinox."""


class Statement(NamedTuple):
    """One statement.

    Parameters
    ----------
    code : str
    note : str
        The comment behind it, such as the shape.
    depth : int
        How far it is indented within the function.
    """

    code: str
    note: str = ""
    depth: int = 0


def write_by_hand(plan: Plan, arrays: Arrays, *, evaluation: bool) -> Iterator[Statement]:
    """Yield the lines from `x`, of the plan's shape, to `y`, with gamma and beta where they are given.

    Parameters
    ----------
    plan : Plan
    arrays : Arrays
    evaluation : bool
        Whether mean and variance are the constants `RUNNING_MEAN` and `RUNNING_VAR`.
    """
    grid = plan.grid
    writer = Writer(arrays, plan)
    if grid.view_shape != grid.shape:
        yield Statement(f"x = {writer.call('reshape', x='x', shape=grid.view_shape)}", str(grid.view_shape))
    group = define_group(plan, given=evaluation, beyond=False)
    shape = grid.running.keepdims_shape
    given = {
        name: writer.call("reshape", x=arrays.constant.format(x=constant), shape=shape)
        for name, constant in (RUNNING.items() if evaluation else ())
    }
    if plan.spec.iteration is not None:
        given["divisor"] = yield from _iterate(plan.spec.iteration, writer)
    shown = str(shape if evaluation else writer.kept)
    defined = [line for definition in group for line in _define(definition, writer, plan, given)]
    *_, quotient = [each for each in define_value(plan, (), "float64") if each.formula is not None]
    assert quotient.formula is not None
    y = writer.write(quotient.formula)
    for name, code in _keep_needed(defined, y):
        yield Statement(f"{name} = {code}", "" if name == "padded" else shown)
    yield Statement(f"y = {y}", str(grid.view_shape))
    yield from write_affine(plan, arrays, plan.parameters.view_shape)
    if grid.view_shape != grid.shape:
        yield Statement(f"y = {writer.call('reshape', x='y', shape=grid.shape)}", str(grid.shape))


def _iterate(iteration: Iteration, writer: Writer) -> Generator[Statement, None, str]:
    """Yield the lines of power iterations, and return what they divide by."""
    if "turn" not in writer.arrays.call:
        raise UsageError(f"{writer.arrays.title} has no operator for power iterations")
    matrices = writer.fill_matrices()
    turned = writer.call("turn", x="w")
    order, shape = matrices["by_rows"], matrices["matrices"]
    code = "x" if order == tuple(sorted(order)) else writer.call("transpose", x="x", order=order)
    yield Statement(f"w = {writer.call('reshape', x=code, shape=shape)}", str(shape))
    for name in ("u", "v"):
        if (vector := getattr(iteration, name)) is not None:
            constant = writer.arrays.constant.format(x=name.upper())
            shape = (len(vector), 1)
            yield Statement(f"{name} = {writer.call('reshape', x=constant, shape=shape)}", str(shape))
    products = [("v", f"{turned} @ u"), ("u", "w @ v")]
    if iteration.steps:
        yield Statement(f"for _ in range({iteration.steps}):")
    for name, product in products[:: 1 if iteration.start == "u" else -1] if iteration.steps else ():
        square = writer.arrays.reduce["sum"].format(x=f"{name} * {name}", axes=-2)
        length = writer.call("maximum", x=writer.call("sqrt", x=square), y=_LEAST_LENGTH)
        yield Statement(f"{name} = {product}", "", 1)
        yield Statement(f"{name} = {name} / {length}", "", 1)
    return writer.call("reshape", x=f"({writer.call('turn', x='u')} @ w @ v)", shape=writer.kept)


def write_affine(plan: Plan, arrays: Arrays, shape: Shape, names: tuple[str, ...] = ()) -> Iterator[Statement]:
    """Yield the lines that scale and shift `y`, for the parameters of those names, or all.

    Parameters
    ----------
    shape : tuple of int
        That gamma and beta are brought to, so that they broadcast.
    """
    offset = f"({plan.spec.gamma_offset:g} + gamma)" if plan.spec.gamma_offset else "gamma"
    steps = {"gamma": (offset, "*"), "beta": ("beta", "+")}
    for name in names or plan.norm.parameter_names:
        text, sign = steps[name]
        if name in plan.fixed_parameters:  # numbers, as of a range
            yield Statement(f"y = y {sign} {plan.fixed_parameters[name]!r}")
            continue
        yield Statement(f"if {name} is not None:")
        if shape[len(shape) - len(plan.parameters.shape) :] != plan.parameters.shape:
            reshaped = arrays.call["reshape"].format(x=name, shape=shape)
            yield Statement(f"{name} = {reshaped}", "", 1)
        yield Statement(f"y = y {sign} {text}", "", 1)


def _keep_needed(defined: list[tuple[str, str]], y: str) -> list[tuple[str, str]]:
    """Return the names, and the code of each, that `y` needs, directly or through one another."""
    needed: list[tuple[str, str]] = []
    for name, code in reversed(defined):
        if any(re.search(rf"\b{name}\b", later) for later in (*(later for _, later in needed), y)):
            needed.append((name, code))
    return needed[::-1]


def _define(
    definition: Definition, writer: Writer, plan: Plan, given: dict[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield the names that a definition gives a value, and the code of each."""
    name = NAMES.get(definition.name or "", definition.name)
    if name is None or (definition.when == "zero" and plan.spec.eps):
        return
    formula = definition.formula or definition.reduction
    if definition.when == "zero":
        if definition.value is None or "nan" in repr(definition.value):  # 0/0 is nan by itself
            return
        code = writer.call("where", condition=f"{name} == 0", y=writer.write(definition.value), x=name)
    elif name in given:
        code = given[name]
    elif formula is None:
        percent = plan.find_percents()[definition.name or ""]
        code = writer.reduce(_ENDS.get(percent, "quantile"), "x", percent / 100)
    else:
        code = writer.write(formula)
    yield from writer.pending
    writer.pending.clear()
    writer.defined.add(name)
    yield name, code
