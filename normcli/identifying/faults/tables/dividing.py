"""Faults in what is subtracted of a group, what divides it, and how both are computed."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from normcli.checking.fault import Fault
from normcli.identifying.faults.claim import Row
from normcli.identifying.faults.variant import Variant
from normcli.identifying.models.evidence import COMMON_EPS
from normcli.norms.rules import EpsMode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from normcli.identifying.faults.case import Case


def _leave_mean(case: Case) -> Iterator[Variant]:
    if case.centres:
        yield Variant(np.zeros_like(case.mean), case.divisor)


def _subtract_mean(case: Case) -> Iterator[Variant]:
    if not case.centres:
        yield Variant(case.own_mean, case.divisor)


def _leave_divisor(case: Case) -> Iterator[Variant]:
    if case.centres or case.has_gamma:  # otherwise it is x
        yield Variant(case.mean, np.ones_like(case.divisor))


def _leave_root(case: Case) -> Iterator[Variant]:
    for divisor in (case.divisor**2, case.square, case.square + case.eps):
        yield Variant(case.mean, divisor, values={"what": case.square_name})


def _multiply(case: Case) -> Iterator[Variant]:
    with np.errstate(all="ignore"):
        for divisor in (1.0 / case.divisor, 1.0 / np.sqrt(case.square)):
            yield Variant(case.mean, divisor)


def _take_mean_square(case: Case) -> Iterator[Variant]:
    if case.centres:
        square = case.average(case.x**2)
        yield Variant(case.mean, square=square)


def _take_variance(case: Case) -> Iterator[Variant]:
    if not case.centres:
        square = case.average((case.x - case.own_mean) ** 2)
        yield Variant(square=square)


def _take_absolute(case: Case) -> Iterator[Variant]:
    deviation = case.average(np.abs(case.deviations))
    for factor in (1.0, math.sqrt(math.pi / 2.0)):
        for divisor in (deviation * factor, deviation * factor + case.eps):
            yield Variant(case.mean, divisor)


_NORMAL_MAD = 1.4826
"""A normal distribution's standard deviation over its median absolute deviation."""


def _take_median(case: Case) -> Iterator[Variant]:
    median = np.median(case.x, case.axes, keepdims=True)
    spread = np.median(np.abs(case.x - median), case.axes, keepdims=True)
    about = case.average((case.x - median) ** 2)
    yield Variant(median, case.divisor, values={"what": "median"})
    yield Variant(median, square=about, values={"what": "median"})
    for mean, factor in itertools.product((median, case.mean), (1.0, _NORMAL_MAD)):
        for added in (0.0, case.eps):
            yield Variant(mean, spread * factor + added, values={"what": "median absolute deviation"})


def _take_length(case: Case) -> Iterator[Variant]:
    yield Variant(case.mean, square=case.square * case.freedom)
    with np.errstate(all="ignore"):
        yield Variant(case.mean, case.divisor * math.sqrt(case.count))


def _take_constant(case: Case) -> Iterator[Variant]:
    if case.centres and case.x.size // case.count > 1:  # otherwise it is a factor of x
        middle = float(np.median(case.used.divisor))
        for digits in _DIGITS:
            factor = float(f"{middle:.{digits}g}")
            if 0.0 < factor < math.inf:
                divisor, values = np.full_like(case.divisor, factor), {"divisor": f"{factor:.6g}"}
                yield Variant(case.mean, divisor, values=values, numbers=count_numbers(digits))


# -- eps


def _take_other_eps(case: Case) -> Iterator[Variant]:
    """Take another eps in use; one that is not too small to show comes first."""
    if case.plan.spec.eps is not None:
        shown = float(np.median(case.unroot(case.used.divisor, case.square)))
        found = dict.fromkeys(COMMON_EPS, 1)
        for digits in _DIGITS if 0.0 < shown < math.inf else ():
            found.setdefault(float(f"{shown:.{digits}g}"), count_numbers(digits))
        for eps, numbers in found.items():
            if eps != case.eps:
                values = {"eps": f"{eps:g}", "asked": f"{case.eps:g}"}
                yield Variant(divisor=case.root(case.square, eps), values=values, numbers=numbers)


_DIGITS = (1, 2, 3, 5, 8)
"""How many digits an eps has that is none in use."""


def count_numbers(digits: int) -> int:
    """Return as how many small numbers one of many digits counts."""
    return 1 + digits // 4


_PLACES = {EpsMode.INSIDE: EpsMode.OUTSIDE, EpsMode.OUTSIDE: EpsMode.INSIDE}


def _move_eps(case: Case) -> Iterator[Variant]:
    place = _PLACES.get(case.plan.spec.eps_mode or EpsMode.FLOOR)
    if place is not None:
        moved = replace(case, plan=case.plan.change_spec(eps_mode=place))
        for eps in dict.fromkeys((case.eps, *COMMON_EPS)):
            values = {"place": place.value, "eps": f"{eps:g}"}
            yield Variant(divisor=moved.root(case.square, eps), values=values, numbers=1)


