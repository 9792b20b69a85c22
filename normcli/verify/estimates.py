"""Spectral normalization by power iterations: how far off σ is, and how many iterations give it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.dtypes import get_eps
from normcli.engine.matrices import lay_matrix
from normcli.errors import UsageError
from normcli.norms.spec import Iteration
from normcli.numerics.singular import SingularValue
from normcli.tuples import NamedTuple
from normcli.verify.ulp import choose_counting_dtype

if TYPE_CHECKING:
    from collections.abc import Iterator

    from normcli.dtypes import Floats
    from normcli.norms.plan import Plan
    from normcli.norms.request import Request
    from normcli.verify.identify import Identification

MOST_TRIED = 100
"""Iterations: layers make 1 in a step and 15 at first."""

_CONVERGED = 2.0**-45
"""Estimates that differ by a smaller part are the last that is tried."""

_ROUNDINGS = 64.0
"""Of the dtype, that a kernel's σ may be off."""


class Start(NamedTuple):
    """What power iterations may have started from: one number for each row (u), or column (v)."""

    name: str
    vector: tuple[float, ...]

    def make_iteration(self, steps: int) -> Iteration:
        """Return so many of them."""
        return Iteration(steps, **({"u": None, "v": None} | {self.name: self.vector}))


def find_start(request: Request) -> Start | None:
    """Return what a request's power iterations start from; None where it has none.

    Raises
    ------
    UsageError
        If it has two.
    """
    given = {name: getattr(request, name) for name in ("u", "v") if getattr(request, name) is not None}
    if len(given) > 1:
        raise UsageError("power iterations start from one of u and v; give the one that was kept before them")
    return next((Start(name, vector) for name, vector in given.items()), None)


def iterate(matrix: Floats, start: Start) -> Iterator[tuple[int, float]]:
    """Yield how many iterations were made, and σ in doubles, until it stays as it is."""
    turns = (matrix.T, matrix) if start.name == "u" else (matrix, matrix.T)
    vector, last = np.array(start.vector), 0.0
    if len(vector) != turns[0].shape[1]:
        return
    for steps in range(1, MOST_TRIED + 1):
        for turned in turns:
            vector = turned @ (vector / np.linalg.norm(vector))
        sigma = float(np.linalg.norm(vector))
        yield steps, sigma
        if not abs(sigma - last) > _CONVERGED * sigma:
            return
        last = sigma


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
