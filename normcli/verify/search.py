"""The search for what made a tensor: hypotheses are tried on few groups first, since most fail at once."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.dtypes import get_eps
from normcli.norms.divisors import DEVIATION, LENGTH, ROOT_MEAN_SQUARE, Divisor
from normcli.norms.table import NORMS, EpsMode
from normcli.verify.affine import NONE, Affine, undo
from normcli.verify.estimate import estimate
from normcli.verify.evidence import (
    COMMON_EPS,
    MOMENTS,
    STANDARDS,
    Model,
    Standard,
    bound_factors,
    fit_models,
    standardize,
)
from normcli.verify.groups import enumerate_grids, take_groups
from normcli.verify.hypothesis import Hypothesis, Match, describe_window
from normcli.verify.names import WINDOWED
from normcli.verify.ulp import choose_counting_dtype, measure_unit
from normcli.verify.windows import find_windows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.norms.grid import Grid

    Floats = NDArray[np.float64]
    Candidate = tuple[Grid, Divisor, Affine]

MOST_VALUES = 1 << 17
"""Values that a hypothesis is held against; of larger tensors whole groups are drawn."""

LARGEST_GROUP = 1 << 22
"""Hypotheses with larger groups are left out."""

FEW_VALUES = 1 << 12
"""Values that a hypothesis is tried on first."""


class Level(NamedTuple):
    """How well a result was calculated.

    Parameters
    ----------
    ulp : float
        How many units in its last place each value may be off.
    roundings : float
        How many roundings, of values of the size of the calculation's terms, on top.
    """

    ulp: float
    roundings: float


LEVELS = (Level(0.501, 0.0), Level(2.0, 0.0), *(Level(1.0, 2.0**k) for k in range(6)))
"""From rounded once to careless. The first level at which anything fits is the one that counts."""

_ROUNDED_ONCE = 2
"""So many levels are beyond a sum that is accumulated in the tensor's own dtype, if that is short."""


class Drawn(NamedTuple):
    """Groups that hypotheses are held against.

    Parameters
    ----------
    grid : Grid
    standard : Standard
        The input's values, standardized.
    rows : ndarray, shape (groups, group_size)
        The actual values.
    chosen : ndarray of int or None
        The groups' numbers; None for all.
    """

    grid: Grid
    standard: Standard
    rows: Floats
    chosen: NDArray[np.intp] | None


class Nearest(NamedTuple):
    """What comes nearest where nothing fits.

    Parameters
    ----------
    match : Match
    mismatches, compared : int
        Values that it does not explain, and that were looked at.
    first : tuple of int
        The index of the first of them.
    """

    match: Match
    mismatches: int
    compared: int
    first: tuple[int, ...]


