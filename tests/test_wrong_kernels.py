"""The tables of wrong kernels: each is wrong, by more than its rounding, and each fault has one."""

from __future__ import annotations

import pytest

from normcli.checking.check import check
from normcli.engine.inputs import Inputs
from normcli.identifying.faults.claim import FAULTS
from tests.conftest import pose
from tests.marks import choose_some, costly
from tests.plants import faults
from tests.plants.faults import TABLE, list_wrong, make_wrong

IDS = {
    "before": "activation dropout gate gate-activation gate-bare gate-exchanged gate-missing gate-rolled gate-rounded input-rounded input-scaled residual-missing residual-rounding residual-scaled residual-subtracted residual-twice",
    "order": "exchanged memory permuted reversed rolled transposed",
    "stats": (
        "absolute alike approximate averaged centred constant count ddof eps-floor eps-other eps-outside eps-scaled eps-subtracted eps-twice half-sums length "
        "mask-divisor mask-end mask-inverted mask-zeros masked mean-square mean-subtracted mean-twice median multiplied not-centred no-divisor no-mean not-rooted one-pass other-axes other-row overflow padded padded-mean "
        "padded-variance partial rounded rounded-mean rounded-mean-squared rounded-rstd rounded-variance scaler shard tail-skipped unknown-both unknown-divisor "
        "slice unknown-mean underflow variance weighted zero"
    ),
    "stored": "biased exchanged not-rooted rolled rooted-twice unused updated",
    "affine": (
        "beta-alone beta-doubled beta-first beta-missing beta-negated beta-rolled constant gamma-absolute gamma-divided gamma-doubled gamma-exp "
        "gamma-missing gamma-negated gamma-other-sample gamma-permuted gamma-plus-one gamma-plus-one-twice gamma-plus-two "
        "gamma-reversed gamma-rolled gamma-rounded gamma-shifted gamma-twice missing offset other-axis swapped unknown-gamma"
    ),
    "after": (
        "absolute activation cast clipped dropout gate gate-activation gate-bare gate-exchanged gate-missing gate-norm gate-rolled gate-rounded gated gelu input-added leaky-relu masked quantized "
        "relu residual-added sigmoid silu tanh"
    ),
    "where": "index infinite input nan region values zeros",
}
"""The names of faults, by their joints: they are kept."""

NAMES = {f"{joint}-{name}" for joint, names in IDS.items() for name in names.split()}

JOINTS = (
    faults.around,
    faults.order,
    faults.statistics,
    faults.masking,
    faults.stored,
    faults.parameters,
    faults.behind,
    faults.where,
    faults.today,
)


def test_every_fault_has_a_wrong_kernel():
    assert {name for row in TABLE for name in row.ids} == NAMES
    assert {row.ids[0] for row in TABLE} == NAMES


def test_the_ids_of_faults_are_kept():
    """An id is in JSON, and is kept for ever: to take one from this list is to break it."""
    ids = [row.fault.id for row in FAULTS]
    assert sorted(ids) == sorted(NAMES)


def passes(wrong, y):
    return check(pose(wrong.kernel.plan, wrong.kernel.tensor, wrong.inputs), {"normalized": y}).ok


@pytest.mark.slow
@costly
@pytest.mark.all_tried
@pytest.mark.parametrize("joint", JOINTS, ids=lambda joint: joint.__name__.split(".")[-1])
def test_a_wrong_kernel_is_off_by_more_than_its_rounding_and_right_without_its_fault(joint):
    made = [make_wrong(row, number) for row in joint.ROWS for number in choose_some(range(len(row.layers)), 3)]
    assert not [wrong.name for wrong in made if passes(wrong, wrong.y)]
    assert not [wrong.name for wrong in made if not passes(wrong, wrong.right)]


@pytest.mark.slow
def test_what_a_request_says_of_a_wrong_kernel_is_so():
    """Where another request is all that is wrong, its exact result is y."""
    requests = [wrong for wrong in list_wrong() if wrong.really is not None and wrong.kernel.given is None]
    off = []
    for wrong in requests:
        names = wrong.really.norm.parameter_names
        shaped = {
            name: values.reshape(wrong.really.parameters.shape)
            for name, values in wrong.kernel.parameters.items()
            if name in names
        }
        if len(shaped) == len(wrong.kernel.parameters):
            inputs = Inputs(shaped.get("gamma"), shaped.get("beta"))
            if not check(pose(wrong.really, wrong.kernel.tensor, inputs), {"normalized": wrong.y}).ok:
                off.append(wrong.name)
    assert requests
    assert not off
