"""The steps of a norm on the page, and its arithmetic in the form that the script reads: nested lists."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.norms.divisors import ORDER_STATISTICS, Measurement
from normcli.teach.formulas.definitions import combine, make_power, make_root
from normcli.teach.formulas.expression import Constant, Difference, Fold, Power, Sum, Symbol
from normcli.teach.formulas.printer import Printer
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

    from normcli.norms.plan import Plan
    from normcli.teach.formulas.definitions import Definition
    from normcli.teach.formulas.expression import Expression


_X = Symbol("x")

Tree = Any
"""A number; a name; or a list of an operation and its operands."""


def describe_definitions(definitions: Iterable[Definition]) -> list[dict[str, Tree]]:
    """Return definitions as JSON objects: their fields by name, without empty ones and without derivatives."""
    fields = (definition._replace(slope=None)._asdict().items() for definition in definitions)
    return [{name: describe_tree(part) for name, part in some if part} for some in fields]


def describe_tree(tree: Expression | str) -> Tree:
    """Return an expression as nested lists, `[operation, operand, …]`; a string is returned unchanged.

    Examples
    --------
    >>> describe_tree(Sum((Symbol("var"), Symbol("eps"))))
    ['sum', 'var', 'eps']
    """
    match tree:
        case str():
            return tree
        case Constant(value):
            return value
        case Symbol(text, value=value):
            return text if value is None else ["worked", describe_tree(value), text]
        case Fold(total=total, each=each) if each is not None:
            return ["series", None if total is None else describe_tree(total), describe_tree(each)]
        case _:
            return [type(tree).__name__.lower(), *map(describe_tree, tree.parts)]


def list_terms(plan: Plan) -> Expression | None:
    """Return the term that the divisor sums over a group: (x − mean)², x² or |x|ᵖ; None for other divisors."""
    row, p = plan.norm.divisor, plan.spec.p
    match row.measurement:
        case Measurement.MOMENTS | Measurement.WINDOW:
            return Power(Difference(_X, Symbol(row.statistics[0])) if row.about_mean else _X, Constant(2))
        case Measurement.LENGTH if p and math.isfinite(p):
            return make_power(_X, p)
        case _:
            return None


def build_statistics(plan: Plan) -> Iterator[tuple[str, Tree]]:
    """Yield (name, arithmetic) for each statistic of a group; the arithmetic is nested lists.

    Names in it are `x` for the group's values, `n` for their number, and statistics that were yielded before;
    `rstd`, which comes last, is made of `divisor` (see `define_group`).
    """
    row, each = plan.norm.divisor, list_terms(plan)
    terms = None if each is None else describe_tree(Sum((), None, each))
    match row.measurement:
        case Measurement.MOMENTS:
            if row.about_mean:
                yield row.statistics[0], ["quotient", ["series", None, "x"], "n"]
            yield row.square, ["quotient", terms, ["difference", "n", plan.spec.ddof]]
            if row.spread is not None:
                yield row.spread, ["root", row.square]
        case Measurement.WINDOW:
            yield row.statistics[0], ["quotient", terms, "size"]
        case Measurement.LENGTH:
            p = plan.spec.p or 0.0
            if each is not None:
                yield row.statistics[0], describe_tree(make_root(Sum((), None, each), p))
            elif p:
                yield row.statistics[0], ["quantile", float(p > 0), ["absolute", "x"]]
            else:
                yield row.statistics[0], ["series", None, ["sign", ["absolute", "x"]]]
        case Measurement.SINGULAR_VALUE:
            iteration = plan.spec.iteration
            estimate: Tree = [] if iteration is None else list(iteration)
            yield row.statistics[0], ["singular", _number_rows(plan), "x", *estimate]
        case Measurement.EXTREMES | Measurement.QUANTILES:
            percents = plan.find_percents()
            for statistic in map(ORDER_STATISTICS.__getitem__, row.statistics):
                if (made := statistic.combination) is None:
                    yield statistic.name, ["quantile", percents[statistic.name] / 100, "x"]
                else:
                    yield statistic.name, describe_tree(combine(made, Symbol(made.left), Symbol(made.right)))
    if "rstd" in row.statistics:
        yield "rstd", ["quotient", 1, "divisor"]


def _number_rows(plan: Plan) -> list[int]:
    """Return, for each value of a group in C order, the number of its row in the matrix of spectral norm."""
    axes, rows = plan.grid.view_axes, plan.spec.rows or ()
    lengths = [plan.grid.view_shape[axis] for axis in axes]
    own = [length if axis in rows else 1 for axis, length in zip(axes, lengths, strict=True)]
    numbers = np.arange(math.prod(own)).reshape(own)
    listed: list[int] = np.broadcast_to(numbers, lengths).reshape(-1).tolist()
    return listed


class PageStep(NamedTuple):
    """One step of a norm on the page.

    Parameters
    ----------
    name : str
        The label of its button.
    head : str
        The heading above the cells.
    show : Tree
        The arithmetic of the number that is shown in a value's cell, in terms of `x`, `x̂`, `y` and the
        statistics of its group.
    marks : tuple of str
        The statistics that this step calculates, which are highlighted.
    """

    name: str
    head: str
    show: Tree
    marks: tuple[str, ...] = ()


_DIVIDE, _AFFINE = "divide", "gamma, beta"


def list_steps(plan: Plan) -> Iterator[PageStep]:
    """Yield the steps from x to y; the last one, `gamma, beta`, only if the norm has parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from normcli.norms.plan import make_plan
    >>> from normcli.norms.request import Request
    >>> [step.name for step in list_steps(make_plan(Request("bn"), (2, 3), np.dtype("f8")))]
    ['group', 'mean', 'minus mean', 'variance', 'divide', 'gamma, beta']
    """
    row, centre, terms = plan.norm.divisor, plan.norm.centre.statistic, list_terms(plan)
    yield PageStep("group", "x", "x")
    if centre is not None:
        yield PageStep(centre, centre, centre, (centre,))
        yield PageStep(f"minus {centre}", f"x − {centre}", ["difference", "x", centre])
    if row.divides:
        made = tuple(name for name in row.statistics if name not in {centre, "rstd"})
        head = row.spread or row.size if terms is None else Printer().write(terms)
        yield PageStep(row.size, head, row.spread if terms is None else describe_tree(terms), made)
        yield PageStep(_DIVIDE, "x̂", "x̂", ("rstd",))
    if plan.norm.parameter_names:
        yield PageStep(_AFFINE, "x̂", "x̂")


def mark_formula(plan: Plan, given: Container[str]) -> list[tuple[str, list[str]]]:
    """Return the norm's formula in pieces, as pairs (text, names of the steps that highlight the text).

    Parameters
    ----------
    plan : Plan
    given : container of str
        `gamma`, `beta`, both or none: the parameters that the formula has.

    Examples
    --------
    >>> import numpy as np
    >>> from normcli.norms.plan import make_plan
    >>> from normcli.norms.request import Request
    >>> plan = make_plan(Request("rms"), (2, 3), np.dtype("f8"))
    >>> [text for text, _ in mark_formula(plan, {"gamma"})]
    ['gamma · ', 'x', ' / √(', 'ms', ' + eps)']
    """
    centre, size = plan.norm.centre.statistic, plan.norm.divisor.size
    minus = [f"minus {centre}"]
    steps = (
        *(minus, ["group", *minus], minus, [f"{centre}", *minus], minus),
        *([_DIVIDE], [size, _DIVIDE], [_DIVIDE]),
    )
    pieces = list(zip(plan.formula_pieces, steps, strict=False))
    offset = plan.spec.gamma_offset
    if "gamma" in given:
        pieces.insert(0, (f"({offset} + gamma) · " if offset else "gamma · ", [_AFFINE]))
    if "beta" in given:
        pieces.append((" + beta", [_AFFINE]))
    return [(text, steps) for text, steps in pieces if text]
