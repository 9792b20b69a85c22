"""Faults in the mean and the divisor of a group, and in the way both are computed."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from normcli.checking.fault import Row
from normcli.checking.gradient_terms import MOVED_EPS
from normcli.checking.half_precision import HALVES
from normcli.checking.ulp import measure_unit
from normcli.dtypes import get_eps, is_half
from normcli.identifying.faults.shown_statistics import count_roundings, measure_doubt
from normcli.identifying.faults.variant import Variant, divide, is_near, label
from normcli.identifying.models.divisor_fit import COMMON_EPS
from normcli.identifying.models.weight import CERTAIN, is_odd_eps
from normcli.norms.rules import EpsMode
from normcli.numerics.rounding import round_to_short

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from normcli.dtypes import Floats
    from normcli.identifying.faults.case import Case

    Cast = Callable[..., Floats]


def replace_mean(case: Case, mean: Floats) -> list[Variant]:
    """Return two variants with another mean: with the norm's divisor, and with the variance about `mean`."""
    return [Variant(mean), Variant(mean, square=case.measure_square(mean))]


def list_moments(
    case: Case, mean: Floats, measure: Callable[[Floats], Floats], square: Floats | None = None
) -> tuple[list[Variant], list[Variant], list[Variant]]:
    """Return variants with another mean and variance, with another mean alone, and another variance alone.

    Squares are about the mean that is wrong, or about the norm's; a norm without mean has no second form.

    Parameters
    ----------
    case : Case
    mean : ndarray
        The other mean of each group.
    measure : callable
        Takes centres of the groups, and returns the other variances about them.
    square : ndarray or None
        The variance beside another mean alone; None for the norm's.
    """
    about, own = measure(mean), measure(case.centre)
    both = [Variant(mean, square=one) for one in (about, own)]
    of_square = [Variant(square=one) for one in (own, about)]
    of_mean = [Variant(mean, square=square), Variant(mean, square=case.measure_square(mean))]
    return both, of_mean, of_square


def replace_statistics(case: Case, mean: Floats, square: Floats, names: Sequence[str]) -> list[Variant]:
    """Return variants with another mean and variance, with another mean alone, and another variance alone.

    For a norm without mean, only the first is returned. `square` is the variance or mean square of each group.
    `names` has words for the three variants, in this order; they are stored in `values["what"]`.
    """
    every = Variant(mean, square=square), Variant(mean), Variant(square=square)
    some = every if case.centres else every[:1]
    return [one._replace(values={"what": name}) for one, name in zip(some, names, strict=False)]


def _take_absolute(case: Case) -> list[Variant]:
    deviation = case.average(np.abs(case.deviations))
    spreads = deviation, deviation * math.sqrt(math.pi / 2.0)
    return divide(*(spread + eps for spread in spreads for eps in (0.0, case.eps)))


_NORMAL_MAD = 1.4826
"""A normal distribution's standard deviation over its median absolute deviation."""


def _take_median(case: Case) -> Iterator[Variant]:
    median = case.find_median(case.x)
    if is_half(case.dtype) and np.all(np.abs(median - case.mean) <= measure_unit(case.mean, case.dtype)):
        return  # a mean that is rounded to half precision tells as much
    spread = case.find_median(np.abs(case.x - median))
    about = case.average((case.x - median) ** 2)
    yield from label([Variant(median), Variant(median, square=about)], what="median")
    for mean, factor, added in itertools.product((median, case.mean), (1.0, _NORMAL_MAD), (0.0, case.eps)):
        yield Variant(mean, spread * factor + added, values={"what": "median absolute deviation"})


def _take_constant(case: Case) -> Iterator[Variant]:
    if case.x.size // case.count > 1:  # otherwise it is a factor of x
        for factor, numbers in shorten(float(np.median(case.used.divisor))):
            yield from label(divide(np.full_like(case.divisor, factor)), numbers, divisor=f"{factor:.6g}")


_DIGITS = (1, 2, 3, 5, 8, 17)
"""Counts of significant digits to which a number recovered from y is rounded."""