class Search:
    """One input, and one actual tensor in the input's order of axes."""

    def __init__(
        self,
        x: NDArray[Any],
        y: NDArray[Any],
        affines: Sequence[Affine],
        order: tuple[int, ...],
        norm: str | None,
        channels: frozenset[int],
    ) -> None:
        self.x, self.y, self.affines, self.order = x, y, affines, order
        self.norm, self.channels = norm, channels
        self.dtype = choose_counting_dtype(y.dtype)
        large = x.size > MOST_VALUES  # there, the first axis is the batch and no channel
        self.grids = [
            grid
            for grid in enumerate_grids(x.shape)
            if grid.group_size <= LARGEST_GROUP and not (large and grid.split and grid.split.axis == 0)
        ]
        self.standards = [
            divisor
            for divisor in STANDARDS
            if norm is None or divisor in MOMENTS or NORMS[norm].divisor == divisor
        ]
        self._drawn: dict[tuple[Grid, Divisor], Drawn | None] = {}

    def find_matches(self) -> tuple[int, list[Match]]:
        """Return the first level at which anything fits, and what does."""
        candidates = list(self._survive())
        for number, level in enumerate(LEVELS):
            found = [match for candidate in candidates for match in self._try(candidate, level, number)]
            found += self._find_windows(level, number)
            if found:
                return number, found
        return len(LEVELS), []

    def _find_windows(self, level: Level, number: int) -> list[Match]:
        """Return the windows of local response normalization that fit, tried on the first samples."""
        if self.norm not in (None, WINDOWED) or self.x.ndim < 2 or NONE not in self.affines:
            return []
        count = max(1, MOST_VALUES // max(1, self.x[0].size))
        x, y = _widen(self.x[:count]), _widen(self.y[:count])
        slack = level.ulp * measure_unit(y, self.dtype) + level.roundings * get_eps(self.dtype) * np.abs(y)
        return [
            describe_window(axis, window, y, exact, self.dtype, self._name_precision(number), self.order)
            for axis, window, exact in find_windows(x, y, slack)
        ]

    def estimate_matches(self) -> list[Match]:
        """Return what fits with a gamma and beta that are fitted to the values, channel by channel."""
        if self.x.size > MOST_VALUES:
            rows = MOST_VALUES // max(1, self.x[0].size)
            if not rows:
                return []
            return self._of(self.x[:rows], self.y[:rows]).estimate_matches()
        hypotheses = estimate(_widen(self.x), _widen(self.y), self.dtype, self.grids)
        return [match for hypothesis in hypotheses for match in self._describe(hypothesis, len(LEVELS) - 2)]

    def find_nearest(self) -> Nearest | None:
        """Return the hypothesis that leaves the fewest values unexplained, or the least distance."""
        best: tuple[tuple[float, float], Hypothesis, NDArray[np.bool_]] | None = None
        for grid, divisor in itertools.product(self.grids, self.standards):
            drawn = self._draw(grid, MOST_VALUES, divisor)
            if drawn is None:
                continue
            for affine, model in itertools.product(self.affines, _PLAIN_MODELS):
                if _find_standard(model) == divisor:
                    hypothesis = Hypothesis(grid, affine, drawn.standard, model, drawn.chosen)
                    key, wrong = self._judge(hypothesis, drawn.rows)
                    if (best is None or key < best[0]) and self._names(hypothesis):
                        best = key, hypothesis, wrong
        return None if best is None else self._refine(best[1])

    def _refine(self, hypothesis: Hypothesis) -> Nearest:
        """Return the best eps, place and ddof for a way of grid."""
        rows = self._take(hypothesis.grid, hypothesis.chosen)
        models = [
            hypothesis.model._replace(eps_mode=mode, ddof=ddof, low=eps, high=eps)
            for mode, ddof, eps in itertools.product((EpsMode.INSIDE, EpsMode.OUTSIDE), (0, 1), COMMON_EPS)
            if hypothesis.model.divisor in MOMENTS and ddof < hypothesis.standard.group_size
        ]
        tried = [hypothesis, *(hypothesis._replace(model=model) for model in models)]
        best = min(tried, key=lambda h: self._judge(h, rows)[0])
        (_, wrong) = self._judge(best, rows)
        match = min(self._describe(best, len(LEVELS) - 1), key=rank_match)
        first = _locate_first(hypothesis, wrong)
        return Nearest(match, int(wrong.sum()), wrong.size, first)

    def _judge(self, hypothesis: Hypothesis, rows: Floats) -> tuple[tuple[float, float], NDArray[np.bool_]]:
        """Return the part of the values that is not explained, the distance of the rest, and which they are."""
        predicted = hypothesis.predict(hypothesis.model.low)
        with np.errstate(all="ignore"):
            error = np.abs(rows - predicted)
            drawn = Drawn(hypothesis.grid, hypothesis.standard, rows, hypothesis.chosen)
            wrong = ~(error <= self._allow(drawn, hypothesis.affine, LEVELS[-1]))
            part = float(wrong.mean())
            explained = error if part >= _MOSTLY else error[~wrong]
            distance = float(np.sqrt(np.nanmean(np.minimum(explained, 1e100) ** 2)))
        return (min(part, _MOSTLY), distance), wrong

    def _of(self, x: NDArray[Any], y: NDArray[Any]) -> Search:
        return Search(x, y, self.affines, self.order, self.norm, self.channels)

    def _survive(self) -> Iterator[Candidate]:
        """Yield the hypotheses that a few groups do not refute even at the loosest level."""
        for grid, divisor in itertools.product(self.grids, self.standards):
            drawn = self._draw(grid, FEW_VALUES, divisor)
            if drawn is None:
                continue
            for affine in self.affines:
                if self._bound(drawn, affine, LEVELS[-1]) is not None:
                    yield grid, divisor, affine

    def _try(self, candidate: Candidate, level: Level, number: int) -> Iterator[Match]:
        grid, divisor, affine = candidate
        if (grid, divisor) not in self._drawn:
            self._drawn[grid, divisor] = self._draw(grid, MOST_VALUES, divisor)
        drawn = self._drawn[grid, divisor]
        bounds = None if drawn is None else self._bound(drawn, affine, level)
        if drawn is None or bounds is None:
            return
        for model in fit_models(drawn.standard, *bounds):
            yield from self._describe(Hypothesis(grid, affine, drawn.standard, model, drawn.chosen), number)

    def _describe(self, hypothesis: Hypothesis, level: int) -> Iterator[Match]:
        precision = self._name_precision(level)
        rows = self._take(hypothesis.grid, hypothesis.chosen)
        for match in hypothesis.describe(rows, self.dtype, precision, self.order, self.channels):
            if self.norm in (None, match.norm):
                yield match

    def _name_precision(self, level: int) -> str:
        short = self.dtype.itemsize < np.dtype(np.float32).itemsize
        return "float32" if short and level < _ROUNDED_ONCE else self.dtype.name

    def _names(self, hypothesis: Hypothesis) -> bool:
        return self.norm is None or any(True for _ in self._describe(hypothesis, 0))

    def _take(self, grid: Grid, chosen: NDArray[np.intp] | None) -> Floats:
        return _widen(take_groups(grid, self.y, chosen))

    def _draw(self, grid: Grid, most: int, divisor: Divisor) -> Drawn | None:
        """Return some groups of finite values, or None if there are none."""
        chosen = _choose_groups(grid, most)
        inputs, rows = _widen(take_groups(grid, self.x, chosen)), self._take(grid, chosen)
        finite = np.isfinite(inputs).all(axis=1)
        if not finite.all():
            numbers = np.arange(grid.group_count) if chosen is None else chosen
            chosen, inputs, rows = numbers[finite], inputs[finite], rows[finite]
        return Drawn(grid, standardize(inputs, divisor), rows, chosen) if len(rows) else None

    def _allow(self, drawn: Drawn, affine: Affine, level: Level) -> Floats:
        """Return how far each value may be off."""
        slack = level.ulp * measure_unit(drawn.rows, self.dtype)
        if level.roundings:
            standard = drawn.standard
            terms = (1.0 + np.abs(standard.values)) * (1.0 + standard.offset[:, None])
            if affine.scale is not None:
                terms = terms * np.abs(take_groups(drawn.grid, affine.scale, drawn.chosen))
            if affine.shift is not None:
                terms = terms + np.abs(take_groups(drawn.grid, affine.shift, drawn.chosen))
            slack = slack + level.roundings * get_eps(self.dtype) * terms
        return slack

    def _bound(self, drawn: Drawn, affine: Affine, level: Level) -> tuple[Floats, Floats] | None:
        scale, shift = (
            None if values is None else take_groups(drawn.grid, values, drawn.chosen)
            for values in (affine.scale, affine.shift)
        )
        placed = affine._replace(scale=scale, shift=shift)
        return bound_factors(drawn.standard, *undo(placed, drawn.rows, self._allow(drawn, affine, level)))


_MOSTLY = 0.5
"""A hypothesis that leaves more than this part of the values unexplained explains nothing."""

_PLAIN_MODELS = (
    Model(DEVIATION, EpsMode.INSIDE, 0, None, 1e-5, 1e-5),
    Model(ROOT_MEAN_SQUARE, EpsMode.INSIDE, 0, None, 1e-5, 1e-5),
    Model(LENGTH, EpsMode.FLOOR, 0, 2.0, 1e-12, 1e-12),
    Model(LENGTH, EpsMode.FLOOR, 0, 1.0, 1e-12, 1e-12),
    *(Model(divisor, EpsMode.FLOOR, 0, None, 0.0, 0.0) for divisor in STANDARDS if divisor not in MOMENTS),
)
"""What is tried for each way of grid where nothing fits."""


def _find_standard(model: Model) -> Divisor:
    return model.divisor if model.divisor in STANDARDS else ROOT_MEAN_SQUARE


def _widen(values: NDArray[Any]) -> Floats:
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(values, dtype=np.float64)


def _locate_first(hypothesis: Hypothesis, wrong: NDArray[np.bool_]) -> tuple[int, ...]:
    """Return the index in the tensor of the first value that is wrong; of none, the last."""
    rows, columns = np.nonzero(wrong)
    groups = rows if hypothesis.chosen is None else hypothesis.chosen[rows]
    shape = hypothesis.grid.shape
    flat = np.ravel_multi_index(hypothesis.grid.locate_values(groups, columns), shape)
    return tuple(int(i) for i in np.unravel_index(flat.min(initial=math.prod(shape) - 1), shape))


def _choose_groups(grid: Grid, most: int) -> NDArray[np.intp] | None:
    """Return the numbers of groups of about so many values, spread evenly; None for all."""
    count = max(1, most // grid.group_size)
    if count >= grid.group_count:
        return None
    return np.unique(np.linspace(0, grid.group_count - 1, count).astype(np.intp))


def rank_match(match: Match) -> tuple[Any, ...]:
    """Order matches: a usual eps first, then by distance as far as it tells, then what is a framework's own."""
    affine = _AFFINES.index(match.affine)
    ranks = (
        not match.is_usual,
        _round_distance(match.max_abs),
        not match.by_default,
        not match.like,
        affine,
        match.ddof,
    )
    return *ranks, match.max_ulp


def _round_distance(distance: float) -> float:
    """Return a distance's exponent to base 4: what differs by less differs by luck."""
    if distance == 0.0:
        return -math.inf
    return math.frexp(distance)[1] // 2 if math.isfinite(distance) else math.inf


_AFFINES = ("none", "gamma, beta", "gamma", "beta", "1 + gamma, beta", "1 + gamma", "swapped", "estimated")
