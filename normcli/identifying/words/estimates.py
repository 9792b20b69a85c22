"""Spectral normalization by power iterations: how far off σ is, and how many iterations give it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.checking.ulp import choose_counting_dtype
from normcli.dtypes import get_eps
from normcli.engine.matrices import lay_matrix
from normcli.identifying.models.matrices import MOST_TRIED, Start, iterate
from normcli.identifying.words.diagnosis import Diagnosis
from normcli.numerics.singular import SingularValue
from normcli.printable import format_count

if TYPE_CHECKING:
    from normcli.identifying.question import Identification
    from normcli.norms.plan import Plan
    from normcli.norms.spec import Iteration

_ROUNDINGS = 64.0
"""Of the dtype, that a kernel's σ may be off."""


def tell_estimate(plan: Plan, found: Identification) -> Diagnosis | None:
    """Return what a tensor that should be x / σ is divided by, where it is one factor times x; None elsewhere.

    Parameters
    ----------
    plan : Plan
        Of a norm of any kind: only one of a single matrix has something to tell.
    found : Identification
    """
    plain, spec, name = found.plain, plan.spec, plan.norm.name
    if spec.rows is None or plan.grid.kept or plain is None or plain.axes or plain.shift.any():
        return None
    if plain.exceptions is not None:
        return None
    factor = float(plain.scale.reshape(-1)[0])
    matrix = lay_matrix(plan, found.question.x).astype(np.float64)
    value = SingularValue(matrix)
    if not 0.0 < factor < math.inf or value.known is not None:
        return None
    sigma, largest = 1.0 / factor, float(value.find())
    tolerance = _ROUNDINGS * get_eps(choose_counting_dtype(found.question.y.dtype))
    place, reason = compare_sigma(sigma, largest, tolerance)
    told = Diagnosis(
        found.kind.value, f"{name} differs: σ is {sigma:.6g}, {place}",
        (f"the largest singular value is {largest:.6g}", *reason),
    )  # fmt: skip
    if spec.iteration is None:
        return told
    for start in _list_starts(spec.iteration):
        for steps, made in iterate(matrix, start):
            if abs(made - sigma) <= tolerance * sigma:
                cause = f"{name} differs: σ is of {format_count(steps, 'power iteration')} from {start.name}"
                return told._replace(
                    cause=f"{cause}, not {spec.iteration.steps}",
                    remedy=f"normcli {name} … --iterations {steps}",
                )
    tried = f"no number of power iterations from {spec.iteration.start} up to {MOST_TRIED} gives it"
    return told._replace(evidence=(*told.evidence, tried))


def _list_starts(iteration: Iteration) -> list[Start]:
    """Return what was given to start from: u, v or both."""
    given = {name: getattr(iteration, name) for name in ("u", "v")}
    return [Start(name, vector) for name, vector in given.items() if vector is not None]


def compare_sigma(sigma: float, largest: float, tolerance: float) -> tuple[str, tuple[str, ...]]:
    """Return how σ lies beside the largest singular value, and which estimates lie there."""
    off = sigma / largest - 1.0
    share = f"{100.0 * abs(off):.3g} %"
    if abs(off) <= tolerance:
        return "the largest singular value, to rounding", ()
    if off > 0.0:
        return f"{share} above the largest singular value", ("no power iterations end above it",)
    few = "too few power iterations end below it, and so do many other factors"
    return f"{share} below the largest singular value", (few,)
