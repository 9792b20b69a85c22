"""Plain maps: y = a · x + b, one pair for all values or for each index of some axes, and no statistic.

A map explains all values, or all but a few.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.ulp import ROUNDED_ONCE
from normcli.dtypes import find_type, get_eps, is_half
from normcli.identifying.maps.line_fit import (
    Exceptions,
    Fit,
    PlainMap,
    count_bits,
    drop_wrong,
    fit_closely,
    fit_lines,
    leave_out_extremes,
    measure_own_unit,
)
from normcli.identifying.models.error_bounds import Level
from normcli.identifying.models.weight import CERTAIN
from normcli.tensors.mapped import fetch
from normcli.tensors.pieces import PIECE, forget

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
        The dtype to which y was rounded.
    """
    levels = list_map_levels(dtype)
    roughly = [level._replace(ulp=1.0) for level in levels] if is_half(dtype) else []
    return _find(x, y, dtype, enumerate_axes(x.shape), [*levels, *roughly])


def find_global_map(x: NDArray[Any], y: NDArray[Any], dtype: np.dtype[Any]) -> PlainMap | None:
    """Return the plain map with one pair for all values that explains y, or None."""
    return _find(x, y, dtype, [()], list_map_levels(dtype))


def find_trimmed_map(x: NDArray[Any], y: NDArray[Any], dtype: np.dtype[Any]) -> PlainMap | None:
    """Return the plain map of fewest numbers that explains all but a few values of y, with those; or None."""
    level = list_map_levels(dtype)[0]._replace(ulp=1.0) if is_half(dtype) else list_map_levels(dtype)[1]
    return _find(x, y, dtype, enumerate_axes(x.shape), [level], leaves_out=True)


def _find(
    x: NDArray[Any],
    y: NDArray[Any],
    dtype: np.dtype[Any],
    every: Iterable[Axes],
    levels: Sequence[Level],
    *,
    leaves_out: bool = False,
) -> PlainMap | None:
    """Return the first map that explains a few values, more, and all; None where one explains but a sample.

    Where values are left out, it is the first map that explains most of a few values and more, but not all.
    """
    few, more = SampledBlock(x, y, FEW_SAMPLED), SampledBlock(x, y, MOST_SAMPLED)
    for axes, level in itertools.product(every, levels):
        if few.fit(axes, dtype, level, leaves_out=leaves_out) is None:
            continue
        fitted = more.fit(axes, dtype, level, leaves_out=leaves_out)
        if fitted is None or (leaves_out and not _is_of_all(fitted, x.shape)):
            continue
        is_judged = x.size <= MOST_SAMPLED and not leaves_out
        exceptions = None if is_judged else _list_exceptions(fitted, x, y, dtype, level)
        return fitted._replace(exceptions=exceptions) if leaves_out is (exceptions is not None) else None
    return None


def _is_of_all(fitted: PlainMap, shape: tuple[int, ...]) -> bool:
    """Whether a map has a pair for each index of its axes, and not of a sample alone."""
    return all(fitted.scale.shape[axis] == shape[axis] for axis in fitted.axes)


