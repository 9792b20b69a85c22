"""Cheap tests on samples: whether values of a group lie on a line, and whether y depends on x at all."""

from __future__ import annotations

import itertools
import math
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.identifying.models.error_bounds import list_levels
from normcli.identifying.models.line_fit import fit_lines
from normcli.identifying.search.groups import widen

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.identifying.search.affine_step import AffineStep
    from normcli.norms.grid import Grid


_SCREENED = 256
"""The most values of a group that are sampled."""

_LARGE, _MANY_SCREENED, _CLOSELY = 1 << 17, 1 << 14, 0.25
"""Groups with more than 2¹⁷ values have 2¹⁴ of them tested too, within a quarter of the usual bounds."""

ON_ANY_LINE = 3
"""Groups of at most this many values are not tested: they lie on a line, or nearly."""

_ALONG_AXIS = 32
"""The most values along an axis that are sampled."""

_ALONG = 0.5
"""The factor on the bounds of values along an axis, below 1 because the group's offset is counted twice."""

_MARGIN = 8.0
"""The factor on the error of rounding: the mean and size of groups are guessed."""


def measure_offset(x: Floats) -> float:
    """Return |median| / median absolute deviation of values; infinite if that deviation is 0."""
    middle = float(np.median(x))
    size = float(np.median(np.abs(x - middle)))
    return abs(middle) / size if size > 0.0 else np.inf


def lie_on_lines(x: Floats, y: Floats, steps: Sequence[tuple[AffineStep, Floats]], before: Floats) -> Selected:
    """Return, for each affine step, whether y with the step undone lies on a line a · x + b, within bounds.

    If it does not, no centring and dividing of the group by any numbers, followed by the step, leads to y.

    Parameters
    ----------
    x, y : ndarray, shape (values,)
        Values of one group.
    steps : sequence of (AffineStep, ndarray)
        Each step, with scale and shift at these values, and the bound on its own error at each value.
    before : ndarray, shape (values,)
        The bound on the error of x̂ before the step, divided by 1 + |x̂|.
    """
    undone = [_undo(y, step, slack, before) for step, slack in steps]
    targets, allowed = (np.stack(parts) for parts in zip(*undone, strict=True))
    known = np.isfinite(x) & np.isfinite(targets) & np.isfinite(allowed)
    targets, allowed = np.where(known, targets, np.nan), np.where(known, allowed, np.nan)
    size = np.frexp(np.abs(np.where(known, targets, 0.0)).max(axis=1, keepdims=True))[1]
    scaled = np.ldexp(targets, -size)  # each line as if it were alone
    lines = fit_lines(np.broadcast_to(x, scaled.shape), scaled, (0,), through_zero=False)
    rest = np.abs(targets - np.ldexp(lines.apply(np.where(np.isfinite(x), x, 0.0)), size))
    middle = np.array(
        [np.median(row[some]) if some.any() else 0.0 for row, some in zip(allowed, known, strict=True)]
    )
    refuted: Selected = (known & (rest > _MARGIN * (allowed + middle[:, None]))).any(axis=1)
    return ~refuted


def _undo(y: Floats, step: AffineStep, slack: Floats, before: Floats) -> tuple[Floats, Floats]:
    """Return y with an affine step undone, which is x̂, and the bound on the error of each value.

    Parameters
    ----------
    y : ndarray, shape (values,)
    step : AffineStep
        The step, with scale and shift at these values.
    slack, before : ndarray, shape (values,)
        The bound on the step's own error; and that on the error of x̂ before the step, divided by 1 + |x̂|.
    """
    targets, _ = step.undo(y, slack, before)
    return step.undo(y, slack, before * (1.0 + np.abs(targets)))


