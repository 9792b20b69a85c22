"""Every norm against a one-line oracle, and the norms against each other."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import normalize

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