def _list_exceptions(
    fitted: PlainMap, x: NDArray[Any], y: NDArray[Any], dtype: np.dtype[Any], level: Level
) -> Exceptions | None:
    """Return which of all values a map leaves, if any; lines that were not sampled are fitted anew."""
    if x.size > MOST_SAMPLED:
        precision = max(level.precision, dtype.name, key=lambda name: get_eps(np.dtype(find_type(name))))
        level = Level(precision, BEYOND_SAMPLE * level.ulp, BEYOND_SAMPLE * level.roundings)
    axis = max(fitted.axes, key=lambda axis: x.shape[axis], default=0)
    step, count, first = max(1, PIECE * x.shape[axis] // x.size), 0, x.shape
    for start in range(0, x.shape[axis], step):
        index = (slice(None),) * axis + (slice(start, start + step),)
        some, theirs = (np.ascontiguousarray(fetch(values[index]), dtype=np.float64) for values in (x, y))
        if _is_of_all(fitted, x.shape):
            cut = index if axis in fitted.axes else ()
            here = PlainMap(fitted.axes, fitted.scale[cut], fitted.shift[cut])
        else:
            here = fit_lines(some, theirs, fitted.axes, through_zero=not fitted.shift.any())
        places = np.argwhere(here.find_exceptions(some, theirs, dtype, level))
        if places.size:
            places[:, axis] += start
            count, first = count + len(places), min(first, tuple(map(int, places[0])))
        for values in (x, y):
            forget(values)
    return Exceptions(count, x.size, first) if count else None


BEYOND_SAMPLE = 4.0
"""How many times further off than fitted values the other values of y's dtype may be."""


def list_map_levels(dtype: np.dtype[Any]) -> tuple[Level, ...]:
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


_BITS_OF_A_VALUE = 24.0
"""Bits to state a wrong value, without its place."""


class SampledBlock:
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

    def fit(
        self, axes: Axes, dtype: np.dtype[Any], level: Level, *, leaves_out: bool = False
    ) -> PlainMap | None:
        """Return the map with a pair for each index of some axes, or a factor, if values enough show it.

        It explains all values, or most of them where some may be left out.
        """
        x, y = self.take(axes)
        for through_zero in (True, False):
            fit = functools.partial(_fit, x, axes, dtype, level, through_zero)
            left = drop_wrong(fit, leave_out_extremes(y), axes) if leaves_out else (y, fit(y))
            if left is None or not (leaves_out or left[1].lines.explains(x, y, dtype, level)):
                continue
            kept, (lines, _, allowed) = left
            taken = np.count_nonzero(np.isnan(kept)) * (_BITS_OF_A_VALUE + math.log2(y.size)) * leaves_out
            if count_bits(lines, allowed, x, kept, 1 if through_zero else 2) - taken < CERTAIN:
                return None
            counted = np.isfinite(kept)
            some, theirs = (values[counted].reshape(*(1,) * (x.ndim - 1), -1) for values in (x, kept))
            return lines if axes else simplify(lines, some, theirs, dtype, level)
        return None

    def take(self, axes: Axes) -> tuple[Floats, Floats]:
        """Return a sample of x and y with every index of some axes, as far as there is room."""
        lengths = _choose_lengths(self._x.shape, self._most, axes)
        if lengths not in self._taken:
            self._taken = {lengths: (_take(self._x, lengths), _take(self._y, lengths))}
        return self._taken[lengths]


def _fit(x: Floats, axes: Axes, dtype: np.dtype[Any], level: Level, through_zero: bool, y: Floats) -> Fit:
    """Return the lines through some values, how far each is off, and may be."""
    lines = fit_lines(x, y, axes, measure_own_unit(y, dtype, level), through_zero=through_zero)
    if is_half(dtype):
        lines = fit_closely(lines, x, y, dtype, level)
    with np.errstate(all="ignore"):
        return Fit(lines, np.abs(y - lines.apply(x)), lines.allow(x, y, dtype, level))


def _choose_lengths(shape: tuple[int, ...], most: int, whole: Axes) -> tuple[int, ...]:
    """Return the number of indices to take along each axis: long axes are cut first, those of a and b last."""
    lengths = list(shape)
    while math.prod(lengths) > most:
        cut = [axis for axis in range(len(shape)) if axis not in whole and lengths[axis] > 4] or [
            *range(len(shape))
        ]
        longest = max(cut, key=lambda axis: lengths[axis])
        lengths[longest] = max(1, min(lengths[longest] - 1, lengths[longest] * 3 // 4))
    return tuple(lengths)


def _take(values: NDArray[Any], lengths: tuple[int, ...]) -> Floats:
    """Return the values at evenly spread indices, in float64; along the last axis, one run of indices."""
    return np.ascontiguousarray(_pick(values, lengths), dtype=np.float64)


def _pick(values: NDArray[Any], lengths: tuple[int, ...]) -> NDArray[Any]:
    """Return those values in their own dtype; large tensors are read index by index of the first axis."""
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


_MOST_DIGITS = 17


def simplify(fitted: PlainMap, x: Floats, y: Floats, dtype: np.dtype[Any], level: Level) -> PlainMap:
    """Return a map of one pair with as few digits as explain y."""
    a, b = float(fitted.scale.flat[0]), float(fitted.shift.flat[0])
    middle = float(np.mean(x[np.isfinite(x)]))
    best = fitted._replace(digits=2 * _MOST_DIGITS)
    for digits in range(1, _MOST_DIGITS + 1):
        rounded = float(f"{a:.{digits - 1}e}")
        moved = b + (a - rounded) * middle
        candidate = _make(fitted, rounded, moved, digits + _MOST_DIGITS)
        if candidate.explains(x, y, dtype, level):
            a, b, best = rounded, moved, candidate
            break
    used = best.digits - _MOST_DIGITS
    for digits in range(_MOST_DIGITS + 1):
        rounded = float(f"{b:.{digits - 1}e}") if digits else 0.0
        candidate = _make(fitted, a, rounded, used + digits)
        if candidate.explains(x, y, dtype, level):
            return candidate
    return best


def _make(fitted: PlainMap, a: float, b: float, digits: int) -> PlainMap:
    return PlainMap((), np.full_like(fitted.scale, a), np.full_like(fitted.shift, b), digits)
