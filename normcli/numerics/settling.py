"""Values that nothing but exact arithmetic decides: beta cancels nearly all of what it is added to."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import is_short_float
from normcli.numerics.kernel import apply
from normcli.numerics.rational import round_once
from normcli.numerics.rounding import store
from normcli.numerics.workspace import Workspace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.numerics.divisor import Solution
    from normcli.numerics.kernel import Parameters


_CANCELLED, MOST_BITS = Fraction(1, 2**200), 5000
"""What is smaller than this part of beta is calculated with as many bits as any sums of doubles may need."""


def normalize(
    raw: NDArray[Any], dtype: np.dtype[Any], solution: Solution, parameters: Parameters
) -> NDArray[Any]:
    """Return gamma · (x − mean) / divisor + beta in a dtype, of values that lie in memory.

    Parameters
    ----------
    raw : ndarray
    dtype : dtype
    solution : Solution
        Of as many axes as raw, to be broadcast against it.
    parameters : Parameters
    """
    out = np.empty(raw.shape, dtype)
    undecided = apply(np.ascontiguousarray(raw), out, solution, Workspace(), parameters, exact=True)
    if undecided is not None:
        settle(raw, out, undecided, solution, parameters)
    return out


def settle(
    raw: NDArray[Any], out: NDArray[Any], places: NDArray[np.intp], solution: Solution, parameters: Parameters
) -> None:
    """Write gamma · (x − mean) / divisor + beta at some places of `out`: the exact values, rounded once.

    Parameters
    ----------
    raw : ndarray
        The values as they are: not in the scaled unit of a solution.
    out : ndarray
        Of the shape of raw.
    places : ndarray of int
        Flat indices into raw.
    solution : Solution
        Of as many axes as raw, to be broadcast against it.
    parameters : Parameters
    """
    index = np.unravel_index(places, raw.shape)

    def choose(array: NDArray[Any] | None, otherwise: float) -> list[Any]:
        if array is None:
            return [otherwise] * len(places)
        chosen: list[Any] = np.broadcast_to(array, raw.shape)[index].tolist()
        return chosen

    groups = {number: solution.recall(number) for number in set(choose(solution.numbers, 0))}
    found: list[Fraction] = []
    rows = (raw[index].tolist(), choose(parameters.gamma, 1.0), choose(parameters.beta, 0.0))
    for number, *row in zip(choose(solution.numbers, 0), *rows, strict=True):
        (mean, divisor), (x, gamma, beta) = groups[number], map(Fraction, row)
        assert divisor is not None  # what is NaN is decided
        value = gamma * (x - mean) / divisor + beta
        if abs(value) < abs(beta) * _CANCELLED:
            divisor = solution.recall(number, MOST_BITS)[1]
            assert divisor is not None  # as before
            value = gamma * (x - mean) / divisor + beta
        found.append(value)
    rounding = round_to_odd if is_short_float(out.dtype) else round_once
    values = np.empty(len(places), out.dtype)
    store(values, np.array([rounding(value) for value in found]))
    out[index] = values


def round_to_odd(value: Fraction) -> float:
    """Return a value as a double; if it is between two, as the one whose last bit is 1.

    Rounded once more, to half as many bits, that is what the value itself would be rounded to.
    """
    nearest = round_once(value)
    if math.isinf(nearest) or nearest == value:
        return nearest
    lower, upper = sorted((nearest, math.nextafter(nearest, math.inf if nearest < value else -math.inf)))
    return lower if _is_odd(lower) else upper


def _is_odd(value: float) -> bool:
    return bool(np.float64(value).view(np.int64) & 1)
