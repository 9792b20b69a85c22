"""The search for a norm with unknown gamma and beta, which are fitted to the values of y.

For y of half precision, a kernel with sums in float32 has no other error than each value's last roundings. A
statistic that was rounded to half precision changes a whole group by one factor or shift, which gamma and beta
cannot undo, since all groups share them.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import find_type, get_eps, is_half
from normcli.identifying.models.divisor_fit import Model, list_usual
from normcli.identifying.models.error_bounds import choose_careless
from normcli.identifying.models.standards import MOMENTS, is_centred, standardize
from normcli.identifying.sampling import put_back, spread_indices, take_groups, thin_axes
from normcli.identifying.search.affine_fit import (
    Target,
    count_numbers,
    fit_carefully,
    regress,
    regress_each,
    weigh_fit,
)
from normcli.identifying.search.affine_step import NO_AFFINE
from normcli.identifying.search.groups import Hypothesis, Sample
from normcli.identifying.search.screen import go_together
from normcli.norms.grid import Grid
from normcli.norms.layout import Layout
from normcli.norms.rules import EpsMode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.norms.divisors import Divisor


_HOPEFUL = 0.3
"""A hypothesis is dropped if with every likely eps some value is off by more than this part of y's
deviation."""


_LIKELY_EPS = (1e-6, 1e-5, 1e-3)


_BESIDE = 0.05
"""Likely eps are tried first if they are larger than this part of the least variance."""


_Estimated = tuple[Hypothesis, str]
"""A hypothesis with a fitted gamma and beta, and the name of the kernel's dtype of arithmetic."""


def estimate(
    x: Floats, y: Floats, dtype: np.dtype[Any], grids: Sequence[Grid], most: float = math.inf
) -> Iterator[_Estimated]:
    """Yield the hypotheses (grouping, divisor, range of eps) that reproduce y with a fitted gamma and beta.

    There is one pair of gamma and beta for all values, or one for each index of a channel axis or of the
    reduced axes. For y of half precision, the precision is float32 if last roundings alone explain y with some
    gamma and beta, else y's own. Nothing if y has NaN, or does not depend on x.

    Parameters
    ----------
    x, y : ndarray of float64
        Input and output, of one shape.
    dtype : numpy.dtype
        The dtype to which y was rounded.
    grids : sequence of Grid
        The ways of grouping to try.
    most : float
        Only hypotheses with fewer pairs of gamma and beta than this are tried.
    """
    if np.isnan(y).any() or not _is_open(x, y):  # no gamma and beta make NaN of finite groups
        return
    for plain, every in list_cases(x, y, grids, most):
        for axes in every:
            found = _estimate_along(axes, plain, x, y, dtype)
            yield from found
            if found and not axes:  # one pair for all values, which others would be as well
                break


def _is_open(x: Floats, y: Floats) -> bool:
    """Whether y may depend on x, or on x standardized along one axis, value by value, as a sample shows."""
    places = thin_axes(x.shape)
    x, y = x[places], y[places]
    moved = ((x - x.mean(axis, keepdims=True)) / x.std(axis, keepdims=True) for axis in range(x.ndim))
    return go_together(itertools.chain((x,), moved), y)


def list_cases(
    x: Floats, y: Floats, grids: Sequence[Grid], most: float = math.inf
) -> Iterator[tuple[Hypothesis, list[tuple[int, ...]]]]:
    """Yield each hypothesis without gamma and beta, and the sets of axes along which these may vary.

    Each grid is combined with each divisor that is a root of variance or mean square. Nothing if x has infinity
    or NaN. A grid is left out if y has no evidence for it: fitted gamma and beta would have as many numbers as
    its groups have statistics.

    Parameters
    ----------
    x, y : ndarray of float64
        Input and output, of one shape.
    grids : sequence of Grid
        The ways of grouping to try.
    most : float
        Only axes with fewer pairs of gamma and beta than this are tried.
    """
    for grid, divisor in itertools.product(grids, MOMENTS):  # any other differs by a scale and a shift
        every = [axes for axes in _choose_parameter_axes(grid, most) if any(list_betas(grid, axes, divisor))]
        rows = take_groups(grid, x) if every else None
        if rows is None or not np.isfinite(rows).all():
            continue
        sample = Sample(grid, np.arange(grid.group_count), standardize(rows, divisor), take_groups(grid, y))
        yield Hypothesis(sample, NO_AFFINE, Model(divisor, EpsMode.INSIDE)), every


