"""Faults in the arithmetic of sums: overflow, underflow, lost digits and E[x²] − E[x]²."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.algorithms.row_computation import Accumulation
from normcli.algorithms.row_formula import RowFormula
from normcli.algorithms.table import ALGORITHMS
from normcli.checking.fault import Row
from normcli.checking.half_precision import weigh_half
from normcli.checking.ulp import measure_unit
from normcli.dtypes import find_type, get_eps, is_half
from normcli.identifying.faults.shown_statistics import count_roundings, is_shared, weigh_one_pass
from normcli.identifying.faults.tables.dividing import EPS, measure_cancelled
from normcli.identifying.faults.variant import NOTHING, Variant, label
from normcli.identifying.models.weight import CERTAIN
from normcli.norms.rules import EpsMode
from normcli.numerics.rounding import round_to_short
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from normcli.dtypes import Floats, Selected
    from normcli.identifying.faults.case import Case

_WIDER = {"float16": "float32", "bfloat16": "float32", "float32": "float64"}


def _overflow(case: Case) -> Iterator[Variant]:
    """Yield variants whose variance is infinite or NaN in the groups where squares overflow y's dtype.

    Squares are x², and for norms with a mean (x − mean)². An overflow of a single square is tried, then one of
    the exact sum of a group's squares; if y is of half precision, also of sums in its dtype, by each summation
    algorithm. What overflows in no group makes no variant.
    """
    name, squares = case.dtype.name, {"x · x": case.x**2}
    if case.centres:
        squares["(x − mean)²"] = case.deviations**2
    shown = np.where(np.isnan(case.y).all(case.axes, keepdims=True), math.nan, math.inf)
    for what, square in squares.items():
        for words, combine in ((what, np.max), (f"the sum of {what}", np.sum)):
            most = combine(square, axis=case.axes, keepdims=True).astype(find_type(name))
            over = np.isinf(most)
            for value in (math.inf, math.nan, shown) if over.any() else ():  # ∞ − ∞ is NaN
                variant = Variant(square=np.where(over, value, case.square))
                yield from _name_groups(case, variant, words, over)
    for sums in _add_narrowly(case):
        if sums.over.any():
            yield from _name_groups(case, sums.variant, "a sum or its square", sums.over)


def _underflow(case: Case) -> Iterator[Variant]:
    """Yield variants in which a variance, or single squares, are too small for y's dtype and become 0.

    Sums that are added in half precision are tried too. Nothing with running statistics.
    """
    if case.stored is not None:
        return
    whole, each = f"the {case.square_name}", "(x − mean)²" if case.centres else "x · x"

    squares = (values**2 for values in (case.deviations, _round(case, case.deviations)))
    for what, square in ((whole, case.square), *((each, one * case.unbiasing) for one in squares)):
        kept = _round(case, square)
        lost = case.average(np.where(kept == 0.0, square, 0.0))
        under = lost > get_eps(case.dtype) * case.average(square)
        if under.any():
            yield from _name_groups(case, Variant(square=case.average(kept)), what, under)
    for sums in _add_narrowly(case):
        under = np.asarray((sums.variant.square == 0.0) & (case.square > 0.0))
        if under.any():
            yield from _name_groups(case, sums.variant, whole, under)


def _round(case: Case, values: Floats) -> Floats:
    """Return values rounded to y's dtype, in double precision."""
    return values.astype(find_type(case.dtype.name)).astype(np.float64)


def _name_groups(case: Case, variant: Variant, what: str, there: Selected) -> Iterator[Variant]:
    """Yield one variant with values for the fault's words: quantity, y's dtype, a wider dtype, which groups.

    Parameters
    ----------
    case : Case
    variant : Variant
    what : str
        The quantity, such as "the sum of squares".
    there : ndarray of bool
        True for groups in which the quantity overflows or underflows; the words say "some" or "every group".
    """
    where, name = "every group" if there.all() else "some groups", case.dtype.name
    wider = _WIDER.get(name, "float64, of x / max |x|")
    return label([variant], what=what, dtype=name, where=where, wider=wider)


_LARGEST_GROUP = 1 << 14
"""Sums in half precision are not simulated for larger groups."""

_ROUNDINGS = 2.0
"""The error of y in machine epsilons of half precision, without that of its statistics: four roundings."""

_ON_LINES = 0.9
"""Sums in half precision are tried if at least this part of y lies on a straight line in each group."""


class NarrowSums(NamedTuple):
    """The statistics of a case with sums in half precision.

    Parameters
    ----------
    algorithm : str
        The name of the algorithm that adds.
    variant : Variant
        Its mean and variance (or mean square) of each group.
    over : ndarray of bool
        The groups whose variance is not finite.
    """

    algorithm: str
    variant: Variant
    over: Selected


