"""Sampled groups of x and y, and the norms that lead from x to y within the bounds of rounding."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import get_eps, is_half, is_long_integer
from normcli.identifying.models.error_bounds import Level, bound_factors, list_levels, measure_noise
from normcli.identifying.models.evidence import fit_models
from normcli.identifying.models.standards import MOMENTS, STANDARDS, Standard, standardize, standardize_roughly
from normcli.identifying.models.weight import count_fine
from normcli.identifying.search.groups import (
    Hypothesis,
    Sample,
    choose_groups,
    enumerate_grids,
    take_groups,
    widen,
)
from normcli.identifying.search.match_names import describe_hypothesis
from normcli.identifying.search.screen import Screen
from normcli.norms.table import NORMS
from normcli.tensors.pieces import iterate_pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.identifying.search.affine_step import AffineStep
    from normcli.identifying.search.match import Match, Scope
    from normcli.norms.divisors import Divisor
    from normcli.norms.grid import Grid

    Standardize = Callable[[Grid, NDArray[np.intp], NDArray[Any], Divisor], Standard]

MOST_VALUES = 1 << 17
"""The most values, about, that a hypothesis is compared with: of larger tensors, whole groups are sampled."""

KEPT_VALUES = 1 << 20
"""The most values of standardized groups that are kept in memory for later hypotheses."""

LARGEST_GROUP = 1 << 22
"""Hypotheses with larger groups are left out."""

FEW_VALUES = 1 << 12
"""The most values, about, that a hypothesis is tried on first."""


_LEAST_RANK = 3
"""Only of tensors with at least this many axes is a part of one sample taken, along the second axis."""


class Samples:
    """An input and an actual tensor of its shape: samples of their groups, and comparisons of these.

    Parameters
    ----------
    x, y : ndarray
        Input and actual tensor, with one order of axes. If both have NaN in the same places, NaN does not
        count.
    affines : sequence of AffineStep
        The ways in which gamma and beta may have entered.
    scope : Scope
    kept : dict or None
        A cache of standardized groups of x, to share between searches with other orders of y's axes; None for a
        new one.
    """

    def __init__(
        self,
        x: NDArray[Any],
        y: NDArray[Any],
        affines: Sequence[AffineStep],
        scope: Scope,
        kept: dict[object, Standard] | None = None,
    ) -> None:
        self.x, self.y, self.scope = x, y, scope
        self._kept = {} if kept is None else kept
        self._actual: Floats | None = None
        self._undone: dict[tuple[int, Level], tuple[AffineStep, tuple[Floats, Floats]]] = {}
        self.affines, self.levels = affines, list_levels(scope.dtype)
        self.grids = list_grids(y.shape)
        self.screen = Screen(x, y, self.steps, scope.dtype)
        own = None if scope.norm is None else NORMS[scope.norm].divisor
        self.standards = [d for d in STANDARDS if own is None or d in MOMENTS or d == own]

    def take_samples(self, grid: Grid, most: int) -> Iterator[Sample]:
        """Yield, for each divisor, some groups of about `most` values in all, standardized to a few roundings.

        Nothing if no group is finite.
        """
        chosen = choose_groups(grid.group_count, most // grid.group_size)
        return self._take_each(grid, chosen, self.standards, self._standardize_roughly)

    def take_some(self, grid: Grid, most: int, divisor: Divisor) -> Sample | None:
        """Return some groups, of about `most` values in all; None if no group is finite."""
        chosen = choose_groups(grid.group_count, most // grid.group_size)
        return self.take(grid, chosen, divisor)

    def take(self, grid: Grid, chosen: NDArray[np.intp], divisor: Divisor) -> Sample | None:
        """Return the groups with the indices `chosen`, standardized by a divisor; None if none is finite."""
        return next(self._take_each(grid, chosen, (divisor,), self._standardize), None)

    def _take_each(
        self, grid: Grid, chosen: NDArray[np.intp], divisors: Sequence[Divisor], standardize: Standardize
    ) -> Iterator[Sample]:
        """Yield the groups with the indices `chosen`, standardized by each divisor; nothing if none is finite.

        Groups that are not finite are given as the sample's `undefined`.
        """
        rows, actual = take_groups(grid, self.x, chosen), widen(take_groups(grid, self.y, chosen))
        usable = self._find_usable(rows)
        parts = [(chosen[some], rows[some], actual[some]) for some in (usable, ~usable) if some.any()]
        for divisor in divisors if usable.any() else ():
            first, *others = (
                Sample(grid, numbers, standardize(grid, numbers, values, divisor), theirs)
                for numbers, values, theirs in parts
            )
            yield first._replace(undefined=others[0] if others else None)

    def _find_usable(self, rows: NDArray[Any]) -> Selected:
        """Return which groups are finite; if NaN does not count, which have two numbers and no infinity."""
        finite = np.isfinite(rows)
        usable: Selected = finite.all(axis=1)
        if not usable.all() and self._omits_nan:
            usable = (finite | np.isnan(rows)).all(axis=1) & (finite.sum(axis=1) > 1)
        return usable

    def _standardize(
        self, grid: Grid, chosen: NDArray[np.intp], rows: NDArray[Any], divisor: Divisor
    ) -> Standard:
        """Return standardized groups, from the cache if they are in it; small ones are put into it."""
        omits_nan = not np.isnan(rows).any() or self._omits_nan
        key = grid, chosen.tobytes(), divisor, omits_nan
        if key in self._kept:
            return self._kept[key]
        rows = rows if is_long_integer(rows.dtype) else widen(rows)
        standard = standardize(rows, divisor, omits_nan=omits_nan)
        if rows.size * (1 + len(self._kept)) <= KEPT_VALUES:
            self._kept[key] = standard
        return standard

    def _standardize_roughly(
        self, grid: Grid, chosen: NDArray[np.intp], rows: NDArray[Any], divisor: Divisor
    ) -> Standard:
        """Return groups standardized in plain float64 arithmetic; exactly if they have NaN."""
        if np.isnan(rows).any():
            return self._standardize(grid, chosen, rows, divisor)
        return standardize_roughly(rows if is_long_integer(rows.dtype) else widen(rows), divisor)

    @cached_property
    def _omits_nan(self) -> bool:
        """Whether NaN does not count: both tensors have it in the same places."""
        pieces = zip(iterate_pieces(self.x), iterate_pieces(self.y), strict=True)
        return all(np.array_equal(np.isnan(x), np.isnan(y)) for x, y in pieces)

    def count_samples(self) -> int:
        """Return how many indices of the first axis hold at most `MOST_VALUES` values; 0 if one holds more."""
        return MOST_VALUES // max(1, math.prod(self.x.shape[1:]))

    def choose_block(self) -> tuple[slice, ...]:
        """Return the slices of the first values, about `MOST_VALUES`.

        The block is some indices of the first axis. If a single index holds more values, the block is a part of
        it along the second axis, or empty for fewer than three axes.
        """
        shape, rows = self.x.shape, self.count_samples()
        if rows or len(shape) < _LEAST_RANK:
            return (slice(rows),)
        return slice(1), slice(max(1, MOST_VALUES // max(1, math.prod(shape[2:]))))

    @cached_property
    def steps(self) -> list[AffineStep]:
        """The affine steps; for y of half precision, also each with a gamma applied to a rounded x̂."""
        every = []
        for step in self.affines:
            every.append(step)
            if step.scale is not None and is_half(self.scope.dtype):
                every.append(step._replace(rounds_to=self.scope.dtype))
        return every

    def describe(self, hypothesis: Hypothesis, level: Level) -> Iterator[Match]:
        """Yield a match for each norm in scope that groups and divides as a hypothesis does."""
        matches = describe_hypothesis(hypothesis, self.scope, level)
        return (match for match in matches if self.scope.norm in (None, match.norm))

    def count_fine(self, standard: Standard, bounds: tuple[Floats, Floats] | None) -> float:
        """Return the bits by which y shows that statistics were not rounded to half precision (`weight`).

        Infinite if y is of a longer dtype; 0 if `bounds`, the least and largest factor of each group, is None.
        """
        if not is_half(self.scope.dtype):
            return math.inf
        return 0.0 if bounds is None else count_fine(*bounds, standard.size, get_eps(self.scope.dtype))

    def find_wrong(self, undefined: Sample, affine: AffineStep) -> Selected:
        """Return which values of groups with infinity or NaN contradict an affine step, whatever the divisor.

        Wrong are finite values where the norm's result is not finite, and others than its finite values.
        """
        actual, level = undefined.actual, self.levels[-1]
        expected = undefined.place(affine).apply(undefined.standard.values)
        is_finite = np.isfinite(expected)
        size = np.abs(np.where(is_finite, expected, 0.0))
        slack = level.allow(size, self.scope.dtype, 1.0 + size)
        wrong: Selected = np.where(is_finite, ~(np.abs(actual - expected) <= slack), np.isfinite(actual))
        return wrong

    def allow(self, sample: Sample, placed: AffineStep, level: Level) -> Floats:
        """Return the bound on the error of the affine step alone, at each sampled value."""
        actual = np.where(np.isfinite(sample.actual), sample.actual, 0.0)
        return placed.allow(actual, self.scope.dtype, level)

    def tolerate(self, hypothesis: Hypothesis, level: Level) -> Floats:
        """Return the bound on the whole error of each sampled value at a level, with the model's lowest eps."""
        sample, eps = hypothesis.sample, hypothesis.model.low
        placed, noise = sample.place(hypothesis.affine), measure_noise(sample.standard, level)
        with np.errstate(all="ignore"):
            before = noise.limit(hypothesis.measure_factors(eps), hypothesis.standardize(eps))
            scaled = before if placed.scale is None else before * np.abs(placed.scale)
        return self.allow(sample, placed, level) + scaled

    def bound(self, sample: Sample, affine: AffineStep, level: Level) -> tuple[Floats, Floats] | None:
        """Return the least and the largest factor with which each group of x̂ gives y.

        Both have the shape (groups,). None if some group has no such factor, or an undefined group is wrong.
        """
        if sample.undefined is not None and self.find_wrong(sample.undefined, affine).any():
            return None
        standard, (targets, slack) = sample.standard, self._undo(sample, affine, level)
        if (missing := standard.missing) is not None:
            targets, slack = np.where(missing, 0.0, targets), np.where(missing, np.inf, slack)
        return bound_factors(standard, targets, slack, measure_noise(standard, level))

    def _undo(self, sample: Sample, affine: AffineStep, level: Level) -> tuple[Floats, Floats]:
        """Return x̂ of y, with the affine step undone, and the bounds on its errors; small ones are cached."""
        is_kept = sample.actual.size <= FEW_VALUES
        if is_kept and sample.actual is not self._actual:
            self._actual, self._undone = sample.actual, {}
        key = id(affine), level  # which stays its own as long as the step is kept
        if is_kept and key in self._undone:
            return self._undone[key][1]
        placed = sample.place(affine)
        undone = placed.undo(sample.actual, self.allow(sample, placed, level), np.zeros(1))
        if is_kept:
            self._undone[key] = affine, undone
        return undone

    def fit(self, sample: Sample, affine: AffineStep, level: Level) -> Iterator[Hypothesis]:
        """Yield the hypotheses whose eps, ddof or p agree with the factors of all groups of a sample."""
        bounds = self.bound(sample, affine, level)
        if bounds is None:
            return
        fine = self.count_fine(sample.standard, bounds)
        roundings = 0.0 if level == self.levels[0] else float(level.measure(1.0))
        for model in fit_models(sample.standard, *bounds, roundings):
            yield Hypothesis(sample, affine, model._replace(fine=fine))

    def match(self, sample: Sample, affine: AffineStep, level: Level) -> Iterator[Match]:
        """Yield the matches of the hypotheses that `fit` yields, if their evidence is enough."""
        for hypothesis in self.fit(sample, affine, level):
            if hypothesis.model.is_likely:
                yield from self.describe(hypothesis, level)

    def allow_window(self, y: Floats, level: Level) -> Floats:
        """Return the bound on the error of each value of y, if y was divided by windows."""
        return level.allow(y, self.scope.dtype, np.abs(y))

    def choose_loosest(self, match: Match) -> Level:
        """Return the level with the largest errors among the levels of a match's precision."""
        precision = match.precision.split(",", maxsplit=1)[0]
        return [level for level in self.levels if level.precision == precision][-1]


def list_grids(shape: tuple[int, ...]) -> list[Grid]:
    """Return the ways of grouping to try for a shape.

    Groups have at most `LARGEST_GROUP` values; the first axis of large tensors is not split.
    """
    large = math.prod(shape) > MOST_VALUES  # there, the first axis is the batch and no channel
    return [
        grid
        for grid in enumerate_grids(shape)
        if grid.group_size <= LARGEST_GROUP and not (large and grid.split and grid.split.axis == 0)
    ]
