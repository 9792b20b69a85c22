"""Where a framework's own result would be another than that of its convention: it is said, and not followed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from normcli.dtypes import get_eps, get_largest, is_float, is_half, is_short_float
from normcli.norms.conventions import find_convention
from normcli.norms.table import ShortRule, SingleRule
from normcli.results.degenerate import Degeneracy

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from normcli.dtypes import Floats, Selected
    from normcli.norms.conventions import Convention
    from normcli.norms.plan import Plan

_KIND = "departure"

_LOST = 2.0**-10
"""The part of a variance that rounding errors of one pass may be before it is said."""


def find_departures(plan: Plan, statistics: Mapping[str, Floats]) -> tuple[Degeneracy, ...]:
    """Return where the framework that is followed gives another result, or none.

    Parameters
    ----------
    plan : Plan
    statistics : mapping of str to ndarray
        Each group's own, of `Grid.stats_shape`.
    """
    if plan.spec.like is None or not plan.grid.group_count:
        return ()
    convention = find_convention(plan.spec.like, plan.norm.name)
    with np.errstate(all="ignore"):
        return (
            *_find_refusal(plan, convention),
            *_find_one_pass(plan, convention, statistics),
            *_find_overflow(plan, convention, statistics),
        )


def _find_refusal(plan: Plan, convention: Convention) -> Iterator[Degeneracy]:
    rule = convention.refuses_one
    grid = plan.grid.running if rule is SingleRule.IN_BATCH else plan.grid
    if rule is not None and grid.group_size == 1:
        sentence = (
            f"{convention.framework} refuses to train on one value {rule.value}: here is the definition's"
        )
        yield Degeneracy(_KIND, None, plan.grid.group_count, sentence)


def _find_one_pass(
    plan: Plan, convention: Convention, statistics: Mapping[str, Floats]
) -> Iterator[Degeneracy]:
    if not convention.one_pass:
        return
    dtype = np.dtype(np.float32 if is_short_float(plan.tensor_dtype) else np.float64)
    lost = get_eps(dtype) / 2.0 * (statistics["mean"] * statistics["rstd"]) ** 2
    yield from _describe(
        plan,
        np.isfinite(lost) & (lost > _LOST),
        f"lies far from zero: {convention.framework} takes its variance as E[x²] − E[x]², which {dtype} has no "
        "digits for; this is the exact one",
    )


def _find_overflow(
    plan: Plan, convention: Convention, statistics: Mapping[str, Floats]
) -> Iterator[Degeneracy]:
    dtype = plan.tensor_dtype
    if convention.short is None or not is_float(dtype) or not is_half(dtype):
        return
    what, size = plan.norm.divisor.size, statistics[plan.norm.divisor.spread or ""]
    if convention.short is ShortRule.SQUARE:
        what, size = f"square of its {what}", size**2
    sentence = f"has a {what} beyond {dtype}, in which {convention.framework} gives 0; this is the exact result"
    yield from _describe(plan, np.isfinite(size) & (size > get_largest(dtype.name)), sentence)


def _describe(plan: Plan, chosen: Selected, sentence: str) -> Iterator[Degeneracy]:
    numbers = np.flatnonzero(chosen)
    if numbers.size:
        yield Degeneracy(_KIND, plan.grid.group_name(int(numbers[0])), numbers.size, sentence)
