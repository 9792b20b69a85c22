"""Whether the values of y go with x at all: without that, y is no norm of x, nor a faulty one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from normcli.dtypes import Floats


_SCREENED = 1 << 11
"""Values of a tensor that are looked at before all are."""

LEAST_PLACES = 8
"""Places that are left of a longer axis."""

_LEAST_VALUES, _LEAST_LENGTH = 256, 4
"""The fewest values that show whether tensors go together; and the fewest of a line."""

_BY_CHANCE = 4.0
"""The most standard deviations from 0 that ξ of tensors which do not go together has."""


def choose_places(shape: Sequence[int], first: Sequence[int] = ()) -> tuple[slice, ...]:
    """Return the index of some values of a shape, as far apart as each other, in all about `_SCREENED`.

    Parameters
    ----------
    shape : sequence of int
    first : sequence of int
        The axes whose places are left out first; the longest before others.
    """
    steps, size = [1] * len(shape), math.prod(shape)
    for axis in sorted(range(len(shape)), key=lambda axis: (axis not in first, -shape[axis])):
        steps[axis] = min(max(1, size // _SCREENED), max(1, shape[axis] // LEAST_PLACES))
        size //= steps[axis]
    return tuple(slice(None, None, step) for step in steps)


def go_together(given: Iterable[Floats], y: Floats) -> bool:
    """Whether y goes with one of some tensors of its shape, along any axis or in all.

    Parameters
    ----------
    given : iterable of ndarray
    y : ndarray

    Notes
    -----
    Neighbours in the order of x have about the same rank in y if y is any function of x, but for noise: ξ of
    Chatterjee (2021, A New Coefficient of Correlation). Of n values that do not go together its mean is 0, and
    its variance 2 / (5 n). Of few values, the answer is yes.

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
