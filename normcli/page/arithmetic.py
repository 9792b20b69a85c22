"""The steps of a norm on the page, and its arithmetic as the script has it: nested lists of operations."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.norms.divisors import ORDER_STATISTICS, Measurement
from normcli.norms.norm import format_subscript
from normcli.teach.formulas.definitions import combine, make_power, make_root
from normcli.teach.formulas.expression import Constant, Fold, Sum, Symbol
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

    from normcli.norms.plan import Plan
    from normcli.teach.formulas.definitions import Definition
    from normcli.teach.formulas.expression import Expression


Tree = Any
"""A number; a name; or a list of an operation and its operands."""


def describe_definitions(definitions: Iterable[Definition]) -> list[dict[str, Tree]]:
    """Return definitions as mappings, without empty members."""
    fields = (definition._replace(slope=None)._asdict().items() for definition in definitions)
    return [{name: describe_tree(part) for name, part in some if part} for some in fields]


def describe_tree(tree: Expression | str) -> Tree:
    """Return an expression as nested lists.

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


def subtract(statistic: str | None) -> Tree:
    """Return x less a statistic of its group, or x."""
    return "x" if statistic is None else ["difference", "x", statistic]


def find_deviation_from(plan: Plan) -> str | None:
    """Return the statistic from which deviations are measured, whether or not x is centred by it."""
    return plan.norm.divisor.statistics[0] if plan.norm.divisor.about_mean else None


def list_terms(plan: Plan) -> Tree | None:
    """Return the term whose sum over a group leads to its divisor; None for divisors without a sum."""
    match plan.norm.divisor.measurement:
        case Measurement.MOMENTS | Measurement.WINDOW:
            return ["power", subtract(find_deviation_from(plan)), 2]
        case Measurement.LENGTH if plan.spec.p and math.isfinite(plan.spec.p):
            return describe_tree(make_power(Symbol("x"), plan.spec.p))
        case _:
            return None


def build_statistics(plan: Plan) -> Iterator[tuple[str, Tree]]:
    """Yield each statistic of a group of known values, in an order in which each follows from those before.

    The inverse of the divisor comes last: `define_group` makes it of the others.
    """
    row, terms = plan.norm.divisor, ["series", None, list_terms(plan)]
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
            yield row.statistics[0], _measure_length(plan)
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
    """Return of each value of a group, in order, in which row of its matrix it lies."""
    axes, rows = plan.grid.view_axes, plan.spec.rows or ()
    lengths = [plan.grid.view_shape[axis] for axis in axes]
    own = [length if axis in rows else 1 for axis, length in zip(axes, lengths, strict=True)]
    numbers = np.arange(math.prod(own)).reshape(own)
    listed: list[int] = np.broadcast_to(numbers, lengths).reshape(-1).tolist()
    return listed


def _measure_length(plan: Plan) -> Tree:
    p = plan.spec.p or 0.0
    if not p:
        return ["series", None, ["sign", ["absolute", "x"]]]
    if math.isinf(p):
        return ["quantile", float(p > 0), ["absolute", "x"]]
    return describe_tree(make_root(Sum((), each=make_power(Symbol("x"), p)), p))


class PageStep(NamedTuple):
    """One step of a norm on the page.

    Parameters
    ----------
    name : str
        The label of its button.
    head : str
        The heading above the cells.
    show : Tree
        The number in a value's cell, calculated from its group's statistics, `x`, `x̂` and `y`.
    marks : tuple of str
        The statistics that this step calculates.
    """

    name: str
    head: str
    show: Tree
    marks: tuple[str, ...] = ()


_DIVIDE, _AFFINE = "divide", "gamma, beta"


def list_steps(plan: Plan) -> Iterator[PageStep]:
    """Yield the steps from x to y; the last is there where the norm has parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from normcli.norms.plan import make_plan
    >>> from normcli.norms.request import Request
    >>> [step.name for step in list_steps(make_plan(Request("bn"), (2, 3), np.dtype("f8")))]
    ['group', 'mean', 'minus mean', 'variance', 'divide', 'gamma, beta']
    """
    row, centre = plan.norm.divisor, plan.norm.centre.statistic
    centring: set[str] = set()
    yield PageStep("group", "x", "x")
    if centre is not None:
        centring = {centre}
        yield PageStep(centre, centre, centre, (centre,))
        yield PageStep(f"minus {centre}", f"x − {centre}", subtract(centre))
    if row.divides:
        yield from _list_divisions(plan, centring)
    if plan.norm.parameter_names:
        yield PageStep(_AFFINE, "x̂", "x̂")


def _list_divisions(plan: Plan, centring: set[str]) -> Iterator[PageStep]:
    """Yield the steps of what divides; `centring` are the statistics that were there before."""
    row, terms = plan.norm.divisor, list_terms(plan)
    made = tuple(name for name in row.statistics if name not in {*centring, "rstd"})
    head = row.spread or row.size if terms is None else _name_terms(plan)
    yield PageStep(row.size, head, row.spread if terms is None else terms, made)
    yield PageStep(_DIVIDE, "x̂", "x̂", ("rstd",))


def _name_terms(plan: Plan) -> str:
    centre, p = find_deviation_from(plan), plan.spec.p
    if plan.norm.divisor.measurement is Measurement.LENGTH and p != 2:
        return "|x|" if p == 1 else f"|x|^{p:g}"
    return "x²" if centre is None else f"(x − {centre})²"


def mark_formula(plan: Plan, given: Container[str]) -> list[tuple[str, list[str]]]:
    """Return the definition in pieces, each with the names of the steps that it belongs to.

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
    numerator, _, divisor = plan.formula.partition(" / ")
    centre, size = plan.norm.centre.statistic, plan.norm.divisor.size
    before, x, behind = numerator.partition("x")
    minus = [f"minus {centre}"]
    pieces = [(before, minus), (x, ["group", *minus])]
    if centre is not None:
        middle = behind.removeprefix(" − ").removesuffix(")")
        sign, middle, end = behind.partition(middle)
        pieces += [(sign, minus), (middle, [centre, *minus]), (end, minus)]
    if divisor:
        before, measured, behind = divisor.partition(_find_measured(plan, divisor))
        pieces += [(f" / {before}", [_DIVIDE]), (measured, [size, _DIVIDE]), (behind, [_DIVIDE])]
    offset = plan.spec.gamma_offset
    if "gamma" in given:
        pieces.insert(0, (f"({offset} + gamma) · " if offset else "gamma · ", [_AFFINE]))
    if "beta" in given:
        pieces.append((" + beta", [_AFFINE]))
    return [(text, steps) for text, steps in pieces if text]


def _find_measured(plan: Plan, divisor: str) -> str:
    """Return the part of a divisor's text that is measured of the group: all but eps."""
    row = plan.norm.divisor
    root = row.root.replace("ₚ", format_subscript(plan.norm.p))
    return next((part for part in (row.square, root) if part and part in divisor), divisor)
