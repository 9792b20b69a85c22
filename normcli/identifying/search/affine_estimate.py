"""gamma and beta that nobody gave: fitted to the values, one pair for each channel.

Of half precision, a kernel whose sums are of float32 leaves each value its own last roundings and nothing else.
A statistic that was taken in half precision moves a whole group by one factor or shift: no gamma and beta,
which all groups share, take that up.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.ulp import measure_unit
from normcli.dtypes import find_type, is_half
from normcli.identifying.models.error_bounds import Level, choose_careless, measure_noise
from normcli.identifying.models.evidence import Model, count_numbers, list_usual
from normcli.identifying.models.line_fit import PlainMap, fit_lines, fit_within
from normcli.identifying.models.standards import MOMENTS, is_centred, standardize
from normcli.identifying.search.affine_step import ESTIMATED, NO_AFFINE, AffineStep
from normcli.identifying.search.groups import put_back, take_groups
from normcli.identifying.search.hypothesis import Hypothesis, Sample
from normcli.identifying.search.screen import choose_places, go_together
from normcli.norms.grid import Grid
from normcli.norms.layout import Layout
from normcli.norms.rules import EpsMode
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.norms.divisors import Divisor


_HOPEFUL = 0.3
"""Hypotheses that leave more of the spread than this unexplained with every likely eps are not pursued."""

_AT_ONCE = 1 << 12
"""Values of which all likely eps are tried at once."""

_LIKELY_EPS = (1e-6, 1e-5, 1e-3)
_BESIDE = 0.05
"""Likely eps are tried first where they are no smaller than this part of the least variance."""

_ROUNDINGS, _ROUNDINGS_OF_HALF = 16.0, 1.0
"""Ulp by which values may be off; in half precision, only by a rough kernel."""


class Fit(NamedTuple):
    """Lines that were fitted, and how far each value is off and may be."""

    lines: PlainMap
    rest: Floats
    allowed: Floats


class Estimated(NamedTuple):
    """A hypothesis with a gamma and a beta that were fitted, and the precision of the kernels that give it."""

    hypothesis: Hypothesis
    precision: str


def estimate(
    x: Floats, y: Floats, dtype: np.dtype[Any], grids: Sequence[Grid], most: float = math.inf
) -> Iterator[Estimated]:
    """Yield the hypotheses that reproduce y with some gamma and beta.

    There is one pair for all values, or one for each index of a channel axis or of the reduced axes. Of half
    precision, float32 is the precision where a gamma and a beta exist with which last roundings explain y.

    Parameters
    ----------
    x, y, dtype
        As in `Target`.
    grids : sequence of Grid
    most : float
        There are fewer pairs than this.
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
    """Whether y goes with x, or with x less what its lines along an axis have in common."""
    places = choose_places(x.shape)
    x, y = x[places], y[places]
    moved = ((x - x.mean(axis, keepdims=True)) / x.std(axis, keepdims=True) for axis in range(x.ndim))
    return go_together(itertools.chain((x,), moved), y)


def list_cases(
    x: Floats, y: Floats, grids: Sequence[Grid], most: float = math.inf
) -> Iterator[tuple[Hypothesis, list[tuple[int, ...]]]]:
    """Yield the groups of finite values by each standard, and the axes that gamma and beta may run along."""
    for grid, divisor in itertools.product(grids, MOMENTS):  # any other differs by a scale and a shift
        every = [axes for axes in _choose_parameter_axes(grid, most) if any(list_betas(grid, axes, divisor))]
        rows = take_groups(grid, x) if every else None
        if rows is None or not np.isfinite(rows).all():
            continue
        sample = Sample(grid, np.arange(grid.group_count), standardize(rows, divisor), take_groups(grid, y))
        yield Hypothesis(sample, NO_AFFINE, Model(divisor, EpsMode.INSIDE)), every


def list_betas(grid: Grid, axes: tuple[int, ...], divisor: Divisor) -> Iterator[bool]:
    """Yield whether there is a beta, where y shows more than is fitted; none first if nothing is centred."""
    for shifts in (True,) if is_centred(divisor) else (False, True):
        if count_numbers(grid, axes, divisor, shifts=shifts) > 0:
            yield shifts


def _estimate_along(
    axes: tuple[int, ...], plain: Hypothesis, x: Floats, y: Floats, dtype: np.dtype[Any]
) -> list[Estimated]:
    """Return the hypotheses of some groups with a gamma and a beta along some axes, or no beta if that does."""
    rough: list[Estimated] = []
    for shifts in list_betas(plain.sample.grid, axes, plain.sample.standard.divisor):
        found = list(_pursue(plain, Target(x, y, axes, dtype, shifts)))
        if any(not is_half(np.dtype(find_type(one.precision))) for one in found):
            return found
        rough = rough or found
    return rough


