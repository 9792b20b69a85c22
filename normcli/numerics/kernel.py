"""The kernel: normalizes a block of values with what was measured of their groups, and rounds once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.numerics.leaves import CHUNK
from normcli.numerics.pairs import Pair, pair_divide, quick_two_sum, two_diff, two_prod, two_sum
from normcli.numerics.rounding import store

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.numerics.divisor import Solution
    from normcli.numerics.workspace import Workspace


class Parameters(NamedTuple):
    """The parameters of the affine step y = gamma · x̂ + beta.

    Parameters
    ----------
    gamma, beta : ndarray or None
        Of as many axes as the values, to be broadcast against them; None for 1 and 0.
    """

    gamma: Floats | None = None
    beta: Floats | None = None


_NEITHER = Parameters()


class _Operands(NamedTuple):
    """What values are calculated with: arrays of as many axes, to be broadcast against them, or None.

    Parameters
    ----------
    mean, mean_rest : ndarray or None
        A pair; None for norms that do not centre.
    divisor, divisor_rest : ndarray or None
        A pair.
    factor : ndarray or None
        One over the divisor, where 24 bits are enough.
    gamma, beta : ndarray or None
    """

    mean: Any
    mean_rest: Any
    divisor: Any
    divisor_rest: Any
    factor: Any
    gamma: Any
    beta: Any

    def map(self, function: Callable[..., Floats]) -> _Operands:
        """Return the operands with a function (an index, a reshape) applied to each array."""
        return _Operands(*(None if a is None else function(a) for a in self))


def apply(
    raw: NDArray[Any],
    out: NDArray[Any],
    solution: Solution,
    work: Workspace,
    parameters: Parameters = _NEITHER,
    *,
    exact: bool,
) -> None:
    """Write gamma * (x - mean) / divisor + beta to `out`, rounded once.

    Parameters
    ----------
    raw : ndarray
        Of any float or integer dtype; it is not written to.
    out : ndarray
        Of the shape of raw, any strides, not overlapping raw.
    solution : Solution
        Of as many axes as raw, to be broadcast against it.
    work : Workspace
    parameters : Parameters
    exact : bool
        Full float64 results; otherwise enough for 24 bits.
    """
    mean, mean_rest, _ = solution.mean if solution.centred else (None, None, None)
    divisor, divisor_rest = solution.divisor
    factor = None
    if not exact:
        step, factor = _apply_short, 1.0 / divisor
        if parameters.beta is None:
            divisor = divisor_rest = None
    elif any(a is not None for a in parameters):
        step = _apply_in_pairs
    else:
        step, divisor_rest = _apply_exact, None
    operands = _Operands(mean, mean_rest, divisor, divisor_rest, factor, *parameters)
    _apply_by_chunks(step, *_widen(raw, out, operands), work)


def apply_affine(out: NDArray[Any], parameters: Parameters) -> None:
    """Multiply values by gamma and add beta in place, and round once more: for conventions that round x̂ first.

    Parameters
    ----------
    out : ndarray
        Of any float dtype.
    parameters : Parameters
    """
    operands = _Operands(None, None, 1.0, 0.0, None, *parameters)
    store(out, _affine_in_pairs(out.astype(np.float64), operands))


def _apply_by_chunks(
    step: Callable[..., None], raw: NDArray[Any], out: NDArray[Any], operands: _Operands, work: Workspace
) -> None:
    """Take a step for each chunk of values; operands are cut where they do not broadcast."""
    length, size = raw.shape[0], raw.size
    if size <= CHUNK or (raw.ndim == 1 and length <= 2 * CHUNK):
        step(raw, out, operands, work)
    elif length == 1 or size // length > CHUNK:
        for i in range(length):
            part = operands.map(lambda a, i=i: a[min(i, len(a) - 1)])
            _apply_by_chunks(step, raw[i], out[i], part, work)
    else:
        rows = max(1, CHUNK // (size // length))
        for i in range(0, length, rows):
            s = slice(i, i + rows)
            step(raw[s], out[s], operands.map(lambda a, s=s: a if len(a) == 1 else a[s]), work)


_WIDE = 1024
"""Shorter lines are joined to about this length: NumPy takes a while for each line."""

SHORTEST_WIDE_LINE = _WIDE // 2
"""Lines of this length are left as they are."""


def _widen(
    raw: NDArray[Any], out: NDArray[Any], operands: _Operands
) -> tuple[NDArray[Any], NDArray[Any], _Operands]:
    """Join short lines into longer ones, where the operands do not vary from line to line."""
    if raw.ndim < 2 or raw.shape[-1] >= SHORTEST_WIDE_LINE:
        return raw, out, operands
    lines, line = raw.shape[-2:]
    shapes = [a.shape[-2:] for a in operands if a is not None]
    varies = any(count > 1 for count, _ in shapes) or all(length == 1 for _, length in shapes)
    if varies or not (raw.flags.c_contiguous and out.flags.c_contiguous):
        return raw, out, operands
    together = math.gcd(lines, 1 << max(0, (_WIDE // line).bit_length() - 1))
    shape = (*raw.shape[:-2], lines // together, line * together)
    # As `np.tile`, which takes longer than all the arithmetic on a small tensor.
    wide = operands.map(
        lambda a: a if a.shape[-1] == 1 else a.repeat(together, axis=-2).reshape(*a.shape[:-2], 1, -1)
    )
    return raw.reshape(shape), out.reshape(shape), wide


def as_float64(raw: NDArray[Any], work: Workspace) -> Floats:
    """Return values as float64: themselves, or in the memory of the workspace."""
    if raw.dtype == np.float64:
        return raw
    x = work.get("x", raw.shape)
    np.copyto(x, raw)
    return x


def _apply_exact(raw: NDArray[Any], out: NDArray[Any], operands: _Operands, work: Workspace) -> None:
    """(x - mean) / divisor: the first difference is exact where the second could cancel (Sterbenz)."""
    y = out if out.dtype == np.float64 else work.get("y", raw.shape)
    x = raw
    if operands.mean is not None:
        x = np.subtract(x, operands.mean, out=y)
        np.subtract(x, operands.mean_rest, out=y)
    np.divide(x, operands.divisor, out=y)
    if y is not out:
        store(out, y)


def _apply_short(raw: NDArray[Any], out: NDArray[Any], operands: _Operands, work: Workspace) -> None:
    x, beta = as_float64(raw, work), operands.beta
    y = x if beta is None and x is not raw else work.get("y", raw.shape)
    last = x
    if operands.mean is not None:
        last = np.subtract(x, operands.mean, out=y)
        if np.any(operands.mean_rest):  # often 0: most sums are exact, and so is division by a power of two
            np.subtract(y, operands.mean_rest, out=y)
    np.multiply(last, operands.factor, out=y)
    if operands.gamma is not None:
        np.multiply(y, operands.gamma, out=y)
    if beta is not None:
        np.add(y, beta, out=y)
        near = np.abs(y) < _CANCELS_BELOW * np.abs(beta)
        if near.any():
            y[near] = _affine_in_pairs(x[near], operands.map(lambda a: np.broadcast_to(a, x.shape)[near]))
    store(out, y)


_CANCELS_BELOW = 2.0**-15
"""What the addition of beta makes smaller than this part of it is calculated again, in pairs."""


def _apply_in_pairs(raw: NDArray[Any], out: NDArray[Any], operands: _Operands, work: Workspace) -> None:
    store(out, _affine_in_pairs(as_float64(raw, work), operands))


def _affine_in_pairs(x: Floats, operands: _Operands) -> Floats:
    """Return gamma * (x - mean) / divisor + beta, good to some 2⁻⁷⁰ of its largest term, and then rounded."""
    _, _, divisor, divisor_rest, _, gamma, beta = operands
    if operands.mean is None:
        y = Pair(x, np.zeros_like(x))
    else:
        d, e = two_diff(x, operands.mean)
        y = quick_two_sum(d, e - operands.mean_rest)
    quotients = pair_divide(y, Pair(divisor, divisor_rest))
    endless = np.isinf(divisor)
    if endless.any():  # a given variance may be infinite: every finite value then becomes 0
        plain = y.hi / divisor
        quotients = Pair(np.where(endless, plain, quotients.hi), np.where(endless, 0.0, quotients.lo))
    y = quotients
    if gamma is not None:
        p, e = two_prod(y.hi, gamma)
        y = quick_two_sum(p, e + y.lo * gamma)
    if beta is None:
        return np.asarray(y.hi)
    s, e = two_sum(y.hi, beta)
    result: Floats = s + (e + y.lo)
    return np.where(np.isfinite(result), result, s)
