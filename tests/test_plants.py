"""A short run of the plants that `python -m tests.bench judge` counts."""

from __future__ import annotations

from collections import Counter

import pytest

from normcli.identifying.words.phrasing import diagnose
from tests.identifying.plain_words import require_plain_words
from tests.marks import EVERY_CASE, choose_some, sampled, slowly
from tests.peers import PEERS
from tests.plants import LISTS, list_all
from tests.plants.algorithms import list_algorithms
from tests.plants.faults import TABLE, make_wrong
from tests.plants.frameworks import DTYPES, KINDS, OFFSETS, plant_peer
from tests.plants.judgement import judge
from tests.plants.kernels import list_kernels
from tests.plants.outside import list_far_maps, list_maps
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
    if (peer.norm, peer.framework) in {*((norm, "torch") for norm in ("ln", "bn", "rms", "in")), ("in", "onnx")}
    for offset in OFFSETS
]


@live
@pytest.mark.parametrize(
    ("peer", "offset"), [pytest.param(*case, id=f"{describe(case[0])}, mean {case[1]:g}") for case in FAR]
)
def test_what_a_framework_made_of_data_off_centre_is_named(peer, offset):
    load(peer.module)
    verdict = judge(plant_peer(peer, "float32", KINDS[0], offset=offset))
    assert verdict.outcome is Outcome.RIGHT, diagnose(verdict.found).sentence


@pytest.mark.slow
@sampled("make")
@pytest.mark.parametrize("number", choose_some(range(285), 9))
@pytest.mark.parametrize("make", [list_maps, list_far_maps, list_algorithms, list_kernels])
def test_what_a_map_an_algorithm_or_a_kernel_made_is_named(make, number):
    """A map is no norm; a kernel of data off centre, or an algorithm, may be one of several."""
    plants = [*make()]
    plant = plants[number % len(plants)]
    verdict = judge(plant)
    require_plain_words(diagnose(verdict.found))
    allowed = (Outcome.RIGHT,) if plant.truth is None else (Outcome.RIGHT, Outcome.AMONG)
    assert verdict.outcome in allowed, f"{plant.name}: {diagnose(verdict.found).sentence}"


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
    cases = [(row, number) for row in TABLE for number in range(len(row.layers) * row.times)]
    outcomes = Counter(judge_as_checked(make_wrong(*case)).outcome for case in choose_some(cases[::11], 6))
    assert outcomes[Outcome.RIGHT] >= LEAST_NAMED * outcomes.total()


# -- how many there are


@live
@pytest.mark.skipif(not EVERY_CASE, reason="makes every plant, for a minute")
def test_every_plant_has_a_kind_and_a_name_of_its_own():
    names = Counter((plant.kind, plant.name) for plant in list_all())
    assert not [name for name, count in names.items() if count > 1]
    assert {kind for kind, _ in names} == {kind for kinds, _ in LISTS for kind in kinds}
    assert names.total() >= 1500
