"""A hypothesis of what made a tensor, and a match: one that reproduces it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import find_type, is_half
from normcli.engine.inputs import Inputs, Selection
from normcli.engine.run import run
from normcli.identifying.affine import ESTIMATED
from normcli.identifying.evidence import COMMON_EPS
from normcli.identifying.groups import take_groups
from normcli.identifying.standards import ROWS
from normcli.identifying.weight import CERTAIN
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.table import NORMS
from normcli.numerics.divisor import find_divisor
from normcli.numerics.rounding import round_to_half, store
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.identifying.affine import AffineStep
    from normcli.identifying.iterations import Start
    from normcli.identifying.matrices import Steps
    from normcli.identifying.model import Model
    from normcli.identifying.standards import Standard
    from normcli.norms.grid import Grid
    from normcli.norms.plan import Plan
    from normcli.norms.spec import Window


class Scope(NamedTuple):
    """What a search looks for, and in which tensor.

    Parameters
    ----------
    norm : str or None
        The norm to look for; None for all.
    channels : frozenset of int
        The axes that may be the channel.
    order : tuple of int
        The axes of the actual tensor, in the order of the input's.
    dtype : numpy.dtype
        In whose last place distances are counted.
    start : Start or None
        What power iterations may have started from.
    is_laid_out : bool
        Whether a layout says which axis is the channel: then what a framework takes for it is no default.
    """

    norm: str | None
    channels: frozenset[int]
    order: tuple[int, ...]
    dtype: np.dtype[Any]
    start: Start | None = None
    is_laid_out: bool = False


_MOST_LOST = 2.0**-8
"""What rounding may leave of a mean, in deviations, where it still tells a norm from what is near it."""

_FEW_EXACT = 0.1
"""A share of values that have the exact result's bits by luck, where a mean has lost as many digits."""


_MOST_CANCELLED = 0.1
"""The part of a variance that it may be off and still be taken for one."""


class Furthest(NamedTuple):
    """The value that is furthest from the exact one.

    Parameters
    ----------
    place : tuple of int
        Its index in the input.
    exact, actual : float
    """

    place: tuple[int, ...]
    exact: float
    actual: float


