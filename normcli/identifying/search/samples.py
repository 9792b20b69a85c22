"""Sampled groups of x and y, and the norms that lead from x to y within the bounds of rounding."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import get_eps, is_half, is_long_integer
from normcli.identifying.models.divisor_fit import fit_models
from normcli.identifying.models.error_bounds import (
    Level,
    bound_factors,
    list_levels,
    measure_noise,
)
from normcli.identifying.models.standards import MOMENTS, STANDARDS, Standard, standardize
from normcli.identifying.models.weight import count_fine
from normcli.identifying.sampling import MOST_SAMPLED, take_groups, widen
from normcli.identifying.search.groups import Hypothesis, Sample, enumerate_grids
from normcli.identifying.search.match_names import describe_hypothesis
from normcli.norms.table import NORMS
from normcli.tensors.pieces import iterate_pieces

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.identifying.search.affine_step import AffineStep
    from normcli.identifying.search.match import Match, Scope
    from normcli.norms.divisors import Divisor
    from normcli.norms.grid import Grid

LARGEST_GROUP = 1 << 22
"""Hypotheses with larger groups are left out."""

FEW_VALUES = 1 << 9
"""The most values, about, that a hypothesis is tried on first."""


class Samples:
    """An input x and an actual tensor y of its shape: samples of their groups, and comparisons of these.

    A standardized group, x̂, is centred and divided by its deviation (or length); y is x̂ times one factor for
    each group, followed by an affine step.

    Parameters
    ----------
    x, y : ndarray
        Input and actual tensor, with one order of axes. If NaN is at the same indices in both, statistics leave
        it out.
    affines : sequence of AffineStep
        The ways in which gamma and beta may have entered.
    scope : Scope
    """

    def __init__(self, x: NDArray[Any], y: NDArray[Any], affines: Sequence[AffineStep], scope: Scope) -> None:
        self.x, self.y, self.scope = x, y, scope
        self._undone: tuple[Any, ...] = (None, None)  # of the last groups: each array keeps its id
        self.affines, self.levels = affines, list_levels(scope.dtype)
        self.grids = list_grids(y.shape)
        own = None if scope.norm is None else NORMS[scope.norm].divisor
        self.standards = [d for d in STANDARDS if own is None or d in MOMENTS or d == own]

    def take(self, grid: Grid, chosen: NDArray[np.intp], divisor: Divisor) -> Sample | None:
        """Return the sample of the groups with the indices `chosen` for a divisor; None if none is finite."""
        return next(self.take_each(grid, chosen, (divisor,)), None)

    def take_each(self, grid: Grid, chosen: NDArray[np.intp], divisors: Sequence[Divisor]) -> Iterator[Sample]:
        """Yield a sample for each divisor, of the groups with the indices `chosen`; nothing if none is finite.

        Groups that are not finite are in the sample's `undefined`.
        """
        rows, actual = take_groups(grid, self.x, chosen), widen(take_groups(grid, self.y, chosen))
        rows = rows if is_long_integer(rows.dtype) else widen(rows)
        omits_nan = not np.isnan(rows).any() or self._omits_nan
        usable = self._find_usable(rows)
        parts = [(chosen[some], rows[some], actual[some]) for some in (usable, ~usable) if some.any()]
        for divisor in divisors if usable.any() else ():
            first, *others = (
                Sample(grid, some, standardize(values, divisor, omits_nan=omits_nan), theirs)
                for some, values, theirs in parts
            )
            yield first._replace(undefined=others[0] if others else None)

    def _find_usable(self, rows: NDArray[Any]) -> Selected:
        """Return True for finite rows and, if statistics omit NaN, for rows of two numbers and no infinity."""
        finite = np.isfinite(rows)
        usable: Selected = finite.all(axis=1)
        if not usable.all() and self._omits_nan:
            usable = (finite | np.isnan(rows)).all(axis=1) & (finite.sum(axis=1) > 1)
        return usable

    @cached_property
    def _omits_nan(self) -> bool:
        """Whether statistics leave NaN out: x and y have it at the same indices, or not at all."""
        pieces = zip(iterate_pieces(self.x), iterate_pieces(self.y), strict=True)
        return all(np.array_equal(np.isnan(x), np.isnan(y)) for x, y in pieces)

    def take_first(self, lengths: Sequence[int]) -> tuple[Floats, Floats]:
        """Return the first values of x and y, so many along each axis, in float64."""
        index = tuple(map(slice, lengths))
        return widen(self.x[index]), widen(self.y[index])

    @cached_property
    def steps(self) -> list[AffineStep]:
        """The affine steps to try.

        For y of half precision, each step with a scale is there twice: the second rounds x̂ before the scale.
        """
        every: list[AffineStep] = []
        for step in self.affines:
            every.append(step)
            if step.scale is not None and is_half(self.scope.dtype):
                every.append(step._replace(rounds_to=self.scope.dtype))
        return every

    def describe(self, hypothesis: Hypothesis, level: Level) -> Iterator[Match]:
        """Yield a match for each norm in scope that groups and divides as a hypothesis does.

        `level` is the level of precision at which the hypothesis fits.
        """
        matches = describe_hypothesis(hypothesis, self.scope, level)
        return (match for match in matches if self.scope.norm in (None, match.norm))

    def count_fine(self, standard: Standard, bounds: tuple[Floats, Floats] | None) -> float:
        """Return the evidence, in bits, that the kernel's statistics were not rounded to half precision.

        `bounds` are the least and the largest factor of each group; if None, the evidence is 0. For y of a
        longer dtype than half precision it is infinite.
        """
        if not is_half(self.scope.dtype):
            return math.inf
        return 0.0 if bounds is None else count_fine(*bounds, standard.size, get_eps(self.scope.dtype))

    def find_wrong(self, undefined: Sample, affine: AffineStep) -> Selected:
        """Return True for values of y that contradict an affine step, in groups with infinity or NaN in x.

        The norm's result there is x̂ = 0 or not finite, whatever the divisor. A value of y contradicts it if it
        is finite where the result is not, or differs from a finite result by more than rounding.
        """
        actual, level = undefined.actual, self.levels[-1]
        expected = undefined.place(affine).apply(undefined.standard.values)
        is_finite = np.isfinite(expected)
        size = np.abs(np.where(is_finite, expected, 0.0))
        slack = level.allow(size, self.scope.dtype, 1.0 + size)
        wrong: Selected = np.where(is_finite, ~(np.abs(actual - expected) <= slack), np.isfinite(actual))
        return wrong

    def tolerate(self, hypothesis: Hypothesis, level: Level) -> Floats:
        """Return the bound on the error of each sampled y, for a hypothesis with its lowest eps, at a level."""
        sample, eps = hypothesis.sample, hypothesis.model.low
        placed, noise = sample.place(hypothesis.affine), measure_noise(sample.standard, level)
        with np.errstate(all="ignore"):
            before = noise.limit(hypothesis.measure_factors(eps), hypothesis.standardize(eps))
            scaled = before if placed.scale is None else before * np.abs(placed.scale)
        return placed.allow(sample.actual, self.scope.dtype, level) + scaled

    def bound(self, sample: Sample, affine: AffineStep, level: Level) -> tuple[Floats, Floats] | None:
        """Return the least and the largest factor of x̂ in each group with which the affine step leads to y.

        Both have the shape (groups,). None if some group has no such factor, or if y contradicts the step in a
        group with infinity or NaN.
        """
        if sample.undefined is not None and self.find_wrong(sample.undefined, affine).any():
            return None
        targets, slack = self._undo(sample, affine, level)
        if (missing := sample.standard.missing) is not None:
            targets, slack = np.where(missing, 0.0, targets), np.where(missing, np.inf, slack)
        return bound_factors(sample.standard, targets, slack, measure_noise(sample.standard, level))

    def _undo(self, sample: Sample, affine: AffineStep, level: Level) -> tuple[Floats, Floats]:
        """Return y with an affine step undone, and the bound on the error of each value.

        Both are kept for the next divisor of the same groups.
        """
        if self._undone[:2] != (id(sample.actual), level):
            self._undone = id(sample.actual), level, {}, sample.actual
        kept: dict[int, tuple[AffineStep, tuple[Floats, Floats]]] = self._undone[2]
        if id(affine) not in kept:
            placed, y = sample.place(affine), sample.actual
            kept[id(affine)] = affine, placed.undo(y, placed.allow(y, self.scope.dtype, level), np.zeros(1))
        return kept[id(affine)][1]

    def fit(
        self, sample: Sample, affine: AffineStep, level: Level, bounds: tuple[Floats, Floats] | None
    ) -> Iterator[Hypothesis]:
        """Yield hypotheses on a sample whose eps, ddof or p fits all groups; nothing if `bounds` is None.

        `bounds` are the least and the largest factor r of each group with y = r · x̂, as `bound` returns them.
        """
        if bounds is not None:
            fine = self.count_fine(sample.standard, bounds)
            roundings = 0.0 if level == self.levels[0] else float(level.measure(1.0))
            for model in fit_models(sample.standard, *bounds, roundings):
                yield Hypothesis(sample, affine, model._replace(fine=fine))

    def match(self, sample: Sample, affine: AffineStep, level: Level) -> Iterator[Match]:
        """Yield the matches of the hypotheses that `fit` yields, if their evidence is enough."""
        for hypothesis in self.fit(sample, affine, level, self.bound(sample, affine, level)):
            if hypothesis.model.is_likely:
                yield from self.describe(hypothesis, level)

    def choose_loosest(self, match: Match) -> Level:
        """Return the last level of a match's precision, with the largest errors."""
        precision = match.precision.split(",", maxsplit=1)[0]
        return [level for level in self.levels if level.precision == precision][-1]


def list_grids(shape: tuple[int, ...]) -> list[Grid]:
    """Return the ways of grouping to try for a shape.

    Groups have at most 2²² values. The first axis of a tensor of more than 2¹⁷ values is never split.
    """
    large = math.prod(shape) > MOST_SAMPLED  # there, the first axis is the batch and no channel
    return [
        grid
        for grid in enumerate_grids(shape)
        if grid.group_size <= LARGEST_GROUP and not (large and grid.split and grid.split.axis == 0)
    ]
