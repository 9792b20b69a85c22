"""ℓp lengths of a p so large that powers of the values leave float64."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.plan import Plan

    Floats = NDArray[np.float64]

LARGEST_P = 512.0
"""Up to here the powers of values scaled to 1/2 … 1 are far from underflow."""


def normalize_by_large_power(plan: Plan, values: NDArray[Any], out: NDArray[Any] | None) -> dict[str, Floats]:
    """Divide by max·(Σ(|x|/max)ᵖ)^(1/p): what the power magnifies of rounding, the root takes back.

    Parameters
    ----------
    plan : Plan
    values : ndarray
    out : ndarray or None
        Where the result goes; None to measure only.

    Returns
    -------
    dict
        `norm`, of `plan.stats_shape`.
    """
    assert plan.p is not None  # by the plan: every row that divides by a length has an exponent
    with np.errstate(all="ignore"):
        x = np.asarray(values, dtype=np.float64).reshape(plan.view_shape)
        size = np.abs(x)
        largest = np.maximum.reduce(size, axis=plan.view_axes, keepdims=True)
        usable = np.isfinite(largest) & (largest > 0.0)
        ratio = size / np.where(usable, largest, 1.0)
        total = np.add.reduce(ratio**plan.p, axis=plan.view_axes, keepdims=True)
        length = np.where(usable, largest * total ** (1.0 / plan.p), largest)
        if out is not None:
            divisor = length if plan.eps is None else np.maximum(length, plan.eps)
            np.copyto(
                out.reshape(plan.view_shape), x / np.where(divisor == 0.0, 1.0, divisor), casting="same_kind"
            )
        return {"norm": length.reshape(plan.stats_shape)}
