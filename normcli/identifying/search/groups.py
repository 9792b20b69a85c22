"""Hypotheses on a norm: ways of grouping the values of a tensor, their divisor, and the affine step."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.check import calculate_rows
from normcli.dtypes import is_half
from normcli.engine.inputs import Selection
from normcli.errors import DataError
from normcli.identifying.sampling import locate_value, put_back, take_groups
from normcli.identifying.search.affine_step import round_array
from normcli.norms.grid import Grid, Split
from normcli.norms.layout import Layout
from normcli.norms.rules import GroupOrder
from normcli.numerics.rounding import round_to_short
from normcli.numerics.statistics.divisor import find_divisor, find_divisors
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.identifying.models.divisor_fit import Model
    from normcli.identifying.models.standards import Standard
    from normcli.identifying.search.affine_step import AffineStep


MOST_DIVISORS = 12
"""The most numbers of channel groups tried for an axis: of more divisors, the smallest and the largest."""


def enumerate_grids(shape: tuple[int, ...]) -> Iterator[Grid]:
    """Yield the grid of every set of reduced axes, then every split of an axis into channel groups.

    With a split axis, several sets of other axes are reduced. Grids are in canonical form, and their groups
    have at least two values.
    """
    layout = Layout(len(shape), None)
    wide = [axis for axis, length in enumerate(shape) if length > 1]
    for count in range(1, len(wide) + 1):
        for axes in itertools.combinations(wide, count):
            yield Grid(shape, layout, axes)
    for axis in wide:
        others = [other for other in wide if other != axis]
        sets = {tuple(others), ()}
        sets.update(tuple(other for other in others if other != left) for left in others)
        sets.add(tuple(other for other in others if other > axis))
        largest_first = sorted(sets, key=len, reverse=True)
        for groups, rest, order in itertools.product(_choose_divisors(shape[axis]), largest_first, GroupOrder):
            yield Grid(shape, layout, tuple(sorted((*rest, axis))), Split(axis, groups, order))


def _choose_divisors(length: int) -> list[int]:
    """Return the divisors of a length, from 2 to the length itself, in increasing order.

    Of more than 12, the smallest six and the largest six are returned.
    """
    small = [n for n in range(2, math.isqrt(length) + 1) if length % n == 0]
    every = sorted({*small, *(length // n for n in small)})
    if len(every) <= MOST_DIVISORS:
        return every
    half = MOST_DIVISORS // 2
    return every[:half] + every[-half:]


MOST_ORDERS = 24
"""Orders of the actual tensor's axes that are tried."""


