"""A gate multiplies what a norm should make, wherever the tiles are cut: the exact product, rounded once."""

from __future__ import annotations

import numpy as np
import pytest

import normcli
from normcli.checking.check import check
from normcli.engine.inputs import Inputs
from normcli.errors import DataError
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.numerics.elements.activation import Activation
from normcli.numerics.elements.gate import Gated
from tests.conftest import pose


@pytest.mark.parametrize("norm", ["bn", "ln", "gn"])
def test_every_value_has_its_own_gate(norm, tmp_path):
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, 4, 3, 5)), rng.normal(size=(2, 4, 3, 5))
    options = {"groups": 2} if norm == "gn" else {}
    y = normcli.normalize(x, norm, gate=z, gate_act="sigmoid", **options).normalized
    np.save(tmp_path / "z.npy", z)
    plan = make_plan(Request(norm, **options), x.shape, x.dtype)
    for values in (z, np.load(tmp_path / "z.npy", mmap_mode="r")):
        inputs = Inputs(gate=Gated(values, Activation.SIGMOID))
        found = check(pose(plan, x, inputs), {"normalized": y}).comparisons["normalized"]
        assert found.max_ulp == 0.0


@pytest.mark.parametrize("order", ["after", "before"])
@pytest.mark.parametrize("act", Activation)
def test_the_exact_result_rounded_once_is_within_half_a_unit(act, order):
    x, z = np.random.default_rng(1).normal(size=(2, 3, 40)).astype(np.float32)
    given = {"gate": z, "gate_act": act.value, "gate_order": order}
    y = normcli.normalize(x, "rms", **given).normalized
    judged = normcli.check(y, x, "rms", max_ulp=0.5, **given)
    assert judged.ok
    y[1, 7] = np.nextafter(y[1, 7], np.float32(9.0))
    assert not normcli.check(y, x, "rms", max_ulp=0.5, **given)


def test_a_gate_broadcasts_in_a_check_and_one_of_another_shape_is_refused():
    x = np.random.default_rng(2).normal(size=(2, 3))
    y = normcli.normalize(x, "ln", gate=[1.0, 2.0, 3.0]).normalized
    assert normcli.check(y, x, "ln", gate=[1.0, 2.0, 3.0])
    assert normcli.check(2 * y, x, "ln", gate=[1.0, 2.0, 3.0]).diagnosis is not None
    with pytest.raises(DataError, match=r"\(2,\), which does not broadcast to \(2, 3\)"):
        normcli.check(y, x, "ln", gate=np.ones(2))
