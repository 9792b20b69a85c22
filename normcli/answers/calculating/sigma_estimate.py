"""The distance of power iterations' σ from the largest singular value, as a line of an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from normcli.documents.document import Line
from normcli.engine.sn.passes import iterate_matrices
from normcli.engine.sn.singular_values import approximate_largest

if TYPE_CHECKING:
    from normcli.results.result import Result

_ROUNDING = 2.0**-32
"""The relative error of a number of ten digits."""


def tell_estimate(result: Result) -> Line:
    """Return how far the estimated σ is off; of several matrices, for the one furthest off."""
    matrices = iterate_matrices(result.plan, result.input, result.inputs)
    sigma, largest = result.sigma.reshape(-1), np.array([*map(approximate_largest, matrices)])
    usable = np.isfinite(largest) & (largest > 0.0)
    if not usable.any():
        return Line(("y: there is no largest singular value to hold σ against",))
    sigma, largest = sigma[usable], largest[usable]
    off = sigma / largest - 1.0
    worst = int(np.argmax(np.abs(off)))
    size, share = f"{largest[worst]:.6g}", f"{100.0 * abs(off[worst]):.3g} %"
    if abs(off[worst]) <= _ROUNDING:
        return Line((f"σ is the largest singular value, {size}, to rounding",))
    after = f"that of y is {largest[worst] / sigma[worst]:.6g}" if sigma[worst] else "y is not finite"
    if off[worst] < 0.0:
        told = f"σ is {share} below the largest singular value, {size}"
    else:
        told = f"σ is {share} above the largest singular value, {size}"
    return Line((told, after, *(("of other matrices nearer",) if usable.sum() > 1 else ())))
