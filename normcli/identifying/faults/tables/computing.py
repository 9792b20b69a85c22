"""Faults of how statistics are computed: rounded to half precision, by one pass, by a rough root."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.checking.fault import Fault
from normcli.checking.saved import HALVES
from normcli.checking.ulp import measure_unit
from normcli.dtypes import get_eps, is_half
from normcli.identifying.faults.claim import Row
from normcli.identifying.faults.variant import Variant, is_near
from normcli.identifying.models.weight import CERTAIN
from normcli.numerics.rounding import round_to_half

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from normcli.dtypes import Floats
    from normcli.identifying.faults.case import Case


def _round_rstd(case: Case) -> Iterator[Variant]:
    with np.errstate(all="ignore"):
        for name in HALVES:
            yield Variant(case.mean, 1.0 / round_to_half(1.0 / case.divisor, name), values={"dtype": name})
            yield Variant(case.mean, round_to_half(case.divisor, name), values={"dtype": name})


def _round_mean(case: Case) -> Iterator[Variant]:
    if case.centres:
        for name in HALVES:
            mean = round_to_half(case.mean, name)
            yield Variant(mean, case.divisor, values={"dtype": name})
            yield Variant(mean, square=case.measure_square(mean), values={"dtype": name})


def _round_both(case: Case) -> Iterator[Variant]:
    if case.centres:
        for name in HALVES:
            mean, rstd = round_to_half(case.mean, name), round_to_half(1.0 / case.divisor, name)
            yield Variant(mean, 1.0 / rstd, values={"dtype": name})


def _round_square(case: Case) -> Iterator[Variant]:
    for name in HALVES:
        yield Variant(square=round_to_half(case.square, name), values={"dtype": name, "what": case.square_name})


_MAGIC = 0x5F3759DF
"""The constant of the fast inverse square root of Quake III Arena."""


_RARE = 64.0
"""Times the middle group's error that the largest may be."""


_FAST = 0.005
"""Reciprocal roots of tables and one step of Newton's are off by less than this part."""


def _approximate(case: Case) -> Iterator[Variant]:
    with np.errstate(all="ignore"):
        squares = (case.divisor**2).astype(np.float32)
        guess = (
            (np.uint32(_MAGIC) - (squares.view(np.uint32) >> np.uint32(1))).view(np.float32).astype(np.float64)
        )
        for _ in range(2):
            guess = guess * (1.5 - 0.5 * squares * guess * guess)
            yield Variant(
                case.mean, 1.0 / guess, values={"most": f"{np.abs(guess * case.divisor - 1.0).max():.2g}"}
            )
        off = np.abs(case.used.divisor / case.divisor - 1.0)
        is_cancelled = case.centres and bool(np.all(2.0 * off * case.square <= _measure_cancelled(case)))
    most = float(off.max())
    is_shared = float(np.median(off)) * _RARE >= most  # and not of one group alone
    if (
        is_shared
        and not is_cancelled
        and most <= _FAST
        and is_near(case.used.mean - case.mean + case.divisor, case.divisor)
    ):
        yield Variant(
            case.mean,
            case.used.divisor,
            values={"most": f"{most:.2g}"},
            numbers=case.divisor.size,
            is_fitted=True,
        )


def _measure_cancelled(case: Case) -> Floats:
    """Return how far off a variance of one pass, E[x²] − E[x]², may be."""
    return (_STEPS + math.sqrt(case.count)) * case.arithmetic * case.average(case.x**2)


def _cancel(case: Case) -> Iterator[Variant]:
    yield from _cancel_in_half(case)
    if not case.centres:
        return
    with np.errstate(all="ignore"):
        off = np.abs(case.unroot(case.used.divisor, case.square) - case.eps)
    if np.all(off <= _measure_cancelled(case)) and np.all(case.used.divisor > 0.0):
        values = {"percent": _format_percent(float((off / case.square).max()))}
        yield Variant(case.mean, case.used.divisor, values=values, numbers=1, is_fitted=True)


def _format_percent(part: float) -> str:
    """Return a part in percent, with two digits: `0.031`, `1,600`."""
    rounded = float(f"{100.0 * part:.2g}")
    return f"{rounded:,.0f}" if rounded >= 100.0 else f"{rounded:g}"


_STEPS = 8.0
"""Last places that a difference of squares in half precision may be off, beside the root of their number."""


_ROUNDED_RSTD = 2.0
"""Roundings of half precision of a divisor, in its square."""


def _cancel_in_half(case: Case) -> Iterator[Variant]:
    """Take differences of squares in half precision: whole last places of E[x]², which few variances are."""
    if not (case.centres and is_half(case.dtype)):
        return
    with np.errstate(all="ignore"):
        shown = case.used.divisor**2
        variance, square = shown - case.eps, case.used.mean**2
        step = measure_unit(np.nan_to_num(np.minimum(square, square + variance)), case.dtype)
        slack = _ROUNDED_RSTD * get_eps(case.dtype) * shown
        is_whole = np.abs(variance - np.round(variance / step) * step) <= slack
        off = np.abs(variance - case.square)
        is_whole &= (off <= (_STEPS + math.sqrt(case.count)) * step) & (case.used.divisor > 0.0)
        is_nan = np.isnan(case.y).all(case.axes, keepdims=True)
        bits = np.maximum(0.0, np.log2(step / (2.0 * slack)))[is_whole].sum()
        if np.all(is_whole | is_nan) and bits >= CERTAIN:
            values = {"percent": _format_percent(float(np.where(is_nan, 0.0, off / case.square).max()))}
            for mean in (case.mean, round_to_half(case.mean, case.dtype.name), case.used.mean):
                divisor = np.where(is_nan, np.nan, case.used.divisor)
                yield Variant(mean, divisor, values=values, numbers=1, is_fitted=True)


COMPUTING: Sequence[Row] = (
    Row(Fault("stats-rounded-rstd", "the divisor is rounded to {dtype}", "keep statistics in float32",
              "d.astype(np.float16)", ("float16",)), _round_rstd),
    Row(Fault("stats-rounded-mean", "the mean is rounded to {dtype}", "keep statistics in float32",
              "x.mean(-1).astype(np.float16)", ("float16",)), _round_mean),
    Row(Fault("stats-rounded", "mean and divisor are rounded to {dtype}", "keep statistics in float32",
              "(x - m.astype(np.float16)) / d.astype(np.float16)", ("float16",)), _round_both),
    Row(Fault("stats-rounded-variance", "the {what} is rounded to {dtype}", "keep statistics in float32",
              "x.var(-1).astype(np.float16)", ("variance", "float16")), _round_square),
    Row(Fault("stats-one-pass", "the variance is E[x²] − E[x]², off by {percent} %",
              "take squares of x − mean", "(x * x).mean(-1) - x.mean(-1) ** 2", ("N",)), _cancel),
    Row(Fault("stats-approximate", "the root is approximate, off by up to {most}",
              "refine the reciprocal root once more", "rsqrt_fast(x.var(-1) + eps)", ("N",)), _approximate),
)  # fmt: skip
"""The likelier ones first, of those that explain as much."""
