"""The search for plain maps y = a · x + b, with one pair for all values or for each index of some axes."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.ulp import ROUNDED_ONCE, measure_unit
from normcli.dtypes import find_type, get_eps, is_half
from normcli.identifying.models.error_bounds import Level
from normcli.identifying.models.known_maps import choose_map_level, list_constants
from normcli.identifying.models.line_fit import PlainMap, count_bits, fit_closely, fit_lines, fit_medians
from normcli.identifying.models.weight import CERTAIN, choose_bits
from normcli.identifying.sampling import MOST_SAMPLED, choose_block, take_block
from normcli.tensors.mapped import fetch
from normcli.tensors.pieces import PIECE, forget

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected

    Axes = tuple[int, ...]


FEW_SAMPLED = 1 << 12
"""The most values that a map is tried on first."""


_ROUNDINGS = 3.0
"""The error of a map in machine epsilons of y's dtype, relative to its terms: x − mean, two products, a sum."""

_SHORTER = "float32"
"""The dtype in which maps of half precision, and some of float64, are calculated."""

_SHORT_ROUNDINGS = 4.0
"""The error of a map in machine epsilons of arithmetic in float64, or in float32 for half precision."""


def find_plain_map(x: NDArray[Any], y: NDArray[Any], dtype: np.dtype[Any]) -> PlainMap | None:
    """Return the map y = a · x + b with the fewest pairs of a and b that holds within rounding; else None.

    In half precision, last roundings of about half a unit in the last place are tried first, then of one unit.

    Parameters
    ----------
    x, y : ndarray
        Input and output, of one shape.
    dtype : numpy.dtype
        The dtype to which y was rounded.
    """
    return _find(x, y, dtype, enumerate_axes(x.shape), list_map_levels(dtype))


def find_global_map(x: NDArray[Any], y: NDArray[Any], dtype: np.dtype[Any]) -> PlainMap | None:
    """Return the map y = a · x + b with one a and b for all values, if it holds within rounding; else None."""
    return _find(x, y, dtype, [()], list_map_levels(dtype))


def _find(
    x: NDArray[Any], y: NDArray[Any], dtype: np.dtype[Any], every: Iterable[Axes], levels: Sequence[Level]
) -> PlainMap | None:
    """Return the first map, of axes in `every` and levels, that holds in a sample; None if it fails in y."""
    for fitted, level in _fit_samples(x, y, dtype, every, levels, exceptions=False):
        is_whole = x.size <= MOST_SAMPLED
        return fitted if is_whole or not any(_list_wrong(fitted, x, y, dtype, level)) else None
    return None


def find_near_map(x: NDArray[Any], y: NDArray[Any], dtype: np.dtype[Any]) -> PlainMap | None:
    """Return the map y = a · x + b with the fewest pairs of a and b that holds for at least 95 % of y.

    None if there is no such map, or it holds everywhere. At least half of the exceptions have to be off by more
    than 16 rounding bounds. The map's `wrong` is the count of exceptions, and `first_wrong` the index of the
    first.

    Parameters
    ----------
    x, y : ndarray
        Input and output, of one shape.
    dtype : numpy.dtype
        The dtype to which y was rounded.
    """
    every = [axes for axes in enumerate_axes(x.shape) if len(axes) <= _MOST_NEAR_AXES]
    every = [axes for axes in every if _count_least(x.shape, axes) <= min(x.size, MOST_SAMPLED)]
    for fitted, level in _fit_samples(x, y, dtype, every, list_map_levels(dtype), exceptions=True):
        if not _is_of_all(fitted, x.shape):
            continue
        places, far = (
            [*itertools.chain.from_iterable(_list_wrong(fitted, x, y, dtype, level, times))]
            for times in (1.0, _FAR)
        )
        if 0 < len(places) <= min(2 * len(far), max(1.0, _FEW_WRONG * x.size)):
            first = tuple(map(int, np.unravel_index(places[0], x.shape)))
            return fitted._replace(wrong=len(places), first_wrong=first)
    return None