class Target(NamedTuple):
    """The tensors to which gamma and beta are fitted.

    Parameters
    ----------
    x, y : ndarray
        Of one shape.
    axes : tuple of int
        The axes along which gamma and beta vary.
    dtype : numpy.dtype
        The dtype to which y was rounded.
    shifts : bool
        Whether there is a beta.
    margin : float
        The factor on the bounds of values if only a sample of each line is compared.
    """

    x: Floats
    y: Floats
    axes: tuple[int, ...]
    dtype: np.dtype[Any]
    shifts: bool
    margin: float = 1.0

    def fit(self, values: Floats) -> PlainMap:
        """Return the gamma and beta of least squares that take values to y; a further first axis is kept."""
        axes = self.axes
        if values.ndim > self.y.ndim:
            axes = (0, *(1 + axis for axis in axes))
        return fit_lines(values, self.y, axes, through_zero=not self.shifts)

    def read_step(self, lines: PlainMap) -> AffineStep:
        """Return lines as an affine step."""
        return AffineStep(ESTIMATED, lines.scale, lines.shift if self.shifts else None)


def _pursue(plain: Hypothesis, target: Target) -> Iterator[Estimated]:
    """Yield a hypothesis with each place of eps, if some eps fit."""
    most = _HOPEFUL * float(np.std(target.y, where=np.isfinite(target.y)))
    few, least = take_few(plain, target)
    if not _is_hopeful(few, least, most):
        return
    every = {mode: list_possible(few, least, mode) for mode in (EpsMode.INSIDE, EpsMode.OUTSIDE)}
    if not any(every.values()) or not _is_hopeful(plain, target, most):
        return
    for mode, usual in every.items():
        moved = plain._replace(model=plain.model._replace(eps_mode=mode))
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
            largest = max(list_usual(target.dtype))
            high, first = math.inf if largest in fitted else max(fitted), next(iter(fitted))
            bits = weigh_fit(plain.sample, target, fits[first])
            model = moved.model._replace(low=min(fitted), high=high, bits=bits)
            yield Estimated(plain._replace(model=model, affine=fitted[first]), precision)


def _is_hopeful(plain: Hypothesis, target: Target, most: float) -> bool:
    """Whether some likely eps leaves no more than so much of any value unexplained."""
    least = float(np.square(plain.sample.standard.size.min(initial=math.inf)))
    shown = [0.0, *(eps for eps in _LIKELY_EPS if eps > _BESIDE * least)]
    counted = np.isfinite(target.y)
    if target.y.size <= _AT_ONCE:  # one call for all is quicker than to stop at the first
        rests: Iterable[Floats] = regress(plain, shown, target).rest
    else:
        rests = (fit.rest for fit in regress_each(plain, shown, target))
    return any(not float(rest.max(where=counted, initial=0.0)) > most for rest in rests)


def _choose_parameter_axes(grid: Grid, most: float) -> Iterator[tuple[int, ...]]:
    """Yield the axes along which gamma and beta may vary, if they have fewer than `most` pairs; first no axis.

    Further ones are a channel axis, and the reduced axes. If groups are larger than whole channels, any scale
    and shift of a channel fits, which proves nothing.
    """
    rank = len(grid.shape)
    kept = {axis for axis, length in enumerate(grid.shape) if length > 1} - set(grid.axes)
    channels = sorted({min(1, rank - 1), rank - 1})
    one: list[tuple[int, ...]] = [()] if most < math.inf else []  # which a plain map explains too
    chosen = [*one, *((axis,) for axis in channels if kept - {axis} or kept == {axis})]
    if grid.split is None and len(grid.axes) > 1 and len(grid.axes) < rank:
        chosen.append(grid.axes)
    yield from (axes for axes in chosen if math.prod(grid.shape[axis] for axis in axes) < most)


def regress_each(hypothesis: Hypothesis, every: Sequence[float], target: Target) -> Iterator[Fit]:
    """Yield gamma and beta of least squares for each eps."""
    for eps in every:
        lines, rest, allowed = regress(hypothesis, (eps,), target)
        lines = PlainMap(target.axes, lines.scale[0], lines.shift[0])
        yield Fit(lines, rest[0], allowed[0])


def regress(hypothesis: Hypothesis, every: Sequence[float], target: Target) -> Fit:
    """Return gamma and beta of least squares for all eps at once, shape (eps, *parameters)."""
    grid, standard = hypothesis.sample.grid, hypothesis.sample.standard
    level = Level(target.dtype.name, 0.0, _ROUNDINGS_OF_HALF if is_half(target.dtype) else _ROUNDINGS)
    factors = np.stack([hypothesis.measure_factors(eps) for eps in every])
    rows = standard.values * factors
    limits = measure_noise(standard, level).limit(factors, rows)
    standardized, before = (
        np.concatenate([put_back(grid, part)[np.newaxis] for part in parts]) for parts in (rows, limits)
    )
    lines = target.fit(standardized)
    slack = level.measure(np.abs(target.y) + np.abs(lines.shift)) + np.abs(lines.scale) * before
    allowed = np.where(slack > 0.0, slack, level.measure(1.0))
    return Fit(lines, np.abs(target.y - lines.apply(standardized)), allowed)


