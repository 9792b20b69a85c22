"""Faults that no row names: recovered statistics, gamma and beta, and the region in which y is wrong."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import get_eps, is_half
from normcli.identifying.faults.fault_evidence import fit_apart
from normcli.identifying.faults.tables.parameters import recover_parameters
from normcli.identifying.faults.tables.places import UNKNOWN
from normcli.identifying.faults.variant import NEAR, Found, IndexRegion, Variant
from normcli.identifying.models.weight import choose_bits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from normcli.checking.fault import Fault
    from normcli.dtypes import Floats, Selected
    from normcli.identifying.faults.case import Case


_ONE = UNKNOWN["gamma"].fault._replace(words="{place} is {used}, not {right}")
"""The fault of gamma or beta where a single number is another."""

_LEAST_OF_LINE = 3
"""Lines y = a · x + b are fitted to groups or features of more values than this: any two lie on a line."""


_EVERY_DIGIT = 17
"""The digits that tell any two numbers of float64 apart."""

_MOST = 0.5
"""The largest part of y that differs if only a few numbers of gamma or beta are wrong."""


def find_unknown(case: Case) -> Iterator[Found]:
    """Yield the findings of numbers, recovered from y, with which all of y is right within rounding.

    The numbers are another mean or divisor of each group, or another gamma or beta; gamma and beta come first
    if less than half of y is wrong. Findings with more numbers than another one are left out. Nothing if no
    such numbers make all of y right.
    """
    found = [*_find_statistics(case)]
    parameters = _find_parameters(case)
    if parameters is not None:
        found.insert(0 if case.differs.mean() < _MOST else len(found), parameters)
    fewest = min((one.variants[0].numbers for one in found), default=0)
    yield from (one for one in found if one.variants[0].numbers == fewest)


def _find_statistics(case: Case) -> Iterator[Found]:
    """Yield at most one finding: other divisors, means, or both in each group, if all of y is right with them.

    Divisors are tried first, then means; the numbers are fitted by least squares. Nothing for groups of at most
    3 values, or for norms that do not divide by a variance or mean square.
    """
    if not case.has_moments or case.count <= _LEAST_OF_LINE:
        return
    mean, divisor = fit_apart(case)
    wrong = int(case.differs.any(case.axes).sum())
    every = {
        "divisor": Variant(case.mean, divisor, numbers=wrong, is_fitted=True),
        "mean": Variant(mean, case.divisor, numbers=wrong, is_fitted=True),
        "both": Variant(*case.used, numbers=2 * wrong, is_fitted=True),
    }
    faults = {name: UNKNOWN[name].fault for name in every}
    if not case.centres:
        faults["divisor"] = faults["divisor"]._replace(words="the divisor is another")
    tried = (case.hold((faults[name],), (variant,)) for name, variant in every.items())
    yield from itertools.islice((found for found in tried if found.explained.all()), 1)


def _find_parameters(case: Case) -> Found | None:
    """Return the finding with another gamma, beta or both in each feature with wrong values of y.

    For each feature, gamma alone, beta alone, and gamma with beta are fitted; the first with which its values
    are right is taken. None if a feature stays wrong, if no number changes, if neither gamma nor beta was
    given, or with at most 3 values for each feature.
    """
    shape = np.broadcast_shapes(case.gamma.shape, case.beta.shape)
    axes = tuple(axis for axis, n in enumerate(shape) if n == 1)
    if not (case.has_gamma or case.has_beta) or case.y.size <= _LEAST_OF_LINE * np.prod(shape):
        return None
    chosen = {name: np.broadcast_to(getattr(case, name), shape).copy() for name in _PARAMETERS}
    left = case.differs.any(axes, keepdims=True)
    for fitted in _fit_parameters(case, axes):
        explained = case.explains(case.predict(Variant(**fitted)))
        now = left & explained.all(axes, keepdims=True)
        for name, values in fitted.items():
            chosen[name][now] = np.broadcast_to(values, shape)[now]
        left = left & ~now
    variant = Variant(gamma=chosen["gamma"], beta=chosen["beta"], is_fitted=True)
    moved = _find_moved(case, variant)
    if left.any() or not moved:
        return None
    fault, values = _name(case, variant)
    variant = variant._replace(values=values, numbers=sum(map(np.count_nonzero, moved.values())))
    found = case.hold((fault,), (variant,))
    return found if found.explained.all() else None


_PARAMETERS = "gamma", "beta"


def _fit_parameters(case: Case, axes: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    """Yield the least-squares fits to each feature, by name: gamma alone, beta alone, gamma with beta.

    Fits of gamma are yielded only if gamma was given, and the fit of beta alone only if beta was. `axes` are
    the axes of the view along which gamma and beta have length 1.
    """
    x, y, gamma, beta = case.standardized, case.y, case.gamma, case.beta
    if case.has_gamma:
        yield {"gamma": (x * (y - beta)).sum(axes, keepdims=True) / (x * x).sum(axes, keepdims=True)}
    if case.has_beta:
        yield {"beta": (y - gamma * x).mean(axes, keepdims=True)}
    if case.has_gamma:
        yield dict(zip(_PARAMETERS, recover_parameters(case), strict=True))


def _find_moved(case: Case, variant: Variant) -> dict[str, Selected]:
    """Return, by name, where a variant's gamma and beta differ from the case's; equal ones are left out."""
    moved = {name: np.asarray(getattr(variant, name) != getattr(case, name)) for name in _PARAMETERS}
    return {name: some for name, some in moved.items() if some.any()}


def _name(case: Case, variant: Variant) -> tuple[Fault, dict[str, str]]:
    """Return the fault of a variant with another gamma or beta, and the values for its words."""
    moved = _find_moved(case, variant)
    either = np.logical_or.reduce([*moved.values()])
    count, size = int(np.count_nonzero(either)), either.size
    if count == len(moved) == 1:
        place, there, right = next(_list_first(case, variant))
        return _ONE, {"place": place, "used": there, "right": right}
    what = f"{' and '.join(moved)} {'is' if len(moved) == 1 else 'are'}"
    where = f"all {size} indices" if count == size else f"{count} of {size} indices"
    return UNKNOWN["gamma"].fault, {"what": what, "where": where}


def _list_first(case: Case, variant: Variant) -> Iterator[tuple[str, str, str]]:
    """Yield the first wrong gamma and the first wrong beta as texts: `gamma[3]`, used number, right number.

    The numbers have as many digits as tell them apart, and at least 3 of half precision, else 5.
    """
    digits = 3 if is_half(case.dtype) else 5
    for name, some in _find_moved(case, variant).items():
        shape = case.plan.grid.merge_shape(some.shape)
        first = int(np.flatnonzero(some)[0])
        index = [str(i) for i, n in zip(np.unravel_index(first, shape), shape, strict=True) if n > 1]
        values = (np.broadcast_to(getattr(one, name), some.shape).flat[first] for one in (variant, case))
        theirs, ours = map(float, values)
        texts = [(f"{theirs:.{count}g}", f"{ours:.{count}g}") for count in range(digits, _EVERY_DIGIT + 1)]
        there, right = next((both for both in texts if both[0] != both[1]), texts[0])
        yield f"{name}[{', '.join(index)}]" if index else name, there, right


def show_used(case: Case, found: Found) -> tuple[str, ...]:
    """Return clauses that compare the first wrong gamma, beta, divisor or mean with the right number.

    For variances that cancel, one clause has the largest error of all. Empty if the fault's words have the
    numbers already, or if no divisor and no mean is off by more than 2 %.
    """
    variant = found.variants[0]
    if found.faults[0].id == UNKNOWN["gamma"].id:
        some = _list_first(case, variant) if "what" in variant.values else ()
        return tuple(f"{place} is {there}, not {right}" for place, there, right in some)
    if "percent" in variant.values:
        return (f"variances are off by up to {variant.values['percent']} %",)
    for name in ("divisor", "mean"):
        theirs, right = getattr(variant, name), np.asarray(getattr(case, name))
        if theirs is not None and (off := np.abs(theirs - right) > NEAR * np.abs(right)).any():
            first = np.unravel_index(int(off.argmax()), off.shape)
            right = np.broadcast_to(right, off.shape)
            used, exact = f"{float(theirs[first]):.6g}", f"{float(right[first]):.6g}"
            return (f"the first {name} that differs: the kernel's is {used}, the exact one {exact}",)
    return ()


# -- the region in which a claim holds

_MOSTLY = 0.9
"""The least part of a region's values that are wrong: a few may be right by chance."""

