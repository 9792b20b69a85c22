"""Claims that a tensor has a fault, the likeliest first, with their evidence in bits."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.checking.ulp import measure_unit
from normcli.dtypes import get_eps, is_half
from normcli.identifying.faults.fault_evidence import OF_A_NUMBER, lies_near, measure_bits, weigh_statistics
from normcli.identifying.faults.tables.around import AROUND
from normcli.identifying.faults.tables.behind import BEHIND
from normcli.identifying.faults.tables.borrowing import BORROWING
from normcli.identifying.faults.tables.counting import COUNTING
from normcli.identifying.faults.tables.dividing import DIVIDING, EPS
from normcli.identifying.faults.tables.gating import GATES
from normcli.identifying.faults.tables.masking import MASKING
from normcli.identifying.faults.tables.parameters import PARAMETERS, STORED
from normcli.identifying.faults.tables.places import (
    CAST,
    MASKED,
    NOT_FINITE,
    OF_COPIES,
    OF_REGIONS,
    ORDER,
    UNKNOWN,
)
from normcli.identifying.faults.tables.scaling import SCALING
from normcli.identifying.faults.tables.summing import SUMMING, UNDERFLOW
from normcli.identifying.faults.unnamed_fault import find_source, show_used
from normcli.identifying.models.weight import CERTAIN
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from normcli.checking.fault import Fault, Row
    from normcli.identifying.faults.case import Case
    from normcli.identifying.faults.variant import Found, IndexRegion
    from normcli.norms.plan import Plan

STATISTICS: Sequence[Row] = (
    *MASKING,
    *(
        row._replace(needs=" ".join(("moments", row.needs)))
        for row in (*STORED, UNDERFLOW, *DIVIDING, *COUNTING, *BORROWING, *SUMMING)
    ),
)
"""The rows of faults in the statistics of norms that mean and variance, or the mean square, determine."""

WITHIN_GROUPS = tuple(
    row for row in STATISTICS if row.id in ("stats-shard", "stats-other-axes", "stats-masked")
)
"""The rows whose statistics may differ within a group: with others, y is a line of x in each group."""

GATE_ORDERS = tuple(row for row in GATES if row.id in ("before-gate", "after-gate"))
"""The rows of a gate on the wrong side of the norm."""

OVERFLOWS, DDOFS = (
    tuple(row for row in STATISTICS if row.id == name) for name in ("stats-overflow", "stats-ddof")
)
"""The rows of overflow, which may make all of y one number, and of ddof, which may make groups of one NaN."""

REST: Sequence[Row] = (*SCALING, *AROUND, *GATES, *PARAMETERS, *BEHIND, *ORDER)
_ROWS = (*STATISTICS, *REST, *OF_COPIES, *OF_REGIONS.values(), *UNKNOWN.values(), CAST, MASKED)
FAULTS: Sequence[Row] = tuple({row.id: row for row in _ROWS}.values())
"""Every row: what `normcli help faults` lists."""

GAMMAS = frozenset(("affine-constant", "affine-offset"))
"""The faults that are the same as a gamma and a beta of one number each."""

_APPROXIMATE = "stats-approximate"
"""The id of an approximate root."""

ANY_NUMBER = GAMMAS | {"stats-constant", "affine-gamma-shifted"}
"""The faults of one number for all of y, which may be any."""

ANY_EPS = frozenset(("stats-eps-other", "stats-eps-outside", "stats-ddof"))
"""The faults that are another eps or ddof: none, if no norm was requested."""

ONE_NUMBER = tuple(
    row for row in (*STATISTICS, *PARAMETERS) if row.id in ANY_EPS | {"stats-count", "affine-constant"}
)
"""The rows of one wrong number for all groups: another eps or count, or a factor."""

OTHER_NORMS = ANY_EPS | {"stats-length", "stats-scaler"}
"""The faults that make another norm or another request, and are none if no norm was requested."""

SCALERS = frozenset(("stats-no-mean", "stats-no-divisor"))
"""The faults with which y is the result of a well-known scaler."""

REQUESTS = GAMMAS | ANY_EPS | {"stats-count", "stats-other-axes", "affine-gamma-plus-one"}
"""The faults that are none if another norm, gamma or beta is requested."""

_FEW_NUMBERS = 8
"""The most recovered numbers of a likely row; with more, a row ranks below rows with fewer."""

_ALIKE, _CLOSE = 3.0, 0.05
"""A claim is as likely as the best if its misfit is at most 3 times the best misfit plus 0.05."""

_NEAR_ROUNDINGS = 8.0
"""Fitted numbers that change no value by more machine epsilons of half precision may be errors of its sums."""

_SHOWN = 4.0
"""Statistics are those that y shows if they are off these by at most 4 standard errors, on average."""

_AND = ", and "


class Claim(NamedTuple):
    """A finding in words: the claim that y is the result of a norm with certain faults, and its evidence.

    Parameters
    ----------
    faults : tuple of Fault
        One for each wrong part of the norm; the first changes y most.
    plan : Plan
        The plan of the norm that y should be.
    causes : tuple of str
        The clause of each fault.
    misfit : float
        The root mean square of y − prediction, in units of the rounding bound.
    bits : float
        The evidence in bits.
    region : IndexRegion or None
        The part of y in which the claim holds; None for all of y.
    shown : tuple of str
        Clauses that compare used numbers with the right numbers; empty if the causes name them.
    rank : float
        The lower, the likelier; equal for claims between which the data cannot decide.
    exact : float
        The share of values of y that are the prediction rounded to nearest.
    numbers : int
        The count of fitted numbers.
    bits_shown : float
        The evidence, in bits, of the means and divisors recovered from y alone; NaN if the claim changes more
        than these.
    is_of_large_eps : bool
        True for a fitted eps that changes the divisors by over 2⁻¹⁰: of groups alike, it stands for any factor.
    """

    faults: tuple[Fault, ...]
    plan: Plan
    causes: tuple[str, ...]
    misfit: float
    bits: float
    region: IndexRegion | None = None
    shown: tuple[str, ...] = ()
    rank: float = math.inf
    exact: float = 0.0
    numbers: int = 0
    bits_shown: float = math.nan
    is_of_large_eps: bool = False

    @property
    def fault(self) -> Fault:
        """The fault that is named first."""
        return self.faults[0]

    @property
    def ids(self) -> frozenset[str]:
        """The ids of the claim's faults."""
        return frozenset(fault.id for fault in self.faults)

    def is_near(self, best: float) -> bool:
        """Whether the misfit is not much larger than the best, at most 3 times it plus 0.05."""
        return self.misfit <= _ALIKE * best + _CLOSE

    def fits_as_well_as(self, other: Claim) -> bool:
        """Return True if this claim is about all of y, has fewer fitted numbers than `other`, and fits as well.

        Of an approximate root, whose fitted errors suit any divisors, not the fit counts, but any evidence.
        """
        fits = self.bits > 0.0 if other.fault.id == _APPROXIMATE else self.is_near(other.misfit)
        return self.region is None and self.numbers < other.numbers and fits

    @property
    def is_of_any_errors(self) -> bool:
        """Whether it is an approximate root with errors fitted to each group, as nearly right divisors have.

        It only supports claims with fewer fitted numbers if no other claim is certain, and is not shown.
        """
        return self.fault.id == _APPROXIMATE and self.numbers > 1

    def leave_out(self, ids: frozenset[str]) -> Claim:
        """Return the claim without the faults of some ids; at least one fault has to be left."""
        told = [pair for pair in zip(self.faults, self.causes, strict=True) if pair[0].id not in ids]
        faults, causes = zip(*told, strict=True)
        return self._replace(faults=faults, causes=causes)

    @property
    def evidence(self) -> tuple[str, ...]:
        """The evidence, a clause each."""
        if self.region is not None:
            return (*self.shown, *(["rounding explains every other value"] if self.region.words else []))
        return (*self.shown, "with that, rounding explains every value")

    @property
    def cause(self) -> str:
        """All causes and the region, as one clause."""
        said = _AND.join(self.causes)
        return said if self.region is None else f"{said} {self.region.words}".rstrip()


