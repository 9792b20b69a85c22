"""Lines y = a · x + b through values: their fit, and the values that lie on them within rounding.

Least squares come near. `fit_within` tests exactly whether some line is within the bounds of all values.
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.identifying.models.error_bounds import bound_each
from normcli.identifying.models.weight import measure_bits
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from normcli.dtypes import Floats, Selected
    from normcli.identifying.models.error_bounds import Level

    Axes = tuple[int, ...]


_SIMPLE = 2
"""A map whose a and b together have at most this many digits is simpler than any norm: 0.5 · x, 2 · x − 1."""

_LEAST = 2.0**-60
"""The smallest unit of error that least squares divide by, for values scaled to at most 1."""

_LEAST_SPREAD = 2.0**-50
"""Values of x whose deviation is below this part of their mean count as one value, with a slope of 0."""

_REFINEMENTS = 3
"""The number of times that a line is fitted again to its residuals, until a and b are least squares."""


class PlainMap(NamedTuple):
    """A map y = a · x + b, with one pair of a and b or one for each index of some axes.

    Parameters
    ----------
    axes : tuple of int
        The axes along which a and b differ; empty if one pair serves all values.
    scale, shift : ndarray
        a and b, of the tensor's rank, with lengths of 1 for the other axes.
    digits : int
        The significant digits of a and b together; 0 if there are several pairs.
    wrong : int
        The number of values of y that are not a · x + b within rounding.
    first_wrong : tuple of int
        The index of the first such value; empty without one.
    """

    axes: Axes
    scale: Floats
    shift: Floats
    digits: int = 0
    wrong: int = 0
    first_wrong: tuple[int, ...] = ()

    @property
    def is_simple(self) -> bool:
        """Whether one pair of round numbers serves all values."""
        return not self.axes and self.digits <= _SIMPLE

    def apply(self, x: Floats) -> Floats:
        """Return a · x + b."""
        return self.scale * x + self.shift

    def explains(self, x: Floats, y: Floats, dtype: np.dtype[Any], level: Level) -> bool:
        """Whether, wherever x is finite, y is finite and within rounding of a · x + b; as `find_wrong`."""
        return not self.find_wrong(x, y, dtype, level).any()

    def find_wrong(
        self, x: Floats, y: Floats, dtype: np.dtype[Any], level: Level, times: float = 1.0
    ) -> Selected:
        """Return True where x is finite and y is not within `times` the rounding bound of a · x + b.

        Parameters
        ----------
        x, y : ndarray
            Input and output, of one shape.
        dtype : numpy.dtype
            The dtype to which y was rounded.
        level : Level
            The precision of the arithmetic.
        times : float
        """
        with np.errstate(all="ignore"):
            right = self.apply(x)
            explained = np.abs(y - right) <= times * self.allow(x, right, dtype, level)
        wrong: Selected = ~(explained & np.isfinite(y)) & np.isfinite(x)
        return wrong

    def allow(self, x: Floats, y: Floats, dtype: np.dtype[Any], level: Level) -> Floats:
        """Return the bound on the rounding error of each y, for y of a dtype and the arithmetic of a level."""
        return level.allow(y, dtype, self.measure_terms(x, y))

    def measure_terms(self, x: Floats, y: Floats) -> Floats:
        """Return |a · x| + |b| + |y| of each value, plus its average over the values with the same a and b."""
        others = tuple(axis for axis in range(x.ndim) if axis not in self.axes)
        terms = np.abs(self.scale * x) + np.abs(self.shift) + np.abs(y)
        terms = np.where(np.isfinite(terms), terms, 0.0)
        total: Floats = terms + terms.mean(others, keepdims=True)
        return total


def fit_lines(
    x: Floats,
    y: Floats,
    axes: Axes,
    unit: Floats | float = 0.0,
    *,
    through_zero: bool,
    refinements: int = _REFINEMENTS,
) -> PlainMap:
    """Return the least-squares lines y = a · x + b, each error weighted by the inverse of its rounding bound.

    Parameters
    ----------
    x, y : ndarray
        The points, of one shape; points that are not finite do not count.
    axes : tuple of int
        The axes with a line for each index.
    unit : ndarray or float
        The error of y's last rounding, divided by the relative error of the kernel's other roundings.
    through_zero : bool
        True to fit lines with b = 0.
    refinements : int
        The number of times that lines are fitted again, with weights; without any, all errors have one weight.
    """
    others = tuple(axis for axis in range(x.ndim) if axis not in axes)
    with np.errstate(all="ignore"):
        counted = np.isfinite(x) & np.isfinite(y)
        x, y = np.where(counted, x, 0.0), np.where(counted, y, 0.0)
        large_x, large_y = (
            np.frexp(np.abs(values).max(others, keepdims=True, initial=0.0))[1] for values in (x, y)
        )
        x, y = np.ldexp(x, -large_x), np.ldexp(y, -large_y)  # whose squares do not overflow
        unit = np.ldexp(unit, -large_y)
        weight = counted.astype(np.float64)
        scale = shift = np.zeros([n if axis in axes else 1 for axis, n in enumerate(x.shape)])
        for refinement in range(1 + refinements):
            if refinement:
                terms = PlainMap(axes, scale, shift).measure_terms(x, y)
                weight = np.where(counted, 1.0 / np.maximum(terms + unit, _LEAST) ** 2, 0.0)
            rest = y - (scale * x + shift)
            total = np.maximum(weight.sum(others, keepdims=True), _LEAST)
            mean_x, mean = ((weight * z).sum(others, keepdims=True) / total for z in (x, rest))
            if through_zero:
                mean_x = mean = np.zeros_like(scale)
            distance = x - mean_x
            moved = weight * distance
            spread = (moved * distance).sum(others, keepdims=True)
            least = total * (_LEAST_SPREAD * mean_x) ** 2
            more = np.where(spread > least, (moved * rest).sum(others, keepdims=True) / spread, 0.0)
            scale, shift = scale + more, shift + (mean - more * mean_x)
    return PlainMap(axes, np.ldexp(scale, large_y - large_x), np.ldexp(shift, large_y))


def fit_medians(x: Floats, y: Floats, axes: Axes, *, through_zero: bool) -> PlainMap:
    """Return lines y = a · x + b that are robust to a few wrong values.

    a is the median slope between pairs of distant points, and b the median of y − a · x.

    Parameters
    ----------
    x, y : ndarray
        The points, of one shape.
    axes : tuple of int
        The axes with a line for each index.
    through_zero : bool
        Whether b is 0; a is then the median of y / x.
    """
    shape, (x, y) = _lay_columns(axes, x, y)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # of lines without values
        if through_zero:
            slope, shift = np.nanmedian(y / x, axis=0), np.zeros(x.shape[1])
        else:
            order, half = np.argsort(x, axis=0), len(x) // 2
            x, y = (np.take_along_axis(values, order, axis=0) for values in (x, y))
            slope = np.nanmedian((y[-half:] - y[:half]) / (x[-half:] - x[:half]), axis=0)
            shift = np.nanmedian(y - slope * x, axis=0)
    return PlainMap(axes, np.nan_to_num(slope).reshape(shape), np.nan_to_num(shift).reshape(shape))


def fit_closely(fitted: PlainMap, x: Floats, y: Floats, dtype: np.dtype[Any], level: Level) -> PlainMap:
    """Return lines that are within the rounding bound of every finite value, starting from fitted ones.

    `fitted` itself is returned if there are no such lines, or if a value is off its fitted line by more than 8
    bounds.
    """
    finite, slack = np.isfinite(x) & np.isfinite(y), fitted.allow(x, y, dtype, level)
    if np.any(finite & (np.abs(y - fitted.apply(x)) > _HOPELESS * slack)):
        return fitted
    x, y, slack = np.where(finite, x, 0.0), np.where(finite, y, 0.0), np.where(finite, slack, np.inf)
    return fit_within(x, y, slack, fitted.axes, through_zero=not fitted.shift.any()) or fitted


_HOPELESS = 8.0
"""If a value is off its least-squares line by more than this many bounds, no other line is looked for."""


def count_bits(
    fitted: PlainMap, x: Floats, y: Floats, dtype: np.dtype[Any], level: Level, numbers: int
) -> float:
    """Return the bits of evidence that y lies on fitted lines, and not there by chance.

    A value counts the bits to which its bound is narrower than the standard deviation of a · x along its line.
    The sum is multiplied by (n − numbers) / n, for the n values of a line.

    Parameters
    ----------
    fitted : PlainMap
        The lines y = a · x + b.
    x, y : ndarray
        The points; those that are not finite do not count.
    dtype : numpy.dtype
        The dtype to which y was rounded.
    level : Level
        The precision of the arithmetic.
    numbers : int
        How many numbers were fitted for each line: 1 (a alone, with b = 0) or 2.
    """
    others = tuple(axis for axis in range(x.ndim) if axis not in fitted.axes)
    finite = np.isfinite(x) & np.isfinite(y)
    large = math.frexp(float(np.abs(x).max(where=finite, initial=0.0)))[1]
    deviation = np.std(np.ldexp(np.where(finite, x, 0.0), -large), axis=others, keepdims=True)
    spread = np.abs(np.ldexp(fitted.scale, large)) * deviation  # whose squares do not overflow
    bits = np.where(finite, measure_bits(spread, fitted.allow(x, y, dtype, level)), 0.0)
    in_line = max(1, math.prod(x.shape[axis] for axis in others))
    return float(bits.sum() * (max(0, in_line - numbers) / in_line))


_MOST_HALVINGS, _LEAST_WIDTH = 64, 2.0**-1000
"""The most slopes that are tried for a line; and the least distance of two points."""


def fit_within(
    x: Floats, y: Floats, slack: Floats, axes: tuple[int, ...], *, through_zero: bool
) -> PlainMap | None:
    """Return lines with |y − a · x − b| ≤ slack at every value; None if there is no such line for an index.

    Parameters
    ----------
    x, y, slack : ndarray
        The points, finite, and the bound on the error of each y, of one shape.
    axes : tuple of int
        The axes with a line for each index.
    through_zero : bool
        Whether b is 0.

    Examples
    --------
    >>> x, y = np.array([1.0, 2.0, 4.0]), np.array([1.9, 4.1, 8.0])
    >>> fit_within(x, y, np.full(3, 0.1), (), through_zero=True).scale
    array([2.])
    >>> fit_within(x, y, np.full(3, 0.01), (), through_zero=False) is None
    True
    """
    shape, columns = _lay_columns(axes, x, y, slack)
    fitted = (_fit_slopes if through_zero else _fit_both)(*columns)
    return None if fitted is None else PlainMap(axes, fitted[0].reshape(shape), fitted[1].reshape(shape))


def _lay_columns(axes: Axes, *values: Floats) -> tuple[list[int], list[Floats]]:
    """Return the shape of a and b along some axes, and each array with the values of a line in a column."""
    shape = [n if axis in axes else 1 for axis, n in enumerate(values[0].shape)]
    others = [axis for axis in range(len(shape)) if axis not in axes]
    columns = (np.moveaxis(one, others, range(len(others))) for one in values)
    return shape, [one.reshape(-1, math.prod(shape)) for one in columns]


def _fit_slopes(x: Floats, y: Floats, slack: Floats) -> tuple[Floats, Floats] | None:
    """Return, for each column, the middle slope a with |y − a · x| ≤ slack throughout, and shifts of 0.

    None if a column has no such slope.
    """
    low, high = bound_each(x.T, y.T, slack.T)
    if not np.all((low <= high) & (low < np.inf)):
        return None
    slope = np.zeros(x.shape[1])
    np.add(low / 2.0, high / 2.0, out=slope, where=np.isfinite(low))
    return slope, np.zeros_like(slope)


def _fit_both(x: Floats, y: Floats, slack: Floats) -> tuple[Floats, Floats] | None:
    """Return a slope a and a shift b for each column, with |y − a · x − b| ≤ slack; None if a column has none.

    All arguments have the shape (values, columns), both results (columns,). b is in the middle of the shifts
    that fit with a.

    With a slope a, b lies between L(a) = max(y − slack − a · x) and U(a) = min(y + slack − a · x), so a line
    needs L ≤ U. L − U is convex and piecewise linear: its piece at a says on which side its minimum lies, and
    how far it may fall until there. Slopes are halved between those of the outermost points.
    """
    low, high, every = y - slack, y + slack, np.arange(x.shape[1])
    first, last = x.argmin(axis=0), x.argmax(axis=0)
    width = np.maximum(x[last, every] - x[first, every], _LEAST_WIDTH)
    least, most = (
        (ends[last, every] - others[first, every]) / width for ends, others in ((low, high), (high, low))
    )
    for _ in range(_MOST_HALVINGS):
        slope = least / 2.0 + most / 2.0
        lowest, highest = low - slope * x, high - slope * x
        i, j = lowest.argmax(axis=0), highest.argmin(axis=0)
        bottom, top = lowest[i, every], highest[j, every]
        is_open, rise = bottom > top, x[j, every] - x[i, every]
        if not is_open.any():
            return slope, (bottom + top) / 2.0
        if np.any(bottom - top > np.abs(rise) * (most - least) / 2.0):
            return None
        least = np.where(is_open & (rise < 0.0), slope, least)
        most = np.where(is_open & (rise > 0.0), slope, most)
    return None
