"""Plain maps: y = a · x + b, one pair for all values or for each index of some axes, and no statistic.

A map explains all values, or all but a few.
"""

from __future__ import annotations

import itertools
import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.ulp import ROUNDED_ONCE
from normcli.dtypes import find_type, get_eps, is_half
from normcli.identifying.maps.lines import (
    Exceptions,
    PlainMap,
    count_bits,
    fit_closely,
    fit_lines,
    measure_own_unit,
    simplify,
)
from normcli.identifying.models.bounds import Level
from normcli.identifying.models.weight import CERTAIN
from normcli.identifying.nearly.trimmed import leave_out, leave_out_extremes
from normcli.tensors.mapped import fetch
from normcli.tensors.pieces import PIECE, forget
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.dtypes import Floats

    Axes = tuple[int, ...]


MOST_SAMPLED = 1 << 17
"""Values that a map is held against; of larger tensors some indices of each axis are taken."""

FEW_SAMPLED = 1 << 12
"""Values that a map is tried on first."""


_ROUNDINGS = 3.0
"""Roundings of its terms that a map may be off: a kernel's of x − mean, two products and a sum."""

_SHORTER = "float32"
"""What maps of half precision are calculated in, and some of float64."""

_SHORT_ROUNDINGS = 4.0
"""The roundings of these."""


def find_plain_map(x: NDArray[Any], y: NDArray[Any], dtype: np.dtype[Any]) -> PlainMap | None:
    """Return the plain map of fewest numbers that explains y, or None.

    One of half precision may have been rounded once more: it is asked for where no norm explains y.

    Parameters
    ----------
    x, y : ndarray
        Of one shape.
    dtype : numpy.dtype
        In which y was rounded.
    """
    levels = list_levels(dtype)
    roughly = [level._replace(ulp=1.0) for level in levels] if is_half(dtype) else []
    return _find(x, y, dtype, enumerate_axes(x.shape), [*levels, *roughly])


def find_global_map(x: NDArray[Any], y: NDArray[Any], dtype: np.dtype[Any]) -> PlainMap | None:
    """Return the plain map with one pair for all values that explains y, or None."""
    return _find(x, y, dtype, [()], list_levels(dtype))


def _find(
    x: NDArray[Any], y: NDArray[Any], dtype: np.dtype[Any], every: Iterable[Axes], levels: Sequence[Level]
) -> PlainMap | None:
    """Return the first map that explains a few values, more, and all; None where one explains but a sample."""
    few, more = Block(x, y, FEW_SAMPLED), Block(x, y, MOST_SAMPLED)
    for axes, level in itertools.product(every, levels):
        fitted = more.fit(axes, dtype, level) if few.fit(axes, dtype, level) is not None else None
        if fitted is not None:
            return fitted if x.size <= MOST_SAMPLED or _explains_all(fitted, x, y, dtype, level) else None
    return None


