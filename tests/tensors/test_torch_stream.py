"""torch's stream against what torch 2.13 drew; `test_peers.py` runs the same against torch itself."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest

from normcli.tensors.random.torch_stream import TorchStream
from tests.conftest import DATA

RECORDED = json.loads((DATA / "torch_stream.json").read_text())["draws"]


def _leftover(stream):
    return np.concatenate([stream.normal(3, None), stream.uniform(0, 1, 2, None), stream.normal(2, None)])


DRAWS = {
    "rand": lambda s: s.uniform(0, 1, 8, None),
    "rand_float64": lambda s: s.uniform(0, 1, 8, "float64"),
    "uniform": lambda s: s.uniform(-2.5, 3.7, 8, None),
    "uniform_narrow": lambda s: s.uniform(1, 1 + 2**-22, 8, None),
    "uniform_float64": lambda s: s.uniform(-2.5, 3.7, 8, "float64"),
    "randn_7": lambda s: s.normal(7, None),
    "randn_15": lambda s: s.normal(15, None),
    "randn_16": lambda s: s.normal(16, None),
    "randn_37": lambda s: s.normal(37, None),
    "randn_7_float64": lambda s: s.normal(7, "float64"),
    "leftover": _leftover,
    "randint": lambda s: s.integers(0, 10, 8),
    "randint_below": lambda s: s.integers(-5, 2**28 - 6, 8),
    "randint_wide": lambda s: s.integers(-5, 2**28 - 5, 8),
    "randint_64": lambda s: s.integers(-(2**62), 2**62, 8),
}


@pytest.mark.parametrize("name", DRAWS)
def test_bit_equal_to_torch(name):
    for recorded in RECORDED:
        drawn = DRAWS[name](TorchStream(recorded["seed"]))
        np.testing.assert_array_equal(
            drawn, np.array(recorded[name], dtype=drawn.dtype), f"seed {recorded['seed']}"
        )


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda r: f"seed {r['seed']}")
def test_many_normal_values_bit_equal_to_torch(recorded):
    drawn = TorchStream(recorded["seed"]).normal(100_003, None).astype("<f4")
    assert hashlib.sha256(drawn.tobytes()).hexdigest() == recorded["randn_100003"]


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda r: f"seed {r['seed']}")
def test_blocks_of_float64_are_within_2_ulp_of_torch(recorded):
    drawn = TorchStream(recorded["seed"]).normal(37, "float64")
    np.testing.assert_array_max_ulp(drawn, np.array(recorded["randn_37_float64"]), maxulp=2)


def test_the_engine_uses_the_low_32_bits_of_a_seed():
    for seed in (-7, 2**32 + 5, 2**63):
        low = TorchStream(seed % 2**32).uniform(0, 1, 5, None)
        np.testing.assert_array_equal(TorchStream(seed).uniform(0, 1, 5, None), low)
