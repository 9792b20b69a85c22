"""The lines of a norm by hand: its definitions, one after another, over whole arrays of a framework.

The statistics of all groups are calculated at once: a sum over a group is a sum over axes, which stay with
length 1.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from normcli.errors import UsageError
from normcli.teach.formulas.definitions import define_group, define_value
from normcli.teach.formulas.expression import (
    Absolute,
    Constant,
    LargestSingularValue,
    Maximum,
    Minimum,
    Power,
    Quotient,
    Root,
    Sign,
    Sum,
    Symbol,
)
from normcli.teach.formulas.printer import ATOM, OPEN, PYTHON, Form, Printer
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from normcli.codegen.arrays import Arrays
    from normcli.norms.plan import Plan
    from normcli.norms.spec import Iteration
    from normcli.teach.formulas.definitions import Definition

    Shape = tuple[int, ...]
    from collections.abc import Mapping

    from normcli.norms.grid import Reach
    from normcli.teach.formulas.expression import Expression, Fold, Operation


NAMES: Mapping[str, str] = {
    "x̂": "x_hat",
    "‖x‖": "norm",
    "√var": "std",
    "√ms": "rms",
    "Σx²": "squares",
    "min": "smallest",  # these two are functions of Python's own
    "max": "largest",
}
"""Name in a formula → name in code, where the two differ."""

_SIMPLE_POWER = re.compile(r"(-?[\w.]+) (\*\*) (-?[\w.]+)")
"""A power that formatters write without blanks."""

_CALLS: Mapping[type[Operation], str] = {Root: "sqrt", Absolute: "abs", Sign: "sign"}
_REDUCTIONS: Mapping[type, str] = {Sum: "sum", Maximum: "max", Minimum: "min"}


class Writer(Printer):
    """A writer of formulas as code of one framework, over arrays that hold all groups at once.

    Parameters
    ----------
    arrays : Arrays
    plan : Plan
        The plan; the code works on a tensor of the shape `Grid.view_shape`.

    Attributes
    ----------
    kept : tuple of int
        The shape of a statistic, with length 1 for reduced axes; for a window, the shape of the view.
    numbers : mapping of str to number
        The numbers of names in formulas that are constants: eps, n, options of the norm.
    defined : set of str
        The names that earlier lines have assigned.
    pending : list of (str, str)
        Names and code of assignments that must precede the next line.
    """

    square = None

    def __init__(self, arrays: Arrays, plan: Plan) -> None:
        self.arrays, self.axes, self.shape = arrays, plan.grid.view_axes, plan.grid.view_shape
        self.window, self.rows = plan.grid.reach, plan.spec.rows or ()
        self.others = tuple(axis for axis in range(len(self.shape)) if axis not in self.axes)
        reduced = self.axes if self.window is None else ()
        self.kept = tuple(1 if axis in reduced else length for axis, length in enumerate(self.shape))
        window = {} if plan.spec.window is None else plan.spec.window._asdict()
        numbers = {"n": plan.grid.group_size, "eps": plan.spec.eps, **window}
        self.numbers = {name: value for name, value in numbers.items() if value is not None}
        self.defined = {"x"}
        self.pending: list[tuple[str, str]] = []
        self.call = arrays.write
        calls = {kind: Form(arrays.write(name, x="{}"), (OPEN,), ATOM) for kind, name in _CALLS.items()}
        self.forms = {**PYTHON, **calls}

    def reduce(self, kind: str, x: str, part: float | None = None) -> str:
        """Return the code that reduces an array over each group.

        Parameters
        ----------
        kind : str
            A reduction of `Arrays.templates`.
        x : str
            The code of the array.
        part : float or None
            For a quantile, the share of values below it, from 0 to 1; else None.

        Raises
        ------
        UsageError
            If the framework has no such operation.
        """
        axes, shape = self.axes, self.shape
        if kind not in self.arrays.templates:
            raise UsageError(f"{self.arrays.title} has no operator for the {kind}s of a matrix")
        if not axes:  # each value is a group of its own; torch takes no axes for all of them
            return x
        size = math.prod(shape[axis] for axis in axes)
        place = (part or 0.0) * (size - 1)
        return self.call(
            kind,
            x=x,
            axes=write_axes(axes),
            axis_list=list(axes),
            last=write_axes(tuple(range(-len(axes), 0))),
            count=len(axes),
            kept=self.kept,
            order=(*self.others, *axes),
            flat=[*(shape[axis] for axis in self.others), size],
            size=size,
            **self.fill_matrices(),
            q=part,
            low=math.floor(place),
            high=math.ceil(place),
            rest=place % 1,
        )

    def fill_matrices(self) -> dict[str, tuple[int, ...]]:
        """Return `by_rows`, axes with rows and columns last, and `matrices`, their shape as rows × columns."""
        shape, rows = self.shape, self.rows
        columns = tuple(axis for axis in self.axes if axis not in rows)
        lengths = (math.prod(shape[axis] for axis in each) for each in (rows, columns))
        return {
            "by_rows": (*self.others, *rows, *columns),
            "matrices": (*(shape[axis] for axis in self.others), *lengths),
        }

    def format(self, expression: Expression) -> tuple[str, int]:
        """Return (code, precedence) of a formula, in which names have to be `defined` or constants."""
        match expression:
            case Quotient(Sum(terms=(), each=each), Symbol("n")) if each is not None:
                return self._reduce_written("mean", each)
            case LargestSingularValue(content):
                return self._reduce_written("singular value", content)
            case Power():
                text, held = super().format(expression)
                return _SIMPLE_POWER.sub(r"\1\2\3", text) if _SIMPLE_POWER.fullmatch(text) else text, held
        return super().format(expression)

    def format_symbol(self, symbol: Symbol) -> tuple[str, int]:
        """Return (code, precedence) of a name: the name itself if it is assigned, else its value."""
        name = NAMES.get(symbol.text, symbol.text)
        if name in self.defined:
            return name, ATOM
        if name in self.numbers:
            return self.format_number(Constant(self.numbers[name]))
        if symbol.value is None:
            raise NotImplementedError(symbol)
        return self.format(symbol.value)

    def format_fold(self, fold: Fold) -> tuple[str, int]:
        """Return (code, precedence) of a reduction, a sum of terms, or a maximum of an array and a number."""
        each, window = fold.each, self.window
        if fold.terms or each is None:
            if isinstance(fold, Maximum):
                x, y = map(self.write, fold.terms)
                return self.call("maximum", x=x, y=y), ATOM
            return super().format_fold(fold)
        if window is None:
            return self._reduce_written(_REDUCTIONS[type(fold)], each)
        if "squares" not in self.defined:
            self.pending += self._sum_window(self.write(each), window)
            self.defined.add("squares")
        return "squares", ATOM

    def _reduce_written(self, kind: str, each: Expression) -> tuple[str, int]:
        x, held = self.format(each)
        return self.reduce(kind, x), ATOM if self.axes else held

    def _sum_window(self, x: str, window: Reach) -> Iterator[tuple[str, str]]:
        """Yield (name, code) of two assignments: `padded`, and `squares`, the sum over each value's window.

        `x` is the code of a term. It is padded with 0 at both ends, so that the sum is one of shifted slices.
        """
        (axis,), shape = self.axes, self.shape
        widths = [(window.before, window.after) if i == axis else (0, 0) for i in range(len(shape))]
        flat = tuple(width for pair in reversed(widths) for width in pair)
        pads = [before for before, _ in widths] + [after for _, after in widths]
        yield "padded", self.call("pad", x=x, widths=widths, flat_widths=flat, pads=pads)
        count, length = window.before + window.after + 1, shape[axis]
        if "slice" not in self.arrays.templates:
            yield "squares", f"sum(padded[{':, ' * axis}i : i + {length}] for i in range({count}))"
            return
        starts = range(count)
        parts = [self.call("slice", x="padded", start=i, stop=i + length, axis=axis) for i in starts]
        yield "squares", self.call("add", terms=", ".join(parts))


def write_axes(axes: tuple[int, ...]) -> str:
    """Return axes as the code of an argument: a single axis as a number, several as a tuple."""
    return str(axes[0] if len(axes) == 1 else axes)


RUNNING = {"mean": "RUNNING_MEAN", "var": "RUNNING_VAR"}
"""Statistic → the constant that holds the running statistic in code."""

_ENDS = {0.0: "min", 100.0: "max"}
"""The quantiles, in per cent, that have a function of their own."""


_LEAST_LENGTH = 1e-12
"""The least divisor of a vector: the eps of torch, Flax and Equinox."""


class Statement(NamedTuple):
    """A statement of emitted code.

    Parameters
    ----------
    code : str
    note : str
        The comment after the code, such as the shape of its result; "" for none.
    depth : int
        The number of indents within the function.
    """

    code: str
    note: str = ""
    depth: int = 0


def write_by_hand(plan: Plan, arrays: Arrays, *, evaluation: bool) -> Iterator[Statement]:
    """Yield the statements from `x`, of the plan's shape, to `y`, with gamma and beta where they are given.

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
        name: writer.call("reshape", x=arrays.write("constant", x=constant), shape=shape)
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
    """Yield the statements of power iterations; the generator's return value is the code of the divisor.

    Raises `UsageError` if the framework has no operator for them.
    """
    if "turn" not in writer.arrays.templates:
        raise UsageError(f"{writer.arrays.title} has no operator for power iterations")
    matrices = writer.fill_matrices()
    turned = writer.call("turn", x="w")
    order, shape = matrices["by_rows"], matrices["matrices"]
    code = "x" if order == tuple(sorted(order)) else writer.call("transpose", x="x", order=order)
    yield Statement(f"w = {writer.call('reshape', x=code, shape=shape)}", str(shape))
    for name in ("u", "v"):
        if (vector := getattr(iteration, name)) is not None:
            constant = writer.call("constant", x=name.upper())
            shape = (len(vector), 1)
            yield Statement(f"{name} = {writer.call('reshape', x=constant, shape=shape)}", str(shape))
    products = [("v", f"{turned} @ u"), ("u", "w @ v")]
    if iteration.steps:
        yield Statement(f"for _ in range({iteration.steps}):")
    for name, product in products[:: 1 if iteration.start == "u" else -1] if iteration.steps else ():
        square = writer.call("sum", x=f"{name} * {name}", axes=-2)
        length = writer.call("maximum", x=writer.call("sqrt", x=square), y=_LEAST_LENGTH)
        yield Statement(f"{name} = {product}", "", 1)
        yield Statement(f"{name} = {name} / {length}", "", 1)
    return writer.call("reshape", x=f"({writer.call('turn', x='u')} @ w @ v)", shape=writer.kept)


