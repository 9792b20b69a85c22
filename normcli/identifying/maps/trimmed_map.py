"""Plain maps that explain all but a few values."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import is_half
from normcli.identifying.maps.lines import (
    Exceptions,
    PlainMap,
    count_bits,
    fit_lines,
    measure_own_unit,
    simplify,
)
from normcli.identifying.maps.plain import (
    BEYOND_SAMPLE,
    FEW_SAMPLED,
    MOST_SAMPLED,
    Block,
    enumerate_axes,
    list_levels,
)
from normcli.identifying.models.levels import Level
from normcli.identifying.models.weight import CERTAIN
from normcli.identifying.nearly.trimming import leave_out, leave_out_extremes
from normcli.tensors.mapped import fetch
from normcli.tensors.pieces import PIECE
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats

_BITS_OF_A_VALUE = 24.0
"""What it takes to say a value that is wrong, beside its place."""


class _Trial(NamedTuple):
    made: PlainMap
    rest: Floats
    allowed: Floats


def find_trimmed_map(x: NDArray[Any], y: NDArray[Any], dtype: np.dtype[Any]) -> PlainMap | None:
    """Return the plain map of fewest numbers that explains all but a few values of y, with those; or None.

    Parameters
    ----------
    x, y : ndarray
        Of one shape.
    dtype : numpy.dtype
        In which y was rounded.
    """
    few, more = Block(x, y, FEW_SAMPLED), Block(x, y, MOST_SAMPLED)
    level = list_levels(dtype)[0]._replace(ulp=1.0) if is_half(dtype) else list_levels(dtype)[1]
    for axes in enumerate_axes(x.shape):
        if _fit_map(*few.take(axes), axes, dtype, level) is None:
            continue
        fitted = _fit_map(*more.take(axes), axes, dtype, level)
        if fitted is not None and all(fitted.scale.shape[axis] == x.shape[axis] for axis in axes):
            exceptions = _list_exceptions(fitted, x, y, dtype, level)
            return fitted._replace(exceptions=exceptions) if exceptions.mismatches else None
    return None


def _fit_map(
    x: Floats, y: Floats, axes: tuple[int, ...], dtype: np.dtype[Any], level: Level
) -> PlainMap | None:
    """Return the map with a pair for each index of some axes, or a factor, if most values show it."""

    def fit(values: Floats, *, through_zero: bool) -> _Trial:
        unit = measure_own_unit(values, dtype, level)
        made = fit_lines(x, values, axes, unit, through_zero=through_zero)
        return _Trial(made, np.abs(values - made.apply(x)), made.allow(x, values, dtype, level))

    for through_zero in (True, False):
        left = leave_out(partial(fit, through_zero=through_zero), leave_out_extremes(y), axes)
        if left is None:
            continue
        kept, (made, _, allowed) = left
        counted = np.isfinite(kept)
        shown = count_bits(made, allowed, x, kept, 1 if through_zero else 2)
        taken = np.count_nonzero(~counted) * (_BITS_OF_A_VALUE + math.log2(y.size))
        if shown - taken < CERTAIN:
            return None
        if axes:
            return made
        some, theirs = (values[counted].reshape(*(1,) * (x.ndim - 1), -1) for values in (x, kept))
        return simplify(made, some, theirs, dtype, level)
    return None


def _list_exceptions(
    fitted: PlainMap, x: NDArray[Any], y: NDArray[Any], dtype: np.dtype[Any], level: Level
) -> Exceptions:
    """Return which values of all a map does not explain."""
    beyond = BEYOND_SAMPLE if x.size > MOST_SAMPLED else 1.0
    level = Level(level.precision, beyond * level.ulp, beyond * level.roundings)
    count, first, step = 0, x.size, max(1, PIECE * len(x) // x.size)
    for start in range(0, len(x), step):
        some, theirs = (fetch(values[start : start + step]).astype(np.float64) for values in (x, y))
        cut = slice(start, start + step) if 0 in fitted.axes else slice(None)
        here = PlainMap(fitted.axes, fitted.scale[cut], fitted.shift[cut])
        strange = np.flatnonzero(here.find_exceptions(some, theirs, dtype, level))
        if strange.size:
            first = min(first, start * x[0].size + int(strange[0]))
            count += strange.size
    return Exceptions(count, x.size, tuple(int(i) for i in np.unravel_index(min(first, x.size - 1), x.shape)))
