"""A sample of a case's values, which tells of most variants that they explain little before all are tried."""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import get_eps, is_half
from normcli.identifying.faults.variant import MOST, Variant, cut_at, find_share
from normcli.identifying.models.divisor_fit import COMMON_EPS
from normcli.identifying.sampling import thin_axes
from normcli.identifying.search.screen import go_together
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from normcli.identifying.faults.case import Case

LIKELY = 0.3
"""The least part of y's values that a row explains if it holds in a part of y."""


_LARGER, _LEAST_UNIT = 1.0 + 2.0**-30, 2.0**-24
"""A factor and a term that make a bound a little larger; the term is the unit of float16's smallest numbers."""


class Thin(NamedTuple):
    """A sample of a case's values, in which variants are tried before all values are.

    Parameters
    ----------
    case : Case
        The sampled values, with the statistics of all values.
    places : tuple of slice
        The index of the sample in the view.
    """

    case: Case
    places: tuple[slice, ...]

    def cut(self, variant: Variant) -> Variant:
        """Return a variant of the whole case with each of its arrays cut to the sample."""
        if all(place.step == 1 for place in self.places):
            return variant
        given = {name: some for name, some in variant._asdict().items() if isinstance(some, np.ndarray)}
        few: dict[str, Any] = {name: cut_at(some, self.places) for name, some in given.items() if some.ndim}
        return variant._replace(**few)

    def is_likely(self, variant: Variant) -> bool:
        """Whether the result of a variant, cut to the sample, is within rounding of at least 15 % of it."""
        case, least = self.case, LIKELY / 2.0
        return self._may_explain(variant, least) and find_share(case.explains(case.predict(variant))) >= least

    @np.errstate(all="ignore")
    def _may_explain(self, variant: Variant, least: float) -> bool:
        """Whether a share `least` of the sample is no further from a variant's values than any bound may be.

        It is a cheap test: rounding bounds are at most 1/16 of a result and of gamma, beside a last rounding.
        """
        case = self.case
        of_half = case.gate is not None or variant.slope is not None
        if variant.noise is not None or (of_half and is_half(case.dtype)):
            return True  # whose bounds may be larger
        gamma, *_, values = case.calculate(variant)
        most = (MOST + get_eps(case.dtype)) * _LARGER
        far = np.abs(case.y - values) > most * (np.abs(gamma) + np.abs(values)) + _LEAST_UNIT
        return bool(far.size - np.count_nonzero(far) >= least * far.size)


@functools.lru_cache(maxsize=2)  # of one case, each variant asks
def thin_out(case: Case) -> Thin:
    """Return a sample of about 2,048 values of a case, or all of fewer, with the statistics of all values."""
    places = thin_axes(case.x.shape, first=case.axes)
    given = {name: getattr(case, name) for name in ("x", "y", "gamma", "beta", "exact", "counted")}
    few: dict[str, Any] = {name: cut_at(values, places) for name, values in given.items() if values is not None}
    stored = cut_at(case.mean, places), cut_at(case.square, places)
    gate = None if case.gate is None else case.gate._replace(values=cut_at(case.gate.values, places))
    whole = cut_at(case.counts, places) if case.counts.ndim else case.counts
    return Thin(replace(case, **few, stored=stored, whole=whole, gate=gate, unmasked=None), places)


@functools.lru_cache(maxsize=2)  # each table of rows asks of a case
def goes_with_x(case: Case) -> bool:
    """Whether y may depend on x, or on the right result, value by value, as a sample shows.

    If not, only rows in another order can explain y. True with a gate or a residual, and for a y without
    finite values or with equal values.
    """
    few = thin_out(case).case
    beside = (case.gate, case.gated_input, case.addends)
    shows = np.isfinite(few.y).any() and (few.y != few.y.flat[0]).any()  # zeros may be what overflowed
    is_alone = all(each is None for each in beside) and bool(shows)
    return not is_alone or go_together((few.x, np.broadcast_to(few.right.values, few.y.shape)), few.y)


def choose_case_eps(case: Case) -> Case:
    """Return the case with the usual eps that makes most values of a sample right, if at least half are.

    An eps that is a floor is tried too, after those that are added. Otherwise return the case as it is; also if
    its own eps makes about as many right, without eps, and for divisors not from a variance or mean square.
    """
    if not case.has_moments or case.plan.spec.eps is None:
        return case
    with np.errstate(all="ignore"):
        few = thin_out(case).case
        usual = dict.fromkeys((case.eps, *COMMON_EPS))
        tried = [(eps, few.root(few.square, eps)) for eps in usual]
        tried += [(eps, np.sqrt(np.maximum(few.square, eps))) for eps in usual]
        shares = [float(few.explains(few.predict(Variant(divisor=divisor))).mean()) for _, divisor in tried]
    best = int(np.argmax(shares))
    is_by_luck = shares[best] < min(1.0, shares[0] + 1.0 / math.sqrt(few.y.size))
    if tried[best][0] == case.eps or shares[best] < _HALF or is_by_luck:
        return case
    return replace(case, plan=case.plan.change_spec(eps=tried[best][0]))


_HALF = 0.5
