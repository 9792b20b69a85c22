"""Norms that are equal on a tensor, with the reason and the remaining differences in words.

Two norms are called equal if their plans say so and their results on the tensor confirm it.
"""

from __future__ import annotations

import enum
import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import get_eps, is_short_float
from normcli.engine.inputs import Inputs
from normcli.norms.rules import Centre, EpsMode, ParameterRule, ZeroRule
from normcli.results.calculate import calculate
from normcli.teach.compared_norm import Member, find_formula, find_relatives
from normcli.tensors.pieces import iterate_pieces
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.norms.plan import Plan
    from normcli.results.result import Result


_ROUNDINGS = 4
"""Units in the last place by which two float64 results of one formula may differ."""


PARAMETERS = ("gamma", "beta")
"""The parameters that are applied to x̂, in order."""


class Likeness(enum.StrEnum):
    """The likeness of two norms: x̂ is equal for every tensor or on one, or only their groups are."""

    IDENTICAL = "identical"
    COINCIDENT = "coincident"
    SIMILAR = "similar"


class Equality(NamedTuple):
    """Two norms that have equal x̂, or the same groups and formula with another eps or ddof.

    Parameters
    ----------
    names : tuple of str
        The two norms, as a command line names them.
    kind : Likeness
        `identical`: x̂ is equal for every tensor of this shape, as groups and formula are the same;
        `coincident`: x̂ is equal on this tensor; `similar`: the same groups, but another eps or ddof.
    reason : str
        Why they are equal, or what else is the same, in words.
    differences : tuple of str
        Differences other than x̂, in words, such as gamma's shape or the rstd of a constant group.
    max_abs : float
        The largest difference of x̂ on this tensor.
    related : bool
        Whether the user did not name the second norm.
    before : tuple of str
        The parameters that either norm was given: x̂ is compared before they are applied.
    """

    names: tuple[str, str]
    kind: Likeness
    reason: str
    differences: tuple[str, ...]
    max_abs: float
    related: bool = False
    before: tuple[str, ...] = ()


def find_equalities(members: Sequence[Member], layout: str | None = None) -> tuple[Equality, ...]:
    """Return the pairs of compared norms that are equal on their tensor, then pairs with other norms.

    The other norms are those of the table that the user did not name and that equal a compared norm.

    Parameters
    ----------
    members : sequence of Member
        Norms of one tensor.
    layout : str or None
        The layout that the user chose for all norms; None for the default of the tensor's rank.

    Returns
    -------
    tuple of Equality
        Empty for a tensor without values.
    """
    if not members or not members[0].result.input.size:
        return ()
    among = itertools.starmap(_compare, itertools.combinations(members, 2))
    return (*filter(None, among), *_compare_with_relatives(members, layout))


def _compare_with_relatives(members: Sequence[Member], layout: str | None) -> Iterator[Equality]:
    """Yield the equalities of the compared norms with other norms of the table, which the user did not name.

    If several of the compared norms are equal, only the first of them is looked at. Norms with running
    statistics are passed over.
    """
    for number, member in enumerate(members):
        if member.evaluates or any(member.is_same(earlier) for earlier in members[:number]):
            continue
        same = (other.plan for other in members if member.is_same(other))
        known = [(plan.norm, plan.grid.canonical) for plan in same]
        for name, plan in find_relatives(member.plan, layout):
            if plan.norm.tracks and any(other.evaluates for other in members):
                continue  # it would be evaluated too
            own = (plan.norm, plan.grid.canonical)
            if own in known:
                continue
            known.append(own)
            x, effort = member.result.input, member.result.effort
            inputs = Inputs(selection=member.result.selection)
            result = calculate(plan.change_spec(dtype=member.plan.spec.dtype), x, inputs, effort=effort)
            found = _compare(member, Member(name, result))
            if found is not None and found.kind is Likeness.IDENTICAL:
                yield found._replace(related=True)


def _compare(a: Member, b: Member) -> Equality | None:
    """Return the equality of two norms, measured on their tensor; None if they are not even similar.

    They are similar if they have the same groups, centre and divisor, but another eps or ddof.
    """
    apart, windowed = _measure(a.result.standardized, b.result.standardized), a.plan.grid.reach is not None
    if a.is_same(b) and apart.rounding:
        kind, reason = Likeness.IDENTICAL, explain_sameness(a, b)
    elif apart.equal:
        kind, reason = Likeness.COINCIDENT, f"on this tensor, {explain_coincidence(a, b)}"
    elif a.evaluates is b.evaluates and a.has_same_groups(b) and a.has_same_quotient(b) and not windowed:
        kind, reason = Likeness.SIMILAR, f"the same groups, but {'; '.join(list_options(a, b))}"
    else:
        return None
    given = a.result.inputs.parameters | b.result.inputs.parameters
    before = tuple(name for name in PARAMETERS if name in given)
    differences = tuple(list_differences(a, b))
    return Equality((a.name, b.name), kind, reason, differences, apart.max_abs, before=before)


