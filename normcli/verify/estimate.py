"""gamma and beta that nobody gave: fitted to the values, one pair for each channel."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import get_eps, is_half
from normcli.norms.table import EpsMode
from normcli.verify.affine import ESTIMATED, NO_AFFINE, AffineStep
from normcli.verify.evidence import COMMON_EPS, MOMENTS, Model, standardize
from normcli.verify.groups import put_back, take_groups
from normcli.verify.hypothesis import Hypothesis, Sample
from normcli.verify.plain import fit_lines
from normcli.verify.weight import CERTAIN

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from normcli.dtypes import Floats
    from normcli.norms.grid import Grid


_HOPEFUL = 0.3
"""Hypotheses that leave more of the spread than this unexplained with every likely eps are not pursued."""

_LIKELY_EPS = (1e-6, 1e-5, 1e-3)
_BESIDE = 0.05
"""Likely eps are tried first where they are no smaller than this part of the least variance."""

_ROUNDINGS, _ROUNDINGS_OF_HALF = 16.0, 1.0
"""Units of the result's last place that a correct kernel may be off; half precision has sums of float32."""


def estimate(x: Floats, y: Floats, dtype: np.dtype[Any], grids: Sequence[Grid]) -> Iterator[Hypothesis]:
    """Yield the hypotheses that reproduce y with some gamma and beta along a channel axis or the reduced axes.

    Parameters
    ----------
    x, y : ndarray
        Of one shape.
    dtype : numpy.dtype
        In which y was rounded.
    grids : sequence of Grid
    """
    for grid, divisor in itertools.product(grids, MOMENTS):  # any other differs by a scale and a shift
        rows = take_groups(grid, x)
        if not np.isfinite(rows).all():
            continue
        sample = Sample(grid, np.arange(grid.group_count), standardize(rows, divisor), take_groups(grid, y))
        for axes in _choose_parameter_axes(grid):
            bits = _count_bits(grid, axes, dtype, is_centred=sample.standard.centred)
            if bits >= CERTAIN:
                yield from _pursue(
                    Hypothesis(sample, NO_AFFINE, Model(divisor, EpsMode.INSIDE, bits=bits)), y, axes, dtype
                )


def _count_bits(grid: Grid, axes: tuple[int, ...], dtype: np.dtype[Any], *, is_centred: bool) -> float:
    """Return how many bits y shows of the groups' statistics beyond the numbers that are fitted.

    Every group shows a factor, and where its 0 lies; a gamma and a beta for each group, or for all groups
    together, take as many away, and eps takes one. Single values with one gamma show no more than they are.
    """
    if is_centred and grid.group_size == 2:  # −1 and 1 are the order of two values, no more
        return 0.0
    numbers = 2 if is_centred else 1
    kept = dict(zip(grid.kept, grid.stats_shape, strict=True))
    taken = math.prod(kept.get(axis, 1) for axis in axes)
    lines = math.prod(length if axis in axes else kept.get(axis, 1) for axis, length in enumerate(grid.shape))
    shown = lines * min(numbers, math.prod(grid.shape) // lines)
    parameters = math.prod(grid.shape[axis] for axis in axes)
    left = min(numbers * (grid.group_count - taken), shown - numbers * parameters) - 1
    return max(0.0, left * -math.log2(_ROUNDINGS * get_eps(dtype)))


def _pursue(plain: Hypothesis, y: Floats, axes: tuple[int, ...], dtype: np.dtype[Any]) -> Iterator[Hypothesis]:
    """Yield a hypothesis with each place of eps, if some eps fit."""
    least = float(plain.sample.standard.size.min(initial=math.inf)) ** 2
    shown = [0.0, *(eps for eps in _LIKELY_EPS if eps > _BESIDE * least)]
    models = (plain.model._replace(low=eps, high=eps) for eps in shown)
    rests = (_regress(plain._replace(model=model), y, axes, dtype)[1] for model in models)
    if all(rest > _HOPEFUL * float(np.std(y)) for rest in rests):
        return
    tried = sorted(COMMON_EPS)
    for mode in (EpsMode.INSIDE, EpsMode.OUTSIDE):
        fitted = {}
        for eps in tried:
            hypothesis = plain._replace(model=plain.model._replace(eps_mode=mode, low=eps, high=eps))
            affine, _, explained = _regress(hypothesis, y, axes, dtype)
            if explained:
                fitted[eps] = hypothesis._replace(affine=affine)
        if fitted:
            best = next(fitted[eps] for eps in COMMON_EPS if eps in fitted)
            high = math.inf if tried[-1] in fitted else max(fitted)
            yield best._replace(model=best.model._replace(low=min(fitted), high=high))


def _choose_parameter_axes(grid: Grid) -> Iterator[tuple[int, ...]]:
    """Yield the axes that gamma and beta may run along: a channel axis, or the axes reduced.

    Where groups are larger than whole channels, any scale and shift of a channel fits: that proves nothing.
    """
    rank = len(grid.shape)
    kept = {axis for axis, length in enumerate(grid.shape) if length > 1} - set(grid.axes)
    channels = sorted({min(1, rank - 1), rank - 1})
    yield from ((axis,) for axis in channels if kept - {axis} or kept == {axis})
    if grid.split is None and len(grid.axes) > 1 and len(grid.axes) < rank:
        yield grid.axes


def _regress(
    hypothesis: Hypothesis, y: Floats, axes: tuple[int, ...], dtype: np.dtype[Any]
) -> tuple[AffineStep, float, bool]:
    """Return gamma and beta, the largest distance that they leave, and whether rounding explains all of it."""
    sample, is_centred = hypothesis.sample, hypothesis.sample.standard.centred
    h = put_back(sample.grid, hypothesis.standardize(hypothesis.model.low))
    lines = fit_lines(h, y, axes, through_zero=not is_centred)
    gamma, beta = lines.scale, lines.shift
    rest = np.abs(y - lines.apply(h))
    offset = float(sample.standard.offset.max(initial=0.0))
    terms = np.abs(y) + (np.abs(gamma) * (float(is_centred) + np.abs(h)) + np.abs(beta)) * (1.0 + offset)
    roundings = _ROUNDINGS_OF_HALF if is_half(dtype) else _ROUNDINGS
    excess = rest / (roundings * get_eps(dtype) * np.where(terms > 0.0, terms, 1.0))
    affine = AffineStep(ESTIMATED, gamma, beta if is_centred else None)
    return affine, float(rest.max()), float(excess.max()) <= 1.0
