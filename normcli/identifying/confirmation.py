"""Matches of a sample, tested on all of a large tensor."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.identifying.faults.claim import Claim
from normcli.identifying.faults.tables.parts import OF_REGIONS
from normcli.identifying.faults.wrong_region import tell_places
from normcli.identifying.models.window_model import gives
from normcli.identifying.search.affine_step import ESTIMATED
from normcli.identifying.search.groups import widen
from normcli.identifying.search.match import rank_matches
from normcli.identifying.search.match_names import try_plan
from normcli.identifying.search.samples import MOST_VALUES, Samples
from normcli.identifying.strange_groups import find_strange_groups

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from normcli.identifying.search.match import Match

_RARE, _FAR = 20, 8.0
"""At most one value in so many is an exception; and by how many times what is allowed most of them are off."""

_MOST_PASSES = 3
"""Passes over a large tensor that confirm what fits a sample of it."""


class Confirmation:
    """Findings in a sample of a large tensor, compared with all of its values.

    Parameters
    ----------
    samples : Samples
    """

    def __init__(self, samples: Samples) -> None:
        self.samples = samples

    def confirm(self, matches: Sequence[Match]) -> tuple[tuple[Match, ...], tuple[Claim, ...]]:
        """Return the matches that hold for the whole tensor, the best first.

        If none does, return also that the best holds but for some values. Only the first few matches are
        tried, and none whose eps is odder than the best's.
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
        """Return the claim that a match holds but for values of strange groups; none where they are many."""
        h = match.hypothesis
        plan = try_plan(match.make_request(), self.samples.x.shape)
        if h is None or plan is None:
            return ()
        grid = replace(h.sample.grid, shape=self.samples.x.shape)
        few = strange[: max(1, MOST_VALUES // grid.group_size)]
        sample = self.samples.take(grid, few, h.sample.standard.divisor)
        if sample is None:
            return ()
        level = self.samples.choose_loosest(match)
        h = h._replace(sample=sample, model=h.model._replace(low=match.eps, high=match.eps))
        with np.errstate(all="ignore"):
            expected = h.approximate(match.eps)
            off = np.abs(sample.actual - expected) / self.samples.tolerate(h, level)
        neither = np.isnan(sample.actual) & np.isnan(expected)
        off = np.where(neither, 0.0, np.nan_to_num(off, nan=np.inf))
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
        """Return the matches that explain all groups, and the groups that each hypothesis does not explain."""
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
        """Return what fits the sample of a match and strange groups with it: they may ask for another eps."""
        h = match.hypothesis
        if h is None or match.affine == ESTIMATED:
            return []
        few = strange[: max(1, MOST_VALUES // h.sample.grid.group_size)]
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
        """Whether a window that was fitted to the first samples gives all."""
        assert match.window is not None
        level, count = self.samples.choose_loosest(match), max(1, self.samples.count_samples())
        for start in range(0, len(self.samples.x), count):
            x, y = (widen(values[start : start + count]) for values in (self.samples.x, self.samples.y))
            if not gives(match.axes[0], match.window, x, y, self.samples.allow_window(y, level)):
                return False
        return True
