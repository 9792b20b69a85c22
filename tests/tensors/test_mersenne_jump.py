"""Jumps of the Mersenne Twister are held against as many words that are drawn, and against torch."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.tensors.random import mersenne_jump
from normcli.tensors.random.generate import generate
from normcli.tensors.random.mersenne_jump import advance
from normcli.tensors.random.recipe import Recipe
from tests.marks import sampled


@pytest.mark.parametrize("before", [0, 1, 623, 624, 1000])
@pytest.mark.parametrize("count", [0, 1, 1248, 1249, 20_000, 1_000_000])
def test_a_jump_is_as_many_words(before, count, monkeypatch):
    monkeypatch.setattr(mersenne_jump, "_WORTH_IT", 1248)
    jumped, drawn = np.random.RandomState(5), np.random.RandomState(5)
    for engine in (jumped, drawn):
        engine.randint(0, 2**32, before, dtype=np.uint32)
    advance(jumped, count)
    drawn.randint(0, 2**32, count, dtype=np.uint32)
    found, expected = (engine.randint(0, 2**32, 2000, dtype=np.uint32) for engine in (jumped, drawn))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.slow
def test_a_jump_of_jumps_is_one():
    once, twice = np.random.RandomState(5), np.random.RandomState(5)
    advance(once, 10**10)
    for _ in range(2):
        advance(twice, 5 * 10**9)
    assert once.randint(0, 2**62) == twice.randint(0, 2**62)


RANGES = {"randint": (0, 10), "wide": (0, 2**40), "uniform": (0, 1), "normal": (None, None)}


@sampled
@pytest.mark.peers
@pytest.mark.parametrize("skip", [1, 15, 16, 17, 1_000_000, 3_000_001])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("dist", RANGES)
def test_torch_draws_the_same_behind_it(skip, dist, dtype):
    torch = pytest.importorskip("torch")
    low, high = RANGES[dist]
    draw = {
        "normal": lambda count: torch.randn(count, dtype=getattr(torch, dtype)),
        "uniform": lambda count: torch.empty(count, dtype=getattr(torch, dtype)).uniform_(low, high),
    }.get(dist, lambda count: torch.randint(low, high, (count,)))
    torch.manual_seed(9)
    draw(skip)
    is_whole = dist in ("randint", "wide")
    recipe = Recipe(
        (40,), "randint" if is_whole else dist, low, high, 9, "torch", skip, None if is_whole else dtype
    )
    np.testing.assert_allclose(generate(recipe).values, draw(40).numpy(), rtol=1e-15)
