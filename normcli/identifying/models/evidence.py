"""What values say of the norm that made them: per group, which factors agree; over all groups, which eps.

A group's values are turned into x̂ with eps = 0, so that eps and ddof leave one unknown: the factor r of
y = r · x̂, which is 1 without them. Every value, with what rounding allows it, bounds r from both sides; if the
bounds leave nothing, the group was not made so. The bounds of r are bounds of eps, which all groups must share.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.identifying.models.lengths import USUAL_P, fit_lengths, intersect
from normcli.identifying.models.model import Model
from normcli.identifying.models.standards import MOMENTS, Standard
from normcli.identifying.models.weight import Seen, is_odd_eps, weigh
from normcli.norms.rules import EpsMode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from normcli.dtypes import Floats


_OWN_ROUNDINGS = 2.0**-50
"""What the bounds themselves may be off, in units of the variance or the deviation."""


def fit_models(standard: Standard, least: Floats, largest: Floats) -> Iterator[Model]:
    """Yield the divisors that agree with the factors of all groups, which have two values at least."""
    informative = (standard.size > 0.0) & np.isfinite(largest)
    if not informative.any():
        return
    every, counts = (largest, least), standard.counts
    is_1 = np.all(least <= 1.0 + _OWN_ROUNDINGS) and np.all(largest >= 1.0 - _OWN_ROUNDINGS)
    size, least, largest = standard.size[informative], least[informative], largest[informative]
    seen = Seen(least, largest, size, standard.offset[informative], standard.group_size, standard.centred)
    divisor, weighed = standard.divisor, []
    if divisor not in MOMENTS:
        if is_1:
            yield _weigh(Model(divisor, EpsMode.FLOOR), seen)
        return
    with np.errstate(all="ignore"):
        for ddof in (0, 1) if standard.centred else (0,):
            root = np.sqrt(counts / (counts - ddof))
            floor = float((size * root[informative]).min())
            for mode, power in ((EpsMode.INSIDE, 2.0), (EpsMode.OUTSIDE, 1.0)):
                low, high = (_bound_eps(standard, bound, root, power) for bound in every)
                doubt = _OWN_ROUNDINGS * standard.size**power
                fitting = intersect(Model(divisor, mode, ddof, floor=floor), low - doubt, high + doubt)
                weighed += [_weigh(model, seen) for model in fitting]
        yield from weighed
        if standard.centred:
            return
        bounds, plain = (size / largest, size / least), Model(divisor, EpsMode.FLOOR)
        for model, lengths in fit_lengths(standard, informative, plain, *bounds, solves=not weighed):
            yield _weigh(model, seen._replace(size=lengths), numbers=model.p not in USUAL_P)


def _bound_eps(standard: Standard, bound: Floats, root: Floats, power: float) -> Floats:
    """Return what is added to a power of each group's size times `root` where its factor is a bound."""
    return np.asarray(standard.unit**power / bound**power - (standard.size * root) ** power)


def _weigh(model: Model, seen: Seen, numbers: int = 0) -> Model:
    """Return a model with the evidence for it, to which so many numbers were fitted beside eps."""
    eps = 0.0 if model.low == 0.0 else choose_eps(model.low, model.high)
    is_fitted = eps not in COMMON_EPS
    is_odd = is_fitted and is_odd_eps(eps, seen.size if model.eps_mode is EpsMode.OUTSIDE else seen.size**2)
    bits = weigh(seen, eps=eps, is_fitted=is_fitted, is_odd=is_odd, numbers=numbers)
    return model._replace(bits=bits, is_odd=is_odd)


COMMON_EPS = (1e-5, 1e-6, 1e-3, 1e-12, 1e-8, 1e-7, 0.0, 1e-9, 1e-4, 1e-2, 1e-10, 2.0**-23, 2.0**-52, 1e-1)
"""The likelier ones first: those that are defaults of frameworks."""


LENGTH_EPS = 1e-12
"""The default of the frameworks' ℓp norms."""


def choose_eps(low: float, high: float, preferred: float | None = None) -> float:
    """Return the simplest eps between bounds: a common one, or the one with the fewest digits.

    Examples
    --------
    >>> choose_eps(9.7e-6, 1.04e-5), choose_eps(0.0123, 0.0127)
    (1e-05, 0.0125)
    """
    for eps in COMMON_EPS if preferred is None else (preferred, *COMMON_EPS):
        if low <= eps <= high:
            return eps
    middle = low if math.isinf(high) else (low + high) / 2.0
    for digits in range(17):
        eps = float(f"{middle:.{digits}e}")
        if low <= eps <= high:
            return eps
    return middle
