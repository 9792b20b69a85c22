"""Planted conventions are found, and what the data cannot tell apart is said to be so."""

from __future__ import annotations

import contextlib
import sys
import time

import numpy as np
import pytest

from normcli import check, normalize
from normcli.errors import NormError
from normcli.identifying import identify as identification
from normcli.identifying.question import Question
from normcli.identifying.words.phrasing import diagnose
from normcli.norms.conventions import CONVENTIONS
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.rules import AxesRule, EpsRule
from normcli.norms.table import NORMS
from normcli.numerics.rounding import round_to_short
from tests.marks import choose_some, costly, sampled, slowly

IMAGES = (4, 12, 5, 6)
OF_FEW_WAYS = {2: (40, 6), 3: (5, 6, 25), 4: (3, 6, 5, 7), 5: (2, 6, 5, 3, 5)}
"""Of axes with few divisors, so that there are few ways of grouping to try."""


def make(shape, seed=0, dtype="float32"):
    return np.random.default_rng(seed).normal(0.7, 2.0, shape).astype(dtype)


def plainly(x, axes, eps, *, mode="inside", ddof=0, centred=True):
    """The formula as people write it, in the tensor's own dtype."""
    mean = x.mean(axes, keepdims=True) if centred else x.dtype.type(0)
    square = x.var(axes, keepdims=True, ddof=ddof) if centred else (x * x).mean(axes, keepdims=True)
    eps = x.dtype.type(eps)
    return (x - mean) / (np.sqrt(square + eps) if mode == "inside" else np.sqrt(square) + eps)


def identify(x, y, gamma=None, beta=None, norm=None):
    return identification.identify(Question(x, y, gamma, beta), norm)


def best(found, **wanted):
    """Return the matches of the best class that are as wanted."""
    return [m for m in found.matches if all(getattr(m, k) == v for k, v in wanted.items())]


def plant(row, x):
    """Return the options with which a row's result is made of x."""
    options = {"like": row.framework}
    if row.norm == "gn":
        options["groups"] = 3
    if row.norm == "lrn" and row.size is None:
        options["size"] = 5
    if row.eps is EpsRule.GIVEN:
        options["eps"] = 1e-5
    if row.axes is AxesRule.GIVEN:
        options["axes"] = (1,) if row.norm == "lrn" else (1, 2)
    if row.gamma_offset:
        options["gamma"] = make(x.shape[-1], 1)
    return options


def list_ranks(row):
    """Return a matrix's rank and that of images, or what ranks a row takes instead."""
    ranks = []
    for rank in (2, 4, 3, 5):
        options = plant(row, np.empty(OF_FEW_WAYS[rank], "f4"))
        options.pop("gamma", None)
        with contextlib.suppress(NormError):
            make_plan(Request(row.norm, **options), OF_FEW_WAYS[rank], np.dtype("f4"))
            ranks.append(rank)
    assert ranks, row
    return ranks[:2]


OF_THE_TABLE = [
    pytest.param(row, rank, id=f"{row.framework}-{row.norm}-{rank}")
    for number, row in enumerate(CONVENTIONS)
    if NORMS[row.norm].rows is None  # a matrix over a number is named as a plain map
    for rank in list_ranks(row)[number % 2 :][:1] or list_ranks(row)
]
"""Matrices and images in turn."""


@pytest.mark.slow
@pytest.mark.parametrize(("row", "rank"), OF_THE_TABLE)
def test_every_convention_of_the_table_is_named(row, rank):
    x = make(OF_FEW_WAYS[rank])
    options = plant(row, x)
    y = normalize(x, row.norm, **options).normalized
    found = identify(x, y, options.get("gamma"))
    if not y.any():
        assert "every value of the actual tensor is 0" in found.reason
        assert "groups of one value are centred" in found.reason
        return
    assert [m for m in best(found, norm=row.norm) if row.framework in m.like], found


