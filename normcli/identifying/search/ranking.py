"""Which of several matches is named first."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from normcli.identifying.search.affine import NO_AFFINE, WAYS
from normcli.norms.table import NORMS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from normcli.identifying.search.match import Match


def rank_matches(matches: Iterable[Match]) -> list[Match]:
    """Return matches in order: a usual eps first, then by the share of equal values, then what is used most."""
    matches = list(matches)
    most = max((match.equal for match in matches), default=1.0)

    def rank(match: Match) -> tuple[Any, ...]:
        return (
            not match.is_usual,
            most == 1.0 and (1.0 - match.equal) * match.compared > _FEW,
            int((most - match.equal) / BY_LUCK),
            not match.has_default_eps,
            _round_distance(match.max_abs),
            not match.by_default,
            match.affine != NO_AFFINE.way and not NORMS[match.norm].parameter_names,
            match.users == 0,
            match.groups == 1,  # of all channels: layer normalization by another name
            -match.users,
            list(WAYS).index(match.affine),
            match.ddof,
            list(NORMS).index(match.norm),
            -match.equal,
        )

    return sorted(matches, key=rank)


BY_LUCK = 0.1
"""Shares of equal values that differ by less differ by luck."""


_FEW = 4.0
"""So many values that are not the exact ones, rounded, may be an accident where another match gives all."""


def _round_distance(distance: float) -> float:
    """Return a distance's exponent to base 4: what differs by less differs by luck."""
    if distance == 0.0:
        return -math.inf
    return math.frexp(distance)[1] // 2 if math.isfinite(distance) else math.inf
