"""A variance calculated as E[x²] − E[x]², which cancels far from zero and leaves traces in y.

Both terms are floats of about the size of mean², and their difference is a whole number of their last places.
Far from zero these steps are larger than the error of the variance that the values of a group show.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.ulp import measure_unit
from normcli.identifying.models.evidence import COMMON_EPS, Model, choose_eps
from normcli.identifying.models.weight import CERTAIN
from normcli.norms.divisors import DEVIATION
from normcli.norms.rules import EpsMode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from normcli.dtypes import Floats
    from normcli.identifying.models.standards import Standard


def fit_one_pass(
    standard: Standard, least: Floats, largest: Floats, dtype: np.dtype[Any]
) -> Iterator[tuple[Model, Floats]]:
    """Yield the eps with which every group's variance is a whole number of steps, and these variances.

    An eps of 0 stands inside the root and outside of it.

    Parameters
    ----------
    standard : Standard
        Of groups that were centred and divided by the deviation.
    least, largest : ndarray, shape (groups,)
        The bounds of each group's factor.
    dtype : numpy.dtype
        In which the terms were calculated.
    """
    if standard.divisor != DEVIATION or not np.all(np.isfinite(largest) & (standard.size > 0.0)):
        return
    variance, step = standard.size**2, measure_step(standard, dtype)
    with np.errstate(all="ignore"):
        low, high = variance / largest**2, variance / least**2
        bits = np.maximum(0.0, np.log2(step / (high - low)))
    if not bits.sum() >= CERTAIN:
        return
    most = step * (_STEPS + _STEPS_OF_ROOT * math.sqrt(standard.group_size))
    fitting = []
    for eps in COMMON_EPS:
        measured = _round_to_steps((low + high) / 2.0 - eps, step)
        between = (low <= measured + eps) & (measured + eps <= high)
        if np.all(between & (np.abs(measured - variance) <= most)):
            fitting.append(eps)
    if not fitting:
        return
    eps = choose_eps(min(fitting), max(fitting))
    measured = _round_to_steps((low + high) / 2.0 - eps, step)
    model = Model(DEVIATION, EpsMode.INSIDE, low=min(fitting), high=max(fitting), bits=_count(bits, measured))
    yield model, measured
    if model.low == 0.0:
        measured = _round_to_steps((low + high) / 2.0, step)
        most_outside = float((np.sqrt(high) - np.sqrt(measured)).min())
        yield model._replace(eps_mode=EpsMode.OUTSIDE, high=most_outside), measured


def _count(bits: Floats, measured: Floats) -> float:
    """Return the evidence of groups: groups of equal variance show one number, groups of variance 0 eps."""
    variances, first = np.unique(measured, return_index=True)
    return float(bits[first[variances > 0.0]].sum())


_STEPS, _STEPS_OF_ROOT = 4.0, 2.0
"""How many steps the difference may be off: a few, and as sums of many values go."""


def measure_step(standard: Standard, dtype: np.dtype[Any]) -> Floats:
    """Return the last place of each group's squared mean."""
    return measure_unit((standard.offset * standard.size) ** 2, dtype)


def _round_to_steps(values: Floats, step: Floats) -> Floats:
    rounded: Floats = np.maximum(np.round(values / step), 0.0) * step
    return rounded