_ENDS = 2
"""The most ends of a run of indices along an axis."""

_MOST_LISTED = 3
"""The most indices of an axis that are listed one by one."""


def find_region(case: Case, wrong: Selected) -> IndexRegion | None:
    """Return the region of all wrong values of y, which are at least 90 % of it; None if there is none.

    A region is one or several indices of each of some axes; or it runs to the end of an axis, from an index
    that differs along a second axis. Up to 10 % of an axis's indices, scattered, are part of the region though
    right: they may be right by chance. None too if no value is wrong, or every one.
    """
    merged = wrong.reshape(case.plan.grid.merge_shape(wrong.shape))
    if not merged.any() or merged.all():
        return None
    every = range(merged.ndim)
    inside = [np.asarray(merged.any(tuple(other for other in every if other != axis))) for axis in every]
    box = np.ones(merged.shape, np.bool_)
    words = []
    some = [axis for axis in every if not inside[axis].all()]
    named = [axis for axis in some if np.diff(inside[axis]).sum() <= _ENDS or inside[axis].mean() < _MOSTLY]
    for axis in named or some:
        words.append(_tell_indices(case.plan.grid.layout.name(axis), inside[axis]))
        box &= inside[axis].reshape([-1 if other == axis else 1 for other in every])
    if words and merged.sum() >= _MOSTLY * box.sum():
        is_index = len(words) == 1 and min(map(np.count_nonzero, inside)) == 1
        kind = "values" if box.sum() == 1 else "index" if is_index else "region"
        bits = sum(_count_bits(inside[axis]) for axis in named or some)
        slices = max(merged.shape[axis] for axis in named or some)
        return IndexRegion(f"for {', '.join(words)}", box.reshape(wrong.shape), kind, bits, slices)
    return _find_ragged(case, merged, wrong.shape)


