"""The gradients of groups whose results are float32 or half precision: in doubles, with error bounds.

u is 2⁻⁵³. Bounds are of first order; `SECOND_ORDER` makes room for products of errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import is_short_float
from normcli.norms.rules import Centre, EpsMode
from normcli.numerics.deciding import U
from normcli.numerics.gradients.coefficients import is_within
from normcli.numerics.rounding import store
from normcli.numerics.statistics.divisor import find_freedom
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.norms.plan import Plan
    from normcli.numerics.gradients.coefficients import Coefficients

SECOND_ORDER = 1.25
"""A factor of bounds: it makes room for products of up to eight relative errors below 2⁻²⁰, and for the
roundings of bounds."""

_LEAST, _LARGEST = 2.0**-60, 2.0**60
"""Rows whose largest numbers lie between these have products far from the ends of the range."""

_LARGEST_CENTRE = 2.0**20
"""If the remaining mean of deviations is this many times their root mean square, digits are lost."""


class KnownDoubles(NamedTuple):
    """Numbers, and upper bounds of their errors."""

    value: Floats
    error: Floats


_NO_SUMS = KnownDoubles(np.zeros(()), np.zeros(()))


class DoubleGroups(NamedTuple):
    """Groups, one a row, as doubles: the numbers of dx = (g − A − w · B) / D, with the divisor D.

    Parameters
    ----------
    w, g : KnownDoubles
        x − μ, and the derivative of the loss with respect to x̂ minus its mean A, shape (rows, n); one bound for
        each row, shape (rows, 1).
    w_size, g_size : ndarray, shape (rows, 1)
        The largest |w|, and the largest |g| with |A| added.
    steepness, inverse : KnownDoubles of ndarray, shape (rows, 1)
        B, and 1/D, of which the bound is of the relative error.
    total, share : KnownDoubles of ndarray, shape (rows, 1)
        The sums of the derivatives with respect to x̂, and of their products with x̂; 0 where they are known
        elsewhere.
    usual : ndarray of bool, shape (rows, 1)
        True where the bounds hold.
    """

    w: KnownDoubles
    g: KnownDoubles
    w_size: Floats
    g_size: Floats
    steepness: KnownDoubles
    inverse: KnownDoubles
    usual: Selected
    total: KnownDoubles = _NO_SUMS
    share: KnownDoubles = _NO_SUMS


def suits_doubles(plan: Plan, p: float, dtype: np.dtype[Any]) -> bool:
    """Whether doubles decide most gradients of a norm with ℓp exponent p in a dtype.

    They do for p = 2 (variance, mean square or ℓ2 length) with eps inside the root, no rule for nearly constant
    groups, if the dtype is float32 or half precision.
    """
    spec = plan.spec
    return is_short_float(dtype) and p == 2.0 and spec.eps_mode is EpsMode.INSIDE and spec.flat_rule is None


def solve_in_doubles(plan: Plan, x: Floats, g: Floats, off: Any = 0.0) -> DoubleGroups:
    """Return the coefficients of the gradients of groups, in doubles, with bounds of the errors.

    Parameters
    ----------
    plan : Plan
        The plan of a norm that divides by a root of squares, with eps inside the root.
    x : ndarray, shape (rows, n)
        The values, a row for each group.
    g : ndarray, shape (rows, n)
        The derivative of the loss with respect to x̂.
    off : ndarray, shape (rows, 1), or float
        An upper bound of the errors of a row's derivatives.
    """
    n = x.shape[-1]
    freedom = find_freedom(plan, n)
    steps = count_roundings(n)
    total = add_rows(g)
    w, rest, offset, w_error, mean = x, g, 0.0 * total, 0.0 * total, 0.0 * total
    if plan.norm.centre is Centre.MEAN:
        deviations, mean = x - add_rows(x) / n, total / n
        offset = add_rows(deviations) / n
        w, rest, offset = deviations - offset, g - mean, np.abs(offset)
    spread, scale = (np.sqrt(add_rows(a * a) / n) for a in (w, rest))
    w_size, g_size = _find_size(w), _find_size(g) + np.abs(mean)
    total_error = U * (steps + 2.0) * n * (scale + np.abs(mean)) + n * off
    if plan.norm.centre is Centre.MEAN:
        w_error = U * ((steps + 3.0) * (spread + offset) + 2.0 * w_size + offset)
    square = n * spread * spread / freedom + (plan.spec.eps or 0.0)
    ratio = offset / spread
    square_error = U * (steps + 14.0 + 2.0 * ratio)
    product, by = add_rows(rest * w), freedom * square
    product_error = U * n * spread * ((steps + 8.0 + ratio) * scale + np.abs(mean)) + n * spread * off
    steepness, inverse, inverse_error = product / by, 1.0 / np.sqrt(square), square_error / 2.0 + 4.0 * U
    share = product * inverse
    usual = (ratio < _LARGEST_CENTRE) & is_within(g_size, _LEAST, _LARGEST)
    for size in (w_size, spread, inverse):
        usual &= (size > _LEAST) & (size < _LARGEST)
    g_error = off + (total_error / n if plan.norm.centre is Centre.MEAN else w_error)
    steepness_error = product_error / by + np.abs(steepness) * (square_error + 4.0 * U)
    share_error = product_error * inverse + np.abs(share) * (inverse_error + U)
    terms = KnownDoubles(w, w_error), KnownDoubles(rest, g_error)
    factors = KnownDoubles(steepness, steepness_error), KnownDoubles(inverse, inverse_error)
    sums = KnownDoubles(total, total_error), KnownDoubles(share, share_error)
    return DoubleGroups(*terms, w_size, g_size, *factors, usual, *sums)


def shorten(known: Coefficients, x: Floats, shift: Floats | None, g: Floats, off: Any = 0.0) -> DoubleGroups:
    """Return groups for the fast gradients in doubles, from coefficients that are known in pairs.

    Their `total` and `share` are 0: the sums of groups in parts are known elsewhere.

    Parameters
    ----------
    known : Coefficients
        The coefficients of each row's group, shape (rows,).
    x : ndarray, shape (rows, n)
    shift : ndarray, shape (rows, 1), or None
        The number subtracted from x; None for 0.
    g : ndarray, shape (rows, n)
        The derivative of the loss with respect to x̂.
    off : float or ndarray, shape (rows, 1)
        An upper bound of the errors of g.
    """
    known = known.map(lambda a: a[:, None])
    deviations = x if shift is None else x - shift
    w, rest = deviations - known.centre.hi, g - known.mean.hi
    w_size, g_size = _find_size(w), _find_size(g) + np.abs(known.mean.hi)
    offset, steepness, inverse = np.abs(known.centre.hi), known.steepness.hi, known.inverse.hi
    usual = ~known.extreme & is_within(g_size, _LEAST, _LARGEST) & is_within(w_size, _LEAST, _LARGEST)
    usual &= np.isfinite(steepness) & (inverse > _LEAST) & (inverse < _LARGEST)
    return DoubleGroups(
        KnownDoubles(w, U * (2.0 * w_size + 3.0 * offset) + known.centre_error),
        KnownDoubles(rest, U * 2.0 * np.abs(known.mean.hi) + known.mean_error + off),
        w_size,
        g_size,
        KnownDoubles(steepness, U * 2.0 * np.abs(steepness) + known.steepness_error),
        KnownDoubles(inverse, np.full_like(inverse, 2.0 * U)),
        usual,
    )


def differentiate_in_doubles(
    groups: DoubleGroups, gamma: Floats | None, dtype: np.dtype[Any], gate: KnownDoubles | None = None
) -> tuple[NDArray[Any], Selected]:
    """Return dx in a dtype, rounded once, and an array that is True where the rounding is not decided.

    Parameters
    ----------
    groups : DoubleGroups
    gamma : ndarray, shape (rows, 1), or None
        The gamma of each row; None for 1.
    dtype : dtype
    gate : KnownDoubles or None
        Factors that dx is multiplied by before it is rounded.
    """
    (w, w_error), (g, g_error), w_size, g_size, (steepness, off), (inverse, part), usual, *_ = groups
    factor = inverse if gamma is None else inverse * gamma
    slope, scale = np.abs(steepness), SECOND_ORDER * np.abs(factor)
    error = scale * (g_error + w_size * off + slope * w_error + 4.0 * U * (g_size + w_size * slope))
    value = (g - w * steepness) * factor
    error = error + np.abs(value) * (SECOND_ORDER * part + 4.0 * U)
    unusual = ~usual
    if gate is not None:
        by, off = np.abs(gate.value), gate.error
        error = SECOND_ORDER * (error * (by + off) + np.abs(value) * (off + by * U))
        value = np.where((by == 0.0) & (off == 0.0), 0.0, value * gate.value)
        unusual = unusual | ~is_within(by, _LEAST, _LARGEST)
    low, high = np.empty((2, *value.shape), dtype)
    store(low, value - error)
    store(high, value + error)
    undecided = (low != high) | unusual
    zero = high == 0.0
    if zero.any():  # whose signs are those of small results
        undecided |= zero & (np.abs(value) <= error) & (error != 0.0)
    if gamma is not None:
        undecided |= ~is_within(gamma, _LEAST, _LARGEST)
    return high, undecided


def find_shares_in_doubles(groups: DoubleGroups, dy: Floats, steps: int, off: Any = 0.0) -> KnownDoubles:
    """Return dy · x̂ of each value, with bounds of its error that include the roundings of a later sum.

    Parameters
    ----------
    groups : DoubleGroups
    dy : ndarray, shape (rows, n)
    steps : int
        The number of roundings that a value goes through in the sum.
    off : float or ndarray
        An upper bound of the errors of dy.
    """
    error = groups.w.error + groups.w_size * (groups.inverse.error + (steps + 3.0) * U)
    own = np.abs(dy) * error + off * (groups.w_size + error)
    inverse = groups.inverse.value
    return KnownDoubles(dy * (groups.w.value * inverse), SECOND_ORDER * own * inverse)


def _find_size(values: Floats) -> Floats:
    """Return the largest magnitude of each row, of shape (rows, 1)."""
    return np.maximum.reduce(np.abs(values), axis=-1, keepdims=True, initial=0.0)


_LAST = 4
"""The most values of a row that NumPy adds, in an order of its own."""


def count_roundings(n: int) -> int:
    """Return the most roundings that one of n values goes through in `add_rows`."""
    steps = _LAST
    while n > _LAST:
        steps, n = steps + 1 + n % 2, n // 2
    return steps


def add_rows(values: Floats) -> Floats:
    """Return the sum of each row, of shape (rows, 1), halving rows until few values are left."""
    while (n := values.shape[-1]) > _LAST:
        half = n // 2
        halved = values[:, :half] + values[:, half : 2 * half]
        if n % 2:
            halved[:, :1] += values[:, -1:]
        values = halved
    return np.add.reduce(values, axis=-1, keepdims=True)
