"""The derivative of local response normalization: each value is in the windows of its neighbours too.

With U = k + α/divisor · Σx² over the window of a value, y = x · U^−β; of a loss with the derivative dy by y,

    dx = dy · U^−β − 2αβ/divisor · x · Σ dy · x · U^(−β − 1),

summed over the values in whose windows this one lies.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine.inputs import fill_gradients, zero_unselected
from normcli.engine.lrn.window_sums import add_neighbours, pad
from normcli.engine.lrn.windows import MOST_VALUES
from normcli.engine.passes import Passes
from normcli.numerics.gradients.coefficients import is_within
from normcli.numerics.gradients.in_fractions import round_exactly
from normcli.numerics.gradients.values import KnownGradients, round_known
from normcli.numerics.pairs import (
    Pair,
    pair_add,
    pair_divide,
    pair_multiply,
    two_prod,
    two_square,
)
from normcli.numerics.powers import raise_exactly, raise_pair

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.engine.tiling.blocks import Source
    from normcli.engine.tiling.geometry import Slices
    from normcli.norms.spec import Window
    from normcli.numerics.deciding import Bounded
    from normcli.numerics.workspace import Workspace

_ERROR = 2.0**-86
"""An upper bound of the relative error of a term: of powers up to the 16th of numbers up to 2^±400."""

_LEAST, _LARGEST, _MOST = 2.0**-100, 2.0**100, 16.0
"""Values and constants that are not between these, and powers beyond, are calculated exactly."""


def differentiate_windows(window: Window, x: Floats, dy: Floats) -> KnownGradients:
    """Return dx of values whose windows lie along the first axis.

    Parameters
    ----------
    window : Window
    x, dy : ndarray
        Whole along the first axis; 0 where a value does not count.
    """
    zero = np.zeros_like(x)
    scale = pair_divide(
        Pair(np.float64(window.alpha), np.float64(0.0)), Pair(np.float64(window.divisor), np.float64(0.0))
    )
    squares = _sum_along(two_square(x), window.before, window.after)
    term = pair_multiply(squares, scale)
    base = pair_add(Pair(zero + window.k, zero), term)
    usable = base.hi > (np.abs(term.hi) + abs(window.k)) * 2.0**-10
    size = Pair(np.where(usable, base.hi, 1.0), np.where(usable, base.lo, 0.0))
    power = raise_pair(size, -window.exponent)
    steeper = pair_divide(power, size)
    gradients = two_prod(dy, x)
    shares = _sum_along(pair_multiply(gradients, steeper), window.after, window.before)
    sizes = _sum_along(Pair(np.abs(gradients.hi) * steeper.hi, zero), window.after, window.before)
    by = pair_multiply(Pair(x, zero), scale.map(lambda a: -2.0 * a))
    by = pair_multiply(by, Pair(zero + window.exponent, zero))
    first = pair_multiply(Pair(dy, zero), power)
    value = pair_add(first, pair_multiply(by, shares))
    error = _ERROR * (np.abs(first.hi) + np.abs(by.hi) * sizes.hi)
    for values in (x, dy, *np.array([window.alpha, window.k])):
        usable &= is_within(values, _LEAST, _LARGEST)
    usable &= abs(window.exponent) <= _MOST
    reach = max(window.before, window.after)
    unusable = _sum_along(Pair((~usable).astype(np.float64), zero), reach, reach).hi > 0.0
    return KnownGradients(value, error, unusable)


def _sum_along(values: Pair, before: int, after: int) -> Pair:
    """Return, for each place of the first axis, the sum of the values from so many before to so many after."""
    n = len(values.hi)
    padded = values.map(lambda part: pad(part, before, after))
    return add_neighbours(padded, len(padded.hi) - n + 1)


def differentiate_line(window: Window, x: NDArray[Any], dy: NDArray[Any], place: int, bits: int) -> Bounded:
    """Return dx of one value of a line, with powers of so many bits; None if not finite, or U not positive."""
    first, last = max(0, place - window.after), min(len(x) - 1, place + window.before)
    reach = slice(max(0, first - window.before), last + window.after + 1)
    if not (np.isfinite(x[reach]).all() and np.isfinite(dy[first : last + 1]).all()):
        return None
    values, scale = _to_fractions(x), Fraction(window.alpha) / window.divisor
    total = size = Fraction(0)
    for j in range(first, last + 1):
        among = values[max(0, j - window.before) : j + window.after + 1]
        base = Fraction(window.k) + scale * sum(value * value for value in among)
        if base <= 0:
            return None
        gradient = Fraction(float(dy[j]))
        if not gradient:
            continue
        power = gradient * raise_exactly(base, -window.exponent, bits)
        through = 2 * scale * Fraction(window.exponent) * values[place] * values[j] / base
        by = (j == place) - through
        total, size = total + power * by, size + abs(power * by)
    return total, size / 2**bits


def _to_fractions(x: NDArray[Any]) -> list[Fraction]:
    """Return values as fractions; 0 for those that are not finite, which are out of reach."""
    return [Fraction(value) for value in np.where(np.isfinite(x), x, 0.0).tolist()]


class WindowBackwardPasses(Passes):
    """The pass of a norm with a sliding window, which has no gamma and no beta."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        selection = arguments[4].selection
        self.fill = None if selection is None else selection.fill

    def differentiate(self, gradients: Source, values: NDArray[Any]) -> None:
        """Write dx."""
        geometry, window = self.geometry, self.plan.spec.window
        assert window is not None  # of every norm that has such passes
        order = geometry.reduced_runs + geometry.kept_runs

        def work_on(index: Slices, work: Workspace) -> None:
            assert self.sink is not None
            raw = np.array(self.source.read(index, order, work))
            dy = np.array(gradients.read(index, order, work), np.float64).reshape(len(raw), -1)
            counted = self.select(raw, index, order)
            x = np.array(zero_unselected(raw, counted), np.float64).reshape(len(raw), -1)
            used = dy if counted is None else np.where(counted.reshape(dy.shape), dy, 0.0)
            place = self.sink.open(index, work)
            dx, undecided = round_known(differentiate_windows(window, x, used), place.dtype)
            for line in np.flatnonzero(undecided.any(axis=0)).tolist():

                def evaluate(places: list[int], bits: int, line: int = line) -> list[Bounded]:
                    return [differentiate_line(window, x[:, line], used[:, line], i, bits) for i in places]

                chosen = np.flatnonzero(undecided[:, line])
                dx[chosen, line] = round_exactly(evaluate, chosen, dx.dtype)
            out = place.transpose(order)
            out[...] = dx.reshape(out.shape)
            fill_gradients(out, dy, counted, self.fill)
            self.sink.put(index, place, work)

        self.walk.expect(1)
        self.walk.each(work_on, whole=True, most=MOST_VALUES)

    def find_parameters(self) -> tuple[None, None]:
        """Return nothing: there are none."""
        return None, None
