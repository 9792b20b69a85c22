"""Bounds of the errors of a backward pass's gradients, value by value.

With g = dy · gamma, A = mean(g) and B = mean(g · x̂), dx = (g − A − x̂ · B)/D. The errors of a kernel's x̂
and 1/D are those of its forward pass (`normcli.algorithms.element_bounds`). The sums A and B are off by γₖ
times the sum of their terms' absolute values, B also by the error of x̂. Likewise dgamma = Σ dy · x̂ and
dbeta = Σ dy, added in any order.

Where eps is added to the root, x̂ · B is w · Σ g · w / (m · D · root): one of its two x̂ has the root alone.
Where eps is a floor, and rules, it is 0; where either may rule, all of it is what dx may be off by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.algorithms.element_bounds import SAFETY, bound_inverse, bound_xhat, is_void
from normcli.algorithms.moment_bounds import BOUNDS, DtypePrecision, bound_squares
from normcli.norms.rules import EpsMode
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.algorithms.element_bounds import Known, RowTask
    from normcli.algorithms.moment_bounds import Drift
    from normcli.algorithms.row_computation import Accumulation
    from normcli.dtypes import Floats

_TERMS = 6
"""The most roundings of a term of dx, in any order of operations, besides those of the sums A and B."""


_ROUGH = 2.0**-16
"""The relative error of dx as it is calculated here: its factors are a little too large, each by `SAFETY`."""


class GradientSlack(NamedTuple):
    """The largest errors of gradients.

    Parameters
    ----------
    error : ndarray, shape (groups, values)
        The error of dx.
    shares, slopes : ndarray, shape (groups, values)
        Bounds of |dy · x̂| and |dy|, whose sums are those of dgamma and dbeta.
    off : ndarray, shape (groups, values)
        The error of dy · x̂ that comes from x̂.
    void : ndarray of bool, shape (groups,)
        True where the bounds say nothing: the error of dx is as large as dy · gamma / divisor, or infinite.
    """

    error: Floats
    shares: Floats
    slopes: Floats
    off: Floats
    void: NDArray[np.bool_]


def bound_gradients(
    task: RowTask, dy: Floats, accumulation: Accumulation, dtype: np.dtype[Any]
) -> GradientSlack:
    """Return the largest errors of the gradients of a backward pass, calculated in the dtype of its sums.

    Parameters
    ----------
    task : RowTask
    dy : ndarray, shape (groups, values)
    accumulation : Accumulation
        The algorithm and the dtype of the sums.
    dtype : dtype
        The dtype of dx.
    """
    p, out, row = (
        DtypePrecision.of(accumulation.dtype),
        DtypePrecision.of(dtype.name),
        BOUNDS[accumulation.algorithm.name],
    )
    n, centres, order = task.groups.size, task.formula.centres, row.order(task.groups.size)
    with np.errstate(all="ignore"):
        drift = (row.bound if centres else bound_squares)(task.groups, p, order)
        known = bound_inverse(task, drift, p)
        xhat, off = bound_xhat(task, known, np.zeros((1, 1)), p)
        g = dy * task.gamma
        size, h, summed = np.abs(g), p.underflow, p.gamma(order.depth + _TERMS) + p.underflow * n
        first, first_off = np.zeros((1, 1)), np.zeros((1, 1))
        if centres:
            first, first_off = _mean(g, n), _mean(size, n) * summed + h
        freedom = n - task.formula.ddof if task.formula.averages else 1
        second = _mean(g * xhat, freedom)
        second_off = _mean(size * (off * (1.0 + summed) + np.abs(xhat) * summed), freedom) + 3.0 * h
        widest = np.abs(second) + second_off
        pull, pull_off = _bound_pull(task, drift, known, p)
        terms = size + np.abs(first) + first_off + (np.abs(pull) + pull_off) * widest
        inner = first_off + np.abs(pull) * second_off + pull_off * widest + p.gamma(_TERMS) * terms + 3.0 * h
        inner = p.limit(terms * n, inner)
        dx = (g - first - pull * second) * known.inverse
        size = np.abs(dx) + _ROUGH * terms * known.inverse
        error = inner * known.most * (1.0 + p.gamma(_TERMS)) + size * (known.ratio + p.gamma(_TERMS)) + h
        if p.name != out.name:
            error += out.halve_place(size + error)
        void = is_void(error, g * known.inverse)  # dx itself is next to nothing where groups are of two
        error = np.where(size + error < out.largest, error * SAFETY, np.inf)
        return GradientSlack(error, np.abs(dy) * (np.abs(xhat) + off), np.abs(dy), np.abs(dy) * off, void)


def _bound_pull(task: RowTask, drift: Drift, known: Known, p: DtypePrecision) -> tuple[Floats, Floats]:
    """Return the factor of B in dx, and its largest error, both of the shape (groups, values).

    The factor is x̂; (x − mean)/√var where eps is added to the root; 0 where eps is a floor above the root.
    """
    none, mode = np.zeros((1, 1)), task.formula.eps_mode
    if not task.formula.eps or mode is EpsMode.INSIDE:
        return bound_xhat(task, known, none, p)
    alone = bound_inverse(task._replace(formula=task.formula._replace(eps=None, eps_mode=None)), drift, p)
    pull, off = bound_xhat(task, alone, none, p)
    if mode is EpsMode.OUTSIDE:
        return pull, off
    floor = 1.0 / task.formula.find_divisor(np.zeros(1))  # 1 over it
    rules, may_rule, may_not = alone.inverse > floor, alone.most >= floor, alone.least <= floor
    wide = np.where(may_rule, np.abs(pull) + off, off)
    return np.where(rules, 0.0, pull), np.where(rules & ~may_not, 0.0, np.where(may_rule, wide, off))


def bound_sum(
    sizes: Floats, off: Floats, count: int, accumulation: Accumulation, dtype: np.dtype[Any]
) -> Floats:
    """Return the largest error of sums of `count` terms in any order (dgamma or dbeta); ∞ where one overflows.

    Parameters
    ----------
    sizes, off : ndarray
        The sums of the terms' absolute values, and of the terms' errors.
    count : int
    accumulation : Accumulation
        Its dtype is that of the sums.
    dtype : dtype
        The dtype to which the sums are rounded at last.
    """
    p, out = DtypePrecision.of(accumulation.dtype), DtypePrecision.of(dtype.name)
    with np.errstate(all="ignore"):
        error = p.limit(sizes, off * (1.0 + p.gamma(3)) + sizes * p.gamma(count + 3) + count * p.underflow)
        if p.name != out.name:
            error += out.halve_place(sizes + error)
        return error * SAFETY


def _mean(values: Floats, count: int) -> Floats:
    mean: Floats = values.sum(1, keepdims=True) / count
    return mean
