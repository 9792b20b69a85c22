"""Faults in the dtype in which sums are kept: overflow, underflow and lost digits."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.algorithms.row_computation import Accumulation
from normcli.algorithms.row_formula import RowFormula
from normcli.algorithms.table import ALGORITHMS
from normcli.checking.fault import Fault, Row
from normcli.dtypes import find_type, get_eps, is_half
from normcli.identifying.faults.tables.dividing import EPS, cancel, is_shared
from normcli.identifying.faults.variant import NOTHING, Variant, label
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
    for what, square in squares.items():
        for words, combine in ((what, np.max), (f"the sum of {what}", np.sum)):
            most = combine(square, axis=case.axes, keepdims=True).astype(find_type(name))
            over = np.isinf(most)
            for value in (math.inf, math.nan) if over.any() else ():  # ∞ − ∞ is NaN
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
    what : str
        The quantity, such as "the sum of squares".
    there : ndarray of bool
        True for groups in which the quantity overflows or underflows.
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

    Empty if y is not of half precision, if running statistics were given, if groups have one value or more
    than 16,384, or if less than 90 % of y lies near a line a · x + b of its group.
    """
    if not is_half(case.dtype) or case.stored is not None or not 1 < case.count <= _LARGEST_GROUP:
        return ()
    if case.explains(case.predict(_soften(case, Variant(*case.used)))).mean() < _ON_LINES:
        return ()
    kept = [axis for axis in range(case.x.ndim) if axis not in case.axes]
    rows = case.x.transpose(*kept, *case.axes).reshape(-1, case.count).astype(find_type(case.dtype.name))
    formula, found = RowFormula.of(case.plan), []
    for algorithm in ALGORITHMS.values():
        if formula.centres or algorithm.squares:
            moments = Accumulation(algorithm, case.dtype.name).measure(rows, formula)
            mean, square = (m.astype(np.float64).reshape(case.divisor.shape) for m in moments)
            variant = _soften(case, Variant(mean if formula.centres else None, square=square))
            found.append(NarrowSums(algorithm.name, variant, ~np.isfinite(square)))
    return tuple(found)


def _soften(case: Case, variant: Variant, times: float = 1.0) -> Variant:
    """Return a variant with, as its `noise`, `times` the error of a kernel that calculates in y's dtype.

    Without its own mean or divisor, the variant has the norm's.
    """
    mean = case.mean if variant.mean is None else variant.mean
    size = np.abs(case.gamma * (case.x - mean) / case.find_divisor(variant))
    size = (np.nan_to_num(size, posinf=0.0) + np.abs(case.beta)) * np.abs(case.factor)
    return variant._replace(noise=times * _ROUNDINGS * get_eps(case.dtype) * size)


def _sum_narrowly(case: Case) -> Iterator[Variant]:
    """Yield variants with sums in half precision: the algorithm nearest to y, and the statistics that fit y.

    Fitted statistics stand for sums in an unknown order. They need errors that scatter over the groups, and no
    fault of eps or cancellation that explains y. Nothing if half precision without such sums explains y.
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
    if not _are_scattered(case) or next(cancel(case), None) is not None:
        return
    of_eps = (variant for row in EPS for variant in row.vary(case))
    if not any(case.explains(case.predict(variant)).all() for variant in of_eps):
        variant = _soften(case, Variant(*case.used, is_fitted=True), 2.0)
        yield from label([variant], dtype=case.dtype.name, algorithm="in another order")


_FEWEST_GROUPS = 8
"""The fewest groups from which scattered errors of sums are concluded."""

_LEAST_OFF = 0.5
"""The least size of the largest error of a mean or divisor, in machine epsilons: one rounding makes no more."""


def _are_scattered(case: Case) -> bool:
    """Whether the means and divisors that fit y have random errors of the size of sums in half precision.

    False for fewer than 8 groups, and for errors that E[x²] − E[x]² explains with both means rounded once.
    """
    off = case.used.divisor / case.divisor - 1.0
    of_mean = (case.used.mean - case.mean) / case.divisor
    eps, size = get_eps(case.dtype), case.average(np.abs(case.x)) / case.divisor
    if case.centres:  # no further off than E[x²] − E[x]² of a mean and squares that were rounded once each
        cancelled = eps * (1.0 + np.square(case.own_mean) / case.own_square)
        if not np.max(np.abs(off) / cancelled) > 1.0:
            return False
    most = np.maximum(np.abs(off), np.abs(of_mean)) / (eps * (1.0 + size))
    varies = off.size >= _FEWEST_GROUPS and not is_shared(case)
    return bool(varies and _LEAST_OFF <= most.max() <= math.sqrt(case.count))


UNDERFLOW = Row(
    Fault("stats-underflow", "{what} underflows to 0 in {dtype}, in {where}", "square and add in {wider}",
          "x * x  # of float16: 0 below 0.00017", ("the variance", "float16", "some groups", "float32")),
    _underflow,
)  # fmt: skip
"""The fault of a variance that becomes 0, tried before similar ones: one divisor for all, eps as a floor."""

SUMMING: Sequence[Row] = (
    Row(Fault("stats-overflow", "{what} overflows {dtype} in {where}", "square and add in {wider}",
              "x * x  # of float16: ∞ beyond 65504", ("the sum of x · x", "float16", "some groups", "float32")),
        _overflow),
    Row(Fault("stats-half-sums", "sums are added in {dtype}, {algorithm}", "accumulate in float32",
              "np.add.accumulate(x, -1, dtype=np.float16)[..., -1]", ("float16", "one value after the other")),
        _sum_narrowly),
)  # fmt: skip
"""In the order of likelihood: of rows that explain equally much, the first is named."""