def list_betas(grid: Grid, axes: tuple[int, ...], divisor: Divisor) -> Iterator[bool]:
    """Yield False if gamma can be fitted without a beta, and True if gamma and beta can be fitted together.

    They can be if more statistics of groups show in y than numbers are fitted along `axes`. For a norm with a
    centre, only True is yielded.
    """
    for shifts in (True,) if is_centred(divisor) else (False, True):
        if count_numbers(grid, axes, divisor, shifts=shifts) > 0:
            yield shifts


def _estimate_along(
    axes: tuple[int, ...], plain: Hypothesis, x: Floats, y: Floats, dtype: np.dtype[Any]
) -> list[_Estimated]:
    """Return the hypotheses that reproduce y with gamma and beta along some axes, without beta if possible.

    Hypotheses with arithmetic in half precision are returned only if there are no others; empty if none fits.

    Parameters
    ----------
    axes : tuple of int
        The axes along which gamma and beta vary.
    plain : Hypothesis
        The hypothesis without gamma and beta.
    x, y : ndarray
        Input and output, of one shape.
    dtype : numpy.dtype
        The dtype to which y was rounded.
    """
    rough: list[_Estimated] = []
    for shifts in list_betas(plain.sample.grid, axes, plain.sample.standard.divisor):
        found = list(_pursue(plain, Target(x, y, axes, dtype, shifts)))
        if any(not is_half(np.dtype(find_type(precision))) for _, precision in found):
            return found
        rough = rough or found
    return rough


def _pursue(plain: Hypothesis, target: Target) -> Iterator[_Estimated]:
    """Yield hypotheses with fitted gamma and beta: with eps inside the root, and with eps outside.

    Each is yielded only if some usual eps fits; its model has the range of the usual eps that fit, and its
    gamma and beta are fitted with the first of them. `plain` is the hypothesis without gamma, beta and eps. A
    few values are tried first.
    """
    most = _HOPEFUL * float(np.std(target.y, where=np.isfinite(target.y)))
    few, least = take_few(plain, target)
    if not _is_hopeful(few, least, most):
        return
    more = take_few(plain, target, _MORE) if target.y.size >= _MANY else None
    for mode in (EpsMode.INSIDE, EpsMode.OUTSIDE):
        moved = plain._replace(model=plain.model._replace(eps_mode=mode))
        hidden = _list_hidden(moved, target.dtype)
        usual = [eps for eps in list_usual(target.dtype) if eps == 0.0 or eps not in hidden[1:]]
        for sample in (few, least), more:
            usual = usual if sample is None else list_possible(*sample, mode, usual)
        fits = dict(zip(usual, regress_each(moved, usual, target), strict=True))
        rough = {
            eps: target.read_step(fit.lines) for eps, fit in fits.items() if np.all(fit.rest <= fit.allowed)
        }
        careful = {
            eps: step
            for eps, near in rough.items()
            if is_half(target.dtype) and (step := fit_carefully(moved._replace(affine=near), eps, target))
        }
        if fitted := careful or rough:
            precision = choose_careless(target.dtype).precision if careful else target.dtype.name
            largest, first = max(list_usual(target.dtype)), next(iter(fitted))
            shown = {*fitted, *(hidden if {*hidden[:1], 0.0} <= fitted.keys() else ())}
            bits = weigh_fit(plain.sample, target, fits[first])
            high = math.inf if largest in shown else max(shown)
            model = moved.model._replace(low=min(shown), high=high, bits=bits)
            yield plain._replace(model=model, affine=fitted[first]), precision


def _list_hidden(moved: Hypothesis, dtype: np.dtype[Any]) -> list[float]:
    """Return the usual eps that are too small to show in y of a dtype: with each, y fits as with any other.

    `moved` is the hypothesis without gamma, beta and eps, with the place of eps.
    """
    least = float(moved.sample.standard.size.min(initial=math.inf))
    unit = least if moved.model.eps_mode is EpsMode.OUTSIDE else 2.0 * least**2
    return [eps for eps in list_usual(dtype) if eps <= get_eps(dtype) * _HIDDEN * unit]


_HIDDEN = 2.0**-4
"""The largest change of divisors by an eps that does not show, in machine epsilons of y."""


