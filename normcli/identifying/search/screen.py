"""Cheap tests on samples: whether values of a group lie on a line, and whether y depends on x at all."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.identifying.models.error_bounds import list_levels
from normcli.identifying.models.line_fit import fit_lines
from normcli.identifying.sampling import spread_indices, widen

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
    lines = fit_lines(np.broadcast_to(x, targets.shape), targets, (0,), through_zero=False)
    rest = np.abs(targets - lines.apply(np.where(np.isfinite(x), x, 0.0)))
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


def find_possible(
    x: NDArray[Any], y: NDArray[Any], grid: Grid, steps: Sequence[AffineStep], dtype: np.dtype[Any]
) -> list[AffineStep]:
    """Return the affine steps with which a grid's groups may lead to y, whatever divides the groups.

    A step is left out if, with it undone, sampled values of a group do not lie on a line. Tested are the middle
    group and, of groups above 2¹⁷ values, the first. Empty if no step is left.

    Parameters
    ----------
    x, y : ndarray
        Input and output, of one shape.
    grid : Grid
    steps : sequence of AffineStep
        The ways in which gamma and beta may have entered.
    dtype : numpy.dtype
        The dtype to which y was rounded.
    """
    left, level = list(steps), list_levels(dtype)[-1]
    tried = [(grid.group_count // 2, _SCREENED, 1.0)]
    if grid.group_size > _LARGE:
        tried.append((0, _MANY_SCREENED, _CLOSELY))
    for group, most, margin in tried:
        if not left:
            break
        index = grid.locate_values(group, spread_indices(grid.group_size, most))
        some, theirs = widen(x[index]), widen(y[index])
        before = margin * level.measure(np.full(some.shape, 1.0 + measure_offset(some)))
        placed = [step.map(lambda values: np.broadcast_to(values, x.shape)[index]) for step in left]  # noqa: B023
        every = [(step, margin * step.allow(theirs, dtype, level)) for step in placed]
        left = [*itertools.compress(left, lie_on_lines(some, theirs, every, before))]
    return left


# -- a y that does not depend on x is neither a norm of it nor a faulty one

_LEAST_VALUES, _LEAST_LENGTH = 256, 4
"""The fewest values of a tensor, and along an axis, that show whether two tensors depend on each other."""

_BY_CHANCE = 4.0
"""ξ of independent tensors is at most this many standard deviations above 0."""


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