@pytest.mark.slow
@sampled
@pytest.mark.parametrize("axes", [(-1,), (0,), (1,), (0, 1), (0, 2), (1, 2)])
@pytest.mark.parametrize(
    ("eps", "mode"),
    [(1e-12, "inside"), (1e-3, "inside"), (1e-2, "inside"), (1e-6, "outside"), (1e-3, "outside")],
)
@pytest.mark.parametrize(("ddof", "centred"), [(0, True), (1, True), (0, False)])
@pytest.mark.parametrize(("rank", "dtype"), [(3, "float32"), (4, "float64")])
def test_combinations_outside_the_table(axes, eps, mode, ddof, centred, rank, dtype):
    x, axes = make(OF_FEW_WAYS[rank], dtype=dtype), tuple(sorted(axis % rank for axis in axes))
    found = identify(x, plainly(x, axes, eps, mode=mode, ddof=ddof, centred=centred))
    fitting = [
        m for m in best(found, axes=axes, eps_mode=mode, ddof=ddof) if m.eps_range[0] <= eps <= m.eps_range[1]
    ]
    assert fitting, found
    assert eps < 1e-3 or found.matches[0].axes == axes
    assert eps < 1e-3 or fitting[0].eps == pytest.approx(eps, rel=2e-2)


@pytest.mark.slow
def test_of_one_group_an_eps_that_nobody_uses_shows_the_mean_alone():
    x = make(OF_FEW_WAYS[3])
    found = identify(x, plainly(x, (0, 1, 2), 0.5))
    assert not found.matches
    assert {"ln", "bn"} <= {m.norm for m in found.doubtful if m.eps_range[0] <= 0.5 <= m.eps_range[1]}
    sentence = diagnose(found).sentence
    assert "y shows no statistic of x but its mean" in sentence
    assert "Also: layer normalization" in sentence


@pytest.mark.slow
@pytest.mark.parametrize("shift", choose_some([-0.4, 0.0], 2))
def test_of_a_map_of_one_pair_no_mean_is_claimed(shift):
    x = make(OF_FEW_WAYS[3])
    sentence = diagnose(identify(x, np.float32(0.473587) * x + np.float32(shift))).sentence
    assert "for all values. Also: evaluation with stored statistics" in sentence
    assert "normalization" not in sentence


