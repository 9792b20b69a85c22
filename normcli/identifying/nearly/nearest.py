"""What comes nearest to a tensor where nothing fits, and which values it does not explain."""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from normcli.identifying.maps.line_fit import fit_lines
from normcli.identifying.models.error_bounds import Level, choose_careless
from normcli.identifying.models.evidence import COMMON_EPS, LENGTH_EPS, Model
from normcli.identifying.models.standards import MOMENTS, STANDARDS
from normcli.identifying.models.weight import CERTAIN
from normcli.identifying.nearly.strange_groups import find_strange_groups
from normcli.identifying.nearly.trimmed_estimate import estimate_trimmed
from normcli.identifying.search.affine_step import ESTIMATED, choose_usual
from normcli.identifying.search.hypothesis import Hypothesis, Sample
from normcli.identifying.search.match import rank_matches
from normcli.identifying.search.samples import FEW_VALUES, MOST_VALUES, Samples
from normcli.identifying.search.screen import ON_ANY_LINE
from normcli.norms.divisors import LENGTH, ROOT_MEAN_SQUARE
from normcli.norms.rules import EpsMode
from normcli.norms.table import NORMS
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.dtypes import Selected
    from normcli.identifying.search.affine_step import AffineStep
    from normcli.identifying.search.match import Match
    from normcli.norms.grid import Grid

_NEARLY_ON_ANY = 8
"""Groups of so few values lie on a line by luck, where thousands of them are looked at."""

_MOST_TRIED = 32
"""The most hypotheses that are compared with more values: those that explain most of a few."""

_MOSTLY = 0.5
"""A hypothesis that leaves more than this part of the values unexplained explains nothing."""

_FEW_WRONG = 2.0**-8
"""So small a part of the values is an exception, however little it is off."""

_BARELY = 8.0
"""Values that are no more times further off than is allowed show another arithmetic."""

_NEAR_STATISTIC = 0.25
"""A mean (in deviations) and a deviation (relatively) that are no further off count as the group's own."""

_PLAIN_MODELS = {
    **{divisor: [Model(divisor, EpsMode.INSIDE, low=1e-5, high=1e-5)] for divisor in MOMENTS},
    **{divisor: [Model(divisor, EpsMode.FLOOR)] for divisor in STANDARDS if divisor not in MOMENTS},
}
_PLAIN_MODELS[ROOT_MEAN_SQUARE] += [
    Model(LENGTH, EpsMode.FLOOR, p=p, low=LENGTH_EPS, high=LENGTH_EPS) for p in (2.0, 1.0, math.inf)
]
"""The affine steps tried for each standard of a way of grouping if nothing fits."""


class Nearest(NamedTuple):
    """The norm that comes nearest if none fits.

    Parameters
    ----------
    match : Match
    mismatches, compared : int
        The values that it does not explain, and the values compared.
    first : tuple of int
        The index of the first value that it does not explain.
    bits : float
        The evidence of the values that it explains, less the bits to state the others and their places.
    others : tuple of Match
        Norms that leave as few unexplained.
    shared : tuple of (int, int)
        The axes along which all of several such values have one index, and that index.
    """

    match: Match
    mismatches: int
    compared: int
    first: tuple[int, ...]
    bits: float
    others: tuple[Match, ...] = ()
    shared: tuple[tuple[int, int], ...] = ()