def _explains_all(
    fitted: PlainMap, x: NDArray[Any], y: NDArray[Any], dtype: np.dtype[Any], level: Level
) -> bool:
    """Whether a map that explains a sample explains all values: lines that were not sampled are fitted anew."""
    precision = max(level.precision, dtype.name, key=lambda name: get_eps(np.dtype(find_type(name))))
    careless = Level(precision, BEYOND_SAMPLE * level.ulp, BEYOND_SAMPLE * level.roundings)
    axis = max(fitted.axes, key=lambda axis: x.shape[axis], default=0)
    is_known = all(fitted.scale.shape[axis] == x.shape[axis] for axis in fitted.axes)
    step = max(1, PIECE * x.shape[axis] // x.size)
    for start in range(0, x.shape[axis], step):
        index = (slice(None),) * axis + (slice(start, start + step),)
        some, theirs = (np.ascontiguousarray(fetch(values[index]), dtype=np.float64) for values in (x, y))
        if is_known:
            cut = index if axis in fitted.axes else ()
            here = PlainMap(fitted.axes, fitted.scale[cut], fitted.shift[cut])
        else:
            here = fit_lines(some, theirs, fitted.axes, through_zero=not fitted.shift.any())
        if not here.explains(some, theirs, dtype, careless):
            return False
        for values in (x, y):
            forget(values)
    return True


BEYOND_SAMPLE = 4.0
"""So many times further off than its own values may be what a line was not fitted to, in y's dtype."""


def list_levels(dtype: np.dtype[Any]) -> tuple[Level, ...]:
    """Return how well a map may have been calculated: rounded once to a dtype, at every step, or in float32.

    One of half precision was rounded once: rounding at every step explains too much.
    """
    if is_half(dtype):  # whose last place is as large as what tells one group's factor from another's
        return (Level(_SHORTER, ROUNDED_ONCE, _SHORT_ROUNDINGS),)
    levels = Level("float64", 1.0, _SHORT_ROUNDINGS), Level(dtype.name, 1.0, _ROUNDINGS)
    return (*levels, Level(_SHORTER, 1.0, _SHORT_ROUNDINGS)) if dtype == np.float64 else levels


def enumerate_axes(shape: tuple[int, ...]) -> Iterator[Axes]:
    """Yield the axes that a and b may differ along, those with the fewest pairs first."""
    wide = [axis for axis, length in enumerate(shape) if length > 1]
    sets = (axes for count in range(len(wide)) for axes in itertools.combinations(wide, count))
    yield from sorted(sets, key=lambda axes: math.prod(shape[axis] for axis in axes))


class Block:
    """Values of some indices of each axis, the same of both tensors.

    Parameters
    ----------
    x, y : ndarray
        Of one shape.
    most : int
        How many values are taken at most.
    """

    def __init__(self, x: NDArray[Any], y: NDArray[Any], most: int) -> None:
        self._x, self._y, self._most = x, y, most
        self._taken: dict[Axes, tuple[Floats, Floats]] = {}

    def fit(self, axes: Axes, dtype: np.dtype[Any], level: Level) -> PlainMap | None:
        """Return the map with a pair for each index of some axes, if it explains values enough to show it."""
        x, y = self.take(axes)
        unit = measure_own_unit(y, dtype, level)
        for through_zero in (True, False):
            fitted = fit_lines(x, y, axes, unit, through_zero=through_zero)
            if is_half(dtype):
                fitted = fit_closely(fitted, x, y, dtype, level)
            if fitted.explains(x, y, dtype, level):
                numbers = 1 if through_zero else 2
                if count_bits(fitted, fitted.allow(x, y, dtype, level), x, y, numbers) < CERTAIN:
                    return None
                return fitted if axes else simplify(fitted, x, y, dtype, level)
        return None

    def take(self, axes: Axes) -> tuple[Floats, Floats]:
        """Return values of x and y: of some axes, every index as long as there is room."""
        lengths = _choose_lengths(self._x.shape, self._most, axes)
        if lengths not in self._taken:
            self._taken = {lengths: (_take(self._x, lengths), _take(self._y, lengths))}
        return self._taken[lengths]


def _choose_lengths(shape: tuple[int, ...], most: int, whole: Axes) -> tuple[int, ...]:
    """Return how many indices of each axis are taken: long axes are cut first, and those of a and b last."""
    lengths = list(shape)
    while math.prod(lengths) > most:
        cut = [axis for axis in range(len(shape)) if axis not in whole and lengths[axis] > 4] or [
            *range(len(shape))
        ]
        longest = max(cut, key=lambda axis: lengths[axis])
        lengths[longest] = max(1, min(lengths[longest] - 1, lengths[longest] * 3 // 4))
    return tuple(lengths)


def _take(values: NDArray[Any], lengths: tuple[int, ...]) -> Floats:
    """Return the values of evenly spread indices, in float64; of the last axis, those of one run."""
    return np.ascontiguousarray(_pick(values, lengths), dtype=np.float64)


def _pick(values: NDArray[Any], lengths: tuple[int, ...]) -> NDArray[Any]:
    """Return the same as it is; what is large is read part by part, each of one index of the first axis."""
    if len(lengths) > 1 and values.size > MOST_SAMPLED:
        chosen = np.linspace(0, len(values) - 1, lengths[0]).astype(np.intp)
        return np.stack([_pick(values[place], lengths[1:]) for place in chosen])
    values = fetch(values)
    for axis, (length, full) in enumerate(zip(lengths[:-1], values.shape[:-1], strict=True)):
        if length < full:
            chosen = np.linspace(0, full - 1, length).astype(np.intp)
            values = np.take(values, chosen, axis)
    first = (values.shape[-1] - lengths[-1]) // 2
    return values[..., first : first + lengths[-1]]


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
