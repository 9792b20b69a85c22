"""The search for the algorithm that reproduces a tensor's bits, if the exact result does not.

Each algorithm, dtype of sums and order of roundings is tried on a few groups, and the best of them on more.
"""

from __future__ import annotations

import functools
import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.algorithms.row_formula import RowFormula
from normcli.dtypes import is_float, is_half
from normcli.identifying.attempts import LEAST_SHARE, Candidate, Trial
from normcli.identifying.models.divisor_fit import list_usual_eps
from normcli.identifying.models.weight import CERTAIN
from normcli.identifying.sampling import spread_indices
from normcli.identifying.search.affine_step import ESTIMATED, NO_AFFINE, enumerate_affine_steps
from normcli.identifying.search.match_names import try_plan
from normcli.norms.plan import make_plan
from normcli.norms.rules import Centre
from normcli.norms.table import NORMS
from normcli.tensors.pieces import PIECE
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.algorithms.row_computation import Computation
    from normcli.identifying.search.affine_step import AffineStep
    from normcli.identifying.search.match import Match

FEW_VALUES, MOST_VALUES = 1 << 9, 1 << 14
"""About how many values a computation is tried on at first, and later if it is among the best."""

LARGEST_GROUP = 1 << 12
"""The largest groups for which algorithms are tried: some of them add value by value."""

MOST_SURVIVORS = 48
"""The most computations that are tried on more values, of those that are best on a few values."""

_MOST_HELD = 4
"""The most computations, found in a sample, that are compared with every value."""


class Reproduction(NamedTuple):
    """A computation that reproduces the bits of a tensor y, or of most of its values.

    Parameters
    ----------
    candidate : Candidate
        The computed norm, with its eps.
    computation : Computation
        The algorithm, the dtype of sums and the casts.
    equal : float
        The share of values of y that are equal to the computation's result.
    compared : int
        The number of compared values.
    bits : float
        The evidence in bits: the number of different values of y that the computation reproduces and the exact
        result does not, minus log2 of the number of tried computations, and a price for each wrong value.
    match : Match
        The norm as a match, with the distances of y from the exact result.
    words : str
        The computation in words.
    step : AffineStep
        The gamma and beta, and the way in which they entered.
    """

    candidate: Candidate
    computation: Computation
    equal: float
    compared: int
    bits: float
    match: Match
    words: str
    step: AffineStep

    @property
    def is_certain(self) -> bool:
        """Whether the computation reproduces every value, with at least 20 bits of evidence.

        False if the fitted eps may be a default one (`Match.takes_up_rounding`).
        """
        return self.equal == 1.0 and self.bits >= CERTAIN and not self.match.takes_up_rounding

    @property
    def cancels(self) -> bool:
        """Whether the variance is computed as E[x²] − E[x]²."""
        is_one_pass = self.computation.accumulation.algorithm.name.startswith("one-pass")
        return is_one_pass and NORMS[self.match.norm].centre is Centre.MEAN

    def is_of(self, match: Match) -> bool:
        """Whether the computed norm is the norm of a match, with an eps that fits both."""
        mine, theirs = ((m.axes, m.groups or 1, m.eps_mode, m.ddof, m.affine) for m in (self.match, match))
        (low, high), (least, most) = match.eps_range, self.match.eps_range
        return mine == theirs and low <= most and least <= high


def list_candidates(matches: Sequence[Match], ways: Sequence[str] = (NO_AFFINE.way,)) -> Iterator[Candidate]:
    """Yield the norms that a tensor may be the result of, the likeliest first.

    Parameters
    ----------
    matches : sequence of Match
        Norms whose results are near y, the likeliest first; the first 4 are taken, without `sn`.
    ways : sequence of str
        The ways in which gamma and beta may have entered, for matches whose gamma was fitted.
    """
    for match in [match for match in matches if match.rows is None][:MOST_CANDIDATES]:
        usual = match.make_request()
        mode = match.eps_mode if NORMS[match.norm].eps is not None else None
        own = usual._replace(eps_mode=mode, ddof=match.ddof or None)
        for request in dict.fromkeys((usual, own)):
            for way in (match.affine,) if match.affine != ESTIMATED else ways:
                yield Candidate(request, way, match.order)