class Match(NamedTuple):
    """A hypothesis that reproduces the tensor.

    Parameters
    ----------
    norm : str
        A name of the table of norms.
    axes : tuple of int
        Reduced, whole or (where there are groups) in part.
    precision : str
        The dtype in which it was accumulated, as far as the distance shows.
    like : tuple of str
        The frameworks whose defaults these are.
    max_ulp, max_abs : float
        The largest distance of a value from the exact result, in units of the shorter of y's dtype and that.
    equal : float
        The share of the values that have the bits of the exact result, rounded as the hypothesis says.
    compared : int
        How many values these shares are of.
    furthest : Furthest
    order : tuple of int
        The axes of the actual tensor, in the order of the input's.
    groups : int or None
        Of channels.
    group_order : str or None
        `contiguous` or `interleaved`, where there are groups.
    eps : float
        The simplest that fits.
    eps_range : (float, float)
        The lowest and the highest that fit.
    eps_mode : str or None
    ddof : int
    p : float or None
        Of an ℓp length.
    affine : str
        How gamma and beta entered: one of `affine.WAYS`.
    window : Window or None
        Of `lrn`, which has no eps.
    rows : tuple of int or None
        Of `sn`: the axes that are the rows of its matrix.
    steps : Steps or None
        Of `sn`: the power iterations from a given start that give y.
    by_default : bool
        Whether the axes are the norm's or a framework's own choice.
    bits : float
        The evidence for it; see `weight`.
    is_odd : bool
        Whether the eps is none in use and not small beside the variances: then it is no match.
    has_default_eps : bool
        Whether its eps is its norm's or one of these frameworks' own, or none is to be seen.
    users : int
        How many of the frameworks leave nothing of it to the caller.
    cancelled : float or None
        How far off the variance is where it is E[x²] − E[x]², as a part of it; None where it is not.
    lost : float
        How far off the mean may be, as a part of a deviation: that shifts a whole group, whatever divides it.
    fine : float
        Of half precision, the bits that tell its statistics from some that were rounded to it; see `weight`.
    rounds_length : bool
        Whether every value has the bits of a length that was rounded to half precision before it divided.
    hypothesis : Hypothesis or None
        None for a window and for a matrix.
    """

    norm: str
    axes: tuple[int, ...]
    precision: str
    like: tuple[str, ...]
    max_ulp: float
    max_abs: float
    equal: float
    compared: int
    furthest: Furthest
    order: tuple[int, ...]
    groups: int | None = None
    group_order: str | None = None
    eps: float = 0.0
    eps_range: tuple[float, float] = (0.0, 0.0)
    eps_mode: str | None = None
    ddof: int = 0
    p: float | None = None
    affine: str = "none"
    window: Window | None = None
    rows: tuple[int, ...] | None = None
    steps: Steps | None = None
    by_default: bool = True
    bits: float = math.inf
    is_odd: bool = False
    has_default_eps: bool = True
    users: int = 0
    cancelled: float | None = None
    lost: float = 0.0
    fine: float = math.inf
    rounds_length: bool = False
    hypothesis: Hypothesis | None = None

    @property
    def is_certain(self) -> bool:
        """Whether it is more than a plain map would be by chance."""
        return self.bits >= CERTAIN and not (self.is_odd or self.is_rough or self.takes_up_rounding)

    @property
    def takes_up_rounding(self) -> bool:
        """Whether its eps, where it shows, may be what statistics of half precision make of a default one."""
        return not self.has_default_eps and self.eps_range[0] > 0.0 and self.fine < CERTAIN

    @property
    def is_rough(self) -> bool:
        """Whether only a kernel whose sums are of half precision, or lose all digits, may give these values."""
        if self.cancelled is not None:
            return self.sums_in_half or self.cancelled > _MOST_CANCELLED
        if self.rounds_length:
            return False
        is_lost = self.lost > _MOST_LOST or (self.p is not None and self.shows_one)
        is_blurred = is_lost and self.equal < _FEW_EXACT and self.affine != ESTIMATED
        return self.sums_in_half or is_blurred

    @property
    def shows_one(self) -> bool:
        """Whether all of y shows one factor, which may be another number as large."""
        return self.hypothesis is not None and len(self.hypothesis.sample.chosen) == 1

    @property
    def sums_in_half(self) -> bool:
        """Whether a kernel with sums of float32 would not give these values."""
        return is_half(np.dtype(find_type(self.precision.split(",")[0])))

    @property
    def takes_eps(self) -> bool:
        """Whether an eps could have been there: where there is no room for one, a norm without it has none."""
        return NORMS[self.norm].eps is not None or any(self.eps_range)

    @property
    def is_usual(self) -> bool:
        """Whether its eps is one that people choose."""
        return self.eps in COMMON_EPS


_THINNED = 8
"""Of so many groups, one is tried before the others."""


class Sample(NamedTuple):
    """Groups that hypotheses are compared with.

    Parameters
    ----------
    grid : Grid
    chosen : ndarray of int
        The groups' numbers, in order.
    standard : Standard
        The input's values, standardized.
    actual : ndarray, shape (groups, group_size)
    undefined : Sample or None
        Of those groups that had been chosen too, the ones that hold something infinite or NaN that counts: no
        factor is seen in them, but whatever it is, it leaves nothing finite that is not 0.
    """

    grid: Grid
    chosen: NDArray[np.intp]
    standard: Standard
    actual: Floats
    undefined: Sample | None = None

    def locate(self, row: int, column: int) -> tuple[int, ...]:
        """Return the index in the tensor of a sampled value."""
        return tuple(int(i[0]) for i in self.grid.locate_values(self.chosen[[row]], np.array([column])))

    def take_parts(self) -> Iterator[Sample]:
        """Yield one group of eight, without those that have no factor, if there are many; then all groups."""
        if len(self.chosen) >= 2 * _THINNED:
            chosen, actual = self.chosen[::_THINNED], self.actual[::_THINNED]
            yield Sample(self.grid, chosen, self.standard.take(_THINNED), actual)
        yield self

    def place(self, affine: AffineStep) -> AffineStep:
        """Return an affine step with its scale and shift of the sampled values."""
        return affine.map(lambda values: take_groups(self.grid, values, self.chosen))


