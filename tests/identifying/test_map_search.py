"""Maps that no norm made are told from norms, with their a and b, and what they may be."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import normalize
from normcli.dtypes import find_type
from normcli.identifying.identify import identify
from normcli.identifying.models.line_fit import fit_lines
from normcli.identifying.models.map_search import (
    find_global_map,
    find_near_map,
    find_plain_map,
)
from normcli.identifying.question import Kind, Question
from normcli.identifying.sampling import MOST_SAMPLED
from normcli.identifying.search.norm_search import Search
from normcli.identifying.words.phrasing import diagnose
from tests.identifying.plain_words import require_plain_words
from tests.marks import costly, slowly


def make(shape, seed=0, dtype="float32"):
    return np.random.default_rng(seed).normal(0.7, 2.0, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", *slowly(["float16", "float64"])])
@pytest.mark.parametrize("axis", [1, *slowly([0, 2])])
def test_a_and_b_of_each_index_are_found(axis, dtype):
    x, rng = make((5, 6, 7), dtype=dtype), np.random.default_rng(1)
    lengths = [n if other == axis else 1 for other, n in enumerate(x.shape)]
    a, b = rng.uniform(0.5, 2.0, lengths), rng.normal(size=lengths)
    found = find_plain_map(x, (a * x + b).astype(dtype), np.dtype(dtype))
    assert found.axes == (axis,)
    np.testing.assert_allclose(found.scale, a, rtol=8 * np.finfo(dtype).eps)
    np.testing.assert_allclose(found.shift, b, atol=16 * np.finfo(dtype).eps)


@pytest.mark.slow
def test_a_norm_of_groups_with_one_statistic_is_told_from_a_plain_map():
    """A single row has one a and one b, and LayerNorm gives both: random ones would not be those."""
    x = make((1, 40))
    assert identify(Question(x, normalize(x, "ln").normalized)).kind is Kind.NORM
    assert identify(Question(x, x * np.float32(0.4871) - np.float32(0.2533))).kind is Kind.AFFINE


@pytest.mark.slow
def test_an_eps_that_takes_up_the_factor_is_no_match():
    """One group, one factor: some eps fits any y = a · x with a small enough."""
    x = make((8, 30))
    root = np.sqrt(np.mean(x.astype("f8") ** 2) + 54.76)
    found = identify(Question(x, (x / root).astype("f4")))
    assert found.kind is Kind.AFFINE
    assert "54.76" not in diagnose(found).sentence


@costly
@pytest.mark.slow
@pytest.mark.parametrize("norm", ["ln", "rms"])
@pytest.mark.parametrize("factor", [0.85, 0.3])
def test_one_group_shows_no_eps(norm, factor):
    """One number was fitted to one number: another factor is another eps."""
    x = make((1, 40))
    found = identify(Question(x, normalize(x, norm).normalized * np.float32(factor)))
    assert found.kind is not Kind.NORM
    assert identify(Question(x, normalize(x, norm).normalized)).kind is Kind.NORM


@costly
@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("mean", [0.0, 30.0, 100.0])
def test_maps_of_half_precision_are_found_far_from_zero(mean, dtype):
    rng = np.random.default_rng(5)
    x, a = rng.normal(mean, 2.0, (6, 5, 16)).astype(find_type(dtype)), rng.uniform(0.5, 2.0, (5, 1))
    found = identify(Question(x, (a * x.astype("f8") - a).astype(x.dtype)))
    assert (found.kind, found.plain.axes) == (Kind.AFFINE, (1,))
    np.testing.assert_allclose(found.plain.scale.ravel(), a.ravel(), rtol=0.02)


@pytest.mark.slow
def test_a_large_eps_that_several_groups_share_is_told_and_no_match():
    x = make((8, 30)) * np.linspace(0.5, 2.0, 8, dtype="f4")[:, None]
    var = x.astype("f8").var(1, keepdims=True)
    y = ((x - x.mean(1, keepdims=True, dtype="f8")) / np.sqrt(var + 3.03)).astype("f4")
    found = identify(Question(x, y))
    assert not found.matches
    assert "eps of 3.03" in diagnose(found).sentence
    assert "no kernel is known to have that eps" in diagnose(found).evidence


IMAGES = np.random.default_rng(3).integers(0, 256, (2, 3, 5, 7)).astype("f4")
MEAN, STD = (np.array(z, "f4")[:, None, None] for z in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))


@pytest.mark.slow
def test_known_maps_are_named_as_possibilities():
    found = identify(Question(IMAGES, ((IMAGES / np.float32(255) - MEAN) / STD).astype("f4")))
    assert (found.kind, found.known) == (Kind.AFFINE, ("ImageNet's mean and std of 0 to 255",))
    assert "ImageNet's mean and std of 0 to 255" in diagnose(found).sentence


def test_bytes_that_reach_255_may_have_been_divided_by_it_or_by_the_largest():
    x = np.concatenate([np.array([0.0, 255.0], "f4"), IMAGES.ravel()])
    found = identify(Question(x, x / np.float32(255)))
    assert found.kind is Kind.AFFINE
    assert "Also: x / 255, bytes from 0 to 1" in diagnose(found).sentence
    assert "ℓp normalization" in diagnose(found).alternatives


@pytest.mark.slow
def test_a_norm_with_groups_that_were_left_as_they_are_is_told_from_a_map_of_each():
    x = make((3, 4, 5, 6))
    y = normalize(x, "in").normalized.copy()
    y[1, 2] = x[1, 2]
    told = diagnose(identify(Question(x, y)))
    assert told.cause == "y is in, but y is x for n=1, c=2"


@pytest.mark.slow
def test_one_sample_for_each_gamma_shows_no_grouping():
    x, rng = make((1, 6, 8, 8)), np.random.default_rng(1)
    gamma, beta = (rng.uniform(0.5, 2.0, 6).astype("f4") for _ in range(2))
    asked = Question(x, normalize(x, "in", gamma=gamma, beta=beta).normalized, layout="NCHW")
    told = diagnose(identify(asked))
    assert told.evidence[-1] == "any bn or in with unknown gamma and beta looks so"
    assert told.next_step == "give --gamma and --beta, or more than one sample"
    assert identify(asked._replace(gamma=gamma, beta=beta)).kind is Kind.NORM


def test_groups_of_two_values_show_their_order_and_no_more():
    few, many = make((11, 2)), make((50, 2))
    found = identify(Question(few, normalize(few, "minmax", axes=1).normalized))
    assert found.kind is Kind.UNDECIDED
    assert "so few values fit many other things as well" in diagnose(found).evidence
    assert identify(Question(many, normalize(many, "minmax", axes=1).normalized)).kind is Kind.NORM


@pytest.mark.slow
def test_what_is_mostly_the_input_is_said_to_be():
    x = make((9, 11))
    assert "y is the input, except for" in diagnose(identify(Question(x, np.maximum(x, -1.0)))).cause


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_in_both_do_not_count(value):
    x = make((6, 7))
    x[2, 3] = value
    assert find_plain_map(x, 3 * x + 1, np.dtype("f4")).scale.item() == 3.0
    y = 3 * make((6, 7)) + 1
    y[2, 4] = value
    assert find_plain_map(make((6, 7)), y, np.dtype("f4")) is None


def test_of_a_large_tensor_that_a_known_map_made_no_norm_is_looked_for(monkeypatch):
    def look(search):
        raise AssertionError("it takes most of a minute and a gigabyte for 67 million values")

    monkeypatch.setattr(Search, "find_matches", look)
    x = np.arange(2.0 * MOST_SAMPLED, dtype=np.float32).reshape(2, -1)
    found = identify(Question(x, x / np.float32(255)))
    assert (found.kind, found.known[0]) == (Kind.AFFINE, "x / 255, bytes from 0 to 1")


# -- lines, digits and blocks, one by one


@pytest.mark.parametrize(
    ("a", "b", "digits"),
    [
        (0.5, 0.0, 1), (2.0, -1.0, 2), (1.0, 0.25, 3), (0.473587, 0.0, 6), (-12.0, 0.0, 2), (0.125, 1e-3, 4), (1.0, 0.0, 1),
    ],
)  # fmt: skip
def test_a_pair_has_as_few_digits_as_it_needs(a, b, digits):
    x = make((6, 7), dtype="float64")
    found = find_global_map(x, a * x + b, np.dtype("f8"))
    assert (found.scale.item(), found.shift.item(), found.digits) == (a, b, digits)
    assert found.is_simple == (digits <= 2)


@pytest.mark.parametrize(
    ("a", "b"), [(1 / 3, 0.0), (np.pi, np.e), (-1e200 / 7, 1e200 / 3), (1e-200 / 7, -1e-200 / 3)]
)
def test_a_pair_of_many_digits_is_known_to_rounding(a, b):
    x = make((6, 7), dtype="float64")
    found = find_global_map(x, a * x + b, np.dtype("f8"))
    assert found.scale.item() == pytest.approx(a, rel=1e-14)
    assert found.shift.item() == pytest.approx(b, rel=1e-13)
    assert not found.is_simple


def test_a_shift_as_small_as_the_last_bit_of_most_terms_is_found_from_the_smallest():
    x = np.array([0.0, 1.0, 2.0, 2.0**-30, 3 * 2.0**-30, 2.0**-60, 3 * 2.0**-60])
    found = fit_lines(x, 3 * x + 5 * 2.0**-60, (), through_zero=False)
    assert found.shift.item() * 2.0**60 == pytest.approx(5, rel=1e-5)


def test_values_in_lines_of_their_own_show_no_map():
    x, rng = make((1, 2), dtype="float64"), np.random.default_rng(1)
    assert find_plain_map(x, rng.normal(size=x.shape), np.dtype("f8")) is None
    x = make((3, 40), dtype="float64")
    assert find_plain_map(x, rng.normal(size=x.shape), np.dtype("f8")) is None
    y = 2 * x
    y[1, 7] = 9.0
    assert find_plain_map(x, y, np.dtype("f8")) is None


@pytest.mark.slow
@costly
@pytest.mark.parametrize(("norm", "mean"), [("rms", 0.0), ("ln", 2.0), ("rms", 20.0)])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_whose_factors_are_nearly_one_is_no_plain_map(norm, mean, dtype):
    x = np.random.default_rng(6).normal(mean, 1.0, (6, 256)).astype(find_type(dtype))
    found = identify(Question(x, normalize(x, norm).normalized), norm)
    assert (found.kind, found.plain) == (Kind.NORM, None)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_factor_of_half_precision_holds_for_every_value(dtype):
    x = np.random.default_rng(7).normal(0.0, 1.0, (6, 256)).astype(find_type(dtype))
    y = (1.5 * x.astype("f8")).astype(x.dtype)
    assert find_plain_map(x, y, x.dtype).digits == 2
    y[3, 5] *= 1.02
    assert find_plain_map(x, y, x.dtype) is None


# -- all but a few values


def make_affine(dtype="float32", shape=(8, 6, 5, 5)):
    """Return x, and y = a · x + b of each channel."""
    x, rng = make(shape, dtype=find_type(dtype)), np.random.default_rng(3)
    a, b = (rng.normal(of, 0.4, (6, 1, 1)) for of in (1.0, 0.5))
    return x, (a * x.astype("f8") + b).astype(x.dtype)


@costly
@pytest.mark.parametrize("dtype", ["float32", *slowly(["float16", "bfloat16", "float64"])])
@pytest.mark.parametrize("value", [0.0, *slowly([np.nan, np.inf, 60000.0])])
@pytest.mark.parametrize("count", [2, *slowly([40])])
def test_a_map_is_named_though_a_few_values_are_wrong(count, value, dtype):
    x, y = make_affine(dtype)
    places = np.random.default_rng(4).choice(y.size, count, replace=False)
    y.reshape(-1)[places] = value
    found = identify(Question(x, y, layout="NCHW"))
    assert (found.kind, found.plain.axes, found.plain.wrong) == (Kind.AFFINE, (1,), count)
    assert found.plain.first_wrong == np.unravel_index(places.min(), y.shape)
    told = diagnose(found)
    require_plain_words(told)
    assert told.cause == f"y is a · x + b in each channel, except for {count} values"
    assert told.evidence[0].startswith("the first of these is at (")


@pytest.mark.slow
def test_one_pair_for_all_but_one_value_is_named_with_its_numbers():
    x = make((6, 40))
    y = (1.5 * x.astype("f8") - 0.25).astype("f4")
    y[2, 7] += 1.0
    told = diagnose(identify(Question(x, y)))
    assert told.cause == "y is 1.5 · x − 0.25, except for 1 value"


def test_a_wrong_value_as_large_as_a_float_hides_no_other():
    x, y = make_affine()
    y[0, 0, 0, :2] = 3e38, 0.0
    assert find_near_map(x, y, y.dtype).wrong == 2


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda y: y + (np.arange(y.size).reshape(y.shape) % 10 == 0), id="too many wrong values"),
        pytest.param(lambda y: y * (1.0 + 1e-6 * (np.arange(y.size).reshape(y.shape) % 30 == 0)), id="nearly right ones"),
        pytest.param(lambda y: np.sin(y), id="no map"),
    ],
)  # fmt: skip
def test_what_is_no_map_but_for_a_few_values_is_none(spoil):
    x, y = make_affine()
    assert find_near_map(x, spoil(y).astype("f4"), y.dtype) is None


def test_few_values_in_a_line_show_no_wrong_one():
    x, y = make_affine(shape=(7, 6, 1, 1))
    y[0, 0] += 1.0
    assert find_near_map(x, y, y.dtype) is None


def test_wrong_values_beyond_a_sample_are_counted(monkeypatch):
    monkeypatch.setattr("normcli.identifying.models.map_search.MOST_SAMPLED", 600)
    monkeypatch.setattr("normcli.identifying.models.map_search.PIECE", 500)
    x, y = make_affine()
    y[5, 3, 4, 1] = y[6, 0, 0, 0] = 9.0
    found = find_near_map(x, y, y.dtype)
    assert (found.wrong, found.first_wrong) == (2, (5, 3, 4, 1))