@pytest.mark.slow
@costly
@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("groups", [3, *slowly([2, 4, 6])])
def test_groups_of_channels_and_their_order(groups, interleaved):
    x = make(IMAGES)
    n, c, h, w = x.shape
    split = (n, c // groups, groups, h, w) if interleaved else (n, groups, c // groups, h, w)
    y = plainly(x.reshape(split), (1, 3, 4) if interleaved else (2, 3, 4), 1e-3).reshape(x.shape)
    match = identify(x, y).matches[0]
    order = "interleaved" if interleaved else "contiguous"
    assert (match.norm, match.groups, match.group_order, match.eps) == ("gn", groups, order, 1e-3)


GAMMA, BETA = make(6, 1), make(6, 2)
STEPS = {
    "gamma, beta": lambda h, g, b: h * g + b,
    "gamma": lambda h, g, b: h * g,
    "beta": lambda h, g, b: h + b,
    "1 + gamma, beta": lambda h, g, b: h * (1 + g) + b,
    "1 + gamma": lambda h, g, b: h * (1 + g),
    "swapped": lambda h, g, b: h * b + g,
    "none": lambda h, g, b: h,
}


@pytest.mark.slow
@sampled
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("axes", [(0, 2, 3), (2, 3), (3,)])
def test_how_gamma_and_beta_entered(step, axes):
    x = make(OF_FEW_WAYS[4])
    y = STEPS[step](plainly(x, axes, 1e-3), GAMMA[:, None, None], BETA[:, None, None])
    found = identify(x, y, GAMMA, BETA)
    assert (found.matches[0].axes, found.matches[0].affine, found.matches[0].eps) == (axes, step, 1e-3)
    assert {match.affine for match in found.matches} == {step}


@pytest.mark.slow
@costly
@pytest.mark.parametrize(
    ("norm", "beta"), [("ln", 1.0), pytest.param("bn", -0.3, marks=pytest.mark.slow), ("rms", None)]
)
def test_one_gamma_and_beta_for_all_values_are_fitted(norm, beta):
    """A plain map explains them too, with a pair for each group, and more numbers."""
    x = make((16, 12))
    y = normalize(x, norm, gamma=2.0, beta=beta).normalized
    assert identify(x, y).matches[0][:2] == (norm, (0,) if norm == "bn" else (1,))


@pytest.mark.slow
def test_what_two_conventions_share_is_listed_under_both():
    x = make((1, 12, 5, 6))
    found = identify(x, normalize(x, "bn").normalized)
    assert {"bn", "in"} <= {match.norm for match in found.matches}
    x = make(IMAGES)
    found = identify(x, normalize(x, "ln", axes=(1, 2, 3)).normalized)
    assert {"ln", "gn"} <= {match.norm for match in found.matches}
    assert "Also: " in diagnose(found).sentence


@pytest.mark.parametrize("order", [(0, 2, 3, 1), *slowly([(0, 3, 1, 2)])])
@pytest.mark.slow
def test_another_order_of_axes(order):
    x = make(IMAGES)
    y = plainly(x, (0, 2, 3), 1e-3)
    match = identify(x, y.transpose(order)).matches[0]
    assert (match.norm, match.axes, match.order) == ("bn", (0, 2, 3), tuple(np.argsort(order)))


@pytest.mark.slow
@pytest.mark.all_tried
@pytest.mark.parametrize("like", ["llama", "gemma", "torch"])
def test_whether_the_quotient_was_rounded_before_gamma(like):
    x, gamma = make((8, 64), dtype="float16"), make(64, 1, "float16")
    y = normalize(x, "rms", like=like, eps=1e-6, gamma=gamma).normalized
    matches = best(identify(x, y, gamma), norm="rms")
    assert matches[0].precision == ("float32, rounded before gamma" if like == "llama" else "float32")
    assert matches[0].affine == ("1 + gamma" if like == "gemma" else "gamma")
    if like != "torch":  # whose eps is another
        assert like in matches[0].like
    assert ("llama" in matches[0].like) == (like == "llama")


@pytest.mark.slow
def test_axes_without_letters_are_numbers_and_an_eps_that_was_given_is_said_to_be():
    x = make(17)
    sentence = diagnose(identify(x, plainly(x, (0,), 1e-3))).sentence
    assert "over axis0, eps 0.001" in sentence
    x = make(IMAGES)
    y = plainly(x.reshape(4, 3, 4, 5, 6), (2, 3, 4), 1e-3).reshape(x.shape)
    assert "openvino with this eps" in diagnose(identify(x, y)).sentence


def test_a_window_that_does_nothing_to_the_values_is_not_claimed():
    x = make((3, 9, 4, 4)) * np.float32(1e-4)
    found = identify(x, normalize(x, "lrn", k=1.0).normalized + np.float32(0))
    assert not best(found, norm="lrn")


@pytest.mark.parametrize(
    ("x", "y", "reason"),
    [
        (np.full((3, 4), 5.0), np.zeros((3, 4)), "constant"),
        (np.ones((1, 1)), np.ones((1, 1)), "fewer than two"),
        (make((3, 4)), np.full((3, 4), np.nan), "no finite value"),
        (make((3, 4)), np.zeros((3, 4)), "every value of the actual tensor is 0, as where a sum of squares"),
        (make((3, 4)), np.full((3, 4), 0.5), "the actual tensor is constant"),
        (make((3, 4)), make((3, 4)), "unchanged"),
    ],
)
def test_nothing_can_be_told(x, y, reason):
    found = identify(x, y)
    assert not found.matches
    assert reason in found.reason


@pytest.mark.slow
def test_one_norm_alone():
    x = make(IMAGES)
    found = identify(x, normalize(x, "ln", axes=(1, 2, 3)).normalized, norm="gn")
    assert {match.norm for match in found.matches} == {"gn"}


def test_where_gamma_is_0_y_shows_nothing_of_x_but_has_to_be_beta():
    x, gamma, beta = make((12, 8)), make(8, 1), make(8, 2)
    gamma[[2, 5]] = 0.0
    y = normalize(x, "ln", gamma=gamma, beta=beta).normalized.copy()
    assert identify(x, y, gamma, beta).matches[0].axes == (1,)
    y[3, 2] += 0.5
    assert not identify(x, y, gamma, beta).matches


@pytest.mark.slow
def test_a_hundred_thousand_values_take_little_time_and_larger_tensors_a_sample():
    x = make((10, 16, 25, 25))
    start = time.process_time()
    assert identify(x, plainly(x, (0, 2, 3), 1e-5)).sampled is None
    assert time.process_time() - start < 10.0  # five seconds are asked for; a loaded machine gets twice that
    x = make((40, 16, 50, 50))
    found = identify(x, plainly(x, (0, 2, 3), 1e-5))
    assert found.sampled
    assert best(found, norm="bn", eps=1e-5)


@pytest.mark.slow
@costly
@pytest.mark.parametrize(
    "value",
    [
        pytest.param(1e-310, id="a quotient overflows"),
        pytest.param(1e-200, id="a power overflows"),
        pytest.param(np.inf, id="infinite"),
        pytest.param(np.nan, id="nan"),
    ],
)
@pytest.mark.parametrize("place", [(0, 0), (slice(None), 1)])
def test_values_beyond_any_norm_are_no_warning_of_numpy(place, value):
    x = make((4, 3), dtype="float64")
    y = normalize(x, "lrn", size=3).normalized.copy()
    y[place] = np.copysign(value, x[place])
    assert identify(x, y).reason is None


@pytest.mark.slow
def test_gamma_and_beta_of_groups_are_taken_as_of_groups():
    x, gamma, beta = make((4, 6, 5, 3)), np.array([0.5, 2.0]), np.array([1.0, -1.0])
    y = normalize(x, "gn", groups=2, gamma=np.repeat(gamma, 3), beta=np.repeat(beta, 3)).normalized
    match = identify(x, y, gamma, beta).matches[0]
    assert (match.norm, match.groups, match.affine) == ("gn", 2, "gamma, beta")


@pytest.mark.slow
@pytest.mark.parametrize("gamma", [None, 1.5])
def test_results_of_float64_that_were_calculated_in_float32(gamma):
    x = np.random.default_rng(1).normal(0.7, 2.0, (9, 5, 12))
    short = x.astype("f4")
    mean, var = short.mean(-1, keepdims=True), short.var(-1, keepdims=True)
    y = (short - mean) / np.sqrt(var + np.float32(1e-3))
    scale = np.float32(1.0) if gamma is None else np.linspace(gamma, 3.0, 12).astype("f4")
    match = identify(x, (y * scale).astype("f8")).matches[0]
    assert (match.norm, match.eps, match.precision) == ("ln", 1e-3, "float32")
    assert gamma is not None or match.equal > 0.3


@pytest.mark.slow
def test_a_layout_that_was_given_names_the_norm_of_its_channel_first():
    x = np.random.default_rng(1).normal(size=(1, 3, 64)).astype("f4")
    y = normalize(x, "ln", axes=-1).normalized
    asked = [Question(x, y, layout=layout) for layout in (None, "ncl", "bnd")]
    assert [identification.identify(one).matches[0].norm for one in asked] == ["bn", "bn", "ln"]


# -- values whose squares overflow or underflow, and NaN in a place of its own


LARGE = np.array([[1e200, 2e200, -1e200, 5e200], [3e200, 1e200, 0.0, -2e200]])
ANY = np.array([[1.0, 0.5, -1.0, 0.25], [1.0, 2.0, 3.0, 5.0]])


def test_nan_where_x_is_nan_is_judged():
    assert not check([0.0, 0.0, np.nan], [1.0, 2.0, np.nan], "lp", axes=0).ok


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["rms", "lp", "ln"])
def test_values_of_any_magnitude_are_judged(norm):
    assert not check(ANY, LARGE, norm).ok


