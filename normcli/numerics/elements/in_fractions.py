"""Values that nothing but exact arithmetic decides: beta cancels nearly all of what it is added to."""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.deciding import PRECISIONS, round_real, round_to
from normcli.numerics.elements.kernel import apply
from normcli.numerics.rounding import store
from normcli.numerics.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.numerics.deciding import Precision
    from normcli.numerics.elements.activation import Gated
    from normcli.numerics.elements.kernel import Parameters
    from normcli.numerics.statistics.divisor import Solution


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
    undecided = apply(np.ascontiguousarray(raw), out, solution, Workspace(), parameters)
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
    columns = (raw, 0.0), (parameters.gamma, 1.0), (parameters.beta, 0.0)
    precision, gate = PRECISIONS[out.dtype.name], parameters.gate
    found = find_exactly(_normalize_one, columns, places, raw.shape, solution, precision, gate)
    values = np.empty(len(places), out.dtype)
    store(values, found)
    out[np.unravel_index(places, raw.shape)] = values


def _normalize_one(
    mean: Fraction, divisor: Fraction, x: Fraction, gamma: Fraction, beta: Fraction
) -> tuple[Fraction, Fraction]:
    return gamma * (x - mean) / divisor, beta


def find_exactly(
    calculate: Callable[..., tuple[Fraction, Fraction]],
    columns: Iterable[tuple[NDArray[Any] | None, float]],
    places: NDArray[np.intp],
    shape: tuple[int, ...],
    solution: Solution,
    precision: Precision,
    gate: Gated | None = None,
) -> Floats:
    """Return exact results at some flat places of a shape, rounded once.

    Parameters
    ----------
    calculate : callable
        Takes the mean (0 where nothing is subtracted) and the divisor of a value's group, and a number of each
        column; returns two terms, the second exact, and the first as exact as the divisor is.
    columns : iterable of (ndarray or None, float)
        Arrays that broadcast against the shape, and what a number is where there is none.
    places : ndarray of int
    shape : tuple of int
    solution : Solution
        Of as many axes, to be broadcast against it.
    precision : Precision
    gate : Gated or None
        What multiplies the results before they are rounded.
    """
    index = np.unravel_index(places, shape)
    recall = functools.cache(solution.recall)
    rounding = functools.partial(round_to, precision=precision)

    def choose(array: NDArray[Any] | None, otherwise: float) -> list[Any]:
        if array is None:
            return [otherwise] * len(places)
        chosen: list[Any] = np.broadcast_to(array, shape)[index].tolist()
        return chosen

    def evaluate(number: int, z: Fraction, row: tuple[Fraction, ...], bits: int) -> tuple[Fraction, Fraction]:
        (mean, divisor), finer = recall(number, bits), recall(number, 2 * bits)[1]
        assert divisor is not None  # what is NaN is decided
        first, second = calculate(mean if solution.centred else Fraction(0), divisor, *row)
        value, error = first + second, Fraction(0) if divisor == finer else abs(first) / 2 ** (bits - 2)
        if gate is None:
            return value, error
        factor, lost = gate.activation.evaluate_exactly(z, bits)
        return value * factor, abs(value) * lost + error * (abs(factor) + lost)

    @functools.cache  # there may be many of equal values
    def find(number: int, z: float, *row: float) -> float:
        given = (Fraction(z), tuple(map(Fraction, row)))
        return round_real(functools.partial(evaluate, number, *given), rounding)

    gates = None if gate is None else gate.values
    chosen = (choose(*column) for column in ((gates, 0.0), *columns))
    return np.array(list(map(find, choose(solution.numbers, 0), *chosen)))