def _count_least(shape: tuple[int, ...], axes: Axes) -> int:
    """Return the fewest values that show exceptions from lines, one for each index of some axes."""
    return _LEAST_IN_LINE * math.prod(shape[axis] for axis in axes)


def _fit_samples(
    x: NDArray[Any],
    y: NDArray[Any],
    dtype: np.dtype[Any],
    every: Iterable[Axes],
    levels: Sequence[Level],
    *,
    exceptions: bool,
) -> Iterator[tuple[PlainMap, Level]]:
    """Yield the maps, of axes in `every` and levels, that hold in a sample, with the level for all values.

    `exceptions` says whether 5 % of the sample may be off the map.
    """
    few, more = (SampledBlock(x, y, most) for most in (FEW_SAMPLED, MOST_SAMPLED))
    for axes, level in itertools.product(every, levels):
        shows = not exceptions or _count_least(x.shape, axes) <= FEW_SAMPLED
        if shows and few.fit(axes, dtype, level, exceptions=exceptions) is None:
            continue
        fitted = more.fit(axes, dtype, level, exceptions=exceptions)
        if fitted is not None:
            yield fitted, level if x.size <= MOST_SAMPLED else _widen(level, dtype)


_MOST_NEAR_AXES = 2
"""The most axes along which a and b of a map with exceptions vary: with more, lines are short."""

_FEW_WRONG = 0.05
"""The largest part of the values that may be exceptions; more are a sign of another map."""

_FAR = 16.0
"""Most exceptions are off by more than this many rounding bounds; smaller errors suggest other arithmetic."""

_LEAST_IN_LINE = 8
"""The fewest values of a line with exceptions."""


def _list_wrong(
    fitted: PlainMap, x: NDArray[Any], y: NDArray[Any], dtype: np.dtype[Any], level: Level, times: float = 1.0
) -> Iterator[list[int]]:
    """Yield, piece by piece, the flat indices of values of y off a map by over `times` their rounding bound."""
    each = x.size // len(x)
    for start, some, theirs, lines in _walk(fitted, x, y):
        yield [*(np.flatnonzero(lines.find_wrong(some, theirs, dtype, level, times)) + start * each).tolist()]


