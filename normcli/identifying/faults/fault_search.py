"""The norms that a tensor should have been: the one that was asked for, or every usual one of its shape."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import get_eps
from normcli.engine.inputs import Inputs
from normcli.errors import NormError
from normcli.identifying.faults.joint_search import find_places, recover
from normcli.identifying.faults.open_case import MOST_VALUES, AskedNorm, choose_index, open_case, open_wide_case
from normcli.identifying.faults.tables.places import UNKNOWN
from normcli.identifying.faults.variant import Variant
from normcli.identifying.models.weight import CERTAIN
from normcli.identifying.search.match_names import lay_out
from normcli.norms.divisors import Measurement
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.rules import AxesRule, Centre
from normcli.norms.table import NORMS
from normcli.tensors.mapped import fetch
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.identifying.faults.case import Case
    from normcli.identifying.faults.claim import Claim
    from normcli.norms.plan import Plan

BOTH = UNKNOWN["both"].fault.id
"""The fault that is no more than a line in each group."""


def claims_of_places(
    subject: AskedNorm, x: NDArray[Any], y: NDArray[Any], dtype: np.dtype[Any]
) -> tuple[Claim, ...]:
    """Return which rows of a large tensor stand elsewhere or are wrong; arguments are as of `recover_used`."""
    is_whole = subject.is_open and subject.inputs.selection is None
    case = open_wide_case(subject, x, y, dtype) if is_whole else None
    return () if case is None else find_places(case)


def open_cases(
    subjects: Iterator[AskedNorm],
    x: NDArray[Any],
    y: NDArray[Any],
    dtype: np.dtype[Any],
    saved: str | None = None,
    most: int = MOST_VALUES,
) -> Iterator[Case]:
    """Yield a tensor as each of some norms that it may be.

    Parameters
    ----------
    subjects : iterator of AskedNorm
    x, y : ndarray
        Of the plans' shape.
    dtype : numpy.dtype
        The dtype to which y was rounded.
    saved : str or None
        The dtype of half precision whose numbers y holds, where it was saved as another.
    most : int
        About how many values are looked at; of larger tensors the first groups.
    """
    for subject in subjects:
        if x.size and subject.is_open:
            yield replace(open_case(subject, x, y, dtype, most), saved=saved)


def recover_used(
    subject: AskedNorm, x: NDArray[Any], y: NDArray[Any], dtype: np.dtype[Any]
) -> tuple[Claim, ...]:
    """Return the statistics or parameters that y used instead of the norm's, as no row of a table names them.

    Parameters
    ----------
    subject : AskedNorm
    x, y : ndarray
        Of the plan's shape.
    dtype : numpy.dtype
        The dtype to which y was rounded.
    """
    return recover(open_case(subject, x, y, dtype)) if subject.is_open else ()


def recover_one(cases: Sequence[Case]) -> tuple[Claim, ...]:
    """Return the claim of the one norm that explains y by other statistics or parameters; empty if several do.

    Parameters
    ----------
    cases : sequence of Case
        Cases of a y that is not y = a · x + b in each group: lines say as much.
    """
    found = []
    for case in cases:
        bits = case.plan.grid.group_count * math.log2(1.0 / get_eps(case.dtype))
        if bits >= _LEAST_BITS and (claims := recover(case)):
            found.append(claims)
    alone = [claims for claims in found if claims[0].fault.id != BOTH]
    if not alone:  # any norm of smaller groups has lines as well, and one without a mean
        plans = [claims[0].plan for claims in found]
        fewest = min((plan.grid.group_count for plan in plans), default=0)
        likely = (plan.grid.group_count == fewest and plan.norm.centre is Centre.MEAN for plan in plans)
        alone = [claims for claims, is_likely in zip(found, likely, strict=True) if is_likely]
    return alone[0] if len(alone) == 1 else ()


class NearNorm(NamedTuple):
    """A norm whose exact result is near y, but further off than rounding goes.

    Parameters
    ----------
    plan : Plan
    off, largest : float
        How far y is off: the root mean square, and the most.
    spread : float
        The standard deviation of y.
    """

    plan: Plan
    off: float
    largest: float
    spread: float


def find_nearest(cases: Iterable[Case]) -> NearNorm | None:
    """Return the norm that y is but for small errors all over, or None.

    None if y is off by more than a part of its spread, if one line through all values comes about as near, or
    if lines through each group come much nearer: its statistics are then other ones.

    Parameters
    ----------
    cases : iterable of Case
        One y as each norm that it may be; of equally near ones the first is taken.
    """
    found: NearNorm | None = None
    for case in cases:
        spread, most = float(np.std(case.y)), math.inf if found is None else found.off * (1.0 - _NEARLY)
        off = _measure_off(case, case.right.values)
        size = _average(off)
        if case.y.size < _LEAST_NEAR or not size <= min(most, _NEARLY * spread):  # NaN is not
            continue
        line = np.polynomial.Polynomial.fit(case.x.ravel(), case.y.ravel(), 1)
        of_line, of_groups = line(case.x), case.predict(Variant(*case.used)).values
        if _LINE * size <= _average(case.y - of_line) and size <= _LINES * _average(case.y - of_groups):
            found = NearNorm(case.plan, size, float(off.max()), spread)
    return found


def _measure_off(case: Case, values: Floats) -> Floats:
    """Return the distance of each y from a value."""
    return np.asarray(np.abs(case.y - values))


def _average(errors: Floats) -> float:
    """Return the root mean square."""
    return math.sqrt(float(np.mean(errors**2)))


_NEARLY, _LEAST_NEAR = 0.02, 256
"""The largest error of a near norm as a part of the spread of y, and the fewest values."""

_LINE, _LINES = 2.0, 1.25
"""How much further off one line is at least, and how much nearer lines of the groups may be."""


def list_near_plans(cases: Sequence[Case]) -> list[Plan]:
    """Return the plans whose exact results are near y, the nearest first; the eps is the norm's own.

    Parameters
    ----------
    cases : sequence of Case
        One y as each norm that it may be.
    """
    near = []
    for case in cases:
        finite = np.isfinite(case.y)
        off = float(np.median(np.nan_to_num(_measure_off(case, case.right.values), nan=math.inf)))
        if finite.any() and off <= _NEAR * float(np.std(case.y[finite])):
            near.append((off, case.plan))
    return [plan for _, plan in sorted(near, key=lambda pair: pair[0])[:_MOST_NEAR]]


_NEAR, _MOST_NEAR = 0.25, 4
"""Half of the values are off by no more than this part of y's spread; and so many plans are named."""

