"""How far the gradients of a backward pass may be off at most, value by value.

With g = dy · gamma, A = mean(g) and B = mean(g · x̂), dx = (g − A − x̂ · B)/D. A kernel's x̂ and 1/D are off by
what `normcli.algorithms.element_bounds` has of its forward pass; A and B, as sums, by γₖ of the sums of their
absolute values, and B by what x̂ is off; dgamma = Σ dy · x̂ and dbeta = Σ dy likewise, added in any order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.algorithms.bounds import BOUNDS, Precision, bound_squares
from normcli.algorithms.element_bounds import SAFETY, bound_inverse, bound_xhat, is_void

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.algorithms.computation import Accumulation
    from normcli.algorithms.element_bounds import Task
    from normcli.dtypes import Floats

_TERMS = 6
"""Roundings that a term of dx goes through beside those of sums, however the terms are put together."""


class GradientSlack(NamedTuple):
    """How far gradients may be off.

    Parameters
    ----------
    error : ndarray, shape (groups, values)
        Of dx.
    shares, slopes : ndarray, shape (groups, values)
        The size of dy · x̂ and of dy: what each value adds to dgamma and dbeta.
    off : ndarray, shape (groups, values)
        How far dy · x̂ is off for what x̂ is.
    void : ndarray of bool, shape (groups,)
        Where no term of dx is larger than what it may be off by.
    """

    error: Floats
    shares: Floats
    slopes: Floats
    off: Floats
    void: NDArray[np.bool_]


def bound_gradients(task: Task, dy: Floats, accumulation: Accumulation, dtype: np.dtype[Any]) -> GradientSlack:
    """Return how far gradients may be off that are calculated in the dtype of an accumulation.

    Parameters
    ----------
    task : Task
        Of a norm that divides by √(var + eps) or √(ms + eps).
    dy : ndarray, shape (groups, values)
    accumulation : Accumulation
    dtype : dtype
        Of dx.
    """
    p, out, row = (
        Precision.of(accumulation.dtype),
        Precision.of(dtype.name),
        BOUNDS[accumulation.algorithm.name],
    )
    n, centres, order = task.groups.size, task.formula.centres, row.order(task.groups.size)
    with np.errstate(all="ignore"):
        known = bound_inverse(task, (row.bound if centres else bound_squares)(task.groups, p, order), p)
        xhat, off = bound_xhat(task, known, np.zeros((1, 1)), p)
        g = dy * task.gamma
        size, h, summed = np.abs(g), p.underflow, p.gamma(order.depth + _TERMS) + p.underflow * n
        first, first_off = np.zeros((1, 1)), np.zeros((1, 1))
        if centres:
            first, first_off = _mean(g, n), _mean(size, n) * summed + h
        freedom = n - task.formula.ddof
        second = _mean(g * xhat, freedom)
        second_off = _mean(size * (off * (1.0 + summed) + np.abs(xhat) * summed), freedom) + 3.0 * h
        widest = np.abs(second) + second_off
        terms = size + np.abs(first) + first_off + (np.abs(xhat) + off) * widest
        inner = first_off + np.abs(xhat) * second_off + off * widest + p.gamma(_TERMS) * terms + 3.0 * h
        inner = p.limit(terms * n, inner)
        dx = (g - first - xhat * second) * known.inverse
        error = inner * known.most * (1.0 + p.gamma(_TERMS)) + np.abs(dx) * (known.ratio + p.gamma(_TERMS)) + h
        if p.name != out.name:
            error += out.halve_place(np.abs(dx) + error)
        void = is_void(error, g * known.inverse)  # dx itself is next to nothing where groups are of two
        error = np.where(np.abs(dx) + error < out.largest, error * SAFETY, np.inf)
        return GradientSlack(error, np.abs(dy) * (np.abs(xhat) + off), np.abs(dy), np.abs(dy) * off, void)


def bound_sum(
    sizes: Floats, off: Floats, count: int, accumulation: Accumulation, dtype: np.dtype[Any]
) -> Floats:
    """Return how far sums of so many terms are off, added in any order: dgamma or dbeta, in its dtype.

    Parameters
    ----------
    sizes, off : ndarray
        The sums of the terms' absolute values, and of how far they are off.
    count : int
    accumulation : Accumulation
    dtype : dtype
    """
    p, out = Precision.of(accumulation.dtype), Precision.of(dtype.name)
    with np.errstate(all="ignore"):
        error = p.limit(sizes, off * (1.0 + p.gamma(3)) + sizes * p.gamma(count + 3) + count * p.underflow)
        if p.name != out.name:
            error += out.halve_place(sizes + error)
        return error * SAFETY


def _mean(values: Floats, count: int) -> Floats:
    mean: Floats = values.sum(1, keepdims=True) / count
    return mean