@functools.lru_cache(maxsize=2)  # of one case, two rows ask
def _add_narrowly(case: Case) -> tuple[NarrowSums, ...]:
    """Return the statistics that each summation algorithm computes with sums in y's half precision.

    Empty if y is not of half precision, if running statistics or a mask were given, if groups have one value or
    more than 16,384, or if less than 90 % of y lies near a line a · x + b of its group.
    """
    is_whole = case.counted is None and case.stored is None and 1 < case.count <= _LARGEST_GROUP
    if not is_half(case.dtype) or not is_whole:
        return ()
    if case.explains(case.predict(_soften(case, Variant(*case.used)))).mean() < _ON_LINES:
        return ()
    rows = case.lay_rows(case.x).reshape(-1, case.count).astype(find_type(case.dtype.name))
    formula, found = RowFormula.of(case.plan), []
    for algorithm in ALGORITHMS.values():
        if formula.centres or algorithm.squares:
            moments = Accumulation(algorithm, case.dtype.name).measure(rows, formula)
            mean, square = (m.astype(np.float64).reshape(case.divisor.shape) for m in moments)
            variant = _soften(case, Variant(mean if formula.centres else None, square=square))
            found.append(NarrowSums(algorithm.name, variant, ~np.isfinite(square)))
    return tuple(found)


def _soften(case: Case, variant: Variant, times: float = 1.0) -> Variant:
    """Return a variant that allows, as its `noise`, `times` the error of a kernel that calculates in y's dtype.

    A mean or a divisor that the variant does not change is the norm's.
    """
    mean = case.mean if variant.mean is None else variant.mean
    size = np.abs(case.gamma * (case.x - mean) / case.find_divisor(variant))
    size = (np.nan_to_num(size, posinf=0.0) + np.abs(case.beta)) * np.abs(case.factor)
    return variant._replace(noise=times * _ROUNDINGS * get_eps(case.dtype) * size)


def _sum_narrowly(case: Case) -> Iterator[Variant]:
    """Yield variants with sums in half precision: by the algorithm nearest to y, and with fitted statistics.

    Statistics fitted to y stand for sums in an unknown order. They are yielded only if their errors scatter
    over the groups, and if neither another eps nor cancellation explains y. Nothing at all if half precision
    without such sums explains y.
    """
    every = [sums for sums in _add_narrowly(case) if not sums.over.any()]
    rounded = Variant(_round(case, case.mean), square=_round(case, case.square))
    exact = (case.explains(case.predict(_soften(case, one))).all() for one in (NOTHING, rounded))
    if not every or any(exact):
        return
    off = [float(np.mean(np.abs(case.y - case.predict(sums.variant).values))) for sums in every]
    for nearest in np.argsort(off)[:1]:
        algorithm, variant, _ = every[nearest]
        yield from label([variant], dtype=case.dtype.name, algorithm=f"as {algorithm} does")
    if not _are_scattered(case, every) or next(cancel(case), None) is not None:
        return
    of_eps = (variant for row in EPS for variant in row.vary(case))
    if not any(case.explains(case.predict(variant)).all() for variant in of_eps):
        variant = _soften(case, Variant(*case.used, is_fitted=True), 2.0)
        yield from label([variant], dtype=case.dtype.name, algorithm="in another order")


_LEAST_OFF = 0.5
"""The least size of the largest error of a mean or divisor, in machine epsilons: one rounding makes no more."""

_LESS = 4.0
"""The factor by which errors of sums may be larger, or less alike, than in any simulated algorithm."""


def _are_scattered(case: Case, every: Sequence[NarrowSums]) -> bool:
    """Whether the means and divisors that fit y are numbers of half precision, with the errors of sums in it.

    Errors are compared with those of simulated algorithms: the largest is no larger, most groups are off by as
    large a part of it, and means by as large a part of the error of divisors. False for errors that E[x²] −
    E[x]² explains with both means rounded once.
    """
    if case.centres:  # no further off than E[x²] − E[x]² of a mean and squares that were rounded once each
        cancelled = get_eps(case.dtype) * (1.0 + np.square(case.own_mean) / case.own_square)
        if not np.max(np.abs(case.used.divisor / case.divisor - 1.0) / cancelled) > 1.0:
            return False
    most, *parts = _compare_errors(case, Variant(*case.used))
    simulated = np.array([_compare_errors(case, sums.variant) for sums in every])
    largest, (_, *least) = _LESS * np.fmax.reduce(simulated[:, 0]), np.fmin.reduce(simulated) / _LESS
    mean, divisor = case.used
    square = divisor**2 - case.eps
    of_means = (mean, mean * case.count) if case.centres else ()  # 0 is of half precision anyway
    shown = *of_means, divisor, 1.0 / divisor, square, square * case.freedom
    is_usual = _LEAST_OFF <= most <= largest and np.all(np.greater_equal(parts, least))
    is_alike = is_usual and not is_shared(divisor / case.divisor)
    return bool(is_alike) and max(weigh_half(numbers, case.dtype) for numbers in shown) >= CERTAIN


