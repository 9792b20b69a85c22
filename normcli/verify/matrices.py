"""Spectral normalization, looked for: which axis is that of the rows of its matrix."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from normcli.engine.run import run
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.table import NORMS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from normcli.dtypes import Floats

OF_MATRICES = next(norm.name for norm in NORMS.values() if norm.rows is not None)
"""The norm whose groups are matrices."""

_NEAR = 2.0**-40
"""How far off a singular value of LAPACK's may be, as a part of it."""

_MOST_BITS = 60.0


class FittedMatrix(NamedTuple):
    """A matrix that gives y within its slack: its rows, the exact result, the evidence."""

    rows: tuple[int, ...]
    exact: Floats
    bits: float


def find_matrices(x: Floats, y: Floats, slack: Floats) -> Iterator[FittedMatrix]:
    """Yield each axis of rows whose matrix, the whole of x, gives y within its slack.

    Rounding leaves an interval for the one factor that makes y of x. A matrix of rank 1 is left to lengths:
    its singular value is one.
    """
    factors = _bound_factor(x, y, slack)
    if factors is None:
        return
    low, high = factors
    length = float(np.linalg.norm(x))
    for axis in range(x.ndim if x.ndim > 2 else 1):  # a matrix and its transpose have one singular value
        matrix = np.moveaxis(x, axis, 0).reshape(x.shape[axis], -1)
        sigma = float(np.linalg.norm(matrix, 2))
        is_far = not low * (1.0 - _NEAR) <= 1.0 / sigma <= high * (1.0 + _NEAR)
        if is_far or low <= 1.0 / length:
            continue
        exact = run(make_plan(Request(OF_MATRICES, rows=(axis,), dtype="float64"), x.shape, x.dtype), x)[0]
        if np.all(np.abs(y - exact) <= slack):
            width = max((high - low) / high, 2.0**-_MOST_BITS)
            yield FittedMatrix((axis,), exact, -math.log2(width))


def _bound_factor(x: Floats, y: Floats, slack: Floats) -> tuple[float, float] | None:
    """Return between which positive factors the one lies that makes y of x; None if there is none."""
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return None
    there = x != 0.0
    if not there.any() or np.any(np.abs(y[~there]) > slack[~there]):
        return None
    ratio, margin = y[there] / x[there], slack[there] / np.abs(x[there])
    low, high = float(np.max(ratio - margin)), float(np.min(ratio + margin))
    return (low, high) if 0.0 < low <= high else None