class Nearness:
    """How near hypotheses come to an actual tensor.

    Parameters
    ----------
    samples : Samples
    """

    def __init__(self, samples: Samples) -> None:
        self.samples, self._careless = samples, choose_careless(samples.scope.dtype)

    def find_nearest(self) -> Nearest | None:
        """Return the hypothesis that leaves the fewest values unexplained, or the least distance."""
        samples, level = self.samples, self.samples.levels[-1]
        tried = (
            Hypothesis(sample, affine, model)
            for grid, steps in self._list_hopeful()
            for sample in samples.take_samples(grid, FEW_VALUES)
            for affine, model in itertools.product(steps, _PLAIN_MODELS[sample.standard.divisor])
        )
        named = (h for h in tried if samples.scope.norm is None or any(samples.describe(h, level)))
        judged = ((self._judge(h)[0], n, h) for n, h in enumerate(named))
        few = heapq.nsmallest(_MOST_TRIED, judged)  # no more samples are kept than this
        alike = self._choose(self._take_more(h) for *_, h in few)
        if not alike:
            return None
        hypothesis = alike[0]
        models = [
            hypothesis.model._replace(eps_mode=mode, ddof=ddof, low=eps, high=eps)
            for mode, ddof, eps in itertools.product((EpsMode.INSIDE, EpsMode.OUTSIDE), (0, 1), COMMON_EPS)
            if hypothesis.model.divisor in MOMENTS
        ]
        refined = [hypothesis, *(hypothesis._replace(model=model) for model in models)]
        return self._tell(refined)

    def find_estimated(self, most: float) -> Nearest | None:
        """Return what explains all but a few values with fewer pairs of a gamma and a beta than a number."""
        level = self.samples.levels[-1]
        tried = [h for h in estimate_trimmed(self.samples, most) if any(self.samples.describe(h, level))]
        nearest = self._tell(tried)
        return nearest if nearest is not None and nearest.bits >= CERTAIN else None

    def _choose(self, hypotheses: Iterable[Hypothesis]) -> list[Hypothesis]:
        """Return the hypotheses with the fewest unexplained values; if those are most values, the nearest."""
        best, alike = (math.inf, math.inf), list[Hypothesis]()
        for hypothesis in hypotheses:  # no more of them are kept than are as good
            part, distance = self._judge(hypothesis)[0]
            rank = part, 0.0 if part < _MOSTLY else distance
            if rank < best:
                best, alike = rank, []
            if rank == best:
                alike.append(hypothesis)
        return alike

    def _tell(self, hypotheses: list[Hypothesis]) -> Nearest | None:
        """Return the first that leaves the fewest values unexplained, with those and what does as well."""
        alike = self._choose(hypotheses)
        if not alike:
            return None
        level = self._choose_level(alike[0])
        match, *others = rank_matches(self._describe_alike(alike, level))
        best = match.hypothesis
        assert best is not None  # of those that were described
        others = [other for other in others if other.by_default >= match.by_default]
        wrong = self._judge(best)[1]
        bits = 0.0 if self._is_of_other_arithmetic(best, wrong) else self._count_bits(best, wrong)
        if self.samples.x.size > MOST_VALUES and bits >= CERTAIN:
            x, y, dtype = self.samples.x, self.samples.y, self.samples.scope.dtype
            strange = find_strange_groups(best, match.eps, x, y, level, dtype)
            nearest = self.list_exceptions(match._replace(bits=bits), strange, level)
            return None if nearest is None else nearest._replace(others=tuple(others))
        parts = self._mark_wrong(best, level)
        return _make_nearest(match, parts, bits, sum(mask.size for _, mask in parts), tuple(others))

    def _describe_alike(self, alike: list[Hypothesis], level: Level) -> Iterator[Match]:
        """Yield each norm and place of eps once, by the first hypothesis, with all eps that do as well."""
        every: dict[object, list[Hypothesis]] = {}
        for hypothesis in alike:
            model = hypothesis.model._replace(low=0.0, high=0.0)
            every.setdefault((hypothesis.sample.grid, hypothesis.affine.way, model), []).append(hypothesis)
        for same in every.values():
            ends = [hypothesis.model.low for hypothesis in same]
            for match in self.samples.describe(same[0], level):
                if NORMS[match.norm].eps is None and same[0].model.eps_mode is EpsMode.FLOOR:  # it has none
                    yield match._replace(eps=0.0, eps_range=(0.0, 0.0))
                else:
                    yield match._replace(eps_range=(min(ends), max(ends)))

    def _take_more(self, hypothesis: Hypothesis) -> Hypothesis:
        """Return a hypothesis compared with a whole sample, not with a few values."""
        grid, divisor = hypothesis.sample.grid, hypothesis.sample.standard.divisor
        sample = self.samples.take_some(grid, MOST_VALUES, divisor) or hypothesis.sample
        return hypothesis._replace(sample=sample)

    def _list_hopeful(self) -> Iterator[tuple[Grid, Sequence[AffineStep]]]:
        """Yield ways of grouping that no value refutes, with all affine steps; then others, with usual steps.

        The others have small groups and split no axis: sums in low precision can move every group off its line.
        """
        usual = choose_usual(self.samples.affines)
        for grid in self.samples.grids:
            if grid.group_size > _NEARLY_ON_ANY and self.samples.screen.may_mostly_be(grid):
                yield grid, self.samples.affines
            elif grid.split is None and self.samples.x.size <= MOST_VALUES:
                yield grid, usual

    def _mark_wrong(self, hypothesis: Hypothesis, level: Level) -> list[tuple[Sample, Selected]]:
        """Return which values are not explained, of sampled groups and of groups that are not finite."""
        sample = hypothesis.sample
        parts = [(sample, self._judge(hypothesis, level)[1])]
        if sample.undefined is not None:
            parts.append((sample.undefined, self.samples.find_wrong(sample.undefined, hypothesis.affine)))
        return parts

    def _count_bits(self, hypothesis: Hypothesis, wrong: NDArray[np.bool_]) -> float:
        """Return the bits of the values that a hypothesis explains, less those to state the rest."""
        sample = hypothesis.sample
        explained = sample.actual[~wrong & np.isfinite(sample.actual)]
        if sample.standard.centred and sample.standard.group_size == 2:  # −1 and 1 are the order of two values
            return 0.0
        with np.errstate(all="ignore"):
            level = self._choose_level(hypothesis)
            width = np.maximum(self.samples.tolerate(hypothesis, level), 2.0**-1000)
            spread = float(np.std(explained)) if explained.size else 0.0
            bits = np.log2(np.maximum(np.nan_to_num(spread / width, nan=0.0, posinf=0.0), 1.0))
        bits = np.minimum(bits, math.log2(max(1, len(np.unique(explained)))))  # of 0 and 1 each shows one bit
        affine = hypothesis.affine
        fitted = [p.size for p in (affine.scale, affine.shift) if p is not None and affine.way == ESTIMATED]
        taken = sum(fitted) * float(bits.max(initial=0.0))
        return float(bits[~wrong].sum() - (bits[wrong] + math.log2(wrong.size)).sum() - taken)

    def _is_of_other_arithmetic(self, hypothesis: Hypothesis, wrong: Selected) -> bool:
        """Whether unexplained values are a sign of another arithmetic, not exceptions.

        Then most are barely beyond their bounds, or lie on lines of statistics near the exact ones. Spoilt
        values are off by much more, and lie on no such line.
        """
        if wrong.mean() <= _FEW_WRONG:
            return False
        sample, model = hypothesis.sample, hypothesis.model
        level, groups = self._choose_level(hypothesis), np.flatnonzero(wrong.any(axis=1))
        with np.errstate(all="ignore"):
            allowed, predicted = self.samples.tolerate(hypothesis, level), hypothesis.approximate(model.low)
            barely = np.abs(sample.actual - predicted) <= _BARELY * allowed
            if 2 * np.count_nonzero(barely & wrong) > np.count_nonzero(wrong):
                return True
            placed = sample.place(hypothesis.affine)
            targets, slack = placed.undo(sample.actual, allowed, np.zeros(1))
            expected, theirs, slack = (
                values[groups] for values in (hypothesis.standardize(model.low), targets, slack)
            )
            lines = fit_lines(expected, theirs, (0,), through_zero=not sample.standard.centred)
            near = (np.abs(lines.scale - 1.0) <= _NEAR_STATISTIC) & (np.abs(lines.shift) <= _NEAR_STATISTIC)
            on_line = np.abs(theirs - lines.apply(expected)) <= _BARELY * slack
            copied = sample.actual[groups] == sample.standard.rows[groups]
            strange = near[:, 0] & on_line.all(axis=1) & ~copied.all(axis=1)
        several = len(groups) > 1 and sample.standard.group_size > ON_ANY_LINE
        return bool(several and 2 * np.count_nonzero(strange) > len(groups))

    def _choose_level(self, hypothesis: Hypothesis) -> Level:
        """Return how careless a kernel may be; a gamma that was fitted is known no better than y."""
        return self.samples.levels[-1] if hypothesis.affine.way == ESTIMATED else self._careless

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
                neither | (error <= self.samples.tolerate(hypothesis, level or self._choose_level(hypothesis)))
            )
            part = float(wrong.mean())
            explained = error if part >= _MOSTLY else error[~wrong]
            known = explained[~np.isnan(explained)]
            distance = math.sqrt(np.mean(np.minimum(known, 1e100) ** 2)) if known.size else math.inf
        return (min(part, _MOSTLY), distance), wrong

    def list_exceptions(self, match: Match, strange: NDArray[np.intp], level: Level) -> Nearest | None:
        """Return a match with the values of the strange groups that it does not explain."""
        h = match.hypothesis
        assert h is not None
        grid = replace(h.sample.grid, shape=self.samples.x.shape)
        few = strange[: max(1, MOST_VALUES // grid.group_size)]
        sample = self.samples.take(grid, few, h.sample.standard.divisor)
        if sample is None:
            return None
        model = h.model._replace(low=match.eps, high=match.eps)
        parts = self._mark_wrong(h._replace(sample=sample, model=model), level)
        compared = self.samples.x.size if len(few) == len(strange) else sum(mask.size for _, mask in parts)
        return _make_nearest(match, parts, match.bits, compared)


def _make_nearest(
    match: Match,
    parts: list[tuple[Sample, Selected]],
    bits: float,
    compared: int,
    others: tuple[Match, ...] = (),
) -> Nearest:
    places = np.concatenate([_locate(*part) for part in parts], axis=1)
    first = places[:, np.lexsort(places[::-1])[:1]].reshape(-1) if places.size else np.zeros(len(places), int)
    several = places.shape[1] > 1
    same = [several and bool(np.all(along == along[0])) for along in places]
    shape = parts[0][0].grid.shape
    shared = tuple((axis, int(first[axis])) for axis, is_same in enumerate(same) if is_same and shape[axis] > 1)
    return Nearest(match, places.shape[1], compared, tuple(map(int, first)), bits, others, shared)


def _locate(sample: Sample, wrong: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the indices in the tensor of the values that are wrong, shape (rank, values)."""
    rows, columns = np.nonzero(wrong)
    return np.stack(sample.grid.locate_values(sample.chosen[rows], columns)).reshape(len(sample.grid.shape), -1)
