"""`identify` of what live frameworks made: a short run of the plants that `python -m tests.bench judge` counts."""

from __future__ import annotations

import pytest

from normcli.verify.sentence import format_sentence
from tests.peers import PEERS
from tests.plants import DTYPES, KINDS, Outcome, judge, list_algorithms, plant_peer
from tests.test_conformance import describe, live, load

RUN = [peer for peer in PEERS if peer.module in DTYPES and not peer.options]
"""The conventions that can be run, each once."""


IN_FLOAT32 = {("bn", "keras"), ("lp", "keras"), ("zscore", "keras"), ("bn", "equinox"), ("wn", "flax-linen")}
"""Nothing reproduces them in another dtype yet: their statistics are in half precision, or of float64 in float32."""


@live
@pytest.mark.parametrize(
    ("number", "peer"), [pytest.param(number, peer, id=describe(peer)) for number, peer in enumerate(RUN)]
)
def test_what_a_framework_made_is_named(number, peer):
    load(peer.module)
    dtypes = DTYPES[peer.module]
    dtype = dtypes[number % len(dtypes)] if (peer.norm, peer.framework) not in IN_FLOAT32 else dtypes[0]
    plant = plant_peer(peer, dtype, KINDS[number % 2])
    if plant is None:
        pytest.skip("the framework has no such operator of this dtype")
    verdict = judge(plant)
    assert verdict.outcome in (Outcome.RIGHT, Outcome.AMONG), f"{plant.name}: {format_sentence(verdict.found)}"


@pytest.mark.slow
@pytest.mark.parametrize("plant", list(list_algorithms())[::23], ids=lambda plant: plant.name)
def test_what_an_algorithm_made_is_named(plant):
    verdict = judge(plant)
    assert verdict.outcome in (Outcome.RIGHT, Outcome.AMONG), format_sentence(verdict.found)
