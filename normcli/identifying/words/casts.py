"""Where a kernel of half precision rounds: once, before gamma or after each step. The bits alone show it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import is_half
from normcli.engine.inputs import NO_INPUTS
from normcli.engine.run import run
from normcli.identifying.question import Kind
from normcli.identifying.search.affine import AffineStep
from normcli.identifying.search.groups import take_groups, widen
from normcli.identifying.search.hypothesis import measure_equality
from normcli.identifying.search.match import BY_LUCK
from normcli.identifying.words.diagnosis import Diagnosis
from normcli.identifying.words.match_words import format_share
from normcli.norms.conventions import find_convention, list_frameworks
from normcli.norms.grid import Grid
from normcli.norms.layout import Layout
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.engine.inputs import Inputs
    from normcli.norms.plan import Plan

_MOST_VALUES = 1 << 18
"""Of more values, whole groups of about so many are compared."""

_NEARLY_ALL = 0.9
"""The share of equal values that a kernel of the same roundings gives at least."""

_DEVIATIONS = 4.0
"""Counts that differ by so many roots of themselves do not differ by luck."""


class _Order(NamedTuple):
    """An order of roundings: steps, each of which may round what it takes."""

    words: str
    steps: tuple[AffineStep, ...]

    def apply(self, standardized: Floats) -> Floats:
        for step in self.steps:
            standardized = step.apply(standardized)
        return standardized


def diagnose_casts(plan: Plan, values: NDArray[Any], actual: NDArray[Any], inputs: Inputs) -> Diagnosis | None:
    """Return which order it is where another order of roundings gives clearly more values to the bit, or None.

    Parameters
    ----------
    plan : Plan
    values, actual : ndarray
        The input, and what is held against the result.
    inputs : Inputs
        Gamma and beta. Where some values do not count, or statistics are given, nothing is looked for.
    """
    grid, dtype = plan.grid, plan.choose_output_dtype(actual.dtype)
    if not is_half(dtype) or not inputs.scales or inputs._replace(gamma=None, beta=None) != NO_INPUTS:
        return None
    if not 0 < grid.group_size <= _MOST_VALUES or not grid.group_count:
        return None
    count = max(1, _MOST_VALUES // grid.group_size)
    chosen = np.unique(np.linspace(0, grid.group_count - 1, count).astype(np.intp))
    standardized = _standardize(plan, take_groups(grid, values, chosen))
    theirs = widen(take_groups(grid, actual, chosen))
    orders = list(_list_orders(*_take_parameters(plan, inputs, chosen), dtype))
    shares = [measure_equality(theirs, order.apply(standardized), dtype) for order in orders]
    own, best = int(plan.spec.rounds_before_gamma), int(np.argmax(shares))
    more, missed = shares[best] - shares[own], 1.0 - shares[own]
    if shares[best] < _NEARLY_ALL or more < max(BY_LUCK, _DEVIATIONS * math.sqrt(missed / theirs.size)):
        return None
    like = _name_frameworks(plan, best)
    cause = f"{plan.norm.name} agrees but for its bits: {orders[best].words}"
    return Diagnosis(
        Kind.NORM, f"{cause} (as {like[0]})" if like else cause,
        (
            f"{format_share(shares[best])} of the values have the bits of that order in {dtype}",
            f"{format_share(shares[own])} have them where {orders[own].words}, which was checked",
            *([f"so do {', '.join(like)}"] if len(like) > 1 else []),
        ),
        remedy=f"normcli {plan.norm.name} … --like {like[0]}" if like else None,
    )  # fmt: skip


def _standardize(plan: Plan, rows: NDArray[Any]) -> Floats:
    """Return x̂ of some groups, as float64."""
    alone = replace(plan, grid=Grid(rows.shape, Layout(2, None), (1,))).change_spec(dtype="float64")
    return run(alone, rows)[0]


def _take_parameters(
    plan: Plan, inputs: Inputs, chosen: NDArray[np.intp]
) -> tuple[Floats | None, Floats | None]:
    """Return what multiplies and what is added, for each value of some groups; None where nothing is."""
    scale, shift = (
        None if given is None else take_groups(plan.grid, _place(plan, given), chosen)
        for given in (inputs.gamma, inputs.beta)
    )
    return None if scale is None else scale + plan.spec.gamma_offset, shift


def _place(plan: Plan, parameter: NDArray[Any]) -> Floats:
    return widen(parameter).reshape(plan.parameters.full_shape)


def _list_orders(scale: Floats | None, shift: Floats | None, dtype: np.dtype[Any]) -> Iterator[_Order]:
    """Yield the orders: a plan that does not round before gamma has the first, one that does the second."""
    once = AffineStep("gamma, beta", scale, shift)
    yield _Order("the result alone is rounded", (once,))
    yield _Order("x̂ is rounded first", (once._replace(rounds_to=dtype),))
    if scale is not None and shift is not None:
        steps = AffineStep("gamma", scale, None, dtype), AffineStep("beta", None, shift, dtype)
        yield _Order("x̂, its product and the sum are rounded one by one", steps)


def _name_frameworks(plan: Plan, order: int) -> list[str]:
    """Return the frameworks whose order that is, if any are known."""
    rows = (find_convention(name, plan.norm.name) for name in list_frameworks(plan.norm.name))
    return [row.framework for row in rows if row.widens and row.rounds_before_gamma == order]
