"""The largest error of each value of a result, from the largest errors of mean and variance.

If mean and variance are off by E and F, the error of x̂ = (x − mean)/D is at most the sum of E/D, the change of
x̂ as D goes from that of var − F to that of var + F, and the roundings of the subtraction, of 1/D and of the
product. gamma and beta round once or twice each, and the result's own dtype at the end, by half a unit in the
last place.

With g = dy · gamma, A = mean(g) and B = mean(g · x̂), dx = (g − A − x̂ · B)/D. The errors of a kernel's x̂
and 1/D are those of its forward pass. The sums A and B are off by γₖ times the sum of their terms' absolute
values, B also by the error of x̂. Likewise dgamma = Σ dy · x̂ and dbeta = Σ dy, added in any order.

If eps is added to the root, x̂ · B is w · Σ g · w / (m · D · root): one of its two x̂ is divided by the root
alone. If eps is a floor above the root, x̂ · B is 0. If rounding decides which is larger, dx may be off by all
of x̂ · B.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.algorithms.moment_bounds import BOUNDS, DtypePrecision, bound_squares
from normcli.norms.rules import EpsMode
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.algorithms.moment_bounds import Drift, GroupFacts
    from normcli.algorithms.row_computation import Accumulation, Computation
    from normcli.algorithms.row_formula import RowFormula
    from normcli.dtypes import Floats


_RECIPROCAL_ROOT = 4
"""Roundings in 1/√v: of root and quotient, or 2 ulp of one instruction (CUDA C Programming Guide, `rsqrtf`)."""

SAFETY = 1.0 + 2.0**-20
"""The factor that covers the roundings of the bounds themselves, which are calculated in float64."""


class RowTask(NamedTuple):
    """The rows that a kernel normalizes, with gamma, beta and the facts on which bounds of its errors depend.

    Parameters
    ----------
    rows : ndarray, shape (groups, values)
    groups : GroupFacts
        The exact mean, variance and other measures of each row.
    formula : RowFormula
    gamma, beta : ndarray
        Arrays that broadcast against the rows; gamma has its offset added.
    is_rounded : bool
        True if the exact result rounds x̂ before gamma.
    """

    rows: Floats
    groups: GroupFacts
    formula: RowFormula
    gamma: Floats
    beta: Floats
    is_rounded: bool = False


class Slack(NamedTuple):
    """The largest error of each value of y, and the groups for which the bounds say nothing.

    Parameters
    ----------
    error : ndarray, shape (groups, values)
    void : ndarray of bool, shape (groups,)
        True where the bounds are so wide that an output of zeros, or any output, is within them.
    """

    error: Floats
    void: NDArray[np.bool_]


class Known(NamedTuple):
    """Bounds of a kernel's mean and 1/divisor for each row; all arrays have the shape (groups, 1).

    Parameters
    ----------
    off : ndarray
        The largest error of the kernel's mean.
    inverse : ndarray
        The exact 1/divisor.
    least, most : ndarray
        The smallest and the largest 1/divisor that the kernel may have.
    """

    off: Floats
    inverse: Floats
    least: Floats
    most: Floats

    def round(self, mean: Floats, p: DtypePrecision) -> Known:
        """Return the bounds after mean and 1/divisor are rounded to the dtype of `p`."""
        off = self.off + p.halve_place(np.abs(mean) + self.off)
        least, most = self.least * (1.0 - p.gamma(2)), self.most * (1.0 + p.gamma(2))
        return self._replace(off=off, least=least - p.underflow, most=p.limit(most, most + p.underflow))

    @property
    def ratio(self) -> Floats:
        """The largest relative error of a kernel's 1/divisor, shape (groups, 1)."""
        return np.maximum(self.most / self.inverse - 1.0, 1.0 - self.least / self.inverse)


def bound_rows(task: RowTask, computation: Computation, dtype: np.dtype[Any]) -> Slack:
    """Return the largest errors of y = (x − mean) · (1/divisor) · gamma + beta, as a kernel calculates it.

    Parameters
    ----------
    task : RowTask
        The rows, and gamma and beta.
    computation : Computation
        The kernel's algorithm, dtype of sums and order of casts; the algorithm must be in
        `normcli.algorithms.moment_bounds.BOUNDS`.
    dtype : dtype
        The dtype of the result.
    """
    (algorithm, sums), cast = computation.accumulation, computation.cast.name
    p, out, row = DtypePrecision.of(sums), DtypePrecision.of(dtype.name), BOUNDS[algorithm.name]
    bound = row.bound if task.formula.centres else bound_squares
    with np.errstate(all="ignore"):
        known = bound_inverse(task, bound(task.groups, p, row.order(task.groups.size)), p)
        ops, off = p, np.zeros((1, 1))
        if cast == "statistics":
            ops, off = out, out.halve_place(np.abs(task.rows))
            known = known.round(task.groups.mean[:, None], out)
        xhat, error = bound_xhat(task, known, off, ops)
        for rounds in (cast == "before-gamma", task.is_rounded):
            error = error + (out.halve_place(np.abs(xhat) + error) if rounds else 0.0)
        void = is_void(error, xhat)
        ops = out if cast == "before-gamma" else ops
        return Slack(_bound_affine(task, xhat, error, ops, out), void)


def is_void(error: Floats, values: Floats) -> NDArray[np.bool_]:
    """Return True for rows in which zeros are within `error` of all `values`, or an error is not finite."""
    largest = np.abs(values).max(1)
    is_within = error.min(1) >= np.where(largest > 0.0, largest, 1.0)
    return np.asarray(is_within | ~(error.max(1) < np.inf))


