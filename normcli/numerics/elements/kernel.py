"""The kernel: normalizes a block of values with what is known of their groups, and rounds once.

Mean, divisor, gamma and beta are taken as exact numbers. Each value goes through one fixed sequence of
additions and multiplications of doubles, which depends on its group's numbers and the dtype alone. A test on
the result tells whether that sequence has reached it: if not, the value is calculated again, in pairs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.deciding import PRECISIONS
from normcli.numerics.elements.in_doubles import Operands, apply_doubles, prepare
from normcli.numerics.elements.in_pairs import Elements, calculate
from normcli.numerics.integers import widen_exactly
from normcli.numerics.rounding import store
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.numerics.elements.gate import Gated
    from normcli.numerics.statistics.divisor import Solution
    from normcli.numerics.workspace import Workspace


CHUNK = 1 << 16
"""Values that one call works on: of fewer, the calls take too long."""


class Parameters(NamedTuple):
    """The parameters of the affine step y = gamma · x̂ + beta.

    Parameters
    ----------
    gamma, beta : ndarray or None
        Of as many axes as the values, to be broadcast against them; None for 1 and 0.
    gate : Gated or None
        What multiplies y, likewise.
    """

    gamma: Floats | None = None
    beta: Floats | None = None
    gate: Gated | None = None


_NEITHER = Parameters()


def apply(
    raw: NDArray[Any],
    out: NDArray[Any],
    solution: Solution,
    work: Workspace,
    parameters: Parameters = _NEITHER,
) -> NDArray[np.intp] | None:
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

    Returns
    -------
    ndarray of int or None
        Flat indices into raw, in C order, of the values that are not decided: what is known of the mean and of
        the divisor allows two roundings of them. None if there are none.
    """
    mean = solution.mean if solution.centred else None
    gamma, beta, gate = parameters
    elements = Elements(raw, mean, solution.divisor, gamma, beta, error=solution.error, gate=gate)
    return _apply(elements, out, work)


def apply_affine(
    values: NDArray[Any], out: NDArray[Any], parameters: Parameters, work: Workspace
) -> NDArray[np.intp] | None:
    """Write gamma * values + beta to `out`, rounded once: for conventions that round x̂ first.

    Parameters
    ----------
    values, out : ndarray
        Of one shape and float dtype, not overlapping.
    parameters : Parameters
    work : Workspace

    Returns
    -------
    ndarray of int or None
        As of `apply`.
    """
    gamma, beta, gate = parameters
    return _apply(Elements(values, None, None, gamma, beta, gate=gate), out, work)


def _apply(elements: Elements, out: NDArray[Any], work: Workspace) -> NDArray[np.intp] | None:
    """Apply the sequence to all values, and calculate those again that it has not reached."""
    raw = elements.x
    if not raw.size:
        return None
    with np.errstate(all="ignore"):
        if elements.gate is not None:  # all values are calculated in pairs
            return _calculate_all(elements, out, np.arange(raw.size))
        wide = _widen(raw, out, prepare(elements))
        if wide[0].ndim and wide[0].shape[-1] >= _LONG_LINE:
            np.setbufsize(_SMALL_BUFFER)  # `errstate` restores it
        places = _apply_by_chunks(*wide, work)
        np.setbufsize(_USUAL_BUFFER)
        return _calculate_all(elements, out, places)


def _calculate_all(elements: Elements, out: NDArray[Any], places: NDArray[np.intp]) -> NDArray[np.intp] | None:
    """Calculate values at any number of places as `calculate_again` does."""
    undecided = [
        calculate_again(elements, out, places[start : start + _TOGETHER])
        for start in range(0, len(places), _TOGETHER)
    ]
    found = [places for places in undecided if places is not None]
    return np.concatenate(found) if found else None


def calculate_again(
    elements: Elements,
    out: NDArray[Any],
    places: NDArray[np.intp],
) -> NDArray[np.intp] | None:
    """Calculate values at some places by themselves; return the places of those that are not decided."""
    shape = elements.x.shape
    index = np.unravel_index(places, shape)
    chosen = elements.map(lambda a: np.broadcast_to(a, shape)[index])
    x, low = widen_exactly(chosen.x)
    chosen = chosen._replace(x=x, low=chosen.low if low is None else low)
    results = calculate(chosen, PRECISIONS[out.dtype.name])
    values = np.empty(len(places), out.dtype)
    store(values, results.values)
    out[index] = values
    return None if results.undecided is None else places[results.undecided]


_USUAL_BUFFER, _SMALL_BUFFER = np.getbufsize(), 16
_LONG_LINE = 256
"""NumPy copies broadcast operands into a buffer, unless it is this small: it takes more time than sums do."""

_TOGETHER = 1 << 12
"""Values that are calculated again in one call: some thirty float64 arrays of so many."""


def _apply_by_chunks(
    raw: NDArray[Any], out: NDArray[Any], operands: Operands, work: Workspace
) -> NDArray[np.intp]:
    """Apply the sequence chunk by chunk; return the places that it has not reached."""
    found: list[NDArray[np.intp]] = []
    most = CHUNK

    def walk(raw: NDArray[Any], out: NDArray[Any], operands: Operands, start: int) -> None:
        length, size = raw.shape[0] if raw.ndim else 1, raw.size
        if size <= most or (raw.ndim == 1 and length <= 2 * most):
            if (missed := apply_doubles(raw, out, operands, work)) is not None:
                found.append(np.flatnonzero(missed & ~np.isnan(raw)) + start)  # NaN stays what it is
        elif length == 1 or size // length > most:
            for i in range(length):
                part = operands.map(lambda a, i=i: a[min(i, len(a) - 1)])
                walk(raw[i], out[i], part, start + i * (size // length))
        else:
            rows = max(1, most // (size // length))
            for i in range(0, length, rows):
                s = slice(i, i + rows)
                part = operands.map(lambda a, s=s: a if len(a) == 1 else a[s])
                walk(raw[s], out[s], part, start + i * (size // length))

    walk(raw, out, operands, 0)
    return np.concatenate(found) if found else np.empty(0, np.intp)


_WIDE = 1024
"""Shorter lines are joined to about this length: NumPy takes a while for each line."""


def _widen(
    raw: NDArray[Any], out: NDArray[Any], operands: Operands
) -> tuple[NDArray[Any], NDArray[Any], Operands]:
    """Join short lines into longer ones, where the operands do not vary from line to line."""
    if raw.ndim < 2 or raw.shape[-1] >= _WIDE // 2:
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
