"""Norms that are equal on a tensor, the reason, and the options that still tell them apart.

Whether two norms are the same is read off their plans, and then confirmed by the numbers: nothing is claimed
that the numbers do not show.
"""

from __future__ import annotations

import enum
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import get_eps, is_short_float
from normcli.engine.inputs import Inputs
from normcli.results.calculate import calculate
from normcli.teach.compare.compared_norm import Member
from normcli.teach.compare.relatives import find_relatives
from normcli.teach.compare.sameness_reasons import (
    explain_coincidence,
    explain_sameness,
    list_differences,
    list_options,
)
from normcli.tensors.pieces import iterate_pieces
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

_ROUNDINGS = 4
"""Units in the last place by which two float64 results of one formula may differ."""


PARAMETERS = ("gamma", "beta")
"""The parameters behind x̂, in the order in which they are applied."""


class Likeness(enum.StrEnum):
    """The likeness of two norms."""

    IDENTICAL = "identical"
    COINCIDENT = "coincident"
    SIMILAR = "similar"


class Equality(NamedTuple):
    """Two norms that give equal x̂, or would with one more option equal.

    Parameters
    ----------
    names : tuple of str
        The two norms, as a command line names them.
    kind : Likeness
        `identical`: the same groups and the same formula, so for every tensor of this shape; `coincident`: the
        numbers of this tensor are the same; `similar`: the same groups, but another eps or ddof.
    reason : str
    differences : tuple of str
        How the norms differ elsewhere: gamma's shape, the rstd of a constant group.
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
    """Return which norms are equal on their tensor, pair by pair; then equal norms that the user did not name.

    Parameters
    ----------
    members : sequence of Member
        Norms of one tensor.
    layout : str or None
        The layout that `find_relatives` takes.

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
    """Yield the relatives of each norm, of two equal norms only those of the first."""
    for number, member in enumerate(members):
        if member.evaluates or any(member.is_same(earlier) for earlier in members[:number]):
            continue
        same = (other.plan for other in members if member.is_same(other))
        known = [(plan.norm, plan.grid.canonical) for plan in same]
        for relative in find_relatives(member.plan, layout):
            if relative.plan.norm.tracks and any(other.evaluates for other in members):
                continue  # it would be evaluated too
            own = (relative.plan.norm, relative.plan.grid.canonical)
            if own in known:
                continue
            known.append(own)
            plan, x, effort = relative.plan, member.result.input, member.result.effort
            inputs = Inputs(selection=member.result.selection)
            result = calculate(plan.change_spec(dtype=member.plan.spec.dtype), x, inputs, effort=effort)
            found = _compare(member, Member(relative.name, result))
            if found is not None and found.kind is Likeness.IDENTICAL:
                yield found._replace(related=True)


def _compare(a: Member, b: Member) -> Equality | None:
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


class _Apart(NamedTuple):
    """The distance of two tensors.

    Parameters
    ----------
    max_abs : float
        The largest difference; infinite where one is NaN and the other is not.
    rounding : bool
        Whether rounding explains every difference.
    equal : bool
        Whether all values are equal; in float64, equal up to rounding.
    """

    max_abs: float
    rounding: bool
    equal: bool


def _measure(a: NDArray[Any], b: NDArray[Any]) -> _Apart:
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
    return _Apart(largest, rounding, largest == 0.0 if short else rounding)
