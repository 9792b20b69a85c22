"""What was found, as claims with their evidence, the likeliest first."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.dtypes import get_eps, is_half
from normcli.identifying.faults.bits import measure_bits
from normcli.identifying.faults.claim import Claim, Found
from normcli.identifying.faults.every import FAULTS
from normcli.identifying.faults.sources import find_source
from normcli.identifying.faults.tables.parts import NOT_FINITE
from normcli.identifying.faults.unknown import show_used
from normcli.identifying.models.weight import CERTAIN

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from normcli.identifying.faults.case import Case


_FEW_NUMBERS = 8
"""Of more numbers that were found, a row is less likely than one with fewer."""


_ALIKE, _CLOSE = 3.0, 0.05
"""A claim as likely as the best is so many times as far off, or so far in units of what rounding makes."""


_NEAR_ROUNDINGS = 8.0
"""A number that moves no value by more roundings of half precision may be what its sums make."""


def may_be_rounding(case: Case, found: Found) -> bool:
    """Whether sums of half precision may give what a row gives with numbers that were found."""
    if not is_half(case.dtype) or found.region is not None or not any(one.numbers for one in found.variants):
        return False
    right, moved = case.right.values, np.abs(found.prediction.values - case.right.values)
    return bool(np.nanmax(moved - _NEAR_ROUNDINGS * get_eps(case.dtype) * (np.abs(right) + 1.0)) <= 0.0)


def make_claim(case: Case, found: Found) -> Claim:
    """Return what was found as a claim, with the evidence for it."""
    error = np.abs(case.y - found.prediction.values)
    counted = np.isfinite(error) if found.region is None else np.isfinite(error) & ~found.region.mask
    off = np.where(counted, error / found.prediction.unit, 0.0)
    causes = tuple(
        fault.words.format(**variant.values)
        for fault, variant in zip(found.faults, found.variants, strict=True)
    )
    faults, shown = found.faults, show_used(case, found) if found.is_fitted else ()
    if found.region is not None and len(faults) == 1 and faults[0].id.startswith("where-"):
        source = find_source(case, found.region.mask)
        if source is not None and not found.is_of_region:
            causes, faults = (*causes, source.words), (faults[0]._replace(remedy=source.remedy),)
        elif source is not None:
            shown = (f"{source.words} there",)
    misfit = math.sqrt(float((off**2).mean()))
    claim = Claim(
        faults, case.plan, causes, misfit=misfit, bits=measure_bits(case, found, misfit),
        compared=case.y.size, differing=int(case.differs.sum()), region=found.region,
        shown=shown,
    )  # fmt: skip
    numbers = sum(variant.numbers for variant in found.variants)
    return claim._replace(rank=float(len(found.faults) + found.is_fitted + (numbers > _FEW_NUMBERS)))


def rank_claims(claims: Iterable[Claim], *, is_asked: bool = False) -> tuple[Claim, ...]:
    """Return the claims with evidence enough, the likeliest first, each cause once; ties have one rank.

    What is not finite of a norm that was asked for is seen at once.
    """
    seen = [row.fault.id for row in NOT_FINITE if is_asked]
    certain = [claim for claim in claims if claim.bits >= CERTAIN or claim.fault.id in seen]
    if not certain:
        return ()
    least = min(claim.rank for claim in certain)
    best = min(claim.misfit for claim in certain if claim.rank == least)
    ranked = [claim._replace(rank=claim.rank + (claim.misfit > _ALIKE * best + _CLOSE)) for claim in certain]
    order = {row.fault.id: number for number, row in enumerate(FAULTS)}
    ranked.sort(key=lambda claim: (claim.rank, order[claim.fault.id]))
    return keep_first(ranked)


def keep_first(claims: Sequence[Claim]) -> tuple[Claim, ...]:
    """Return the first claim of each cause, in order."""
    unique = {claim.cause: claim for claim in reversed(claims)}
    return tuple(sorted(unique.values(), key=claims.index))
