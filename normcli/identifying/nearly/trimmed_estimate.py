"""gamma and beta that nobody gave, where a few values of y are wrong: fitted to the others.

Least squares spread a wrong value over its whole line. So the values furthest off are left out and the others
fitted again, until rounding explains all of those. Then the values left out are judged like the others.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from normcli.identifying.maps.line_fit import Fit, drop_wrong, leave_out_extremes
from normcli.identifying.models.weight import CERTAIN
from normcli.identifying.search.affine_estimate import (
    Target,
    list_betas,
    list_cases,
    list_usual,
    regress_each,
    take_few,
    weigh_fit,
)
from normcli.identifying.search.groups import widen
from normcli.identifying.search.hypothesis import Hypothesis
from normcli.identifying.search.samples import MOST_VALUES, Samples, list_grids
from normcli.norms.rules import EpsMode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from normcli.dtypes import Floats
    from normcli.identifying.search.hypothesis import Sample


_FIRST_EPS = 1e-5

_ROUGH = 0.02
"""Values that are further off than this part of y's spread are left out before eps is chosen."""

_HOPELESS = 16.0
"""If half of the values are this many times beyond their bounds at first, the norm is given up."""

_LEAST_LINES = 4
"""The fewest lines of the sample that is tried first."""

_NEAR, _MOST_EPS = 1.5, 6
"""Usual eps are tried whose residual is at most this many times the best's; and at most this many of them."""


def estimate_trimmed(samples: Samples, most: float) -> Iterator[Hypothesis]:
    """Yield the hypotheses with a gamma and a beta that most values agree with, by each usual eps.

    Parameters
    ----------
    samples : Samples
        Of tensors that no gamma and beta explains as a whole.
    most : float
        There are fewer pairs than this.
    """
    rows = min(len(samples.x), samples.count_samples())
    x, y, dtype = (
        widen(samples.x[:rows]),
        leave_out_extremes(widen(samples.y[:rows])),
        samples.scope.dtype,
    )
    if not np.isfinite(x).all() or np.isnan(y).all():
        return
    grids = [grid for grid in list_grids(x.shape) if rows == len(samples.x) or 0 not in grid.axes]
    for plain, every in list_cases(x, y, grids, most):
        grid, _, standard, *_ = plain.sample
        whole = replace(grid, shape=samples.x.shape)
        take = partial(samples.take_some, whole, MOST_VALUES, standard.divisor)  # which few hypotheses come to
        for axes in every:
            for shifts in list_betas(grid, axes, standard.divisor):
                yield from _fit_likely_eps(plain, Target(x, y, axes, dtype, shifts), take)


def _fit_likely_eps(
    plain: Hypothesis, target: Target, take: Callable[[], Sample | None]
) -> Iterator[Hypothesis]:
    """Yield a hypothesis of a sample with each place of eps, and eps that most values agree with."""
    least = _ROUGH * float(np.nanstd(target.y))
    fit = partial(_fit_line, plain, _FIRST_EPS, target, least=least)
    few, some = take_few(plain, target, _LEAST_LINES)
    hopeful = drop_wrong(partial(_fit_line, few, _FIRST_EPS, some, least=least), some.y, some.axes, _HOPELESS)
    left = drop_wrong(fit, target.y, target.axes, _HOPELESS) if hopeful else None
    sample = None if left is None else take()
    if left is None or sample is None:
        return
    rough = target._replace(y=left[0])
    for mode in (EpsMode.INSIDE, EpsMode.OUTSIDE):
        moved, usual = plain._replace(model=plain.model._replace(eps_mode=mode)), list_usual(target.dtype)
        fits = zip(usual, regress_each(moved, usual, rough), strict=True)
        over = {eps: float(np.nanmedian(fit.rest / fit.allowed)) for eps, fit in fits}
        near = [eps for eps in usual if over[eps] <= _NEAR * min(over.values())]
        for eps in near[:_MOST_EPS]:
            left = drop_wrong(partial(_fit_line, moved, eps, target), target.y, target.axes)
            if left is not None and weigh_fit(plain.sample, target._replace(y=left[0]), left[1]) >= CERTAIN:
                yield Hypothesis(
                    sample, target.read_step(left[1].lines), moved.model._replace(low=eps, high=eps)
                )


def _fit_line(plain: Hypothesis, eps: float, target: Target, y: Floats, least: float = 0.0) -> Fit:
    """Return gamma and beta of least squares for other values of y; bounds are at least `least`."""
    fit = next(regress_each(plain, [eps], target._replace(y=y)))
    return fit._replace(allowed=np.maximum(fit.allowed, least))
