"""Which ℓp length groups were divided by: p and eps, from the bounds of what each was divided by."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.norms.divisors import LENGTH
from normcli.norms.rules import EpsMode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.identifying.models.model import Model
    from normcli.identifying.models.standards import Standard

_EUCLIDEAN = 2.0

USUAL_P = (1.0, _EUCLIDEAN, math.inf)
"""The p that are tried with every eps; any other is solved for, without."""

_OWN_ROUNDINGS = 2.0**-50
"""What the bounds themselves may be off, as a part of the length."""

_LEAST_P, _LARGEST_P = 2.0**-4, 2.0**6
"""p is looked for between these: beyond, every length is about that of the largest value or overflows."""

_MOST_VALUES = 1 << 15
"""Groups of more values are divided by no length of an unusual p: solving for it would take long."""

_GROUPS = 4
"""Groups that p is solved for; all are held against it."""

_STEPS = 48
"""Halvings of the interval of p: as many as double precision shows."""


def fit_lengths(
    standard: Standard, chosen: Selected, model: Model, low: Floats, high: Floats, *, solves: bool
) -> Iterator[tuple[Model, Floats]]:
    """Yield the lengths that lie between the bounds of what groups were divided by, each with those lengths.

    Parameters
    ----------
    standard : Standard
        Of groups that were not centred.
    chosen : ndarray of bool
        The groups that say something.
    model : Model
        What the models are made of.
    low, high : ndarray
        The bounds of the chosen groups.
    solves : bool
        Whether p is solved for where no usual one fits.
    """
    model, found = model._replace(divisor=LENGTH), False
    for p in USUAL_P:
        lengths = standard.measure_length(p)[chosen]
        for fitted in _fit_usual(model._replace(p=p), lengths, low, high):
            found = True
            yield fitted, lengths
    if found or not solves or standard.group_size > _MOST_VALUES:
        return
    p_between = solve_p(standard.rows[chosen][:_GROUPS], low[:_GROUPS], high[:_GROUPS])
    if p_between is not None and p_between not in USUAL_P:
        lengths = standard.measure_length(p_between)[chosen]
        yield from ((m, lengths) for m in _fit_without_eps(model._replace(p=p_between), lengths, low, high))


def _fit_usual(model: Model, length: Floats, low: Floats, high: Floats) -> Iterator[Model]:
    without = list(_fit_without_eps(model, length, low, high))
    yield from without
    if without:
        return
    if model.p == _EUCLIDEAN:
        yield from intersect(model._replace(eps_mode=EpsMode.INSIDE), low**2 - length**2, high**2 - length**2)
    yield from intersect(model._replace(eps_mode=EpsMode.OUTSIDE), low - length, high - length)


def _fit_without_eps(model: Model, length: Floats, low: Floats, high: Floats) -> Iterator[Model]:
    doubt = _OWN_ROUNDINGS * length
    if np.all(low - doubt <= length) and np.all(length <= high + doubt):
        square = float((high**2 - length**2).min()) if model.p == _EUCLIDEAN else 0.0
        least = float(length.min())
        yield model._replace(eps_mode=EpsMode.FLOOR, high=least, floor=least, square=square)


def intersect(model: Model, low: Floats, high: Floats) -> Iterator[Model]:
    """Yield a model with the eps that all groups allow, if there are any."""
    least, largest = max(0.0, float(low.max())), float(high.min())
    if least <= largest and least < np.inf:
        yield model._replace(low=least, high=largest)


def solve_p(rows: NDArray[Any], low: Floats, high: Floats) -> float | None:
    """Return the p with the fewest digits whose lengths of groups lie between bounds; None if none does.

    Lengths fall as p grows, so that the bounds of each group's length are bounds of p.

    Examples
    --------
    >>> rows = np.array([[1.0, 2.0, 4.0], [3.0, 1.0, 5.0]])
    >>> lengths = (rows**1.5).sum(axis=1) ** (1 / 1.5)
    >>> solve_p(rows, lengths * (1 - 1e-7), lengths * (1 + 1e-7))
    1.5
    """
    size = np.nan_to_num(np.abs(rows.astype(np.float64)))  # NaN counts as no value
    largest = size.max(axis=1, initial=0.0)
    informative = (largest > 0.0) & np.isfinite(high) & (low > 0.0)
    if np.count_nonzero(informative) < _LEAST_GROUPS:
        return None
    parts = size[informative] / largest[informative, None]
    between = _bisect(parts, *(bound[informative] / largest[informative] for bound in (high, low)))
    if between is None:
        return None
    below, above = between
    rounded = (float(f"{(below + above) / 2.0:.{digits}g}") for digits in range(1, 17))
    return next((p for p in rounded if below <= p <= above), None)


_LEAST_GROUPS = 2
"""One group has a length for some p whatever it was divided by."""


def _bisect(parts: Floats, longest: Floats, shortest: Floats) -> tuple[float, float] | None:
    """Return the p between which no row, of which the largest value is 1, is longer or shorter than its bounds.

    None as soon as it shows that there is none.
    """
    logarithms = np.log(np.stack((longest, shortest)))
    low, high = (np.full(logarithms.shape, bound) for bound in (_LEAST_P, _LARGEST_P))
    for _ in range(_STEPS):
        p = np.sqrt(low * high)
        is_long = np.log((parts ** p[..., None]).sum(axis=-1)) / p > logarithms
        low, high = np.where(is_long, p, low), np.where(is_long, high, p)
        if low[0].max() > high[1].min():
            return None
    least, most = np.sqrt(low * high)
    return float(least.max()), float(most.min())