class Hypothesis(NamedTuple):
    """A way of grouping, dividing and scaling.

    Parameters
    ----------
    sample : Sample
        The groups that it is compared with.
    affine : AffineStep
        As it applies to the whole tensor.
    model : Model
    variance : ndarray or None
        What was divided by the root of; None for each sampled group's own variance.
    """

    sample: Sample
    affine: AffineStep
    model: Model
    variance: Floats | None = None

    def predict(self, eps: float) -> Floats:
        """Return the exact result for the sampled values, as float64; x̂ rounded if the affine step does."""
        if self.variance is not None:
            return self.approximate(eps)
        placed, plan, rows = self.sample.place(self.affine), self._make_plan(eps), self.sample.standard.rows
        inputs = Inputs(selection=None if self.sample.standard.missing is None else Selection(omits_nan=True))
        if placed.rounds_to is not None:
            return placed.apply(run(plan, rows, inputs)[0])
        scale, shift = (
            None if v is None else np.broadcast_to(v, plan.grid.shape) for v in (placed.scale, placed.shift)
        )
        return run(plan, rows, inputs._replace(gamma=scale, beta=shift))[0]

    @property
    def cancelled(self) -> float | None:
        """How far off the variance is, at most and as a part of it; None where it is exact."""
        if self.variance is None:
            return None
        return float(np.abs(self.variance / self.sample.standard.size**2 - 1.0).max())

    def _make_plan(self, eps: float) -> Plan:
        """Return the plan of the sampled groups, with a gamma and a beta for each value."""
        rows, (divisor, mode, ddof, p, *_) = self.sample.standard.rows, self.model
        row = ROWS[divisor]
        plan = make_plan(Request(row.name, axes=(1,), dtype="float64"), rows.shape, rows.dtype)
        plan = plan.change_spec(eps=None if row.eps is None else eps, eps_mode=mode, ddof=ddof, p=p)
        shapes = plan.parameters._replace(
            axes=(0, 1), shape=rows.shape, full_shape=rows.shape, view_shape=rows.shape
        )
        return replace(plan, parameters=shapes)

    def approximate(self, eps: float) -> Floats:
        """Return the same in plain float64 arithmetic, which is off by a few units in the last place."""
        with np.errstate(all="ignore"):
            return self.sample.place(self.affine).apply(self.standardize(eps))

    def standardize(self, eps: float) -> Floats:
        """Return x̂ of the sampled values in plain float64 arithmetic."""
        return self.sample.standard.values * self.measure_factors(eps)

    def rounds_length(self, eps: float, dtype: np.dtype[Any]) -> bool:
        """Whether a length that is rounded to a dtype of half precision before it divides gives every bit."""
        sample, model = self.sample, self.model
        if model.p is None or not is_half(dtype):
            return False
        divisor = find_divisor(sample.standard.measure_length(model.p), eps, model.eps_mode)[:, None]
        with np.errstate(all="ignore"):
            quotient = sample.standard.rows / round_to_half(divisor, dtype.name)
            expected = sample.place(self.affine).apply(round_to_half(quotient, dtype.name))
        return measure_equality(sample.actual, expected, dtype) == 1.0

    def measure_factors(self, eps: float) -> Floats:
        """Return the factor of each group's standardized values, shape (groups, 1); 0 where it is infinite."""
        standard, model = self.sample.standard, self.model
        if self.variance is not None:
            size = np.sqrt(self.variance)
        elif model.p is None:
            size = standard.size * np.sqrt(standard.counts / (standard.counts - model.ddof))
        else:
            size = standard.measure_length(model.p)
        with np.errstate(all="ignore"):
            factors = standard.unit / find_divisor(size, eps, model.eps_mode)
        return np.where(np.isfinite(factors), factors, 0.0)[:, None]


def measure_equality(actual: Floats, expected: Floats, dtype: np.dtype[Any]) -> float:
    """Return the share of values that are what the expected ones round to; NaN is equal to NaN."""
    return float(np.mean(_find_equal(actual, expected, dtype)))


def find_furthest(
    actual: Floats, expected: Floats, ulp: Floats, dtype: np.dtype[Any]
) -> tuple[tuple[int, ...], float, float]:
    """Return the index of the value furthest in ulp that is not the exact one, rounded; and both of them."""
    differs = ~_find_equal(actual, expected, dtype)
    index = np.unravel_index(int(np.where(differs, ulp, 0.0).argmax()), ulp.shape)
    return tuple(map(int, index)), float(expected[index]), float(actual[index])


def _find_equal(actual: Floats, expected: Floats, dtype: np.dtype[Any]) -> NDArray[np.bool_]:
    theirs, ours = (_round(values, dtype) for values in (actual, expected))
    equal: NDArray[np.bool_] = (theirs == ours) | (np.isnan(actual) & np.isnan(expected))
    return equal


def _round(values: Floats, dtype: np.dtype[Any]) -> NDArray[Any]:
    rounded = np.empty(values.shape, dtype)
    with np.errstate(all="ignore"):
        store(rounded, values)
    return rounded