class Screen:
    """A test that rules out pairs of a grouping and an affine step by sampled values of x and y.

    Parameters
    ----------
    x, y : ndarray
        Input and output, of one shape.
    steps : sequence of AffineStep
        The ways in which gamma and beta may have entered.
    dtype : numpy.dtype
        The dtype to which y was rounded.
    """

    def __init__(
        self, x: NDArray[Any], y: NDArray[Any], steps: Sequence[AffineStep], dtype: np.dtype[Any]
    ) -> None:
        self._x, self._y, self._steps, self._dtype = x, y, steps, dtype
        self._refuted: dict[int, frozenset[int]] = {}

    def find_possible(self, grid: Grid, steps: Sequence[AffineStep]) -> list[AffineStep]:
        """Return the affine steps with which a grid's groups may lead to y, whatever divides the groups.

        A step is left out if, with it undone, sampled values of a group do not lie on a line. Tested are values
        along each reduced axis, the middle group and, of groups above 2¹⁷ values, the first. Empty if no step
        is left.
        """
        split = None if grid.split is None else grid.split.axis
        for axis in grid.axes:
            if axis != split:
                steps = [step for step in steps if id(step) not in self._refute_along(axis)]
        middle = grid.locate_values(grid.group_count // 2, _spread_places(grid, _SCREENED))
        steps = self._find_on_line(steps, middle)
        if grid.group_size > _LARGE:
            first = grid.locate_values(0, _spread_places(grid, _MANY_SCREENED))
            steps = self._find_on_line(steps, first, _CLOSELY)
        return list(steps)

    def _refute_along(self, axis: int) -> frozenset[int]:
        """Return the `id()` of each step that values sampled along an axis refute, for groups along it."""
        if axis not in self._refuted:
            length, left = self._x.shape[axis], self._steps
            if length > ON_ANY_LINE:
                places = np.linspace(0, length - 1, min(_ALONG_AXIS, length)).astype(np.intp)
                index = [np.full(len(places), n // 2) for n in self._x.shape]
                index[axis] = places
                left = self._find_on_line(left, tuple(index), _ALONG, self._typical_offset)
            self._refuted[axis] = frozenset(map(id, self._steps)) - frozenset(map(id, left))
        return self._refuted[axis]

    @cached_property
    def _typical_offset(self) -> float:
        """|median| / median absolute deviation of x, of values all over the tensor."""
        flat = np.linspace(0, self._x.size - 1, min(_SCREENED, self._x.size)).astype(np.intp)
        return measure_offset(widen(self._x[np.unravel_index(flat, self._x.shape)]))

    def _find_on_line(
        self,
        steps: Sequence[AffineStep],
        index: tuple[NDArray[np.intp], ...],
        margin: float = 1.0,
        offset: float = 0.0,
    ) -> list[AffineStep]:
        """Return the steps that, undone, leave some values of one group on a line: y becomes a · x + b.

        Parameters
        ----------
        steps : sequence of AffineStep
            The affine steps to test.
        index : tuple of ndarray of int
            The index of the values in the tensor, an array for each axis.
        margin : float
            The factor on all bounds of errors.
        offset : float
            The least |mean| / deviation of the group that is assumed for these bounds.
        """
        if not steps:
            return []
        x, y = widen(self._x[index]), widen(self._y[index])
        level = list_levels(self._dtype)[-1]
        before = level.measure(np.full(x.shape, 1.0 + max(offset, measure_offset(x))))
        every = []
        for step in steps:
            placed = step.map(lambda values: np.broadcast_to(values, self._x.shape)[index])
            every.append((placed, margin * placed.allow(y, self._dtype, level)))
        return list(itertools.compress(steps, lie_on_lines(x, y, every, margin * before)))


def _spread_places(grid: Grid, most: int) -> NDArray[np.intp]:
    """Return the indices of at most `most` values within a group, spread evenly."""
    return np.linspace(0, grid.group_size - 1, min(most, grid.group_size)).astype(np.intp)


# -- a y that does not depend on x is neither a norm of it nor a faulty one

_RANKED = 1 << 11
"""About how many values a sample of a tensor has."""

LEAST_PLACES = 8
"""The fewest indices that a sample keeps of a longer axis."""

_LEAST_VALUES, _LEAST_LENGTH = 256, 4
"""The fewest values of a tensor, and along an axis, that show whether two tensors depend on each other."""

_BY_CHANCE = 4.0
"""ξ of independent tensors is at most this many standard deviations above 0."""


def choose_places(shape: Sequence[int], first: Sequence[int] = ()) -> tuple[slice, ...]:
    """Return a slice with a step for each axis, which together select about 2,048 evenly spaced values.

    At least 8 indices of each axis (all of a shorter one) are selected, so that there may be more values. A
    shape of fewer than 4,096 values is selected whole.

    Parameters
    ----------
    shape : sequence of int
    first : sequence of int
        The axes to thin out before all others; longer axes come before shorter ones.
    """
    steps, size = [1] * len(shape), math.prod(shape)
    for axis in sorted(range(len(shape)), key=lambda axis: (axis not in first, -shape[axis])):
        steps[axis] = min(max(1, size // _RANKED), max(1, shape[axis] // LEAST_PLACES))
        size //= steps[axis]
    return tuple(slice(None, None, step) for step in steps)


def go_together(given: Iterable[Floats], y: Floats) -> bool:
    """Return True if y may be a function of one of some tensors, value by value, along any axis or as a whole.

    Parameters
    ----------
    given : iterable of ndarray
        Tensors of the shape of y.
    y : ndarray

    Notes
    -----
    Neighbours in the order of x have about the same rank in y if y is any function of x, but for noise: ξ of
    Chatterjee (2021, A New Coefficient of Correlation). For n independent values its mean is 0, and its
    variance 2 / (5 n). For fewer than 256 values, the answer is True.

    Examples
    --------
    >>> x, other = np.random.default_rng(0).normal(size=(2, 500))
    >>> go_together([x], np.sin(x)), go_together([x], other)
    (True, False)
    """
    if y.size < _LEAST_VALUES:
        return True
    most, lengths = _BY_CHANCE * math.sqrt(0.4 / y.size), (*y.shape, y.size)
    lines = [axis for axis, n in enumerate(lengths) if n >= _LEAST_LENGTH]

    def lay(values: Floats, axis: int) -> Floats:
        return values.reshape(-1) if axis == y.ndim else np.moveaxis(values, axis, -1)

    ranks = {axis: lay(y, axis).argsort(-1).argsort(-1) for axis in lines}
    for x in given:
        for axis in lines:
            steps = np.diff(np.take_along_axis(ranks[axis], lay(x, axis).argsort(-1), -1))
            if 1.0 - 3.0 * float(np.abs(steps).sum(-1).mean()) / (lengths[axis] ** 2 - 1) > most:
                return True
    return False
