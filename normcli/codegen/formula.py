"""A definition's formula over whole arrays, in the code of a framework.

Every group's statistic is calculated at once: a sum over a group is one over axes, which stay, of length 1.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from normcli.errors import UsageError
from normcli.teach.formulas.expression import (
    Absolute,
    Constant,
    Difference,
    Fold,
    LargestSingularValue,
    Maximum,
    Minimum,
    Negative,
    Power,
    Product,
    Quotient,
    Root,
    Sign,
    Sum,
    Symbol,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from normcli.codegen.arrays import Arrays
    from normcli.norms.grid import Reach
    from normcli.norms.plan import Plan
    from normcli.teach.formulas.expression import Expression

_SUM, _PRODUCT, _POWER, _ATOM = range(4)
"""The precedence of a text's operation: below the precedence of its place, it stands in brackets."""

NAMES: Mapping[str, str] = {
    "x̂": "x_hat",
    "‖x‖": "norm",
    "√var": "std",
    "√ms": "rms",
    "Σx²": "squares",
    "min": "smallest",  # these two are functions of Python's own
    "max": "largest",
}
"""What a formula calls a number → its name in code, where that is another."""

_BINARY: Mapping[type, tuple[str, int, int, int]] = {
    Difference: ("{} - {}", _SUM, _PRODUCT, _SUM),
    Product: ("{} * {}", _PRODUCT, _POWER, _PRODUCT),
    Quotient: ("{} / {}", _PRODUCT, _POWER, _PRODUCT),
    Power: ("{} ** {}", _ATOM, _ATOM, _POWER),
}
"""Operation → its template, how strongly its two parts have to hold together, and how strongly it does."""

_SIMPLE = re.compile(r"-?[\w.]+")
"""What stands beside `**` without blanks, as formatters have it."""

_CALLS: Mapping[type, str] = {Root: "sqrt", Absolute: "abs", Sign: "sign"}
_REDUCTIONS: Mapping[type, str] = {Sum: "sum", Maximum: "max", Minimum: "min"}