def weigh_fit(sample: Sample, target: Target, fit: Fit) -> float:
    """Return the evidence in bits: how much more a map with as many numbers, but without groups, leaves.

    That map takes x itself, or x less its group's mean, and so shows nothing of a divisor.
    """
    grid, rows = sample.grid, sample.standard.rows
    maps = target.x, put_back(grid, rows - rows.mean(axis=1, keepdims=True))
    numbers = count_numbers(grid, target.axes, sample.standard.divisor, shifts=target.shifts)
    return min(numbers * _count_bits(grid, values, target, fit) for values in maps)


def _count_bits(grid: Grid, values: Floats, target: Target, fit: Fit) -> float:
    """Return by how many bits of what is allowed a group is off, on average, in a line through some values."""
    lines = target.fit(values)
    off = np.fmax.reduce(take_groups(grid, np.abs(target.y - lines.apply(values)) / fit.allowed), axis=1)
    return float(np.log2(np.fmax(off, 1.0)).mean())


_HALF_UNIT = 0.5


def list_possible(plain: Hypothesis, target: Target, mode: EpsMode) -> list[float]:
    """Return the usual eps that values of a few lines do not refute."""
    usual = list_usual(target.dtype)
    moved = plain._replace(model=plain.model._replace(eps_mode=mode))
    fit = regress(moved, usual, target)
    refuted = np.reshape(~(fit.rest <= target.margin * fit.allowed), (len(usual), -1))
    return [eps for eps, wrong in zip(usual, refuted, strict=True) if not wrong.any()]


def take_few(plain: Hypothesis, target: Target) -> tuple[Hypothesis, Target]:
    """Return a hypothesis of single values of some lines, and these values: what refutes it there refutes it.

    Of lines that are too long, some values are taken: these have a line of their own, nearer to them, and a
    margin for what it is off.
    """
    standard = plain.sample.standard
    places = _lay_places(plain.sample.grid, target.axes)
    length = min(_FEW, places.shape[1])
    lines = np.linspace(0, len(places) - 1, min(len(places), max(1, _FEW // length))).astype(np.intp)
    values = np.unique(np.linspace(0, places.shape[1] - 1, length).astype(np.intp))
    chosen = places[np.ix_(lines, values)]
    alone = standard.pick(chosen.reshape(-1))
    sample = Sample(Grid(chosen.shape, Layout(2, None), ()), np.arange(chosen.size), alone, alone.values)
    x, y = (rows.reshape(-1)[chosen] for rows in (standard.rows, plain.sample.actual))
    margin = 1.0 if length == places.shape[1] else _MARGIN
    return plain._replace(sample=sample), target._replace(x=x, y=y, axes=(0,), margin=margin)


_FEW = 1 << 9
"""Values that a hypothesis is tried on first."""

_MARGIN = 4.0
"""The factor on the error of values where only a part of each line is fitted."""


@functools.lru_cache(maxsize=8)  # of one grid, every divisor is tried in turn
def _lay_places(grid: Grid, axes: tuple[int, ...]) -> NDArray[np.intp]:
    """Return where the values of each line lie in the rows of groups, shape (lines, values)."""
    shape = grid.group_count, grid.group_size
    places = put_back(grid, np.arange(math.prod(shape)).reshape(shape))
    lines = math.prod(grid.shape[axis] for axis in axes)
    laid: NDArray[np.intp] = np.moveaxis(places, axes, range(len(axes))).reshape(lines, -1)
    return laid


def fit_carefully(hypothesis: Hypothesis, eps: float, target: Target) -> AffineStep | None:
    """Return the gamma and beta with which every value is rounded once, or as often as cast orders do; or None.

    Parameters
    ----------
    hypothesis : Hypothesis
        Of all groups, with a gamma and a beta that are nearly right; x̂ is rounded first or not.
    eps : float
    target : Target
        Of half precision.
    """
    y, dtype = target.y, target.dtype
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
        slack = near.allow(y, dtype, level) + np.abs(near.scale) * (most - least) / 2.0
        if target.shifts and rounds_to is not None:  # so is its product with gamma
            slack = slack + _HALF_UNIT * measure_unit(middle * near.scale, dtype)
        lines = fit_within(middle, y, slack, target.axes, through_zero=not target.shifts)
        if lines is not None:
            return target.read_step(lines)._replace(rounds_to=rounds_to)
    return None
