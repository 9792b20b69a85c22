"""Slips of kernels that are nearly norms: groups are centred by their means, and divided by something else."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from normcli.verify.evidence import COMMON_EPS, MOMENTS, choose_eps
from normcli.verify.weight import CERTAIN, Seen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from normcli.dtypes import Floats
    from normcli.norms.grid import Grid
    from normcli.verify.affine import AffineStep
    from normcli.verify.evidence import Standard


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
    """

    grid: Grid
    centred: bool
    affine: str
    words: str
    rank: int


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
    known = (standard.size > 0.0) & np.isfinite(bounded.largest) & (bounded.least > 0.0)
    if standard.divisor not in MOMENTS or not known.any():
        return
    least, largest, size = bounded.least[known], bounded.largest[known], standard.size[known]
    seen = Seen(least, largest, size, standard.offset[known], standard.group_size, standard.centred)
    found = [_find_square(seen)]
    if standard.centred and seen.count_shift() >= CERTAIN:
        found.append(_find_constant(seen))
    for rank, words in enumerate(found):
        if words is not None:
            yield Slip(bounded.grid, standard.centred, bounded.affine.way, words, rank)


def _find_square(seen: Seen) -> str | None:
    """Return the words of a division by the variance (or the mean square), without the root."""
    what = "variance" if seen.centred else "mean square"
    for ddof in (0, 1) if seen.centred else (0,):
        square = seen.size**2 * seen.group_size / (seen.group_size - ddof)
        low, high = (
            float((seen.size / seen.largest - square).max()),
            float((seen.size / seen.least - square).min()),
        )
        if max(low, 0.0) > high or high < 0.0:
            continue
        eps = choose_eps(max(low, 0.0), high)
        if eps not in COMMON_EPS or seen.count_scale(0) + seen.count_shift() < CERTAIN:
            continue
        added = f"eps {eps:g}" if low > 0.0 else f"an eps of up to {high:.2g}" if high > 0.0 else "without eps"
        return f"divided by the {what} and not by its root ({added}{f', ddof {ddof}' if ddof else ''})"
    return None


def _find_constant(seen: Seen) -> str | None:
    """Return the words of one factor for all groups, whatever their deviations."""
    low, high = float((seen.least / seen.size).max()), float((seen.largest / seen.size).min())
    if low > high or len(seen.size) < 2 or seen.count_scale(1) < CERTAIN:
        return None
    if low <= 1.0 <= high:
        return "not divided by anything"
    return f"divided by one number for all, {choose_eps(1.0 / high, 1.0 / low):g}"