def find_orders(shape: tuple[int, ...], actual: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return the permutations of the actual tensor's axes that lead to a shape, at most the first 24.

    A permutation `order` is as of `np.transpose`: shape[i] is actual[order[i]]. If both shapes are equal, the
    first is the identity: (0, 1, …).

    Raises
    ------
    DataError
        If no permutation leads to the shape.
    """
    if sorted(shape) != sorted(actual):
        raise DataError(f"the actual tensor has the shape {actual}, which is {shape} in no order of axes")
    every = itertools.permutations(range(len(shape)))
    fitting = (order for order in every if tuple(actual[axis] for axis in order) == shape)
    return [*itertools.islice(fitting, MOST_ORDERS)]


def put_in_order(y: NDArray[Any], order: tuple[int, ...]) -> NDArray[Any]:
    """Return a tensor with its axes permuted by an order; the tensor itself if that changes nothing."""
    return y if order == tuple(range(y.ndim)) else y.transpose(order)


# -- what is compared, and what is supposed of it


class Sample(NamedTuple):
    """Some groups of the input x, standardized, and of the actual tensor y, on which hypotheses are tried.

    Parameters
    ----------
    grid : Grid
    chosen : ndarray of int
        The indices of the groups, ascending.
    standard : Standard
        The groups of the input, standardized.
    actual : ndarray, shape (groups, group_size)
        The groups of the actual tensor.
    undefined : Sample or None
        Other groups, not in `chosen`, whose x̂ is 0 or not finite, whatever the divisor: with infinity, with
        NaN that counts, or with fewer than two numbers once NaN is left out. None if there are no such groups.
    """

    grid: Grid
    chosen: NDArray[np.intp]
    standard: Standard
    actual: Floats
    undefined: Sample | None = None

    def locate(self, row: int, column: int) -> tuple[int, ...]:
        """Return the index in the tensor of a sampled value, given its row and column in `actual`."""
        return locate_value(self.grid, self.chosen, row, column)

    def place(self, affine: AffineStep) -> AffineStep:
        """Return an affine step with its scale and shift at the sampled values, shape (groups, group_size)."""
        return affine.map(lambda values: take_groups(self.grid, values, self.chosen))


def does_alike(one: Sample, other: Sample) -> bool:
    """Whether two groupings of a whole tensor give each value the same x̂ and divisor, to a few roundings."""

    def is_close(mine: Floats, theirs: Floats) -> bool:
        return bool(np.allclose(mine, theirs, rtol=_ALIKE, atol=_ALIKE, equal_nan=True))

    (mine, theirs) = ((s.standard, s.standard.size[:, None]) for s in (one, other))
    if mine[0].divisor is not theirs[0].divisor or one.undefined is not None or other.undefined is not None:
        return False
    if not is_close(mine[1][0], theirs[1][0]):  # of the first value
        return False
    parts = zip(
        *((standard.values, size + 0.0 * standard.values) for standard, size in (mine, theirs)), strict=True
    )
    return all(is_close(put_back(one.grid, here), put_back(other.grid, there)) for here, there in parts)


_ALIKE = 2.0**-40
"""The largest difference of equal statistics that were added in another order, relative to 1 and to them."""


class Hypothesis(NamedTuple):
    """A norm that may have made y of x: a way of grouping, dividing and scaling x, tried on a sample.

    Parameters
    ----------
    sample : Sample
        The groups with which the hypothesis is compared.
    affine : AffineStep
        Gamma and beta of the whole tensor.
    model : Model
        The divisor, with its ddof, p and range of eps.
    """

    sample: Sample
    affine: AffineStep
    model: Model

    def predict(self, eps: float) -> Floats:
        """Return the norm's exact result for the sampled values, rounded to float64.

        If the affine step rounds x̂ before the scale, x̂ is rounded here too.
        """
        placed, rows = self.sample.place(self.affine), self.sample.standard.rows
        plan = self.model.make_plan((1,), rows, eps)
        selection = None if self.sample.standard.missing is None else Selection(omits_nan=True)
        if placed.rounds_to is not None:
            return placed.apply(calculate_rows(plan, rows, selection=selection)[0])
        scale, shift = (
            None if v is None else np.broadcast_to(v, rows.shape) for v in (placed.scale, placed.shift)
        )
        return calculate_rows(plan, rows, (scale, shift), selection)[0]

    def approximate(self, eps: float) -> Floats:
        """Return the result for the sampled values in float64 arithmetic, to a few units in the last place."""
        with np.errstate(all="ignore"):
            return self.sample.place(self.affine).apply(self.standardize(eps))

    def standardize(self, eps: float) -> Floats:
        """Return the sampled values before gamma and beta (x̂), in plain float64 arithmetic."""
        return self.sample.standard.values * self.measure_factors(eps)

    def rounds_length(self, eps: float, dtype: np.dtype[Any]) -> bool:
        """Return True if an ℓp length rounded to half precision, as the divisor, gives every bit of y.

        The sampled y is compared; `dtype` is y's. False for other divisors and for dtypes longer than half
        precision.
        """
        sample, model = self.sample, self.model
        if model.p is None or not is_half(dtype):
            return False
        divisor = find_divisor(sample.standard.measure_length(model.p), eps, model.eps_mode)[:, None]
        with np.errstate(all="ignore"):
            quotient = sample.standard.rows / round_to_short(divisor, dtype.name)
            expected = sample.place(self.affine).apply(round_to_short(quotient, dtype.name))
        return measure_equality(sample.actual, expected, dtype) == 1.0

    def measure_factors(self, eps: float) -> Floats:
        """Return the factor of each group that turns `Standard.values` into x̂, of the shape (groups, 1)."""
        return np.asarray(self.measure_factors_of_each((eps,))[0])

    def measure_factors_of_each(self, every: Sequence[float]) -> Floats:
        """Return the factors of each group that turn `Standard.values` (standardized without eps) into x̂.

        The shape is (eps, groups, 1). x̂ is divided by the model's divisor with each eps and the model's ddof;
        if the model has a p, by an ℓp length. A factor is 0 where it would be infinite or NaN.
        """
        standard, model = self.sample.standard, self.model
        if model.p is None:
            size = standard.size * np.sqrt(standard.counts / (standard.counts - model.ddof))
        else:
            size = standard.measure_length(model.p)
        with np.errstate(all="ignore"):
            factors = standard.unit / find_divisors(size, every, model.eps_mode)
        return np.where(np.isfinite(factors), factors, 0.0)[..., None]


def measure_equality(actual: Floats, expected: Floats, dtype: np.dtype[Any]) -> float:
    """Return the share of values that are equal once both are rounded to a dtype; NaN equals NaN."""
    return float(np.mean(find_equal(actual, expected, dtype)))


def find_equal(actual: Floats, expected: Floats, dtype: np.dtype[Any]) -> Selected:
    """Return True for values that are equal once both are rounded to a dtype; NaN equals NaN."""
    theirs, ours = (round_array(values, dtype) for values in (actual, expected))
    equal: Selected = (theirs == ours) | (np.isnan(actual) & np.isnan(expected))
    return equal
