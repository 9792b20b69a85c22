"""Faults of centre and divisor together: other statistics than the norm's, or those of the first rows alone."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.checking.fault import Row
from normcli.engine.inputs import NO_INPUTS
from normcli.identifying.faults.thin_case import LIKELY, thin_out
from normcli.identifying.faults.variant import Variant, find_share, is_near
from normcli.identifying.models.known_maps import CENTRES, SPREADS
from normcli.norms.plan import make_plan
from normcli.results.calculate import calculate

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from normcli.identifying.faults.case import Case

_OWN = "the norm's own divisor"

_TOLD = frozenset((_OWN, *tuple(CENTRES)[:3], *tuple(SPREADS)[:6]))
"""The centres and divisors that rows of their own have, for norms of mean and variance."""

_NORMS = frozenset(
    (
        ("the minimum", "the range"),
        ("the median", "the quartile range (linear)"), ("nothing", "the largest |x|"), ("nothing", "the sum"),
        ("the mean", "the standard deviation"), ("the mean", "the standard deviation of n − 1"),
    )
)  # fmt: skip
"""The centres and divisors that are those of norms, which have a name that says more."""

_SHARES = 0.8, 0.75, 0.7, 0.9, 2.0 / 3.0, 0.67, 0.6, 0.5
"""The shares of a table that scalers are fitted to, as the part for training; the usual ones first."""


def _scale_otherwise(case: Case) -> Iterator[Variant]:
    """Yield variants with another centre and divisor, of those that are within 2 % of the ones that y shows.

    Left out are those of another norm, and those that other rows have. Nothing if a sample of y is no line of x
    in its groups.
    """
    few, shape, used = thin_out(case).case, case.own_mean.shape, case.used
    if find_share(few.explains(few.predict(Variant(*few.used)))) < LIKELY:
        return
    rows = np.sort(case.lay_rows(case.x).reshape(case.own_mean.size, -1))
    spreads = {name: measure(rows).reshape(shape) for name, measure in SPREADS.items()}
    spreads |= {_OWN: case.divisor} if case.has_moments else {}
    shown = [name for name, divisor in spreads.items() if is_near(used.divisor, divisor)]
    centres = {name: measure(rows).reshape(shape) for name, measure in CENTRES.items()} if shown else {}
    near = (name for name, mean in centres.items() if is_near(used.divisor, used.divisor + used.mean - mean))
    for names in itertools.product(near, shown):
        if names not in _NORMS and not (case.has_moments and _TOLD.issuperset(names)):
            mean, divisor = centres[names[0]], spreads[names[1]]
            values = dict(zip(("centre", "divisor"), names, strict=True))
            yield Variant(mean, np.where(divisor == 0.0, 1.0, divisor), values=values)


def _fit_to_part(case: Case) -> Iterator[Variant]:
    """Yield variants of a norm of extremes or quantiles, measured in a usual share of the first rows."""
    norm, shape = case.plan.norm, case.own_mean.shape
    names = norm.centre.statistic, norm.divisor.spread
    wide = [axis for axis in case.axes if case.x.shape[axis] > 1]
    for axis in wide if norm.is_by_order else ():
        length = case.x.shape[axis]
        for count in dict.fromkeys(cut(share * length) for share in _SHARES for cut in (math.floor, math.ceil)):
            some = case.x.take(range(count), axis)
            plan = make_plan(case.plan.request, some.shape, some.dtype)
            known = calculate(plan, some, NO_INPUTS, statistics_alone=True).statistics
            mean, divisor = (np.zeros(shape) if name is None else known[name].reshape(shape) for name in names)
            words = {"what": "statistics are", "part": count, "length": length, "name": case.name_axis(axis)}
            yield Variant(mean, np.where(divisor == 0.0, 1.0, divisor), values=words, numbers=1)


SCALING: Sequence[Row] = (Row("stats-scaler", _scale_otherwise), Row("stats-partial", _fit_to_part))
"""The faults of centre and divisor together, of any norm."""
