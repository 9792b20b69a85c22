"""Slips of kernels that are nearly norms: groups are centred by their means, and divided by something else."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.numerics.rounding import widen
from normcli.printable import format_count
from normcli.tuples import NamedTuple
from normcli.verify.evidence import COMMON_EPS, choose_eps
from normcli.verify.standards import MOMENTS
from normcli.verify.weight import CERTAIN, Seen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from normcli.dtypes import Floats
    from normcli.norms.grid import Grid
    from normcli.verify.affine import AffineStep
    from normcli.verify.standards import Standard


class Bounded(NamedTuple):
    """Groups that a hypothesis without a divisor explains: the bounds of each group's factor of x̂.

    Parameters
    ----------
    grid : Grid
    standard : Standard
    affine : AffineStep
    least, largest : ndarray, shape (groups,)
    """

    grid: Grid
    standard: Standard
    affine: AffineStep
    least: Floats
    largest: Floats


class Slip(NamedTuple):
    """What a kernel does instead of a norm.

    Parameters
    ----------
    grid : Grid
    centred : bool
        Whether each group's mean is subtracted.
    affine : str
        How gamma and beta entered: one of `affine.WAYS`.
    words : str
        What divides.
    rank : int
        The likelier ones have less.
    bounded : Bounded
        What shows it.
    """

    grid: Grid
    centred: bool
    affine: str
    words: str
    rank: int
    bounded: Bounded

    def measure_factor(self) -> float:
        """Return how far from 1 any group's factor of x̂ may be: what sets y off from the norm without eps."""
        least, largest = self.bounded.least, self.bounded.largest
        return float(np.maximum(np.abs(largest - 1.0), np.abs(least - 1.0)).max())


def find_slips(candidates: Iterable[Bounded]) -> list[Slip]:
    """Return the slips that explain y, the likeliest first.

    Parameters
    ----------
    candidates : iterable of Bounded
    """
    found = [slip for bounded in candidates for slip in _explain(bounded)]
    return sorted(found, key=lambda slip: slip.rank)


def _explain(bounded: Bounded) -> Iterator[Slip]:
    standard = bounded.standard
    known = (standard.size > 0.0) & np.isfinite(bounded.largest)
    if standard.divisor not in MOMENTS or not known.any():
        return
    least, largest, size = bounded.least[known], bounded.largest[known], standard.size[known]
    seen = Seen(least, largest, size, standard.offset[known], standard.group_size, standard.centred)
    rows = widen(standard.rows)[known]
    is_scaler = bounded.affine.way == "none" and not standard.centred  # x / std, which is told as a plain map
    found = [
        _find_square(seen, slip, _measure(rows, slip.of, standard.centred))
        for slip in _OF_SQUARES
        if slip.of == "own" or not is_scaler
    ]
    if standard.centred and seen.count_shift() >= CERTAIN:
        found += [_find_padding(seen, np.nanmean(rows, axis=1)), _find_constant(seen)]
    for rank, words in enumerate(found):
        if words is not None:
            yield Slip(bounded.grid, standard.centred, bounded.affine.way, words, rank, bounded)


class _OfSquares(NamedTuple):
    """A slip in what is divided by.

    Parameters
    ----------
    words : str
    of : {"own", "other"}
        Whether it is of the variance where groups are centred and of the mean square where not, as it should
        be, or the other way round.
    undo : callable
        Returns what is added to that, given what x or x − mean was divided by.
    """

    words: str
    of: str
    undo: Callable[[Floats], Floats]


_OF_SQUARES = (
    _OfSquares("divided by the {what} and not by its root", "own", lambda divisor: divisor),
    _OfSquares("multiplied by the root of the {what}, not divided by it", "own", lambda divisor: divisor**-2),
    _OfSquares("divided by the root of the {what}", "other", lambda divisor: divisor**2),
)
"""The likelier ones first."""


_ROUNDINGS = 2.0**-21
"""What the roundings of a root and of quotients make in float32, as part of the square of the divisor."""


_KNOWN = 0.1
"""How well the number of padded values has to be known: of an interval of 1, one would always be whole."""


def _measure(rows: Floats, of: str, centred: bool) -> tuple[str, Floats]:
    """Return the name and the values of each group's variance, or mean square."""
    if centred == (of == "own"):
        return "variance", np.nanvar(rows, axis=1)
    return "mean square", np.nanmean(rows * rows, axis=1)


def _find_square(seen: Seen, slip: _OfSquares, measured: tuple[str, Floats]) -> str | None:
    """Return the words of a slip in what is divided by, if an eps that is in use goes with it."""
    what, exact = measured
    ends = slip.undo(seen.size / seen.largest), slip.undo(seen.size / seen.least)
    lowest, highest = np.minimum(*ends) * (1.0 - _ROUNDINGS), np.maximum(*ends) * (1.0 + _ROUNDINGS)
    for ddof in (0, 1) if what == "variance" else (0,):
        square = exact * (seen.group_size / (seen.group_size - ddof))
        low, high = float((lowest - square).max()), float((highest - square).min())
        eps = next((eps for eps in COMMON_EPS if max(low, 0.0) <= eps <= high), None)
        if eps is None or seen.count_scale(0) + seen.count_shift() < CERTAIN:
            continue
        if float(np.log2(1.0 + square / (highest - lowest)).sum()) + seen.count_shift() < CERTAIN:
            continue  # eps is nearly all that divides, and hides the squares
        added = f"eps {eps:g}" if low > 0.0 else f"an eps of up to {high:.2g}" if high > 0.0 else "without eps"
        return f"{slip.words.format(what=what)} ({added}{f', ddof {ddof}' if ddof else ''})"
    return None


def _find_padding(seen: Seen, mean: Floats) -> str | None:
    """Return the words of a variance that counts zeros behind each group: (0 − mean)² of some, over n."""
    square, share = seen.size**2, mean**2 / seen.group_size
    if seen.count_scale(1) < CERTAIN:
        return None
    for eps in COMMON_EPS:
        low = float((((seen.size / seen.largest) ** 2 - square - eps) / share).max())
        high = float((((seen.size / seen.least) ** 2 - square - eps) / share).min())
        count = math.ceil(low) if math.isfinite(low) else 0
        if 0 < count <= high <= low + _KNOWN:
            return (
                f"divided by the root of a variance that counts {format_count(count, 'value')} of padding, "
                f"0 less the mean, beside the {seen.group_size} of each group"
            )
    return None


def _find_constant(seen: Seen) -> str | None:
    """Return the words of one factor for all groups, whatever their deviations."""
    low, high = float((seen.least / seen.size).max()), float((seen.largest / seen.size).min())
    if low > high or len(seen.size) < 2 or seen.count_scale(1) < CERTAIN:
        return None
    if low <= 1.0 <= high:
        return "not divided by anything"
    return f"divided by one number for all, {choose_eps(1.0 / high, 1.0 / low):g}"
