"""The distances of one sample's statistics and output from the population's, for batches of each size."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine.inputs import NO_INPUTS
from normcli.engine.walk import DEFAULT_EFFORT
from normcli.errors import name_subject
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.results.calculate import calculate
from normcli.simulate.batches import (
    UNMOVED,
    Change,
    Population,
    Quartiles,
    measure_distance,
)
from normcli.teach.side_by_side import depends_on_batch
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike, NDArray

    from normcli.dtypes import Floats
    from normcli.engine.inputs import Inputs
    from normcli.engine.walk import Effort
    from normcli.norms.plan import Plan
    from normcli.results.result import Result

BATCHES = (1, 2, 4, 8, 32, 128)
DRAWS = 100
"""The default sizes of batches, and the default number of draws of each."""


class Movement(NamedTuple):
    """The distances of a sample's output and statistics from the population's, over draws of one batch size.

    Parameters
    ----------
    size : int
        The number of samples in a batch, the watched one included.
    output : Quartiles
        The quartiles, over the draws, of the mean of |y − y of the population| over the values of the sample,
        in the unit of y.
    centre : Quartiles or None
        The quartiles, over the draws, of |centre − centre of the population| / spread of the population, a mean
        over the groups; None if the norm subtracts nothing.
    spread : Quartiles or None
        The quartiles, over the draws, of |spread / spread of the population − 1|, a mean over the groups; None
        if the norm has no spread.
    """

    size: int
    output: Quartiles
    centre: Quartiles | None = None
    spread: Quartiles | None = None


class MovedNorm(NamedTuple):
    """The distances of one norm's statistics and output from those in the whole population, by batch size.

    Parameters
    ----------
    name : str
        The norm's name as the caller gave it.
    plan : Plan
        The plan for the whole population.
    movements : tuple of Movement
        One for each batch size, in the order of the sizes.
    """

    name: str
    plan: Plan
    movements: tuple[Movement, ...]

    @property
    def moves(self) -> bool:
        """Whether a sample's output depends on the other samples of its batch, which share its groups."""
        return depends_on_batch(self.plan)


class BatchSizes(NamedTuple):
    """The result of `simulate_batch_size`.

    Parameters
    ----------
    population : Population
    norms : tuple of MovedNorm
        One for each norm, in the order given.
    sizes : tuple of int
        The batch sizes, each once.
    draws, seed : int
        The number of draws of each size, and the seed.
    change : Change
        Scale and shift, applied to every sample of a batch but the watched one.
    """

    population: Population
    norms: tuple[MovedNorm, ...]
    sizes: tuple[int, ...]
    draws: int
    seed: int
    change: Change

    @property
    def is_finite(self) -> bool:
        """Whether the median distance of the output is finite for all norms and sizes."""
        return all(math.isfinite(one.output.median) for norm in self.norms for one in norm.movements)


