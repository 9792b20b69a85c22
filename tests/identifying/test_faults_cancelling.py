"""A variance computed as E[x²] − E[x]² is named by the divisors that y shows, whatever adds its sums."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.identifying.faults.shown_statistics import shows_cancelling
from normcli.identifying.identify import identify
from normcli.identifying.question import Question
from normcli.identifying.words.phrasing import diagnose
from tests.marks import choose_some, costly, sampled

EPS = np.float32(1e-5)
GROUPS = {"ln": ((24, 72), (1,)), "bn": ((8, 6, 5, 5), (0, 2, 3))}


def add_in_turn(rows):
    return np.add.accumulate(rows, axis=0)[-1]


def add_pairwise(rows):
    return np.ascontiguousarray(rows.T).sum(1)


def run_one_pass(rows, add):
    mean = add(rows) / np.float32(len(rows))
    return mean, add(rows * rows) / np.float32(len(rows)) - mean * mean


def run_two_passes(rows, add):
    mean = add(rows) / np.float32(len(rows))
    return mean, add((rows - mean) ** 2) / np.float32(len(rows))


def run_welford(rows, add):
    mean, total = np.zeros_like(rows[0]), np.zeros_like(rows[0])
    for count, row in enumerate(rows, 1):
        rest = row - mean
        mean = mean + rest / np.float32(count)
        total = total + rest * (row - mean)
    return mean, total / np.float32(len(rows))


def calculate(norm, offset, run, add, seed):
    """Return an input far from 0, and what a kernel of float32 makes of it."""
    shape, axes = GROUPS[norm]
    x = (np.random.default_rng(seed).standard_normal(shape) + offset).astype("f4")
    rows = np.moveaxis(x, axes, range(len(axes))).reshape(-1, x.size // np.prod([shape[axis] for axis in axes]))
    kept = [1 if axis in axes else n for axis, n in enumerate(shape)]
    mean, var = (statistic.reshape(kept) for statistic in run(rows, add))
    return x, (x - mean) / np.sqrt(np.maximum(var, 0) + EPS)


@costly
@sampled
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("add", [add_in_turn, add_pairwise])
@pytest.mark.parametrize("offset", [20, 40, 100])
@pytest.mark.parametrize("norm", GROUPS)
def test_one_pass_is_named_at_every_distance_from_0(norm, offset, add, seed):
    told = diagnose(identify(Question(*calculate(norm, offset, run_one_pass, add, seed))))
    assert (told.fault, told.cause) == (
        "stats-one-pass",
        f"y is {norm}, but the variance is E[x²] − E[x]², which cancels",
    )


@sampled
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("run", [run_two_passes, run_welford])
@pytest.mark.parametrize("offset", [20, 100, 300])
@pytest.mark.parametrize("norm", GROUPS)
def test_two_passes_and_welford_are_no_fault(norm, offset, run, seed):
    assert diagnose(identify(Question(*calculate(norm, offset, run, add_in_turn, seed)))).fault is None


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
    assert not shows_cancelling(
        1.0 / (1.0 / right).astype("f2").astype("f8"), right, np.full(24, 100.0), 72, UNIT
    )


@pytest.mark.parametrize("seed", choose_some(range(3), 2))
def test_a_y_of_half_precision_shows_no_errors_of_float32(seed):
    x = (np.random.default_rng(seed).standard_normal((24, 72)) + 10.0).astype("f2").astype("f4")
    y = calculate_right(x).astype("f2")
    assert diagnose(identify(Question(x.astype("f2"), y))).fault is None


def calculate_right(x):
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + EPS)
