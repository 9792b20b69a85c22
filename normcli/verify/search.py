"""The search for what made a tensor: hypotheses are tried on few groups first, since most fail at once."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.dtypes import find_type, get_eps, is_half
from normcli.norms.divisors import LENGTH, ROOT_MEAN_SQUARE, Divisor
from normcli.norms.rules import EpsMode
from normcli.norms.table import NORMS
from normcli.tensors.pieces import iterate_pieces
from normcli.verify.affine import ESTIMATED
from normcli.verify.bounds import bound_factors, measure_noise
from normcli.verify.confirm import find_strange_groups
from normcli.verify.estimate import estimate
from normcli.verify.evidence import (
    COMMON_EPS,
    LENGTH_EPS,
    MOMENTS,
    STANDARDS,
    Model,
    Standard,
    fit_models,
    standardize,
)
from normcli.verify.groups import Widened, enumerate_grids, widen
from normcli.verify.hypothesis import Hypothesis, Match, Sample
from normcli.verify.levels import Level, choose_careless, list_levels
from normcli.verify.names import describe_hypothesis, describe_window
from normcli.verify.one_pass import fit_one_pass
from normcli.verify.ranking import BY_LUCK, rank_matches
from normcli.verify.screen import SCREENED, lie_on_line, measure_offset
from normcli.verify.slips import Bounded, find_slips
from normcli.verify.ulp import measure_unit
from normcli.verify.weight import CERTAIN, count_fine
from normcli.verify.windows import WINDOWED, find_windows, gives

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.norms.grid import Grid
    from normcli.verify.affine import AffineStep
    from normcli.verify.hypothesis import Scope
    from normcli.verify.slips import Slip


MOST_VALUES = 1 << 17
"""Values that a hypothesis is compared with; of larger tensors whole groups are sampled."""

LARGEST_GROUP = 1 << 22
"""Hypotheses with larger groups are left out."""

FEW_VALUES = 1 << 12
"""Values that a hypothesis is tried on first."""


_PATIENCE = 2
"""So many levels further, a usual eps is looked for: one of many digits may be an artefact of the rounding."""

_ON_ANY_LINE = 3
"""Groups of so few values lie on a line, or so nearly that it refutes nothing."""

_NEARLY_ON_ANY = 8
"""Groups of so few values lie on a line by luck, where thousands of them are looked at."""

_MOSTLY = 0.5
"""A hypothesis that leaves more than this part of the values unexplained explains nothing."""

_PLAIN_MODELS = {
    **{divisor: [Model(divisor, EpsMode.INSIDE, low=1e-5, high=1e-5)] for divisor in MOMENTS},
    **{divisor: [Model(divisor, EpsMode.FLOOR)] for divisor in STANDARDS if divisor not in MOMENTS},
}
_PLAIN_MODELS[ROOT_MEAN_SQUARE] += [
    Model(LENGTH, EpsMode.FLOOR, p=p, low=LENGTH_EPS, high=LENGTH_EPS) for p in (2.0, 1.0)
]
"""What is tried for each standard of a way of grouping where nothing fits."""


_MOST_PASSES = 3
"""Passes over a large tensor that confirm what fits a sample of it."""


class Fitting(NamedTuple):
    """The first level, by number, at which anything fits, and what does."""

    level: int
    matches: list[Match]

    @property
    def is_certain(self) -> bool:
        """Whether any of them is."""
        return any(match.is_certain for match in self.matches)


class Nearest(NamedTuple):
    """What comes nearest where nothing fits.

    Parameters
    ----------
    match : Match
    mismatches, compared : int
        Values that it does not explain, and that were looked at.
    first : tuple of int
        The index of the first of them.
    bits : float
        What the values that it explains show, less what it takes to say which others it does not.
    """

    match: Match
    mismatches: int
    compared: int
    first: tuple[int, ...]
    bits: float


KEPT_VALUES = 1 << 20
"""Values of groups that are kept, standardized, while a search goes on: of small tensors all."""


class Chosen(NamedTuple):
    """Groups of finite values and the others, by their numbers, and what they are without centre and scale."""

    groups: NDArray[np.intp]
    standard: Standard
    others: NDArray[np.intp] | None = None
    undefined: Standard | None = None


class Inputs:
    """A tensor, and groups of its values, standardized once for every search that takes them.

    Parameters
    ----------
    x : ndarray
    y : ndarray
        Of the same shape. Where both have NaN in the same places, NaN does not count.
    """

    def __init__(self, x: NDArray[Any], y: NDArray[Any]) -> None:
        self.x, self._y, self._widened = x, y, Widened(x)
        self._room = KEPT_VALUES
        self._kept: dict[tuple[Grid, Divisor, bytes], Chosen | None] = {}

    def standardize(self, grid: Grid, chosen: NDArray[np.intp], divisor: Divisor) -> Chosen | None:
        """Return some groups, standardized; None if none of them has finite values."""
        key = (grid, divisor, chosen.tobytes())
        if key not in self._kept:
            rows = self._widened.take(grid, chosen)
            found = self._standardize(chosen, rows, divisor)
            if rows.size > self._room:
                return found
            self._room -= rows.size
            self._kept[key] = found
        return self._kept[key]

    def _standardize(self, chosen: NDArray[np.intp], rows: NDArray[Any], divisor: Divisor) -> Chosen | None:
        usable = self._find_usable(rows)
        if usable.all():
            return Chosen(chosen, standardize(rows, divisor))
        if not usable.any():
            return None
        undefined = standardize(rows[~usable], divisor, omits_nan=self._omits_nan)
        return Chosen(chosen[usable], standardize(rows[usable], divisor), chosen[~usable], undefined)

    def _find_usable(self, rows: NDArray[Any]) -> Selected:
        finite = np.isfinite(rows)
        usable: Selected = finite.all(axis=1)
        if not usable.all() and self._omits_nan:
            usable = (finite | np.isnan(rows)).all(axis=1) & (finite.sum(axis=1) > 1)
        return usable

    @cached_property
    def _omits_nan(self) -> bool:
        pieces = zip(iterate_pieces(self.x), iterate_pieces(self._y), strict=True)
        return all(np.array_equal(np.isnan(x), np.isnan(y)) for x, y in pieces)


class Search:
    """One input, and one actual tensor in the input's order of axes.

    Parameters
    ----------
    inputs : Inputs
    y : ndarray
        Of the input's shape.
    affines : sequence of AffineStep
        The ways in which gamma and beta may have entered.
    scope : Scope
    """

    def __init__(self, inputs: Inputs, y: NDArray[Any], affines: Sequence[AffineStep], scope: Scope) -> None:
        self.inputs, self.x, self.y, self.scope = inputs, inputs.x, y, scope
        self._actual = Widened(y)
        self.affines, self.levels = affines, list_levels(scope.dtype)
        self.grids = _list_grids(y.shape)
        own = None if scope.norm is None else NORMS[scope.norm].divisor
        self.standards = [d for d in STANDARDS if own is None or d in MOMENTS or d == own]

    def find_matches(self) -> Fitting:
        """Return what fits at the first level at which anything does, and the default eps that noise hides."""
        best = self._find_first()
        if not best.is_certain or any(match.is_certain and match.has_default_eps for match in best.matches):
            return best
        return best._replace(matches=[*best.matches, *self._find_defaults(best)])

    def _find_defaults(self, best: Fitting) -> list[Match]:
        """Return what has a default eps and as many equal bits, at the first looser level of the precision.

        An eps that was fitted takes up some noise of a kernel: it may fit where the default does not yet.
        """
        least = rank_matches(match for match in best.matches if match.is_certain)[0].equal - BY_LUCK
        for level in self.levels[best.level + 1 :]:
            if level.precision != self.levels[best.level].precision:
                break
            found = [match for pair in self._candidates for match in self._try(*pair, level)]
            found = [m for m in found if m.is_certain and m.has_default_eps and m.equal >= least]
            if found:
                return found
        return []

    def _find_first(self) -> Fitting:
        """Return the matches of the first level at which there are any that are certain, or else any."""
        best = Fitting(len(self.levels), [])
        for number, level in enumerate(self.levels):
            if best.matches and is_half(np.dtype(find_type(level.precision))):
                break  # what it may find is no more certain
            is_open = not best.matches
            found = [m for pair in self._candidates for m in self._try(*pair, level, all_models=is_open)]
            found += self._find_windows(level)
            if not any(match.is_certain for match in found):
                found += [match for pair in self._candidates for match in self._try_one_pass(*pair, level)]
            here = Fitting(number, found)
            if any(match.is_certain and match.is_usual for match in found):
                return here
            if (found and not best.matches) or best.is_certain < here.is_certain:
                best = here
            if best.is_certain and number == best.level + _PATIENCE:
                break
        return best

    def find_slips(self) -> list[Slip]:
        """Return the slips that explain y, the likeliest first; of a sample, that if it explains all."""
        slips = find_slips(filter(None, (self._bound_factors(*pair) for pair in self._candidates)))
        is_whole = self.x.size <= MOST_VALUES
        return slips if is_whole else [slip for slip in slips[:1] if self._bears_out(slip)]

    def _bound_factors(self, sample: Sample, affine: AffineStep) -> Bounded | None:
        """Return the bounds of each group's factor, whatever divides; None where some group has none."""
        bounds = next(filter(None, (self._bound(sample, affine, level) for level in self.levels)), None)
        return None if bounds is None else Bounded(sample.grid, sample.standard, affine, *bounds)

    def _bears_out(self, slip: Slip) -> bool:
        """Whether all groups show a slip that a sample of them shows."""
        bounded = (
            None if sample is None else self._bound_factors(sample, slip.bounded.affine)
            for sample in self._take_all(slip.grid, slip.bounded.standard.divisor)
        )
        return all(b is not None and slip.rank in {other.rank for other in find_slips([b])} for b in bounded)

    def _bears_out_one_pass(self, match: Match, hypothesis: Hypothesis) -> bool:
        """Whether the variances of all groups are of one pass, with an eps that was found for a sample."""
        level, sample = self._choose_loosest(match), hypothesis.sample
        found = (
            () if some is None else self._try_one_pass(some, hypothesis.affine, level)
            for some in self._take_all(sample.grid, sample.standard.divisor)
        )
        return all(any(m.eps_range[0] <= match.eps <= m.eps_range[1] for m in some) for some in found)

    def _bears_out_window(self, match: Match) -> bool:
        """Whether a window that was fitted to the first samples gives all."""
        assert match.window is not None
        level, count = self._choose_loosest(match), max(1, self._count_samples())
        for start in range(0, len(self.x), count):
            x, y = (widen(values[start : start + count]) for values in (self.x, self.y))
            if not gives(match.axes[0], match.window, x, y, self._allow_window(y, level)):
                return False
        return True

    def _take_all(self, grid: Grid, divisor: Divisor) -> Iterator[Sample | None]:
        """Yield all groups, as many at a time as a sample has; None where none of them is finite."""
        step = min(grid.group_count, max(1, MOST_VALUES // grid.group_size))
        for start in range(0, grid.group_count, step):
            first = min(start, grid.group_count - step)  # of fewer there would be less evidence
            yield self._take_sample(grid, np.arange(first, first + step), divisor)

    @cached_property
    def _candidates(self) -> list[tuple[Sample, AffineStep]]:
        return list(self._survive())

    def estimate_matches(self, most: float = math.inf) -> list[Match]:
        """Return what fits with fewer pairs of a gamma and a beta, fitted to the values, than a number."""
        rows = self._count_samples()
        if not rows:
            return []
        x, y = widen(self.x[:rows]), widen(self.y[:rows])
        dtypes = dict.fromkeys((self.scope.dtype, np.dtype(find_type(self.levels[-1].precision))))
        for dtype in dtypes:
            estimated = estimate(x, y, dtype, _list_grids(x.shape), most)
            if found := [match for one in estimated for match in self._describe_estimated(*one)]:
                return found
        return []

    def _describe_estimated(self, hypothesis: Hypothesis, precision: str) -> Iterator[Match]:
        level = next(level for level in reversed(self.levels) if level.precision == precision)
        fine = self._count_fine(
            hypothesis.sample.standard, self._bound(hypothesis.sample, hypothesis.affine, level)
        )
        return self._describe(hypothesis, precision, fine)

    def find_nearest(self) -> Nearest | None:
        """Return the hypothesis that leaves the fewest values unexplained, or the least distance."""
        is_large, grids = self.x.size > MOST_VALUES, self._list_hopeful()
        tried = (
            Hypothesis(sample, affine, model)
            for sample in self._take_samples(FEW_VALUES if is_large else MOST_VALUES, grids)
            for affine, model in itertools.product(self.affines, _PLAIN_MODELS[sample.standard.divisor])
        )
        named = (
            h for h in tried if self.scope.norm is None or any(self._describe(h, self.levels[0].precision))
        )
        hypothesis = min(named, key=lambda h: self._judge(h)[0], default=None)
        if hypothesis is None:
            return None
        sample = hypothesis.sample
        if is_large:
            sample = self._sample(sample.grid, MOST_VALUES, sample.standard.divisor) or sample
            hypothesis = hypothesis._replace(sample=sample)
        models = [
            hypothesis.model._replace(eps_mode=mode, ddof=ddof, low=eps, high=eps)
            for mode, ddof, eps in itertools.product((EpsMode.INSIDE, EpsMode.OUTSIDE), (0, 1), COMMON_EPS)
            if hypothesis.model.divisor in MOMENTS
        ]
        refined = [hypothesis, *(hypothesis._replace(model=model) for model in models)]
        best = min(refined, key=lambda h: self._judge(h)[0])
        _, wrong = self._judge(best)
        match = rank_matches(self._describe(best, self.levels[-1].precision))[0]
        bits, level = self._count_bits(best, wrong), choose_careless(self.scope.dtype)
        if is_large and bits >= CERTAIN:
            strange = find_strange_groups(best, match.eps, self.x, self.y, level, self.scope.dtype)
            return self._list_exceptions(match._replace(bits=bits), strange, level)
        parts = self._mark_wrong(best, level)
        return _make_nearest(match, parts, bits, sum(mask.size for _, mask in parts))

    def _list_hopeful(self) -> list[Grid]:
        """Return the ways of grouping that two of three groups do not refute; all of them, if there is none.

        Of few values, those that split no axis stay: sums in low precision leave no group on its line.
        """
        is_large = self.x.size > MOST_VALUES
        small = [grid for grid in self.grids if grid.group_size <= MOST_VALUES]
        whole = [grid for grid in small if grid.split is None]
        hopeful = [
            grid
            for grid in self.grids
            if grid.group_size > _NEARLY_ON_ANY
            and sum(self._may_be(grid, self.affines, at) for at in (0, grid.group_count // 2, -1)) > 1
        ]
        if is_large:
            return hopeful or whole
        return [*hopeful, *(grid for grid in whole if grid not in hopeful)] if hopeful else small

    def _mark_wrong(self, hypothesis: Hypothesis, level: Level) -> list[tuple[Sample, Selected]]:
        """Return which values of sampled groups are not explained, and of those that are not finite."""
        sample = hypothesis.sample
        parts = [(sample, self._judge(hypothesis, level)[1])]
        if sample.undefined is not None:
            parts.append((sample.undefined, self._find_wrong(sample.undefined, hypothesis.affine)))
        return parts

    def _count_bits(self, hypothesis: Hypothesis, wrong: NDArray[np.bool_]) -> float:
        """Return the bits of what a hypothesis explains, less those of the places and values of the rest."""
        sample = hypothesis.sample
        explained = sample.actual[~wrong & np.isfinite(sample.actual)]
        if sample.standard.centred and sample.standard.group_size == 2:  # −1 and 1 are the order of two values
            return 0.0
        with np.errstate(all="ignore"):
            width = np.maximum(self._tolerate(hypothesis, choose_careless(self.scope.dtype)), 2.0**-1000)
            spread = float(np.std(explained)) if explained.size else 0.0
            bits = np.log2(np.maximum(np.nan_to_num(spread / width, nan=0.0, posinf=0.0), 1.0))
        bits = np.minimum(bits, math.log2(max(1, len(np.unique(explained)))))  # of 0 and 1 each shows one bit
        return float(bits[~wrong].sum() - (bits[wrong] + math.log2(wrong.size)).sum())

    def _judge(
        self, hypothesis: Hypothesis, level: Level | None = None
    ) -> tuple[tuple[float, float], NDArray[np.bool_]]:
        """Return the part of the values that is not explained, the distance of the rest, and which they are."""
        sample = hypothesis.sample
        predicted = hypothesis.approximate(hypothesis.model.low)
        with np.errstate(all="ignore"):
            error = np.abs(sample.actual - predicted)
            neither = np.isnan(sample.actual) & np.isnan(predicted)
            wrong = ~(
                neither | (error <= self._tolerate(hypothesis, level or choose_careless(self.scope.dtype)))
            )
            part = float(wrong.mean())
            explained = error if part >= _MOSTLY else error[~wrong]
            known = explained[~np.isnan(explained)]
            distance = math.sqrt(np.mean(np.minimum(known, 1e100) ** 2)) if known.size else math.inf
        return (min(part, _MOSTLY), distance), wrong

    def confirm(self, matches: Sequence[Match]) -> tuple[list[Match], Nearest | None]:
        """Return those of some matches, the best first, that the whole tensor bears out.

        Where none does, also the best with its exceptions. Of many matches the first few are tried, and none
        whose eps is odder than the best's.
        """
        matches = [match for match in matches if match.is_usual >= matches[0].is_usual]
        for _ in range(_MOST_PASSES):
            kept, strange = self._hold_against_all(matches)
            if kept:
                return kept, None
            if not strange:
                return [], None
            best, numbers = matches[0], next(iter(strange.values()))
            wider = self._fit_again(best, numbers)
            if not wider:
                break
            matches = wider
        return [], self._list_exceptions(best, numbers, self._choose_loosest(best))

    def _hold_against_all(self, matches: Sequence[Match]) -> tuple[list[Match], dict[Any, NDArray[np.intp]]]:
        """Return the matches that explain all groups, and the groups that each hypothesis does not explain."""
        kept: list[Match] = []
        strange: dict[Any, NDArray[np.intp]] = {}
        for match in matches:
            h = match.hypothesis
            if h is None or h.variance is not None:
                is_whole = self._bears_out_window(match) if h is None else self._bears_out_one_pass(match, h)
                kept += [match] * is_whole
                continue
            key = (h.sample.grid, h.affine.way, h.affine.rounds_to, h.model._replace(bits=0.0), match.eps)
            if key not in strange and len(strange) < _MOST_PASSES:
                level = self._choose_loosest(match)
                strange[key] = find_strange_groups(h, match.eps, self.x, self.y, level, self.scope.dtype)
            if key in strange and not strange[key].size:
                kept.append(match)
        return kept, strange

    def _choose_loosest(self, match: Match) -> Level:
        """Return the loosest level of a match's precision."""
        precision = match.precision.split(",", maxsplit=1)[0]
        return [level for level in self.levels if level.precision == precision][-1]

    def _fit_again(self, match: Match, strange: NDArray[np.intp]) -> list[Match]:
        """Return what fits the sample of a match and strange groups with it: they may ask for another eps."""
        h = match.hypothesis
        if h is None or match.affine == ESTIMATED:
            return []
        few = strange[: max(1, MOST_VALUES // h.sample.grid.group_size)]
        chosen = np.union1d(h.sample.chosen, few)
        sample = self._take_sample(h.sample.grid, chosen, h.sample.standard.divisor)
        if sample is None:
            return []
        for level in self.levels:
            found = [m for m in self._try(sample, h.affine, level) if m.is_certain and m.is_usual]
            if found:
                return rank_matches(found)
        return []

    def _list_exceptions(self, match: Match, strange: NDArray[np.intp], level: Level) -> Nearest | None:
        """Return a match with the values of the strange groups that it does not explain."""
        h = match.hypothesis
        assert h is not None
        grid = replace(h.sample.grid, shape=self.x.shape)
        few = strange[: max(1, MOST_VALUES // grid.group_size)]
        sample = self._take_sample(grid, few, h.sample.standard.divisor)
        if sample is None:
            return None
        model = h.model._replace(low=match.eps, high=match.eps)
        parts = self._mark_wrong(h._replace(sample=sample, model=model), level)
        compared = self.x.size if len(few) == len(strange) else sum(mask.size for _, mask in parts)
        return _make_nearest(match, parts, match.bits, compared)

    def _survive(self) -> Iterator[tuple[Sample, AffineStep]]:
        """Yield the hypotheses that a few groups do not refute even at the loosest level."""
        steps = [way for step in self.affines for way in self._list_roundings(step)]
        grids = [grid for grid in self.grids if grid.group_size <= _ON_ANY_LINE or self._may_be(grid, steps)]
        for few in self._take_samples(FEW_VALUES, grids):
            left = [step for step in steps if self._bound(few, step, self.levels[-1])]
            sample = self._sample(few.grid, MOST_VALUES, few.standard.divisor) if left else None
            if sample is not None:
                yield from ((sample, step) for step in left)

    def _list_roundings(self, step: AffineStep) -> list[AffineStep]:
        """Return an affine step of x̂ as it is, and of half precision of an x̂ that was rounded first."""
        rounds = step.scale is not None and is_half(self.scope.dtype)
        return [step, step._replace(rounds_to=self.scope.dtype)] if rounds else [step]

    def _try(
        self, sample: Sample, affine: AffineStep, level: Level, *, all_models: bool = True
    ) -> Iterator[Match]:
        """Yield what divides so, as matches; those with too little evidence only where all are wanted."""
        bounds = self._bound(sample, affine, level)
        if bounds is None:
            return
        fine = self._count_fine(sample.standard, bounds)
        for model in fit_models(sample.standard, *bounds):
            if not (all_models or model.is_likely):
                continue
            yield from self._describe(Hypothesis(sample, affine, model), level.precision, fine)

    def _count_fine(self, standard: Standard, bounds: tuple[Floats, Floats] | None) -> float:
        """Return the bits that tell the groups' statistics from some of half precision, if y is of it."""
        if not is_half(self.scope.dtype):
            return math.inf
        return 0.0 if bounds is None else count_fine(*bounds, standard.size, get_eps(self.scope.dtype))

    def _try_one_pass(self, sample: Sample, affine: AffineStep, level: Level) -> Iterator[Match]:
        bounds = self._bound(sample, affine, level)
        dtype = np.dtype(find_type(level.precision))
        fitted = fit_one_pass(sample.standard, *bounds, dtype) if bounds else None
        if fitted is not None:
            yield from self._describe(Hypothesis(sample, affine, *fitted), level.precision)

    def _find_windows(self, level: Level) -> list[Match]:
        """Return the windows of local response normalization that fit, tried on the first samples."""
        if self.scope.norm not in (None, WINDOWED) or self.x.ndim < 2:
            return []
        count = max(1, self._count_samples())
        x, y = widen(self.x[:count]), widen(self.y[:count])
        windows = find_windows(x, y, self._allow_window(y, level))
        return [describe_window(fitted, y, self.scope, level.precision) for fitted in windows]

    def _allow_window(self, y: Floats, level: Level) -> Floats:
        """Return how far values that windows divide may be off."""
        return level.ulp * measure_unit(y, self.scope.dtype) + level.measure(np.abs(y))

    def _count_samples(self) -> int:
        """Return how many samples, along the first axis, hold no more than `MOST_VALUES` values."""
        return MOST_VALUES // max(1, math.prod(self.x.shape[1:]))

    def _describe(self, hypothesis: Hypothesis, precision: str, fine: float = math.inf) -> Iterator[Match]:
        for match in describe_hypothesis(hypothesis, self.scope, precision):
            if self.scope.norm in (None, match.norm):
                yield match._replace(fine=fine)

    def _may_be(self, grid: Grid, steps: Sequence[AffineStep], group: int | None = None) -> bool:
        """Whether some values of one group, the middle one by default, do not refute it, whatever divides."""
        places = np.linspace(0, grid.group_size - 1, min(SCREENED, grid.group_size)).astype(np.intp)
        chosen = grid.group_count // 2 if group is None else group % grid.group_count
        index = grid.locate_values(chosen, places)
        x, y = widen(self.x[index]), widen(self.y[index])
        level, dtype = self.levels[-1], self.scope.dtype
        before = level.measure(np.full(x.shape, 1.0 + measure_offset(x)))
        for step in steps:
            placed = step.map(lambda values: np.broadcast_to(values, self.x.shape)[index])
            slack = level.ulp * measure_unit(y, dtype)
            if placed.shift is not None:
                slack = slack + level.measure(np.abs(placed.shift))
            if lie_on_line(x, y, placed, slack, before):
                return True
        return False

    def _take_samples(self, most: int, grids: Sequence[Grid]) -> Iterator[Sample]:
        """Yield a sample of each of some ways of grouping by each standard, as far as there is one."""
        samples = (self._sample(grid, most, d) for grid, d in itertools.product(grids, self.standards))
        return (sample for sample in samples if sample is not None)

    def _sample(self, grid: Grid, most: int, divisor: Divisor) -> Sample | None:
        """Return some groups of about so many values, or None if none is finite."""
        return self._take_sample(grid, _choose_groups(grid, most), divisor)

    def _take_sample(self, grid: Grid, chosen: NDArray[np.intp], divisor: Divisor) -> Sample | None:
        found = self.inputs.standardize(grid, chosen, divisor)
        if found is None:
            return None
        actual, undefined = widen(self._actual.take(grid, found.groups)), None
        if found.others is not None and found.undefined is not None:
            others = widen(self._actual.take(grid, found.others))
            undefined = Sample(grid, found.others, found.undefined, others)
        return Sample(grid, found.groups, found.standard, actual, undefined)

    def _find_wrong(self, undefined: Sample, affine: AffineStep) -> Selected:
        """Return which values of groups with something infinite or NaN are not what any factor leaves of it."""
        actual, level = undefined.actual, self.levels[-1]
        expected = undefined.place(affine).apply(undefined.standard.values)
        is_finite = np.isfinite(expected)
        size = np.abs(np.where(is_finite, expected, 0.0))
        slack = level.ulp * measure_unit(size, self.scope.dtype) + level.measure(1.0 + size)
        wrong: Selected = np.where(is_finite, ~(np.abs(actual - expected) <= slack), np.isfinite(actual))
        return wrong

    def _allow(self, sample: Sample, placed: AffineStep, level: Level) -> Floats:
        """Return how far the affine step of the sampled values may be off."""
        actual = np.where(np.isfinite(sample.actual), sample.actual, 0.0)
        slack = level.ulp * measure_unit(actual, self.scope.dtype)
        return slack if placed.shift is None else slack + level.measure(np.abs(placed.shift))

    def _tolerate(self, hypothesis: Hypothesis, level: Level) -> Floats:
        """Return how far values may be off at a level."""
        sample, eps = hypothesis.sample, hypothesis.model.low
        placed, noise = sample.place(hypothesis.affine), measure_noise(sample.standard, level)
        with np.errstate(all="ignore"):
            before = noise.limit(hypothesis.measure_factors(eps), hypothesis.standardize(eps))
            scaled = before if placed.scale is None else before * np.abs(placed.scale)
        return self._allow(sample, placed, level) + scaled

    def _bound(self, sample: Sample, affine: AffineStep, level: Level) -> tuple[Floats, Floats] | None:
        if sample.undefined is not None and self._find_wrong(sample.undefined, affine).any():
            return None
        placed, standard = sample.place(affine), sample.standard
        targets, slack = placed.undo(sample.actual, self._allow(sample, placed, level), np.zeros(1))
        if (missing := standard.missing) is not None:
            targets, slack = np.where(missing, 0.0, targets), np.where(missing, np.inf, slack)
        return bound_factors(standard, targets, slack, measure_noise(standard, level))


def _list_grids(shape: tuple[int, ...]) -> list[Grid]:
    """Return the ways of grouping that are tried."""
    large = math.prod(shape) > MOST_VALUES  # there, the first axis is the batch and no channel
    return [
        grid
        for grid in enumerate_grids(shape)
        if grid.group_size <= LARGEST_GROUP and not (large and grid.split and grid.split.axis == 0)
    ]


def _make_nearest(match: Match, parts: list[tuple[Sample, Selected]], bits: float, compared: int) -> Nearest:
    count = sum(int(mask.sum()) for _, mask in parts)
    return Nearest(match, count, compared, min(_locate_first(*part) for part in parts), bits)


def _locate_first(sample: Sample, wrong: NDArray[np.bool_]) -> tuple[int, ...]:
    """Return the index in the tensor of the first value that is wrong; of none, the last."""
    rows, columns = np.nonzero(wrong)
    shape = sample.grid.shape
    flat = np.ravel_multi_index(sample.grid.locate_values(sample.chosen[rows], columns), shape)
    return tuple(int(i) for i in np.unravel_index(flat.min(initial=math.prod(shape) - 1), shape))


def _choose_groups(grid: Grid, most: int) -> NDArray[np.intp]:
    """Return the numbers of groups of about so many values, spread evenly."""
    count = min(max(1, most // grid.group_size), grid.group_count)
    return np.unique(np.linspace(0, grid.group_count - 1, count).astype(np.intp))
