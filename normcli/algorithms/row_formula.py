"""From the statistics of a row to its result: the order of casts and products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.algorithms.fused import fuse
from normcli.norms.divisors import LENGTH
from normcli.norms.rules import Centre, EpsMode
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.algorithms.moment_formulas import RowMoments
    from normcli.algorithms.summation_orders import Values
    from normcli.norms.plan import Plan

    Write = Callable[["RowElements"], Values]
    """Returns y in the dtype of the sums or of the result; a cast to the latter follows."""


class RowFormula(NamedTuple):
    """The formula of a norm for a row.

    Parameters
    ----------
    centres : bool
        Whether the mean is subtracted.
    averages : bool
        Whether squares are averaged; a length is the root of their sum.
    eps : float or None
    eps_mode : EpsMode or None
    ddof : int
    """

    centres: bool
    averages: bool
    eps: float | None
    eps_mode: EpsMode | None
    ddof: int = 0

    @classmethod
    def of(cls, plan: Plan) -> RowFormula:
        """Return the formula of a plan's norm."""
        spec, norm = plan.spec, plan.norm
        return cls(norm.centre is Centre.MEAN, norm.divisor != LENGTH, spec.eps, spec.eps_mode, spec.ddof)

    def find_divisor(self, square: Values) -> Values:
        """Return the divisor of each row from its variance (or mean square), in its dtype; 1 in place of 0."""
        eps, mode, root = square.dtype.type(self.eps or 0.0), self.eps_mode, np.sqrt(square)
        ways: Mapping[EpsMode | None, Callable[[], Values]] = {
            None: lambda: np.where(root == 0.0, square.dtype.type(1.0), root),
            EpsMode.INSIDE: lambda: np.sqrt(square + eps),
            EpsMode.OUTSIDE: lambda: root + eps,
            EpsMode.FLOOR: lambda: np.maximum(root, eps),
            EpsMode.SQUARE_FLOOR: lambda: np.sqrt(np.maximum(square, eps)),
        }
        return ways[mode]()


class Divisors(NamedTuple):
    """The divisor of each row in three precisions, shape (groups, 1), or (eps, groups, 1).

    Parameters
    ----------
    usual : ndarray
        In the dtype of the sums.
    wide : ndarray of float64
        Eps and the root are calculated in float64.
    stored : ndarray
        In the dtype of the sums, of a sum of squares, a count and their quotient in the dtype of the result.
    """

    usual: Values
    wide: Values
    stored: Values


class RowElements(NamedTuple):
    """The numbers from which a kernel calculates the elements of rows.

    Parameters
    ----------
    rows : ndarray, shape (groups, values)
        The values, in the dtype of the sums.
    mean : ndarray, shape (groups, 1)
        In the dtype of the sums.
    divisors : Divisors
    gamma, beta : ndarray or None
        As they were given, and broadcast against the rows.
    dtype : dtype
        Of the result.
    """

    rows: Values
    mean: Values
    divisors: Divisors
    gamma: Values | None
    beta: Values | None
    dtype: np.dtype[Any]

    @classmethod
    def of(
        cls,
        rows: Values,
        moments: RowMoments,
        formula: RowFormula,
        affine: tuple[Values | None, Values | None],
        dtype: np.dtype[Any],
    ) -> RowElements:
        """Return the elements of rows whose moments are known."""
        square = moments.square[:, None]
        count = rows.shape[-1]
        stored = ((square * count).astype(dtype) / np.asarray(count).astype(dtype)).astype(square.dtype)
        divisors = Divisors(*map(formula.find_divisor, (square, square.astype(np.float64), stored)))
        return cls(rows, moments.mean[:, None], divisors, *affine, dtype)

    @classmethod
    def of_each(
        cls, rows: Values, moments: RowMoments, formula: RowFormula, every: Sequence[float | None],
        affine: tuple[Values | None, Values | None], dtype: np.dtype[Any],
    ) -> RowElements:  # fmt: skip
        """Return the elements with each of several eps, which the divisors have a first axis for."""
        each = [cls.of(rows, moments, formula._replace(eps=eps), affine, dtype) for eps in every]
        divisors = Divisors(*map(np.stack, zip(*(one.divisors for one in each), strict=True)))
        return each[0]._replace(divisors=divisors)

    def take(self, columns: slice) -> RowElements:
        """Return the elements of some columns; gamma and beta have the shape of the rows."""
        gamma, beta = (p if p is None else p[:, columns] for p in (self.gamma, self.beta))
        return self._replace(rows=self.rows[:, columns], gamma=gamma, beta=beta)

    def choose(self, every: NDArray[np.intp]) -> RowElements:
        """Return the elements for some of the eps, by their positions."""
        return self._replace(divisors=Divisors(*(some[every] for some in self.divisors)))

    @property
    def inverse(self) -> Values:
        """1 over the divisor, rounded."""
        divisor = self.divisors.usual
        inverse: Values = divisor.dtype.type(1.0) / divisor
        return inverse

    def scale(self, values: Values) -> Values:
        """Return values times gamma, plus beta, in the dtype of the values."""
        for parameter, operate in ((self.gamma, np.multiply), (self.beta, np.add)):
            if parameter is not None:
                values = operate(values, parameter.astype(values.dtype))
        return values