def write_affine(plan: Plan, arrays: Arrays, shape: Shape, names: tuple[str, ...] = ()) -> Iterator[Statement]:
    """Yield the statements that scale and shift `y` by gamma and beta.

    Parameters
    ----------
    plan : Plan
    arrays : Arrays
    shape : tuple of int
        The shape to which gamma and beta are reshaped, so that they broadcast.
    names : tuple of str
        The parameters to apply; empty for all parameters of the norm.
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
            reshaped = arrays.write("reshape", x=name, shape=shape)
            yield Statement(f"{name} = {reshaped}", "", 1)
        yield Statement(f"y = y {sign} {text}", "", 1)


def _keep_needed(defined: list[tuple[str, str]], y: str) -> list[tuple[str, str]]:
    """Return the (name, code) pairs of `defined` that the code of `y` uses, directly or through each other."""
    needed: list[tuple[str, str]] = []
    for name, code in reversed(defined):
        if any(re.search(rf"\b{name}\b", later) for later in (*(later for _, later in needed), y)):
            needed.append((name, code))
    return needed[::-1]


def _define(
    definition: Definition, writer: Writer, plan: Plan, given: dict[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield (name, code) of the assignments for a definition; nothing if it has no name or changes nothing.

    Assigned names are added to `writer.defined`. `given` has, by name, code that is used instead of formulas.
    """
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