class _Distance(NamedTuple):
    """The distance of two tensors.

    Parameters
    ----------
    max_abs : float
        The largest difference; infinite where one is NaN and the other is not.
    rounding : bool
        Whether every difference is at most `_ROUNDINGS` · ε · the larger value, or for float32 and half
        precision 1 · ε; ε is the dtype's machine epsilon.
    equal : bool
        Whether all values are equal, NaN to NaN; in float64, whether they are equal up to rounding.
    """

    max_abs: float
    rounding: bool
    equal: bool


def _measure(a: NDArray[Any], b: NDArray[Any]) -> _Distance:
    """Return the distance of two tensors of one shape and dtype; two NaN at one index count as equal."""
    short = is_short_float(a.dtype)
    most = get_eps(a.dtype) * (1 if short else _ROUNDINGS)
    largest, rounding = 0.0, True
    for left, right in zip(iterate_pieces(a), iterate_pieces(b), strict=True):
        with np.errstate(all="ignore"):
            one, other = left.astype(np.float64), right.astype(np.float64)
            alike = (one == other) | (np.isnan(one) & np.isnan(other))
            gap = np.where(alike, 0.0, np.abs(one - other))
            gap[np.isnan(gap)] = np.inf
            largest = max(largest, float(gap.max(initial=0.0)))
            limit = most * np.maximum(np.abs(one), np.abs(other))
            rounding = rounding and bool((alike | (gap <= limit) & np.isfinite(gap)).all())
    return _Distance(largest, rounding, largest == 0.0 if short else rounding)


def explain_sameness(a: Member, b: Member) -> str:
    """Return the reason, in words, why two norms have equal x̂ for every tensor."""
    if a.evaluates:
        return "both are evaluated with the same running statistics, and measure nothing"
    return _explain_groups(a.plan, b.plan)


def _explain_groups(a: Plan, b: Plan) -> str:
    """Return the reason, in words, why two plans have equal groups although axes or options may differ."""
    if a.spec.window is not None:
        return "the same window"
    names, grid = a.grid.layout.names, a.grid.canonical
    split = grid.split.axis if grid.split is not None else None
    over = [f"{names[axis]}/{grid.groups}" if axis == split else names[axis] for axis in grid.axes]
    parts = [f"both reduce {' '.join(over)}" if over else "in both each value is a group of its own"]
    for axis, name in enumerate(names):
        if _find_role(a, axis) == _find_role(b, axis):
            continue
        if a.grid.shape[axis] == 1:
            parts.append(f"{name} has length 1, so reducing it changes nothing")
            continue
        for groups in (plan.grid.groups for plan in (a, b) if _find_role(plan, axis) == "split"):
            of = "one group of all channels" if groups == 1 else "a group for each channel"
            parts.append(f"groups={groups} makes {of}")
    return f"the same groups: {'; '.join(dict.fromkeys(parts))}"


def _find_role(plan: Plan, axis: int) -> str:
    """Return the role of an axis of the tensor: `split`, `reduced` or `kept`."""
    if plan.grid.split is not None and axis == plan.grid.split.axis:
        return "split"
    return "reduced" if axis in plan.grid.axes else "kept"


def list_options(a: Member, b: Member) -> Iterator[str]:
    """Yield the differences of eps, of ddof and of the rule for a divisor of 0, in words."""
    one, other = find_formula(a.plan), find_formula(b.plan)
    if (one.eps, one.eps_mode) != (other.eps, other.eps_mode):
        yield f"{_format_eps(a.plan)} against {_format_eps(b.plan)}"
    if one.ddof != other.ddof:
        yield _explain_ddof(a, b)
    if one.makes_nan != other.makes_nan:
        yield f"{a.name if one.makes_nan else b.name} makes NaN of a constant group"


def _explain_ddof(a: Member, b: Member) -> str:
    """Return the effect of two different ddof in words, with the factor between the two x̂.

    The factor is √((n − ddof of b) / (n − ddof of a)) for groups of n values.
    """
    count, ddofs = a.plan.grid.group_size, (a.plan.spec.ddof, b.plan.spec.ddof)
    against = f"ddof {ddofs[0]} against {ddofs[1]}"
    if count <= max(ddofs):
        return f"{against}, which leaves a group of {count} no variance"
    factor = math.sqrt((count - ddofs[1]) / (count - ddofs[0]))
    own, others = (f"({count} − {ddof})" if ddof else str(count) for ddof in ddofs)
    near = " except for eps" if a.plan.spec.eps or b.plan.spec.eps else ""
    return f"{against}: {b.name} is √({others}/{own}) = {factor:.6g} times {a.name}{near}"


