"""Which values count: statistics are of those alone, whatever the others are."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

from normcli import normalize
from normcli.errors import DataError, UsageError
from normcli.norms.table import NORMS
from tests.marks import sampled, slowly
from tests.reference.groups import solve_group
from tests.reference.limits import ELEMENT
from tests.reference.measuring import Elements, measure_elements

GROUPED = [name for name, norm in NORMS.items() if name != "lrn" and norm.rows is None]
DTYPES = ("float16", "float32", "float64")


def options(norm):
    return {"groups": 2} if NORMS[norm].needs_groups else {}


@sampled
@pytest.mark.parametrize("norm", GROUPED)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 4, 30), *slowly([(4, 6, 5), (700, 2, 2)])])
def test_statistics_and_values_are_exact_of_what_counts(norm, dtype, shape, rng):
    x = rng.normal(3.0, 2.0, shape).astype(dtype)
    mask = rng.random(shape) < 0.6
    x[~mask & (rng.random(shape) < 0.5)] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = normalize(x, norm, mask=mask, **options(norm))
    plan = result.plan
    views = (array.reshape(plan.grid.view_shape) for array in (x, result.normalized, mask))
    before, after, counting = (view for view in views)
    for group in range(0, plan.grid.group_count, max(1, plan.grid.group_count // 40)):
        place = plan.grid.select_group(group)
        here = counting[place]
        assert result.counts.reshape(-1)[group] == here.sum()
        np.testing.assert_array_equal(after[place][~here], before[place][~here])
        if here.any():
            values = before[place][here]
            errors = measure_elements(Elements(after[place][here], values), solve_group(plan, values))
            assert max(errors) <= ELEMENT


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_mask_of_ones_changes_no_bit(norm, dtype, rng):
    x = rng.normal(size=(3, 4, 700)).astype(dtype)
    plain, masked = normalize(x, norm, **options(norm)), normalize(x, norm, mask=True, **options(norm))
    np.testing.assert_array_equal(masked.normalized, plain.normalized)
    for name, statistic in plain.statistics.items():
        np.testing.assert_array_equal(masked.statistics[name], statistic)


@pytest.mark.parametrize(
    ("fill", "value"), [("pass", 100.0), ("zero", 0.0), ("nan", np.nan), ("normalize", 197.0)]
)
def test_what_becomes_of_the_others(fill, value):
    result = normalize([[1.0, 3.0, 100.0]], "ln", eps=0, gamma=2.0, beta=1.0, mask=[1, 1, 0], fill=fill)
    np.testing.assert_array_equal(result.normalized, [[-1.0, 3.0, value]])
    assert all(check.ok for check in result.check)


def test_lengths_are_padding_along_the_sequence(rng):
    x = rng.normal(size=(3, 5, 2))
    result = normalize(x, "bn", layout="NLC", lengths=[5, 2, 3])
    counted = np.concatenate([x[0], x[1, :2], x[2, :3]])
    np.testing.assert_allclose(result.mean, counted.mean(0), rtol=1e-13)
    np.testing.assert_allclose(result.var, counted.var(0), rtol=1e-13)
    assert result.counts.tolist() == [10, 10]
    channels_first = normalize(x.transpose(0, 2, 1), "bn", lengths=[5, 2, 3])  # NCL by default
    np.testing.assert_array_equal(channels_first.mean, result.mean)


def test_lengths_and_mask_and_nan_together():
    x = np.array([[[1.0], [2.0], [np.nan], [8.0]]])
    result = normalize(x, "bn", layout="NLC", lengths=[3], mask=np.array([0, 1, 1, 1])[:, None], nan="omit")
    assert (result.counts.tolist(), result.mean.tolist()) == ([1], [2.0])


def test_nan_rules():
    x = [[1.0, np.nan], [3.0, 4.0]]
    assert np.isnan(normalize(x, "bn", nan="propagate").mean[1])
    assert normalize(x, "bn", nan="omit").mean.tolist() == [2.0, 4.0]
    with pytest.raises(DataError, match="there is a NaN at n=0 c=1; --nan omit"):
        normalize(x, "bn", nan="raise")
    assert normalize([[1, 2], [3, 4]], "bn", nan="omit").counts is None  # integers have none


@pytest.mark.parametrize("norm", GROUPED)
def test_a_group_with_nothing_left_is_named(norm):
    result = normalize(np.arange(24.0).reshape(2, 4, 3), norm, mask=False, **options(norm))
    kinds = [degeneracy.kind for degeneracy in result.degeneracies]
    assert kinds == ["masked"]
    assert "no value that counts" in result.warnings[0]


def test_a_group_with_one_value_left_is_named():
    result = normalize([[1.0, 2.0], [3.0, 4.0]], "ln", mask=[[1, 0], [1, 1]])
    assert result.warnings == (
        "group n=0 holds a single value that counts: its variance is 0 and its normalized value 0",
    )
    unbiased = normalize([[1.0, 2.0], [3.0, 4.0]], "ln", ddof=1, mask=[[1, 0], [1, 1]])
    assert "against ddof 1: its variance is NaN" in unbiased.warnings[0]


def test_a_nan_that_counts_is_told():
    result = normalize([[1.0, np.nan, 3.0], [np.nan, 1.0, 2.0]], "ln", mask=[[1, 1, 1], [0, 1, 1]])
    assert [(d.kind, d.first_group, d.group_count) for d in result.degeneracies] == [("nan", "n=0", 1)]


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("said", "error", "message"),
    [
        ({"mask": np.ones((3, 3))}, DataError, r"the mask has the shape \(3, 3\), which does not broadcast"),
        ({"mask": np.ones(2)}, DataError, r"does not broadcast to \(2, 3\); \(2, 1\) does$"),
        ({"mask": np.ones((1, 1, 2, 3))}, DataError, "does not broadcast"),
        ({"mask": [[0, 2, 1]]}, DataError, "the mask holds 2"),
        ({"mask": [[0.5, 1, 1]]}, DataError, "the mask holds 0.5"),
        ({"lengths": [1, 2]}, UsageError, "L, T or S"),
        ({"lengths": [1, 2, 3], "layout": "NL"}, DataError, "there are 3 lengths for 2 samples"),
        ({"lengths": [1], "layout": "NL"}, DataError, "there is 1 length for 2 samples"),
        ({"lengths": [1, 4], "layout": "NL"}, DataError, "length 4 of sample 1 is not within the axis L of 3"),
        ({"lengths": [-1, 2], "layout": "NL"}, DataError, "length -1 of sample 0"),
        ({"lengths": ["a", 2]}, UsageError, "are no integers"),
        ({"nan": "drop"}, UsageError, "nan 'drop' is none of propagate, omit, raise"),
        ({"mask": True, "fill": "one"}, UsageError, "fill 'one' is none of"),
        ({"fill": "zero"}, UsageError, "fill is for values that do not count"),
    ],
)
def test_what_is_refused(said, error, message):
    with pytest.raises(error, match=message):
        normalize(np.ones((2, 3)), "ln", **said)


def test_answers_tell_how_many_values_count(normcli):
    arguments = ("ln", "--shape", "2,3,4", "--layout", "NLC", "--lengths", "3,1", "--axes", "LC")
    ran = normcli(*arguments, "--quiet")
    assert "counting  16 of 24 values   what does not is passed through" in ran.out
    assert [line.split()[:2] for line in ran.lines if line.startswith("n=1  ")] == [["n=1", "4"]]
    answer = normcli(*arguments, "-f", "json").json
    assert answer["counts"] == [12, 4]
    assert answer["counting"] == {"mask": True, "omits_nan": False, "fill": "pass"}
    assert normcli(*arguments, "--print", "count").lines == ["12", "4"]
    data = (
        "bn",
        "--data",
        "[[1, 2], [3, 4]]",
        "--mask",
        "[[true, false], [true, true]]",
        "--fill",
        "nan",
        "-q",
    )
    cells = normcli(*data, "-f", "csv").lines[2].split(",")
    assert (cells[3], cells[-1]) == ("0", "nan")
    assert [json.loads(line)["count"] for line in normcli(*data, "-f", "jsonl").lines] == [2, 1]


def test_a_page_is_refused_in_one_line(normcli, tmp_path):
    data = ("--data", "[[1,2,3],[1,4,5]]", "--mask", "[1,0,1]")
    ran = normcli("bn", *data, "-o", tmp_path / "m.html", "--stats-output", tmp_path / "s.json")
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1)
    assert list(tmp_path.iterdir()) == []


def test_check_knows_what_counts(normcli, tmp_path):
    arguments = ("ln", "--shape", "2,3,4", "--layout", "NLC", "--lengths", "3,2")
    normcli(*arguments, "-o", tmp_path / "y.npy", "-q")
    ran = normcli("check", *arguments, "--actual", tmp_path / "y.npy")
    assert ran.code == 0
    assert "20 of 24 values" in ran.out
    assert ran.err == ""  # padded tokens are asked for
    assert normcli("check", *arguments[:-2], "--actual", tmp_path / "y.npy", "-q").code == 1
    assert normcli("check", *arguments, "--actual", tmp_path / "y.npy", "--strict").code == 0
    assert normcli("ln", *arguments[1:-1], "0,0", "--strict").code == 4


@pytest.mark.parametrize("size", [1, 2, 3, 9])
def test_windows_tell_how_many_of_their_values_count(size, rng):
    """A window without one is a sum of nothing, and no reason to warn."""
    x, mask = rng.normal(size=(2, 7, 3)), rng.random((7, 3)) < 0.5
    result = normalize(x, "lrn", size=size, mask=mask)
    assert result.warnings == ()
    window = result.plan.spec.window
    for n, c, i in np.ndindex(x.shape):
        marks = mask[max(0, c - window.before) : c + window.after + 1, i]
        assert result.counts[n, c, i] == marks.sum()


@pytest.mark.parametrize("dtype", ["float16", "float32", "bfloat16"])
def test_what_is_passed_through_and_does_not_fit_is_told(dtype):
    value = 70000.0 if dtype == "float16" else 3.4e39
    result = normalize([[1.0, value, 3.0]], "ln", mask=[1, 0, 1], dtype=dtype)
    assert [(kind.kind, kind.first_group) for kind in result.degeneracies] == [("output", "n=0")]
    for fill in ("zero", "nan"):
        assert normalize([[1.0, value, 3.0]], "ln", mask=[1, 0, 1], dtype=dtype, fill=fill).warnings == ()
    infinite = normalize([[1.0, np.inf, 3.0]], "ln", mask=[1, 0, 1], dtype=dtype)
    assert infinite.warnings == ()  # it was so before


@pytest.mark.parametrize("norm", ["ln", "rms", "lp"])
def test_statistics_over_a_slice_are_those_of_it_alone(norm, rng):
    x = rng.normal(size=(3, 8)).astype("f4")
    found = normalize(x, norm, over=slice(2, 6))
    part = normalize(x[:, 2:6], norm)
    for name, values in part.statistics.items():
        np.testing.assert_array_equal(found.statistics[name], values)
    np.testing.assert_array_equal(found.normalized[:, 2:6], part.normalized)
    mask = np.isin(np.arange(8), range(2, 6))
    np.testing.assert_array_equal(found.normalized, normalize(x, norm, mask=mask, fill="normalize").normalized)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        pytest.param({"over": (0, 9)}, "over 0:9 is not within the axis c of 8", id="beyond the axis"),
        pytest.param({"over": (3, 3)}, "over 3:3 is not an ascending pair of places", id="empty"),
        pytest.param({"over": (0, 2), "groups": 2}, "over is of a whole axis that is reduced; leave out groups", id="groups"),
        pytest.param({"over": 3}, "over 3 is not a first place and the one after the last", id="a number"),
    ],
)  # fmt: skip
def test_a_slice_that_cannot_be_is_refused(options, told):
    with pytest.raises(UsageError, match=told):
        normalize(np.ones((3, 8)), "rms", **options)


@pytest.mark.parametrize("arguments", [["explain", "--at", "0,0"], ["restore"]])
def test_a_verb_that_takes_all_places_refuses_a_slice(arguments, normcli):
    ran = normcli(arguments[0], "rms", "--shape", "2,8", "--over", "0:4", *arguments[1:])
    assert (ran.code, ran.out) == (2, "")
    assert "over is of the norm itself, check, backward and golden" in ran.err
