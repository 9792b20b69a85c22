"""How much evidence a match is: bits of what was predicted, less those of what was fitted."""

from __future__ import annotations

import math

import numpy as np
import pytest

from normcli.identifying.models.weight import Seen, is_odd_eps, weigh


def make(bits, *, size=(1.0, 2.0, 4.0), offset=(0.5, 1.5, 2.5), group_size=8, centred=True):
    """Return groups whose factors are known to so many bits."""
    largest = np.array([1.0, 2.0, 0.5])[: len(bits)]
    least = largest * (1.0 - 2.0 ** -np.array(bits, float))
    size, offset = (np.array(values)[: len(bits)] for values in (size, offset))
    return Seen(least, largest, size, offset, group_size, centred)


@pytest.mark.parametrize(
    ("seen", "shift", "scale", "fitted"),
    [
        pytest.param(make([10, 20, 30]), 60.0, 60.0, [30.0, 10.0, 0.0, 0.0], id="each shows its own"),
        pytest.param(make([10, 20, 30], centred=False), 0.0, 60.0, [30.0, 10.0, 0.0, 0.0], id="not centred"),
        pytest.param(make([10, 20, 30], size=(2.0,) * 3), 60.0, 30.0, [0.0] * 4, id="of one size"),
        pytest.param(make([10, 20, 30], offset=(3.0, 1.5, 0.75)), 30.0, 60.0, [30.0, 10.0, 0.0, 0.0], id="of one mean"),
        pytest.param(make([10, 20]), 30.0, 30.0, [10.0, 0.0, 0.0, 0.0], id="two groups"),
        pytest.param(make([10]), 10.0, 10.0, [0.0] * 4, id="one group"),
        pytest.param(make([60, 10, 10]), 70.0, 70.0, [20.0, 10.0, 0.0, 0.0], id="at most 50"),
        pytest.param(make([2, 3, 4], group_size=2), 9.0, 9.0, [5.0, 2.0, 0.0, 0.0], id="pairs that differ"),
    ],
)  # fmt: skip
def test_bits_of_means_and_factors(seen, shift, scale, fitted):
    assert seen.count_shift() == pytest.approx(shift)
    assert seen.count_scale(0) == pytest.approx(scale)
    assert [seen.count_scale(number) for number in (1, 2, 3, 4)] == pytest.approx(fitted)


def test_pairs_whose_factors_agree_show_their_order_and_no_more():
    seen = make([20, 20, 20], group_size=2)._replace(largest=np.ones(3), least=np.full(3, 1.0 - 2.0**-20))
    assert seen.count_shift() == seen.count_scale(0) == 1.5


def test_statistics_that_agree_within_what_is_seen_show_one_number():
    width = 2.0**-10
    near = make([10, 10], size=(1.0, 1.0 + 1.9 * width))
    far = make([10, 10], size=(1.0, 1.0 + 2.1 * width))
    assert (near.count_scale(0), far.count_scale(0)) == pytest.approx((10.0, 20.0))
    assert make([10, 10], size=(1.0, math.inf)).count_scale(0) == pytest.approx(20.0)


@pytest.mark.parametrize(
    ("asked", "bits"),
    [
        pytest.param({"eps": 0.0, "is_fitted": False, "is_odd": False}, 120.0, id="no eps"),
        pytest.param({"eps": 1e-5, "is_fitted": False, "is_odd": False}, 116.0, id="one in use"),
        pytest.param({"eps": 0.3, "is_fitted": True, "is_odd": False}, 90.0, id="one that was fitted"),
        pytest.param({"eps": 0.3, "is_fitted": True, "is_odd": False, "numbers": 1}, 70.0, id="with p"),
    ],
)
def test_what_was_fitted_takes_bits_away(asked, bits):
    assert weigh(make([10, 20, 30]), **asked) == pytest.approx(bits)


def test_an_eps_is_odd_beyond_a_fifth_of_the_middle_variance():
    assert not is_odd_eps(0.4, np.array([0.1, 2.0, 9.0]))
    assert is_odd_eps(0.401, np.array([0.1, 2.0, 9.0]))
