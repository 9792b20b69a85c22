"""How far one sample moves with its batch: against NumPy, and what may not move it."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import NORMS
from normcli.errors import DataError, UsageError
from normcli.norms.request import Request
from normcli.norms.rules import AxesRule
from normcli.simulate.batch_size import calculate_batch, simulate_batch_size
from normcli.simulate.batches import Change, Population

X = np.random.default_rng(0).normal(3.0, 2.0, (24, 4, 3, 2))


def normalize_channels(batch):
    return (batch - batch.mean((0, 2, 3), keepdims=True)) / np.sqrt(batch.var((0, 2, 3), keepdims=True) + 1e-5)


@pytest.mark.parametrize("norm", NORMS)
def test_a_sample_moves_where_its_norm_reduces_the_axis_of_samples_and_nowhere_else(norm):
    groups = 2 if NORMS[norm].axes is AxesRule.CHANNEL_GROUPS else None
    found = simulate_batch_size(X, {norm: Request(norm, groups=groups)}, batches=[2], draws=2).norms[0]
    others = (X[1], 9 * X[2])
    outputs = [calculate_batch(found.plan, np.stack([X[0], other])).normalized[0] for other in others]
    same = bool((outputs[0] == outputs[1]).all())
    assert same != found.moves
    assert (found.movements[0].output == (0.0, 0.0, 0.0)) == same


def test_the_distances_are_those_of_numpy():
    found = simulate_batch_size(X, ["bn"], batches=[4], draws=7, seed=5, sample=3, shift=1.0, scale=2.0)
    population, rng = Population(X, 0, 3), np.random.default_rng([5, 4])
    whole = normalize_channels(X)[3]
    mean, std = X.mean((0, 2, 3)), X.std((0, 2, 3))
    outputs, centres, spreads = [], [], []
    for _ in range(7):
        batch = population.draw(4, rng, Change(1.0, 2.0))
        np.testing.assert_array_equal(batch[0], X[3])
        outputs.append(np.abs(normalize_channels(batch)[0] - whole).mean())
        centres.append((np.abs(batch.mean((0, 2, 3)) - mean) / std).mean())
        spreads.append(np.abs(batch.std((0, 2, 3)) / std - 1).mean())
    movement = found.norms[0].movements[0]
    for measured, numbers in zip(movement[1:], (outputs, centres, spreads), strict=True):
        np.testing.assert_allclose(measured, np.quantile(numbers, [0.25, 0.5, 0.75]), rtol=1e-12)


def test_batches_have_the_watched_sample_first_and_no_other_twice():
    population = Population(np.arange(10)[:, None], 0, 4)
    rng = np.random.default_rng(0)
    for _ in range(20):
        batch = population.draw(6, rng)[:, 0].tolist()
        assert batch[0] == 4
        assert len({*batch}) == 6
    assert sorted(population.draw(10, rng)[:, 0].tolist()) == list(range(10))


def test_of_a_norm_that_subtracts_nothing_there_is_no_centre():
    one = simulate_batch_size(X, {"rms": Request("rms", axes=(0,))}, batches=[2], draws=3).norms[0]
    assert one.movements[0].centre is None
    assert one.movements[0].spread.median > 0.0


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"batches": [25]}, DataError, "batches of 25 take as many samples; the input has 24 samples"),
        ({"batches": [0]}, UsageError, "1 sample or more"),
        ({"sample": 24}, UsageError, "sample 24 is none of the 24 samples"),
    ],
)
def test_what_cannot_be_drawn_is_refused(options, error, told):
    with pytest.raises(error, match=told):
        simulate_batch_size(X, ["bn"], **options)
