"""Hypotheses of what made a tensor: sampled groups, a divisor and an affine step, with what they predict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.check import calculate_rows
from normcli.dtypes import is_half
from normcli.engine.inputs import Selection
from normcli.identifying.search.affine_step import round_array
from normcli.identifying.search.groups import locate_value, take_groups
from normcli.numerics.rounding import round_to_short
from normcli.numerics.statistics.divisor import find_divisor
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.identifying.models.evidence import Model
    from normcli.identifying.models.standards import Standard
    from normcli.identifying.search.affine_step import AffineStep
    from normcli.norms.grid import Grid


class Sample(NamedTuple):
    """Groups that hypotheses are compared with.

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
        The chosen groups whose input has infinity, or NaN that counts; None without such groups. They show no
        factor, but whatever it is, their results are 0 or not finite.
    """

    grid: Grid
    chosen: NDArray[np.intp]
    standard: Standard
    actual: Floats
    undefined: Sample | None = None

    def locate(self, row: int, column: int) -> tuple[int, ...]:
        """Return the index in the tensor of a sampled value."""
        return locate_value(self.grid, self.chosen, row, column)

    def place(self, affine: AffineStep) -> AffineStep:
        """Return an affine step with its scale and shift taken at the sampled values."""
        return affine.map(lambda values: take_groups(self.grid, values, self.chosen))


class Hypothesis(NamedTuple):
    """A way of grouping, dividing and scaling.

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
        """Return the exact result for the sampled values in float64, with x̂ rounded if the step rounds it."""
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
        """Return x̂ of the sampled values in plain float64 arithmetic."""
        return self.sample.standard.values * self.measure_factors(eps)

    def rounds_length(self, eps: float, dtype: np.dtype[Any]) -> bool:
        """Whether dividing by an ℓp length rounded to half precision gives every bit of y.

        False for other divisors and longer dtypes.
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
        """Return the factor that eps, ddof and p put on each group's standardized values, shape (groups, 1).

        It is 0 for groups where it would be infinite or NaN.
        """
        standard, model = self.sample.standard, self.model
        if model.p is None:
            size = standard.size * np.sqrt(standard.counts / (standard.counts - model.ddof))
        else:
            size = standard.measure_length(model.p)
        with np.errstate(all="ignore"):
            factors = standard.unit / find_divisor(size, eps, model.eps_mode)
        return np.where(np.isfinite(factors), factors, 0.0)[:, None]


def measure_equality(actual: Floats, expected: Floats, dtype: np.dtype[Any]) -> float:
    """Return the share of values that are equal once both are rounded to a dtype; NaN equals NaN."""
    return float(np.mean(find_equal(actual, expected, dtype)))


def find_equal(actual: Floats, expected: Floats, dtype: np.dtype[Any]) -> Selected:
    """Return which values are equal once both are rounded to a dtype; NaN equals NaN."""
    theirs, ours = (round_array(values, dtype) for values in (actual, expected))
    equal: Selected = (theirs == ours) | (np.isnan(actual) & np.isnan(expected))
    return equal
