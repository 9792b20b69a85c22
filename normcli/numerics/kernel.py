"""The kernel: a block of values and what was measured of its groups in, normalized values out, rounded once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.leaves import CHUNK
from normcli.numerics.pairs import Pair, pair_divide, quick_two_sum, two_diff, two_prod, two_sum
from normcli.numerics.rounding import store

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from normcli.numerics.divisor import Solution
    from normcli.numerics.workspace import Workspace

    Floats = NDArray[np.float64]
    Step = Callable[[NDArray[Any], NDArray[Any], list[Any], Workspace], None]


def apply(
    raw: NDArray[Any],
    out: NDArray[Any],
    solution: Solution,
    exact: bool,
    gamma: Floats | None,
    beta: Floats | None,
    work: Workspace,
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
    exact : bool
        Full float64 results; otherwise enough for 24 bits.
    gamma, beta : ndarray or None
        Of as many axes as raw, to be broadcast against it.
    """
    if exact and (gamma is not None or beta is not None):
        step = _apply_in_pairs if solution.centred else _apply_in_pairs_uncentred
        operands = [solution.mean.hi, solution.mean.lo, solution.divisor.hi, solution.divisor.lo, gamma, beta]
    else:
        step = _apply_exact if exact else _apply_short
        centre = list(solution.mean) if solution.centred else [None, None]
        scale = solution.divisor.hi if exact else 1.0 / solution.divisor.hi
        operands = [*centre, scale, gamma, beta, *(solution.divisor if beta is not None else (None, None))]
    _apply_by_chunks(step, *_widen(raw, out, operands), work)


def apply_affine(out: NDArray[Any], gamma: Floats | None, beta: Floats | None) -> None:
    """Multiply by gamma and add beta in place, where x̂ was rounded before, and round once more.

    Parameters
    ----------
    out : ndarray
        Of any float dtype.
    gamma, beta : ndarray or None
        Of as many axes, to be broadcast against it.
    """
    store(out, _affine_in_pairs(out.astype(np.float64), None, None, (1.0, 0.0), gamma, beta))


