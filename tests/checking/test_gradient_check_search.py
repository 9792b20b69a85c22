"""Which fault of a gradient is said: the nearest, beside it those that are as near, and none by chance."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import backward
from normcli.checking.gradient_check import _choose, _Scales, check_gradients, find_fault
from normcli.checking.gradient_faults import FACTOR, ZERO
from normcli.results.backward import BackwardProblem

RIGHT, OFF = np.array([1.0, 0.0, 0.0]), np.array([0.0, 5.0, 0.0])
NEAR, FAR = np.array([0.0, 5.0, 0.005]), np.array([0.0, 5.0, 0.01])
ONE = ZERO._replace(id="one", words="one is {0}"), ("a",), OFF
SAME = ZERO._replace(id="same", words="the same"), (), OFF
OTHER = ZERO._replace(id="other", words="other"), (), FAR


def choose(actual, *candidates, noise=0.0, clearly=8.0):
    return _choose("dx", actual, RIGHT, candidates, _Scales(np.ones(3), np.full(3, noise), None, clearly))


def name_all(finding):
    return [fault.id for fault in (finding.fault, *finding.alternatives)]


def test_the_nearest_is_said_and_those_that_are_as_near():
    assert name_all(choose(NEAR, ONE)) == ["dx-one"]
    assert choose(NEAR, ONE, SAME).sentence == "dx: one is a, or on these data the same: the same."
    assert name_all(choose(NEAR, ONE, OTHER)) == ["dx-one", "dx-other"]
    assert name_all(choose(OFF, OTHER, ONE)) == ["dx-one"]
    assert name_all(choose(OFF, OTHER, ONE, noise=0.01)) == ["dx-one", "dx-other"]
    assert choose(NEAR, ONE, (ONE[0], ("b",), OFF)).fault.words == "one is a or b"


def test_what_rounding_explains_has_no_fault():
    assert choose(RIGHT + 0.001, OTHER, (FACTOR, ("1.001",), RIGHT + 0.001), noise=0.01) is None
    assert choose(RIGHT + 0.001, OTHER) is None


def test_of_few_values_a_fault_has_to_come_nearer():
    actual = OFF * 1.05
    assert choose(actual, ONE) is not None
    assert choose(actual, ONE, clearly=32.0) is None


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_gradients_below_the_smallest_normal_number_are_not_called_wrong(dtype):
    """Those of a loss that is a mean over many: nothing but their rounding is wrong."""
    rng = np.random.default_rng(0)
    x, dy = rng.normal(size=(8, 32)), rng.normal(size=(8, 32)) * (1e-7 if dtype == "float16" else 1e-40)
    exact = backward(x, dy, "ln", dtype="float64")
    assert find_fault(exact, "dx", backward(x, dy, "ln", dtype=dtype).dx) is None


def test_groups_count_alike_however_unequal_they_are():
    """The gradient of the narrowest group is by far the largest; the fault is that of the others."""
    rng = np.random.default_rng(0)
    x, dy = rng.normal(size=(8, 32)) * 10.0 ** np.arange(-2, 6)[:, None], rng.normal(size=(8, 32))
    exact = backward(x, dy, "ln")
    wrong = np.where(np.arange(8)[:, None] == 0, exact.dx, -exact.dx)
    problem = BackwardProblem(exact.plan, x, dy, exact.inputs)
    assert not check_gradients(problem, {"dx": wrong}).faults
    assert check_gradients(problem, {"dx": -exact.dx}).faults["dx"].fault.id == "dx-sign"


def test_groups_without_a_gradient_do_not_count():
    x, dy = np.random.default_rng(0).normal(size=(2, 6, 20))
    x[2, 3] = np.nan
    exact = backward(x, dy, "ln")
    wrong = np.where(np.isnan(exact.dx), 1.0, 2.0 * exact.dx)
    assert find_fault(exact, "dx", wrong).sentence == "dx: every value is 2 times what it should be."


def test_in_large_tensors_other_norms_are_not_tried(monkeypatch):
    x, dy = np.random.default_rng(0).normal(size=(2, 6, 20))
    exact, wrong = backward(x, dy, "ln"), backward(x, dy, "ln", ddof=1).dx
    assert find_fault(exact, "dx", wrong).fault.words == "its variance is divided by n − 1, not n"
    monkeypatch.setattr("normcli.checking.gradient_forms._MOST_VARIED", x.size - 1)
    assert "dx-ddof" not in name_all(find_fault(exact, "dx", wrong))