@np.errstate(all="ignore")
def _compare_errors(case: Case, variant: Variant) -> tuple[float, float, float]:
    """Return the largest error of a variant's statistics, in machine epsilons of half precision, and two parts.

    These are the median error over groups as a part of the largest, and that of means as a part of that of
    divisors.
    """
    size = get_eps(case.dtype) * (1.0 + case.average(np.abs(case.x)) / case.divisor)
    mean = case.mean if variant.mean is None else variant.mean
    of_mean = np.abs(mean - case.mean) / case.divisor / size
    of_divisor = np.abs(case.find_divisor(variant) / case.divisor - 1.0) / size
    larger = np.maximum(of_mean, of_divisor)
    most = larger.max()
    return float(most), float(np.median(larger) / most), float(np.median(of_mean) / np.median(of_divisor))


def cancel(case: Case) -> Iterator[Variant]:
    """Yield a variant with the divisors recovered from y, if E[x²] − E[x]² in a known order of sums has them.

    For y of half precision, up to three variants with E[x²] − E[x]² in half precision come first. Nothing if
    the divisors are further off than the kernel's arithmetic allows, or off by one factor.
    """
    if is_half(case.dtype):
        yield from _cancel_in_half(case)
    yield from (one for one in may_cancel(case) if one.bits >= CERTAIN)


def may_cancel(case: Case) -> Iterator[Variant]:
    """Yield a variant with the divisors recovered from y, if E[x²] − E[x]² may have errors as large as theirs.

    Its `bits` are the evidence that a known order of sums has these errors; 0 if the case has parts of groups.
    """
    off, most = np.abs(case.unroot(case.used.divisor, case.square) - case.eps), measure_cancelled(case)
    if (
        np.all(off <= most)
        and np.all(case.used.divisor > 0.0)
        and not is_shared(case.used.divisor / case.divisor)
    ):
        values = {"percent": _format_percent(float((off / case.square).max()))}
        bits = weigh_cancelling(case)
        yield Variant(divisor=case.used.divisor, values=values, numbers=1, is_fitted=True, bits=bits)


def weigh_cancelling(case: Case) -> float:
    """Return the evidence, in bits, that the divisors recovered from y are of E[x²] − E[x]² in a known order.

    0 if the case has parts of groups, or running statistics. Values that do not count are 0 in such sums.
    """
    if case.whole is not None or case.stored is not None:
        return 0.0
    summed = case.x if case.counted is None else np.where(case.counted, case.x, 0.0)
    rows = case.lay_rows(summed).reshape(case.divisor.size, -1)
    dtype = np.dtype(np.float64 if case.arithmetic < get_eps(np.dtype(np.float32)) else np.float32)
    divisors, outside = case.used.divisor.ravel(), case.plan.spec.eps_mode is EpsMode.OUTSIDE
    counts, unbiasing = case.counts.reshape(-1), case.unbiasing.reshape(-1)
    return weigh_one_pass(rows, counts, divisors, case.square.ravel(), dtype, unbiasing, outside=outside)


def _format_percent(part: float) -> str:
    """Return a fraction as a percentage of two digits: `0.031`, `1,600`."""
    rounded = float(f"{100.0 * part:.2g}")
    return f"{rounded:,.0f}" if rounded >= 100.0 else f"{rounded:g}"


_ROUNDED_RSTD = 2.0
"""The relative error of a squared divisor of half precision, in machine epsilons."""


def _cancel_in_half(case: Case) -> Iterator[Variant]:
    """Yield three variants with the divisors that fit y, if E[x²] − E[x]² in half precision explains them.

    It does if, in each group, the variance that follows from the divisor is near the right one and a whole
    number of units in the last place of E[x]², with 20 bits of evidence in all. Groups that are NaN throughout
    are not tested. The variants differ in their mean: the right one, this one rounded, and the one recovered
    from y.
    """
    shown = case.used.divisor**2
    variance, square = shown - case.eps, case.used.mean**2
    step = measure_unit(np.nan_to_num(np.minimum(square, square + variance)), case.dtype)
    slack = _ROUNDED_RSTD * get_eps(case.dtype) * shown
    is_whole = np.abs(variance - np.round(variance / step) * step) <= slack
    off = np.abs(variance - case.square)
    is_whole &= (off <= count_roundings(case.count) * step) & (case.used.divisor > 0.0)
    is_nan = np.isnan(case.y).all(case.axes, keepdims=True)
    bits = np.maximum(0.0, np.log2(step / (2.0 * slack)))[is_whole].sum()
    if np.all(is_whole | is_nan) and bits >= CERTAIN:
        values = {"percent": _format_percent(float(np.where(is_nan, 0.0, off / case.square).max()))}
        divisor = np.where(is_nan, np.nan, case.used.divisor)
        for mean in (case.mean, round_to_short(case.mean, case.dtype.name), case.used.mean):
            yield Variant(mean, divisor, values=values, numbers=1, is_fitted=True)


UNDERFLOW = Row("stats-underflow", _underflow)
"""The fault of a variance that becomes 0, tried before similar ones: one divisor for all, eps as a floor."""

SUMMING: Sequence[Row] = (
    Row("stats-one-pass", cancel, "mean"),
    Row("stats-overflow", _overflow),
    Row("stats-half-sums", _sum_narrowly),
)
"""In the order of likelihood: of rows that explain equally much, the first is named."""