def _apply_by_chunks(
    step: Step, raw: NDArray[Any], out: NDArray[Any], operands: list[Any], work: Workspace
) -> None:
    """Take a step for each chunk; None operands stay None, the others are cut where they do not broadcast."""
    length, size = raw.shape[0], raw.size
    if size <= CHUNK or (raw.ndim == 1 and length <= 2 * CHUNK):
        step(raw, out, operands, work)
    elif length == 1 or size // length > CHUNK:
        for i in range(length):
            part = [a if a is None else a[min(i, len(a) - 1)] for a in operands]
            _apply_by_chunks(step, raw[i], out[i], part, work)
    else:
        rows = max(1, CHUNK // (size // length))
        for i in range(0, length, rows):
            s = slice(i, i + rows)
            step(raw[s], out[s], [a if a is None or len(a) == 1 else a[s] for a in operands], work)


_WIDE = 1024
"""Short lines are joined to about this length."""

SHORTEST_WIDE_LINE = _WIDE // 2
"""Lines of this length are left as they are."""


def _widen(
    raw: NDArray[Any], out: NDArray[Any], operands: list[Any]
) -> tuple[NDArray[Any], NDArray[Any], list[Any]]:
    """Join short lines into longer ones, where the operands do not vary from line to line."""
    if (
        raw.ndim < 2
        or raw.shape[-1] >= SHORTEST_WIDE_LINE
        or not (raw.flags.c_contiguous and out.flags.c_contiguous)
    ):
        return raw, out, operands
    lines, line = raw.shape[-2:]
    if any(a is not None and a.shape[-2] > 1 for a in operands) or all(
        a is None or a.shape[-1] == 1 for a in operands
    ):
        return raw, out, operands
    together = math.gcd(lines, 1 << max(0, (_WIDE // line).bit_length() - 1))
    shape = (*raw.shape[:-2], lines // together, line * together)
    # As `np.tile`, which takes longer than all the arithmetic on a small tensor.
    wide = [
        a if a is None or a.shape[-1] == 1 else a.repeat(together, axis=-2).reshape(*a.shape[:-2], 1, -1)
        for a in operands
    ]
    return raw.reshape(shape), out.reshape(shape), wide


def _as_float64(raw: NDArray[Any], work: Workspace) -> Floats:
    if raw.dtype == np.float64:
        return raw
    x = work.get("x", raw.shape)
    np.copyto(x, raw)
    return x


def _apply_exact(raw: NDArray[Any], out: NDArray[Any], operands: list[Any], work: Workspace) -> None:
    """(x - hi - lo) / divisor: the first difference is exact where the second could cancel (Sterbenz)."""
    hi, lo, divisor = operands[:3]
    y = out if out.dtype == np.float64 else work.get("y", raw.shape)
    x = raw
    if hi is not None:
        x = np.subtract(x, hi, out=y)
        if lo is not None:
            np.subtract(x, lo, out=y)
    np.divide(x, divisor, out=y)
    if y is not out:
        store(out, y)


def _apply_short(raw: NDArray[Any], out: NDArray[Any], operands: list[Any], work: Workspace) -> None:
    hi, lo, factor, gamma, beta, *divisor = operands
    x = _as_float64(raw, work)
    y = x if beta is None and x is not raw else work.get("y", raw.shape)
    last = x
    if hi is not None:
        last = np.subtract(x, hi, out=y)
        if lo.any():  # most sums are exact, and a power of two divides them exactly
            np.subtract(y, lo, out=y)
    np.multiply(last, factor, out=y)
    if gamma is not None:
        np.multiply(y, gamma, out=y)
    if beta is not None:
        np.add(y, beta, out=y)
        _repair(y, x, hi, lo, divisor, gamma, beta)
    store(out, y)


def _apply_in_pairs(raw: NDArray[Any], out: NDArray[Any], operands: list[Any], work: Workspace) -> None:
    hi, lo, *divisor, gamma, beta = operands
    store(out, _affine_in_pairs(_as_float64(raw, work), hi, lo, divisor, gamma, beta))


def _apply_in_pairs_uncentred(
    raw: NDArray[Any], out: NDArray[Any], operands: list[Any], work: Workspace
) -> None:
    _apply_in_pairs(raw, out, [None, None, *operands[2:]], work)


def _affine_in_pairs(x: Floats, hi: Any, lo: Any, divisor: Any, gamma: Any, beta: Any) -> Floats:
    """Return the affine step in pairs: good to some 2⁻⁷⁰ of its largest term, and then rounded."""
    if hi is None:
        y = Pair(x, np.zeros_like(x))
    else:
        d, e = two_diff(x, hi)
        y = quick_two_sum(d, e if lo is None else e - lo)
    quotients = pair_divide(y, Pair(*divisor))
    endless = np.isinf(divisor[0])
    if endless.any():  # a variance that was given may be infinite: all that is finite then becomes 0
        plain = y.hi / divisor[0]
        quotients = Pair(np.where(endless, plain, quotients.hi), np.where(endless, 0.0, quotients.lo))
    y = quotients
    if gamma is not None:
        p, e = two_prod(y.hi, gamma)
        y = quick_two_sum(p, e + y.lo * gamma)
    if beta is None:
        quotient: Floats = np.asarray(y.hi)
        return quotient
    s, e = two_sum(y.hi, beta)
    result = s + (e + y.lo)
    shifted: Floats = np.where(np.isfinite(result), result, s)
    return shifted


_CANCELS_BELOW = 2.0**-15


def _repair(y: Floats, x: Floats, hi: Any, lo: Any, divisor: Any, gamma: Any, beta: Any) -> None:
    """Compute again, in pairs, what the addition of beta made small."""
    near = np.abs(y) < _CANCELS_BELOW * np.abs(beta)
    if near.any():

        def pick(a: Any) -> Any:
            return None if a is None else np.broadcast_to(a, x.shape)[near]

        y[near] = _affine_in_pairs(
            x[near], pick(hi), pick(lo), [pick(a) for a in divisor], pick(gamma), pick(beta)
        )
