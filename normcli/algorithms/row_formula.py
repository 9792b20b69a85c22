"""The elements of a row's result, from its statistics: the orders of casts and products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.algorithms.summation_orders import fuse
from normcli.norms.divisors import LENGTH
from normcli.norms.rules import Centre, EpsMode
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from normcli.algorithms.moment_formulas import RowMoments
    from normcli.algorithms.summation_orders import Values
    from normcli.norms.plan import Plan

    Write = Callable[["RowElements"], Values]
    """A function that returns y in the dtype of the sums or of the result; callers cast y to the result's."""


class RowFormula(NamedTuple):
    """The formula by which a norm normalizes a row.

    Parameters
    ----------
    centres : bool
        True if the mean is subtracted.
    averages : bool
        True if the divisor is the root of the mean of squares, False for an ℓ2 length, the root of their sum.
    eps : float or None
    eps_mode : EpsMode or None
        The place of eps in the divisor; None without eps.
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

    def find_divisor(self, square: Values, every: Sequence[float | None] = ()) -> Values:
        """Return the divisor for a variance, mean square or sum of squares, in the dtype of `square`.

        If `eps_mode` is None, there is no eps, and a divisor of 0 is replaced by 1.

        Parameters
        ----------
        square : ndarray
        every : sequence of float or None
            The eps for which divisors are calculated, one after the other along an additional first axis. If
            empty, divisors are calculated for the formula's own eps, in the shape of `square`.
        """
        mode, root = self.eps_mode, np.sqrt(square)
        eps = np.array([square.dtype.type(eps or 0.0) for eps in every or (self.eps,)], square.dtype)
        eps = eps.reshape(-1, *[1] * square.ndim) if every else eps[0]
        ways: Mapping[EpsMode | None, Callable[[], Values]] = {
            None: lambda: np.where(root == 0.0, square.dtype.type(1.0), root),
            EpsMode.INSIDE: lambda: np.sqrt(square + eps),
            EpsMode.OUTSIDE: lambda: root + eps,
            EpsMode.FLOOR: lambda: np.maximum(root, eps),
            EpsMode.SQUARE_FLOOR: lambda: np.sqrt(np.maximum(square, eps)),
        }
        divisor = ways[mode]()
        return np.broadcast_to(divisor, np.broadcast_shapes(divisor.shape, eps.shape))


class Divisors(NamedTuple):
    """The divisor of each row in three precisions, shape (groups, 1), or (eps, groups, 1).

    Parameters
    ----------
    usual : ndarray
        The divisor in the dtype of the sums.
    wide : ndarray of float64
        The divisor with eps added and the root taken in float64.
    stored : ndarray
        The divisor in the dtype of the sums, after the sum of squares, the count and their quotient were
        rounded to the dtype of the result.
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
        The means, in the dtype of the sums.
    divisors : Divisors
    gamma, beta : ndarray or None
        Gamma and beta in the dtype that they were given in; they broadcast against the rows.
    dtype : dtype
        The dtype of the result.
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
        every: Sequence[float | None] = (),
    ) -> RowElements:
        """Return the numbers from which a kernel calculates the elements of rows.

        Parameters
        ----------
        rows : ndarray, shape (groups, values)
            The values, in the dtype of the sums.
        moments : RowMoments
            The mean and variance (or mean square) of each row.
        formula : RowFormula
        affine : tuple of ndarray or None
            Gamma and beta.
        dtype : dtype
            The dtype of the result.
        every : sequence of float or None
            The eps for which divisors are calculated, along a first axis; if empty, the formula's eps alone.
        """
        square = moments.square[:, None]
        count = rows.shape[-1]
        stored = ((square * count).astype(dtype) / np.asarray(count).astype(dtype)).astype(square.dtype)
        squares = square, square.astype(np.float64), stored
        divisors = Divisors(*(formula.find_divisor(one, every) for one in squares))
        return cls(rows, moments.mean[:, None], divisors, *affine, dtype)

    @property
    def inverse(self) -> Values:
        """1/divisor in the dtype of the sums, shape (groups, 1), or (eps, groups, 1)."""
        divisor = self.divisors.usual
        inverse: Values = divisor.dtype.type(1.0) / divisor
        return inverse

    def scale(self, values: Values) -> Values:
        """Return values times gamma, plus beta, in the dtype of the values; a parameter of None is left out."""
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
    """Return x̂ · gamma + beta rounded once, where x̂ = (x − mean) · (1/divisor)."""
    return _scale_fused(given, (given.rows - given.mean) * given.inverse)


def write_folded_fused(given: RowElements) -> Values:
    """Return x̂ · gamma + beta rounded once, where x̂ = x · (1/divisor) − mean/divisor is rounded once too."""
    inverse = given.inverse
    return _scale_fused(given, fuse(given.rows, inverse, -given.mean * inverse))


def write_folded_wide_root(given: RowElements) -> Values:
    """Return y = x · a + b rounded once, with a = gamma · (1/divisor) and b = beta − mean · a (rounded once).

    The divisor is calculated in float64, and 1/divisor rounded to the dtype of the rows.
    """
    inverse = (1.0 / given.divisors.wide).astype(given.rows.dtype)
    factor = given._replace(beta=None).scale(inverse)
    shift = given._replace(gamma=None).scale(np.zeros_like(factor))
    shift = fuse(np.broadcast_to(-given.mean, shift.shape), factor, shift)
    return fuse(given.rows, factor, shift)


def write_from_stored(given: RowElements) -> Values:
    """Return x · a + b rounded once, where mean and 1/divisor are first rounded to the result's dtype.

    a = gamma/divisor, b = beta − mean · a.
    """
    return _fold_rounded(given, given.inverse)


def write_from_stored_sums(given: RowElements) -> Values:
    """Return y = x · a + b rounded once, with a = gamma · (1/divisor) and b = beta − mean · a.

    The sum of squares, the count and their quotient are each rounded to the result's dtype before the root is
    taken; then the mean and 1/divisor are rounded to it too.
    """
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
    """Return x̂ · gamma + beta rounded once; x̂ = (x − mean) · (1/divisor), where 1/divisor is from float64."""
    inverse = (1.0 / given.divisors.wide).astype(given.rows.dtype)
    return _scale_fused(given, (given.rows - given.mean) * inverse)


def write_before_gamma(given: RowElements) -> Values:
    """Return x̂ · gamma + beta in the result's dtype, to which x̂ is rounded first."""
    return given.scale(((given.rows - given.mean) * given.inverse).astype(given.dtype))


def write_from_rounded(given: RowElements) -> Values:
    """Return (x − mean) · (1/divisor) · gamma + beta, all operands rounded to the result's dtype first."""
    rows, mean, inverse = (values.astype(given.dtype) for values in (given.rows, given.mean, given.inverse))
    return given.scale((rows - mean) * inverse)
