"""What the statistics that y shows say of a fault, where a single value says little."""

from __future__ import annotations

import numpy as np
import pytest

import normcli
from normcli.dtypes import find_type
from normcli.identifying.faults.fault_evidence import measure_doubt
from normcli.numerics.statistics.solution import Given
from tests.identifying.faulty import name, open_
from tests.marks import sampled

RNG = np.random.default_rng(64)
ROWS = RNG.standard_normal((4, 64)).astype("f4")
GATE, GAMMA = RNG.standard_normal((4, 64)).astype("f4"), (1.0 + 0.2 * RNG.standard_normal(64)).astype("f4")


def root(x, eps, norm):
    mean = x.mean(-1, keepdims=True) if norm == "ln" else np.float32(0.0)
    return (x - mean) / np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + np.float32(eps))


@sampled
@pytest.mark.parametrize("spread", [0.3, 1.0])
@pytest.mark.parametrize("norm", ["ln", "rms"])
def test_an_eps_of_few_rows_is_named_behind_a_gate_and_without(norm, spread):
    x = ROWS * np.float32(spread)
    y = root(x, 1e-6, norm) * GAMMA
    gated = y * GATE / (1.0 + np.exp(-GATE))
    for made, given in ((gated, {"gate": GATE}), (y, {})):
        told = normcli.check(made, x, norm, eps=1e-5, gamma=GAMMA, **given).diagnosis
        assert told.cause == f"{norm} differs: eps is 1e-06, not 1e-05"


def draw_stored(dtype):
    """Return x in a half precision, and the mean, variance, gamma and beta of an evaluation."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((32, 16)) * rng.lognormal(0.0, 0.3, 16) + rng.normal(0.0, 0.5, 16)
    mean, variance = rng.normal(0.0, 0.5, 16), rng.lognormal(0.0, 0.6, 16)
    gamma, beta = 1.0 + 0.2 * rng.standard_normal(16), rng.normal(0.0, 0.3, 16)
    return x.astype(find_type(dtype)), *(values.astype("f4") for values in (mean, variance, gamma, beta))


def cast(values, dtype):
    return values.astype(find_type(dtype)).astype("f8")


STORED = {
    "eps is 0.001, not 1e-05": lambda m, v, own, d: (m, v + 1e-3),
    "mean and variance are rounded to {dtype}": lambda m, v, own, d: (cast(m, d), cast(v, d) + 1e-5),
    "the mean is wrong, the divisor is right": lambda m, v, own, d: (0.9 * m + 0.1 * own, v + 1e-5),
}


@pytest.mark.all_tried
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("cause", STORED)
def test_small_faults_of_an_evaluation_in_half_precision_are_named(cause, dtype):
    x, mean, variance, gamma, beta = draw_stored(dtype)
    wide = x.astype("f8")
    m, square = STORED[cause](mean.astype("f8"), variance.astype("f8"), wide.mean(0), dtype)
    y = ((wide - m) / np.sqrt(square) * gamma + beta).astype(find_type(dtype))
    told = normcli.check(y, x, "bn", running_mean=mean, running_var=variance, gamma=gamma, beta=beta).diagnosis
    assert told.cause == f"bn differs: {cause.format(dtype=dtype)}"


def test_a_tail_that_half_precision_nearly_hides_is_no_order_of_sums():
    x = np.random.default_rng(100).standard_normal((16, 100)).astype(find_type("bfloat16"))
    wide = x.astype("f8")
    mean = wide[:, :96].sum(-1, keepdims=True) / 100
    square = ((wide[:, :96] - mean) ** 2).sum(-1, keepdims=True) / 100
    y = (wide - mean) / np.sqrt(square + 1e-5)
    assert name("ln", x, y)[1] == ["sums leave out the last 4 of 100 along c"]


def test_equal_values_show_a_divisor_no_more_closely_than_one_of_them():
    x = np.repeat(np.arange(4.0), 16)[np.newaxis]
    y = (x - x.mean()) / np.sqrt(x.var() + 1e-5)
    many, few = (
        measure_doubt(open_("ln", *(values[:, ::step].astype("f2") for values in (x, y)))) for step in (1, 16)
    )
    assert np.allclose(many.divisor, few.divisor, rtol=0.01)


def test_running_statistics_are_no_sums_that_are_divided_by_another_number():
    x, mean, variance, gamma, beta = draw_stored("float16")
    y = (x.astype("f8") - mean) / np.sqrt(variance * (31 / 32) + 1e-5) * gamma + beta
    said = "the running variance is divided by n, not n − 1"
    assert name("bn", x, y, gamma, beta, Given(mean, variance))[1] == [said]


CUBE = (RNG.standard_normal((2, 8, 32)) * RNG.lognormal(0.0, 0.3, (2, 8, 1))).astype("f4")
SQUARES = (CUBE.astype("f8") ** 2).mean(-1, keepdims=True)


def test_one_divisor_of_all_groups_is_said_with_the_group_that_it_is_of():
    y = CUBE / np.sqrt(SQUARES[1, 3] + 1e-6)
    assert name("rms", CUBE, y, eps=1e-6)[1][:1] == ["the mean square is taken from n=1, c=3 in every group"]


def test_a_variance_of_all_groups_is_no_number_that_may_be_any():
    y = (CUBE - CUBE.mean(-1, keepdims=True)) / np.sqrt(CUBE.astype("f8").var() + 1e-5)
    assert name("ln", CUBE, y)[1] == ["the variance is over n×c×l"]


def test_a_factor_is_named_by_the_length_whose_root_it_is():
    x = np.random.default_rng(0).standard_normal((12, 64)).astype("f4")
    y = root(x.astype("f8"), 1e-5, "ln") * GAMMA
    assert name("ln", x, y / np.sqrt(12), GAMMA)[1] == ["every value is multiplied by 1/√12"]
    assert name("ln", x, y * 0.29, GAMMA)[1] == ["every value is multiplied by 0.29"]


def test_twice_the_eps_may_be_an_eps_that_is_added_twice():
    told = normcli.check(root(ROWS.astype("f8"), 2e-5, "ln").astype("f4"), ROWS, "ln").diagnosis
    assert (told.cause, told.alternatives) == ("ln differs: eps is 2e-05, not 1e-05", ("eps is added twice",))


def test_an_eps_in_the_other_place_is_not_taken_for_one_that_is_added_twice():
    wide = ROWS.astype("f8")
    deviations = wide - wide.mean(-1, keepdims=True)
    y = deviations / (deviations.std(-1, keepdims=True) + 2e-5)
    assert name("ln", ROWS, y)[1] == ["eps 2e-05 is outside the root"]


def test_identify_names_the_eps_that_alone_gives_every_bit():
    x = (np.random.default_rng(1).standard_normal((16, 128)) * 2.0 + 30.0).astype("f4")
    wide = x.astype("f8")
    y = (wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-3)).astype("f4")
    judged = normcli.identify(y, x)
    assert judged.found.matches[0].eps_range[0] == 0.0
    assert judged.diagnosis.cause.startswith("y is root mean square normalization over c, eps 0.001")
