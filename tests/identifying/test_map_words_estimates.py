"""Spectral normalization by power iterations: which N gives y, and how far a σ is from the largest singular value."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import check, identify, normalize
from normcli.errors import UsageError
from normcli.identifying.words.map_words import compare_sigma
from tests.marks import costly, slowly


@pytest.fixture
def w(rng):
    return rng.normal(size=(17, 7)).astype("float32")


def iterate(w, u, count):
    """Return w / σ as a layer in w's dtype does it."""
    for _ in range(count):
        v = w.T @ u
        v /= np.linalg.norm(v)
        u = w @ v
        u /= np.linalg.norm(u)
    return w / (u @ w @ v)


@pytest.mark.slow
@pytest.mark.parametrize("length", [17, 5, None])
def test_another_start_or_none_is_not(length, w, rng):
    y = iterate(w, rng.normal(size=17).astype("float32"), 2)
    assert not identify(y, w, u=None if length is None else rng.normal(size=length))


def test_rows_are_found_from_v(w, rng):
    v = rng.normal(size=17)
    y = normalize(w, "sn", rows=1, v=v, iterations=3).normalized
    (match,) = identify(y, w, v=v).found.matches
    assert (match.rows, match.steps.fewest, match.equal) == ((1,), 3, 1.0)
    with pytest.raises(UsageError, match="power iterations start from one of u and v"):
        identify(y, w, u=v, v=v)


def test_identify_takes_a_start(normcli, w, rng, tmp_path):
    u = rng.normal(size=17).astype("float32")
    for name, values in {"w": w, "u": u, "y": iterate(w, u, 4)}.items():
        np.save(tmp_path / f"{name}.npy", values)
    files = ("-i", tmp_path / "w.npy", "--actual", tmp_path / "y.npy")
    match = normcli("identify", *files, "--u", tmp_path / "u.npy", "-f", "json").json["matches"][0]
    assert (match["norm"], match["iterations"], match["most_iterations"], match["start"]) == ("sn", 4, 4, "u")


@costly
@pytest.mark.parametrize(
    ("factor", "told"),
    [
        pytest.param(0.9, "10 % below the largest singular value", id="below"),
        pytest.param(1.01, "1 % above the largest singular value", id="above"),
        *slowly([pytest.param(0.9997, "0.03 % below the largest singular value", id="just below")]),
    ],
)
@pytest.mark.slow
def test_check_tells_how_far_off_sigma_is(factor, told, w):
    y = (w / (np.linalg.norm(w, 2) * factor)).astype("float32")
    sentence = str(check(y, w, "sn"))
    assert told in sentence
    assert ("too few power iterations end below it" in sentence) == (factor < 1)
    assert ("no power iterations end above it" in sentence) == (factor > 1)


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


@pytest.mark.parametrize("factor", [-0.3, 0.0])
def test_check_tells_nothing_of_a_factor_that_no_sigma_has(factor, w):
    assert "σ is" not in str(check(w * np.float32(factor), w, "sn"))
    assert "σ is" not in str(check(w / np.abs(w).max(axis=1, keepdims=True), w, "sn"))
