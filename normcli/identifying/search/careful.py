"""Whether a kernel of half precision whose sums are of float32 gives a tensor, with some gamma and beta.

Such a kernel leaves each value its own last roundings and nothing else. A statistic that was taken in half
precision moves a whole group by one factor or shift: no gamma and beta, which all groups share, take that up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.ulp import measure_unit
from normcli.identifying.maps.lines import fit_within
from normcli.identifying.models.bounds import choose_careless, measure_noise
from normcli.identifying.search.affine import AffineStep
from normcli.identifying.search.groups import put_back

if TYPE_CHECKING:
    from normcli.dtypes import Floats
    from normcli.identifying.models.bounds import Level
    from normcli.identifying.search.hypothesis import Hypothesis

_HALF_UNIT = 0.5


def fit_carefully(
    hypothesis: Hypothesis, eps: float, y: Floats, axes: tuple[int, ...], dtype: np.dtype[Any]
) -> AffineStep | None:
    """Return the gamma and beta with which every value is rounded once, or as often as cast orders do; or None.

    Parameters
    ----------
    hypothesis : Hypothesis
        Of all groups, with a gamma and a beta that are nearly right; x̂ is rounded first or not.
    eps : float
    y : ndarray
    axes : tuple of int
        Those that gamma and beta run along.
    dtype : numpy.dtype
        Of y, of half precision.
    """
    if not np.isfinite(y).all():
        return None
    level, standard, grid = choose_careless(dtype), hypothesis.sample.standard, hypothesis.sample.grid
    factors = hypothesis.measure_factors(eps)
    rows = standard.values * factors
    noise = measure_noise(standard, level).limit(factors, rows)
    near = hypothesis.affine
    assert near.scale is not None  # of every gamma that was fitted
    for rounds_to in (None, dtype):
        first = AffineStep(near.way, rounds_to=rounds_to)
        least, most = (put_back(grid, first.apply(values)) for values in (rows - noise, rows + noise))
        middle = (least + most) / 2.0
        slack = _allow(near._replace(rounds_to=rounds_to), middle, y, level, dtype)
        slack = slack + np.abs(near.scale) * (most - least) / 2.0
        lines = fit_within(middle, y, slack, axes, through_zero=near.shift is None)
        if lines is not None:
            shift = None if near.shift is None else lines.shift
            return near._replace(scale=lines.scale, shift=shift, rounds_to=rounds_to)
    return None


def _allow(affine: AffineStep, standardized: Floats, y: Floats, level: Level, dtype: np.dtype[Any]) -> Floats:
    """Return how far y may be off behind x̂: where x̂ is rounded first, so may be its product with gamma."""
    slack = affine.allow(y, dtype, level)
    if affine.shift is None or affine.scale is None or affine.rounds_to is None:
        return slack
    return slack + _HALF_UNIT * measure_unit(standardized * affine.scale, dtype)