_LEAST_BITS = 3.0 * CERTAIN
"""The fewest bits in the divisors of all groups from which unnamed statistics are recovered."""


def shows_nothing(subject: AskedNorm, x: NDArray[Any]) -> bool:
    """Whether every group of x is of one value, of a norm that subtracts its mean."""
    plan = subject.plan
    is_open = x.size > 1 and subject.is_open and plan.grid.group_size > 1
    if not (is_open and open_case(subject, x, x, np.dtype("float64")).is_constant):
        return False
    view = fetch(x).reshape(plan.grid.view_shape)
    return bool(np.all(view == view.min(plan.grid.view_axes, keepdims=True)))


def counts_masked(subject: AskedNorm, x: NDArray[Any], y: NDArray[Any], dtype: np.dtype[Any]) -> bool:
    """Whether rounding explains each y that is not masked by statistics of all values, masked ones too."""
    plan, selection = subject.plan, subject.inputs.selection
    if selection is None or selection.mask is None or not plan.has_groups:
        return False
    case = open_case(subject._replace(inputs=subject.inputs._replace(selection=None)), x, y, dtype)
    view = np.broadcast_to(selection.mask, plan.grid.shape).reshape(plan.grid.view_shape)
    counted = view[choose_index(plan, MOST_VALUES)]
    return bool(counted.any()) and not np.any(case.differs & counted)


def is_off_by_rounding(
    subject: AskedNorm, x: NDArray[Any], y: NDArray[Any], dtype: np.dtype[Any], times: float = 1.0
) -> bool:
    """Whether rounding explains every sampled value of y, or so many times as much of it.

    The other arguments are those of `recover_used`.
    """
    if not (x.size and subject.plan.has_groups):
        return False
    case = open_case(subject, x, y, dtype)
    ways = (case, replace(case, precision="float32"))  # float64 that was calculated in less
    rights = ((one, one.right._replace(allowed=times * one.right.allowed)) for one in ways)
    return any(bool(one.explains(right).all()) for one, right in rights)


def list_subjects(
    x: NDArray[Any], gamma: NDArray[Any] | None, beta: NDArray[Any] | None, layout: str | None, norm: str | None
) -> Iterator[AskedNorm]:
    """Yield each norm of moments by default that takes the given gamma and beta, once for the same groups.

    Parameters
    ----------
    x : ndarray
    gamma, beta : ndarray or None
    layout : str or None
        One letter an axis; without it, the channel may be the second axis or the last.
    norm : str or None
        This norm alone.
    """
    seen = set()
    given = {name: values for name, values in (("gamma", gamma), ("beta", beta)) if values is not None}
    for request in _list_requests(x.shape, layout, norm, given):
        try:
            plan = make_plan(request, x.shape, x.dtype).adopt_parameters(given)
            fitted = {name: plan.fit_parameter(name, values) for name, values in given.items()}
        except NormError:
            continue
        features = plan.parameters.full_shape if given else None
        key = (plan.grid.canonical, plan.norm.centre, plan.norm.divisor, features)
        if key not in seen and plan.grid.group_size > 1:
            seen.add(key)
            yield AskedNorm(plan, Inputs(fitted.get("gamma"), fitted.get("beta")))


def _list_requests(
    shape: tuple[int, ...], layout: str | None, norm: str | None, given: Mapping[str, NDArray[Any]]
) -> Iterator[Request]:
    """Yield each norm of moments by default, each number of groups, and gamma of each sample or head."""
    rank = len(shape)
    layouts = (None, lay_out(rank, rank - 1)) if layout is None and rank in _RANKS else (layout,)
    several = {values.shape for values in given.values() if values.ndim > 1}
    for row in NORMS.values():
        if row.divisor.measurement is not Measurement.MOMENTS or norm not in (None, row.name):
            continue
        for letters in layouts:
            request = Request(row.name, layout=letters)
            if row.axes is AxesRule.CHANNEL_GROUPS:
                place = rank - 1 if letters is not None and layout is None else min(1, rank - 1)
                counts = (n for n in range(2, shape[place]) if shape[place] % n == 0)
                yield from (request._replace(groups=n) for n in counts)
            else:
                yield request
        for lengths in several:
            for axes in itertools.combinations(range(rank), len(lengths)):
                if tuple(shape[axis] for axis in axes) == lengths:
                    yield Request(row.name, layout=layout, feature_axes=axes)


_RANKS = range(3, 13)
"""The ranks whose last axis may be the channel, where no layout says so."""