def _is_hopeful(plain: Hypothesis, target: Target, most: float) -> bool:
    """Return True if, with some likely eps, a fitted gamma and beta leave no finite y off by more than `most`.

    `plain` is the hypothesis without gamma and beta.
    """
    least = float(np.square(plain.sample.standard.size.min(initial=math.inf)))
    shown = [0.0, *(eps for eps in _LIKELY_EPS if eps > _BESIDE * least)]
    rest = regress(plain, shown, target._replace(refinements=0)).rest
    return any(not np.any(off[np.isfinite(target.y)] > most) for off in rest)


def _choose_parameter_axes(grid: Grid, most: float) -> Iterator[tuple[int, ...]]:
    """Yield the sets of axes along which gamma and beta may vary, with fewer than `most` pairs of them.

    These are no axis (if `most` is finite), the second axis, the last axis, and the reduced axes, if there are
    several and others are kept. The second and the last are left out if there is only one group: fitted gammas
    and betas of its channels would then explain any y.
    """
    rank = len(grid.shape)
    kept = {axis for axis, length in enumerate(grid.shape) if length > 1} - set(grid.axes)
    channels = sorted({min(1, rank - 1), rank - 1})
    one: list[tuple[int, ...]] = [()] if most < math.inf else []  # which a plain map explains too
    chosen = [*one, *((axis,) for axis in channels if kept - {axis} or kept == {axis})]
    if grid.split is None and len(grid.axes) > 1 and len(grid.axes) < rank:
        chosen.append(grid.axes)
    yield from (axes for axes in chosen if math.prod(grid.shape[axis] for axis in axes) < most)


def list_possible(plain: Hypothesis, target: Target, mode: EpsMode, usual: Sequence[float]) -> list[float]:
    """Return each eps in `usual` with which gamma and beta can be fitted to y, in order; empty if none can.

    They fit if every value is within `target.margin` rounding bounds. `mode` says whether eps is added inside
    or outside the root.
    """
    if not usual:
        return []
    moved = plain._replace(model=plain.model._replace(eps_mode=mode))
    fit = regress(moved, usual, target)
    refuted = np.reshape(~(fit.rest <= target.margin * fit.allowed), (len(usual), -1))
    return [eps for eps, wrong in zip(usual, refuted, strict=True) if not wrong.any()]


def take_few(plain: Hypothesis, target: Target, most: int = 1 << 9) -> tuple[Hypothesis, Target]:
    """Return a hypothesis and a target for at most about `most` values, with the statistics of whole groups.

    The values are of some lines: a line is all values that share one gamma and beta. Lines longer than `most`
    values are sampled, and the target has a margin of 4 for the different fit. A hypothesis that fails for the
    few values fails for all.
    """
    standard = plain.sample.standard
    places = _lay_places(plain.sample.grid, target.axes)
    length = min(most, places.shape[1])
    lines, values = spread_indices(len(places), most // length), spread_indices(places.shape[1], length)
    chosen = places[np.ix_(lines, values)]
    alone = standard.pick(chosen.reshape(-1))
    sample = Sample(Grid(chosen.shape, Layout(2, None), ()), np.arange(chosen.size), alone, alone.values)
    x, y = (rows.reshape(-1)[chosen] for rows in (standard.rows, plain.sample.actual))
    margin = 1.0 if length == places.shape[1] else _MARGIN
    return plain._replace(sample=sample), target._replace(x=x, y=y, axes=(0,), margin=margin)


_MORE, _MANY = 1 << 13, 1 << 15
"""About how many values a hypothesis is tried on before all of at least 32,768."""


_MARGIN = 4.0
"""The factor on the bounds of errors if only a part of each line is fitted."""


@functools.lru_cache(maxsize=8)  # of one grid, every divisor is tried in turn
def _lay_places(grid: Grid, axes: tuple[int, ...]) -> NDArray[np.intp]:
    """Return the indices of the values of each line in the flattened rows of groups, shape (lines, values).

    A line is all values that share one gamma and beta, which vary along `axes` of the tensor.
    """
    shape = grid.group_count, grid.group_size
    places = put_back(grid, np.arange(math.prod(shape)).reshape(shape))
    lines = math.prod(grid.shape[axis] for axis in axes)
    laid: NDArray[np.intp] = np.moveaxis(places, axes, range(len(axes))).reshape(lines, -1)
    return laid
