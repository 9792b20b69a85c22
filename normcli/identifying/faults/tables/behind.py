"""Faults behind the norm: something is added, applied, cut off, dropped or quantized after gamma and beta."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.fault import Row
from normcli.checking.ulp import measure_unit
from normcli.identifying.faults.thin_case import thin_out
from normcli.identifying.faults.variant import Variant, label
from normcli.numerics.elements.activation import Activation
from normcli.numerics.elements.gate import Gated
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from normcli.dtypes import Floats
    from normcli.identifying.faults.case import Case


_ONE = np.ones(())
"""The `slope` of a variant whose step behind the norm passes small changes on unamplified."""


def _follow(result: Floats, **values: Any) -> Variant:
    """Return the variant with a `result` that a step behind the norm made, and `values` for the fault's words.

    The step's derivative (`slope`) is 1.
    """
    return Variant(result=result, slope=_ONE, values=values)


def _screen(make: Callable[[Case], Iterable[Variant]]) -> Callable[[Case], Iterator[Variant]]:
    """Return a function that yields all variants of a case if one explains 15 % of a sample, else nothing.

    `make` takes a case and returns its variants. It is called with a sample of the case first, so each value of
    a variant may depend only on the values of the case at the same index.
    """

    def vary(case: Case) -> Iterator[Variant]:
        few = thin_out(case)
        if any(few.is_likely(variant) for variant in make(few.case)):
            yield from make(case)

    return vary


class Pointwise(NamedTuple):
    """A function of each value, such as an activation, that a kernel applies before the norm or behind it.

    Parameters
    ----------
    words : str
        The function in words, with `{}` for its argument.
    apply : callable
        Takes values, and returns the function's values.
    slope : float or None
        The slope below 0 of a leaky relu; None for other functions.
    """

    words: str
    apply: Callable[[Floats], Floats]
    slope: float | None = None


def _list_forms(*names: str) -> list[Pointwise]:
    """Return the forms of some activations, each by the name of its `Activation`."""

    def make_form(name: str) -> Pointwise:
        return Pointwise(f"{name}({{}})", lambda values: Gated(values, Activation(name)).activate())

    return [*map(make_form, names)]


def _leak(slope: float) -> Pointwise:
    return Pointwise(f"leaky-relu({{}}, {slope})", lambda z: np.where(z < 0.0, slope, 1.0) * z, slope)


FORMS: Mapping[str, Sequence[Pointwise]] = {
    "relu": _list_forms("relu"),
    "leaky-relu": [*map(_leak, (0.01, 0.1, 0.2, 0.3))],
    "gelu": _list_forms("gelu", "gelu-tanh"),
    **{name: _list_forms(name) for name in ("silu", "sigmoid", "tanh")},
    "absolute": [Pointwise("|{}|", np.abs)],
    "activation": [
        Pointwise("elu({})", lambda z: np.where(z > 0.0, z, np.expm1(np.minimum(z, 0.0)))),
        Pointwise("softplus({})", lambda z: np.logaddexp(z, 0.0)),
        Pointwise("mish({})", lambda z: z * np.tanh(np.logaddexp(z, 0.0))),
        Pointwise("hard-swish({})", lambda z: z * np.clip(z / 6.0 + 0.5, 0.0, 1.0)),
        Pointwise("relu({})²", lambda z: np.maximum(z, 0.0) ** 2),
        Pointwise("{}²", np.square),
        Pointwise("exp({})", np.errstate(all="ignore")(np.exp)),
        Pointwise("log(1 + {})", np.errstate(all="ignore")(np.log1p)),
        Pointwise("log(1 + |{}|)", lambda z: np.log1p(np.abs(z))),
    ],
}
"""The forms of each function, by the end of the id of the fault that it follows the norm."""


def _apply(forms: Sequence[Pointwise]) -> Callable[[Case], Iterator[Variant]]:
    """Return a function that yields a case's variants: each of some forms, applied to the result.

    It yields all of them or, if none explains 15 % of a sample, nothing.
    """
    return _screen(
        lambda case: (
            _follow(form.apply(case.right.values), slope=form.slope, form=form.words.format("y"))
            for form in forms
        )
    )


def _clip(case: Case) -> Iterator[Variant]:
    """Yield variants with the norm's result clipped to the smallest y, to the largest, or to both.

    A bound is tried only if two or more values of y are equal to it, and some results are within the bounds.
    """
    finite = case.y[np.isfinite(case.y)]
    if not finite.size:
        return
    right, (low, high) = case.right.values, (float(finite.min()), float(finite.max()))
    several = [np.count_nonzero(finite == end) > 1 for end in (low, high)]
    ends = (
        (several[0], low, math.inf, f"below {low:.6g}"), (several[1], -math.inf, high, f"above {high:.6g}"),
        (all(several), low, high, f"beyond {low:.6g} and {high:.6g}"),
    )  # fmt: skip
    for is_shown, least, most, words in ends:
        if is_shown and np.any((right > least) & (right < most)):  # or nothing of the norm is left
            numbers = int(np.isfinite([least, most]).sum())
            yield from label([_follow(np.clip(right, least, most))], numbers, beyond=words)


def _add_input(case: Case) -> list[Variant]:
    if np.array_equal(case.y, case.x):  # where what is added to x is lost, there is no sign of it
        return []
    added, subtracted = (case.right.values + term for term in (case.x, -case.x))
    return [_follow(added, sign="added to"), _follow(subtracted, sign="subtracted from")]


def _gate(case: Case) -> Iterator[Variant]:
    for name, words in (("silu", "silu(x)"), ("sigmoid", "sigmoid(x)"), ("none", "x")):
        factor = Gated(case.x, Activation(name)).activate()
        yield Variant(result=case.right.values * factor, values={"gate": words}, slope=factor)


# -- what values are stored as: dropped by chance, or on a grid of few numbers

_DEVIATIONS = 4.0
"""Counts that differ by more than this many standard deviations do not differ by chance."""

_LEAST_DROPPED = 8
"""The fewest dropped values that show a dropout."""

_LEAST_STEPS, _MOST_STEPS = 4, 1 << 15
"""The fewest and the most grid steps from 0 to the largest |y|: almost any number lies on a finer grid."""

_NEAREST = 64
"""The grid step is sought among this many values of |y| nearest 0, which have the smallest rounding errors."""

_FINEST, _OFF = 2.0**-18, 2.0**-10
"""Levels closer than this part of the largest are one level; values on a grid are off it by at most this part
of a step, in addition to their own rounding."""

_COARSE = 4.0
"""A grid step is at least this many times the rounding error that y may have (in the median)."""

_LEAST_ROUNDED = 64
"""The fewest values from which a grid is concluded."""

_UNEVEN, _TILTED = 2.0, 0.06
"""The largest distance of n sorted rounding remainders from an even spread is at most max(0.06, 2 / √n)."""


_COUNTS = (127, 128, 7, 8)
"""Grid steps from 0 to the largest |y| of a group, for integers of 8 and 4 bits."""


def _drop(case: Case) -> Iterator[Variant]:
    """Yield variants with a dropout behind the norm: 0 where y is 0, elsewhere the result times 1 / (1 − p).

    p is the number that the kept values show, rounded to 2 decimals, to 3, and not at all; a p is left out if
    the share of dropped values is more than 4 standard deviations from it. Nothing if fewer than 8 values are
    dropped or kept, or if the dropped values lack a sign that other values have (relu drops one sign).
    """
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
    """Yield variants with the norm's result rounded to a grid of few numbers, for each grid that y lies on.

    The results are clipped to the least and the largest y. Nothing if y is not finite. A grid is left out if
    its steps are near the rounding error of y, or if y's distances from the right result are not spread evenly
    over a step.
    """
    if not np.isfinite(case.y).all():
        return
    right = case.right.values
    nudged = right + np.clip(case.y - right, -case.right.allowed, case.right.allowed)
    low, high = float(case.y.min()), float(case.y.max())
    for words, step, numbers in _list_grids(case):
        if np.median(step / case.right.allowed) < _COARSE:
            continue
        result = np.clip(np.round(nudged / step) * step, low, high)
        inner = np.flatnonzero((case.y > low) & (case.y < high))
        inner = inner[np.unique(right.flat[inner], return_index=True)[1]]  # of equal values, as of zeros, one
        if _is_spread_evenly(((right - case.y) / step).flat[inner]):
            yield Variant(result=result, values={"grid": words}, numbers=numbers)


def _list_grids(case: Case) -> Iterator[tuple[str, Floats, int]]:
    """Yield each grid that all values of y lie on: words, the step at each value, the count of fitted numbers.

    A grid has one step for all values, one for each group, or those of `SHORT_FLOATS`. Nothing if y has
    fewer than 4 different magnitudes.
    """
    levels = np.unique(np.abs(case.y))
    levels = levels[levels > _FINEST * levels.max()]
    if len(levels) < _LEAST_STEPS:
        return
    step = _find_step(levels)
    if step is not None and _lie_on(levels, np.asarray(step), case):
        steps = np.full_like(case.y, step)
        yield f"steps of {step:.3g}", steps, 1
    largest = np.abs(case.y).max(case.axes, keepdims=True)
    for count in _COUNTS:
        steps = np.broadcast_to(np.where(largest > 0.0, largest, 1.0) / count, case.y.shape)
        if _lie_on(np.abs(case.y), steps, case):
            yield f"{count} steps up to the largest of each group", steps, 1
            return
    for name in SHORT_FLOATS:
        if np.array_equal(levels, np.round(levels / (unit := measure_step(levels, name))) * unit):
            yield name, measure_step(case.right.values, name), 0
            return


SHORT_FLOATS = {"float8_e4m3": (3, -6), "float8_e5m2": (2, -14), "tf32": (10, -126)}
"""Bits of the mantissa behind the first, and the least exponent, of floats that hold few numbers."""


def measure_step(values: Floats, name: str) -> Floats:
    """Return the spacing of the floats of `SHORT_FLOATS` at each value."""
    bits, least = SHORT_FLOATS[name]
    return np.asarray(np.ldexp(1.0, np.maximum(np.frexp(values)[1] - 1, least) - bits))


def _find_step(levels: Floats) -> float | None:
    """Return a step that all levels may be multiples of; None if the largest is not 4 to 32,768 steps.

    The step is the least distance between two levels, refined by least squares over more and more levels.

    Parameters
    ----------
    levels : ndarray
        The distinct values of |y|, in increasing order.
    """
    gaps = np.diff(np.concatenate(([0.0], levels[:_NEAREST])))
    step = float(gaps[gaps > _FINEST * levels[-1]].min())
    end = _LEAST_STEPS
    while end <= _MOST_STEPS:
        some = levels[levels <= end * step]
        counts = np.round(some / step)
        step = float((counts * some).sum() / (counts**2).sum()) if counts.any() else step
        end *= 2
    return step if _LEAST_STEPS <= levels[-1] / step <= _MOST_STEPS else None


def _lie_on(levels: Floats, step: Floats, case: Case) -> bool:
    """Whether every level is a multiple of its step, within the rounding of y's dtype at the level."""
    off = np.abs(levels - np.round(levels / step) * step)
    return bool((off <= 2.0 * measure_unit(levels, case.dtype) + _OFF * step).all())


def _is_spread_evenly(remainders: Floats) -> bool:
    """Return True if remainders, in steps, are evenly spread over −½ … ½, as rounding to a grid leaves them.

    False for fewer than 64 remainders.
    """
    count = remainders.size
    if count < _LEAST_ROUNDED:
        return False
    expected = (np.arange(count) + 0.5) / count - 0.5
    return bool(np.abs(np.sort(remainders) - expected).max() <= max(_TILTED, _UNEVEN / math.sqrt(count)))


BEHIND: Sequence[Row] = (
    Row("after-input-added", _add_input),
    *(Row(f"after-{name}", _apply(forms)) for name, forms in FORMS.items()),
    Row("after-clipped", _clip),
    Row("after-gated", _screen(_gate)),
    Row("after-dropout", _drop),
    Row("after-quantized", _quantize),
)  # fmt: skip
"""The rows of faults behind the norm, the likeliest first."""
