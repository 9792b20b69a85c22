"""The search for a kernel's faults: in the requested norm, or in every usual norm of the tensor's shape."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.fault import find_fault
from normcli.checking.half_precision import may_be_of_float32
from normcli.dtypes import get_eps
from normcli.engine.run import run
from normcli.identifying.faults.case_sampling import (
    MOST_IN_MEMORY,
    MOST_VALUES,
    choose_index,
    find_counted,
    is_open,
    leave_selection,
    open_case,
    open_wide_case,
)
from normcli.identifying.faults.claim import Claim, make_claim
from normcli.identifying.faults.joint_search import find_places, recover
from normcli.identifying.faults.shown_statistics import measure_doubt
from normcli.identifying.faults.tables.masking import MASKING
from normcli.identifying.faults.tables.places import MASKED, UNKNOWN
from normcli.identifying.faults.variant import NOTHING, Variant
from normcli.identifying.models.weight import CERTAIN
from normcli.norms.request import Fill
from normcli.norms.rules import Centre
from normcli.tensors.mapped import fetch
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.identifying.faults.case import Case
    from normcli.norms.plan import Plan
    from normcli.results.arguments import Problem

BOTH = UNKNOWN["both"].id
"""The id of the fault with another mean and another divisor: any line y = a · x + b in each group has it."""


def claims_of_places(subject: Problem, y: NDArray[Any], dtype: np.dtype[Any]) -> tuple[Claim, ...]:
    """Return the claims that a large y has its rows in another order, or that only a part of y is wrong.

    Empty without such a fault, with a mask or a slice of values, and unless x has 2¹⁶ to 2²² values.

    Parameters
    ----------
    subject : Problem
        The requested norm and its input x.
    y : ndarray
        The output, of the plan's shape.
    dtype : numpy.dtype
        The dtype to which y was rounded.
    """
    is_whole = is_open(subject) and subject.inputs.selection is None
    case = open_wide_case(subject, y, dtype) if is_whole else None
    return () if case is None else find_places(case)


def claims_of_order(subjects: Iterable[Problem], y: NDArray[Any], dtype: np.dtype[Any]) -> tuple[Claim, ...]:
    """Return the claims that y is the result of one of several norms, with its rows in another order.

    Empty without such a norm, and for a y of more than 2²² values. A norm is left out without a search if the
    means of y, y², y³ and y⁴, which no order changes, are not those of its exact result; and, without gamma and
    beta, if it subtracts a mean and the mean of y is not 0.
    """
    if y.size > MOST_IN_MEMORY:
        return ()
    opened = open_wide_case if y.size > MOST_VALUES else open_case
    mean, size = np.mean(fetch(y), dtype=np.float64), np.std(fetch(y), dtype=np.float64)
    for subject in subjects:
        is_bare = subject.inputs.gamma is None and subject.inputs.beta is None
        if is_bare and subject.plan.norm.centre is Centre.MEAN and not abs(mean) <= _OF_ZERO * size:
            continue
        case = opened(subject, y, dtype) if is_open(subject) else None
        if case is not None and _has_powers(case):
            found = [claim for claim in find_places(case) if claim.fault.id.startswith("order-")]
            if found:
                return tuple(found)
    return ()


_POWERS = range(1, 5)

_OF_ZERO = 2.0**-14
"""The largest mean of values whose exact mean is 0, as a part of their deviation."""


def _has_powers(case: Case) -> bool:
    """Whether the means of y, y², y³ and y⁴ are those of the exact result, within what rounding allows."""
    right, allowed = case.right.values, case.right.allowed
    off = (abs(float(np.mean(case.y**k)) - float(np.mean(right**k))) for k in _POWERS)
    bounds = (k * float(np.mean(np.abs(right) ** (k - 1) * allowed)) for k in _POWERS)
    return all(one <= bound for one, bound in zip(off, bounds, strict=True))


def open_cases(
    subjects: Iterable[Problem], y: NDArray[Any], dtype: np.dtype[Any], most: int = MOST_VALUES
) -> Iterator[Case]:
    """Yield for each norm a case, the record of x, y and the norm's exact result.

    Nothing for an empty x, or for norms whose faults cannot be looked for (`is_open` is False).

    Parameters
    ----------
    subjects : iterable of Problem
        The norms and their input x.
    y : ndarray
        The output, of the shape of x.
    dtype : numpy.dtype
        The dtype to which y was rounded.
    most : int
        About how many values a case has: the first groups of larger tensors.
    """
    for subject in subjects:
        if y.size and is_open(subject):
            yield open_case(subject, y, dtype, most)


def recover_one(cases: Sequence[Case]) -> tuple[Claim, ...]:
    """Return the claims that y is a norm's result with other statistics or parameters, if only one norm fits.

    Statistics without a cause count only if y is finite; another mean and another divisor in each group only
    if no norm fits otherwise, and then only of norms with a mean and with the fewest groups. Empty if no norm
    is left, or several.

    Parameters
    ----------
    cases : sequence of Case
        x and y with the exact result of each norm that y may be of.
    """
    found = []
    for case in cases:
        bits = case.plan.grid.group_count * math.log2(1.0 / get_eps(case.dtype))
        if bits >= _LEAST_BITS and (claims := recover(case)):
            is_known = not claims[0].fault.id.startswith("stats-unknown") or np.isfinite(case.y).all()
            found += [claims] if is_known else []
    alone = [claims for claims in found if claims[0].fault.id != BOTH]
    if not alone:  # any norm of smaller groups has lines as well, and one without a mean
        plans = [claims[0].plan for claims in found]
        fewest = min((plan.grid.group_count for plan in plans), default=0)
        likely = (plan.grid.group_count == fewest and plan.norm.centre is Centre.MEAN for plan in plans)
        alone = [claims for claims, is_likely in zip(found, likely, strict=True) if is_likely]
    return alone[0] if len(alone) == 1 else ()


def shows_means(case: Case) -> bool:
    """Whether y shows that each group's mean was subtracted, and not one of other data, such as a running mean.

    Means of other data differ by about 1 / √n of a deviation. False for a norm without mean, and if an unknown
    gamma and beta may make any line a · x + b in each group.
    """
    parameters = case.plan.parameters.view_shape
    is_hidden = not case.has_gamma and all(parameters[axis] > 1 for axis in case.kept)
    if not (case.centres and case.has_moments) or is_hidden:
        return False
    doubt = 2.0 * math.sqrt(case.count) * measure_doubt(case).mean
    return float(-np.log2(np.clip(doubt, np.finfo(float).tiny, 1.0)).sum()) >= CERTAIN


class NearNorm(NamedTuple):
    """A norm whose exact result is near y, but not within rounding.

    Parameters
    ----------
    plan : Plan
    off, largest : float
        The root mean square and the maximum of |y − exact result|.
    spread : float
        The standard deviation of y.
    """

    plan: Plan
    off: float
    largest: float
    spread: float


def find_nearest(cases: Iterable[Case]) -> NearNorm | None:
    """Return the norm whose exact result is nearest to y, if y has small errors everywhere; else None.

    None if y has fewer than 64 values, if at least half of its values are right, or if the root mean square
    error is above 2 % of y's standard deviation. None also if lines y = a · x + b fit about as well: one line
    for all values with less than twice that error, or one for each group with less than 0.8 of it.

    Parameters
    ----------
    cases : iterable of Case
        x and y with the exact result of each norm. A later case has to be nearer by 2 % of the best error.
    """
    found: NearNorm | None = None
    for case in cases:
        spread, most = float(np.std(case.y)), math.inf if found is None else found.off * (1.0 - _NEARLY)
        off = np.abs(case.y - case.right.values)
        size = _average(off)
        is_all_over = case.y.size >= _LEAST_NEAR and 2 * np.count_nonzero(case.differs) > case.y.size
        if not is_all_over or not size <= most or not size <= _NEARLY * spread:  # NaN is not
            continue
        line = np.polynomial.Polynomial.fit(case.x.ravel(), case.y.ravel(), 1)
        of_groups = case.predict(Variant(*case.used)).values
        of_groups = np.where(case.shows_norm, of_groups, case.right.values)
        free = math.sqrt(case.count / max(1, case.count - _NUMBERS_OF_LINE))
        is_line = _LINE * size > _average(case.y - line(case.x))
        if not is_line and size <= _LINES * free * _average(case.y - of_groups):
            found = NearNorm(case.plan, size, float(off.max()), spread)
    return found


def _average(errors: Floats) -> float:
    """Return the root mean square of errors."""
    return math.sqrt(float(np.mean(errors**2)))


_NEARLY, _LEAST_NEAR, _NUMBERS_OF_LINE = 0.02, 64, 2
"""The largest error of a near norm as a part of y's standard deviation, the fewest values of y, and the numbers
that a line is fitted by."""

_LINE, _LINES = 2.0, 1.25
"""One line through all values has at least 2 times a near norm's error, lines of groups at least 0.8 times."""


