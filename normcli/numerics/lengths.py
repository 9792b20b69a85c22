"""ℓp lengths of groups, from sums of powers: a count of values for p = 0, and the largest for p = ∞."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.divisor import find_divisor
from normcli.numerics.leaves import Records, count_values, measure_leaves, sum_plainly
from normcli.numerics.pairs import Pair, sum_pairs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.norms.plan import Plan
    from normcli.numerics.workspace import Workspace


LARGEST_P = 512.0
"""Up to this p, powers of values between 1/2 and 1 do not underflow."""


@dataclass(slots=True)
class Powers(Records):
    """The sums of powers of leaves.

    Parameters
    ----------
    hi, lo : ndarray
        Σ|x|ᵖ, a pair; for p = 0 how many values are not 0, for p = ∞ the largest |x|.
    extreme : ndarray of bool
        Whether the sum may have over- or underflowed.
    count : ndarray
        How many values are selected.
    """

    hi: Floats
    lo: Floats
    extreme: Selected
    count: Floats


@dataclass(slots=True)
class Lengths:
    """Count and ℓp length of groups, of any p but 2; `scale` as of `Moments`."""

    count: Any
    length: Pair
    scale: NDArray[np.int64] | None = None


def measure_powers(
    x: NDArray[Any], work: Workspace, selected: Selected | None = None, *, p: float, exact: bool
) -> Powers:
    """Return the sums of powers of leaves, shape (leaves, n)."""
    size = np.abs(x.astype(np.float64))
    result = Powers.empty(x.shape[:-1])
    result.count[...] = count_values(x, selected)
    if p == 1.0:
        sums = measure_leaves(size, work, need_sum=True)
        result.hi, result.lo, result.extreme = sums.sum_hi, sums.sum_lo, sums.extreme
    elif p == 0.0:
        result.hi[...] = np.count_nonzero(size, axis=-1)
        result.hi[np.isnan(size).any(axis=-1)] = np.nan
    elif math.isinf(p):
        result.hi[...] = np.maximum.reduce(size, axis=-1)
    else:
        wide = np.longdouble if exact else np.float64  # on x86 11 bits more than float64
        powers = sum_plainly(np.power(size.astype(wide), wide(p)))
        result.hi[...] = powers
        result.lo[...] = powers - result.hi
    return result


def fold_powers(leaves: Powers, p: float) -> Powers:
    """Make one record of all leaves along the last axis."""
    if math.isinf(p):
        total = Pair(np.maximum.reduce(leaves.hi, axis=-1), np.zeros(leaves.hi.shape[:-1]))
    else:
        total = sum_pairs(Pair(leaves.hi, leaves.lo))
    extreme = np.asarray(leaves.extreme.any(axis=-1))
    return Powers(*total, extreme, np.add.reduce(leaves.count, axis=-1))


def merge_powers(leaves: Powers, count: Any, *, p: float, exact: bool) -> Lengths:
    """Return the lengths of groups, from leaves of shape (groups, leaves)."""
    folded = fold_powers(leaves, p)
    total = Pair(folded.hi, folded.lo)
    if p not in (0.0, 1.0, math.inf):
        wide = np.longdouble if exact else np.float64
        root = np.power(total.hi.astype(wide) + total.lo, wide(1) / wide(p))
        hi = root.astype(np.float64)
        total = Pair(hi, (root - hi).astype(np.float64))
    return Lengths(count, total)


def normalize_by_large_powers(plan: Plan, x: Floats, axes: tuple[int, ...]) -> tuple[Floats, dict[str, Floats]]:
    """Divide by max·(Σ(|x|/max)ᵖ)^(1/p): the root reduces the rounding errors that the power magnified.

    Parameters
    ----------
    plan : Plan
        Of a p above `LARGEST_P`.
    x : ndarray
        Whole along the reduced axes.
    axes : tuple of int
        Those axes.

    Returns
    -------
    tuple of (ndarray, dict)
        The result, of the shape of x; `norm`, of the shape of the other axes.
    """
    assert plan.spec.p is not None  # by the plan: every row that divides by a length has an exponent
    size = np.abs(x)
    largest = np.maximum.reduce(size, axis=axes, keepdims=True)
    usable = np.isfinite(largest) & (largest > 0.0)
    ratio = size / np.where(usable, largest, 1.0)
    total = np.add.reduce(ratio**plan.spec.p, axis=axes, keepdims=True)
    length = np.where(usable, largest * total ** (1.0 / plan.spec.p), largest)
    divisor = find_divisor(length, plan.spec.eps, plan.spec.eps_mode)
    return x / np.where(divisor == 0.0, 1.0, divisor), {"norm": length.squeeze(axes)}
