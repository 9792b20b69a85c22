"""The sums that the gradients of gamma and beta are, of many values: exact, or in doubles with bounds."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.deciding import PAIRS, U
from normcli.numerics.gradients.in_doubles import SECOND_ORDER
from normcli.numerics.gradients.values import KnownGradients, round_known
from normcli.numerics.pairs import Pair, two_sum
from normcli.numerics.sums.fixed_point import Fixed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Integers, Selected
    from normcli.numerics.gradients.in_doubles import KnownDoubles
    from normcli.numerics.gradients.rows import Upstream

_PIECE = 1 << 14
"""The most gammas or betas that are rounded at once: some thirty float64 arrays of their size are made."""


class ParameterSums:
    """Exact sums for the derivatives with respect to gamma and beta, with bounds of their errors.

    Threads may add to them at once and in any order. `count` is the number of values of gamma.
    """

    def __init__(self, count: int) -> None:
        self.gamma, self.beta = Fixed.zeros(count), Fixed.zeros(count)
        self.errors = {name: np.zeros(count) for name in ("gamma", "beta")}
        self.special_gamma, self.special_beta = np.zeros((2, count))
        self.unclear = {name: np.zeros(count, np.bool_) for name in self.errors}
        self._lock = threading.Lock()

    def add_shares(self, places: Integers, found: KnownGradients) -> None:
        """Add the dy · x̂ of each value to the sum of its gamma.

        `places` are the flat indices of gammas, one for each value or each row; one may come several times.
        """
        hi, lo = found.value
        flat = np.broadcast_to(places, hi.shape).reshape(-1)
        usable = ~found.unclear & np.isfinite(hi)
        error = np.where(usable, found.error + PAIRS.error * np.abs(hi), 0.0)
        special = np.where(found.unclear, 0.0, hi)
        with self._lock:
            self.unclear["gamma"][flat[found.unclear.reshape(-1)]] = True
            _add_special(self.special_gamma, flat, special)
            _add_rows(self.gamma, places, np.where(usable, hi, 0.0))
            _add_rows(self.gamma, places, np.where(usable, lo, 0.0))
            _add_plainly(self.errors["gamma"], flat, error)

    def add_gradients(self, places: Integers, dy: Floats, upstream: Upstream | None = None) -> None:
        """Add the dy of each value to the sum of its beta.

        Parameters
        ----------
        places : ndarray of int
            The flat indices of betas, one for each value or each row; an index may come several times.
        dy : ndarray
        upstream : Upstream or None
            The low part and error of dy, if it is a product with a gate; None if dy is exact.
        """
        finite, flat = np.isfinite(dy), np.broadcast_to(places, dy.shape).reshape(-1)
        with self._lock:
            _add_special(self.special_beta, flat, dy)
            _add_rows(self.beta, places, np.where(finite, dy, 0.0))
            if upstream is not None:
                self.unclear["beta"][flat[upstream.beyond.reshape(-1)]] = True
                _add_rows(self.beta, places, np.where(finite, upstream.low, 0.0))
                _add_plainly(self.errors["beta"], flat, SECOND_ORDER * np.where(finite, upstream.error, 0.0))

    def round(self, name: str, dtype: np.dtype[Any]) -> tuple[NDArray[Any], Selected]:
        """Return the sums of `gamma` or of `beta`, rounded once, and an array that is True where undecided."""
        fixed, special = getattr(self, name), getattr(self, f"special_{name}")
        found, undecided = np.empty(len(special), dtype), np.zeros(len(special), np.bool_)
        for start in range(0, len(special), _PIECE):
            part = slice(start, start + _PIECE)
            value, inexact, lost = fixed.take(part).integers().round()
            error = np.where(inexact, PAIRS.error * np.abs(value.hi), 0.0) + self.errors[name][part]
            known = KnownGradients(value, error, lost | self.unclear[name][part])
            found[part], undecided[part] = round_known(known, dtype)
        is_special = special != 0.0
        found[is_special] = special[is_special]
        return found, undecided & ~is_special


class DoubleSums:
    """Sums for the derivatives with respect to gamma and beta in doubles, with bounds of their errors.

    For gammas and betas of float32 or half precision alone. Threads may add at once.
    """

    def __init__(self, count: int) -> None:
        self.totals = {name: Pair(np.zeros(count), np.zeros(count)) for name in ("gamma", "beta")}
        self.errors = {name: np.zeros(count) for name in self.totals}
        self.unclear = np.zeros(count, np.bool_)
        self._lock = threading.Lock()

    def add(self, name: str, places: Integers, found: KnownDoubles) -> None:
        """Add numbers to the sums of `gamma` or of `beta` at flat indices; an index may come several times."""
        first = int(places.min())
        numbers, part = places - first, slice(first, int(places.max()) + 1)
        width, total, error = part.stop - first, self.totals[name], self.errors[name]
        sums, sizes, errors = (
            np.bincount(numbers, values.reshape(-1), width)
            for values in (found.value, np.abs(found.value), found.error)
        )
        steps = int(np.bincount(numbers, minlength=width).max())
        with self._lock:
            total.hi[part], rest = two_sum(total.hi[part], sums)
            total.lo[part] += rest
            error[part] += errors + U * steps * sizes

    def doubt(self, places: Integers) -> None:
        """Mark the sums at some flat indices as unknown: `round` returns them as undecided."""
        with self._lock:
            self.unclear[places.reshape(-1)] = True

    def round(self, name: str, dtype: np.dtype[Any]) -> tuple[NDArray[Any], Selected]:
        """Return the sums of `gamma` or of `beta`, rounded once, and an array that is True where undecided."""
        value, error = two_sum(*self.totals[name]), SECOND_ORDER * self.errors[name]
        found, undecided = round_known(KnownGradients(value, error, self.unclear), dtype)
        is_zero = (found == 0.0) & (error != 0.0)  # whose sign is that of a small sum
        return found, undecided | (is_zero & (np.abs(value.hi) <= error))


def _add_plainly(totals: Floats, flat: Integers, values: Floats) -> None:
    """Add values to `totals`, in doubles; `flat` is the flat index into `totals` for each value."""
    first, stop = int(flat.min(initial=len(totals))), int(flat.max(initial=-1)) + 1
    if stop > first:
        totals[first:stop] += np.bincount(flat - first, values.reshape(-1), stop - first)


def _add_special(totals: Floats, flat: Integers, values: Floats) -> None:
    """Add the values that are not finite to `totals`; `flat` is the flat index into `totals` for each value."""
    finite = np.isfinite(values).reshape(-1)
    if not finite.all():
        _add_plainly(totals, flat[~finite], values.reshape(-1)[~finite])


def _add_rows(fixed: Fixed, places: Integers, values: Floats) -> None:
    """Add values to exact sums for gamma or beta; `places` has a flat index for each row, or each value."""
    if places.shape != values.shape:
        fixed.add(places.reshape(-1), values)
    else:
        fixed.add(places.reshape(-1), values.reshape(-1, 1))