def list_near_plans(cases: Sequence[Case]) -> list[Plan]:
    """Return the plans, at most 4, whose exact results are near y, the nearest first; empty if none is.

    A result is near if its median distance from y is at most a quarter of y's standard deviation.

    Parameters
    ----------
    cases : sequence of Case
        x and y with the exact result of each norm that y may be of.
    """
    near = []
    for case in cases:
        finite = np.isfinite(case.y)
        off = float(np.median(np.nan_to_num(np.abs(case.y - case.right.values), nan=math.inf)))
        if finite.any() and off <= _NEAR * float(np.std(case.y[finite])):
            near.append((off, case.plan))
    return [plan for _, plan in sorted(near, key=lambda pair: pair[0])[:_MOST_NEAR]]


_NEAR, _MOST_NEAR = 0.25, 4
"""The largest median distance of a near result, as a part of y's standard deviation; the most plans named."""

_LEAST_BITS = 3.0 * CERTAIN
"""Statistics are recovered if groups · log2(1 / machine epsilon) is at least this many bits."""


def shows_nothing(subject: Problem) -> bool:
    """Whether each group of the input x has equal values, of which a norm that subtracts the mean makes only 0.

    False for an x or groups of one value, for running statistics, and if `is_open` is False.
    """
    plan, x = subject.plan, subject.values
    is_told = x.size > 1 and is_open(subject) and plan.grid.group_size > 1
    if not (is_told and open_case(subject, x, np.dtype("float64")).is_constant):
        return False
    view = fetch(x).reshape(plan.grid.view_shape)
    return bool(np.all(view == view.min(plan.grid.view_axes, keepdims=True)))


