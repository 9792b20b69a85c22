"""Training against evaluation, step by step: one sample normalized with batch and with running statistics."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.engine.inputs import NO_INPUTS, Inputs
from normcli.engine.walk import DEFAULT_EFFORT
from normcli.errors import UsageError
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.numerics.statistics.solution import Given
from normcli.printable import format_count
from normcli.results.calculate import calculate
from normcli.running.average import begin, choose_rule, measure_batch, update
from normcli.simulate.batch_size import calculate_batch, take_sample
from normcli.simulate.batches import NO_CHANGE, Change, Population, Quartiles, measure_distance
from normcli.teach.side_by_side import depends_on_batch
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import ArrayLike

    from normcli.dtypes import Floats
    from normcli.engine.walk import Effort
    from normcli.norms.conventions import RunningRule
    from normcli.norms.plan import Plan

STEPS, BATCH, RUNS = 60, 8, 20
"""The default numbers of steps, of samples in a batch, and of runs with other batches."""


class _Whole(NamedTuple):
    """The watched sample's y by the statistics of the whole population, and these, for each channel."""

    reference: Floats
    mean: Floats
    var: Floats


class Step(NamedTuple):
    """One step of training: quartiles, over the runs, of distances from results on the whole population.

    From the step at which values are changed on, the population is changed too.

    Parameters
    ----------
    number : int
        The number of the step, from 1.
    training : Quartiles
        The distance of the watched sample's y, normalized with the statistics of the step's batch, from its y
        on the whole population: the mean of |difference| over its values, in the unit of y.
    evaluation : Quartiles
        The distance of the watched sample's y, normalized with the running statistics after the step.
    mean : Quartiles
        The mean over channels of |running mean − population mean| / population standard deviation.
    var : Quartiles
        The mean over channels of |running variance / population variance − 1|.
    """

    number: int
    training: Quartiles
    evaluation: Quartiles
    mean: Quartiles
    var: Quartiles


class Training(NamedTuple):
    """The result of `simulate_training`.

    Parameters
    ----------
    plan : Plan
        The plan for the whole population.
    population : Population
    rule : RunningRule
        The momentum and ddof by which batches are averaged into the running statistics.
    steps : tuple of Step
    batch, runs, seed : int
        The number of samples in a batch, the number of runs, and the seed.
    change : Change
        Scale and shift, applied to all values from step `since` on.
    since : int
        The number of the first step with changed values.
    """

    plan: Plan
    population: Population
    rule: RunningRule
    steps: tuple[Step, ...]
    batch: int
    runs: int
    seed: int
    change: Change
    since: int

    @property
    def is_finite(self) -> bool:
        """Whether the median distance of the output in training is finite at all steps."""
        return all(math.isfinite(step.training.median) for step in self.steps)