def may_be_rounding(case: Case, found: Found) -> bool:
    """Return True if a finding's fitted numbers move y by so little that half-precision sums may have done it.

    False if y is not of half precision; for findings of a region or without fitted numbers; and with running
    statistics, which a kernel does not sum. False also if the statistics recovered from y are nearly the
    finding's: errors of sums in half precision would scatter about them.
    """
    has_sums = is_half(case.dtype) and "stored" not in case.parts
    is_fitted = any(one.numbers for one in found.variants) or any(row.fault in found.faults for row in EPS)
    if not has_sums or found.region is not None or not is_fitted:
        return False
    right, moved = case.right.values, np.abs(found.prediction.values - case.right.values)
    if not np.nanmax(moved - _NEAR_ROUNDINGS * get_eps(case.dtype) * (np.abs(right) + 1.0)) <= 0.0:
        return False
    return found.is_fitted or not lies_near(case, found.variants[0], _SHOWN)


def make_claim(case: Case, found: Found) -> Claim:
    """Return the claim that y has the faults of a finding, with its words, evidence and rank.

    If only a wrong region explains y, the words name a reason in x, gamma or beta if there is one.
    """
    error = np.abs(case.y - found.prediction.values)
    counted = np.isfinite(error) if found.region is None else np.isfinite(error) & ~found.region.mask
    off = np.where(counted, error / found.prediction.unit, 0.0)
    pairs = [*zip(found.faults, found.variants, strict=True)]
    causes = tuple(fault.words.format(**variant.values) for fault, variant in pairs)
    faults = tuple(fault._replace(remedy=fault.remedy.format(**variant.values)) for fault, variant in pairs)
    shown = show_used(case, found) if found.is_fitted else ()
    if found.region is not None and len(faults) == 1 and faults[0].id.startswith("where-"):
        source = find_source(case, found.region.mask)
        if source is not None and not found.is_of_region:
            causes = (_AND.join((*causes, source[0])),)
            faults = (faults[0]._replace(remedy=source[1]),)
        elif source is not None:
            shown = (f"{source[0]} there",)
    misfit = math.sqrt(float((off**2).mean()))
    rank = float(len(found.faults) + found.is_fitted + (found.numbers > _FEW_NUMBERS))
    bits = measure_bits(case, found, misfit)
    is_exact = error[counted] <= 0.5 * measure_unit(case.y, case.dtype)[counted]
    exact = float(np.count_nonzero(is_exact)) / max(1, is_exact.size)
    of_statistics = None if found.region or found.is_fitted else weigh_statistics(case, found.variants[0])
    return Claim(
        faults, case.plan, causes, misfit, bits, found.region, shown, rank, exact, found.numbers,
        math.nan if of_statistics is None else of_statistics - OF_A_NUMBER * found.numbers,
        is_of_large_eps=_is_of_large_eps(case, found),
    )  # fmt: skip