MOST_CANDIDATES = 4
"""The most matches for which algorithms are tried."""


def reproduce(
    x: NDArray[Any],
    y: NDArray[Any],
    candidates: Sequence[Candidate],
    gamma: NDArray[Any] | None = None,
    beta: NDArray[Any] | None = None,
) -> tuple[Reproduction, ...]:
    """Return the computations that reproduce the most values of y bit for bit, at least 90 % of them.

    Empty without any, if one of them has less than 20 bits of evidence, and if y is not of floats.

    Parameters
    ----------
    x, y : ndarray
        Input and output; y may have its axes in another order.
    candidates : sequence of Candidate
        Norms whose results are near y, the likeliest first.
    gamma, beta : ndarray or None
        The given parameters; None if not given.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(1.0, 1.0, (40, 64)).astype(np.float16)
    >>> from normcli.algorithms.row_computation import parse_computation
    >>> from normcli.norms.request import Request
    >>> formula = RowFormula.of(make_plan(Request("ln"), x.shape, x.dtype))
    >>> y = parse_computation("two-pass:float16").run(x, formula, x.dtype)
    >>> found = reproduce(x, y, [Candidate(Request("ln"), "none", (0, 1))])
    >>> found[0].computation.name, found[0].equal, found[0].is_certain
    ('two-pass:float16', 1.0, True)
    """
    if not is_float(y.dtype):
        return ()
    steps: dict[str, list[AffineStep]] = {}
    for step in enumerate_affine_steps(x.shape, gamma, beta):
        steps.setdefault(step.way, []).append(step)
    found: list[Reproduction] = []
    failed: set[tuple[object, ...]] = set()
    with np.errstate(all="ignore"):
        for candidate in candidates:
            plan = try_plan(candidate.request, x.shape, x.dtype)
            if plan is None:
                continue
            formula = plan.grid, plan.norm.centre, plan.norm.divisor, plan.spec, candidate.order, candidate.way
            before = len(found)
            for step in steps.get(candidate.way, ()) if formula not in failed else ():
                found += _try_candidate(x, y.transpose(candidate.order), candidate, step)
            failed.update((formula,) if len(found) == before else ())
            if any(one.equal == 1.0 for one in found):
                break
    most = max((one.equal for one in found), default=0.0)
    best = [one for one in found if one.equal == most]
    best.sort(key=lambda one: (one.match.takes_up_rounding, not one.match.has_default_eps, one.cancels))
    return () if any(one.bits < CERTAIN for one in best) else tuple(best)  # what is told holds with any eps


def hold_against_all(
    told: Sequence[Reproduction], x: NDArray[Any], y: NDArray[Any]
) -> tuple[Reproduction, ...]:
    """Return reproductions whose `equal` is the share of all values, not of a sample; the best first.

    Parameters
    ----------
    told : sequence of Reproduction
        The result of `reproduce`. If it was found in a sample, the first 4 are compared with all values, and
        the others are left out.
    x, y : ndarray
        The tensors that were given to `reproduce`.
    """
    held = (
        told if all(one.compared == x.size for one in told) else [_hold(one, x, y) for one in told[:_MOST_HELD]]
    )
    return tuple(sorted(held, key=lambda one: -one.equal))


