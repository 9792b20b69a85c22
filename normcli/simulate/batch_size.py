"""The movement of one sample's statistics and output as the batch around it changes."""

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
"""Sizes of batches, and draws of each, by default."""


class Movement(NamedTuple):
    """The movement of a sample by batches of one size, over draws of the batch around it.

    Parameters
    ----------
    size : int
        Samples in a batch, the watched one among them.
    output : Quartiles
        Of the mean of |y − y of the population| over the values of the sample, in the unit of y.
    centre : Quartiles or None
        Of |centre − that of the population| over the spread of the population, the mean over the groups; None
        where nothing is subtracted.
    spread : Quartiles or None
        Of |spread / that of the population − 1|, likewise; None where the divisor has none.
    """

    size: int
    output: Quartiles
    centre: Quartiles | None
    spread: Quartiles | None


class MovedNorm(NamedTuple):
    """The movements of one norm's statistics and output, for each batch size.

    Parameters
    ----------
    name : str
        As it was asked for.
    plan : Plan
        Of the whole population.
    movements : tuple of Movement
        In the order of the sizes.
    """

    name: str
    plan: Plan
    movements: tuple[Movement, ...]

    @property
    def moves(self) -> bool:
        """Whether other samples are in the groups of a sample."""
        return depends_on_batch(self.plan)


class BatchSizes(NamedTuple):
    """The result of `simulate_batch_size`.

    Parameters
    ----------
    population : Population
    norms : tuple of MovedNorm
    sizes : tuple of int
    draws, seed : int
    change : Change
        Of the other samples of a batch.
    """

    population: Population
    norms: tuple[MovedNorm, ...]
    sizes: tuple[int, ...]
    draws: int
    seed: int
    change: Change

    @property
    def is_finite(self) -> bool:
        """Whether no distance is NaN, as where values of the population are."""
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
    """Draw batches around one sample of a population, and measure how far it moves.

    Parameters
    ----------
    x : array_like, shape (samples, …)
        The population; a layout's batch axis, or else the first, is that of the samples. It may be a map of a
        file: of it, the population's statistics are taken in a pass, and then one batch at a time is read.
    norms : sequence of str, or mapping of str to Request
        Names of the table `normcli.NORMS`, or requests by what to call them.
    batches : sequence of int, optional
        How many samples are in a batch, the watched one among them; of sizes that are repeated, each once. By
        default `BATCHES`, with the whole population in place of sizes that are larger.
    draws : int
        How often a batch of each size is drawn; of each, the norms see the same batches.
    seed : int
        Of NumPy's `default_rng`.
    sample : int
        The number of the sample that is watched.
    shift, scale : float
        The other samples of a batch become scale · x + shift: a batch that comes from elsewhere.
    effort : Effort

    Raises
    ------
    NormError
        If a batch is larger than the population, a request does not fit it, shift or scale is not finite, or
        more than ten million batches are to be drawn.

    Notes
    -----
    Where the groups of a norm lie within one sample, as its plan says, nothing is drawn: every distance is 0.
    This is the story of figure 1 of Wu & He 2018, "Group Normalization", arXiv:1803.08494.

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
    """Return the plan of a batch, its output in float64: what moves is not hidden by rounding."""
    return make_plan(request._replace(dtype="float64"), values.shape, values.dtype)


def calculate_batch(plan: Plan, batch: NDArray[Any], inputs: Inputs = NO_INPUTS) -> Result:
    """Return the result of a batch, by a plan's request."""
    return calculate(_plan(plan.request, batch), batch, inputs)


def _move(plan: Plan, asked: BatchSizes, effort: Effort) -> Iterator[Movement]:
    """Yield how far batches of each size move the watched sample."""
    population, _, sizes, draws, seed, change = asked
    if not depends_on_batch(plan):
        centre, spread = _name_statistics(plan)
        yield from (
            Movement(size, UNMOVED, UNMOVED if centre else None, UNMOVED if spread else None) for size in sizes
        )
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
            found.append((distance, *_compare_statistics(result, whole)))
            advance(size)
        outputs, centres, spreads = zip(*found, strict=True)
        yield Movement(size, Quartiles.of(outputs), Quartiles.of_all(centres), Quartiles.of_all(spreads))


def take_sample(result: Result, axis: int, sample: int) -> Floats:
    """Return the output of one sample of a batch."""
    return np.asarray(result.normalized.take(sample, axis), np.float64)


def _name_statistics(plan: Plan) -> tuple[str | None, str | None]:
    """Return the names of a norm's centre and spread: `mean` and `std`; None where it has none."""
    return plan.norm.centre.statistic, plan.norm.divisor.spread


def _compare_statistics(result: Result, whole: Result) -> tuple[float | None, float | None]:
    """Return how far centre and spread of a batch are from the population's, as `Movement` has them."""
    centre, spread = _name_statistics(whole.plan)
    scale = np.asarray(1.0 if spread is None else whole.statistics[spread])
    with np.errstate(all="ignore"):
        return (
            None
            if centre is None
            else float(np.mean(np.abs(result.statistics[centre] - whole.statistics[centre]) / scale)),
            None if spread is None else float(np.mean(np.abs(result.statistics[spread] / scale - 1.0))),
        )