def _is_of_large_eps(case: Case, found: Found) -> bool:
    """Whether a finding is a fitted eps that changes the median divisor by more than 2⁻¹⁰."""
    divisor = found.variants[0].divisor
    if divisor is None or not found.numbers or not any(row.fault is found.faults[0] for row in EPS):
        return False
    return float(np.median(np.abs(divisor / case.divisor - 1.0))) > _SMALL_CHANGE


_SMALL_CHANGE = 2.0**-10
"""The largest relative change of divisors by a small eps."""


def rank_claims(claims: Iterable[Claim], *, is_asked: bool = False) -> tuple[Claim, ...]:
    """Return the claims worth showing, by rank, the likeliest (lowest) first; one for each cause.

    A claim is shown if it has 20 bits of evidence; also if it explains all of y about as closely as a shown
    claim about all of y, with fewer fitted numbers. If a norm was requested (`is_asked`), claims of NaN and
    infinity are shown anyway. Empty if no claim has enough evidence.
    1 is added to the rank (less likely) if the claim fits much worse than the best of the lowest rank, has 20
    `bits_shown` less, or is a mere factor or term while another claim of that rank fits about as well. Claims
    of equal rank are in the order of `FAULTS`, those of recovered numbers as they were found, and those of a
    large eps that was fitted to y last.
    """
    every = [*claims]
    seen = [row.id for row in NOT_FINITE if is_asked]
    certain = [claim for claim in every if claim.bits >= CERTAIN or claim.fault.id in seen]
    if not certain:
        return ()
    named = [claim for claim in certain if not claim.is_of_any_errors]
    of_all = [claim for claim in named or certain if claim.region is None]
    certain += [claim for claim in every if claim.bits < CERTAIN and any(map(claim.fits_as_well_as, of_all))]
    least = min(claim.rank for claim in certain)
    first = [claim for claim in certain if claim.rank == least]
    best = min(claim.misfit for claim in first)
    shown = max((c.bits_shown for c in first if not math.isnan(c.bits_shown)), default=0.0)
    nearest = [claim for claim in first if claim.is_near(best) and not claim.bits_shown < shown - CERTAIN]
    plain = [claim for claim in nearest if not claim.ids <= ANY_NUMBER]
    less_likely = (
        not one.is_near(best) or one.bits_shown < shown - CERTAIN or (plain and one.ids <= ANY_NUMBER)
        for one in certain
    )
    ranked = [one._replace(rank=one.rank + bool(less)) for one, less in zip(certain, less_likely, strict=True)]
    order = {row.id: number for number, row in enumerate(FAULTS)}
    order |= dict.fromkeys((row.id for row in UNKNOWN.values()), order[UNKNOWN["gamma"].id])
    ranked.sort(key=lambda claim: (claim.rank, claim.is_of_large_eps, order[claim.fault.id]))
    return keep_first([claim for claim in ranked if not claim.is_of_any_errors])


def keep_first(claims: Sequence[Claim]) -> tuple[Claim, ...]:
    """Return the first of the claims with equal `cause`, in order."""
    unique = {claim.cause: claim for claim in reversed(claims)}
    return tuple(sorted(unique.values(), key=claims.index))
