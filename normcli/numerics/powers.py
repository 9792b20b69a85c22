"""ℓp lengths of a p so large that powers of the values leave float64."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.norms.plan import Plan

    Floats = NDArray[np.float64]

LARGEST_P = 512.0
"""Up to here the powers of values scaled to 1/2 … 1 are far from underflow."""


def normalize_by_large_powers(plan: Plan, x: Floats, axes: tuple[int, ...]) -> tuple[Floats, dict[str, Floats]]:
    """Divide by max·(Σ(|x|/max)ᵖ)^(1/p): what the power magnifies of rounding, the root takes back.

    Parameters
    ----------
    plan : Plan
        With a p.
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
    divisor = length if plan.spec.eps is None else np.maximum(length, plan.spec.eps)
    return x / np.where(divisor == 0.0, 1.0, divisor), {"norm": length.squeeze(axes)}
