from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from normcli.numerics.pairs import Pair
from normcli.numerics.rounding import Scaled, round_scaled, round_to_odd, round_to_short, store

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
EVERY = np.arange(1 << 16, dtype=np.uint16).view(BFLOAT16)


def rounded(values) -> np.ndarray:
    out = np.empty(np.shape(values), BFLOAT16)
    with np.errstate(all="ignore"):
        store(out, np.asarray(values, dtype=np.float64))
    return out


def test_every_bfloat16_is_itself():
    with np.errstate(invalid="ignore"):  # some are signalling NaNs
        got, number = rounded(EVERY.astype(np.float64)), ~np.isnan(EVERY)
    assert (got.view(np.uint16) == EVERY.view(np.uint16))[number].all()
    assert np.isnan(got[~number]).all()


FINITE = np.arange(0x7F7F, dtype=np.uint16)
"""The bits of every finite bfloat16 from 0 up, but the largest: the bits of the next are one more."""


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(
    ("nudge", "choose"),
    [
        pytest.param(lambda middle: middle, lambda bits: bits + bits % 2, id="a tie goes to the even one"),
        pytest.param(lambda middle: np.nextafter(middle, np.inf), lambda bits: bits + 1, id="the next float64 goes up"),
        pytest.param(lambda middle: np.nextafter(middle, 0.0), lambda bits: bits, id="the one before goes down"),
    ],
)  # fmt: skip
def test_between_any_two_it_is_rounded_once(nudge, choose, sign):
    low, high = (bits.view(BFLOAT16).astype(np.float64) for bits in (FINITE, FINITE + np.uint16(1)))
    got = rounded(sign * nudge((low + high) / 2)).view(np.uint16) & 0x7FFF
    np.testing.assert_array_equal(got, choose(FINITE))


@pytest.mark.parametrize("dtype", [np.dtype("float16"), np.dtype(BFLOAT16)], ids=str)
def test_halves_without_their_library_are_what_it_stores(dtype):
    drawn = np.random.default_rng(3).standard_normal(4096) * np.logspace(-50, 50, 4096)
    expected = np.empty(2 * len(drawn) + 5, dtype)
    with np.errstate(over="ignore"):
        middles = drawn.astype(dtype)
        values = np.array(
            [*drawn, *middles.astype(np.float64) * (1.0 + 2.0**-9), np.nan, np.inf, -0.0, 65520.0, 2.0**-134]
        )
        store(expected, values)
    np.testing.assert_array_equal(round_to_short(values, dtype.name), expected.astype(np.float64))


def test_round_to_odd_leaves_its_input(frozen):
    values = frozen([1.0, 0.1, -0.1, 1e-300, np.nan])
    got = round_to_odd(values)
    assert got[0] == 1.0
    assert (got[1:4].view(np.int32) & 1).all()
    assert np.isnan(got[4])


@pytest.mark.parametrize(
    ("hi", "lo", "exponent", "expected"),
    [
        pytest.param(1.5, 0.0, 3, 12.0, id="normal"),
        pytest.param(1.5, 2.0**-60, -1074, 2 * 2.0**-1074, id="above the middle"),
        pytest.param(1.5, -(2.0**-60), -1074, 2.0**-1074, id="below the middle"),
        pytest.param(2.5, 2.0**-60, -1074, 3 * 2.0**-1074, id="above an even middle"),
        pytest.param(2.5, 0.0, -1074, 2 * 2.0**-1074, id="a tie"),
        pytest.param(-2.5, -(2.0**-60), -1074, -3 * 2.0**-1074, id="negative"),
        pytest.param(1.0, 0.0, -1075, 0.0, id="half of the least"),
        pytest.param(1.0, 2.0**-60, -1075, 2.0**-1074, id="more than half of the least"),
        pytest.param(1.0, 0.0, -20000, 0.0, id="far below"),
        pytest.param(-1.0, 0.0, 20000, -math.inf, id="far above"),
    ],
)
def test_scaled_pairs_are_rounded_once(hi, lo, exponent, expected):
    number = Scaled(Pair(np.array([hi]), np.array([lo])), np.array([exponent]))
    with np.errstate(over="ignore", under="ignore"):
        assert round_scaled(number).tolist() == [expected]


@pytest.mark.filterwarnings("error")
def test_signalling_nan_and_infinities_are_rounded_without_a_warning():
    signalling = np.array([0x7FF0000000000001, 0x7FF4000000000000], np.uint64).view(np.float64)
    values = np.array([1e300, -np.inf, *signalling])
    found = round_to_odd(values).tolist()
    assert found[:2] == [float(np.finfo(np.float32).max), -np.inf]
    assert np.isnan(found[2:]).all()
