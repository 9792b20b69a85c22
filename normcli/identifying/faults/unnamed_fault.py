"""Faults that no row names: recovered statistics, gamma and beta; and causes of NaN, infinity and 0."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import get_eps, is_half
from normcli.identifying.faults.fault_evidence import fit_apart
from normcli.identifying.faults.tables.places import UNKNOWN
from normcli.identifying.faults.variant import NEAR, Found, Variant
from normcli.identifying.models.line_fit import fit_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from normcli.checking.fault import Fault
    from normcli.dtypes import Floats, Selected
    from normcli.identifying.faults.case import Case


_ONE = UNKNOWN["gamma"].fault._replace(words="{place} is {used}, not {right}")
"""The fault of gamma or beta where a single number is another."""

_ABSENT = {
    ("gamma",): ("y has a gamma that was not given", "give --gamma"),
    ("beta",): ("y has a beta that was not given", "give --beta"),
    ("gamma", "beta"): ("y has a gamma and a beta that were not given", "give --gamma and --beta"),
}
"""The cause and the remedy where y has parameters that were not given, by their names."""

TO_GIVE = tuple(remedy for _, remedy in _ABSENT.values())
"""The remedies that ask for parameters."""

_LEAST_OF_LINE = 3
"""Lines y = a · x + b are fitted to groups or features of more values than this: any two lie on a line."""


_EVERY_DIGIT = 17
"""The digits that tell any two numbers of float64 apart."""

_MOST = 0.5
"""The largest part of y that differs if only a few numbers of gamma or beta are wrong."""


def find_unknown(case: Case) -> Iterator[Found]:
    """Yield the findings of numbers, recovered from y, with which all of y is right within rounding.

    The numbers are another mean or divisor of each group, or another gamma or beta; gamma and beta come first
    if less than half of y is wrong, or if one was given and the other was not. Findings with more numbers than
    another one are left out. Nothing if no such numbers make all of y right.
    """
    found = [*_find_statistics(case)]
    parameters = _find_parameters(case)
    if parameters is not None:
        is_absent = case.has_gamma != case.has_beta and parameters.faults[0].remedy in TO_GIVE
        found.insert(0 if is_absent or case.differs.mean() < _MOST else len(found), parameters)
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
        faults["divisor"] = faults["divisor"]._replace(words="the divisor is wrong")
    tried = (case.hold((faults[name],), (variant,)) for name, variant in every.items())
    yield from itertools.islice((found for found in tried if found.explained.all()), 1)


def _find_parameters(case: Case) -> Found | None:
    """Return the finding with another gamma, beta or both in each feature with wrong values of y.

    For each feature, gamma alone, beta alone, and gamma with beta are fitted; the first with which its values
    are right is taken. One that was not given is fitted only to a norm with a variance or mean
    square, if at least half of y is wrong. None if a feature
    stays wrong, if no number changes, or with at most 3 values for each feature. None too if neither was given
    and x̂ has at most two numbers in each feature, which some gamma and beta lead to any two.
    """
    given = {"gamma": case.has_gamma, "beta": case.has_beta}
    is_open = case.has_moments and case.differs.mean() >= _MOST
    names = [name for name in case.plan.norm.parameter_names if given[name] or is_open]
    own = (min(lengths) for lengths in zip(case.plan.parameters.view_shape, case.x.shape, strict=True))
    shape = np.broadcast_shapes(case.gamma.shape, case.beta.shape, tuple(own) if names else ())
    axes = tuple(axis for axis, n in enumerate(shape) if n == 1)
    if not names or case.y.size <= _LEAST_OF_LINE * np.prod(shape):
        return None
    if not any(given.values()) and _are_ends(case.standardized, axes):
        return None
    chosen = {name: np.broadcast_to(getattr(case, name), shape).copy() for name in _PARAMETERS}
    left = case.differs.any(axes, keepdims=True)
    for fitted in _fit_parameters(case, axes, names):
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


def _are_ends(values: Floats, axes: tuple[int, ...]) -> bool:
    """Whether each value is the least or the largest of those along `axes`."""
    least, largest = (choose(values, axes, keepdims=True) for choose in (np.min, np.max))
    return bool(np.all((values == least) | (values == largest)))


def _fit_parameters(case: Case, axes: tuple[int, ...], names: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the least-squares fits to each feature, by name: gamma alone, beta alone, gamma with beta.

    Of these, those of `names` are yielded; with gamma, beta may always be another. `axes` are the axes of the
    view along which gamma and beta have length 1.
    """
    x, y, gamma, beta, judged = case.standardized, case.y, case.gamma, case.beta, case.judged
    if "gamma" in names:
        product, square = (np.sum(x * values, axes, keepdims=True, where=judged) for values in (y - beta, x))
        yield {"gamma": product / square}
    if "beta" in names:
        yield {"beta": np.mean(y - gamma * x, axes, keepdims=True, where=judged)}
    if "gamma" in names:
        kept = tuple(axis for axis in range(x.ndim) if axis not in axes)
        fitted = fit_lines(x, y, kept, through_zero=False, refinements=0)
        yield {"gamma": fitted.scale, "beta": fitted.shift}


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
    if not any(getattr(case, f"has_{name}") for name in moved):
        words, remedy = _ABSENT[(*moved,)]
        return UNKNOWN["gamma"].fault._replace(words=words, remedy=remedy), {"what": ""}
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
    if not case.shows_norm[where].any():
        if case.centres:
            return "x is constant", "add eps to the variance"
        return "x is 0", "add eps to the mean square"
    are_whole = np.array_equal(groups, where.all(case.axes, keepdims=True))
    if are_whole and np.isnan(case.y[where]).all() and _may_cancel(case)[groups].all():
        return "E[x²] − E[x]² may be negative", "take squares of x − mean"
    return None


def _may_cancel(case: Case) -> Selected:
    """Return True for groups in which rounding may make E[x²] − E[x]² + eps negative; False without mean."""
    last_place = get_eps(case.dtype) if is_half(case.dtype) else case.arithmetic
    most: Floats = last_place * (_ROUNDINGS + math.sqrt(case.count)) * case.average(case.x**2)
    return np.asarray(case.centres & (case.own_square + case.eps < most))