def simulate_batch_size(
    x: ArrayLike,
    norms: Sequence[str] | Mapping[str, Request] = ("bn", "ln", "in"),
    *,
    batches: Sequence[int] | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    sample: int = 0,
    shift: float = 0.0,
    scale: float = 1.0,
    effort: Effort = DEFAULT_EFFORT,
) -> BatchSizes:
    """Draw batches around one sample of a population, and measure how far its output and statistics change.

    Parameters
    ----------
    x : array_like, shape (samples, …)
        The population. Samples lie along the batch axis of the layout, by default the first axis. It may be a
        memory map of a file: one pass takes the population's statistics, then one batch at a time is read.
    norms : sequence of str, or mapping of str to Request
        Names in the table `normcli.NORMS`, or a mapping of names of the caller's choice to requests.
    batches : sequence of int, optional
        The numbers of samples in a batch, the watched one included; a size that is repeated counts once. By
        default `BATCHES`, with the size of the population in place of larger ones.
    draws : int
        The number of batches drawn of each size; all norms see the same batches.
    seed : int
        The seed for NumPy's `default_rng`.
    sample : int
        The index of the sample that is watched.
    shift, scale : float
        The other samples of a batch become scale · x + shift, as if they came from other data.
    effort : Effort

    Raises
    ------
    NormError
        If a batch is larger than the population, a request does not fit it, shift or scale is not finite, or
        more than ten million batches are to be drawn.

    Notes
    -----
    For norms whose groups lie within one sample, nothing is drawn: every distance is 0. The effect is that of
    figure 1 in Wu & He 2018, "Group Normalization", arXiv:1803.08494.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(64, 3, 2, 2))
    >>> found = simulate_batch_size(x, ["bn", "ln"], batches=[2, 32], draws=20)
    >>> [[round(one.output.median, 2) for one in norm.movements] for norm in found.norms]
    [[0.33, 0.07], [0.0, 0.0]]
    """
    values = np.asanyarray(x)
    requests = norms if isinstance(norms, Mapping) else {name: Request(name) for name in norms}
    plans: dict[str, Plan] = {}
    for name, request in requests.items():
        with name_subject(name):
            plans[name] = _plan(request, values)
    axis = next(iter(plans.values())).grid.layout.batch or 0
    population, change = Population(values, axis, sample), Change(shift, scale)
    if batches is None:
        batches = [min(size, population.sample_count) for size in BATCHES]
    sizes = tuple(dict.fromkeys(batches))
    population.require_batches(sizes)
    change.require_finite()
    found = BatchSizes(population, (), sizes, draws, seed, change)
    moved = (MovedNorm(name, plan, tuple(_move(plan, found, effort))) for name, plan in plans.items())
    return found._replace(norms=tuple(moved))


def _plan(request: Request, values: NDArray[Any]) -> Plan:
    """Return the plan for an array with its output in float64, so that rounding hides no small change."""
    return make_plan(request._replace(dtype="float64"), values.shape, values.dtype)


def calculate_batch(plan: Plan, batch: NDArray[Any], inputs: Inputs = NO_INPUTS) -> Result:
    """Return the result of a batch, normalized in float64 by the request of a plan."""
    return calculate(_plan(plan.request, batch), batch, inputs)


def _move(plan: Plan, asked: BatchSizes, effort: Effort) -> Iterator[Movement]:
    """Yield for each batch size how far the watched sample's results are from the population's.

    `asked` has the population, the sizes and the number of draws. For a norm whose groups lie within one
    sample, nothing is drawn, and all distances are 0.
    """
    population, _, sizes, draws, seed, change = asked
    statistics = {"centre": plan.norm.centre.statistic, "spread": plan.norm.divisor.spread}
    measured = ("output", *(part for part, name in statistics.items() if name is not None))
    if not depends_on_batch(plan):
        yield from (Movement(size, **dict.fromkeys(measured, UNMOVED)) for size in sizes)
        return
    whole = calculate(plan, population.values, effort=effort)
    reference = take_sample(whole, population.axis, population.sample)
    advance = population.follow(effort, sizes, draws)
    for size in sizes:
        rng = np.random.default_rng([seed, size])
        found = []
        for _ in range(draws):
            result = calculate_batch(plan, population.draw(size, rng, change))
            distance = measure_distance(take_sample(result, population.axis, 0), reference)
            found.append([distance, *_compare_statistics(result, whole)])
            advance(size)
        yield Movement(size, **dict(zip(measured, map(Quartiles.of, np.transpose(found)), strict=True)))


def take_sample(result: Result, axis: int, sample: int) -> Floats:
    """Return the output of one sample of a batch in float64, without the axis of samples."""
    return np.asarray(result.normalized.take(sample, axis), np.float64)


def _compare_statistics(result: Result, whole: Result) -> list[float]:
    """Return the distances of a batch's centre and spread from the population's, as far as the norm has both.

    With c and s for the batch's centre and spread, C and S for the population's, they are the means over groups
    of |c − C| / S and |s / S − 1|.
    """
    centre, spread = whole.plan.norm.centre.statistic, whole.plan.norm.divisor.spread
    scale = np.asarray(1.0 if spread is None else whole.statistics[spread])
    found = []
    with np.errstate(all="ignore"):
        if centre is not None:
            found.append(np.abs(result.statistics[centre] - whole.statistics[centre]) / scale)
        if spread is not None:
            found.append(np.abs(result.statistics[spread] / scale - 1.0))
        return [float(np.mean(distances)) for distances in found]
