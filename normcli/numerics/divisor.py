"""What the values of groups are divided by, whatever it was made of: its scale, its zeros."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.norms.table import ZeroRule
from normcli.numerics.moments import choose_scale
from normcli.numerics.pairs import Pair

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


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
            Pair(function(self.mean.hi), function(self.mean.lo)),
            Pair(function(self.divisor.hi), function(self.divisor.lo)),
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