def _count_bits(chosen: Selected) -> float:
    """Return the bits that it takes to say which indices of an axis are chosen.

    If they are neighbours, the bits name the first and the last, otherwise a set among all of this size.
    `chosen` is True for the indices.
    """
    length, count = len(chosen), int(np.count_nonzero(chosen))
    is_run = np.flatnonzero(chosen)[-1] - np.flatnonzero(chosen)[0] + 1 == count
    return math.log2(length * (length + 1) / 2) if is_run else choose_bits(length, count)


def _tell_indices(name: str, chosen: Selected) -> str:
    """Return the indices of an axis that are True in `chosen`, in words.

    These are `d ≥ 3`, `d < 3`, `d=2 … 5`, `d=0, 2 … 8` or `d=1, 2, 5 and 4 more`.
    """
    places, length = np.flatnonzero(chosen), len(chosen)
    first, last = int(places[0]), int(places[-1])
    steps = np.unique(np.diff(places))
    if len(steps) == 1 and steps[0] == 1:
        if last == length - 1:
            return f"{name} ≥ {first}"
        return f"{name} < {last + 1}" if first == 0 else f"{name}={first} … {last}"
    if len(steps) == 1 and len(places) > _MOST_LISTED:
        return f"{name}={first}, {places[1]} … {last}"
    listed, more = ", ".join(map(str, places[:_MOST_LISTED])), len(places) - _MOST_LISTED
    return f"{name}={listed}" if more <= 0 else f"{name}={listed} and {more} more"


