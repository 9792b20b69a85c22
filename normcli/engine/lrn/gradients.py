"""The derivative of local response normalization: each value is in the windows of its neighbours too.

With U = k + α/divisor · Σx² over the window of a value, y = x · U^−β; of a loss whose derivative by y is dy,

    dx = dy · U^−β − 2αβ/divisor · x · Σ dy · x · U^(−β − 1),

summed over the values in whose windows this one lies.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine.lrn.window_sums import add_neighbours, count_in_windows, pad, sum_squares
from normcli.engine.lrn.windows import MOST_VALUES, find_bases
from normcli.engine.passes import TileBackwardPasses
from normcli.numerics.gradients.coefficients import is_within
from normcli.numerics.gradients.in_fractions import round_exactly
from normcli.numerics.gradients.values import KnownGradients, round_known
from normcli.numerics.pairs import Pair, pair_add, pair_divide, pair_multiply, two_prod
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
    """Return dx of lines of values, in pairs with bounds: windows lie along the first axis.

    Parameters
    ----------
    window : Window
    x, dy : ndarray
        All values of each line; 0 where a value does not count.
    """
    zero, sums = np.zeros_like(x), sum_squares(x, window)
    base, _ = find_bases(sums, window)
    usable = sums.known & (base.hi > (np.abs(base.hi - window.k) + abs(window.k)) * 2.0**-10)
    size = base.keep(usable, 1.0)
    power = raise_pair(size, -window.exponent)
    steeper = pair_divide(power, size)
    gradients = two_prod(dy, x)
    shares = _sum_along(pair_multiply(gradients, steeper), window.after, window.before)
    sizes = _sum_along(Pair(np.abs(gradients.hi) * steeper.hi, zero), window.after, window.before)
    factor = two_prod(np.float64(window.alpha), -2.0 * window.exponent)
    by = pair_multiply(Pair(x, zero), pair_divide(factor, Pair(float(window.divisor), 0.0)))
    first = pair_multiply(Pair(dy, zero), power)
    value = pair_add(first, pair_multiply(by, shares))
    error = _ERROR * (np.abs(first.hi) + np.abs(by.hi) * sizes.hi)
    for values in (x, dy, *np.array([window.alpha, window.k])):
        usable &= is_within(values, _LEAST, _LARGEST)
    usable &= abs(window.exponent) <= _MOST
    reach = max(window.before, window.after)
    around = window._replace(before=reach, after=reach)
    return KnownGradients(value, error, count_in_windows(~usable, around, 0) > 0.0)


def _sum_along(values: Pair, before: int, after: int) -> Pair:
    """Return sums along the first axis: number i is the sum of values[i − before : i + after + 1]."""
    padded = values.map(lambda part: pad(part, before, after))
    return add_neighbours(padded, len(padded.hi) - len(values.hi) + 1)


def differentiate_line(window: Window, x: NDArray[Any], dy: NDArray[Any], place: int, bits: int) -> Bounded:
    """Return dx of the value at index `place` of a line, with a bound of its error; powers to `bits` bits.

    None if an x or dy that this dx depends on is not finite, or the base U = k + α/divisor · Σx² of a window's
    power is not positive.
    """
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
    """Return values as fractions, with 0 in place of those that are not finite."""
    return [Fraction(value) for value in np.where(np.isfinite(x), x, 0.0).tolist()]


class WindowBackwardPasses(TileBackwardPasses):
    """The pass of a norm with a sliding window."""

    def differentiate(self, gradients: Source, values: NDArray[Any]) -> None:
        """Write dx of every value, tile by tile."""
        geometry = self.geometry
        order = geometry.reduced_runs + geometry.kept_runs

        def work_on(index: Slices, work: Workspace) -> None:
            self.differentiate_tile(index, order, gradients, work)

        self.walk.expect(1)
        self.walk.each(work_on, whole=True, most=MOST_VALUES)

    def differentiate_values(self, x: NDArray[Any], dy: Floats, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return dx of lines along the first axis, in a dtype, each value rounded once; shape (n, lines)."""
        window = self.plan.spec.window
        assert window is not None  # of every norm that has such passes
        x, dy = (np.asarray(each, np.float64).reshape(len(each), -1) for each in (x, dy))
        dx, undecided = round_known(differentiate_windows(window, x, dy), dtype)
        for line in np.flatnonzero(undecided.any(axis=0)).tolist():

            def evaluate(places: list[int], bits: int, line: int = line) -> list[Bounded]:
                return [differentiate_line(window, x[:, line], dy[:, line], i, bits) for i in places]

            chosen = np.flatnonzero(undecided[:, line])
            dx[chosen, line] = round_exactly(evaluate, chosen, dx.dtype)
        return dx
