"""What is added up for the derivatives by gamma and beta, by every thread for itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from normcli.numerics.fixed import Fixed
from normcli.numerics.slopes import ERROR

if TYPE_CHECKING:
    from normcli.dtypes import Floats, Integers
    from normcli.numerics.slopes import Derivatives


class ParameterSums:
    """What is added up for the derivatives by gamma and beta: exact sums of pairs, and bounds of errors."""

    def __init__(self, count: int) -> None:
        self.gamma, self.beta = Fixed.zeros(count), Fixed.zeros(count)
        self.error, self.special_gamma, self.special_beta = np.zeros((3, count))
        self.unclear = np.zeros(count, np.bool_)

    def add_shares(self, places: Integers, found: Derivatives) -> None:
        """Add dy · x̂ to the parameters of some numbers, one for each value."""
        (hi, lo), count = found.value, len(self.error)
        flat = np.broadcast_to(places, hi.shape).reshape(-1)
        self.unclear[flat[found.unclear.reshape(-1)]] = True
        special = _split_special(np.where(found.unclear, 0.0, hi))
        self.special_gamma += np.bincount(flat, special.reshape(-1), count)
        usable = ~found.unclear & np.isfinite(hi)
        _add_rows(self.gamma, places, np.where(usable, hi, 0.0))
        _add_rows(self.gamma, places, np.where(usable, lo, 0.0))
        error = np.where(usable, found.error + ERROR * np.abs(hi), 0.0)
        self.error += np.bincount(flat, error.reshape(-1), count)

    def add_gradients(self, places: Integers, dy: Floats) -> None:
        """Add dy, likewise."""
        flat = np.broadcast_to(places, dy.shape).reshape(-1)
        self.special_beta += np.bincount(flat, _split_special(dy).reshape(-1), len(self.error))
        _add_rows(self.beta, places, np.where(np.isfinite(dy), dy, 0.0))

    def merge(self, other: ParameterSums) -> None:
        """Add what another thread has added up."""
        self.gamma.merge(other.gamma)
        self.beta.merge(other.beta)
        for name in ("error", "special_gamma", "special_beta", "unclear"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


def _split_special(values: Floats) -> Floats:
    """Return what is not finite, and 0 elsewhere."""
    return np.where(np.isfinite(values), 0.0, values)


def _add_rows(fixed: Fixed, places: Integers, values: Floats) -> None:
    """Add values to the numbers at places, one for each row or for each value."""
    if places.shape != values.shape:
        fixed.add(places.reshape(-1), values)
    else:
        fixed.add(places.reshape(-1), values.reshape(-1, 1))
