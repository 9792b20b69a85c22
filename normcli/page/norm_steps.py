"""The steps of a norm on the page: the numbers in the cells, and the part of the formula, of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from normcli.norms.divisors import Measurement
from normcli.norms.norm import format_subscript
from normcli.page.trees import find_deviation_from, list_terms, subtract
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from normcli.norms.plan import Plan
    from normcli.page.trees import Tree


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
