"""Spectral normalization by power iterations: which N gives y, and how far a σ is from the largest singular value."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import check, identify, normalize
from normcli.errors import UsageError
from normcli.identifying.words.map_words import compare_sigma
from tests.identifying.test_matrix_model_iterated import iterate
from tests.marks import slowly


@pytest.fixture
def w(rng):
    return rng.normal(size=(17, 7)).astype("float32")


@pytest.mark.parametrize("length", [17, 5, None])
def test_another_start_or_none_is_not(length, w, rng):
    y = iterate(w, rng.normal(size=17).astype("float32"), 2)
    assert not identify(y, w, u=None if length is None else rng.normal(size=length))


def test_rows_are_found_from_v(w, rng):
    v = rng.normal(size=17)
    y = normalize(w, "sn", rows=1, v=v, iterations=3).normalized
    judged = identify(y, w, v=v)
    assert (judged.found.matches[0].rows, judged.found.matches[0].equal) == ((1,), 1.0)
    match = judged.data()["matches"][0]
    assert [match[name] for name in ("norm", "iterations", "most_iterations", "start")] == ["sn", 3, 3, "v"]
    with pytest.raises(UsageError, match="power iterations start from one of u and v"):
        identify(y, w, u=v, v=v)


@pytest.mark.slow
def test_check_tells_how_many_iterations_it_would_be(w, rng):
    u = rng.normal(size=17).astype("float32")
    y = iterate(w, u, 2)
    assert check(y, w, "sn", u=u, iterations=2)
    told = check(y, w, "sn", u=u, iterations=5).diagnosis
    assert told.cause == "sn differs: σ is of 2 power iterations from u, not 5"
    assert told.remedy == "normcli sn … --iterations 2"


@pytest.mark.slow
def test_check_tells_that_no_number_of_iterations_gives_it(w, rng):
    u = rng.normal(size=17).astype("float32")
    y = (w.astype("f8") / 4.0).astype("f4")
    assert "no number of power iterations from u up to 100 gives it" in str(check(y, w, "sn", u=u))


@pytest.mark.parametrize("start", ["u", *slowly(["v"])])
@pytest.mark.slow
def test_check_of_both_vectors_tries_iterations_from_each(start, w, rng):
    x = np.abs(w[:4, :3])
    given = {name: rng.uniform(size=size) for name, size in zip("uv", x.shape, strict=True)}
    y = normalize(x, "sn", iterations=2, **{start: given[start]}).normalized
    told = check(y, x, "sn", rtol=0, atol=0, **given).diagnosis
    assert f"power iterations from {start}" in told.cause


@pytest.mark.parametrize(
    ("sigma", "told"),
    [
        pytest.param(2.0 - 2.0**-9, "the largest singular value, to rounding", id="a little less"),
        pytest.param(2.0 + 2.0**-9, "the largest singular value, to rounding", id="a little more"),
        pytest.param(2.0 - 2.0**-8, "0.195 % below the largest singular value", id="less"),
        pytest.param(2.0 + 2.0**-8, "0.195 % above the largest singular value", id="more"),
    ],
)
def test_how_sigma_lies_beside_the_largest_value(sigma, told):
    place, reason = compare_sigma(sigma, 2.0, 2.0**-10)
    assert place == told
    assert any("too few power iterations end below it" in each for each in reason) == ("below" in told)
    assert any("no power iterations end above it" in each for each in reason) == ("above" in told)


def test_check_tells_how_far_off_sigma_is_and_nothing_of_a_factor_that_no_sigma_has(w):
    y = w / (np.float32(0.9) * np.linalg.norm(w, 2))
    assert "10 % below the largest singular value" in str(check(y, w, "sn"))
    for other in (np.float32(-0.3) * w, 0 * w, w / np.abs(w).max(axis=1, keepdims=True)):
        assert "σ is" not in str(check(other, w, "sn"))