def bound_inverse(task: RowTask, drift: Drift, p: DtypePrecision) -> Known:
    """Return bounds of each row's mean and 1/divisor, given the largest errors of its statistics (`drift`).

    `p` is the precision of the sums.
    """
    formula, underflow = task.formula, p.underflow
    times = 1.0 if formula.averages else float(task.groups.size)
    exact, off = task.groups.variance * times, drift.square * times
    low = exact - off if drift.may_be_negative else np.maximum(exact - off, 0.0)
    eps, step = formula.eps or 0.0, p.unit * (formula.eps or 0.0) + underflow
    below, above = formula._replace(eps=max(0.0, eps - step)), formula._replace(eps=eps + step)
    smallest = np.where((low <= 0.0) & (eps == 0.0), 0.0, np.nan_to_num(below.find_divisor(low)))
    largest = above.find_divisor(exact + off) if eps else formula.find_divisor(exact + off)
    rounding = p.gamma(_RECIPROCAL_ROOT)
    most = (1.0 + rounding) ** 2 / smallest + underflow
    least = np.maximum((1.0 - rounding) ** 2 / largest - underflow, 0.0)
    columns = drift.mean, 1.0 / formula.find_divisor(exact), least, p.limit(most, most)
    return Known(*(column[:, None] for column in columns))


def bound_xhat(task: RowTask, known: Known, off: Floats, ops: DtypePrecision) -> tuple[Floats, Floats]:
    """Return the exact x̂ and its largest error, each of shape (groups, values).

    Parameters
    ----------
    task : RowTask
    known : Known
        The bounds of mean and 1/divisor.
    off : ndarray
        The largest error of x before the subtraction.
    ops : DtypePrecision
        The precision of the subtraction and the product.
    """
    deviation = (task.rows - task.groups.mean[:, None]) * SAFETY
    size, unit = np.abs(deviation), ops.unit
    off = (off + known.off) * (1.0 + unit) + unit * size
    off = ops.limit(size + off, off)
    xhat = deviation * known.inverse
    error = off * known.most * (1.0 + unit) + np.abs(xhat) * (known.ratio + unit * (1.0 + known.ratio))
    return xhat, error + ops.underflow * (1.0 + size)


def _bound_affine(
    task: RowTask, xhat: Floats, error: Floats, ops: DtypePrecision, out: DtypePrecision
) -> Floats:
    """Return the largest error of y = x̂ · gamma + beta; ∞ where y overflows.

    Parameters
    ----------
    task : RowTask
    xhat, error : ndarray, shape (groups, values)
        The exact x̂, and its largest error.
    ops, out : DtypePrecision
        The precision of product and sum, and the precision to which y is rounded at the end.
    """
    gamma, beta = np.abs(task.gamma), np.abs(task.beta)
    size = gamma * np.abs(xhat)
    error = gamma * error * (1.0 + ops.gamma(3)) + ops.gamma(3) * size + ops.underflow * (1.0 + np.abs(xhat))
    if task.beta.any():
        error += ops.gamma(2) * (size + error + beta) + ops.underflow
    size = np.abs(xhat * task.gamma + task.beta)
    if ops.name != out.name:
        error += out.halve_place(size + error)
    return np.where((size + error) * (1.0 + out.unit) < out.largest, error * SAFETY, np.inf)


_TERMS = 6
"""The most roundings of a term of dx, in any order of operations, besides those of the sums A and B."""


_ROUGH = 2.0**-16
"""The relative error of dx in `bound_gradients`, whose factors are a little too large, each by `SAFETY`."""


class GradientSlack(NamedTuple):
    """The largest errors of gradients; each array but `void` has the shape (groups, values).

    Parameters
    ----------
    error : ndarray
        The largest error of dx.
    shares, slopes : ndarray
        Upper bounds of |dy · x̂| and |dy|, the terms that dgamma and dbeta sum.
    off : ndarray
        The largest error of dy · x̂, from the error of x̂.
    void : ndarray of bool, shape (groups,)
        True where the bounds say nothing: the error of dx may be infinite, or as large as dy · gamma / divisor.
    """

    error: Floats
    shares: Floats
    slopes: Floats
    off: Floats
    void: NDArray[np.bool_]


def bound_gradients(
    task: RowTask, dy: Floats, accumulation: Accumulation, dtype: np.dtype[Any]
) -> GradientSlack:
    """Return the largest errors of a backward pass that is calculated in the dtype of its sums.

    Parameters
    ----------
    task : RowTask
        The rows, and gamma and beta.
    dy : ndarray, shape (groups, values)
        The derivative with respect to y.
    accumulation : Accumulation
        The algorithm and the dtype of the sums.
    dtype : dtype
        The dtype of dx.
    """
    p, out = DtypePrecision.of(accumulation.dtype), DtypePrecision.of(dtype.name)
    row = BOUNDS[accumulation.algorithm.name]
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
    """Return the factor of mean(dy · gamma · x̂) in dx, and its largest error, both of shape (groups, values).

    The factor is x̂; (x − mean)/√var if eps is added to the root; 0 where eps is a floor above the root.

    Parameters
    ----------
    task : RowTask
    drift : Drift
        The largest errors of the statistics.
    known : Known
        The bounds of mean and 1/divisor.
    p : DtypePrecision
        The precision of the sums.
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
    """Return the largest error of each sum of `count` terms in any order (dgamma or dbeta); ∞ if it overflows.

    Parameters
    ----------
    sizes, off : ndarray
        The sums of the terms' absolute values, and of the terms' largest errors.
    count : int
        The number of terms of each sum.
    accumulation : Accumulation
        The accumulation, in whose dtype terms are added.
    dtype : dtype
        The dtype to which the sums are rounded at the end.
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
