"""A short run of the plants that `python -m tests.bench judge` counts."""

from __future__ import annotations

from collections import Counter

import pytest

from normcli.identifying.words.phrasing import diagnose
from tests.identifying.plain_words import require_plain_words
from tests.marks import EVERY_CASE, choose_some, costly, slowly
from tests.peers import PEERS
from tests.plants import LISTS, list_all
from tests.plants.algorithms import list_algorithms
from tests.plants.faults import TABLE, list_wrong, make_wrong
from tests.plants.frameworks import DTYPES, KINDS, OFFSETS, plant_peer
from tests.plants.judgement import judge
from tests.plants.kernels import list_kernels
from tests.plants.outside import list_maps
from tests.plants.plant import Outcome, Plant
from tests.plants.wrong_kernels import CHECKED, ask
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
    assert verdict.outcome in (Outcome.RIGHT, Outcome.AMONG), (
        f"{plant.name}: {diagnose(verdict.found).sentence}"
    )


FAR = [
    (peer, offset)
    for peer in RUN
    if (peer.norm, peer.framework) in {("ln", "torch"), ("bn", "torch"), ("rms", "torch"), ("in", "onnx")}
    for offset in OFFSETS
]


@live
@pytest.mark.parametrize(
    ("peer", "offset"), [pytest.param(*case, id=f"{describe(case[0])}, mean {case[1]:g}") for case in FAR]
)
def test_what_a_framework_made_of_data_off_centre_is_named_nothing_else(peer, offset):
    load(peer.module)
    verdict = judge(plant_peer(peer, "float32", KINDS[0], offset=offset))
    assert verdict.outcome is not Outcome.WRONG, diagnose(verdict.found).sentence


def judge_in_plain_words(plant):
    """Return the verdict on a plant, whose sentences are held to the rules."""
    verdict = judge(plant)
    require_plain_words(diagnose(verdict.found))
    return verdict


def every(plants, number):
    """Return some plants as cases of a test, named."""
    return [pytest.param(plant, id=f"{plant.kind}: {plant.name}") for plant in [*plants][::number]]


@pytest.mark.slow
@costly
@pytest.mark.parametrize("plant", [*every(list_maps(), 71), *slowly(every(list_maps(), 13))])
def test_a_map_is_no_norm(plant):
    verdict = judge_in_plain_words(plant)
    assert verdict.outcome is Outcome.RIGHT, diagnose(verdict.found).sentence


@costly
@pytest.mark.slow
@pytest.mark.parametrize("plant", every(list_algorithms(), 23))
def test_what_an_algorithm_made_is_named(plant):
    verdict = judge_in_plain_words(plant)
    assert verdict.outcome in (Outcome.RIGHT, Outcome.AMONG), diagnose(verdict.found).sentence


@costly
@pytest.mark.parametrize("plant", [*every(list_kernels(), 33), *slowly(every(list_kernels(), 9))])
@pytest.mark.slow
def test_what_a_kernel_made_of_data_off_centre_is_named(plant):
    verdict = judge_in_plain_words(plant)
    assert verdict.outcome in (Outcome.RIGHT, Outcome.AMONG), diagnose(verdict.found).sentence


# -- wrong kernels

CLEAREST = {
    "stats-rounded": ("mean and rstd in float16", 1),
    "stats-rounded-variance": ("variance in float16", 0),
    "stats-tail-skipped": ("last block of 4 not added", 0),
    "stats-shard": ("each half of the features by itself", 0),
    "affine-gamma-other-sample": ("gamma of the first sample", 0),
    "where-index": ("row 3 of another call", 0),
    "where-region": ("rows from 20 on of another call", 0),
}
"""Of faults whose first kernel may be named by another fault as well: the kernel that is named by this one alone."""

KERNELS = {row.ids[0]: (row.words, 0) for row in reversed(TABLE)} | CLEAREST
"""By the id of a fault, the words of a kernel that has it, and the number of its layer."""

WRONG = {wrong.name: wrong for wrong in list_wrong()}


def judge_as_checked(wrong):
    return judge(Plant(wrong.name, CHECKED, ask(wrong, is_checked=True), wrong.really, wrong))


@pytest.mark.all_quick
@pytest.mark.parametrize(
    "fault", [*[*KERNELS][::6], *slowly(name for number, name in enumerate(KERNELS) if number % 6)]
)
def test_each_fault_is_named_where_a_kernel_has_it(fault):
    words, number = KERNELS[fault]
    row = next(row for row in TABLE if (row.ids[0], row.words) == (fault, words))
    verdict = judge_as_checked(make_wrong(row, number))
    assert [[one.id for one in claim.faults] for claim in verdict.found.claims[:1]] == [[fault]]
    assert verdict.outcome is Outcome.RIGHT


LEAST_NAMED = 0.9
"""The share of wrong kernels whose fault is named."""


@pytest.mark.slow
def test_most_faults_are_named():
    outcomes = Counter(judge_as_checked(wrong).outcome for wrong in choose_some([*WRONG.values()][::11], 6))
    assert outcomes[Outcome.RIGHT] >= LEAST_NAMED * outcomes.total()


# -- how many there are


@live
@pytest.mark.skipif(not EVERY_CASE, reason="makes every plant, for a minute")
def test_every_plant_has_a_kind_and_a_name_of_its_own():
    names = Counter((plant.kind, plant.name) for plant in list_all())
    assert not [name for name, count in names.items() if count > 1]
    assert {kind for kind, _ in names} == {kind for kinds, _ in LISTS for kind in kinds}
    assert names.total() >= 1500
