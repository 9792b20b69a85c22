"""Spectral normalization by power iterations: how far off σ is, and how many iterations give it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.dtypes import get_eps
from normcli.engine.matrices import lay_matrix
from normcli.numerics.singular import SingularValue
from normcli.verify.iterations import MOST_TRIED, Start, iterate
from normcli.verify.ulp import choose_counting_dtype

if TYPE_CHECKING:
    from normcli.dtypes import Floats
    from normcli.norms.plan import Plan
    from normcli.norms.spec import Iteration
    from normcli.verify.identify import Identification

_ROUNDINGS = 64.0
"""Of the dtype, that a kernel's σ may be off."""


def tell_estimate(plan: Plan, found: Identification) -> str:
    """Return what a tensor that should be x / σ is by, where it is one factor times x; empty elsewhere.

    Parameters
    ----------
    plan : Plan
        Of a norm of any kind: only one of a single matrix has something to tell.
    found : Identification
    """
    plain, spec = found.plain, plan.spec
    if spec.rows is None or plan.grid.kept or plain is None or plain.axes or plain.shift.any():
        return ""
    factor = float(plain.scale.reshape(-1)[0])
    matrix = lay_matrix(plan, found.question.x).astype(np.float64)
    value = SingularValue(matrix)
    if not 0.0 < factor < math.inf or value.known is not None:
        return ""
    sigma, largest = 1.0 / factor, float(value.find())
    tolerance = _ROUNDINGS * get_eps(choose_counting_dtype(found.question.y.dtype))
    parts = ["", _compare(sigma, largest, tolerance)]
    if spec.iteration is not None:
        parts.append(_count_iterations(spec.iteration, matrix, sigma, tolerance))
    return " ".join(parts)


def _count_iterations(iteration: Iteration, matrix: Floats, sigma: float, tolerance: float) -> str:
    """Return how many iterations from what was given, be it u, v or both, give σ."""
    for name in ("u", "v"):
        vector = getattr(iteration, name)
        if vector is None:
            continue
        for steps, made in iterate(matrix, Start(name, vector)):
            if abs(made - sigma) <= tolerance * sigma:
                return f"That many power iterations from {name} would give it, to rounding: {steps}."
    return f"No number of power iterations from {iteration.start} up to {MOST_TRIED} gives it."


def _compare(sigma: float, largest: float, tolerance: float) -> str:
    """Return how σ lies beside the largest singular value."""
    off = sigma / largest - 1.0
    share = f"{100.0 * abs(off):.3g} %"
    if abs(off) <= tolerance:
        return f"Taken for x / σ, σ is {sigma:.6g}: the largest singular value, {largest:.6g}, to rounding."
    if off > 0.0:
        return (
            f"Taken for x / σ, σ is {sigma:.6g}, {share} above the largest singular value, {largest:.6g}: "
            "no power iterations end above it."
        )
    return (
        f"Taken for x / σ, σ is {sigma:.6g}, {share} below the largest singular value, {largest:.6g}: "
        "too few power iterations end below it, and so would many other factors."
    )
