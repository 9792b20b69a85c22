"""Tests on all values of a large tensor of the matches found in a sample, in one pass for each hypothesis."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.check import ComparingSink
from normcli.checking.tally import PIECE
from normcli.checking.ulp import choose_tolerance, measure_unit
from normcli.engine.inputs import Inputs, Selection
from normcli.engine.run import run_into
from normcli.engine.tiling.blocks import open_source
from normcli.engine.tiling.geometry import find_geometry
from normcli.engine.walk import Effort
from normcli.identifying.faults.claim import Claim
from normcli.identifying.faults.index_region import tell_places
from normcli.identifying.faults.tables.places import OF_REGIONS
from normcli.identifying.models.error_bounds import LARGEST_RSTD, MOST
from normcli.identifying.models.window_model import calculate_window, lies_near
from normcli.identifying.sampling import MOST_SAMPLED, choose_lengths, widen
from normcli.identifying.search.affine_step import ESTIMATED
from normcli.identifying.search.groups import find_equal
from normcli.identifying.search.match import rank_matches
from normcli.identifying.search.match_names import try_plan
from normcli.norms.axes import ParameterShapes
from normcli.norms.rules import Centre
from normcli.numerics.statistics.divisor import find_divisor
from normcli.tensors.pieces import forget
from normcli.tensors.spool import make_scratch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.engine.tiling.blocks import Source
    from normcli.engine.tiling.geometry import Geometry, Slices
    from normcli.identifying.models.error_bounds import Level
    from normcli.identifying.search.affine_step import AffineStep
    from normcli.identifying.search.groups import Hypothesis
    from normcli.identifying.search.match import Match
    from normcli.identifying.search.samples import Samples
    from normcli.norms.plan import Plan
    from normcli.numerics.workspace import Workspace


_RARE, _FAR = 20, 8.0
"""At most one value in 20 may be an exception, and their median error is at least 8 rounding bounds."""

_MOST_PASSES = 3
"""The most passes over a large tensor, and the most refits, to confirm the matches of a sample."""


class Confirmation:
    """A test of matches, found in a sample of a large tensor, on all of its values.

    Parameters
    ----------
    samples : Samples
    """

    def __init__(self, samples: Samples) -> None:
        self.samples = samples

    def confirm(self, matches: Sequence[Match]) -> tuple[tuple[Match, ...], tuple[Claim, ...]]:
        """Return the matches that hold for the whole tensor, the best first, and claims of exceptions.

        If no match holds, the best one is fitted again, with some groups added in which it does not hold; and
        so on, up to 3 times. If none holds then, the first tuple is empty, and the second may have one claim:
        the best match holds except for a few values. In all other cases the second is empty. Matches with an
        unusual eps are left out if the best match has a usual one.
        """
        matches = [match for match in matches if match.is_usual >= matches[0].is_usual]
        for _ in range(_MOST_PASSES):
            kept, strange = self._hold_against_all(matches)
            if kept or not strange:
                return tuple(kept), ()
            best, numbers = matches[0], next(iter(strange.values()))
            wider = self._fit_again(best, numbers)
            if not wider:
                break
            matches = wider
        return (), self._claim_exceptions(best, numbers)

    def _claim_exceptions(self, match: Match, strange: NDArray[np.intp]) -> tuple[Claim, ...]:
        """Return the claim that a match holds except for some values, in a tuple, or an empty tuple.

        Empty if the excepted values are more than one in 20, if their median error is below 8 rounding bounds,
        or if the match has no hypothesis.

        Parameters
        ----------
        match : Match
        strange : ndarray of int
            The indices of the groups in which the match does not hold.
        """
        h = match.hypothesis
        plan = try_plan(match.make_request(), self.samples.x.shape)
        if h is None or plan is None:
            return ()
        grid = replace(h.sample.grid, shape=self.samples.x.shape)
        few = strange[: max(1, MOST_SAMPLED // grid.group_size)]
        sample = self.samples.take(grid, few, h.sample.standard.divisor)
        if sample is None:
            return ()
        level = self.samples.choose_loosest(match)
        h = h._replace(sample=sample, model=h.model._replace(low=match.eps, high=match.eps))
        with np.errstate(all="ignore"):
            expected = h.approximate(match.eps)
            off = np.abs(sample.actual - expected) / self.samples.tolerate(h, level)
        off = np.where(find_equal(sample.actual, expected, self.samples.scope.dtype), 0.0, off)
        off = np.nan_to_num(off, nan=np.inf)
        wrong = [(sample, off > 1.0)]
        if sample.undefined is not None:
            wrong.append((sample.undefined, self.samples.find_wrong(sample.undefined, h.affine)))
        places = [
            some.locate(*map(int, place))
            for some, mask in wrong
            for place in zip(*np.nonzero(mask), strict=True)
        ]
        is_far = float(np.median(off[off > 1.0])) >= _FAR if (off > 1.0).any() else True
        is_rare = _RARE * len(places) * len(strange) <= len(few) * self.samples.x.size
        if not (places and is_far and is_rare):
            return ()
        fault = OF_REGIONS["values"].fault
        cause = f"{fault.words} {tell_places(len(places), min(places))}"
        return (Claim((fault,), plan, (cause,), misfit=0.0, bits=match.bits),)

    def _hold_against_all(self, matches: Sequence[Match]) -> tuple[list[Match], dict[Any, NDArray[np.intp]]]:
        """Return the matches that hold in all groups, and the groups in which each tried hypothesis fails.

        The groups are a dict from a key of the hypothesis to indices, in the order of the matches. At most 3
        hypotheses are tried; matches of other hypotheses are left out.
        """
        kept: list[Match] = []
        strange: dict[Any, NDArray[np.intp]] = {}
        for match in matches:
            h = match.hypothesis
            if h is None:
                kept += [match] * self._bears_out_window(match)
                continue
            model = h.model._replace(low=match.eps, high=match.eps, bits=0.0, fine=0.0)
            key = (h.sample.grid, h.affine.way, h.affine.rounds_to, model)
            if key not in strange and len(strange) < _MOST_PASSES:
                level, dtype = self.samples.choose_loosest(match), self.samples.scope.dtype
                strange[key] = find_strange_groups(h, match.eps, self.samples.x, self.samples.y, level, dtype)
            if key in strange and not strange[key].size:
                kept.append(match)
        return kept, strange

    def _fit_again(self, match: Match, strange: NDArray[np.intp]) -> list[Match]:
        """Fit a match again, with some groups added to its sample, and return the certain matches found.

        `strange` has the indices of groups in which the match does not hold; the first of them are added. Only
        matches with a usual eps are returned, of the strictest level that has any. Empty without such matches,
        and for a match without hypothesis or with a fitted gamma.
        """
        h = match.hypothesis
        if h is None or match.affine == ESTIMATED:
            return []
        few = strange[: max(1, MOST_SAMPLED // h.sample.grid.group_size)]
        chosen = np.union1d(h.sample.chosen, few)
        sample = self.samples.take(h.sample.grid, chosen, h.sample.standard.divisor)
        if sample is None:
            return []
        for level in self.samples.levels:
            found = [m for m in self.samples.match(sample, h.affine, level) if m.is_certain and m.is_usual]
            if found:
                return rank_matches(found)
        return []

    def _bears_out_window(self, match: Match) -> bool:
        """Whether a match of a window, which was fitted to the first values, holds in the whole tensor."""
        assert match.window is not None
        level = self.samples.choose_loosest(match)
        count = choose_lengths(self.samples.x.shape, MOST_SAMPLED, (0,), 1)[0]
        for start in range(0, len(self.samples.x), count):
            x, y = (widen(values[start : start + count]) for values in (self.samples.x, self.samples.y))
            result = calculate_window(x, match.axes[0], match.window)
            if not lies_near(result, y, level.allow(y, self.samples.scope.dtype, np.abs(y))):
                return False
        return True


_EFFORT = Effort(block=1 << 18)
"""Small tiles, which leave memory to the search."""


def find_strange_groups(
    hypothesis: Hypothesis, eps: float, x: NDArray[Any], y: NDArray[Any], level: Level, dtype: np.dtype[Any]
) -> NDArray[np.intp]:
    """Return the indices, ascending, of the groups with a value off a hypothesis' result by more than rounding.

    Parameters
    ----------
    hypothesis : Hypothesis
    eps : float
    x, y : ndarray
        The whole input and output, of one shape.
    level : Level
        The precision of the kernel, which bounds its errors.
    dtype : numpy.dtype
        The dtype in whose last place distances are counted.
    """
    plan, affine = plan_hypothesis(hypothesis, eps, x), _spread(hypothesis.affine)
    geometry = find_geometry(plan)
    selection = None if hypothesis.sample.standard.missing is None else Selection(omits_nan=True)
    with open_source(y, plan, geometry) as source:
        sink = _ExcessSink(plan, geometry, source, affine, level, dtype)
        statistics = run_into(plan, x, sink, Inputs(affine.scale, affine.shift, selection=selection), _EFFORT)
    return np.flatnonzero(sink.excess.reshape(-1) > _tolerate(plan, eps, statistics, level).reshape(-1))


def _spread(affine: AffineStep) -> AffineStep:
    """Return an affine step with its scale and shift broadcast to one shape."""
    given = [values.shape for values in (affine.scale, affine.shift) if values is not None]
    shape = np.broadcast_shapes(*given)
    return affine.map(lambda values: np.broadcast_to(values, shape))


def plan_hypothesis(hypothesis: Hypothesis, eps: float, x: NDArray[Any]) -> Plan:
    """Return the plan of a hypothesis with an eps for a whole tensor x, with gamma and beta along its axes."""
    grid, affine = hypothesis.sample.grid, _spread(hypothesis.affine)
    plan = hypothesis.model.make_plan(grid.axes, x, eps)
    shape = next((v.shape for v in (affine.scale, affine.shift) if v is not None), (1,) * x.ndim)
    held = ParameterShapes(plan.parameters.rule, tuple(range(x.ndim)), shape, shape, grid.split_shape(shape))
    return replace(plan, grid=replace(grid, shape=x.shape), parameters=held)


def _tolerate(plan: Plan, eps: float, statistics: dict[str, Floats], level: Level) -> Floats:
    """Return the bound on the excess of y in each group that rounding errors of statistics may cause.

    The excess of a value is |y − exact|, minus the error of the last rounding, divided by |exact| + max |gamma|
    + max |beta|. For a norm without mean, the bound is the level's rounding error.

    Parameters
    ----------
    plan : Plan
    eps : float
    statistics : dict of str to ndarray
        The exact statistics of the groups, by name.
    level : Level
        The precision of the kernel.
    """
    norm, unit = plan.norm, float(level.measure(1.0))
    if norm.centre is Centre.NOTHING or norm.divisor.spread is None:
        return np.full(plan.grid.stats_shape, unit)
    size, centre = statistics[norm.divisor.spread], np.abs(statistics[norm.centre.value])
    with np.errstate(all="ignore"):
        rstd = 1.0 / find_divisor(size, eps, plan.spec.eps_mode)
        rstd = np.where(size > 0.0, rstd, np.minimum(rstd, LARGEST_RSTD))
        return np.minimum(np.nan_to_num(unit * rstd * (size + centre), nan=unit), MOST)


class _ExcessSink(ComparingSink):
    """A receiver of the exact result that compares it with y, and keeps the largest excess of y in each group.

    The excess of a value is (|y − exact| − bound of the last rounding) / (|exact| + max |gamma| + max |beta|),
    at least 0, and infinite where only one of y and exact is finite. Without a centre, gamma is left out.

    Parameters
    ----------
    plan : Plan
    geometry : Geometry
    source : Source
        The reader of the actual tensor y.
    affine : AffineStep
        Gamma and beta.
    level : Level
        The precision, whose `ulp` bounds the last rounding.
    dtype : numpy.dtype
        The dtype in whose last place distances are counted.

    Attributes
    ----------
    excess : ndarray of float32, shape geometry.kept_shape
        The largest excess of each group.
    """

    def __init__(
        self, plan: Plan, geometry: Geometry, source: Source, affine: AffineStep, level: Level,
        dtype: np.dtype[Any],
    ) -> None:  # fmt: skip
        super().__init__(plan, geometry, source, choose_tolerance(dtype))
        self.excess = make_scratch(geometry.kept_shape, np.dtype(np.float32))
        largest = 1.0 if affine.scale is None else float(np.abs(affine.scale).max())
        self._added = 0.0 if affine.shift is None else float(np.abs(affine.shift).max())
        self._added += largest * (plan.norm.centre is not Centre.NOTHING)
        self._ulp = level.ulp + (affine.rounds_to is not None)

    def put(self, tile: Slices, values: NDArray[Any], work: Workspace) -> None:
        """Compare a tile of exact values with y, and update the groups' largest excesses.

        `values` is overwritten with the excess of each value: its error relative to the size of its terms.
        """
        natural = tuple(range(len(tile)))
        actual, expected = self._source.read(tile, natural, work).reshape(-1), values.reshape(-1)
        for start in range(0, expected.size, PIECE):
            part = slice(start, start + PIECE)
            expected[part] = self._measure(np.asarray(actual[part], np.float64), expected[part])
        found = np.maximum.reduce(values, axis=self._geometry.reduced_runs)
        index = self._geometry.cut_groups(tile)
        with self._lock:
            here = self.excess[index]
            np.maximum(here, found, out=here, casting="same_kind")
            forget(self.excess)
        self._source.forget()

    def _measure(self, actual: Floats, expected: Floats) -> Floats:
        """Return the error of each value beyond the last rounding, relative to the size of its terms.

        This excess is at least 0, and infinite where only one of the two values is finite.
        """
        size = np.abs(expected)
        error = np.abs(actual - expected)
        error -= self._ulp * measure_unit(expected, self.comparison.tolerance.dtype)
        error /= size + self._added
        if not error.max(initial=0.0) < np.inf:  # also where something is NaN
            wrong = np.isfinite(actual) != np.isfinite(expected)
            error = np.where(np.isfinite(error), error, np.where(wrong, np.inf, 0.0))
        return np.maximum(error, 0.0)
