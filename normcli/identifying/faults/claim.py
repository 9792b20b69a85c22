"""How a fault is recognized, and the claim that a tensor has it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from normcli.checking.fault import Fault
    from normcli.dtypes import Selected
    from normcli.identifying.faults.places import Region
    from normcli.identifying.faults.variant import Prediction, Variant
    from normcli.norms.plan import Plan


REGION_IDS = frozenset(("where-index", "where-region", "where-values"))
"""Faults of which nothing is known but where they are."""


class Found(NamedTuple):
    """A row with the variant that explains values of y."""

    faults: tuple[Fault, ...]
    variants: tuple[Variant, ...]
    prediction: Prediction
    explained: Selected
    region: Region | None = None

    @property
    def share(self) -> float:
        """The part of the values that it explains."""
        return float(self.explained.mean())

    @property
    def is_fitted(self) -> bool:
        """Whether each group has a number of its own."""
        return any(variant.is_fitted for variant in self.variants)

    @property
    def is_of_region(self) -> bool:
        """Whether nothing is known of a region but that it is wrong."""
        return self.faults[-1].id in REGION_IDS

    def moves(self, other: Found) -> bool:
        """Whether any value is not what another prediction says."""
        apart = np.abs(self.prediction.values - other.prediction.values)
        return bool(np.any(apart > self.prediction.allowed + other.prediction.allowed))


class Claim(NamedTuple):
    """That a tensor is what a norm makes with certain faults.

    Parameters
    ----------
    faults : tuple of Fault
        One at a joint; the first is the one that explains most.
    plan : Plan
        Of the norm that it should be.
    causes : tuple of str
        The clause of each fault.
    misfit : float
        How far off values are: the root mean square, in units of what rounding may make.
    bits : float
        The evidence.
    compared : int
        Values.
    differing : int
        Values that the norm without these faults does not explain.
    region : Region or None
        Where it holds; None for everywhere.
    shown : tuple of str
        Numbers that were used, beside the right ones; none where the causes say it.
    rank : float
        The likelier claims have less; equal where the data cannot tell them apart.
    """

    faults: tuple[Fault, ...]
    plan: Plan
    causes: tuple[str, ...]
    misfit: float
    bits: float
    compared: int
    differing: int
    region: Region | None = None
    shown: tuple[str, ...] = ()
    rank: float = math.inf

    @property
    def fault(self) -> Fault:
        """The fault that is named first."""
        return self.faults[0]

    @property
    def ids(self) -> frozenset[str]:
        """The ids of its faults."""
        return frozenset(fault.id for fault in self.faults)

    def leave_out(self, ids: frozenset[str]) -> Claim:
        """Return the claim without the faults of some ids, where nobody asked for another norm."""
        told = [pair for pair in zip(self.faults, self.causes, strict=True) if pair[0].id not in ids]
        faults, causes = zip(*told, strict=True)
        return self._replace(faults=faults, causes=causes)

    @property
    def evidence(self) -> tuple[str, ...]:
        """What shows it."""
        if self.region is not None:
            return (*self.shown, *(["rounding explains every other value"] if self.region.words else []))
        return (*self.shown, "with that, rounding explains every value")

    @property
    def cause(self) -> str:
        """All of it as a clause."""
        said = ", and ".join(self.causes)
        return said if self.region is None else f"{said} {self.region.words}".rstrip()
