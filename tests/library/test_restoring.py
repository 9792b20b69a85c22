"""A tensor brought back to the scale of another one."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from normcli import invert, normalize
from normcli.errors import DataError, UsageError


@pytest.fixture
def series():
    return np.random.default_rng(0).standard_normal((3, 20, 2)).astype(np.float32) * 5 + 3


def test_forecasts_come_back_to_the_scale_of_their_input_as_in_revin(series):
    """The lines of RevIN._denormalize, but for the eps² that it adds to gamma (ts-kim/RevIN@0aee5792)."""
    forecast = np.random.default_rng(1).standard_normal((3, 7, 2)).astype(np.float32)
    gamma, beta = np.array([1.5, 0.5]), np.array([0.25, -1.0])
    wide = series.astype(float)
    deviation = np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    expected = (forecast.astype(float) - beta) / gamma * deviation + wide.mean(1, keepdims=True)
    found = invert("in", forecast, of=series, like="revin", gamma=gamma, beta=beta)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-6)


def test_each_value_is_the_exact_one_rounded_once():
    x, y = np.array([[1.0, 2.0, 4.0, 9.0]]), np.array([[0.5, -1.25]])
    mean = Fraction(4)
    half_range = invert("midrange", y, of=x, axes=1)
    assert half_range.tolist() == [[5.0 + 0.5 * 4.0, 5.0 - 1.25 * 4.0]]
    square = sum((Fraction(v) - mean) ** 2 for v in x[0]) / 4  # 9.5
    found = invert("ln", y, of=x, eps=0)
    digits = 10**40
    root = Fraction(math.isqrt(int(square * digits**2)), digits)
    assert found.tolist() == [[float(Fraction(v) * root + mean) for v in y[0].tolist()]]


@pytest.mark.parametrize(
    ("norm", "options", "error", "words"),
    [
        pytest.param("in", {}, UsageError, "give of", id="of"),
        pytest.param("in", {"of": np.ones((2, 3, 4))}, DataError, "other tensor", id="groups"),
        pytest.param("in", {"of": np.ones((1, 2, 3)), "gamma": 0.0}, UsageError, "gamma is 0", id="gamma"),
        pytest.param("robust", {"of": np.ones((1, 2, 3))}, UsageError, "is not undone", id="quantiles"),
        pytest.param("in", {"of": np.ones((1, 2, 3)), "foo": 1}, UsageError, "no option 'foo'", id="option"),
    ],
)
@pytest.mark.all_quick
def test_refusals(norm, options, error, words):
    with pytest.raises(error, match=words):
        invert(norm, np.ones((1, 2, 3)), **options)


def test_the_command_line_names_the_norm_where_statistics_stand(series, normcli, tmp_path):
    x, y, out = (str(tmp_path / f"{name}.npy") for name in "xyr")
    np.save(x, series)
    np.save(y, normalize(series, "in", like="revin").normalized[:, :5])
    normcli("invert", "in:like=revin", y, "--of", x, "-o", out)
    np.testing.assert_allclose(np.load(out), series[:, :5], atol=2e-6)
    assert "robust of another tensor" in normcli("invert", "robust", y, "--of", x, "-o", out).err
