"""Which norm, over which axes, with which eps, reproduces a tensor: every hypothesis of a lattice is tried.

The lattice is grouping × centred or not × affine step; what divides, with which ddof and eps, is solved for
(see `evidence`). Hypotheses are tried on few groups first: most fail at once.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.dtypes import get_eps
from normcli.errors import DataError
from normcli.norms import Divisor, EpsMode
from normcli.tensors.pieces import iterate_pieces
from normcli.verify.affine import NONE, Affine, enumerate_affines, undo
from normcli.verify.estimate import estimate
from normcli.verify.evidence import COMMON_EPS, Model, Standard, bound_factors, fit_models, standardize
from normcli.verify.groupings import Grouping, enumerate_groupings
from normcli.verify.hypothesis import Hypothesis, Match, describe_window
from normcli.verify.names import WINDOWED
from normcli.verify.ulp import choose_counting_dtype, measure_unit
from normcli.verify.windows import find_windows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Candidate = tuple[Grouping, bool, Affine]
    _Drawn = tuple[Standard | None, Floats, NDArray[np.intp] | None]

MOST_VALUES = 1 << 17
"""Values that a hypothesis is held against; of larger tensors whole groups are drawn."""

LARGEST_GROUP = 1 << 22
"""Hypotheses with larger groups are left out."""

FEW_VALUES = 1 << 12
"""Values that a hypothesis is tried on first."""

MOST_ORDERS = 24
"""Orders of the actual tensor's axes that are tried."""


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


class Identification(NamedTuple):
    """What was found.

    Parameters
    ----------
    matches : tuple of Match
        The best first.
    nearest : Nearest or None
    sampled : int or None
        About how many values each hypothesis was held against, if not against all.
    reason : str or None
        Why nothing can be told, if nothing can.
    """

    matches: tuple[Match, ...]
    nearest: Nearest | None = None
    sampled: int | None = None
    reason: str | None = None


def identify(
    x: NDArray[Any],
    y: NDArray[Any],
    gamma: NDArray[Any] | None = None,
    beta: NDArray[Any] | None = None,
    norm: str | None = None,
    channel: int | None = None,
) -> Identification:
    """Find what makes y of x.

    Parameters
    ----------
    x, y : ndarray
        Of one shape, or y with its axes in another order.
    gamma, beta : ndarray or None
        If neither is given and nothing fits without, they are estimated.
    norm : str or None
        Look for this norm alone.
    channel : int or None
        The channel axis, if it is known; otherwise the second and the last may be.

    Raises
    ------
    DataError
        If y is not of x's shape in any order of axes, or a parameter is of no shape that the axes have.
    """
    orders = list(itertools.islice(_find_orders(x.shape, y.shape), MOST_ORDERS))
    reason = _find_reason(x, y)
    if reason is not None:
        return Identification((), reason=reason)
    affines = list(enumerate_affines(x.shape, gamma, beta))
    rank = x.ndim
    channels = frozenset({min(1, rank - 1), rank - 1} if channel is None else {channel})
    sampled = MOST_VALUES if x.size > MOST_VALUES else None
    searches = [_Search(x, y.transpose(order), affines, order, norm, channels) for order in orders]
    best = len(LEVELS)
    matches: list[Match] = []
    for search in searches:
        level, found = search.find_matches()
        if level < best:
            best, matches = level, found
        elif found and level == best:
            matches += found
        if matches and search is searches[0]:
            break
    if not matches and gamma is None and beta is None:
        matches = searches[0].estimate_matches()
    if matches:
        return Identification(tuple(sorted(matches, key=_rank)), None, sampled)
    return Identification((), searches[0].find_nearest(), sampled)


