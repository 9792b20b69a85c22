"""What fits a sample of a large tensor, held against all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.identifying.models.window_model import gives
from normcli.identifying.nearly.nearest import Nearest, Nearness
from normcli.identifying.nearly.strange_groups import find_strange_groups
from normcli.identifying.search.affine_step import ESTIMATED
from normcli.identifying.search.groups import widen
from normcli.identifying.search.match import rank_matches
from normcli.identifying.search.samples import MOST_VALUES, Samples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from normcli.identifying.search.hypothesis import Hypothesis
    from normcli.identifying.search.match import Match

_MOST_PASSES = 3
"""Passes over a large tensor that confirm what fits a sample of it."""


class Confirmation:
    """Findings in a sample of a large tensor, compared with all of its values.

    Parameters
    ----------
    samples : Samples
    """

    def __init__(self, samples: Samples) -> None:
        self.samples, self.nearness = samples, Nearness(samples)

    def confirm(self, matches: Sequence[Match]) -> tuple[list[Match], Nearest | None]:
        """Return the matches that hold for the whole tensor, the best first.

        If none does, return also the best with its exceptions. Only the first few matches are tried, and none
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
        return [], self.nearness.list_exceptions(best, numbers, self.samples.choose_loosest(best))

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

    def _bears_out_one_pass(self, match: Match, hypothesis: Hypothesis) -> bool:
        """Whether the variances of all groups are of one pass, with an eps that was found for a sample."""
        level, sample = self.samples.choose_loosest(match), hypothesis.sample
        found = (
            () if some is None else self.samples.match_one_pass(some, hypothesis.affine, level)
            for some in self.samples.take_all(sample.grid, sample.standard.divisor)
        )
        return all(any(m.eps_range[0] <= match.eps <= m.eps_range[1] for m in some) for some in found)

    def _bears_out_window(self, match: Match) -> bool:
        """Whether a window that was fitted to the first samples gives all."""
        assert match.window is not None
        level, count = self.samples.choose_loosest(match), max(1, self.samples.count_samples())
        for start in range(0, len(self.samples.x), count):
            x, y = (widen(values[start : start + count]) for values in (self.samples.x, self.samples.y))
            if not gives(match.axes[0], match.window, x, y, self.samples.allow_window(y, level)):
                return False
        return True