def claims_of_padding(subject: Problem, y: NDArray[Any], dtype: np.dtype[Any]) -> tuple[Claim, ...]:
    """Return the claim that y is right where values count, and differs elsewhere; empty if it does not.

    Also the claim that all of y is right with the mask inverted; and, of groups too large to look for faults in
    them, that masked values count.

    Parameters
    ----------
    subject : Problem
        The requested norm, with its mask or slice, and its input x.
    y : ndarray
        The output, of the plan's shape.
    dtype : numpy.dtype
        The dtype to which y was rounded.
    """
    plan, inputs, selection = subject.plan, subject.inputs, subject.inputs.selection
    if selection is None or not plan.has_groups or not selection.count(subject.values):
        return ()
    masked = open_case(subject, y, dtype)
    if masked.differs.any():
        if selection.mask is not None and plan.request.over is None:
            other = subject._replace(inputs=inputs._replace(selection=selection._replace(mask=~selection.mask)))
            case = open_case(other, y, dtype)
            is_right = case.shows_norm.any() and not case.differs.any()
            if is_right and not claims_of_padding(other, y, dtype):
                fault = find_fault("stats-mask-inverted")
                return (Claim((fault,), plan, (fault.words,), misfit=0.0, bits=math.inf, rank=1.0),)
        first = () if is_open(subject) else MASKING[0].vary(masked)
        tried = (masked.hold((MASKING[0].fault,), (one,)) for one in itertools.islice(first, 1))
        return tuple(make_claim(masked, one) for one in tried if one.share == 1.0)
    index = choose_index(plan, MOST_VALUES)
    case, others = open_case(leave_selection(subject), y, dtype), ~find_counted(subject, index)
    filled = inputs._replace(selection=selection._replace(fill=Fill.NORMALIZE))
    exact = run(plan.change_spec(dtype="float64"), fetch(subject.values), filled)[0]
    written: dict[str, Floats | float] = {"x": case.x, "0": 0.0, "NaN": math.nan, "beta": case.beta}
    every = [(name, Variant(result=_spread(case, one), noise=np.zeros(()))) for name, one in written.items()]
    every += [
        ("normalized", Variant(result=exact.reshape(plan.grid.view_shape)[index])),
        ("normalized", NOTHING),
    ]
    found = [name for name, one in every if case.explains(case.predict(one))[others].all()]
    asked = _FILLED[selection.fill]
    if asked in found:
        return ()
    values = {"what": found[0] if found else "another number", "asked": asked}
    fault = MASKED.fault._replace(remedy=MASKED.fault.remedy.format(**values))
    causes, shown = (MASKED.fault.words.format(**values),), ("every value that counts is right",)
    return (Claim((fault,), plan, causes, misfit=0.0, bits=math.inf, shown=shown, rank=1.0),)


_FILLED = {Fill.PASS: "x", Fill.ZERO: "0", Fill.NAN: "NaN", Fill.NORMALIZE: "normalized"}
"""The words for what y should be where values do not count."""


def _spread(case: Case, values: Floats | float) -> Floats:
    return np.broadcast_to(values, case.x.shape)


def is_off_by_rounding(subject: Problem, y: NDArray[Any], dtype: np.dtype[Any], times: float = 1.0) -> bool:
    """Whether y agrees with the norm's exact result within rounding, in the first 2¹⁶ values or so that count.

    A y of float64 that a kernel calculated in float32 agrees too. False for an empty x.

    Parameters
    ----------
    subject : Problem
        The requested norm and its input x.
    y : ndarray
        The output, of the plan's shape.
    dtype : numpy.dtype
        The dtype to which y was rounded.
    times : float
        The factor on the bound of each value's rounding error.
    """
    if not (y.size and subject.plan.has_groups):
        return False
    case = open_case(subject, y, dtype)
    if not case.judged.any():
        return False
    shorter = (replace(case, precision="float32"),) if may_be_of_float32(subject.values, y) else ()
    ways = (case, *shorter)  # float64 that was calculated in less
    rights = ((one, one.right._replace(allowed=times * one.right.allowed)) for one in ways)
    return any(bool(one.explains(right).all()) for one, right in rights)