def shorten(shown: float) -> Iterator[tuple[float, int]]:
    """Yield a number rounded to 1, 2, 3, 5 and 8 digits, each with the count of fitted numbers that it costs.

    It costs 1 for up to 3 digits, 2 for 5, 3 for 8, and 5 for the 17 of float64. Nothing unless the number is
    finite and above 0.
    """
    for digits in _DIGITS if 0.0 < shown < math.inf else ():
        yield float(f"{shown:.{digits}g}"), 1 + digits // 4


# -- eps


def _list_eps(case: Case, moved: Case) -> dict[float, int]:
    """Return the eps to try, each with the number of fitted numbers that it counts as: 0 for a usual eps.

    In addition to the usual eps, there is the one that y shows: the median over groups of the eps that leads to
    the divisors recovered from y, rounded to 1, 2, 3, 5 and 8 digits. It is left out if it is large in
    comparison with the variances. `moved` is the case with eps in the place (inside or outside the root) that
    is tried.
    """
    found = dict.fromkeys((case.eps, *COMMON_EPS), 0)
    shown = float(np.median(moved.unroot(case.used.divisor, case.square)))
    is_outside = moved.plan.spec.eps_mode is EpsMode.OUTSIDE
    if not is_odd_eps(shown, np.sqrt(case.square) if is_outside else case.square):
        for eps, numbers in shorten(shown):
            found.setdefault(eps, numbers)
    return found


def _take_other_eps(case: Case, *, moves: bool = False) -> Iterator[Variant]:
    """Yield variants with every other eps of `_list_eps`; nothing for a norm without eps.

    If `moves`, eps is moved from inside the root to outside, or the reverse, and the requested eps is tried
    too; then nothing for a norm whose eps is neither.
    """
    spec = case.plan.spec
    place = MOVED_EPS.get(spec.eps_mode) if moves else spec.eps_mode
    if spec.eps is None or place is None:
        return
    moved = replace(case, plan=case.plan.change_spec(eps_mode=place))
    for eps, numbers in _list_eps(case, moved).items():
        if moves or eps != case.eps:
            values = {"eps": f"{eps:g}", "asked": f"{case.eps:g}", "place": place.value}
            yield Variant(divisor=moved.root(case.square, eps), values=values, numbers=numbers)


_SCALES = 255.0, 127.5, 256.0, 128.0, 127.0
"""The numbers by which bytes are divided, to lie between 0 and 1, or between −1 and 1."""

_NEARER = 8.0
"""Every usual eps is at least this many times as far from the eps that y shows as a scaled one."""


def _scale_input(case: Case) -> Iterator[Variant]:
    """Yield variants of x divided by a usual scale, and by √n and 1/√n for each length n: eps alone shows it.

    Left out are scales with an eps that is large beside the variances, or not much nearer than any usual eps to
    the one that y shows.
    """
    shown = float(np.median(case.unroot(case.used.divisor, case.square)))
    usual = min(abs(eps - shown) for eps in COMMON_EPS)
    is_outside = case.plan.spec.eps_mode is EpsMode.OUTSIDE
    scales = {f"divided by {scale:g}": scale for scale in _SCALES}
    for n in sorted({case.count, *case.x.shape} - {1}):
        scales |= {f"divided by √{n}": math.sqrt(n), f"multiplied by √{n}": 1.0 / math.sqrt(n)}
    for how, scale in scales.items():
        eps = case.eps * (scale if is_outside else scale**2)
        is_nearer = _NEARER * abs(eps - shown) <= usual
        if is_nearer and not is_odd_eps(eps, np.sqrt(case.square) if is_outside else case.square):
            yield Variant(divisor=case.root(case.square, eps), values={"how": how})


def _change_ddof(case: Case) -> Iterator[Variant]:
    """Yield variants whose sum of squares is divided by n or by n − 1, whichever the norm does not divide by.

    Nothing with running statistics.
    """
    for ddof in (0, 1):
        if case.stored is None and ddof != case.ddof:
            square = np.divide(case.square * case.freedom, case.counts - ddof)  # 0 / 0 of one value is NaN
            yield Variant(square=square, values={"ddof": ddof, "asked": int(case.ddof)})


def _scale_eps(case: Case) -> list[Variant]:
    largest = (np.fmax.reduce(np.abs(values), case.axes, keepdims=True) for values in (case.deviations, case.x))
    return divide(*(case.root(case.square, case.eps * most**2) for most in largest))


# -- how it is computed


