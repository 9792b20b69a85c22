"""Bounds of a kernel's errors, and the factors that lead from standardized groups to y within these bounds.

A kernel subtracts one mean from all values of a group and multiplies the differences by one factor. The mean's
error shifts all values alike; only roundings of single values change the differences between two values. If
these are as small as the mean's error, they alone show the factor.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.ulp import MOST_ROUNDINGS, ROUNDED_ONCE, bound_lost, measure_unit
from normcli.dtypes import find_type, get_eps, is_half
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from normcli.dtypes import Floats, Selected
    from normcli.identifying.models.standards import Standard


class Noise(NamedTuple):
    """Bounds on the errors of standardized values x̂, before the group's factor multiplies them.

    Parameters
    ----------
    whole : ndarray, shape (groups, group_size)
        The bound on the error of each value.
    own : ndarray, shape (groups, group_size)
        The bound on the value's own error, without the error of the mean, which all values of the group share.
    of_factor : ndarray, shape (groups, 1)
        The bound on the relative error of the group's factor that the mean's error causes.
    most : ndarray, shape (groups, 1)
        The largest factor by which errors are multiplied.
    """

    whole: Floats
    own: Floats
    of_factor: Floats
    most: Floats

    def limit(self, factors: Floats, values: Floats) -> Floats:
        """Return the bounds on the errors of values after multiplication by their groups' factors.

        The bounds are at most 1/16 of 1 + |value|.

        Parameters
        ----------
        factors : ndarray, shape (groups, 1)
        values : ndarray, shape (groups, group_size)
            The values after the multiplication.
        """
        return np.minimum(self.whole * np.minimum(factors, self.most), MOST * (1.0 + np.abs(values)))


MOST = 2.0**-4
"""The largest error that is explained by rounding, as a part of 1 + |x̂|."""

_LEAST = 2.0**-1000

LARGEST_RSTD = 1e3
"""The largest factor on the mean's error in a constant group: 1 / √eps for an eps of 1e-6."""


def measure_lost(standard: Standard, level: Level) -> Floats:
    """Return the bound on the error of each group's mean, as a part of the group's deviation, shape (groups,).

    For constant groups it is the bound on the error itself.
    """
    return bound_lost(standard.offset, standard.group_size, level.precision, level.roundings)


@functools.lru_cache(maxsize=2)  # of a sample, many affine steps are tried in turn
def measure_noise(standard: Standard, level: Level) -> Noise:
    """Return the bounds on a kernel's errors in standardized values x̂, at a level of precision.

    Gamma and beta are not yet applied.
    """
    centred, size = float(standard.centred), np.abs(standard.values)
    offset, lost = standard.offset[:, None], measure_lost(standard, level)[:, None]
    place = min(level.roundings, 1.0) * get_eps(np.dtype(find_type(level.precision)))
    varies = standard.size[:, None] > 0.0
    own = level.measure(np.where(varies, centred + size, 0.0))
    whole, most = own + lost * (centred + size), np.where(varies, np.finfo(np.float64).max, LARGEST_RSTD)
    return Noise(whole, own + place * (offset + size), np.where(varies, lost, 0.0), most)


def bound_factors(
    standard: Standard, targets: Floats, slack: Floats, noise: Noise
) -> tuple[Floats, Floats] | None:
    """Return the bounds of each group's positive factor r with target = r · x̂, two arrays of shape (groups,).

    None if some group has no such factor.

    Parameters
    ----------
    standard : Standard
        The standardized groups x̂.
    targets : ndarray, shape (groups, group_size)
        The values to reach: y before gamma and beta.
    slack : ndarray, shape (groups, group_size)
        The bound on each value's error after the multiplication.
    noise : Noise
        The bounds on errors before the multiplication.

    Notes
    -----
    The values of a constant group are only the error of its mean, times 1 / √eps: the largest factor may be
    infinite.
    """
    is_constant, most = standard.size == 0.0, noise.most[:, 0]
    with np.errstate(all="ignore"):
        least, largest = bound_each(standard.values, targets, slack, noise.whole)
        if not _are_bounds(least, largest, most):
            return None
        for chosen, bounds in (
            (is_constant | (noise.of_factor[:, 0] > MOST**2), _bound_shapes),
            (is_constant | (noise.whole > MOST).any(axis=1), _bound_closely),
        ):
            if chosen.any():
                parts = (standard.values, targets, slack, noise.own, noise.of_factor)
                low, high = bounds(*(part[chosen] for part in parts))
                least[chosen] = np.maximum(least[chosen], low)
                largest[chosen] = np.minimum(largest[chosen], high)
                if not _are_bounds(least, largest, most):
                    return None
    return np.maximum(least, 0.0), largest


def _are_bounds(least: Floats, largest: Floats, most: Floats) -> Selected:
    """Whether every group has a factor between its bounds, positive and at most `most`; False with NaN."""
    are_bounds: Selected = np.all((least <= largest) & (least <= most) & (largest > 0.0), axis=-1)
    return are_bounds