class _Search:
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
        self.groupings = [
            grouping
            for grouping in enumerate_groupings(x.shape)
            if grouping.group_size <= LARGEST_GROUP and not (large and grouping.split == 0)
        ]
        self._drawn: dict[tuple[Grouping, bool], _Drawn] = {}

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
        hypotheses = estimate(_widen(self.x), _widen(self.y), self.dtype, self.groupings)
        return [match for hypothesis in hypotheses for match in self._describe(hypothesis, len(LEVELS) - 2)]

    def find_nearest(self) -> Nearest | None:
        """Return the hypothesis that leaves the fewest values unexplained, or the least distance."""
        best: tuple[tuple[float, float], Hypothesis, NDArray[np.bool_]] | None = None
        for grouping, centred in itertools.product(self.groupings, (True, False)):
            standard, rows, chosen = self._draw(grouping, MOST_VALUES, centred=centred)
            if standard is None:
                continue
            for affine, model in itertools.product(self.affines, _PLAIN_MODELS):
                if (model.divisor is Divisor.DEVIATION) == centred:
                    hypothesis = Hypothesis(grouping, affine, standard, model, chosen)
                    key, wrong = self._judge(hypothesis, rows)
                    if (best is None or key < best[0]) and self._names(hypothesis):
                        best = key, hypothesis, wrong
        return None if best is None else self._refine(best[1])

    def _refine(self, hypothesis: Hypothesis) -> Nearest:
        """Return the best eps, place and ddof for a way of grouping."""
        rows = self._take(hypothesis.grouping, hypothesis.chosen)
        models = [
            hypothesis.model._replace(eps_mode=mode, ddof=ddof, low=eps, high=eps)
            for mode, ddof, eps in itertools.product((EpsMode.INSIDE, EpsMode.OUTSIDE), (0, 1), COMMON_EPS)
            if hypothesis.model.p is None and ddof < hypothesis.standard.group_size
        ]
        tried = [hypothesis, *(hypothesis._replace(model=model) for model in models)]
        best = min(tried, key=lambda h: self._judge(h, rows)[0])
        (_, wrong) = self._judge(best, rows)
        match = min(self._describe(best, len(LEVELS) - 1), key=_rank)
        numbers = np.arange(self.x.size).reshape(self.x.shape)
        places = hypothesis.grouping.take(numbers, hypothesis.chosen)[wrong]
        first = np.unravel_index(int(places.min()) if places.size else 0, self.x.shape)
        return Nearest(match, int(wrong.sum()), wrong.size, tuple(int(i) for i in first))

    def _judge(self, hypothesis: Hypothesis, rows: Floats) -> tuple[tuple[float, float], NDArray[np.bool_]]:
        """Return the part of the values that is not explained, the distance of the rest, and which they are."""
        predicted = hypothesis.predict(hypothesis.model.low)
        with np.errstate(all="ignore"):
            error = np.abs(rows - predicted)
            wrong = ~(error <= self._allow(hypothesis.grouping, hypothesis.standard, hypothesis.affine,
                                           LEVELS[-1], hypothesis.chosen, rows))  # fmt: skip
            part = float(wrong.mean())
            explained = error if part >= _MOSTLY else error[~wrong]
            distance = float(np.sqrt(np.nanmean(np.minimum(explained, 1e100) ** 2)))
        return (min(part, _MOSTLY), distance), wrong

    def _of(self, x: NDArray[Any], y: NDArray[Any]) -> _Search:
        return _Search(x, y, self.affines, self.order, self.norm, self.channels)

    def _survive(self) -> Iterator[Candidate]:
        """Yield the hypotheses that a few groups do not refute even at the loosest level."""
        for grouping, centred in itertools.product(self.groupings, (True, False)):
            standard, rows, chosen = self._draw(grouping, FEW_VALUES, centred=centred)
            if standard is None:
                continue
            for affine in self.affines:
                if self._bound(grouping, standard, affine, LEVELS[-1], chosen, rows) is not None:
                    yield grouping, centred, affine

    def _try(self, candidate: Candidate, level: Level, number: int) -> Iterator[Match]:
        grouping, centred, affine = candidate
        if (grouping, centred) not in self._drawn:
            self._drawn[grouping, centred] = self._draw(grouping, MOST_VALUES, centred=centred)
        standard, rows, chosen = self._drawn[grouping, centred]
        bounds = None if standard is None else self._bound(grouping, standard, affine, level, chosen, rows)
        if standard is None or bounds is None:
            return
        for model in fit_models(standard, *bounds):
            yield from self._describe(Hypothesis(grouping, affine, standard, model, chosen), number)

    def _describe(self, hypothesis: Hypothesis, level: int) -> Iterator[Match]:
        precision = self._name_precision(level)
        rows = self._take(hypothesis.grouping, hypothesis.chosen)
        for match in hypothesis.describe(rows, self.dtype, precision, self.order, self.channels):
            if self.norm in (None, match.norm):
                yield match

    def _name_precision(self, level: int) -> str:
        short = self.dtype.itemsize < np.dtype(np.float32).itemsize
        return "float32" if short and level < _ROUNDED_ONCE else self.dtype.name

    def _names(self, hypothesis: Hypothesis) -> bool:
        return self.norm is None or any(True for _ in self._describe(hypothesis, 0))

    def _take(self, grouping: Grouping, chosen: NDArray[np.intp] | None) -> Floats:
        return _widen(grouping.take(self.y, chosen))

    def _draw(self, grouping: Grouping, most: int, *, centred: bool) -> _Drawn:
        """Return some groups of finite values: standardized, the actual values, and their numbers."""
        chosen = _choose_groups(grouping, most)
        inputs, rows = _widen(grouping.take(self.x, chosen)), self._take(grouping, chosen)
        finite = np.isfinite(inputs).all(axis=1)
        if not finite.all():
            numbers = np.arange(grouping.group_count) if chosen is None else chosen
            chosen, inputs, rows = numbers[finite], inputs[finite], rows[finite]
        standard = standardize(inputs, centred=centred) if len(rows) else None
        return standard, rows, chosen

    def _allow(
        self,
        grouping: Grouping,
        standard: Standard,
        affine: Affine,
        level: Level,
        chosen: NDArray[np.intp] | None,
        rows: Floats,
    ) -> Floats:
        """Return how far each value may be off."""
        slack = level.ulp * measure_unit(rows, self.dtype)
        if level.roundings:
            terms = (1.0 + np.abs(standard.values)) * (1.0 + standard.offset[:, None])
            if affine.scale is not None:
                terms = terms * np.abs(grouping.take(affine.scale, chosen))
            if affine.shift is not None:
                terms = terms + np.abs(grouping.take(affine.shift, chosen))
            slack = slack + level.roundings * get_eps(self.dtype) * terms
        return slack

    def _bound(
        self,
        grouping: Grouping,
        standard: Standard,
        affine: Affine,
        level: Level,
        chosen: NDArray[np.intp] | None,
        rows: Floats,
    ) -> tuple[Floats, Floats] | None:
        scale, shift = (None if p is None else grouping.take(p, chosen) for p in (affine.scale, affine.shift))
        slack = self._allow(grouping, standard, affine, level, chosen, rows)
        return bound_factors(standard, *undo(affine._replace(scale=scale, shift=shift), rows, slack))


