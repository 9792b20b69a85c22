"""From what was measured of groups to what their values are divided by, and to their statistics."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from normcli.norms.rules import Centre, ZeroRule
from normcli.numerics.deciding import PAIRS, is_double_decided
from normcli.numerics.elements.in_pairs import SOLVED
from normcli.numerics.pairs import (
    Pair,
    Triple,
    invert_pair,
    is_zero,
    keep_endless,
    pair_root,
    two_prod,
    two_square,
)
from normcli.numerics.rational import ROOT_BITS, find_root, round_once
from normcli.numerics.statistics.divisor import (
    Solution,
    add_eps,
    find_exact_divisor,
    replace_flat,
    replace_zero,
    replace_zeros,
)
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

    from normcli.dtypes import Floats, Selected
    from normcli.norms.plan import Plan


class Measured(Protocol):
    """The protocol of measurements of groups, which `solve` turns into mean, divisor and statistics."""

    @property
    def count(self) -> Any:
        """The number of values that count: one number for all groups, or one for each."""
        ...

    def solve(self, plan: Plan) -> Solution:
        """Return centre, divisor and statistics, as if the norm did both steps and had no `flat_rule`."""
        ...


class Given(NamedTuple):
    """Running statistics, as training has left them: a mean and a variance for each group of `Grid.running`."""

    mean: Floats
    var: Floats


def solve(plan: Plan, measured: Measured | Solution) -> Solution:
    """Return the centre, the divisor and the statistics of groups, from what was measured of them.

    Parameters
    ----------
    plan : Plan
    measured : Measured or Solution
        The measurements that the norm's `Divisor.measurement` names; for a length of p = 2, moments
        about 0. A solution is returned as it is.
    """
    if isinstance(measured, Solution):
        return measured
    solution = measured.solve(plan)
    if plan.spec.flat_rule is not None:
        solution = replace_flat(plan, solution, measured.count)
    if plan.norm.is_partial:
        solution = leave_out(plan, solution)
    return solution


def solve_given(plan: Plan, given: Given) -> Solution:
    """Return the solution of groups whose mean and variance are known beforehand.

    All arrays are of `Grid.stats_shape`. A divisor of 0 stays 0: the values divided by it need not be 0.
    """
    from fractions import Fraction

    centre, var = map(plan.grid.spread_running, given)
    shape, nothing = var.shape, np.zeros(var.size)
    means = centre.reshape(-1)

    def ask(group: int) -> tuple[Fraction, Fraction]:
        return Fraction(float(means[group])), Fraction(float(var.reshape(-1)[group]))

    far = np.isfinite(means) & (np.abs(means) > _LARGEST)
    mean, square = Triple(means, nothing, nothing), Pair(var.reshape(-1), nothing)
    return resolve(plan, mean, square, 0.0, far, ask, None).reshape(shape)


_LEAST, _LARGEST = 2.0**-450, 2.0**450
"""Divisors that are not between these, or whose squares are not between theirs, are calculated exactly."""


def resolve(
    plan: Plan,
    mean: Triple,
    square: Pair,
    off: Any,
    unknown: Selected,
    recall: Callable[[int], tuple[Fraction, Fraction | None]],
    zero_rule: ZeroRule | None,
) -> Solution:
    """Return the solution of groups with its statistics, calculated exactly where the pairs do not decide.

    Parameters
    ----------
    plan : Plan
        The plan of a norm that divides by a root of squares.
    mean : Triple
    square : Pair
        The variance, mean square or squared length.
    off : float or ndarray
        An upper bound of the relative error of `square`.
    unknown : ndarray of bool
        True where mean and square are not known: `recall` has to be called.
    recall : callable
        Takes the index of a group; returns its mean and square, exactly; None for a square of NaN.
    zero_rule : ZeroRule or None
        The rule for a divisor of 0; None leaves it 0.
    """
    row, centred = plan.norm.divisor, plan.norm.divisor.about_mean
    assert row.spread is not None  # of every divisor that is a root of squares
    error = off + PAIRS.error
    root = keep_endless(square, pair_root(square))
    divisor = keep_endless(square, add_eps(square, root, plan.spec.eps, plan.spec.eps_mode))
    usable = divisor if zero_rule is None else replace_zeros(divisor, zero_rule)
    shown = usable if zero_rule is ZeroRule.ONE else divisor
    values = {row.square: square, row.spread: root, "rstd": invert_pair(shown)}
    values = {name: value for name, value in values.items() if name in row.statistics}
    undecided = np.broadcast_to(error > SOLVED, usable.hi.shape).copy()
    undecided |= ~is_double_decided(square, off) if row.square in values else False
    is_root = _is_root(square, root) & np.equal(off, 0.0)
    errors = dict.fromkeys(values.keys() - {row.square}, error)
    errors[row.spread] = np.where(is_root, 0.0, error)
    for name in values.keys() - {row.square}:
        undecided |= ~is_double_decided(values[name], errors[name])
    undecided |= _is_beyond(square.hi, _LEAST**2, _LARGEST**2) | _is_beyond(divisor.hi, _LEAST, _LARGEST)
    undecided &= np.isfinite(square.hi) & np.isfinite(mean.hi)
    undecided |= unknown
    statistics = {name: value.hi for name, value in values.items()}
    if centred:
        statistics = {"mean": mean.hi, **statistics}
    known = Pair(usable.hi, np.where(np.isfinite(usable.hi), usable.lo, 0.0))
    if undecided.any():  # arrays may be one and the same until here
        mean, known = mean.map(np.copy), known.map(np.copy)
        statistics = {name: values.copy() for name, values in statistics.items()}

    def ask(group: int, bits: int) -> tuple[Fraction, Fraction | None]:
        centre, exact = recall(group)
        if exact is None:
            return centre, None
        divisor = find_exact_divisor(plan, exact, max(bits, ROOT_BITS))
        return centre, divisor if zero_rule is None else replace_zero(divisor, zero_rule)

    left = SOLVED if plan.spec.eps else np.where(is_root & ~undecided & (mean.mid == 0.0), 0.0, SOLVED)
    solution = Solution(mean, known, centred, statistics, error=left, ask=ask)
    for group in np.flatnonzero(undecided).tolist():
        found = _find_statistics(plan, *recall(group), zero_rule)
        for name, shown_values in statistics.items():
            shown_values[group] = found[name]
        solution.settle(group, *ask(group, 0))
    return solution


def _is_root(square: Pair, root: Pair) -> Selected:
    """Return an array that is True where the square of `root` is exactly `square`."""
    exact = np.zeros(root.hi.shape, np.bool_)
    short = np.flatnonzero(root.lo == root.lo.astype(np.float32))  # others have too many bits to be ties
    if short.size:
        s, r = (part.map(lambda a: a[short]) for part in (square, root))
        products = (*two_square(r.hi), *two_prod(2.0 * r.hi, r.lo), *two_square(r.lo))
        exact[short] = is_zero([*s, *(-a for a in products)])
    return exact


def _is_beyond(values: Floats, least: float, most: float) -> Selected:
    """Return an array that is True for values that are neither between two numbers nor 0."""
    if np.min(values, initial=most) > least and np.max(values, initial=least) < most:
        return np.zeros(values.shape, np.bool_)
    return np.asarray(~((values < most) & ((values > least) | (values == 0.0))))


def _find_statistics(
    plan: Plan, mean: Fraction, square: Fraction | None, zero_rule: ZeroRule | None
) -> dict[str, float]:
    """Return the statistics of one group by name, calculated exactly and rounded once.

    `square` is the variance or mean square; if it is None, all statistics but the mean are NaN.
    """
    row = plan.norm.divisor
    if square is None:
        return {**dict.fromkeys(row.statistics, np.nan), "mean": round_once(mean)}
    divisor = find_exact_divisor(plan, square)
    shown = replace_zero(divisor, zero_rule) if zero_rule is ZeroRule.ONE else divisor
    rstd = round_once(1 / shown) if shown else np.inf
    own = {row.square: round_once(square), row.spread or "": round_once(find_root(square))}
    return {"mean": round_once(mean), **own, "rstd": rstd}


def leave_out(plan: Plan, solution: Solution) -> Solution:
    """Return a solution without the step that the plan's norm leaves out: mean 0 or divisor 1.

    Statistics that the plan's norm does not have are removed too.

    Parameters
    ----------
    plan : Plan
        The plan of a norm without centring, without division, or without both.
    solution : Solution
        The solution of the norm with both steps, in arrays of one axis (one number for each group).
    """
    centres, divides, ask = plan.norm.centre is not Centre.NOTHING, plan.norm.divisor.divides, solution.ask
    from fractions import Fraction

    assert ask is not None  # of every norm whose steps can be left out

    def ask_less(group: int, bits: int = 0) -> tuple[Fraction, Fraction | None]:
        mean, divisor = ask(group, bits)
        return mean if centres else Fraction(0), divisor if divides else Fraction(1)

    found = replace(solution, ask=ask_less, statistics={
        name: values for name, values in solution.statistics.items() if name in plan.norm.statistics
    })  # fmt: skip
    if not centres:
        nothing = np.zeros_like(found.divisor.hi)
        found.mean, found.centred = Triple(nothing, nothing, nothing), False
    if divides:
        return found
    one = np.ones_like(found.divisor.hi)
    return replace(found, divisor=Pair(one, np.zeros_like(one)), error=0.0)
