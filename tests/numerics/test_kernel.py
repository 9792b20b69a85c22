"""Every norm against a one-line oracle, and the norms against each other."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from normcli import normalize
from normcli.numerics.elements.in_pairs import Elements
from normcli.numerics.elements.kernel import _widen
from normcli.numerics.pairs import Pair

X = np.random.default_rng(7).normal(3.0, 2.0, (4, 6, 3, 5))
NHW, HW, CHW = (0, 2, 3), (2, 3), (1, 2, 3)


def _mean(x, axes):
    return x.mean(axes, keepdims=True)


def _var(x, axes):
    return x.var(axes, keepdims=True)


def _standardize(x, axes, eps=1e-5):
    return (x - _mean(x, axes)) / np.sqrt(_var(x, axes) + eps)


def _window(x, before, after):
    padded = np.pad(x, ((0, 0), (before, after), (0, 0), (0, 0)))
    return sum(padded[:, i : i + x.shape[1]] ** 2 for i in range(before + after + 1))


ORACLES = {
    "bn": lambda x: _standardize(x, NHW),
    "ln": lambda x: _standardize(x, 3),
    "in": lambda x: _standardize(x, HW),
    "gn": lambda x: _standardize(x.reshape(4, 2, 3, 3, 5), (2, 3, 4)).reshape(x.shape),
    "rms": lambda x: x / np.sqrt(_mean(x**2, 3) + 1e-5),
    "lp": lambda x: x / np.sqrt((x**2).sum(3, keepdims=True)),
    "wn": lambda x: x / np.sqrt((x**2).sum(CHW, keepdims=True)),
    "sn": lambda x: x / np.linalg.norm(x.reshape(len(x), -1), 2),
    "ws": lambda x: _standardize(x, CHW),
    "mvn": lambda x: (x - _mean(x, NHW)) / (np.sqrt(_var(x, NHW)) + 1e-9),
    "zscore": lambda x: (x - _mean(x, 0)) / np.sqrt(_var(x, 0)),
    "minmax": lambda x: (x - x.min(0)) / (x.max(0) - x.min(0)),
    "midrange": lambda x: (x - (x.max(0) + x.min(0)) / 2) / ((x.max(0) - x.min(0)) / 2),
    "maxabs": lambda x: x / np.abs(x).max(0),
    "robust": lambda x: (x - np.median(x, 0)) / np.subtract(*np.percentile(x, [75, 25], axis=0)),
    "lrn": lambda x: x / (1.0 + 1e-4 / 5 * _window(x, 2, 2)) ** 0.75,
}
"""Each norm with its defaults on a 4-D tensor, as a textbook has it (gn with two groups)."""

CLOSE = {"rtol": 1e-12, "atol": 1e-13}


@pytest.mark.parametrize("norm", ORACLES)
def test_oracle(norm):
    options = {"groups": 2} if norm == "gn" else {}
    np.testing.assert_allclose(normalize(X, norm, **options).normalized, ORACLES[norm](X), **CLOSE)


@pytest.mark.parametrize(
    ("p", "length"),
    [
        pytest.param(0.0, lambda x: (x != 0).sum(3, keepdims=True), id="0"),
        pytest.param(0.5, lambda x: (np.abs(x) ** 0.5).sum(3, keepdims=True) ** 2, id="one half"),
        pytest.param(1.0, lambda x: np.abs(x).sum(3, keepdims=True), id="1"),
        pytest.param(2.0, lambda x: np.sqrt((x**2).sum(3, keepdims=True)), id="2"),
        pytest.param(3.0, lambda x: (np.abs(x) ** 3).sum(3, keepdims=True) ** (1 / 3), id="3"),
        pytest.param(np.inf, lambda x: np.abs(x).max(3, keepdims=True), id="infinity"),
    ],
)
def test_lp(p, length):
    x = X.copy()
    x[0, 0, 0, :3] = 0.0
    result = normalize(x, "lp", p=p)
    np.testing.assert_allclose(result.norm[..., None], length(x), **CLOSE)
    np.testing.assert_allclose(result.normalized, x / length(x), **CLOSE)


def test_the_length_of_lp_is_at_least_eps():
    np.testing.assert_array_equal(normalize([[3e-3, 4e-3]], "lp", eps=1.0).normalized, [[3e-3, 4e-3]])


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        pytest.param("inside", 1 / np.sqrt(1 + 3.0), id="inside"),
        pytest.param("outside", 1 / (1 + 3.0), id="outside"),
    ],
)
@pytest.mark.parametrize("norm", ["ln", "rms"])
def test_eps_mode(norm, mode, expected):
    x = [[-1.0, 1.0]]
    np.testing.assert_allclose(
        normalize(x, norm, eps=3.0, eps_mode=mode).normalized, [[-expected, expected]], **CLOSE
    )


def test_ddof():
    result = normalize([[1.0, 2.0, 3.0, 6.0]], "ln", ddof=1, eps=0)
    np.testing.assert_allclose(result.var, [14 / 3], **CLOSE)
    np.testing.assert_allclose(result.normalized, np.array([[-2.0, -1, 0, 3]]) / np.sqrt(14 / 3), **CLOSE)


def test_rstd_is_one_over_the_divisor():
    result = normalize(X, "bn", eps=0.1)
    np.testing.assert_allclose(result.rstd, 1 / np.sqrt(result.var + 0.1), **CLOSE)


@pytest.mark.parametrize(
    ("norm", "options", "shape", "full"),
    [
        pytest.param("bn", {}, (6,), (1, 6, 1, 1), id="bn"),
        pytest.param("in", {}, (6,), (1, 6, 1, 1), id="in"),
        pytest.param("gn", {"groups": 2}, (6,), (1, 6, 1, 1), id="gn"),
        pytest.param("ln", {}, (5,), (1, 1, 1, 5), id="ln"),
        pytest.param("ln", {"axes": "CHW"}, (6, 3, 5), (1, 6, 3, 5), id="ln over CHW"),
        pytest.param("ln", {"axes": "CW"}, (6, 5), (1, 6, 1, 5), id="ln over axes apart"),
        pytest.param("rms", {}, (5,), (1, 1, 1, 5), id="rms"),
        pytest.param("ws", {}, (4,), (4, 1, 1, 1), id="ws"),
    ],
)
def test_affine(norm, options, shape, full, rng):
    gamma, beta = rng.normal(size=shape), rng.normal(size=shape)
    plain = normalize(X, norm, **options).normalized
    scaled = normalize(X, norm, gamma=gamma, beta=beta, **options).normalized
    np.testing.assert_allclose(scaled, plain * gamma.reshape(full) + beta.reshape(full), **CLOSE)


def test_weight_norm_has_a_gain(rng):
    gain = rng.normal(size=4)
    expected = ORACLES["wn"](X) * gain[:, None, None, None]
    np.testing.assert_allclose(normalize(X, "wn", gamma=gain).normalized, expected, **CLOSE)


def test_a_window_wider_than_the_tensor_takes_it_all():
    wide = normalize(X, "lrn", size=101, alpha=101.0, exponent=0.5, k=1e-5 * 6).normalized
    rms = normalize(X, "rms", axes="C").normalized
    np.testing.assert_allclose(wide * np.sqrt(6), rms, **CLOSE)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        pytest.param(("gn", {"groups": 1}), ("ln", {"axes": "CHW"}), id="gn with one group is ln over CHW"),
        pytest.param(("gn", {"groups": 6}), ("in", {}), id="gn with C groups is in"),
        pytest.param(("ws", {}), ("ln", {"axes": "CHW"}), id="ws is ln over all but the first axis"),
        pytest.param(("mvn", {"eps": 0.0}), ("bn", {"eps": 0.0}), id="mvn is bn without eps"),
        pytest.param(("zscore", {"axes": "NHW"}), ("bn", {"eps": 0.0}), id="zscore is bn without eps"),
        pytest.param(("l2", {"axes": "CHW"}), ("wn", {}), id="l2 over all but the first axis is wn"),
        pytest.param(
            ("lp", {"p": np.inf, "axes": 0}), ("maxabs", {}), id="lp with infinity over columns is maxabs"
        ),
        pytest.param(("bn", {"layout": "CNHW", "keep": "C"}), ("in", {"axes": "CHW"}), id="in is bn by axes"),
    ],
)
def test_equivalence(left, right):
    one, other = (normalize(X, norm, **options).normalized for norm, options in (left, right))
    np.testing.assert_allclose(one, other, **CLOSE)


def test_batch_norm_of_one_sample_is_instance_norm():
    np.testing.assert_array_equal(normalize(X[:1], "bn").normalized, normalize(X[:1], "in").normalized)


def test_rms_norm_of_centred_values_is_layer_norm():
    centred = X - X.mean(-1, keepdims=True)
    np.testing.assert_allclose(normalize(centred, "rms").normalized, normalize(X, "ln").normalized, **CLOSE)


@pytest.mark.parametrize("offset", [1e3, 1e6, 1e9, 1e12])
def test_a_large_mean_costs_no_digits(offset):
    """The corrected two-pass algorithm against exact integers, whose spread is far below the mean."""
    x = np.array([[0.0, 1.0, 2.0, 4.0, 8.0, 9.0]])
    np.testing.assert_allclose(
        normalize(x + offset, "ln").normalized, normalize(x, "ln").normalized, rtol=1e-12
    )


def test_lines_are_joined_where_gamma_varies_from_block_to_block_and_along_lines():
    raw, gamma = np.arange(60.0).reshape(3, 4, 5), np.arange(15.0).reshape(3, 1, 5)
    divisor = Pair(np.ones((3, 1, 1)), np.zeros((3, 1, 1)))
    wide, out = _widen(Elements(raw, None, divisor, gamma, None), np.empty(raw.shape))
    assert wide.x.shape == out.shape == (3, 1, 20)
    np.testing.assert_array_equal((wide.x / wide.divisor.hi * wide.gamma).reshape(raw.shape), raw * gamma)


def test_values_are_not_repeated_where_lines_are_joined():
    raw, divisor = np.ones((4000, 3)), Pair(np.ones((1, 3)), np.zeros((1, 3)))
    tracemalloc.start()
    wide, _ = _widen(Elements(raw, None, divisor, None, None), np.empty(raw.shape))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (wide.x.base is raw, wide.x.shape[-1] > 3, peak < 2 * raw.nbytes) == (True, True, True)
