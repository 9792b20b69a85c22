"""Tensors normalized with moments that are known beforehand, and that undone."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import is_float
from normcli.engine.blocks import open_parameters, open_source
from normcli.engine.geometry import find_geometry
from normcli.engine.inputs import NO_INPUTS
from normcli.engine.passes import Run
from normcli.engine.walk import DEFAULT_EFFORT, Walk
from normcli.numerics.pairs import Pair, pair_add, pair_divide, pair_multiply, two_diff
from normcli.numerics.rounding import store
from normcli.numerics.solution import solve

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.engine.blocks import Sink, Spread
    from normcli.engine.geometry import Geometry, Slices
    from normcli.engine.inputs import Inputs
    from normcli.engine.walk import Effort
    from normcli.norms.plan import Plan
    from normcli.numerics.divisor import Solution
    from normcli.numerics.solution import Measured
    from normcli.numerics.workspace import Workspace

    Floats = NDArray[np.float64]

_BITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}


def follow(
    plan: Plan,
    values: NDArray[Any],
    moments: Measured,
    sink: Sink,
    inputs: Inputs = NO_INPUTS,
    effort: Effort = DEFAULT_EFFORT,
) -> None:
    """Normalize a tensor into a sink with the moments of its groups, instead of their own.

    Parameters
    ----------
    plan : Plan
        Of the tensor's shape, with as many groups as there are moments.
    values : ndarray
    moments : Moments, Lengths, Extremes or Quartiles
        As `solve` takes them.
    sink : Sink
        The caller closes it.
    inputs : Inputs
        Of which gamma and beta are used.
    effort : Effort
    """
    if values.size == 0:
        return
    geometry = find_geometry(plan)
    source = open_source(values, plan, geometry)
    try:
        Run(plan, geometry, source, sink, inputs, effort).apply(moments)
    finally:
        source.close()


@dataclass(slots=True)
class Loss:
    """What normalizing may have taken from values that it is now undone of.

    Parameters
    ----------
    count : int
        Of values, of which the rounding of y alone may have taken more than half a ulp of x.
    bound : float
        The largest that it may have taken: 0.5 ulp(y) · divisor, of float64 2 ulp(y) · divisor.
    overflows : int
        Values of y that are finite, and x is not.
    """

    count: int = 0
    bound: float = 0.0
    overflows: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, count: int, bound: float, overflows: int) -> None:
        """Add what a tile says."""
        with self._lock:
            self.count += count
            self.bound = max(self.bound, bound)
            self.overflows += overflows


def invert(
    plan: Plan,
    values: NDArray[Any],
    moments: Measured,
    sink: Sink,
    inputs: Inputs = NO_INPUTS,
    effort: Effort = DEFAULT_EFFORT,
) -> Loss:
    """Undo `follow`: x = (y − beta) / gamma · divisor + mean, in pairs of doubles and rounded once.

    Parameters
    ----------
    plan, values, moments, sink, inputs, effort
        As in `follow`; the values are the normalized ones.

    Returns
    -------
    Loss
    """
    loss = Loss()
    if values.size == 0:
        return loss
    geometry = find_geometry(plan)
    source = open_source(values, plan, geometry)
    affine = open_parameters(plan, geometry, inputs.gamma, inputs.beta)
    with np.errstate(all="ignore"):
        solution = solve(plan, moments, exact=True)
    undoing = _Undoing(geometry, source, sink, solution, affine, loss, values.dtype)
    walk = Walk(geometry, source, effort, min(effort.block, _BLOCK))
    try:
        walk.expect(1)
        walk.each(undoing.work_on, whole=False, line=1)
    finally:
        source.close()
    return loss


_BLOCK = 1 << 16
"""Values in a tile: some twenty float64 arrays of it are at hand."""


def _choose_share(bits: int) -> float:
    """Return how many ulp a normalized value may be off: shorter ones are rounded once, from float64."""
    return 0.5 if bits < _BITS["float64"] else 2.0


class _Undoing:
    """The work on one tile."""

    def __init__(
        self,
        geometry: Geometry,
        source: Any,
        sink: Sink,
        solution: Solution,
        affine: tuple[Spread | None, Spread | None],
        loss: Loss,
        dtype: np.dtype[Any],
    ) -> None:
        self._source, self._sink, self._solution, self._loss = source, sink, solution, loss
        self._affine = affine
        self._geometry = geometry
        self._bits = _BITS.get(dtype.name, 53) if is_float(dtype) else None

    def work_on(self, tile: Slices, work: Workspace) -> None:
        raw = self._source.read(tile, self._geometry.runs, work)
        y = raw.astype(np.float64)
        gamma, beta = (None if part is None else part.cut(tile, self._geometry.runs) for part in self._affine)
        solution = self._solution.take(lambda a: self._geometry.spread_groups(a, tile))
        k = solution.scale
        z = Pair(y, np.zeros_like(y)) if beta is None else two_diff(y, beta)
        if gamma is not None:
            z = pair_divide(z, Pair(gamma, np.zeros_like(gamma)))
        x = pair_multiply(z, solution.divisor)
        if solution.centred:
            x = pair_add(x, solution.mean)
        result = np.where(np.isfinite(x.hi), x.hi, z.hi * solution.divisor.hi + solution.mean.hi)
        if k is not None:
            result = np.ldexp(result, -k)
        place = self._sink.open(tile, work)
        store(place, result)
        self._weigh(y, place, solution.divisor.hi if k is None else np.ldexp(solution.divisor.hi, -k), gamma)
        self._sink.put(tile, place, work)

    def _weigh(self, y: Floats, place: NDArray[Any], divisor: Floats, gamma: Floats | None) -> None:
        """Hold what y may be off, times the divisor, against half a ulp of x."""
        x = place.astype(np.float64)
        overflows = int((np.isinf(x) & np.isfinite(y)).sum())
        if self._bits is None:
            self._loss.add(0, 0.0, overflows)
            return
        step = divisor if gamma is None else divisor / np.abs(gamma)
        taken = np.ldexp(step * _choose_share(self._bits), np.frexp(y)[1] - self._bits)
        taken = np.where((y == 0.0) | ~np.isfinite(y), 0.0, taken)
        half = np.ldexp(0.5, np.frexp(x)[1] - _BITS[place.dtype.name])
        lost = (taken > half) & np.isfinite(x)
        self._loss.add(int(lost.sum()), float(np.max(taken, initial=0.0)), overflows)
