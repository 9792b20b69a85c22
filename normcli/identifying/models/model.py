"""What divides the groups, and which eps they allow."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from normcli.identifying.models.weight import CERTAIN
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from normcli.norms.divisors import Divisor
    from normcli.norms.rules import EpsMode


class Model(NamedTuple):
    """How a divisor comes of a group, and the eps that all groups allow.

    Parameters
    ----------
    divisor : Divisor
    eps_mode : EpsMode
    ddof : int
    p : float or None
        Of an ℓp length.
    low, high : float
        The least and the largest eps that fit.
    floor : float
        The least divisor: a floor up to it changes nothing, where no eps fits too.
    square : float
        The largest eps under the root of an ℓ2 length that fits.
    bits : float
        The evidence for it; see `weight`.
    is_odd : bool
        Whether the eps is none in use and not small beside the variances.
    """

    divisor: Divisor
    eps_mode: EpsMode
    ddof: int = 0
    p: float | None = None
    low: float = 0.0
    high: float = 0.0
    floor: float = 0.0
    square: float = 0.0
    bits: float = math.inf
    is_odd: bool = False

    @property
    def is_likely(self) -> bool:
        """Whether there is evidence enough for it."""
        return self.bits >= CERTAIN and not self.is_odd
