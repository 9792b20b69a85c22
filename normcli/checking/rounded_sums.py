"""Sums that are rounded to half precision after each addition: large ones stand still."""

from __future__ import annotations

import functools
import math
import operator
from typing import TYPE_CHECKING

import numpy as np

from normcli.numerics.rounding import round_to_half

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from normcli.dtypes import Floats

_LEAST_ROWS, _MOST_ROWS = 8, 1 << 14
"""Fewer may come out so by chance; more are not added one by one."""


def sum_in_half(factors: Sequence[Floats], axes: tuple[int, ...]) -> Iterator[tuple[str, Floats]]:
    """Yield the names of half precisions, and sums of products in each.

    Parameters
    ----------
    factors : sequence of ndarray
        Of one shape.
    axes : tuple of int
        What is summed over: value by value, or the first axis so, and the others at once before.

    Yields
    ------
    name, sum
        With what is added rounded or not, and factors rounded before or not.
    """
    wide = [np.moveaxis(factor, axes, range(len(axes))) for factor in factors]
    shape = wide[0].shape
    for name in ("bfloat16", "float16"):
        round_half = functools.partial(round_to_half, name=name)
        exact = functools.reduce(operator.mul, wide)
        rounded = functools.reduce(operator.mul, map(round_half, wide))
        for terms, counted in ((exact, 1), (rounded, 1), (exact, len(axes)), (rounded, len(axes))):
            rows = terms.sum(tuple(range(counted, len(axes)))).reshape(math.prod(shape[:counted]), -1)
            if _LEAST_ROWS <= len(rows) <= _MOST_ROWS:
                yield name, _accumulate(rows, round_half)
                yield name, _accumulate(round_half(rows), round_half)


def _accumulate(rows: Floats, round_half: Callable[[Floats], Floats]) -> Floats:
    total = np.zeros(rows.shape[1])
    for row in rows:
        total = round_half(total + row)
    return total