def write_once(given: RowElements) -> Values:
    """Return (x − mean) · (1/divisor), times gamma, plus beta."""
    return given.scale((given.rows - given.mean) * given.inverse)


def write_divided(given: RowElements) -> Values:
    """Return (x − mean) / divisor, times gamma, plus beta."""
    return given.scale((given.rows - given.mean) / given.divisors.usual)


def write_scaled(given: RowElements) -> Values:
    """Return (x − mean) · (gamma/divisor), plus beta."""
    factor = given._replace(beta=None).scale(given.inverse)
    return given._replace(gamma=None).scale((given.rows - given.mean) * factor)


def write_folded(given: RowElements) -> Values:
    """Return x · (gamma/divisor) + (beta − mean · gamma/divisor)."""
    factor = given._replace(beta=None).scale(given.inverse)
    shift = given._replace(gamma=None).scale(-given.mean * factor)
    return given.rows * factor + shift


def write_fused(given: RowElements) -> Values:
    """Return (x − mean) · (1/divisor), times gamma plus beta rounded once."""
    return _scale_fused(given, (given.rows - given.mean) * given.inverse)


def write_folded_fused(given: RowElements) -> Values:
    """Return x · (1/divisor) − mean/divisor rounded once, and that times gamma plus beta too."""
    inverse = given.inverse
    return _scale_fused(given, fuse(given.rows, inverse, -given.mean * inverse))


def write_folded_wide_root(given: RowElements) -> Values:
    """Return x · a + b rounded once, a of gamma and a divisor in float64, b of beta − mean · a rounded once."""
    inverse = (1.0 / given.divisors.wide).astype(given.rows.dtype)
    factor = given._replace(beta=None).scale(inverse)
    shift = given._replace(gamma=None).scale(np.zeros_like(factor))
    shift = fuse(np.broadcast_to(-given.mean, shift.shape), factor, shift)
    return fuse(given.rows, factor, shift)


def write_from_stored(given: RowElements) -> Values:
    """Return x · a + b rounded once, of a mean and a 1/divisor that were rounded to the result's dtype."""
    return _fold_rounded(given, given.inverse)


def write_from_stored_sums(given: RowElements) -> Values:
    """Return the same where the sum of squares, the count and the variance were rounded so before."""
    return _fold_rounded(given, 1.0 / given.divisors.stored)


def _fold_rounded(given: RowElements, inverse: Values) -> Values:
    mean, inverse = (v.astype(given.dtype).astype(given.rows.dtype) for v in (given.mean, inverse))
    factor = given._replace(beta=None).scale(inverse)
    return fuse(given.rows, factor, given._replace(gamma=None).scale(-mean * factor))


def _scale_fused(given: RowElements, values: Values) -> Values:
    if given.gamma is None or given.beta is None:
        return given.scale(values)
    gamma, beta = (np.broadcast_to(p.astype(values.dtype), values.shape) for p in (given.gamma, given.beta))
    return fuse(values, gamma, beta)


def write_wide_root(given: RowElements) -> Values:
    """Return (x − mean) · (1/divisor) of a divisor in float64, which is rounded then; gamma, beta fused."""
    inverse = (1.0 / given.divisors.wide).astype(given.rows.dtype)
    return _scale_fused(given, (given.rows - given.mean) * inverse)


def write_before_gamma(given: RowElements) -> Values:
    """Return x̂ rounded to the result's dtype, times gamma, plus beta in that dtype."""
    return given.scale(((given.rows - given.mean) * given.inverse).astype(given.dtype))


def write_from_rounded(given: RowElements) -> Values:
    """Return (x − mean) · (1/divisor), times gamma, plus beta, all in the result's dtype."""
    rows, mean, inverse = (values.astype(given.dtype) for values in (given.rows, given.mean, given.inverse))
    return given.scale((rows - mean) * inverse)