def _format_eps(plan: Plan) -> str:
    eps, mode = plan.spec.eps, plan.spec.eps_mode
    if eps is None:
        return "no eps"
    place = f" {mode} the root" if mode in (EpsMode.INSIDE, EpsMode.OUTSIDE) else " as a floor"
    return f"eps {eps:g}{place if eps else ''}"


def explain_coincidence(a: Member, b: Member) -> str:
    """Return the reason, in words, why two different norms have equal x̂ on one tensor."""
    if _is_zero(a.result.input):
        return "whose values are all 0"
    if a.evaluates is not b.evaluates:
        return "whose own statistics are those that were given"
    if not a.has_same_groups(b):
        return f"whose different groups {_explain_different_groups(a.result, b.result)}"
    windowed = a.plan.grid.reach is not None
    if a.plan.grid.group_size == 1 and not windowed:
        return "whose groups have one value each"
    centres = {member.plan.norm.centre: member.result for member in (a, b)}
    if centres.keys() == {Centre.MEAN, Centre.NOTHING} and not centres[Centre.MEAN].mean.any():
        return "where every group's mean is 0 and there is nothing to subtract"
    if a.has_same_quotient(b) and not windowed:
        options = "; ".join(list_options(a, b))
        return f"where the same groups with {options} come to the same after rounding"
    return "where the same groups come to the same numbers"


def _explain_different_groups(a: Result, b: Result) -> str:
    shared = [name for name in a.statistics if name in b.statistics and name != "rstd"]
    first = {name: a.statistics[name].flat[0] for name in shared}
    if shared and all((result.statistics[n] == first[n]).all() for result in (a, b) for n in shared):
        return f"all have the same {' and '.join(shared[:2])}"
    return "come to the same numbers"


def _is_zero(values: NDArray[Any]) -> bool:
    """Whether all values are 0."""
    with np.errstate(invalid="ignore"):  # a signalling NaN is one like any other
        return not any(piece.any() for piece in iterate_pieces(values))


def list_differences(a: Member, b: Member) -> Iterator[str]:
    """Yield differences of two norms other than x̂: the affine step, and the rstd of a constant group."""
    described = zip(*(_describe_parameters(member.plan) for member in (a, b)), strict=True)
    yield from [f"{what}, {one} against {other}" for (what, one), (_, other) in described if one != other][:1]
    if a.plan.norm.parameter_names and b.plan.norm.parameter_names:
        for member, against in ((a, b), (b, a)):
            spec = member.plan.spec
            if spec.gamma_offset > against.plan.spec.gamma_offset:
                yield f"gamma, to which {member.name} adds {spec.gamma_offset}"
            if spec.rounds_before_gamma and not against.plan.spec.rounds_before_gamma:
                yield f"rounding, which {member.name} does before gamma too"
    ones = [m.name for m in (a, b) if m.plan.spec.zero_rule is ZeroRule.ONE and not m.plan.spec.eps]
    if len(ones) == 1:
        yield f"the rstd of a constant group, which is 1 for {ones[0]}"


def _describe_parameters(plan: Plan) -> tuple[tuple[str, str], ...]:
    """Return pairs (property, value) on gamma and beta: shape in letters, in numbers, axes, names.

    A difference of two norms is told by the first pair in which they differ.
    """
    names, shape = plan.norm.parameter_names, plan.parameters.shape
    wide = [str(axis) for axis in plan.parameters.axes if names and plan.grid.shape[axis] > 1]
    return (
        ("gamma's shape", format_parameters(plan)),
        ("gamma's shape", str(shape)),
        ("gamma's axis", " ".join(wide)),
        ("parameters", " and ".join(names)),
    )


def format_parameters(plan: Plan) -> str:
    """Return the shape of gamma and beta by the letters of its axes, `(C, H, W)`, or by their lengths.

    Lengths stand for axes without letters. It is `none` for a norm without gamma and beta, and `(G)` for one
    with a gamma for each channel group.

    Examples
    --------
    >>> from normcli.norms.plan import make_plan
    >>> from normcli.norms.request import Request
    >>> format_parameters(make_plan(Request("ln", axes="CHW"), (2, 3, 4, 4), np.dtype("f8")))
    '(C, H, W)'
    """
    if not plan.norm.parameter_names:
        return "none"
    if plan.parameters.rule is ParameterRule.GROUP:
        return str(plan.parameters.rule.value)
    letters = plan.grid.layout.letters
    names = [str(plan.grid.shape[axis]) if letters is None else letters[axis] for axis in plan.parameters.axes]
    return f"({', '.join(names)})"