def _walk(fitted: PlainMap, x: NDArray[Any], y: NDArray[Any]) -> Iterator[tuple[int, Floats, Floats, PlainMap]]:
    """Yield pieces of two tensors along an axis: first index, piece of x, piece of y, and the piece's map.

    The map is cut to the piece; if it was fitted to a sample of indices, it is fitted to each piece anew.
    """
    is_of_all = _is_of_all(fitted, x.shape)
    axis = 0 if is_of_all else max(fitted.axes, key=lambda axis: x.shape[axis])
    step = max(1, PIECE * x.shape[axis] // x.size)
    for start in range(0, x.shape[axis], step):
        index = (slice(None),) * axis + (slice(start, start + step),)
        some, theirs = (np.ascontiguousarray(fetch(values[index]), dtype=np.float64) for values in (x, y))
        if is_of_all:
            cut = index if axis in fitted.axes else ()
            lines = PlainMap(fitted.axes, fitted.scale[cut], fitted.shift[cut])
        else:
            lines = fit_lines(some, theirs, fitted.axes, through_zero=not fitted.shift.any())
        yield start, some, theirs, lines
        for values in (x, y):
            forget(values)


def _widen(level: Level, dtype: np.dtype[Any]) -> Level:
    """Return a level with 4 times the errors, for values outside the fitted sample.

    Its precision is y's dtype or the level's, whichever is shorter.
    """
    precision = max(level.precision, dtype.name, key=lambda name: get_eps(np.dtype(find_type(name))))
    return Level(precision, BEYOND_SAMPLE * level.ulp, BEYOND_SAMPLE * level.roundings)


def _is_of_all(fitted: PlainMap, shape: tuple[int, ...]) -> bool:
    """Whether a map has a pair of a and b for each index of its axes, not only for a sample of indices."""
    return all(fitted.scale.shape[axis] == shape[axis] for axis in fitted.axes)


BEYOND_SAMPLE = 4.0
"""The factor on the bounds of errors for values outside the sample to which a map was fitted."""


def list_map_levels(dtype: np.dtype[Any]) -> tuple[Level, ...]:
    """Return the levels of precision at which a map may have been calculated, the strictest first.

    These are arithmetic in float64 with one rounding at the end, arithmetic in y's dtype, and for float64 also
    arithmetic in float32. Half precision has only arithmetic in float32 with one rounding at the end, of half a
    unit or of one, since rounding at every step would explain too much.
    """
    if is_half(dtype):  # whose last place is as large as what tells one group's factor from another's
        return tuple(Level(_SHORTER, ulp, _SHORT_ROUNDINGS) for ulp in (ROUNDED_ONCE, 1.0))
    levels = Level("float64", 1.0, _SHORT_ROUNDINGS), Level(dtype.name, 1.0, _ROUNDINGS)
    return (*levels, Level(_SHORTER, 1.0, _SHORT_ROUNDINGS)) if dtype == np.float64 else levels


def enumerate_axes(shape: tuple[int, ...]) -> Iterator[Axes]:
    """Yield the sets of axes along which a and b may vary, those with the fewest pairs first.

    All axes longer than 1 together are left out.
    """
    wide = [axis for axis, length in enumerate(shape) if length > 1]
    sets = (axes for count in range(len(wide)) for axes in itertools.combinations(wide, count))
    yield from sorted(sets, key=lambda axes: math.prod(shape[axis] for axis in axes))


def is_known(plain: PlainMap, x: NDArray[Any], y: NDArray[Any], dtype: np.dtype[Any]) -> bool:
    """Whether a map of image constants, or of an untrained layer, leads to y: it is simpler than any norm."""
    x, y = SampledBlock(x, y, MOST_SAMPLED).take(plain.axes)
    return any(True for _ in list_constants(plain.axes, x, y, dtype))


def find_known_map(x: NDArray[Any], y: NDArray[Any], dtype: np.dtype[Any]) -> PlainMap | None:
    """Return the map of image constants that leads to y if each of its steps is rounded to half precision.

    Along each axis of at most 3 indices, it may have as many constants. None for longer dtypes, without such a
    map, or with less than 20 bits of evidence.
    """
    if not is_half(dtype):
        return None
    axes = tuple(axis for axis, length in enumerate(x.shape) if length <= _MOST_CHANNELS)
    some, theirs = SampledBlock(x, y, MOST_SAMPLED).take(axes)
    level = choose_map_level(dtype)
    known = (made for _, made in list_constants(axes, some, theirs, dtype))
    shown = (made for made in known if count_bits(made, some, theirs, dtype, level, 0) >= CERTAIN)
    return next((made for made in shown if not any(_list_wrong(made, x, y, dtype, level))), None)


_MOST_CHANNELS = 3
"""The channels of an image."""


class SampledBlock:
    """A sample of two tensors at the same indices of each axis.

    Parameters
    ----------
    x, y : ndarray
        Input and output, of one shape.
    most : int
        The most values to take of each.
    """

    def __init__(self, x: NDArray[Any], y: NDArray[Any], most: int) -> None:
        self._x, self._y, self._most = x, y, most
        self._taken: dict[Axes, tuple[Floats, Floats]] = {}

    def fit(
        self, axes: Axes, dtype: np.dtype[Any], level: Level, *, exceptions: bool = False
    ) -> PlainMap | None:
        """Return the map y = a · x, or else y = a · x + b, that holds in the sample within rounding.

        It has a pair of a and b for each index of `axes`. With `exceptions`, it may fail for 5 % of the sample.
        None without one, or with less than 20 bits of evidence.
        """
        x, y = self.take(axes)
        for through_zero in (True, False):
            wrong = np.zeros(x.shape, np.bool_)
            if exceptions:
                wrong = _find_exceptions(x, y, axes, dtype, level, through_zero=through_zero)
            some, theirs = (np.where(wrong, np.nan, values) for values in (x, y))
            lines = _fit(some, theirs, axes, dtype, level, through_zero=through_zero)
            if lines.explains(some, theirs, dtype, level):
                bits = count_bits(lines, some, theirs, dtype, level, 1 if through_zero else 2)
                bits -= choose_bits(x.size, int(np.count_nonzero(wrong))) if exceptions else 0.0
                if bits >= CERTAIN:
                    return lines if axes else simplify(lines, some, theirs, dtype, level)
        return None

    def take(self, axes: Axes) -> tuple[Floats, Floats]:
        """Return samples of x and y in float64, in which `axes` are whole if there is room."""
        lengths = choose_block(self._x.shape, self._most, axes)
        if lengths not in self._taken:
            self._taken = {lengths: (take_block(self._x, lengths), take_block(self._y, lengths))}
        return self._taken[lengths]


def _find_exceptions(
    x: Floats, y: Floats, axes: Axes, dtype: np.dtype[Any], level: Level, *, through_zero: bool
) -> Selected:
    """Return True for values of y off robust lines by more than rounding; for all if these are over 5 %."""
    lines, wrong = fit_medians(x, y, axes, through_zero=through_zero), np.zeros(x.shape, np.bool_)
    for times in (4.0 * _FAR, _FAR / 4.0, 1.0):
        if wrong.any():
            some, theirs = (np.where(wrong, np.nan, values) for values in (x, y))
            lines = _fit(some, theirs, axes, dtype, level, through_zero=through_zero)
        wrong = lines.find_wrong(x, y, dtype, level, times)
        if np.count_nonzero(wrong) > max(1.0, _FEW_WRONG * x.size):
            return np.ones(x.shape, np.bool_)
    return wrong


def _fit(
    x: Floats, y: Floats, axes: Axes, dtype: np.dtype[Any], level: Level, *, through_zero: bool
) -> PlainMap:
    """Return the least-squares lines through values, one for each index of `axes`.

    For half precision, lines within the rounding bounds of all values are returned if there are any.
    """
    unit = level.ulp / level.measure(1.0) * measure_unit(y, dtype)  # in units of the roundings of terms
    lines = fit_lines(x, y, axes, unit, through_zero=through_zero)
    return fit_closely(lines, x, y, dtype, level) if is_half(dtype) else lines


_MOST_DIGITS = 17


def simplify(fitted: PlainMap, x: Floats, y: Floats, dtype: np.dtype[Any], level: Level) -> PlainMap:
    """Return a map of one pair with a and then b rounded to the fewest digits with which it holds for y."""
    a, b = float(fitted.scale.flat[0]), float(fitted.shift.flat[0])
    middle, used = float(np.mean(x[np.isfinite(x)])), _MOST_DIGITS

    def make(a: float, b: float, digits: int) -> PlainMap:
        return PlainMap((), np.full_like(fitted.scale, a), np.full_like(fitted.shift, b), digits)

    for digits in range(1, _MOST_DIGITS + 1):
        rounded = float(f"{a:.{digits - 1}e}")
        moved = b + (a - rounded) * middle
        if make(rounded, moved, digits).explains(x, y, dtype, level):
            a, b, used = rounded, moved, digits
            break
    every = (make(a, float(f"{b:.{digits}e}"), used + 1 + digits) for digits in range(_MOST_DIGITS))
    simple = (one for one in (make(a, 0.0, used), *every) if one.explains(x, y, dtype, level))
    return next(simple, make(a, b, used + _MOST_DIGITS))
