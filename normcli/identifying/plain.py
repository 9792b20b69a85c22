"""Plain maps: y = a · x + b, one pair for all values or for each index of some axes, and no statistic."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.ulp import ROUNDED_ONCE, measure_unit
from normcli.dtypes import find_type, get_eps, is_half
from normcli.identifying.levels import Level
from normcli.identifying.weight import CERTAIN
from normcli.identifying.within import fit_within
from normcli.tensors.mapped import fetch
from normcli.tensors.pieces import PIECE, forget
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected

    Axes = tuple[int, ...]


MOST_SAMPLED = 1 << 17
"""Values that a map is held against; of larger tensors some indices of each axis are taken."""

FEW_SAMPLED = 1 << 12
"""Values that a map is tried on first."""

_SIMPLE = 2
"""A pair of numbers with no more digits than this is simpler than any norm: 0.5 · x, 2 · x − 1."""

_MOST_DIGITS = 17

_LEAST = 2.0**-60
"""Of numbers up to 1, smaller ones weigh no more than this one."""

_LEAST_SPREAD = 2.0**-50
"""Values that lie closer together than this part of their mean are one value, rounded."""

_ROUNDINGS = 3.0
"""Roundings of its terms that a map may be off: a kernel's of x − mean, two products and a sum."""

_SHORTER = "float32"
"""What maps of half precision are calculated in, and some of float64."""

_SHORT_ROUNDINGS = 4.0
"""The roundings of these."""

_REFINEMENTS = 3
"""Times that what a line leaves is fitted again: then its numbers are those of least squares."""


class Exceptions(NamedTuple):
    """Values that are not what a map makes: how many of how many, and the index of the first."""

    mismatches: int
    compared: int
    first: tuple[int, ...]


class PlainMap(NamedTuple):
    """y = a · x + b.

    Parameters
    ----------
    axes : tuple of int
        The axes along which a and b differ; none of them where one pair serves all values.
    scale, shift : ndarray
        a and b, of the tensor's rank, with lengths of 1 for the other axes.
    digits : int
        The significant digits of a and b together, of one pair for all; 0 where there are more pairs.
    exceptions : Exceptions or None
        The values that it does not explain, if any.
    """

    axes: Axes
    scale: Floats
    shift: Floats
    digits: int = 0
    exceptions: Exceptions | None = None

    @property
    def is_simple(self) -> bool:
        """Whether one pair of round numbers serves all values."""
        return not self.axes and self.digits <= _SIMPLE

    def apply(self, x: Floats) -> Floats:
        """Return y."""
        return self.scale * x + self.shift

    def explains(self, x: Floats, y: Floats, dtype: np.dtype[Any], level: Level) -> bool:
        """Whether y, of a dtype, is what the map gives when it is calculated so well."""
        return not self.find_exceptions(x, y, dtype, level).any()

    def find_exceptions(self, x: Floats, y: Floats, dtype: np.dtype[Any], level: Level) -> Selected:
        """Return which values of y are not what the map gives; of an x that is not finite, none is."""
        with np.errstate(all="ignore"):
            explained = (np.abs(y - self.apply(x)) <= self.allow(x, y, dtype, level)) & np.isfinite(y)
        strange: Selected = ~explained & np.isfinite(x)
        return strange

    def allow(self, x: Floats, y: Floats, dtype: np.dtype[Any], level: Level) -> Floats:
        """Return how far each value of y may be off."""
        return level.ulp * measure_unit(y, dtype) + level.measure(self.measure_terms(x, y))

    def measure_terms(self, x: Floats, y: Floats) -> Floats:
        """Return the size of what is added up for each value: its own terms, and its line's on average."""
        others = tuple(axis for axis in range(x.ndim) if axis not in self.axes)
        terms = np.abs(self.scale * x) + np.abs(self.shift) + np.abs(y)
        terms = np.where(np.isfinite(terms), terms, 0.0)
        total: Floats = terms + terms.mean(others, keepdims=True)
        return total


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
                fitted = _fit_closely(fitted, x, y, dtype, level)
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


