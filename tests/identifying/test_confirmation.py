"""What fits the sample of a large tensor is held against all of it."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import normalize
from normcli.identifying.identify import identify
from normcli.identifying.models.map_search import find_plain_map
from normcli.identifying.question import Kind, Question
from normcli.identifying.sampling import MOST_SAMPLED
from normcli.identifying.words.phrasing import diagnose
from tests.marks import costly, sampled, slowly

SHAPE = (1601, 83)


def make(shape=SHAPE, seed=0, dtype="float32"):
    x = np.random.default_rng(seed).normal(0.7, 2.0, shape).astype(dtype)
    assert x.size > MOST_SAMPLED
    return x


def alter(y, place, value):
    changed = y.copy()
    changed[place] = value
    return changed


@costly
@sampled
@pytest.mark.parametrize("norm", ["ln", *slowly(["rms", "lp", "bn", "minmax"])])
@pytest.mark.parametrize("off", [0.01, np.nan, -np.inf])
def test_one_wrong_value_outside_of_the_sample_is_no_match(norm, off):
    shape = {"bn": (47, 7, 19, 23), "minmax": (12007, 11)}.get(norm, SHAPE)
    x = make(shape)
    y = normalize(x, norm).normalized
    assert identify(Question(x, y), norm).kind is Kind.NORM
    place = tuple(n - 2 for n in shape)  # the last group is in the sample
    sentence = diagnose(identify(Question(x, alter(y, place, y[place] + off)), norm)).sentence
    assert f"except at ({', '.join(map(str, place))})" in sentence


@costly
@pytest.mark.parametrize("dtype", ["float32", *slowly(["float16", "float64"])])
@pytest.mark.slow
def test_groups_that_are_rare_are_no_exceptions(dtype):
    x = make()
    x[77], x[78], x[79] = 3.1, 0.0, 100.0 + 1e-4 * x[79]
    x[80, 3], x[81, 4] = np.nan, np.inf
    x = x.astype(dtype)
    y = normalize(x, "ln").normalized
    assert identify(Question(x, y)).kind is Kind.NORM
    y[77, 5] = 0.5
    found = identify(Question(x, y))
    assert diagnose(found).cause == "y is ln, except for n=77, c=5"


def test_a_kernel_in_float32_is_no_exception():
    x = make()
    x[77], x[79] = 3.1, 100.0 + 1e-4 * x[79]
    rest = x - x.mean(1, keepdims=True)
    y = rest / np.sqrt((rest * rest).mean(1, keepdims=True) + np.float32(1e-5))
    assert identify(Question(x, y)).kind is Kind.NORM


def test_groups_outside_of_the_sample_may_show_another_eps():
    x = make()
    x[77] *= np.float32(1e-5)
    y = normalize(x, "ln", eps=1e-9).normalized
    match = identify(Question(x, y)).matches[0]
    assert (match.eps, match.eps_range[0] > 0.0) == (1e-9, True)


@pytest.mark.slow
def test_nan_that_does_not_count_is_confirmed():
    x = make((18757, 7), dtype="float64")
    x[[5, 77], 3] = np.nan
    y = normalize(x, "zscore", axes=(0,), nan="omit").normalized
    assert identify(Question(x, y), "zscore").kind is Kind.NORM
    assert identify(Question(x, alter(y, (78, 3), 0.25)), "zscore").kind is not Kind.NORM


@pytest.mark.slow
@pytest.mark.parametrize("lengths", [(SHAPE[0], 1), (1, SHAPE[1])])
def test_a_plain_map_is_one_of_all_values(lengths):
    x, rng = make(), np.random.default_rng(1)
    y = (rng.uniform(0.5, 2.0, lengths) * x + rng.normal(size=lengths)).astype("f4")
    found = identify(Question(x, y))
    assert (found.kind, found.plain.scale.shape) == (Kind.AFFINE, lengths)
    place = (777, 3)
    wrong = identify(Question(x, alter(y, place, y[place] + np.float32(1.0))))
    if lengths == (1, SHAPE[1]):
        assert (wrong.plain.wrong, wrong.plain.first_wrong) == (1, place)
    else:  # more lines than a sample has room for
        assert wrong.plain is None


@pytest.mark.slow
def test_a_map_of_more_lines_than_a_sample_holds_is_one_of_all():
    x = make((132_001, 6))
    y = (np.random.default_rng(1).uniform(0.5, 2.0, (len(x), 1)) * x + 1.0).astype("f4")
    assert find_plain_map(x, y, y.dtype).axes == (0,)
    assert find_plain_map(x, alter(y, (77_777, 3), y[77_777, 3] + 1.0), y.dtype) is None


@pytest.mark.slow
def test_a_window_is_one_of_all_values():
    x = make((2803, 7, 7))
    y = normalize(x, "lrn", size=3).normalized
    assert identify(Question(x, y), "lrn").matches[0].norm == "lrn"
    assert not identify(Question(x, alter(y, (2777, 3, 3), 9.0)), "lrn").matches