def round_by(make: Callable[[Case, Cast], Iterable[Variant]]) -> Callable[[Case], Iterator[Variant]]:
    """Return a function from a case to the variants `make(case, cast)` for each half precision.

    `cast` rounds an array to that precision. With the numbers recovered from y as its second argument, it
    returns the nearer of two to which a kernel's errors before the rounding may have led. Variants are left out
    in which a number of a group overflows.
    """

    def vary(case: Case) -> Iterator[Variant]:
        for name in HALVES:
            every = make(case, functools.partial(_round_near, case, name))
            yield from label((one for one in every if not _overflows(case, one)), dtype=name)

    return vary


def _overflows(case: Case, variant: Variant) -> bool:
    """Whether a mean, divisor or variance is not finite in a group where the norm's own is."""
    own = (variant.mean, case.mean), (variant.divisor, case.divisor), (variant.square, case.square)
    return any(
        there is not None and bool(np.any(~np.isfinite(there) & np.isfinite(ours))) for there, ours in own
    )


def _round_near(case: Case, name: str, numbers: Floats, shown: Floats | None = None) -> Floats:
    if shown is None:
        return round_to_short(numbers, name)
    most = count_roundings(case.count) * case.arithmetic * np.abs(numbers)
    low, high = (round_to_short(numbers + error, name) for error in (-most, most))
    return np.where(np.abs(low - shown) < np.abs(high - shown), low, high)


def _round_both(case: Case, cast: Cast) -> list[Variant]:
    """Return two variants: with mean and 1 / divisor rounded by `cast`, and with mean and variance rounded."""
    mean = cast(case.mean, case.used.mean)
    return [
        Variant(mean, _round_reciprocals(case, cast), values={"what": "mean and divisor"}),
        Variant(mean, square=_round_squares(case, cast), values={"what": "mean and variance"}),
    ]


def _round_reciprocals(case: Case, cast: Cast) -> Floats:
    return 1.0 / cast(1.0 / case.divisor, 1.0 / case.used.divisor)


def _round_squares(case: Case, cast: Cast) -> Floats:
    return cast(case.square, case.used.divisor**2 - case.eps)


def measure_cancelled(case: Case) -> Floats:
    """Return the bound on the error of a variance computed as E[x²] − E[x]², one for each group."""
    return count_roundings(case.count) * case.arithmetic * case.average(case.x**2)


_MAGIC = 0x5F3759DF
"""The constant of the fast inverse square root of Quake III Arena."""

_FAST = 0.005
"""The largest relative error of a reciprocal root from a table with one step of Newton's method."""

_TABLE_BITS = (12, 13, 14)
"""Bits of the numbers that a table of reciprocal roots holds; half precision has fewer."""

_NEAR_A_NUMBER = 3.0
"""Reciprocal divisors are numbers of few bits if they are off these by at most this many standard errors."""


def _approximate(case: Case) -> Iterator[Variant]:
    """Yield variants with an approximate 1/√: the bit trick after 1 and 2 Newton steps, and fitted divisors.

    The fitted divisors are those recovered from y, if their relative errors are below 0.5 % and the means are
    right. If the reciprocals have 12 to 14 bits, they count as one fitted number; otherwise each is one, and
    they show only that the divisors are nearly right (`Claim.is_of_any_errors`).
    """
    squares = (case.divisor**2).astype(np.float32)
    guess = (np.uint32(_MAGIC) - (squares.view(np.uint32) >> np.uint32(1))).view(np.float32).astype(np.float64)
    for _ in range(2):
        guess = guess * (1.5 - 0.5 * squares * guess * guess)
        yield from divide(1.0 / guess, most=f"{np.abs(guess * case.divisor - 1.0).max():.2g}")
    most = float(np.abs(case.used.divisor / case.divisor - 1.0).max())
    if most <= _FAST and is_near(case.used.mean - case.mean + case.divisor, case.divisor):
        bits = max(weigh_few_bits(case, count) for count in _TABLE_BITS)
        values = {"most": f"{most:.2g}"}
        numbers = 1 if bits >= CERTAIN else case.divisor.size + 1
        yield Variant(divisor=case.used.divisor, values=values, numbers=numbers, is_fitted=True)


