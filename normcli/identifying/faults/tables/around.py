"""Faults of the input of a norm: a cast, an activation, a dropout or a residual before it, or behind it."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.fault import Row
from normcli.checking.half_precision import HALVES
from normcli.checking.ulp import measure_unit
from normcli.dtypes import is_half
from normcli.identifying.faults.tables.behind import FORMS, SHORT_FLOATS, Pointwise, measure_step
from normcli.identifying.faults.tables.dividing import shorten
from normcli.identifying.faults.thin_case import LIKELY, thin_out
from normcli.identifying.faults.variant import Variant, cut_at, find_share, label, weigh_standardized
from normcli.numerics.rounding import round_to_short, widen
from normcli.tensors.residual import Addends, ResidualSum, find_sum_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.identifying.faults.case import Case

    Inputs = Iterator[tuple[dict[str, Any], Floats, Floats]]
    Sums = Callable[[NDArray[Any], NDArray[Any]], list[tuple[dict[str, Any], list[NDArray[Any]]]]]


def use_other(other: Case, more: Floats | float = 0.0, **values: Any) -> Variant:
    """Return the variant whose result is another case's exact result plus `more`, for faults of its input.

    `values` are filled into the braces of the fault's words.
    """
    right = other.right
    return Variant(result=right.values + more, noise=right.allowed, values=values, other=other)


def normalize_other(case: Case, x: NDArray[Any]) -> Case:
    """Return the case with another input of the norm, `x`."""
    return replace(case, x=np.where(case.judged, widen(x), np.nan))


def _list_kinds(addends: Addends) -> tuple[ResidualSum, ...]:
    """Return the ways to round x + residual: the requested way, and for half precision also the other ways.

    In longer dtypes, all ways give the same sum, so only the requested way is returned.
    """
    others = [kind for kind in ResidualSum if kind is not addends.kind]
    is_short = is_half(find_sum_dtype(addends.values.dtype, addends.residual.dtype))
    return (addends.kind, *(others if is_short else ()))


def _sum_otherwise(list_terms: Sums) -> Callable[[Case], Iterator[Variant]]:
    """Return a function from a case to variants that normalize a sum of other terms than x + residual.

    Parameters
    ----------
    list_terms : callable
        Takes x and the residual, and returns pairs: values for the braces in the fault's words, and the list
        of terms to add.
    """

    def vary(case: Case) -> Iterator[Variant]:
        addends = case.addends
        assert addends is not None
        for values, (first, *rest) in list_terms(addends.values, addends.residual):
            for kind in _list_kinds(addends)[: None if rest else 1]:
                total = first
                for term in rest:
                    total = Addends(total, term, kind).add()
                yield use_other(normalize_other(case, total), **values)

    return vary


def _round_otherwise(case: Case, addends: Addends) -> Iterator[Variant]:
    """Yield variants whose x + residual is rounded to half precision where it should be exact, or the reverse.

    Nothing if the sum is not of half precision.
    """
    for kind in _list_kinds(addends)[1:]:
        how = "rounded to half precision" if kind is ResidualSum.ROUNDED else "not rounded"
        yield use_other(normalize_other(case, addends._replace(kind=kind).add()), how=how)


def _add_behind(case: Case, addends: Addends) -> Iterator[Variant]:
    residual = widen(addends.residual)
    alone = normalize_other(case, addends.values)
    for one, where in ((alone, "after the norm, not before it"), (case, "after the norm, too")):
        yield use_other(one, residual, where=where)


def _replace_input(list_inputs: Callable[[Case], Inputs]) -> Callable[[Case], Iterator[Variant]]:
    """Return a function from a case to variants that normalize other values in place of x.

    They are left out if they are not finite or equal x, or if in a sample less than 30 % of y lies on lines of
    them, one for each group.

    Parameters
    ----------
    list_inputs : callable
        Yields (values, x, off): values for the braces in the fault's words, the input, bounds of its errors.
    """

    def vary(case: Case) -> Iterator[Variant]:
        few, places = thin_out(case)
        for values, *other in list_inputs(case):
            x, off = other
            is_another = np.isfinite(x[case.judged]).all() and bool(((x != case.x) & case.judged).any())
            if is_another and _lie_on_lines(few, *(cut_at(each, places) for each in other)):
                yield use_rounded(case, x, off, **values)

    return vary


def _lie_on_lines(case: Case, x: Floats, off: Floats) -> bool:
    """Whether at least 30 % of y is, within rounding, on a line a · x + b of its group, for another input `x`.

    `off` are bounds of the errors of `x`.
    """
    other = replace(case, x=x, stored=None)
    line = Variant(*other.used)
    noise = other.predict(line).allowed + _spread(other, off)
    return find_share(other.explains(other.predict(line._replace(noise=noise)))) >= LIKELY


def _apply(case: Case) -> Inputs:
    """Yield x after each form of `FORMS`; for y of half precision, also rounded to it.

    Nothing where a line of x itself leads to all of a sample of y.
    """
    few = thin_out(case).case
    if few.explains(few.predict(Variant(*few.used))).all():
        return
    for form in itertools.chain(*FORMS.values(), _CLIPS):
        x = form.apply(case.x)
        off = ROUNDINGS * case.arithmetic * (np.abs(x) + np.minimum(np.abs(case.x), 1.0))
        if np.any(np.abs(x - case.x) > off):
            yield from _round_too(case, x, off, form=form.words.format("x"))


_CLIPS = (
    Pointwise("relu6({})", lambda z: np.clip(z, 0.0, 6.0)),
    Pointwise("clip({}, 0, 1)", lambda z: np.clip(z, 0.0, 1.0)),
    Pointwise("clip({}, −1, 1)", lambda z: np.clip(z, -1.0, 1.0)),
)


def _round_too(case: Case, x: Floats, off: Floats, **values: Any) -> Inputs:
    """Yield an input with bounds of its errors; for y of half precision, also rounded to it."""
    yield values, x, off
    if is_half(case.dtype):
        yield values, *round_bounded(x, off, case.dtype.name)


def _list_rounded(case: Case) -> Inputs:
    """Yield x rounded to each half precision, as by autocast, and to floats and integers of fewer bits.

    Nothing where x is a sum with a residual or a product with a gate: these have faults of their own.
    """
    if case.addends or case.gated_input:
        return
    x, off = case.x, np.asarray(case.arithmetic * np.abs(case.x))
    for name in HALVES:
        yield {"dtype": name}, round_to_short(x, name), np.zeros_like(x)
    grids = {name: measure_step(x, name) for name in SHORT_FLOATS}
    for axes, words in (
        (None, f"{_MOST_INTEGER} steps up to the largest"),
        (case.axes, f"{_MOST_INTEGER} steps up to the largest of each group"),
    ):
        grids[words] = np.abs(x).max(axes, keepdims=True) / _MOST_INTEGER
    for name, step in grids.items():
        low, rounded, high = (np.round(values / step) * step for values in (x - off, x, x + off))
        yield {"dtype": name}, rounded, off + high - low  # ties may go either way


_MOST_INTEGER = 127
"""The largest integer of 8 bits."""


def _scale_addend(case: Case) -> Inputs:
    """Yield sums of x and the residual with a factor on one of them, as y shows it in most groups.

    Nothing where the factor may be 1.
    """
    assert case.addends is not None
    x, residual = (widen(values) for values in (case.addends.values, case.addends.residual))
    _, y = weigh_standardized(case)
    x, residual, y = (values - case.average(values) for values in (x, residual, y))
    xx, xr, rr, xy, ry = (
        case.average(one * other)
        for one, other in ((x, x), (x, residual), (residual, residual), (x, y), (residual, y))
    )
    shown = (xx * ry - xr * xy) / (rr * xy - xr * ry)
    factor = float(np.median(shown))
    doubt = _DEVIATIONS * float(np.median(np.abs(shown / factor - 1.0))) / math.sqrt(shown.size)
    may_be_one = abs(factor - 1.0) <= doubt + case.arithmetic
    for which, own in () if may_be_one else (("the residual", factor), ("x", 1.0 / factor)):
        one = next((one for one, _ in shorten(own) if abs(one / own - 1.0) <= doubt + case.arithmetic), own)
        terms = [widen(values) for values in (case.addends.values, case.addends.residual)]
        terms[which != "x"] *= one
        off = (doubt + 2.0 * case.arithmetic) * (np.abs(terms[0]) + np.abs(terms[1]))
        yield from _round_too(case, terms[0] + terms[1], off, which=which, factor=f"{one:.6g}")


def _drop(case: Case) -> Inputs:
    """Yield x with 0 where y shows a dropout before the norm, and with other values times 1 / (1 − p).

    Nothing if fewer than 8 values are dropped, if these lack a sign that others have (as behind a relu), if
    their share is no p of one or two digits, if it differs by group more than by chance, or for groups of one.
    """
    if case.count == 1:
        return
    dropped = _find_dropped(case)
    for _ in range(_REFINEMENTS):
        other = replace(case, x=np.where(dropped, 0.0, case.x), stored=None)
        line = Variant(other.mean, other.divisor)
        every = [replace(case, x=x).calculate(line)[-1] for x in (np.zeros_like(case.x), case.x)]
        dropped = np.less(*(np.abs(case.y - values) for values in every))
    share = float(dropped.mean())
    signs = [{*np.sign(some)} - {0.0} for some in (case.x[dropped], case.x.ravel())]
    deviation = math.sqrt(share * (1.0 - share))
    most = _DEVIATIONS * deviation / math.sqrt(dropped.size)
    p = next((p for p in (round(share, 1), round(share, 2)) if 0.0 < p < 1.0 and abs(share - p) <= most), None)
    is_even = np.std(case.average(dropped.astype(np.float64))) <= _UNEVEN * deviation / math.sqrt(case.count)
    if p is not None and signs[0] == signs[1] and is_even and np.count_nonzero(dropped) >= _LEAST_DROPPED:
        x = np.where(dropped, 0.0, case.x / (1.0 - p))
        is_either = np.abs(np.subtract(*every)) <= 2.0 * measure_unit(np.nan_to_num(case.y), case.dtype)
        off = np.where(is_either, np.abs(case.x / (1.0 - p)), 2.0 * case.arithmetic * np.abs(x))
        yield from _round_too(case, x, off, p=f"{p:g}")


def _find_dropped(case: Case) -> Selected:
    """Return True where x̂, recovered from y, is about the one that 4 % or more of a group have."""
    order = (*(axis for axis in range(case.x.ndim) if axis not in case.axes), *case.axes)
    lengths = [case.x.shape[axis] for axis in order]
    _, y = weigh_standardized(case)
    off = case.right.allowed + measure_unit(np.nan_to_num(case.y), case.dtype)
    off = np.broadcast_to(off / np.abs(case.gamma * case.factor), y.shape)
    y, off = (case.lay_rows(values).reshape(case.divisor.size, -1) for values in (y, off))
    ranked = np.sort(y, -1)
    count = max(1, int(_LEAST_SHARE * y.shape[1]))
    first = (ranked[:, count:] - ranked[:, :-count]).argmin(-1)[:, None]
    dropped = np.abs(y - np.take_along_axis(ranked, first + count // 2, -1)) <= off
    return dropped.reshape(lengths).transpose(np.argsort(order))


_LEAST_DROPPED, _LEAST_SHARE = 8, 0.04
"""The fewest values of a tensor, and the least share of a group, that show a dropout."""

_DEVIATIONS, _UNEVEN, _REFINEMENTS = 4.0, 2.0, 3
"""The largest distance of a share from p by chance, in standard deviations; how much larger than by chance the
deviation of the groups' shares may be; and how often values are told apart."""