def tell_places(count: int, first: Iterable[int]) -> str:
    """Return the words for where some values are, given their number and the index of the first.

    Examples
    --------
    >>> tell_places(1, (0, 3)), tell_places(1200, (0, 3))
    ('at (0, 3)', 'for 1,200 values, the first at (0, 3)')
    """
    place = ", ".join(map(str, first))
    return f"at ({place})" if count == 1 else f"for {count:,} values, the first at ({place})"


def _find_ragged(case: Case, wrong: Selected, shape_of_view: tuple[int, ...]) -> IndexRegion | None:
    """Return the region that runs to the end of an axis from an index that differs along a second axis.

    Wrong padding of a batch of sequences is of this kind. None if there is no such region.

    Parameters
    ----------
    wrong : ndarray of bool
        The wrong values, of the tensor's shape.
    shape_of_view : tuple of int
        The shape of the region's mask, in which a channel axis that is split into groups is two axes.
    """
    for along, axis in itertools.permutations(range(wrong.ndim), 2):
        others = tuple(other for other in range(wrong.ndim) if other not in (along, axis))
        plane: Selected = np.asarray(wrong.any(others))
        plane = plane if along < axis else plane.T
        mask = np.maximum.accumulate(plane, axis=1)
        is_box = bool(plane.all(axis=1).any()) and not plane.any(axis=1).all()
        if is_box or not np.array_equal(mask, plane) or plane.all():
            continue
        shape = [n if other in (along, axis) else 1 for other, n in enumerate(wrong.shape)]
        spread = np.broadcast_to((mask if along < axis else mask.T).reshape(shape), wrong.shape)
        if wrong.sum() >= _MOSTLY * spread.sum():
            layout = case.plan.grid.layout
            words = f"from an index of {layout.name(axis)} on that differs by {layout.name(along)}"
            bits = math.log2(wrong.shape[axis] + 1) * wrong.shape[along]
            return IndexRegion(
                words, np.ascontiguousarray(spread).reshape(shape_of_view), "region", bits, wrong.shape[along]
            )
    return None


# -- what is not finite, or 0

_ROUNDINGS = 2.0
"""The error of E[x²] − E[x]² without the errors of its sums, in units in the last place."""


def find_source(case: Case, where: Selected) -> tuple[str, str] | None:
    """Return a cause of NaN, infinity or y = beta in some values, and its remedy, as two clauses.

    Causes are gamma, beta or x that is not finite, constant groups, and E[x²] − E[x]² below 0. None if no
    cause holds for all the values.

    Parameters
    ----------
    case : Case
    where : ndarray of bool
        The values, of the view's shape.
    """
    for name, values in (("gamma", case.gamma), ("beta", case.beta), ("x", case.x)):
        odd = np.broadcast_to(~np.isfinite(values), where.shape)
        of_groups = odd.any(case.axes, keepdims=True) if name == "x" else odd
        if np.broadcast_to(of_groups, where.shape)[where].all():
            return f"{name} is not finite", f"find what made {name}"
    if not case.has_moments or case.stored is not None:
        return None
    groups = np.asarray(where.any(case.axes, keepdims=True))
    is_constant = (np.ptp(case.x, case.axes, keepdims=True) == 0.0)[groups].all()
    if is_constant and not case.y[where].any():
        return "x is constant", "give --mask or --lengths if these values are padding"
    if not (~np.isfinite(case.y) | (case.y == case.beta))[where].all():
        return None
    if is_constant:
        return "x is constant", "add eps to the variance"
    are_whole = np.array_equal(groups, where.all(case.axes, keepdims=True))
    if are_whole and np.isnan(case.y[where]).all() and _may_cancel(case)[groups].all():
        return "E[x²] − E[x]² may be negative", "take squares of x − mean"
    return None


def _may_cancel(case: Case) -> Selected:
    """Return True for groups in which rounding may make E[x²] − E[x]² + eps negative; False without mean."""
    last_place = get_eps(case.dtype) if is_half(case.dtype) else case.arithmetic
    most: Floats = last_place * (_ROUNDINGS + math.sqrt(case.count)) * case.average(case.x**2)
    return np.asarray(case.centres & (case.own_square + case.eps < most))
