"""Spectral normalization, looked for: which axis is that of the rows of its matrix."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import get_eps
from normcli.engine.run import run
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.table import NORMS
from normcli.tuples import NamedTuple
from normcli.verify.estimates import iterate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from normcli.dtypes import Floats
    from normcli.norms.spec import Iteration
    from normcli.verify.estimates import Start

OF_MATRICES = next(norm.name for norm in NORMS.values() if norm.rows is not None)
"""The norm whose groups are matrices."""

_NEAR = 2.0**-40
"""How far off a singular value of LAPACK's may be, as a part of it."""

_MOST_BITS = 60.0


_ROUNDINGS = 16.0
"""Of its dtype, that a kernel's σ may be off where it is looked for by iterations."""


_NAMED = 10.0
"""Bits that a start is worth: of some thousand hypotheses it leaves the number of iterations."""


class FittedMatrix(NamedTuple):
    """A matrix that gives y within its slack: its rows, the exact result, the evidence, what estimates σ."""

    rows: tuple[int, ...]
    exact: Floats
    bits: float
    iteration: Iteration | None = None


def find_matrices(
    x: Floats, y: Floats, slack: Floats, dtype: np.dtype[Any], start: Start | None = None
) -> Iterator[FittedMatrix]:
    """Yield each axis of rows whose matrix, the whole of x, gives y within its slack.

    That is over its largest singular value, or over what the fewest power iterations from a start make of it.
    Rounding leaves an interval for the one factor that makes y of x. A matrix of rank 1 is left to lengths:
    its singular value is one.
    """
    if start is not None:
        yield from _find_iterations(x, y, slack + _ROUNDINGS * get_eps(dtype) * np.abs(y), start)
    factors = _bound_factor(x, y, slack)
    if factors is None:
        return
    length = float(np.linalg.norm(x))
    for axis in range(x.ndim if x.ndim > 2 else 1):  # a matrix and its transpose have one singular value
        sigma = float(np.linalg.norm(_lay(x, axis), 2))
        if not factors.hold(1.0 / sigma) or factors.low <= 1.0 / length:
            continue
        exact = _divide(x, axis, None)
        if np.all(np.abs(y - exact) <= slack):
            yield FittedMatrix((axis,), exact, factors.bits)


def _find_iterations(x: Floats, y: Floats, slack: Floats, start: Start) -> Iterator[FittedMatrix]:
    """Yield each axis of rows with the fewest power iterations whose estimate gives y within its slack."""
    factors = _bound_factor(x, y, slack)
    if factors is None:
        return
    for axis in range(x.ndim):
        for steps, sigma in iterate(_lay(x, axis), start):
            if not sigma or not factors.hold(1.0 / sigma):
                continue
            iteration = start.make_iteration(steps)
            exact = _divide(x, axis, iteration)
            if np.all(np.abs(y - exact) <= slack):
                yield FittedMatrix((axis,), exact, factors.bits + _NAMED - math.log2(steps), iteration)
                break


def _lay(x: Floats, axis: int) -> Floats:
    return np.moveaxis(x, axis, 0).reshape(x.shape[axis], -1)


def _divide(x: Floats, axis: int, iteration: Iteration | None) -> Floats:
    """Return x over the largest singular value of the matrix with rows along an axis, or over its estimate."""
    request = Request(OF_MATRICES, rows=(axis,), dtype="float64")
    if iteration is not None:
        request = request._replace(iterations=iteration.steps, u=iteration.u, v=iteration.v)
    return run(make_plan(request, x.shape, x.dtype), x)[0]


class _Factors(NamedTuple):
    """Between which positive numbers a factor lies."""

    low: float
    high: float

    def hold(self, factor: float) -> bool:
        """Whether one of LAPACK's may lie between them."""
        return self.low * (1.0 - _NEAR) <= factor <= self.high * (1.0 + _NEAR)

    @property
    def bits(self) -> float:
        """How many bits of a factor they tell."""
        return -math.log2(max((self.high - self.low) / self.high, 2.0**-_MOST_BITS))


def _bound_factor(x: Floats, y: Floats, slack: Floats) -> _Factors | None:
    """Return between which positive factors the one lies that makes y of x; None if there is none."""
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return None
    there = x != 0.0
    if not there.any() or np.any(np.abs(y[~there]) > slack[~there]):
        return None
    ratio, margin = y[there] / x[there], slack[there] / np.abs(x[there])
    low, high = float(np.max(ratio - margin)), float(np.min(ratio + margin))
    return _Factors(low, high) if 0.0 < low <= high else None
