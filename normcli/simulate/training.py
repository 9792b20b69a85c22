"""Training against evaluation, step after step: one sample by its batch's statistics, and by running ones."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.engine.inputs import Inputs
from normcli.engine.walk import DEFAULT_EFFORT
from normcli.errors import UsageError
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.printable import format_count
from normcli.results.calculate import calculate
from normcli.running.average import begin, choose_rule, measure_batch, update
from normcli.simulate.batch_size import (
    Change,
    Population,
    Quartiles,
    calculate_batch,
    measure_distance,
    take_sample,
)
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike

    from normcli.engine.walk import Effort
    from normcli.norms.conventions import RunningRule
    from normcli.norms.plan import Plan
    from normcli.results.result import Result

STEPS, BATCH, RUNS = 60, 8, 20
"""Steps, samples in a batch, and runs with other batches, by default."""


class Step(NamedTuple):
    """One step: distances of the watched sample and of the running statistics, over the runs.

    Parameters
    ----------
    number : int
        From 1.
    training, evaluation : Quartiles
        Of the mean of |y − y of the population| over the values of the sample, in the unit of y: with the
        statistics of the step's batch, and with the running ones after it.
    mean, var : Quartiles
        Of |running mean − that of the population| over the population's deviation, and of |running variance /
        that of the population − 1|: means over the channels.
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
    name : str
    plan : Plan
        Of the whole population.
    population : Population
    rule : RunningRule
    steps : tuple of Step
    batch, runs, seed : int
    change : Change
        Of all values, from step `since` on.
    since : int
    """

    name: str
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
        """Whether no distance is NaN, as where values of the population are."""
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
    """Train on batches around one sample, and hold its output in training and in evaluation against each other.

    Parameters
    ----------
    x : array_like, shape (samples, …)
        The population, as of `simulate_batch_size`.
    norm : str or Request
        One that keeps running statistics. They begin with mean 0 and variance 1.
    batch, steps : int
        Samples in a batch, and batches.
    runs : int
        How often all steps are run, with other batches.
    momentum : float, "none" or None
        Of the running statistics; None is the convention's, 0.1 of the new batch.
    seed, sample
        As of `simulate_batch_size`.
    shift, scale : float
        From step `since` on, all values become scale · x + shift, the watched sample's too: the data move. The
        batch's own statistics undo that; the running ones follow.
    since : int, optional
        One of the steps; by default that after the first half.
    effort : Effort

    Raises
    ------
    NormError
        If the norm keeps no running statistics, or as `simulate_batch_size`.

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
    if steps < 1 or runs < 1:
        raise UsageError("steps and runs are 1 or more")
    population = Population(values, plan.grid.layout.batch or 0, sample)
    population.require_batches([batch], "a batch")
    rule = choose_rule(plan.norm.name, request.like, momentum, None, None)
    since = steps // 2 + 1 if since is None else since
    if not 1 <= since <= steps:
        raise UsageError(f"since {since} is none of the {format_count(steps, 'step')}")
    change = Change(shift, scale)
    change.require_finite()
    whole = calculate(plan, values, effort=effort)
    advance = population.follow(effort, [batch], runs * steps)
    asked = Training(plan.norm.name, plan, population, rule, (), batch, runs, seed, change, since)
    found: list[list[list[float]]] = []
    for one in range(runs):
        measured = _run(asked, steps, whole, np.random.default_rng([seed, one]))
        found.append([])
        for row in measured:
            found[-1].append(row)
            advance(batch)
    table = np.array(found).transpose(1, 2, 0)  # of steps, and what is measured, over runs
    taken = tuple(Step(number, *map(Quartiles.of, rows)) for number, rows in enumerate(table, 1))
    return asked._replace(steps=taken)


def _run(asked: Training, steps: int, whole: Result, rng: np.random.Generator) -> Iterator[list[float]]:
    """Yield the measurements at each step of one run, in the order of the fields of `Step`."""
    population, state = asked.population, begin(asked.plan)
    axis, (mean, var) = population.axis, measure_batch(whole, asked.plan.spec.ddof)
    reference = take_sample(whole, axis, population.sample)
    for number in range(1, steps + 1):
        batch = population.draw(asked.batch, rng)
        batch = asked.change.apply(batch) if number >= asked.since else batch
        result = calculate_batch(asked.plan, batch)
        state = update(state, result, asked.rule).after
        running = state.statistics
        evaluated = calculate_batch(asked.plan, batch.take([0], axis), Inputs(given=running))
        outputs = (take_sample(result, axis, 0), take_sample(evaluated, axis, 0))
        distances = [measure_distance(output, reference) for output in outputs]
        with np.errstate(all="ignore"):
            mean_off = float(np.mean(np.abs(running.mean - mean) / np.sqrt(var)))
            var_off = float(np.mean(np.abs(running.var / var - 1.0)))
        yield [*distances, mean_off, var_off]