@pytest.mark.parametrize("norm", ["in", "ln", "lp"])
def test_nan_that_a_group_should_have_elsewhere_is_judged(norm):
    x = np.array([[1.0, 2.0, np.nan, 4.0], [3.0, 1.0, 0.0, 2.0]])
    y = normalize(x, norm).normalized.copy()
    y[0, 2] = np.nan
    assert diagnose(identify(x, y)).sentence


@costly
@pytest.mark.slow
@pytest.mark.parametrize("size", [1e300, 1e200, 1e154, 1e-154, 1e-300])
def test_a_tensor_of_any_magnitude_is_identified(size):
    x = np.random.default_rng(0).normal(size=(4, 6)) * size
    assert identify(x, normalize(x, "ln", eps=0.0).normalized, norm="ln").matches
    assert not identify(x, np.random.default_rng(1).normal(size=x.shape)).matches


@pytest.mark.slow
def test_two_values_of_a_line_show_no_map_however_large_they_are():
    assert identify(LARGE, ANY).plain is None


@costly
@pytest.mark.parametrize("halve", [False, True], ids=["float32", "bfloat16 saved as float32"])
def test_no_library_of_bfloat16_is_needed(halve, monkeypatch):
    x = make((16, 40))
    y = plainly(x, (1,), 1e-5, ddof=1)
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    y = round_to_short(y.astype(np.float64), "bfloat16").astype(np.float32) if halve else y
    found = identify(x, y)
    assert found.question.saved is None
    assert halve or [(match.norm, match.ddof) for match in found.matches][:1] == [("ln", 1)]
