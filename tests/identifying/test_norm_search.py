"""What counts as a match, and which of several is named first."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import normalize
from normcli.checking.ulp import measure_distance
from normcli.identifying.identify import identify
from normcli.identifying.question import Kind, Question
from normcli.identifying.search.match import Match
from normcli.identifying.words.phrasing import diagnose


def make(shape, seed=0, dtype="float32", mean=0.7):
    return np.random.default_rng(seed).normal(mean, 2.0, shape).astype(dtype)


def ask(x, y, gamma=None, beta=None, norm=None):
    return identify(Question(x, y, gamma, beta), norm)


def divide_by_root_mean_square(x, square):
    """Return x of float16, divided in float16 by the root of a mean square."""
    return x / np.sqrt(square.astype("f2") + np.float16(1e-6))


def sum_in_turn(values):
    """Return the sums of rows, each rounded to the dtype of the values."""
    return np.add.accumulate(values, axis=1, dtype=values.dtype)[:, -1:]


@pytest.mark.slow
def test_sums_of_half_precision_are_a_match_by_all_their_bits_alone():
    x = make((12, 509), dtype="float16", mean=0.0)
    square = x * x
    careless = divide_by_root_mean_square(x, sum_in_turn(square) / np.float16(509))
    found = ask(x, careless, norm="rms")
    assert "sums are added in float16" in diagnose(found).sentence
    assert found.claims[0].fault.id == "stats-half-sums"
    rough = careless.copy()
    rough[:, ::7] = np.nextafter(rough[:, ::7], np.float16(9))
    assert not ask(x, rough, norm="rms").matches
    careful = divide_by_root_mean_square(x, square.astype("f4").mean(1, keepdims=True))
    (match, *_) = ask(x, careful, norm="rms").doubtful
    assert match.precision == "float16"
    assert not set(match.like) & {"torch", "llama"}  # which round float32 once or twice


def test_the_rounding_of_float32_does_not_exclude_an_eps_of_its_size():
    random = np.random.default_rng
    x, gamma = random(0).normal(0.7, 2.0, (29, 23)).astype("f2"), random(3).normal(1.0, 0.3, 23).astype("f2")
    wide = x.astype("f4")
    quotient = wide * (np.float32(1) / np.sqrt((wide * wide).mean(1, keepdims=True) + np.float32(1e-6)))
    y = (quotient.astype("f2").astype("f4") * gamma.astype("f4")).astype("f2")
    assert "llama" in ask(x, y, gamma, norm="rms").matches[0].like


@pytest.mark.slow
def test_a_usual_eps_is_preferred_to_one_that_the_rounding_makes():
    w, g = make((16, 8, 3, 3)), make((16, 1, 1, 1), 5)
    y = w * (g / np.sqrt((w * w).sum((1, 2, 3), keepdims=True)))
    assert all(match.is_usual for match in ask(w, y, g.reshape(16), norm="wn").matches)


USED_MOST = [
    pytest.param((4, 6, 5, 7), "float32", "bn", {}, 1e3, id="batch normalization, not mean-variance"),
    pytest.param((40, 6), "float64", "zscore", {}, 1.0, id="a scaler, not moments"),
    pytest.param((40, 5), "float32", "rms", {}, 1.0, id="a root mean square, not a window over all"),
    pytest.param(
        (4, 6, 5, 7), "float32", "in", {}, 1.0, id="instance normalization, not layers of several axes"
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "dtype", "norm", "options", "scale"), USED_MOST)
def test_what_is_used_most_is_named_first(shape, dtype, norm, options, scale):
    x = make(shape, dtype=dtype) * np.dtype(dtype).type(scale)
    found = ask(x, normalize(x, norm, **options).normalized)
    assert found.matches[0].norm == norm
    assert len({match.norm for match in found.matches}) > 1


@pytest.mark.slow
def test_a_sentence_says_what_is_exact_and_what_a_kernel_can_give():
    x = make((12, 40))
    y = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + np.float32(1e-3))
    found = ask(x, y, norm="ln")
    match, sentence = found.matches[0], diagnose(found).sentence
    place, exact, actual = match.furthest
    assert actual == y[place] != np.float32(exact)
    assert exact == normalize(x, "ln", eps=1e-3, dtype="float64").normalized[place]
    alone = diagnose(found._replace(reproductions=())).sentence  # where no algorithm gives all the bits
    assert f"y is {actual:.10g} at {place}, where exact is {exact:.10g}" in alone
    assert f"{100 * match.equal:.4g} % of the values are the exact ones, rounded" in alone
    assert "every bit: float32 sums" in sentence


@pytest.mark.slow
def test_nan_in_both_at_the_same_places_does_not_count():
    x = make((30, 1), dtype="float64")
    x[[3, 7]] = np.nan
    y = normalize(x, "zscore", nan="omit").normalized
    match = ask(x, y, norm="zscore").matches[0]
    assert (match.norm, match.like, match.equal) == ("zscore", ("sklearn",), 1.0)
    y[3] = 0.0
    assert not ask(x, y, norm="zscore").matches


def test_integers_that_float64_rounds_are_what_they_are():
    x = np.random.default_rng(0).integers(2**60, 2**60 + 50, (7, 13))
    match = ask(x, normalize(x, "ln").normalized, norm="ln").matches[0]
    assert (match.axes, match.equal) == ((1,), 1.0)


@pytest.mark.slow
def test_a_factor_of_each_output_may_be_weight_normalization():
    w, g = make((7, 3, 3, 3), mean=0.0), make((7, 1, 1, 1), 5)
    found = ask(w, w * (g / np.sqrt((w * w).sum((1, 2, 3), keepdims=True))))
    assert not found.matches
    assert "weight normalization with g" in diagnose(found).sentence


# -- an eps that takes up the noise of a kernel does not hide the default, or that there is none


@pytest.mark.parametrize("seed", [7, 19])  # of 40 seeds, those whose noise has a usual eps
def test_noise_is_no_eps(seed):
    x = np.random.default_rng(seed).lognormal(-4.0, 0.7, (40, 12)).astype("f4")
    y = x * (np.float32(1) / np.sqrt((x * x).sum(1, keepdims=True)))
    best, *others = identify(Question(x, y), "lp").matches
    assert (best.eps_mode, best.has_default_eps) == (None, True)
    assert "torch" in best.like
    assert any(match.is_usual and match.eps > 0.0 for match in others)  # which is named as well


@pytest.mark.slow
def test_an_eps_that_shows_is_not_taken_for_noise():
    x = np.random.default_rng(0).lognormal(-4.0, 0.7, (40, 12)).astype("f4")
    y = x / np.sqrt((x * x).sum(1, keepdims=True) + np.float32(1e-8))
    match = identify(Question(x, y), "lp").matches[0]
    assert (match.eps, match.eps_mode, match.has_default_eps) == (1e-8, "inside", False)


# -- what only a rough kernel may give is no certainty


@pytest.mark.slow
def test_a_count_that_is_one_too_large_is_told_apart_from_sums_in_half_precision():
    x = make((16, 256), dtype="float16")
    wide = x.astype("f8")
    y = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True, ddof=-1) + 1e-5)
    found = ask(x, y.astype("f2"))
    assert (found.kind, found.matches) == (Kind.FAULT, ())
    assert "the sum of the squares is divided by 257, not 256" in diagnose(found).cause


@pytest.mark.slow
def test_far_from_zero_a_factor_or_noise_is_no_kernel():
    x = make((6, 8), mean=1e5)
    wide = x.astype("f8")
    y = (wide - wide.mean(1, keepdims=True)) / wide.std(1, keepdims=True)
    for wrong in (1.01 * y, y + make(y.shape, 1) * 0.005):
        found = ask(x, wrong.astype("f4"))
        assert found.kind is not Kind.NORM
        assert "torch" not in diagnose(found).cause


def test_the_value_that_is_shown_is_not_the_exact_one_rounded():
    exact, actual = np.array([4.0019, 1.0]), np.array([4.0, 1.0009765625])  # half a unit of float16, and one
    error, _ = measure_distance(actual, exact, np.dtype("f2"))
    assert error.argmax() == 0
    match = Match.of("ln", actual, exact, np.dtype("f2"), axes=(0,), precision="float16", like=(), order=(0,))
    assert match.furthest == ((1,), 1.0, 1.0009765625)


@pytest.mark.slow
def test_where_one_gives_every_bit_it_comes_first():
    x = make((40, 96))
    wide = x.astype("f8")
    y = ((wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True, ddof=1) + 1e-6)).astype("f4")
    best = ask(x, y).matches[0]
    assert (best.equal, best.ddof, best.eps_mode) == (1.0, 1, "inside")
    assert "annotated-transformer" not in best.like


@pytest.mark.slow
@pytest.mark.parametrize("centred", [True, False])
def test_gamma_is_found_where_eps_outweighs_the_variances(centred):
    x = make((32, 16), mean=0.0) * np.float32(1e-3)
    wide, gamma = x.astype("f8"), make(16, 1)
    rest = wide - wide.mean(1, keepdims=True) * centred
    y = rest / np.sqrt((rest**2).mean(1, keepdims=True) + 1e-5) * gamma
    match = ask(x, y.astype("f4")).matches[0]
    assert (match.norm, match.affine, match.eps) == ("ln" if centred else "rms", "estimated", 1e-5)


# -- frameworks are named whose own gamma and beta have such shapes


@pytest.mark.slow
@pytest.mark.parametrize(
    ("norm", "axes", "parameters", "eps", "like", "unlike"),
    [
        pytest.param("ln", (1, 2), {"gamma": (6, 7), "beta": (6, 7)}, 1e-5, {"torch", "onnx"}, {"jax"}, id="both axes"),
        pytest.param("ln", (1, 2), {"gamma": (7,)}, 1e-6, {"flax-linen", "flax-nnx"}, {"torch"}, id="the last of them"),
        pytest.param("gn", (1, 2), {"gamma": (6, 1)}, 1e-5, {"torch", "onnx"}, {"onnx-18"}, id="channels"),
        pytest.param("ln", (1, 2), {}, 1e-5, {"torch", "jax"}, set(), id="none"),
        pytest.param("rms", (2,), {"gamma": (7,)}, 1e-5, {"mlx", "equinox"}, set(), id="gamma alone"),
        pytest.param("rms", (2,), {"gamma": (7,), "beta": (7,)}, 1e-5, {"equinox"}, {"mlx", "onnx"}, id="a beta"),
        pytest.param("lp", (1,), {"gamma": ()}, None, set(), {"torch"}, id="no gamma at all"),
        pytest.param("wn", (0, 2), {"gamma": (6, 1)}, None, {"torch", "equinox", "flax-nnx"}, set(), id="all but one axis"),
    ],
)  # fmt: skip
def test_frameworks_are_named_whose_gamma_and_beta_have_that_shape(norm, axes, parameters, eps, like, unlike):
    x, rng = make((5, 6, 7)), np.random.default_rng(1)
    gamma, beta = (
        rng.uniform(0.5, 2.0, parameters[name]) if name in parameters else None for name in ("gamma", "beta")
    )
    wide = x.astype("f8")
    centred = wide - (wide.mean(axes, keepdims=True) if norm in ("ln", "gn") else 0.0)
    average = np.sum if norm in ("lp", "wn") else np.mean
    y = centred / np.sqrt(average(centred**2, axes, keepdims=True) + (eps or 0.0))
    y = (y * (1.0 if gamma is None else gamma) + (0.0 if beta is None else beta)).astype("f4")
    found = identify(Question(x, y, gamma, beta))
    named = {name for match in found.matches if match.norm == norm for name in match.like}
    assert like <= named
    assert not named & unlike


@pytest.mark.parametrize(("mean", "is_named"), [(3.0, True), (300.0, False)])
def test_frameworks_that_subtract_squares_are_named_only_where_these_do_not_cancel(mean, is_named):
    x = np.random.default_rng(0).normal(mean, 1.0, (12, 64)).astype("f4")
    (match,) = ask(x, normalize(x, "ln", eps=1e-6).normalized, norm="ln").matches
    assert ("flax-linen" in match.like, "timm" in match.like) == (is_named, True)


@pytest.mark.slow
def test_what_float32_would_lose_far_from_zero_is_no_exception_of_float64():
    x, rng = make((2, 3, 4, 4), dtype="float64", mean=100.0) / 200.0 + 100.0, np.random.default_rng(1)
    factors, shifts = rng.uniform(0.98, 1.02, (3, 4, 4)), 0.02 * rng.uniform(-1, 1, (3, 4, 4))
    found = ask(x, (x - x.mean()) / x.std() * factors + shifts)
    assert found.kind is Kind.NONE
    assert "except for" not in diagnose(found).sentence


@pytest.mark.slow
def test_a_usual_eps_with_coarse_sums_is_told_before_one_that_none_uses():
    x, gamma = make((7, 97), dtype="float16", mean=0.0), make(97, 1, "float16")
    square = (x * x).sum(-1, keepdims=True, dtype="f2") / np.float16(97)
    y = (x.astype("f4") / np.sqrt(square.astype("f4") + np.float32(1e-5)) * gamma.astype("f4")).astype("f2")
    found = ask(x, y, gamma, norm="rms")
    first, other, *_ = found.doubtful
    odd = other._replace(is_odd=True)
    assert "is nearly" in diagnose(found._replace(doubtful=(first, odd))).sentence
    assert "needs an eps of" in diagnose(found._replace(doubtful=(odd, first))).sentence


# -- statistics of half precision are no match, whatever is fitted to hide them


def sum_in_half(x, gamma, eps=1e-5):
    """Return rms of float16 whose squares are summed in float16, and all else is of float32."""
    square = (x * x).sum(-1, keepdims=True, dtype="f2") / np.float16(x.shape[-1])
    return (x.astype("f4") / np.sqrt(square.astype("f4") + np.float32(eps)) * gamma.astype("f4")).astype("f2")


@pytest.mark.slow
def test_a_gamma_that_is_to_be_found_hides_no_sums_of_half_precision():
    x, gamma = make((16, 128), dtype="float16", mean=0.0), make(128, 1, "float16")
    exact = normalize(x.astype("f8"), "rms", axes=-1, eps=1e-5).normalized * gamma
    careful, careless = ask(x, exact.astype("f2")), ask(x, sum_in_half(x, gamma))
    assert (careful.kind, careless.kind) == (Kind.NORM, Kind.UNDECIDED)
    assert careful.matches[0].precision == "float32"
    assert "a kernel that calculates in float16" in diagnose(careless).sentence


@pytest.mark.slow
def test_a_gamma_that_is_to_be_found_may_multiply_what_was_rounded():
    x, gamma = make((16, 128), dtype="float16", mean=0.0), make(128, 1, "float16")
    assert ask(x, normalize(x, "rms", like="llama", gamma=gamma).normalized).kind is Kind.NORM


@pytest.mark.slow
def test_a_beta_that_is_to_be_found_hides_no_means_of_half_precision():
    x, gamma, beta = (make(shape, seed, "float16") for seed, shape in enumerate([(23, 61), 61, 61]))
    wide, found = x.astype("f8"), []
    for mean in (wide.mean(1, keepdims=True), x.mean(1, keepdims=True, dtype="f2").astype("f8")):
        y = (wide - mean) / np.sqrt(wide.var(1, keepdims=True) + 1e-5) * gamma + beta
        found.append(ask(x, y.astype("f2"), norm="ln").kind)
    assert found == [Kind.NORM, Kind.UNDECIDED]


def test_an_eps_that_no_framework_has_takes_many_groups_to_show():
    x = make((31, 23), dtype="float16", mean=0.0)
    y = normalize(x.astype("f8"), "rms", axes=-1, eps=1e-2).normalized.astype("f2")
    (match, *_), few = ask(x, y, norm="rms").matches, ask(x[:3], y[:3], norm="rms")
    assert (match.eps, match.has_default_eps) == (1e-2, False)
    assert not few.matches
    assert "another eps, with statistics that are rounded to float16" in diagnose(few).alternatives