def weigh_few_bits(case: Case, bits: int) -> float:
    """Return the evidence, in bits, that the divisors of y, or their reciprocals, have at most `bits` bits.

    0 if of both one is off such a number by more than its recovery allows.
    """
    recovery = count_roundings(case.count) * get_eps(np.dtype(np.float64))
    allowed = np.ldexp(_NEAR_A_NUMBER * measure_doubt(case).divisor + recovery, bits)
    each = (np.ldexp(np.frexp(shown)[0], bits) for shown in (case.used.divisor, 1.0 / case.used.divisor))
    if not any(np.all(np.abs(numbers - np.round(numbers)) <= allowed) for numbers in each):
        return 0.0
    return float(-np.log2(np.clip(2.0 * allowed, np.finfo(float).tiny, 1.0)).sum())


OTHER_EPS = Row("stats-eps-other", _take_other_eps)
"""The fault of another eps than the requested one, which may come with another fault."""

EPS: Sequence[Row] = (OTHER_EPS, Row("stats-eps-outside", functools.partial(_take_other_eps, moves=True)))
"""The faults of another eps or eps mode, which may change divisors by as little as rounding does."""

DIVIDING: Sequence[Row] = (
    Row("stats-no-mean", lambda c: Variant(np.zeros_like(c.mean)), "mean"),
    Row("stats-no-divisor", lambda c: divide(np.ones_like(c.divisor)) if c.centres or c.has_gamma else None),
    Row("stats-zero", lambda c: Variant(square=np.zeros_like(c.square)), "mean eps"),
    Row("stats-mean-twice", lambda c: replace_mean(c, 2.0 * c.mean), "mean"),
    Row("stats-mean-subtracted", lambda c: None if c.centres else Variant(c.own_mean)),
    Row("stats-not-rooted", lambda c: divide(c.divisor**2, c.square, c.square + c.eps, what=c.square_name)),
    Row("stats-multiplied", lambda c: divide(1.0 / c.divisor, 1.0 / np.sqrt(c.square))),
    Row("stats-mean-square", lambda c: Variant(square=c.average(c.x**2)), "mean"),
    Row("stats-variance", lambda c: None if c.centres else Variant(square=c.average((c.x - c.own_mean) ** 2))),
    Row("stats-centred",
        lambda c: None if c.centres else Variant(c.own_mean, square=c.average((c.x - c.own_mean) ** 2)),
        "gate"),
    Row("stats-not-centred", lambda c: Variant(np.zeros_like(c.mean), square=c.average(c.x**2)), "mean gate"),
    Row("stats-absolute", _take_absolute),
    Row("stats-length",
        lambda c: [Variant(square=c.square * c.freedom),
                   *divide(c.divisor * np.sqrt(c.counts), np.sqrt(c.square * c.freedom))]),
    Row("before-input-scaled", _scale_input, "eps"),
    *EPS,
    Row("stats-ddof", _change_ddof, "mean"),
    Row("stats-eps-twice",
        lambda c: divide(np.sqrt(c.square + 2.0 * c.eps), np.sqrt(c.square + c.eps) + c.eps), "eps"),
    Row("stats-eps-subtracted", lambda c: divide(np.sqrt(c.square - c.eps), np.sqrt(c.square) - c.eps)),
    Row("stats-eps-floor",
        lambda c: divide(np.sqrt(np.maximum(c.square, c.eps)), np.maximum(np.sqrt(c.square), c.eps)), "eps"),
    Row("stats-eps-scaled", _scale_eps),
    Row("stats-median", _take_median),
    Row("stats-constant", _take_constant),
    Row("stats-rounded-rstd",
        round_by(lambda c, cast: divide(_round_reciprocals(c, cast), cast(c.divisor, c.used.divisor)))),
    Row("stats-rounded-mean", round_by(lambda c, cast: replace_mean(c, cast(c.mean, c.used.mean))), "mean"),
    Row("stats-rounded-mean-squared",
        round_by(lambda c, cast: [Variant(cast(c.mean), square=c.average(c.x**2) - cast(c.mean) ** 2)]),
        "mean"),
    Row("stats-rounded", round_by(_round_both), "mean"),
    Row("stats-rounded-variance",
        round_by(lambda c, cast: [Variant(square=_round_squares(c, cast), values={"what": c.square_name})])),
    Row("stats-approximate", _approximate),
)  # fmt: skip
"""In the order of likelihood: of rows that explain equally much, the first is named."""
