"""A normalization undone: x = (y − beta) / gamma · divisor + mean, and what x lost by the rounding of y."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import is_float
from normcli.engine.inputs import NO_INPUTS
from normcli.engine.passes import Passes
from normcli.engine.run import open_run
from normcli.engine.tiling.blocks import open_source
from normcli.engine.tiling.geometry import find_geometry
from normcli.numerics.deciding import PRECISIONS
from normcli.numerics.elements.in_pairs import Elements
from normcli.numerics.elements.inverse import invert as invert_elements
from normcli.numerics.rounding import store, widen_exactly
from normcli.numerics.statistics.solution import solve

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.engine.inputs import Inputs
    from normcli.engine.tiling.geometry import Slices
    from normcli.engine.walk import Effort
    from normcli.norms.plan import Plan
    from normcli.numerics.statistics.divisor import Solution
    from normcli.numerics.workspace import Workspace


_BLOCK = 1 << 14
"""The most values in a tile: some forty float64 arrays of its size are made, whose memory is used again."""


@dataclass(frozen=True)
class Loss:
    """The accuracy that values restored from y may have lost, as y was rounded.

    Parameters
    ----------
    count : int
        The number of values that the rounding of y alone may have changed by more than half a ulp of x.
    bound : float
        The largest such change possible, in the unit of x: 0.5 ulp(y) · divisor / gamma.
    overflows : int
        The number of values where y is finite and x is not.
    """

    count: int = 0
    bound: float = 0.0
    overflows: int = 0

    def add(self, other: Loss) -> Loss:
        """Return the loss over the values of two losses: counts added, and the larger bound."""
        bound = max(self.bound, other.bound)
        return Loss(self.count + other.count, bound, self.overflows + other.overflows)


def invert(
    plan: Plan, values: NDArray[Any], inputs: Inputs, out: NDArray[Any] | None, effort: Effort
) -> tuple[NDArray[Any], Loss]:
    """Undo a normalization with known statistics, in pairs of doubles, rounded once.

    Parameters
    ----------
    plan : Plan
        The plan of the normalization, for the shape of `values`.
    values : ndarray
        The normalized values, y.
    inputs : Inputs
        Gamma, beta and `measured`, the statistics of the groups, which has to be given; no others are used.
    out : ndarray or None
        The array that the result is written to: C-contiguous, of the result's shape and dtype. None for a new
        one.
    effort : Effort

    Returns
    -------
    tuple of (ndarray, Loss)
        The restored values, and what they may have lost by rounding.

    Raises
    ------
    DataError
        If the result does not fit into memory, or the file of `values` has changed since it was opened.
    """
    with open_run(plan, values, out) as (place, geometry, source, sink):
        if not values.size:
            return place, Loss()
        assert inputs.measured is not None
        with np.errstate(all="ignore"):
            solution = solve(plan, inputs.measured)
        return place, _InversePasses(plan, geometry, source, sink, inputs, effort).invert(solution)


def invert_by(
    fitted: Plan, of: NDArray[Any], plan: Plan, values: NDArray[Any], inputs: Inputs, effort: Effort
) -> tuple[NDArray[Any], Loss]:
    """Undo a normalization with the statistics of another tensor's groups.

    Parameters
    ----------
    fitted : Plan
        The plan of the other tensor: it has as many groups as `plan`, whose sizes may be others.
    of : ndarray
        The other tensor, before its normalization.
    plan : Plan
        The plan of the norm whose result `values` is.
    values : ndarray
        The normalized tensor.
    inputs : Inputs
        Gamma and beta are used.
    effort : Effort

    Returns
    -------
    tuple of (ndarray, Loss)
        The restored values, and what they may have lost by rounding.
    """
    there = find_geometry(fitted)
    with open_source(of, fitted, there) as other, open_run(plan, values, None) as opened:
        place, geometry, source, sink = opened
        if not values.size:
            return place, Loss()
        solution = _SolvingPasses(fitted, there, other, None, NO_INPUTS, effort).find()
        return place, _InversePasses(plan, geometry, source, sink, inputs, effort).invert(solution)


class _SolvingPasses(Passes):
    """The pass that solves all groups at once, and keeps the solution."""

    def find(self) -> Solution:
        self.walk.expect(1)
        self._measure_in_passes()
        return self._found

    def _write_all(self, solution: Solution, count: Any) -> None:
        self._found = solution


class _InversePasses(Passes):
    """The pass that undoes a normalization."""

    def invert(self, solution: Solution) -> Loss:
        """Write the restored values to the sink; return the accuracy they may have lost by rounding."""
        losses: list[Loss] = []

        def restore(tile: Slices, work: Workspace) -> None:
            losses.append(self._restore(tile, solution, work))

        self.walk.expect(1)
        self.walk.each(restore, whole=False, most=_BLOCK)
        return functools.reduce(Loss.add, losses)

    def _restore(self, tile: Slices, solution: Solution, work: Workspace) -> Loss:
        """Restore a tile's values and write them; return the accuracy they may have lost by rounding."""
        assert self.sink is not None
        runs = self.geometry.runs
        y, low = widen_exactly(np.ascontiguousarray(self.source.read(tile, runs, work)))
        gamma, beta = (None if part is None else part.cut(tile, runs) for part in (self.gamma, self.beta))
        solution = solution.take(lambda a: self.geometry.spread_groups(a, tile))
        divisor, mean = solution.divisor, solution.mean if solution.centred else None
        place = self.sink.open(tile, work)
        elements = Elements(y, mean, divisor, gamma, beta, low)
        store(place, invert_elements(elements, solution, PRECISIONS[place.dtype.name]))
        step = divisor.hi if gamma is None else divisor.hi / np.abs(gamma)
        loss = _measure_loss(y, self.source.dtype, place, step)
        self.sink.put(tile, place, work)
        return loss


def _measure_loss(y: Floats, dtype: np.dtype[Any], restored: NDArray[Any], step: Floats) -> Loss:
    """Return the loss of restored values: where half a ulp of y, times a step, is more than half a ulp of x.

    Parameters
    ----------
    y : ndarray
    dtype : dtype
        The dtype that y was rounded to; if it is not of floats, only overflows are counted.
    restored : ndarray
        The values of x.
    step : ndarray
        The change of x for a change of y by 1: divisor / |gamma|.
    """
    x = restored.astype(np.float64)
    overflows = int((np.isinf(x) & np.isfinite(y)).sum())
    if not is_float(dtype):
        return Loss(overflows=overflows)
    taken = step / 2.0 * _find_ulp(y, dtype.name)
    taken = np.where((y == 0.0) | ~np.isfinite(y), 0.0, taken)
    half = _find_ulp(x, restored.dtype.name) / 2.0
    lost = (taken > half) & np.isfinite(x)
    return Loss(int(lost.sum()), float(np.max(taken, initial=0.0)), overflows)


def _find_ulp(values: Floats, dtype: str) -> Floats:
    """Return a unit in the last place of each value, in a dtype."""
    precision = PRECISIONS.get(dtype, PRECISIONS["float64"])
    ulp: Floats = np.spacing(np.abs(values))  # of doubles
    return np.ldexp(ulp, PRECISIONS["float64"].bits - precision.bits) if precision.bits < 53 else ulp