class Writer:
    """Writes formulas in the code of one framework.

    Parameters
    ----------
    arrays : Arrays
    plan : Plan
        Over the axes of whose view a group's statistics are taken, or over a window along the only one.

    Attributes
    ----------
    kept : tuple of int
        The shape of a statistic, with axes of length 1; for a window, that of the view.
    numbers : mapping of str to number
        The names of formulas that stand for a number: eps, n, options of the norm.
    defined : set of str
        The names that lines before have given a value.
    pending : list of (str, str)
        Names and their values that the next line needs first.
    """

    def __init__(self, arrays: Arrays, plan: Plan) -> None:
        self.arrays, self.axes, self.shape = arrays, plan.grid.view_axes, plan.grid.view_shape
        self.window, self.rows = plan.grid.reach, plan.spec.rows or ()
        reduced = self.axes if self.window is None else ()
        self.kept = tuple(1 if axis in reduced else length for axis, length in enumerate(self.shape))
        window = {} if plan.spec.window is None else plan.spec.window._asdict()
        numbers = {"n": plan.grid.group_size, "eps": plan.spec.eps, **window}
        self.numbers = {name: value for name, value in numbers.items() if value is not None}
        self.defined = {"x"}
        self.pending: list[tuple[str, str]] = []

    def write(self, expression: Expression) -> str:
        """Return the code of a formula of `x` and of the names that are `defined`."""
        return self._write(expression)[0]

    def call(self, name: str, **parts: object) -> str:
        """Return a call of one of the framework's functions."""
        return self.arrays.call[name].format(**parts)

    def reduce(self, kind: str, x: str, part: float | None = None) -> str:
        """Return a reduction of an array over every group at once."""
        axes, shape = self.axes, self.shape
        if kind not in self.arrays.reduce:
            raise UsageError(f"{self.arrays.title} has no operator for the {kind}s of a matrix")
        if not axes:  # each value is a group of its own; torch takes no axes for all of them
            return x
        others = tuple(axis for axis in range(len(shape)) if axis not in axes)
        size = math.prod(shape[axis] for axis in axes)
        place = (part or 0.0) * (size - 1)
        return self.arrays.reduce[kind].format(
            x=x,
            axes=write_axes(axes),
            axis_list=list(axes),
            last=write_axes(tuple(range(-len(axes), 0))),
            count=len(axes),
            kept=self.kept,
            order=(*others, *axes),
            flat=[*(shape[axis] for axis in others), size],
            size=size,
            **self.fill_matrices(),
            q=part,
            low=math.floor(place),
            high=math.ceil(place),
            rest=place % 1,
        )

    def fill_matrices(self) -> dict[str, tuple[int, ...]]:
        """Return the order of axes with rows and columns last, and the shape with one axis for each of them."""
        axes, shape, rows = self.axes, self.shape, self.rows
        others = tuple(axis for axis in range(len(shape)) if axis not in axes)
        columns = tuple(axis for axis in axes if axis not in rows)
        lengths = (math.prod(shape[axis] for axis in each) for each in (rows, columns))
        return {
            "by_rows": (*others, *rows, *columns),
            "matrices": (*(shape[axis] for axis in others), *lengths),
        }

    def _write(self, expression: Expression) -> tuple[str, int]:
        match expression:
            case Constant(value):
                return repr(value), _ATOM if value >= 0 else _SUM
            case Symbol():
                return self._write_symbol(expression)
            case Quotient(Sum(terms=(), each=each), Symbol("n")) if each is not None:
                return self._reduce_written("mean", each)
            case LargestSingularValue(content):
                return self._reduce_written("singular value", content)
            case Fold(terms=(), each=each) if each is not None:
                return self._write_reduction(expression, each)
            case Sum(terms=terms):
                return " + ".join(self._wrap(term, _SUM) for term in terms), _SUM
            case Maximum(terms=(x, y)):
                return self.call("maximum", x=self.write(x), y=self.write(y)), _ATOM
            case Negative(content):
                return f"-{self._wrap(content, _PRODUCT)}", _SUM
            case Root(content) | Absolute(content) | Sign(content):
                return self.call(_CALLS[type(expression)], x=self.write(content)), _ATOM
            case Difference(left, right) | Product(left, right) | Quotient(left, right) | Power(left, right):
                template, first, second, held = _BINARY[type(expression)]
                parts = self._wrap(left, first), self._wrap(right, second)
                hugs = isinstance(expression, Power) and all(_SIMPLE.fullmatch(part) for part in parts)
                return (template.replace(" ** ", "**") if hugs else template).format(*parts), held
        raise NotImplementedError(expression)

    def _write_symbol(self, symbol: Symbol) -> tuple[str, int]:
        name = NAMES.get(symbol.text, symbol.text)
        if name in self.defined:
            return name, _ATOM
        if name in self.numbers:
            return self._write(Constant(self.numbers[name]))
        if symbol.value is None:
            raise NotImplementedError(symbol)
        return self._write(symbol.value)

    def _write_reduction(self, fold: Fold, each: Expression) -> tuple[str, int]:
        window = self.window
        if window is None:
            return self._reduce_written(_REDUCTIONS[type(fold)], each)
        if "squares" not in self.defined:
            self.pending += self._sum_window(self.write(each), window)
            self.defined.add("squares")
        return "squares", _ATOM

    def _reduce_written(self, kind: str, each: Expression) -> tuple[str, int]:
        x, held = self._write(each)
        return self.reduce(kind, x), _ATOM if self.axes else held

    def _sum_window(self, x: str, window: Reach) -> Iterator[tuple[str, str]]:
        """Yield the lines that add up a window's terms, one slice for each offset, with 0 beyond the ends."""
        (axis,), shape = self.axes, self.shape
        widths = [(window.before, window.after) if i == axis else (0, 0) for i in range(len(shape))]
        flat = tuple(width for pair in reversed(widths) for width in pair)
        pads = [before for before, _ in widths] + [after for _, after in widths]
        yield "padded", self.call("pad", x=x, widths=widths, flat_widths=flat, pads=pads)
        count, length = window.before + window.after + 1, shape[axis]
        if "slice" not in self.arrays.call:
            yield "squares", f"sum(padded[{':, ' * axis}i : i + {length}] for i in range({count}))"
            return
        starts = range(count)
        parts = [self.call("slice", x="padded", start=i, stop=i + length, axis=axis) for i in starts]
        yield "squares", self.call("add", terms=", ".join(parts))

    def _wrap(self, expression: Expression, least: int) -> str:
        text, held = self._write(expression)
        return text if held >= least else f"({text})"


def write_axes(axes: tuple[int, ...]) -> str:
    """Return axes as an argument: one alone as a number."""
    return str(axes[0] if len(axes) == 1 else axes)