@np.errstate(all="ignore")
def bound_each(
    values: Floats, targets: Floats, slack: Floats, noise: Floats | float = 0.0
) -> tuple[Floats, Floats]:
    """Return the least and the largest r of each row with |target − r · value| ≤ slack + r · noise throughout.

    Both arrays have the shape (rows,), or (…, rows). Where there is no such r, the least is larger than the
    largest; both are NaN in rows with a NaN target.

    Parameters
    ----------
    values, targets : ndarray, shape (rows, values)
        Targets may have more axes before these.
    slack : ndarray
        The bounds of the targets' errors.
    noise : ndarray or float
        The bounds of the values' errors.
    """
    size, signed = np.abs(values), np.where(values < 0.0, -targets, targets)
    near, far, least, most = size - noise, size + noise, signed - slack, signed + slack
    low = np.where(far > 0.0, least / far, np.where(least <= 0.0, -np.inf, np.inf))
    high = np.where(near > 0.0, most / near, np.inf)
    if not np.all(near > 0.0):
        none = np.where((near == 0.0) & (most < 0.0), np.inf, -np.inf)
        low = np.maximum(low, np.where(near < 0.0, most / near, none))
    return low.max(axis=-1), high.min(axis=-1)


def _bound_shapes(
    values: Floats, targets: Floats, slack: Floats, own: Floats, of_factor: Floats
) -> tuple[Floats, Floats]:
    """Return the least and the largest factor of each group, for groups whose mean may have a large error.

    Such an error shifts all values of a group, so each group's weighted average is first subtracted from values
    and targets.

    Parameters
    ----------
    values, targets, slack : ndarray, shape (groups, group_size)
        The standardized values, the values to reach, and the bounds on their errors.
    own, of_factor : ndarray
        The bounds of that name in `Noise`.
    """
    weight = np.isfinite(slack) / np.maximum(slack, _LEAST)
    total = weight.sum(axis=1, keepdims=True)
    weight = np.where(total > 0.0, weight / np.where(total > 0.0, total, 1.0), 0.0)

    def average(parts: Floats) -> Floats:
        found: Floats = np.where(weight > 0.0, weight * parts, 0.0).sum(axis=1, keepdims=True)
        return found

    least, largest = bound_each(
        values - average(values), targets - average(targets), slack + average(slack), own + average(own)
    )
    spread = 1.0 + of_factor[:, 0]
    return least / spread, largest * spread


def _bound_closely(
    values: Floats, targets: Floats, slack: Floats, own: Floats, of_factor: Floats
) -> tuple[Floats, Floats]:
    """Return the least and the largest factor of each group by which `values` become `targets`, within slack.

    (1 + |target|) / 16 is added to each slack: the largest error that counts as rounding. `own` and `of_factor`
    are ignored; they are there so that `_bound_shapes` can be exchanged for this function.
    """
    del own, of_factor
    return bound_each(values, targets, slack + MOST * (1.0 + np.abs(targets)))


class Level(NamedTuple):
    """A level of precision: the dtype that a right kernel may calculate in, and how large its errors may be.

    y is compared with a norm at one level after the other, from small errors to large ones (`list_levels`).

    Parameters
    ----------
    precision : str
        The dtype of the calculation.
    ulp : float
        The error of each value, in units in the last place of the result's dtype.
    roundings : float
        A further error, in machine epsilons of `precision`, relative to Σ |term|.
    """

    precision: str
    ulp: float
    roundings: float

    def measure(self, terms: Floats | float) -> Floats:
        """Return the bound on the error before the last rounding: roundings · machine epsilon · terms."""
        return np.multiply(self.roundings * get_eps(np.dtype(find_type(self.precision))), terms)

    def allow(self, values: Floats, dtype: np.dtype[Any], terms: Floats | float) -> Floats:
        """Return the bound on the error of each value once rounded to a dtype, given the size of its terms."""
        return self.ulp * measure_unit(values, dtype) + self.measure(terms)


_CALCULATED = "float32"
"""The dtype in which kernels calculate results of half precision, and some kernels results of float64."""

_OF_SHORTER = (4.0, 32.0)
"""`Level.roundings` of results of float64 that were calculated in float32."""


def list_levels(dtype: np.dtype[Any], *, shorter: bool = True) -> tuple[Level, ...]:
    """Return the levels for results of a dtype, in the order in which they are tried.

    Errors grow from one last rounding to those of careless but right kernels. Half precision has levels of
    arithmetic in float32 and, last, two of arithmetic in half precision with few roundings, as errors of sums
    in half precision grow with their length. float64 has, last, two levels of arithmetic in float32, as in
    Keras and some operators of ONNX, if the kernel may be `shorter`.
    """
    name, careless = dtype.name, [2.0**k for k in range(round(math.log2(MOST_ROUNDINGS)) + 1)]
    if is_half(dtype):
        wide = (Level(_CALCULATED, ROUNDED_ONCE, roundings) for roundings in careless[1:])
        return (*wide, Level(name, 1.0, 1.0), Level(name, 1.0, 2.0))
    levels = (Level(name, ROUNDED_ONCE, 0.0), Level(name, 2.0, 0.0), *(Level(name, 1.0, n) for n in careless))
    last = [Level(_CALCULATED, 1.0, n) for n in _OF_SHORTER] if shorter and name != _CALCULATED else []
    return (*levels, *last)


def choose_careless(dtype: np.dtype[Any]) -> Level:
    """Return the level with the largest errors that still has the precision of a dtype's first level.

    The precision is the dtype itself, or float32 for half precision.
    """
    first, *others = list_levels(dtype)
    return [level for level in others if level.precision == first.precision][-1]
