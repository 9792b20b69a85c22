"""Norms that a tensor should have been, and how much of it is looked at."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest

from normcli.engine.inputs import Inputs
from normcli.identifying.faults.fault_search import open_cases
from normcli.identifying.faults.joint_search import open_joints
from normcli.identifying.inquiry import list_subjects
from tests.conftest import pose
from tests.identifying.faulty import ask, draw, draw_affine, name, plan, standardize

X = draw((6, 5, 8))


def test_a_gamma_that_does_not_fit_leaves_a_norm_out():
    gamma = np.ones(8, "f4")
    fitting = list(list_subjects(X, gamma, None, "NLC", None))
    assert fitting
    assert all(one.inputs.gamma.size == 8 for one in fitting)
    assert [one.plan.norm.name for one in list_subjects(X, None, None, "NLC", "rms")] == ["rms"]


def test_windows_and_matrices_have_no_groups():
    x = draw((2, 6, 5, 5))
    assert ask("lrn", x, x * 2) == ()
    assert ask("sn", x, x * 2) == ()


@pytest.mark.slow
def test_a_fault_of_a_large_tensor_is_named_in_little_time_and_memory():
    x = np.random.default_rng(0).normal(3, 1, (4096, 1024)).astype("f4")
    gamma, _ = draw_affine(1024)
    y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + np.float32(1e-5))
    noise = y + np.random.default_rng(1).normal(size=x.shape).astype("f4")
    subject = pose(plan("ln", x), x, Inputs(gamma, None))
    for actual, ids in ((y, ["affine-gamma-missing"]), (noise, [])):
        began = time.process_time()
        claims = open_joints([*open_cases([subject], actual, y.dtype)])
        assert [claim.fault.id for claim in claims[:1]] == ids
        assert time.process_time() - began < 10  # most of it is not the size
    tracemalloc.start()
    open_joints([*open_cases([subject], noise, y.dtype)])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 << 20


@pytest.mark.slow
def test_what_few_values_show_is_what_all_do():
    x = draw((40, 2000))
    gamma, beta = draw_affine(2000)
    assert name("ln", x, standardize(x) * np.roll(gamma, 2) + beta, gamma, beta)[0] == ["affine-gamma-rolled"]
    y = standardize(x, square=x.astype("f8").var(-1, ddof=1, keepdims=True)) * gamma
    assert name("ln", x.astype("f8"), y, gamma, beta)[0] == ["stats-ddof", "affine-beta-missing"]