_MOSTLY = 0.5
"""A hypothesis that leaves more than this part of the values unexplained explains nothing."""

_PLAIN_MODELS = (
    Model(Divisor.DEVIATION, EpsMode.INSIDE, 0, None, 1e-5, 1e-5),
    Model(Divisor.ROOT_MEAN_SQUARE, EpsMode.INSIDE, 0, None, 1e-5, 1e-5),
    Model(Divisor.LP_NORM, EpsMode.FLOOR, 0, 2.0, 1e-12, 1e-12),
    Model(Divisor.LP_NORM, EpsMode.FLOOR, 0, 1.0, 1e-12, 1e-12),
)
"""What is tried for each way of grouping where nothing fits."""


def _widen(values: NDArray[Any]) -> Floats:
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(values, dtype=np.float64)


def _choose_groups(grouping: Grouping, most: int) -> NDArray[np.intp] | None:
    """Return the numbers of groups of about so many values, spread evenly; None for all."""
    count = max(1, most // grouping.group_size)
    if count >= grouping.group_count:
        return None
    return np.unique(np.linspace(0, grouping.group_count - 1, count).astype(np.intp))


def _find_orders(shape: tuple[int, ...], actual: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield the orders of the actual axes that give the shape, the given order first."""
    if sorted(shape) != sorted(actual):
        raise DataError(f"the actual tensor has the shape {actual}, which is {shape} in no order of axes")
    for order in itertools.permutations(range(len(shape))):
        if tuple(actual[axis] for axis in order) == shape:
            yield order


def _find_reason(x: NDArray[Any], y: NDArray[Any]) -> str | None:
    """Return why nothing can be told of these tensors, if nothing can."""
    if x.size < 2:
        return "the input has fewer than two values"
    if not any(np.isfinite(piece).any() for piece in iterate_pieces(y)):
        return "the actual tensor holds no finite value"
    if _is_constant(x):
        return "the input is constant: every norm makes the same of it"
    if x.shape == y.shape and all(map(np.array_equal, iterate_pieces(x), iterate_pieces(y))):
        return "the actual tensor is the input, unchanged"
    if _is_constant(y):
        return "the actual tensor is constant: so is every norm of groups of one value"
    return None


def _is_constant(values: NDArray[Any]) -> bool:
    first = values[(0,) * values.ndim]
    return all(bool(np.all(piece == first)) for piece in iterate_pieces(values))


def _rank(match: Match) -> tuple[Any, ...]:
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
