"""Values that nothing but exact arithmetic decides: beta cancels nearly all of what it is added to."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.numerics.deciding import (
    PRECISIONS,
    Enclosed,
    enclose,
    multiply_bounded,
    round_quotient,
    round_reals,
)
from normcli.numerics.elements.in_pairs import Elements
from normcli.numerics.elements.kernel import apply
from normcli.numerics.rounding import store
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.numerics.deciding import Precision
    from normcli.numerics.elements.kernel import Parameters
    from normcli.numerics.statistics.divisor import Solution


def normalize(
    raw: NDArray[Any], dtype: np.dtype[Any], solution: Solution, parameters: Parameters
) -> NDArray[Any]:
    """Return gamma · (x − mean) / divisor + beta in a dtype, exact and rounded once, for values in memory.

    Parameters
    ----------
    raw : ndarray
        The values x.
    dtype : dtype
    solution : Solution
        Mean and divisor, in arrays of as many axes as raw that broadcast against it.
    parameters : Parameters
        Gamma and beta.
    """
    out = np.empty(raw.shape, dtype)
    undecided = apply(np.ascontiguousarray(raw), out, solution, parameters)
    if undecided is not None:
        settle(raw, out, undecided, solution, parameters)
    return out


def settle(
    raw: NDArray[Any], out: NDArray[Any], places: NDArray[np.intp], solution: Solution, parameters: Parameters
) -> None:
    """Write gamma · (x − mean) / divisor + beta, times the gate, to some indices of `out`: exact, rounded once.

    Parameters
    ----------
    raw : ndarray
        The values x.
    out : ndarray
        An array of the shape of raw.
    places : ndarray of int
        The flat indices, in C order, that are calculated; all other values of `out` stay.
    solution : Solution
        Its arrays have as many axes as raw, and broadcast against it.
    parameters : Parameters
    """
    gate = parameters.gate
    elements = Elements(raw, None, None, parameters.gamma, parameters.beta, gate=gate)
    found = find_exactly(_find_line, elements, places, solution, PRECISIONS[out.dtype.name])
    values = np.empty(len(places), out.dtype)
    store(values, found)
    out[np.unravel_index(places, raw.shape)] = values


class ExactLine(NamedTuple):
    """The line y = (x − centre) · slope + level; the slope is as exact as the divisor of its group."""

    slope: Fraction
    centre: Fraction
    level: Fraction


def _find_line(mean: Fraction, divisor: Fraction, gamma: Fraction, beta: Fraction) -> ExactLine:
    return ExactLine(gamma / divisor, mean, beta)


def find_exactly(
    find_line: Callable[[Fraction, Fraction, Fraction, Fraction], ExactLine],
    elements: Elements,
    places: NDArray[np.intp],
    solution: Solution,
    precision: Precision,
) -> Floats:
    """Return the exact results at some flat indices, rounded once, as doubles; the gate's factor is in them.

    Parameters
    ----------
    find_line : callable
        Takes four fractions: mean (0 where nothing is subtracted) and divisor of a value's group, gamma and
        beta; returns the linear function of x that the result is.
    elements : Elements
        The values, gamma, beta and the gate; mean and divisor in it are not used.
    places : ndarray of int
        Flat indices into x.
    solution : Solution
        Its arrays have as many axes as x, and broadcast against it.
    precision : Precision
        The precision that results are rounded to.
    """
    shape, gate = elements.x.shape, elements.gate
    index = np.unravel_index(places, shape)
    recall = functools.cache(solution.recall)

    def choose(array: NDArray[Any] | None, otherwise: float) -> list[Any]:
        if array is None:
            return [otherwise] * len(places)
        chosen: list[Any] = np.broadcast_to(array, shape)[index].tolist()
        return chosen

    @functools.cache
    def find_integers(number: int, gamma: float, beta: float, bits: int) -> tuple[int, int, int, int, bool]:
        """Return slope, slope · centre and level as multiples of 1 / unit; the unit; and whether exact."""
        (mean, divisor), finer = recall(number, bits), recall(number, 2 * bits)[1]
        assert divisor is not None  # what is NaN is decided
        mean = mean if solution.centred else Fraction(0)
        slope, centre, level = find_line(mean, divisor, Fraction(gamma), Fraction(beta))
        terms = slope, slope * centre, level
        unit = math.lcm(*(term.denominator for term in terms))
        rise, fall, base = (int(term * unit) for term in terms)
        return rise, fall, base, unit, divisor == finer

    def evaluate(row: tuple[Any, ...], bits: int) -> Enclosed:
        x, low, z, times, less, *group = row
        rise, fall, base, unit, is_exact = find_integers(*group, bits)
        up, down = (Fraction(x) + Fraction(low) if low else x).as_integer_ratio()
        part, unit = up * rise - down * fall, unit * down
        value, error = part + down * base, 0 if is_exact else abs(part)
        known = Enclosed(value << bits - 2, error, unit << bits - 2)
        if gate is None:
            return known
        y = Fraction(known.value, known.unit), Fraction(known.error, known.unit)
        product, error = multiply_bounded(y, gate.evaluate_exactly(z, times, bits))
        return enclose(product - Fraction(less), error)

    of_values = [
        (elements.x, 0.0),
        (elements.low, 0.0),
        *(((None, 0.0),) * 3 if gate is None else (*gate.columns, (gate.less, 0.0))),
    ]
    of_groups = ((solution.numbers, 0), (elements.gamma, 1.0), (elements.beta, 0.0))
    columns = [choose(*column) for column in (*of_values, *of_groups)]
    rows = list(zip(*columns, strict=True))
    several = list(dict.fromkeys(rows))  # there may be many of equal values
    rounding = functools.partial(round_quotient, precision=precision)
    rounded = round_reals(lambda left, bits: [evaluate(row, bits) for row in left], several, rounding)
    found = dict(zip(several, rounded, strict=True))
    return np.array([found[row] for row in rows])