def _hold(told: Reproduction, x: NDArray[Any], y: NDArray[Any]) -> Reproduction:
    request, y = told.candidate.request, y.transpose(told.candidate.order)
    plan = make_plan(request, x.shape, x.dtype)
    step, equal = max(1, PIECE // plan.grid.group_size), 0
    with np.errstate(all="ignore"):
        for start in range(0, plan.grid.group_count, step):
            chosen = np.arange(start, min(start + step, plan.grid.group_count))
            sample = Trial.take(plan, x, y, told.step, chosen)
            equal += int(np.count_nonzero(sample.find_equal(sample.write(told.computation, request.eps))))
    return told._replace(equal=equal / x.size, compared=x.size)


def _try_candidate(
    x: NDArray[Any],
    y: NDArray[Any],
    candidate: Candidate,
    step: AffineStep,
) -> Iterator[Reproduction]:
    """Yield the computations that reproduce y by a candidate norm, with the share of equal bits.

    Every way to add up, order of casts and usual eps is tried on a few groups (about 512 values). Those that
    share the highest share of equal values, 48 at most, are tried on more groups (about 16,384 values). There a
    computation is yielded if all values are equal, or 90 % and with evidence of 20 bits; each unequal value
    takes some of this evidence away. Results that differ only in eps are yielded as one.

    Nothing is yielded

    * if the best computation gives less than 90 % of the values of the few groups;
    * for a request that does not fit x; for norms without sums of x or x², with windows, or with groups of one
      value or more than 4,096;
    * if fewer than 20 values differ from the exact result, rounded: then y tells no algorithm.

    Parameters
    ----------
    x, y : ndarray
        Input and output, of one shape.
    candidate : Candidate
    step : AffineStep
        Gamma and beta, in the way in which they entered.
    """
    plan = try_plan(candidate.request, x.shape, x.dtype)
    if plan is None:
        return
    has_sums = not plan.norm.is_by_order and not plan.groups_overlap and plan.spec.p in (None, 2.0)
    if not has_sums or not 1 < plan.grid.group_size <= LARGEST_GROUP:
        return
    few, most = (
        Trial.take(
            plan, x, y, step, spread_indices(plan.grid.group_count, max(2, count // plan.grid.group_size))
        )
        for count in (FEW_VALUES, MOST_VALUES)
    )
    scored = list(few.score_all()) if len(few.rows) else []
    tried = sum(shares.size for _, shares in scored)
    best = max((float(shares.max()) for _, shares in scored), default=0.0)
    if best < LEAST_SHARE:
        return
    find_rough, measure = functools.cache(most.find_rough), functools.cache(most.measure)
    if np.count_nonzero(find_rough(plan.spec.eps)) < CERTAIN:
        return
    usual = list_usual_eps(plan.spec.eps)
    survivors: dict[Computation, list[float | None]] = defaultdict(list)
    for computations, shares in scored:
        for number, place in np.argwhere(best == shares.T):
            survivors[computations[place]].append(usual[number])
    for computation in [*survivors][:MOST_SURVIVORS]:
        found: list[Reproduction] = []
        every = tuple(survivors[computation])
        for eps, written in zip(
            every, computation.write(measure(computation.accumulation, every)), strict=True
        ):
            equal = most.find_equal(written)
            shown = len(np.unique(most.actual[equal & find_rough(eps)])) - math.log2(tried)
            bits = shown - float(np.count_nonzero(~equal)) * (1.0 + math.log2(equal.size))
            if equal.all() or (bits >= CERTAIN and equal.mean() >= LEAST_SHARE):
                told = candidate._replace(request=candidate.request._replace(eps=eps))
                match, words = most.describe(told, computation, bits), computation.describe(RowFormula.of(plan))
                share = float(equal.mean())
                found.append(Reproduction(told, computation, share, equal.size, bits, match, words, step))
        if found:
            yield _join(found, most)


def _join(alike: Sequence[Reproduction], sample: Trial) -> Reproduction:
    """Return the best of reproductions that differ only in eps, with the range of the equally good eps.

    Its evidence is the least among these, since any of these eps may be the true one. `sample` is the trial in
    which they were found.
    """
    most = max(one.equal for one in alike)
    best = [one for one in alike if one.equal == most]
    every, bits = [one.match.eps for one in best], min(one.bits for one in best)
    first, row = best[0], NORMS[best[0].match.norm]
    own = row.eps is None or (first.match.eps_mode == row.eps_mode and row.eps in every)
    is_coarse = first.match.sums_in_half or (is_half(sample.dtype) and first.computation.cast.rounds_statistics)
    fine = sample.count_told(first.computation) if is_coarse and not own else math.inf
    match = first.match._replace(eps_range=(min(every), max(every)), bits=bits, has_default_eps=own, fine=fine)
    return first._replace(bits=bits, match=match)
