"""Faults of what values are stored as, behind the norm: dropped by chance, or on a grid of few numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.checking.fault import Fault
from normcli.checking.ulp import measure_unit
from normcli.identifying.faults.claim import Row
from normcli.identifying.faults.variant import Variant
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from normcli.dtypes import Floats
    from normcli.identifying.faults.case import Case

_DEVIATIONS = 4.0
"""Counts that differ by so many of their deviations do not differ by luck."""

_LEAST_DROPPED = 8
"""Of fewer values nothing is said but that they are 0."""

_LEAST_STEPS, _MOST_STEPS = 4, 1 << 15
"""How many steps from 0 the furthest value of a grid is: on a finer one almost any number lies."""

_NEAREST = 64
"""Levels next to 0 of which two are neighbours on the grid; rounding moves further ones by more."""

_FINEST, _OFF = 2.0**-18, 2.0**-10
"""Numbers that differ by less of the largest are one; and how far off a step rounding takes them."""

_COARSE = 4.0
"""A step is so many times what rounding makes, at least."""

_LEAST_ROUNDED = 64
"""Of fewer values it is not told whether a grid is what they were rounded to."""

_UNEVEN, _TILTED = 2.0, 0.06
"""Remainders of rounding are spread evenly: their distribution is off by no more than this over √n, or by the
other where there are many values and few steps."""


_COUNTS = (127, 128, 7, 8)
"""Steps from 0 to the largest number of 8 and 4 bits, each group with its own scale."""


class _Grid(NamedTuple):
    """The numbers that values were rounded to: multiples of a step, or floats of few bits."""

    words: str
    step: Floats
    numbers: int


def _drop(case: Case) -> Iterator[Variant]:
    """Yield a result of which some values are 0, and all others larger by what keeps the mean: 1 / (1 − p)."""
    right = case.right.values
    shown = np.abs(right) > case.right.allowed
    zero = shown & (case.y == 0.0)
    kept, count, dropped = shown & ~zero, np.count_nonzero(shown), np.count_nonzero(zero)
    signs = [{*np.sign(right[some])} for some in (zero, shown)]  # relu drops one of two
    if signs[0] != signs[1] or not _LEAST_DROPPED <= dropped <= count - _LEAST_DROPPED:
        return
    scale = float(np.median(case.y[kept] / right[kept]))
    share = dropped / count
    exact = 1.0 - 1.0 / scale if scale > 1.0 else 0.0
    for p in dict.fromkeys((round(exact, 2), round(exact, 3), exact)):
        if 0.0 < p < 1.0 and abs(share - p) <= _DEVIATIONS * math.sqrt(p * (1.0 - p) / count):
            result = np.where(case.y == 0.0, 0.0, right / (1.0 - p))
            yield Variant(result=result, values={"p": f"{p:.3g}"}, numbers=1, slope=np.asarray(scale))


def _quantize(case: Case) -> Iterator[Variant]:
    """Yield a result that is rounded to a grid, and cut off where y ends."""
    if not np.isfinite(case.y).all():
        return
    right = case.right.values
    nudged = right + np.clip(case.y - right, -case.right.allowed, case.right.allowed)
    low, high = float(case.y.min()), float(case.y.max())
    for words, step, numbers in _list_grids(case):
        if np.median(step / case.right.allowed) < _COARSE:
            continue
        result = np.clip(np.round(nudged / step) * step, low, high)
        inner = (case.y > low) & (case.y < high)
        if _is_spread_evenly(((right - case.y) / step)[inner]):
            yield Variant(result=result, values={"grid": words}, numbers=numbers)


def _list_grids(case: Case) -> Iterator[_Grid]:
    """Yield the grids that all values of y lie on."""
    levels = np.unique(np.abs(case.y))
    levels = levels[levels > _FINEST * levels.max()]
    if len(levels) < _LEAST_STEPS:
        return
    step = _find_step(levels)
    if step is not None and _lie_on(levels, np.asarray(step), case):
        steps = np.full_like(case.y, step)
        yield _Grid(f"steps of {step:.3g}", steps, numbers=1)
    largest = np.abs(case.y).max(case.axes, keepdims=True)
    for count in _COUNTS:
        steps = np.broadcast_to(np.where(largest > 0.0, largest, 1.0) / count, case.y.shape)
        if _lie_on(np.abs(case.y), steps, case):
            yield _Grid(f"{count} steps up to the largest of each group", steps, numbers=1)
            return
    for name, bits, least in (("float8_e4m3", 3, -6), ("float8_e5m2", 2, -14)):
        if np.array_equal(levels, np.round(levels / (unit := _measure_step(levels, bits, least))) * unit):
            yield _Grid(name, _measure_step(np.abs(case.right.values), bits, least), numbers=0)
            return


def _measure_step(values: Floats, bits: int, least: int) -> Floats:
    """Return how far floats of so many bits behind the first, and of a least exponent, are apart."""
    return np.asarray(np.ldexp(1.0, np.maximum(np.frexp(values)[1] - 1, least) - bits))


def _find_step(levels: Floats) -> float | None:
    """Return what all levels may be multiples of: the least distance of two, made exact by further ones."""
    gaps = np.diff(np.concatenate(([0.0], levels[:_NEAREST])))
    step = float(gaps[gaps > _FINEST * levels[-1]].min())
    end = _LEAST_STEPS
    while True:
        some = levels[levels <= end * step]
        if some.size:
            counts = np.round(some / step)
            step = float((counts * some).sum() / (counts**2).sum()) if counts.any() else step
        if end >= _MOST_STEPS:
            break
        end *= 2
    return step if _LEAST_STEPS <= levels[-1] / step <= _MOST_STEPS else None


def _lie_on(levels: Floats, step: Floats, case: Case) -> bool:
    """Whether levels are multiples of a step, as far as their own rounding leaves that to be seen."""
    off = np.abs(levels - np.round(levels / step) * step)
    return bool((off <= 2.0 * measure_unit(levels, case.dtype) + _OFF * step).all())


def _is_spread_evenly(remainders: Floats) -> bool:
    """Whether remainders of rounding are spread over −½ … ½ as those of numbers that know nothing of a grid."""
    count = remainders.size
    if count < _LEAST_ROUNDED:
        return False
    expected = (np.arange(count) + 0.5) / count - 0.5
    return bool(np.abs(np.sort(remainders) - expected).max() <= max(_TILTED, _UNEVEN / math.sqrt(count)))


THINNED: Sequence[Row] = (
    Row(Fault("after-dropout", "a dropout of {p} follows", "leave the dropout out, as in evaluation",
              "y * (u >= 0.1) / 0.9", ("P",)), _drop),
    Row(Fault("after-quantized", "y is rounded to {grid}", "compare it before it is quantized",
              "np.round(y / 0.03) * 0.03", ("steps of A",)), _quantize),
)  # fmt: skip
"""The likelier ones first."""
