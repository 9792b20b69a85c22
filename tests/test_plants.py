"""`identify` of what live frameworks made: a short run of the plants that `python -m tests.bench judge` counts."""

from __future__ import annotations

import pytest

from normcli.verify.sentence import format_sentence
from tests.peers import PEERS
from tests.plants import DTYPES, KINDS, Outcome, judge, plant_peer
from tests.test_conformance import describe, live, load

RUN = [peer for peer in PEERS if peer.module in DTYPES and not peer.options]
"""The conventions that can be run, each once."""


@live
@pytest.mark.parametrize(
    ("number", "peer"), [pytest.param(number, peer, id=describe(peer)) for number, peer in enumerate(RUN)]
)
def test_what_a_framework_made_is_named(number, peer):
    load(peer.module)
    dtypes = DTYPES[peer.module]
    plant = plant_peer(peer, dtypes[number % len(dtypes)], KINDS[number % 2])
    if plant is None:
        pytest.skip("the framework has no such operator of this dtype")
    verdict = judge(plant)
    assert verdict.outcome in (Outcome.RIGHT, Outcome.AMONG), f"{plant.name}: {format_sentence(verdict.found)}"
