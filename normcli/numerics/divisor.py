"""What the values of groups are divided by: its eps, its scale, its zeros."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.norms.table import EpsMode, ZeroRule
from normcli.numerics.moments import choose_scale
from normcli.numerics.pairs import Pair, pair_root, quick_two_sum, two_square, two_sum

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Integers


@dataclass(slots=True)
class Solution:
    """What a tile is normalized with, one value for each group; in the scaled unit where groups are scaled."""

    mean: Pair
    divisor: Pair
    scale: NDArray[np.int64] | None
    centred: bool
    statistics: dict[str, Floats] = field(default_factory=dict)

    def take(self, function: Callable[[NDArray[Any]], NDArray[Any]]) -> Solution:
        """Return mean, divisor and scale with a function (an index, a reshape) applied to each array."""
        return Solution(
            self.mean.map(function),
            self.divisor.map(function),
            None if self.scale is None else function(self.scale),
            self.centred,
        )


def replace_zeros(divisor: Pair, rule: ZeroRule, k: NDArray[np.int64] | None = None) -> Pair:
    """Return a divisor that values, times 2ᵏ, can be divided by: where it is 0, so are most of them."""
    zero = divisor.hi == 0.0
    if not zero.any():
        return divisor
    one = 1.0 if k is None or rule is not ZeroRule.ONE else np.ldexp(1.0, k)
    return Pair(np.where(zero, np.nan if rule is ZeroRule.NAN else one, divisor.hi), divisor.lo)


def choose_scale_where(size: Floats, least: float, most: float) -> NDArray[np.int64] | None:
    """Return the k by whose 2ᵏ groups are scaled whose largest magnitude lies outside; None if none does."""
    outside = np.isfinite(size) & ((size > most) | ((size < least) & (size > 0.0)))
    return np.where(outside, choose_scale(size), 0) if outside.any() else None


def unscale(values: Floats, k: NDArray[np.int64] | None) -> Floats:
    """Return values that were multiplied by 2ᵏ as they were."""
    return values if k is None else np.ldexp(values, -k)


def add_eps(
    square: Pair, root: Pair, eps: float | None, mode: EpsMode | None, k: Integers | None, *, exact: bool
) -> Pair:
    """Return the divisor that eps makes of a size, in the unit of values times 2ᵏ.

    Parameters
    ----------
    square, root : Pair
        The size and its square: a standard deviation and its variance, or a length.
    eps : float or None
    mode : EpsMode or None
        Where eps stands. None only where eps is.
    k : ndarray of int or None
        By whose 2ᵏ each group was scaled.
    exact : bool
        Whether the root of a sum is worked out as a pair; of 24 bits, a double is enough.
    """
    if not eps:
        return root
    if mode is EpsMode.INSIDE:
        return _root_of_sum(square, eps, k, exact=exact)
    added = math.sqrt(eps) if mode is EpsMode.SQUARE_FLOOR else eps
    scaled = np.full_like(root.hi, added) if k is None else np.ldexp(added, k)
    if mode is EpsMode.OUTSIDE:
        divisor = two_sum(root.hi, scaled)
        return quick_two_sum(divisor.hi, divisor.lo + root.lo)
    under = root.hi < scaled
    return Pair(np.where(under, scaled, root.hi), np.where(under, 0.0, root.lo))


def _root_of_sum(square: Pair, eps: float, k: Integers | None, *, exact: bool) -> Pair:
    """Return √(square + eps) in the unit of the scaled values."""
    if k is None and not exact:
        return Pair(np.sqrt(square.hi + eps), np.zeros_like(square.hi))
    inner = eps if k is None else np.ldexp(eps, 2 * k)
    s, e = two_sum(square.hi, inner)
    scaled = pair_root(quick_two_sum(s, e + square.lo))
    if k is None:
        return scaled
    fits = np.isfinite(scaled.hi) | ~np.isinf(inner)
    outer = pair_root(two_sum(np.ldexp(square.hi, -2 * k), eps))  # the square is nothing beside eps here
    return Pair(
        np.where(fits, scaled.hi, np.ldexp(outer.hi, k)), np.where(fits, scaled.lo, np.ldexp(outer.lo, k))
    )


_LEAST_SQUARED, _LARGEST_SQUARED = 2.0**-400, 2.0**400
"""The square of a size within is exact as a pair, and neither it nor its error over- or underflows."""


def find_divisor(size: Floats, eps: float | None, mode: EpsMode | None) -> Floats:
    """Return what groups of known sizes (a standard deviation, a length) are divided by, as nearest doubles."""
    with np.errstate(all="ignore"):
        k = choose_scale_where(size, _LEAST_SQUARED, _LARGEST_SQUARED)
        scaled = size if k is None else np.ldexp(size, k)
        root = Pair(scaled, np.zeros_like(scaled))
        return unscale(add_eps(two_square(scaled), root, eps, mode, k, exact=True).hi, k)