ROUNDINGS = 8.0
"""The relative error of an activation, in machine epsilons of the kernel's arithmetic."""


def use_rounded(case: Case, x: Floats, off: Floats, **values: Any) -> Variant:
    """Return the variant of a kernel that normalizes `x`, whose values have errors of up to `off`."""
    other = normalize_other(case, x)
    return use_other(other, **values)._replace(noise=other.right.allowed + _spread(other, off))


def _spread(other: Case, off: Floats) -> Floats:
    """Return bounds of the errors of y for errors of x up to `off`: of each value, and of mean and divisor."""
    off, size = np.abs(off / other.divisor), np.abs(other.standardized)
    return np.asarray(np.abs(other.gamma) * (off + other.average(off) + size * other.average(off * size)))


def round_bounded(values: Floats, off: Floats, name: str) -> tuple[Floats, Floats]:
    """Return values rounded to the half precision `name`, and the largest error that the results may have.

    `off` is the largest error of each value before rounding.
    """
    low, high = (round_to_short(values + sign * off, name) for sign in (-1.0, 1.0))
    return round_to_short(values, name), high - low


AROUND: Sequence[Row] = (
    Row("before-input-rounded", _replace_input(_list_rounded), "moments"),
    Row("before-activation", _replace_input(_apply), "moments"),
    Row("before-dropout", _replace_input(_drop), "moments"),
    Row("before-residual-missing",
        _sum_otherwise(lambda x, r: [({"left": "x"}, [x]), ({"left": "the residual"}, [r])]),
        "addends moments"),
    Row("before-residual-twice",
        _sum_otherwise(lambda x, r: [({}, [x, r, r]), ({}, [x, r + r])]), "addends moments"),
    Row("before-residual-subtracted", _sum_otherwise(lambda x, r: [({}, [x, -r])]), "addends moments"),
    Row("before-residual-rounding", lambda c: _round_otherwise(c, c.addends), "addends moments"),
    Row("before-residual-scaled",
        lambda c: label(_replace_input(_scale_addend)(c), 1), "addends moments"),
    Row("after-residual-added", lambda c: _add_behind(c, c.addends), "addends moments"),
)  # fmt: skip
"""The rows of faults of the input and its residual, the likeliest first."""
