"""Training against evaluation: against a loop in NumPy, and what data that move do to either."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.errors import UsageError
from normcli.norms.request import Request
from normcli.simulate.batches import Population
from normcli.simulate.training import simulate_training

X = np.random.default_rng(0).normal(3.0, 2.0, (32, 3, 4))


def test_the_steps_are_those_of_a_loop_in_numpy():
    found = simulate_training(X, batch=4, steps=5, runs=1, momentum=0.3, seed=7, shift=2.0, scale=0.5, since=4)
    rng, population = np.random.default_rng([7, 0]), Population(X, 0, 0)
    mean, var = np.zeros(3), np.ones(3)
    for number, step in enumerate(found.steps, 1):
        batch, every = population.draw(4, rng), X
        if number >= 4:
            batch, every = 0.5 * batch + 2.0, 0.5 * X + 2.0
        whole = (every[0] - every.mean((0, 2))[:, None]) / np.sqrt(every.var((0, 2)) + 1e-5)[:, None]
        mean = 0.7 * mean + 0.3 * batch.mean((0, 2))
        var = 0.7 * var + 0.3 * batch.var((0, 2), ddof=1)
        trained = (batch[0] - batch.mean((0, 2))[:, None]) / np.sqrt(batch.var((0, 2)) + 1e-5)[:, None]
        evaluated = (batch[0] - mean[:, None]) / np.sqrt(var + 1e-5)[:, None]
        assert step.number == number
        np.testing.assert_allclose(step.training.median, np.abs(trained - whole).mean(), rtol=1e-12)
        np.testing.assert_allclose(step.evaluation.median, np.abs(evaluated - whole).mean(), rtol=1e-12)
        off = np.abs(mean - every.mean((0, 2))) / every.std((0, 2))
        np.testing.assert_allclose(step.mean.median, off.mean(), rtol=1e-12)
        np.testing.assert_allclose(step.var.median, np.abs(var / every.var((0, 2)) - 1).mean(), rtol=1e-12)


def test_the_cumulative_average_comes_near_the_population():
    found = simulate_training(X, batch=16, steps=20, runs=1, momentum="none")
    assert found.steps[-1].evaluation.median < 0.5 * found.steps[-1].training.median


def test_a_framework_brings_its_momentum():
    found = simulate_training(np.moveaxis(X, 1, -1), Request("bn", like="keras"), batch=4, steps=2, runs=1)
    assert (found.rule.momentum, found.rule.weight_of) == (0.99, "old")


def test_a_norm_without_running_statistics_is_refused():
    with pytest.raises(UsageError, match="ln keeps no running statistics: evaluation is what training is"):
        simulate_training(X, "ln")
