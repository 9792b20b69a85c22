"""The search for the norm that made a tensor: hypotheses are tried on few groups first, since most fail."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.half_precision import may_be_of_float32
from normcli.dtypes import find_type, is_half
from normcli.identifying.models.known_maps import has_place
from normcli.identifying.models.matrix_model import find_matrices
from normcli.identifying.models.weight import CERTAIN
from normcli.identifying.models.window_model import WINDOWED, find_sides, find_windows
from normcli.identifying.sampling import MOST_SAMPLED, choose_groups, choose_lengths, cut_finite, widen
from normcli.identifying.search.affine_estimate import estimate
from normcli.identifying.search.groups import does_alike
from normcli.identifying.search.match import BY_LUCK, Match, rank_matches
from normcli.identifying.search.match_names import try_plan
from normcli.identifying.search.samples import FEW_VALUES, Samples, list_grids
from normcli.identifying.search.screen import ON_ANY_LINE, find_possible
from normcli.norms.conventions import list_frameworks
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.table import OF_MATRICES
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.identifying.models.error_bounds import Level
    from normcli.identifying.models.weight import FittedPlan
    from normcli.identifying.models.window_model import Side
    from normcli.identifying.search.affine_step import AffineStep
    from normcli.identifying.search.groups import Hypothesis, Sample
    from normcli.identifying.search.match import Scope
    from normcli.norms.plan import Plan


_LEAST_RANK = 3
"""Only of tensors with at least this many axes is a part of one index of the first axis taken."""

_PATIENCE = 2
"""The number of levels after the first certain match at which a match with a usual eps is still looked for."""

_MOSTLY, _NEARER = 0.5, 2.0**-6
"""A fitted gamma is preferred to norms that make few values exact if it makes more than half so, and its
largest error is at most this part of theirs."""

_MOST_ALIKE = 16
"""The most hypotheses for which others that do the same are looked for."""

_MOST_DOUBTFUL = 256
"""The most doubtful hypotheses that are examined: thousands may fit, as with constant groups."""


class Fitting(NamedTuple):
    """The matches at one level: a precision of the kernel's arithmetic, and the bounds of its errors.

    Parameters
    ----------
    level : int
        The index of the level in `Samples.levels`; the length of these if there is no match.
    matches : list of Match
    """

    level: int
    matches: list[Match]

    @property
    def is_certain(self) -> bool:
        """Whether any match is certain."""
        return any(match.is_certain for match in self.matches)


class Search:
    """The search for the matches of one input and one actual tensor with the same order of axes.

    Parameters
    ----------
    samples : Samples
    """

    def __init__(self, samples: Samples) -> None:
        self.samples = samples

    def find_matches(self) -> Fitting:
        """Return the matches of the strictest level with a certain match; without any, with a doubtful one.

        A level up to 2 looser is taken instead, if it has a certain match with a usual eps and the stricter one
        has none. If no certain match has a default eps, such matches are added: from the first looser level of
        the same precision that has some with nearly as many exact values. `matches` is empty if nothing fits.
        """
        best = self._find_first()
        of_eps = (match for match in best.matches if match.is_certain and match.window is None)
        if not best.is_certain or any(match.has_default_eps for match in of_eps):
            return best
        return best._replace(matches=[*self._find_defaults(best), *best.matches])

    def _find_defaults(self, best: Fitting) -> list[Match]:
        """Return certain matches with a default eps, of the first level looser than `best` that has any.

        The level has the precision of `best`, and the matches have at most 10 % fewer exact values than its
        best. A fitted eps makes up for some rounding errors of a kernel, and so may fit at a stricter level
        than the true default. Empty without such matches.
        """
        least = rank_matches(match for match in best.matches if match.is_certain)[0].equal - BY_LUCK
        for level in self.samples.levels[best.level + 1 :]:
            if level.precision != self.samples.levels[best.level].precision:
                break
            found = [match for pair in self._candidates for match in self.samples.match(*pair, level)]
            found = [
                m
                for m in found
                if m.is_certain and m.equal >= least and (m.has_default_eps or not m.eps_range[0])
            ]
            if found:
                return found
        return []

    def _find_first(self) -> Fitting:
        """Return the matches of the strictest level with a certain match; without any, with a doubtful one.

        A level with a certain match of a usual eps is preferred, if it is at most 2 levels looser.
        """
        best, doubted = Fitting(len(self.samples.levels), []), False
        for number, level in enumerate(self.samples.levels):
            if best.matches and is_half(np.dtype(find_type(level.precision))):
                break  # what it may find is no more certain
            is_open = all(match.is_odd for match in best.matches)
            found = [
                *self._match_all(level, doubtful_too=is_open),
                *([] if doubted else self._find_windows(level)),  # which a looser level shows less of
                *self._find_matrices(level),
            ]
            doubted = doubted or any(match.window is not None and not match.is_certain for match in found)
            here = Fitting(number, found)
            if any(match.is_certain and match.is_usual for match in found):
                return here
            if (found and all(match.is_odd for match in best.matches)) or best.is_certain < here.is_certain:
                best = here
            if best.is_certain and number == best.level + _PATIENCE:
                break
        return best

    def _match_all(self, level: Level, *, doubtful_too: bool) -> Iterator[Match]:
        """Yield matches of the hypotheses that fit at a level and have enough evidence.

        If `doubtful_too`, the matches of the 256 best hypotheses with less evidence are yielded too.
        """
        fitted: list[Hypothesis] = []
        left = []
        for pair in self._candidates:
            bounds = self.samples.bound(*pair, level)
            fitted += self.samples.fit(*pair, level, bounds)
            if bounds is None or np.any(bounds[0] > 0.0):  # else y shows no divisor, at looser levels neither
                left.append(pair)
        self._candidates = left
        doubtful = [hypothesis for hypothesis in fitted if not hypothesis.model.is_likely]
        doubtful.sort(key=lambda one: (one.model.is_odd, -one.model.bits))  # plausible eps, then most evidence
        kept = set(map(id, doubtful[:_MOST_DOUBTFUL] if doubtful_too else ()))
        shown = [one for one in fitted if one.model.is_likely or id(one) in kept]
        for hypothesis in (*shown, *self._list_alike(shown)):
            yield from self.samples.describe(hypothesis, level)

    def _list_alike(self, shown: Sequence[Hypothesis]) -> Iterator[Hypothesis]:
        """Yield hypotheses with other groups that do the same to every value of x as a shown one, as of copies.

        Their bounds of errors, or their bits, may be others. Nothing for a sample of a large tensor.
        """
        likely = [h for h in shown if h.model.ddof == 0 and h.model.p is None and not h.model.is_odd]
        told = {(h.sample.grid, id(h.affine), h.model.divisor): h.model.bits for h in likely}
        for h in likely[:_MOST_ALIKE] if self.samples.x.size <= MOST_SAMPLED else ():
            for sample, step in self._survivors:
                key = sample.grid, id(step), h.model.divisor
                is_less = told.get(key, 0.0) < CERTAIN <= h.model.bits or key not in told
                if step is h.affine and is_less and does_alike(sample, h.sample):
                    told[key] = h.model.bits
                    yield h._replace(sample=sample)

    @cached_property
    def _survivors(self) -> list[tuple[Sample, AffineStep]]:
        return list(self._survive())

    @cached_property
    def _candidates(self) -> list[tuple[Sample, AffineStep]]:
        return self._survivors

    def estimate_matches(self, most: float = math.inf) -> list[Match]:
        """Return matches with gamma and beta fitted to the values, fewer than `most` pairs; empty if none fits.

        Of a large tensor, about the first 2¹⁷ values are fitted, and of one with infinity or NaN the other
        slices of an axis. Norms are then left out if they reduce an axis of which only a part is read, or if
        gamma and beta vary along such an axis.
        """
        shape = lengths = self.samples.x.shape
        for axis in (0, 1) if len(shape) >= _LEAST_RANK else (0,):
            lengths = choose_lengths(lengths, MOST_SAMPLED, (axis,), 1)
        if not 0 < math.prod(lengths) <= MOST_SAMPLED:
            return []
        x, y = self.samples.take_first(lengths)
        cut = {axis for axis in range(1, x.ndim) if x.shape[axis] < shape[axis]}
        loosest = np.dtype(find_type(self.samples.levels[-1].precision))
        dtypes = dict.fromkeys((self.samples.scope.dtype, loosest))
        for (some, theirs, left_out), dtype in itertools.product(cut_finite(x, y), dtypes):
            grids = [grid for grid in list_grids(some.shape) if cut.union(left_out).isdisjoint(grid.axes)]
            found = [
                match
                for hypothesis, precision in estimate(some, theirs, dtype, grids, most)
                if has_place(hypothesis.affine.scale, shape)
                if not left_out or self._is_right_beside(hypothesis)
                for match in self._describe_estimated(hypothesis, precision)
            ]
            if found:
                return found
        return []

    def _is_right_beside(self, hypothesis: Hypothesis) -> bool:
        """Whether y holds to a hypothesis of finite groups in groups with infinity or NaN in x, too."""
        grid = replace(hypothesis.sample.grid, shape=self.samples.x.shape)
        chosen = choose_groups(grid, MOST_SAMPLED)
        sample = self.samples.take(grid, chosen, hypothesis.model.divisor)
        odd = None if sample is None else sample.undefined
        return odd is None or not self.samples.find_wrong(odd, hypothesis.affine).any()

    def find_exact(self, fitting: Sequence[Match]) -> list[Match]:
        """Return the matches with one gamma and beta that make most values exact, if `fitting` make few so.

        Far off centre, bounds of rounding hide a factor. Empty without such matches, or if nothing fits.
        """
        if not fitting or any(match.equal >= BY_LUCK for match in fitting):
            return []
        most = _NEARER * min(match.max_abs for match in fitting)
        fitted = (one for one in self.estimate_matches(2.0) if one.equal > _MOSTLY and one.max_abs <= most)
        return rank_matches(one for one in fitted if one.is_certain)

    def _describe_estimated(self, hypothesis: Hypothesis, precision: str) -> Iterator[Match]:
        level = next(level for level in reversed(self.samples.levels) if level.precision == precision)
        bounds = self.samples.bound(hypothesis.sample, hypothesis.affine, level)
        fine = self.samples.count_fine(hypothesis.sample.standard, bounds)
        return self.samples.describe(hypothesis._replace(model=hypothesis.model._replace(fine=fine)), level)

    def _survive(self) -> Iterator[tuple[Sample, AffineStep]]:
        """Yield each sample and affine step that tests of a few groups at the loosest level do not refute."""
        x, y, scope, steps = self.samples.x, self.samples.y, self.samples.scope, self.samples.steps
        loosest = self.samples.levels[-1]
        for grid in self.samples.grids:
            shown = grid.group_size > ON_ANY_LINE
            possible = find_possible(x, y, grid, steps, scope.dtype) if shown else steps
            few, most = (choose_groups(grid, values) for values in (FEW_VALUES, MOST_SAMPLED))
            for tried in self.samples.take_each(grid, few, self.samples.standards) if possible else ():
                some = [step for step in possible if self.samples.bound(tried, step, loosest)]
                sample = self.samples.take(grid, most, tried.standard.divisor) if some else None
                if sample is not None:
                    yield from ((sample, step) for step in some if self.samples.bound(sample, step, loosest))

    def _find_windows(self, level: Level) -> list[Match]:
        """Return matches of the windows of local response normalization that fit the first part of y."""
        if not self._sides:
            return []
        x, y = self._take_first()
        windows = find_windows(x, y, level.allow(y, self.samples.scope.dtype, np.abs(y)), self._sides)
        return [describe_fitted(fitted, y, self.samples.scope, level.precision) for fitted in windows]

    @cached_property
    def _sides(self) -> list[Side]:
        """The windows that a few values leave possible at the loosest level."""
        if self.samples.scope.norm not in (None, WINDOWED) or self.samples.x.ndim < 2:
            return []
        x, y = self._take_first()
        return find_sides(x, y, self.samples.levels[-1].allow(y, self.samples.scope.dtype, np.abs(y)))

    def _take_first(self) -> tuple[Floats, Floats]:
        """Return the first samples of x and y (indices of the first axis), in float64."""
        return self.samples.take_first(choose_lengths(self.samples.x.shape, MOST_SAMPLED, (0,), 1))

    def _find_matrices(self, level: Level) -> list[Match]:
        """Return matches of spectral normalization of the whole tensor; empty if none fits.

        Empty also for vectors, and above 2¹⁷ values, as no sample shows the largest singular value.
        """
        x, scope = self.samples.x, self.samples.scope
        if scope.norm not in (None, OF_MATRICES) or x.ndim < 2 or x.size > MOST_SAMPLED:
            return []
        y = widen(self.samples.y)
        matrices = find_matrices(
            widen(x), y, level.allow(y, self.samples.scope.dtype, np.abs(y)), scope.dtype, scope.start
        )
        return [describe_fitted(fitted, y, scope, level.precision) for fitted in matrices]


def describe_fitted(fitted: FittedPlan, actual: Floats, scope: Scope, precision: str) -> Match:
    """Return the match of a window of local response normalization, or of a matrix's spectral normalization.

    Parameters
    ----------
    fitted : FittedPlan
    actual : ndarray
        The values of y to which the plan was fitted.
    scope : Scope
    precision : str
        The dtype of the kernel's arithmetic.
    """
    plan, exact, bits, steps = fitted
    like, users = _find_users(plan)
    by_default = plan.spec.rows == make_plan(Request(plan.norm.name), actual.shape, actual.dtype).spec.rows
    if plan.grid.reach is not None:
        by_default = users > 0 or not _covers_all(plan)
    return Match.of_plan(
        plan,
        actual,
        exact,
        scope.dtype,
        precision=precision,
        like=like,
        order=scope.order,
        steps=steps,
        by_default=by_default,
        users=users,
        bits=bits,
    )


def _covers_all(plan: Plan) -> bool:
    """Whether a window holds every channel of each value, so that its size does not show."""
    (axis,), reach = plan.grid.axes, plan.grid.reach
    return reach is not None and min(reach.before, reach.after) >= plan.grid.shape[axis] - 1


def _find_users(plan: Plan) -> tuple[tuple[str, ...], int]:
    """Return the frameworks that have a plan's window, and how many of these have its k and exponent too."""
    like, users, window = [], 0, plan.spec.window
    if window is None:
        return (), 0
    for framework in list_frameworks(WINDOWED):
        request = Request(WINDOWED, like=framework, size=window.size, axes=plan.grid.axes)
        theirs = try_plan(request, plan.grid.shape)
        if theirs is not None and theirs.grid.reach == plan.grid.reach:
            own = theirs.spec.window
            is_own = own is not None and (own.k, own.exponent) == (window.k, window.exponent)
            users += is_own
            if is_own or not _covers_all(plan):  # constants are often the user's, and alpha is seldom seen well
                like.append(framework)
    return tuple(like), users


def drop_shorter(matches: list[Match], x: NDArray[Any], y: NDArray[Any]) -> list[Match]:
    """Return matches without those that need a float32 kernel, if x and y are float64 and show no float32.

    Such a match is kept if no value of y is further off than 2⁻¹⁸ of the largest.
    """
    if y.dtype != np.float64 or may_be_of_float32(x, y):
        return matches
    largest = float(np.max(np.abs(y), initial=0.0, where=np.isfinite(y)))
    return [match for match in matches if match.max_abs <= _MOST_OFF * largest]


_MOST_OFF = 2.0**-18
"""The largest error that float32 constants cause in a kernel of float64, as a part of the largest of y."""