def fit_lines(x: Floats, y: Floats, axes: Axes, unit: Floats | float = 0.0, *, through_zero: bool) -> PlainMap:
    """Return the lines of least squares, the distances counted in units of what rounding leaves of each value.

    Parameters
    ----------
    x, y : ndarray
        Of one shape; pairs that are not finite do not count.
    axes : tuple of int
        There is a line for each index of these.
    unit : ndarray or float
        What rounding leaves of y, beside a part of the terms that are added up; in units of that part.
    through_zero : bool
        Whether the lines have no shift.
    """
    others = tuple(axis for axis in range(x.ndim) if axis not in axes)
    with np.errstate(all="ignore"):
        counted = np.isfinite(x) & np.isfinite(y)
        x, y = np.where(counted, x, 0.0), np.where(counted, y, 0.0)
        large_x, large_y = (math.frexp(float(np.abs(values).max(initial=0.0)))[1] for values in (x, y))
        x, y = np.ldexp(x, -large_x), np.ldexp(y, -large_y)  # whose squares do not overflow
        unit = np.ldexp(unit, -large_y)
        weight = counted.astype(np.float64)
        scale = shift = np.zeros([n if axis in axes else 1 for axis, n in enumerate(x.shape)])
        for refinement in range(1 + _REFINEMENTS):
            if refinement:
                terms = PlainMap(axes, scale, shift).measure_terms(x, y)
                weight = np.where(counted, 1.0 / np.maximum(terms + unit, _LEAST) ** 2, 0.0)
            rest = y - (scale * x + shift)
            total = np.maximum(weight.sum(others, keepdims=True), _LEAST)
            mean_x, mean = ((weight * z).sum(others, keepdims=True) / total for z in (x, rest))
            if through_zero:
                mean_x = mean = np.zeros_like(scale)
            distance = x - mean_x
            moved = weight * distance
            spread = (moved * distance).sum(others, keepdims=True)
            least = total * (_LEAST_SPREAD * mean_x) ** 2
            more = np.where(spread > least, (moved * rest).sum(others, keepdims=True) / spread, 0.0)
            scale, shift = scale + more, shift + (mean - more * mean_x)
    return PlainMap(axes, np.ldexp(scale, large_y - large_x), np.ldexp(shift, large_y))


def _fit_closely(fitted: PlainMap, x: Floats, y: Floats, dtype: np.dtype[Any], level: Level) -> PlainMap:
    """Return lines that pass every value within what it may be off, or those of least squares where none do."""
    finite, slack = np.isfinite(x) & np.isfinite(y), fitted.allow(x, y, dtype, level)
    if np.any(finite & (np.abs(y - fitted.apply(x)) > _HOPELESS * slack)):
        return fitted
    x, y, slack = np.where(finite, x, 0.0), np.where(finite, y, 0.0), np.where(finite, slack, np.inf)
    lines = fit_within(x, y, slack, fitted.axes, through_zero=not fitted.shift.any())
    return fitted if lines is None else fitted._replace(scale=lines.scale, shift=lines.shift)


_HOPELESS = 8.0
"""Where least squares are so many times further off, no line passes every value closely."""


def measure_own_unit(y: Floats, dtype: np.dtype[Any], level: Level) -> Floats:
    """Return what the last rounding leaves of y, in units of what others leave of the terms."""
    return level.ulp / level.measure(np.ones(1)) * measure_unit(y, dtype)


def count_bits(fitted: PlainMap, allowed: Floats, x: Floats, y: Floats, numbers: int) -> float:
    """Return how many bits of y the map gives beyond the numbers of each line."""
    others = tuple(axis for axis in range(x.ndim) if axis not in fitted.axes)
    finite = np.isfinite(x) & np.isfinite(y)
    large = math.frexp(float(np.abs(x).max(where=finite, initial=0.0)))[1]
    deviation = np.std(np.ldexp(np.where(finite, x, 0.0), -large), axis=others, keepdims=True)
    spread = np.abs(np.ldexp(fitted.scale, large)) * deviation  # whose squares do not overflow
    bits = np.where(
        finite & (spread > 0.0), np.log2(np.maximum(spread / np.maximum(allowed, 1e-300), 1.0)), 0.0
    )
    in_line = max(1, math.prod(x.shape[axis] for axis in others))
    return float(bits.sum() * (max(0, in_line - numbers) / in_line))


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
