"""A gamma and a beta fitted to y, by least squares or within the bounds of each value, and their evidence."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.ulp import measure_unit
from normcli.dtypes import is_half
from normcli.identifying.models.error_bounds import Level, choose_careless, measure_noise
from normcli.identifying.models.line_fit import PlainMap, fit_lines, fit_within
from normcli.identifying.models.standards import is_centred
from normcli.identifying.models.weight import measure_bits
from normcli.identifying.sampling import put_back, take_groups
from normcli.identifying.search.affine_step import ESTIMATED, AffineStep
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from normcli.dtypes import Floats
    from normcli.identifying.search.groups import Hypothesis, Sample
    from normcli.norms.divisors import Divisor
    from normcli.norms.grid import Grid


_ROUNDINGS, _ROUNDINGS_OF_HALF = 16.0, 1.0
"""Bounds on errors, in machine epsilons of y's dtype times the terms: of longer dtypes, and of half
precision."""


class Fit(NamedTuple):
    """Fitted lines y = scale · x̂ + shift, with the error of each value.

    Parameters
    ----------
    lines : PlainMap
        Gamma as the scale and beta as the shift.
    rest : ndarray
        |y − line| at each value.
    allowed : ndarray
        The bound on rounding error at each value.
    """

    lines: PlainMap
    rest: Floats
    allowed: Floats


class Target(NamedTuple):
    """The tensors to which gamma and beta are fitted, and how.

    Parameters
    ----------
    x, y : ndarray
        Input and output, of one shape.
    axes : tuple of int
        The axes along which gamma and beta vary.
    dtype : numpy.dtype
        The dtype to which y was rounded.
    shifts : bool
        True to fit a beta too.
    margin : float
        The factor on the bounds of errors; above 1 if only a sample of each line is fitted.
    refinements : int
        The number of times that gamma and beta are fitted again, with each error weighted by the inverse of its
        rounding bound.
    """

    x: Floats
    y: Floats
    axes: tuple[int, ...]
    dtype: np.dtype[Any]
    shifts: bool
    margin: float = 1.0
    refinements: int = 3

    def fit(self, values: Floats) -> PlainMap:
        """Return the gamma and beta that lead from values to y by least squares.

        Values have the shape of y, or a further first axis, each index of which is fitted by itself.
        """
        axes = self.axes
        if values.ndim > self.y.ndim:
            axes = (0, *(1 + axis for axis in axes))
        return fit_lines(values, self.y, axes, through_zero=not self.shifts, refinements=self.refinements)

    def read_step(self, lines: PlainMap) -> AffineStep:
        """Return lines as an affine step: the scale as gamma, the shift as beta if one is fitted."""
        return AffineStep(ESTIMATED, lines.scale, lines.shift if self.shifts else None)


def regress_each(hypothesis: Hypothesis, every: Sequence[float], target: Target) -> Iterator[Fit]:
    """Yield the fit of gamma and beta by least squares for each eps, in the order given."""
    for eps in every:
        lines, rest, allowed = regress(hypothesis, (eps,), target)
        lines = PlainMap(target.axes, lines.scale[0], lines.shift[0])
        yield Fit(lines, rest[0], allowed[0])


def regress(hypothesis: Hypothesis, every: Sequence[float], target: Target) -> Fit:
    """Return the fit of gamma and beta by least squares, for several eps at once.

    Parameters
    ----------
    hypothesis : Hypothesis
        The groups of all values, and the divisor.
    every : sequence of float
        The eps to try.
    target : Target

    Returns
    -------
    Fit
        `lines.scale` and `lines.shift` have a first axis of eps before those of y, with lengths of 1 where they
        do not vary; `rest` and `allowed` have the shape (eps, *y.shape).
    """
    grid, standard = hypothesis.sample.grid, hypothesis.sample.standard
    level = Level(target.dtype.name, 0.0, _ROUNDINGS_OF_HALF if is_half(target.dtype) else _ROUNDINGS)
    factors = hypothesis.measure_factors_of_each(every)
    rows = standard.values * factors
    limits = measure_noise(standard, level).limit(factors, rows)
    standardized, before = (
        np.concatenate([put_back(grid, part)[np.newaxis] for part in parts]) for parts in (rows, limits)
    )
    lines = target.fit(standardized)
    slack = level.measure(np.abs(target.y) + np.abs(lines.shift)) + np.abs(lines.scale) * before
    allowed = np.where(slack > 0.0, slack, level.measure(1.0))
    return Fit(lines, np.abs(target.y - lines.apply(standardized)), allowed)


def count_numbers(grid: Grid, axes: tuple[int, ...], divisor: Divisor, *, shifts: bool) -> int:
    """Return how many more statistics of groups show in y than numbers are fitted: the evidence for a grouping.

    Every group has a divisor and, if the norm has a centre, a mean. Fitted are the numbers of gamma and beta,
    and eps. The result may be negative. It is 0 for centred groups of two values, which show only which is
    larger.

    Parameters
    ----------
    grid : Grid
    axes : tuple of int
        The axes along which gamma and beta vary.
    divisor : Divisor
    shifts : bool
        True if a beta is fitted.
    """
    if is_centred(divisor) and grid.group_size == 2:  # −1 and 1 are the order of two values, no more
        return 0
    numbers, fitted = 1 + is_centred(divisor), 1 + shifts
    kept = dict(zip(grid.kept, grid.stats_shape, strict=True))
    taken = math.prod(kept.get(axis, 1) for axis in axes)
    lines = math.prod(length if axis in axes else kept.get(axis, 1) for axis, length in enumerate(grid.shape))
    shown = lines * min(fitted, math.prod(grid.shape) // lines)
    parameters = math.prod(grid.shape[axis] for axis in axes)
    return min(numbers * (grid.group_count - taken), shown - fitted * parameters) - 1


def weigh_fit(sample: Sample, target: Target, fit: Fit) -> float:
    """Return the evidence of a fit in bits: how much worse lines fit that have no divisor for each group.

    Such lines y = scale · v + shift, along the target's axes, are fitted to v = x and to v = x − mean of its
    group; the better of the two counts. The evidence is log2 of their largest error in a group, in rounding
    bounds, averaged over groups, times the result of `count_numbers`: how many statistics show beyond the
    fitted numbers.
    """
    grid, rows = sample.grid, sample.standard.rows
    maps = target.x, put_back(grid, rows - rows.mean(axis=1, keepdims=True))
    numbers = count_numbers(grid, target.axes, sample.standard.divisor, shifts=target.shifts)
    return min(numbers * _count_bits(grid, values, target, fit) for values in maps)


def _count_bits(grid: Grid, values: Floats, target: Target, fit: Fit) -> float:
    """Return log2 of the largest error of y in a group, averaged over the groups of `grid`.

    The errors are those of least-squares lines from `values` to y along the target's axes, in units of
    `fit.allowed`; below 1 they count as 1.
    """
    lines = target.fit(values)
    bits = measure_bits(np.abs(target.y - lines.apply(values)), fit.allowed)
    return float(np.fmax.reduce(take_groups(grid, bits), axis=1).mean())


_HALF_UNIT = 0.5


def fit_carefully(hypothesis: Hypothesis, eps: float, target: Target) -> AffineStep | None:
    """Return the affine step whose gamma and beta explain every y by its last roundings in half precision.

    Either only the result is rounded, or x̂ and its product with gamma too: then the step's `rounds_to` is y's
    dtype. None if neither explains y, or y is not finite.

    Parameters
    ----------
    hypothesis : Hypothesis
        The groups of all values, with a nearly right gamma and beta.
    eps : float
    target : Target
        The tensors, of half precision.
    """
    y, dtype = target.y, target.dtype
    if not np.isfinite(y).all():
        return None
    level, standard, grid = choose_careless(dtype), hypothesis.sample.standard, hypothesis.sample.grid
    factors = hypothesis.measure_factors(eps)
    rows = standard.values * factors
    noise = measure_noise(standard, level).limit(factors, rows)
    near = hypothesis.affine
    assert near.scale is not None  # of every gamma that was fitted
    for rounds_to in (None, dtype):
        first = AffineStep(near.way, rounds_to=rounds_to)
        least, most = (put_back(grid, first.apply(values)) for values in (rows - noise, rows + noise))
        middle = (least + most) / 2.0
        slack = near.allow(y, dtype, level) + np.abs(near.scale) * (most - least) / 2.0
        if target.shifts and rounds_to is not None:  # so is its product with gamma
            slack = slack + _HALF_UNIT * measure_unit(middle * near.scale, dtype)
        lines = fit_within(middle, y, slack, target.axes, through_zero=not target.shifts)
        if lines is not None:
            return target.read_step(lines)._replace(rounds_to=rounds_to)
    return None
