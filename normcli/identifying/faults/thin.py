"""Some values of some groups, which tell of most variants that they explain little before all are tried."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING

from normcli.identifying.faults.variant import cut
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from normcli.identifying.faults.case import Case
    from normcli.identifying.faults.variant import Variant

_SCREENED = 1 << 11
"""Values that a variant is tried on before all are."""

_LEAST_PLACES = 8
"""Places that are left of a longer axis."""


class Thin(NamedTuple):
    """Some values of a case.

    Parameters
    ----------
    case : Case
        Of these values, with the statistics of all.
    places : tuple of slice
        Where they stand.
    """

    case: Case
    places: tuple[slice, ...]

    def share(self, variant: Variant) -> float:
        """Return the part of these values that a variant explains."""
        mean, divisor, square, gamma, beta, result, slope, noise = (
            values if values is None or not values.ndim else cut(values, self.places)
            for values in (
                variant.mean, variant.divisor, variant.square, variant.gamma, variant.beta, variant.result,
                variant.slope, variant.noise,
            )
        )  # fmt: skip
        thin = variant._replace(
            mean=mean,
            divisor=divisor,
            square=square,
            gamma=gamma,
            beta=beta,
            result=result,
            slope=slope,
            noise=noise,
        )
        return float(self.case.explains(self.case.predict(thin)).mean())


@functools.lru_cache(maxsize=2)  # of one case, each variant asks
def thin_out(case: Case) -> Thin | None:
    """Return some values of some groups, with the statistics of all their values; None where there are few."""
    if case.y.size <= _SCREENED:
        return None
    steps, size = [1] * case.x.ndim, case.y.size
    groups = [axis for axis in range(case.x.ndim) if axis not in case.axes]
    for axis in sorted(range(case.x.ndim), key=lambda axis: (axis in groups, -case.x.shape[axis])):
        steps[axis] = min(max(1, size // _SCREENED), max(1, case.x.shape[axis] // _LEAST_PLACES))
        size //= steps[axis]
    places = tuple(slice(None, None, step) for step in steps)
    x, y, gamma, beta = (cut(values, places) for values in (case.x, case.y, case.gamma, case.beta))
    exact = None if case.exact is None else cut(case.exact, places)
    stored = cut(case.mean, places), cut(case.square, places)
    gate = None if case.gate is None else case.gate._replace(values=cut(case.gate.values, places))
    thin = replace(case, x=x, y=y, gamma=gamma, beta=beta, exact=exact, stored=stored, whole=case.count)
    return Thin(replace(thin, gate=gate), places)
