"""A variance computed as E[x²] − E[x]² is named by the divisors that y shows, whatever adds its sums."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from normcli.identifying.faults.shown_statistics import shows_cancelling
from normcli.identifying.identify import identify
from normcli.identifying.question import Question
from normcli.identifying.words.phrasing import diagnose
from tests.marks import choose_some, costly, sampled
from tests.plants.faults.kernel import BN, LN_ROWS, Way, make_kernel
from tests.plants.kernels import run_one_pass, run_two_passes, run_welford

LAYERS = {layer.norm: replace(layer, names=()) for layer in (LN_ROWS, BN)}


def tell(norm, offset, run, seed):
    """Return what is said of a kernel of float32 on data far from 0."""
    kernel = make_kernel(LAYERS[norm], Way("float32", offset), 1.0, np.random.default_rng(seed))
    return diagnose(identify(Question(kernel.tensor, run(kernel))))


@costly
@sampled
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("offset", [20, 40, 100])
@pytest.mark.parametrize("norm", LAYERS)
def test_one_pass_is_named_at_every_distance_from_0(norm, offset, seed):
    cause = f"y is {norm}, but the variance is E[x²] − E[x]², which cancels"
    told = tell(norm, offset, run_one_pass, seed)
    assert (told.fault, told.cause) == ("stats-one-pass", cause)


@sampled
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("run", [run_two_passes, run_welford])
@pytest.mark.parametrize("offset", [20, 100, 300])
@pytest.mark.parametrize("norm", LAYERS)
def test_two_passes_and_welford_are_no_fault(norm, offset, run, seed):
    assert tell(norm, offset, run, seed).fault is None


UNIT = 2.0**-23
OFF = np.array([0.3, -0.2, 0.5, -0.1, 0.05, -0.4]) * 1e-3


@pytest.mark.parametrize(
    ("off", "said"),
    [
        pytest.param(OFF, True, id="scattered"),
        pytest.param(OFF * 1e-3, False, id="no more than two passes make"),
        pytest.param(OFF * 1e3, False, id="more than one pass makes"),
        pytest.param(5e-4 + OFF * 1e-3, False, id="one factor"),
        pytest.param(OFF[:3], False, id="few groups"),
        pytest.param(np.append(OFF, np.nan), True, id="a constant group"),
    ],
)
def test_errors_of_divisors_that_one_pass_alone_makes(off, said):
    right = np.random.default_rng(0).uniform(0.8, 1.2, off.size)
    assert shows_cancelling(right * (1.0 + off), right, np.full(off.size, 100.0), 72, UNIT) is said


def test_divisors_of_half_precision_are_no_sign_of_one_pass():
    right = np.random.default_rng(0).uniform(0.8, 1.2, 24)
    rounded = right.astype("f2").astype("f8")
    assert not shows_cancelling(rounded, right, np.full(24, 100.0), 72, UNIT)
    of_rstd = 1.0 / (1.0 / right).astype("f2").astype("f8")
    assert not shows_cancelling(of_rstd, right, np.full(24, 100.0), 72, UNIT)


@pytest.mark.parametrize("seed", choose_some(range(3), 2))
def test_a_y_of_half_precision_shows_no_errors_of_float32(seed):
    x = (np.random.default_rng(seed).standard_normal((24, 72)) + 10.0).astype("f2")
    wide = x.astype("f4")
    y = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + np.float32(1e-5))
    assert diagnose(identify(Question(x, y.astype("f2")))).fault is None