def _change_ddof(case: Case) -> Iterator[Variant]:
    """Divide the sum of squares by n less another number."""
    if case.centres and case.stored is None:
        for ddof in (0, 1):
            if case.count - ddof != case.freedom and ddof < case.count:
                square = case.square * case.freedom / (case.count - ddof)
                yield Variant(square=square, values={"ddof": ddof, "asked": int(case.count - case.freedom)})


def _double_eps(case: Case) -> Iterator[Variant]:
    if case.eps:
        root = np.sqrt(case.square + case.eps)
        for divisor in (np.sqrt(case.square + 2.0 * case.eps), root + case.eps):
            yield Variant(case.mean, divisor)


def _subtract_eps(case: Case) -> Iterator[Variant]:
    with np.errstate(all="ignore"):
        for divisor in (np.sqrt(case.square - case.eps), np.sqrt(case.square) - case.eps):
            yield Variant(case.mean, divisor)


def _floor_eps(case: Case) -> Iterator[Variant]:
    """Take the larger of the variance and eps, or of their roots."""
    if case.eps:
        yield Variant(case.mean, np.sqrt(np.maximum(case.square, case.eps)))
        yield Variant(case.mean, np.maximum(np.sqrt(case.square), case.eps))


def _scale_eps(case: Case) -> Iterator[Variant]:
    values = case.deviations
    largest = np.abs(values).max(case.axes, keepdims=True)
    for most in (largest, np.abs(case.x).max(case.axes, keepdims=True)):
        yield Variant(case.mean, case.root(case.square, case.eps * most**2))


# -- how it is computed


OTHER_EPS = Row(
    Fault("stats-eps-other", "eps is {eps}, not {asked}", "set eps", "np.sqrt(x.var(-1) + 1e-6)", ("A", "B")),
    _take_other_eps,
)
"""Another eps than the one that was asked for, by itself or beside another fault."""

DIVIDING: Sequence[Row] = (
    Row(Fault("stats-no-mean", "the mean is not subtracted", "subtract the mean of each group",
              "x / np.sqrt(x.var(-1) + eps)"), _leave_mean),
    Row(Fault("stats-no-divisor", "the deviations are not divided", "divide by the deviation of each group",
              "x - x.mean(-1)"), _leave_divisor),
    Row(Fault("stats-mean-subtracted", "the mean is subtracted", "leave the mean in",
              "(x - x.mean(-1)) / np.sqrt((x * x).mean(-1) + eps)"), _subtract_mean),
    Row(Fault("stats-not-rooted", "the {what} divides, not its root", "take the root of the variance",
              "(x - x.mean(-1)) / (x.var(-1) + eps)", ("variance",)), _leave_root),
    Row(Fault("stats-multiplied", "the divisor multiplies", "divide by the root",
              "(x - x.mean(-1)) * np.sqrt(x.var(-1) + eps)"), _multiply),
    Row(Fault("stats-mean-square", "the mean square is used, not the variance", "take squares of x − mean",
              "(x - x.mean(-1)) / np.sqrt((x * x).mean(-1) + eps)"), _take_mean_square),
    Row(Fault("stats-variance", "the variance is used, not the mean square", "take squares of x",
              "x / np.sqrt(x.var(-1) + eps)"), _take_variance),
    Row(Fault("stats-absolute", "the mean absolute deviation divides", "divide by the standard deviation",
              "(x - m) / np.abs(x - m).mean(-1)"), _take_absolute),
    Row(Fault("stats-length", "the length divides, √n times the divisor", "divide the sum of squares by n",
              "x / np.linalg.norm(x, axis=-1)"), _take_length),
    OTHER_EPS,
    Row(Fault("stats-eps-outside", "eps {eps} is {place} the root", "move eps", "np.sqrt(x.var(-1)) + eps",
              ("A", "outside")),
        _move_eps),
    Row(Fault("stats-ddof", "ddof is {ddof}, not {asked}", "divide by n", "x.var(-1, ddof=1)",
              ("A", "B")), _change_ddof),
    Row(Fault("stats-eps-twice", "eps is added twice", "add eps once", "np.sqrt(x.var(-1) + eps) + eps"),
              _double_eps),
    Row(Fault("stats-eps-subtracted", "eps is subtracted", "add eps", "np.sqrt(x.var(-1) - eps)"),
              _subtract_eps),
    Row(Fault("stats-eps-floor", "eps is a floor, and is not added", "add eps to the variance",
              "np.sqrt(np.maximum(x.var(-1), eps))"), _floor_eps),
    Row(Fault("stats-eps-scaled", "eps is multiplied by max²", "add eps as it is",
              "np.sqrt(x.var(-1) + eps * (x * x).max(-1))"), _scale_eps),
    Row(Fault("stats-median", "the {what} is used", "use the mean and the standard deviation",
              "x - np.median(x, -1)", ("median",)), _take_median),
    Row(Fault("stats-constant", "one divisor serves all groups, {divisor}", "divide each group by its own",
              "(x - x.mean(-1)) / x.std()", ("D",)), _take_constant),
)  # fmt: skip
"""The likelier ones first, of those that explain as much."""