def simulate_training(
    x: ArrayLike,
    norm: str | Request = "bn",
    *,
    batch: int = BATCH,
    steps: int = STEPS,
    runs: int = RUNS,
    momentum: float | str | None = None,
    seed: int = 0,
    sample: int = 0,
    shift: float = 0.0,
    scale: float = 1.0,
    since: int | None = None,
    effort: Effort = DEFAULT_EFFORT,
) -> Training:
    """Update running statistics with batches around a sample; compare training with evaluation at each step.

    Parameters
    ----------
    x : array_like, shape (samples, …)
        The population. Samples lie along the batch axis of the layout, by default the first axis.
    norm : str or Request
        A norm that keeps running statistics. These begin with mean 0 and variance 1.
    batch, steps : int
        The number of samples in a batch, and the number of batches in a run.
    runs : int
        The number of times that all steps are run, each time with other batches.
    momentum : float, "none" or None
        The momentum of the running statistics, "none" for a plain average; None: the convention's, in torch 0.1
        for the new batch.
    seed : int
        The seed for NumPy's `default_rng`.
    sample : int
        The index of the sample that is watched.
    shift, scale : float
        From step `since` on, all values become scale · x + shift, those of the watched sample too. A batch's
        own statistics undo this at once; running statistics follow slowly.
    since : int, optional
        The number of the first step with changed values; by default the first of the second half.
    effort : Effort

    Raises
    ------
    NormError
        If the norm keeps no running statistics, a number is out of range, or a batch is larger than the
        population.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(3.0, 2.0, (64, 3, 4, 4))
    >>> found = simulate_training(x, batch=8, steps=40, runs=5)
    >>> [round(found.steps[i].evaluation.median, 2) for i in (0, 9, 39)]
    [2.42, 0.62, 0.03]
    """
    values = np.asanyarray(x)
    request = norm if isinstance(norm, Request) else Request(norm)
    plan = make_plan(request._replace(dtype="float64"), values.shape, values.dtype)
    if not plan.norm.tracks:
        raise UsageError(f"{plan.norm.name} keeps no running statistics: evaluation is what training is")
    population = Population(values, plan.grid.layout.batch or 0, sample)
    population.require_batches([batch], "a batch")
    rule = choose_rule(plan.norm.name, request.like, momentum, None, None)
    since = steps // 2 + 1 if since is None else since
    if not 1 <= since <= steps:
        raise UsageError(f"since {since} is none of the {format_count(steps, 'step')}")
    change = Change(shift, scale)
    change.require_finite()
    before = _measure_whole(plan, population, effort)
    after = before if change == NO_CHANGE else _change_whole(plan, population, before, change)
    advance = population.follow(effort, [batch], runs * steps)
    asked = Training(plan, population, rule, (), batch, runs, seed, change, since)
    rngs = (np.random.default_rng([seed, one]) for one in range(runs))
    wholes = [before if number < since else after for number in range(1, steps + 1)]
    found = [[*_run(asked, wholes, rng, advance)] for rng in rngs]
    table = np.array(found).transpose(1, 2, 0)  # axes: step, quantity, run
    taken = tuple(Step(number, *map(Quartiles.of, rows)) for number, rows in enumerate(table, 1))
    return asked._replace(steps=taken)


def _measure_whole(plan: Plan, population: Population, effort: Effort) -> _Whole:
    """Return the watched sample's y and the statistics by the whole population."""
    whole = calculate(plan, population.values, effort=effort)
    reference = take_sample(whole, population.axis, population.sample)
    return _Whole(reference, *measure_batch(whole, plan.spec.ddof))


def _change_whole(plan: Plan, population: Population, whole: _Whole, change: Change) -> _Whole:
    """Return the watched sample's y and the statistics by the changed population: scale · x + shift."""
    with np.errstate(all="ignore"):
        given = Given(change.scale * whole.mean + change.shift, change.scale**2 * whole.var)
    inputs = Inputs(given=given) if depends_on_batch(plan) else NO_INPUTS
    result = calculate_batch(plan, change.apply(population.take([population.sample])), inputs)
    return _Whole(take_sample(result, population.axis, 0), *given)


def _run(
    asked: Training, wholes: Sequence[_Whole], rng: np.random.Generator, advance: Callable[[int], None]
) -> Iterator[list[float]]:
    """Yield [training, evaluation, mean, var] for each step of one run: distances from the whole population.

    The first two are of the watched sample's y, with the batch's and with the running statistics; the others
    are of the running statistics themselves (`Step` has their definitions).

    Parameters
    ----------
    asked : Training
        The population, rule and numbers of the simulation.
    wholes : sequence of _Whole
        The results on the whole population, one for each step.
    rng : numpy.random.Generator
        Draws the batches.
    advance : callable
        Takes the number of samples in the batch that is finished.
    """
    population, state = asked.population, begin(asked.plan)
    axis = population.axis
    for number, whole in enumerate(wholes, 1):
        batch = population.draw(asked.batch, rng)
        batch = asked.change.apply(batch) if number >= asked.since else batch
        result = calculate_batch(asked.plan, batch)
        state = update(state, result, asked.rule).after
        running = state.statistics
        evaluated = calculate_batch(asked.plan, batch.take([0], axis), Inputs(given=running))
        outputs = (take_sample(result, axis, 0), take_sample(evaluated, axis, 0))
        distances = [measure_distance(output, whole.reference) for output in outputs]
        with np.errstate(all="ignore"):
            mean_off = float(np.mean(np.abs(running.mean - whole.mean) / np.sqrt(whole.var)))
            var_off = float(np.mean(np.abs(running.var / whole.var - 1.0)))
        yield [*distances, mean_off, var_off]
        advance(asked.batch)
