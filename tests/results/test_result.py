from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

import normcli
from normcli import NormError, Result, normalize
from normcli.compiled import find_kernel
from normcli.errors import DataError, DegenerateError, UsageError
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.results.calculate import calculate


def test_the_public_names_are_importable():
    assert {*normcli.__all__} == {*normcli._HOMES, "__version__"}
    assert all(getattr(normcli, name) is not None for name in normcli.__all__)
    assert set(dir(normcli)) == set(normcli.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = normcli.nothing  # type: ignore[attr-defined]


def test_a_result_says_what_was_done(rng):
    result = normalize(rng.normal(size=(2, 3, 4, 4)), "bn")
    assert isinstance(result, Result)
    assert (result.axes, result.kept, result.group_count, result.group_size) == ((0, 2, 3), (1,), 3, 32)
    assert result.mean.shape == result.var.shape == result.std.shape == result.rstd.shape == (3,)
    assert repr(result) == "<Result: bn of (2, 3, 4, 4), groups 3 × 32, float64>"


def test_statistics_are_kept_or_not():
    with pytest.raises(NormError, match="^statistics 'no' is not yes or no$"):
        normalize([1.0], "ln", statistics="no")


def test_each_norm_has_its_own_statistics(rng):
    x = rng.normal(size=(2, 3))
    assert normalize(x, "rms").ms.shape == normalize(x, "rms").rms.shape == (2,)
    assert normalize(x, "lp").norm.shape == (2,)
    with pytest.raises(NormError, match="lp has no statistic mean; it has norm"):
        _ = normalize(x, "lp").mean


@pytest.mark.parametrize(
    ("dtype", "asked", "out"),
    [
        pytest.param("int8", None, "float64", id="integers count as float64"),
        pytest.param("float16", None, "float16", id="float16 stays"),
        pytest.param("longdouble", None, "float64", id="long doubles that are doubles"),
        pytest.param("float64", "float16", "float16", id="asked for"),
    ],
)
def test_output_dtype(dtype, asked, out):
    result = normalize(np.array([[0, 1], [1, 1], [0, 0]], dtype=dtype), "bn", dtype=asked)
    assert result.normalized.dtype == np.dtype(out)
    assert result.mean.dtype == np.float64


@pytest.mark.parametrize(
    ("x", "message"),
    [
        pytest.param([[1, 2], [3]], "not a rectangular array", id="ragged"),
        pytest.param(["a"], "holds <U1", id="text"),
        pytest.param([1j], "complex128", id="complex"),
        pytest.param([None], "Python objects", id="objects"),
        pytest.param(np.ma.masked_array([1, 2], [0, 1]), "masked array", id="masked"),
    ],
)
def test_what_is_no_tensor_is_refused(x, message):
    with pytest.raises(DataError, match=message):
        normalize(x)


@pytest.mark.parametrize(
    ("norm", "options", "told"),
    [
        ("lp", {"gamma": 1.0}, "lp has no gamma"),
        ("wn", {"beta": 1.0}, "wn has no beta, only gamma"),
        ("minmax", {"range": (0, 2), "gamma_offset": 1}, "range says what gamma is; leave out gamma_offset"),
        ("rms", {"groups": 5}, "groups 5 does not divide the length 12 of the axis 1; try 1, 2, 3, 4, 6, 12"),
        ("rms", {"group_order": "interleaved"}, "groups are of an axis that is reduced: give groups, and axes"),
    ],
)
@pytest.mark.all_quick
def test_options_that_a_norm_does_not_take_are_refused(norm, options, told):
    with pytest.raises(UsageError, match=told):
        normalize(np.ones((2, 12)), norm, **options)


@pytest.mark.parametrize("axes", [np.int64(1), np.array([1]), (np.int64(1),), [1], ["C"], -1, "C"])
def test_axes_of_every_kind(axes):
    assert normalize(np.ones((2, 3)), "ln", axes=axes).axes == (1,)


@pytest.mark.parametrize(
    "options",
    [{"axes": 1.5}, {"axes": [[0], [1]]}, {"eps": "1e-5"}, {"groups": 2.0}, {"norm": 5}, {"dtype": "nothing"}],
    ids=str,
)
def test_options_of_the_wrong_type_are_refused_by_name(options):
    with pytest.raises(UsageError, match=min(options)):
        normalize(np.ones((2, 4)), **options)


def test_a_result_is_an_ordinary_object(rng):
    result = normalize(rng.normal(size=(2, 3)), "rms")
    copied = pickle.loads(pickle.dumps(result))
    np.testing.assert_array_equal(copied.normalized, result.normalized)
    assert result == result
    assert result != copied
    assert len({result, copied}) == 2
    assert hash(result.plan) == hash(copied.plan)
    assert not hasattr(result, "mean")


@pytest.mark.parametrize("norm", ["ln", "minmax", "lrn", "robust"])
def test_statistics_that_are_not_kept_are_measured_when_they_are_asked_for(norm):
    x = np.random.default_rng(0).standard_normal((300, 4, 2)).astype("f4")
    kept, later = normalize(x, norm), normalize(x, norm, statistics=False)
    assert np.array_equal(kept.normalized, later.normalized)
    assert list(later.statistics) == list(kept.statistics)
    for name, values in kept.statistics.items():
        assert np.array_equal(getattr(later, name), values)
    assert later.warnings == kept.warnings


@pytest.mark.parametrize("axes", [(0, 2), (1, 3)], ids=["between", "at the end"])
def test_statistics_of_short_groups_are_measured_from_a_copy(axes):
    """The tensor may be written to before they are asked for."""
    x = np.random.default_rng(0).standard_normal((2, 2, 2, 1 << 15)).astype("f4").transpose(0, 1, 3, 2)
    x = x if axes == (1, 3) else x.transpose(0, 2, 1, 3)
    wanted = calculate(make_plan(Request("ln", axes=axes), x.shape, x.dtype), x).statistics
    result = normalize(x, "ln", axes=axes)
    assert not isinstance(result.statistics, dict) or find_kernel() is None
    x[...] = 0.0
    assert list(result.statistics) == list(wanted)
    for name, values in wanted.items():
        np.testing.assert_array_equal(result.statistics[name], values)


@pytest.mark.parametrize("no", [False, np.False_, 0], ids=repr)
def test_statistics_that_are_not_kept_take_no_memory(no, monkeypatch):
    def measure(*arguments):
        raise AssertionError("nobody has asked")

    monkeypatch.setattr("normcli.results.calculate.measure", measure)
    result = normalize(np.ones((300, 4)), "ln", statistics=no)
    assert result.normalized.shape == (300, 4)
    assert len(result.statistics) == 4
    with pytest.raises(AssertionError, match="nobody has asked"):
        _ = result.mean


def test_python_names_its_arguments_and_the_command_line_its_options(normcli, monkeypatch):
    monkeypatch.setattr(NormError, "_names_options", False)
    x = np.ones((2, 4, 4, 3))
    with pytest.raises(NormError, match=r"takes \(4,\); layout NHWC where channels are last$"):
        normalize(x, "bn", gamma=[1, 2, 3])
    with pytest.raises(NormError, match="^gn needs groups: the divisors of 4"):
        normalize(x, "gn")
    assert "--layout NHWC" in normcli("bn", "--shape", "2,4,4,3", "--gamma", "[1,2,3]").err


def test_gamma_has_the_name_of_frameworks_too():
    x = np.arange(6.0).reshape(2, 3)
    found, expected = normalize(x, weight=[1, 2, 3], bias=1.0), normalize(x, gamma=[1, 2, 3], beta=1.0)
    np.testing.assert_array_equal(found.normalized, expected.normalized)
    with pytest.raises(UsageError, match="^weight is another name of gamma; give one of them$"):
        normalize(x, gamma=1.0, weight=1.0)


def test_degenerate_groups_are_refused_under_strict():
    with pytest.raises(DegenerateError, match="constant"):
        normalize(np.ones((3, 2)), "bn", strict=True)


@pytest.mark.parametrize(
    ("norm", "shape", "gamma", "spread"),
    [
        pytest.param("ln", (3, 4, 8), (3, 1, 8), (3, 1, 8), id="of each sample"),
        pytest.param("rms", (2, 3, 4, 8), (4, 8), (4, 8), id="of each head"),
        pytest.param("gn", (2, 6, 5), (3,), (3, 1, 1), id="of each group"),
        pytest.param("gn", (2, 6, 5), (2, 1), (2, 1), id="of each place in a group"),
        pytest.param("bn", (2, 6, 5), (2, 1, 5), (2, 1, 5), id="of all but channels"),
    ],
)
def test_gamma_multiplies_as_one_of_the_tensors_shape_would(norm, shape, gamma, spread, rng):
    options, view = ({"groups": 3}, (2, 3, 2, 5)) if norm == "gn" else ({}, shape)
    x, scale = rng.normal(size=shape).astype("f4"), rng.normal(size=gamma).astype("f4")
    whole = np.broadcast_to(scale.reshape(spread), view).reshape(shape)
    one, other = (normalize(x, norm, gamma=array, gamma_offset=1, **options) for array in (scale, whole))
    np.testing.assert_array_equal(one.normalized, other.normalized)
    assert one.gamma.shape == gamma


@pytest.mark.parametrize("norm", ["rms", "lp", "l1"])
def test_groups_of_the_last_axis_are_those_of_a_split_axis(norm, rng):
    x = rng.normal(size=(2, 3, 12)).astype("f4")
    grouped = normalize(x, norm, groups=4)
    split = normalize(x.reshape(2, 3, 4, 3), norm)
    np.testing.assert_array_equal(grouped.normalized, split.normalized.reshape(x.shape))
    assert (grouped.group_count, grouped.group_size) == (24, 3)
    dealt = normalize(x, norm, groups=4, group_order="interleaved").normalized
    moved = normalize(x.reshape(2, 3, 3, 4).swapaxes(2, 3), norm).normalized.swapaxes(2, 3)
    np.testing.assert_array_equal(dealt, moved.reshape(x.shape))


def test_a_result_refuses_assignments_and_no_later_call_changes_it():
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    gamma = np.array([1.0, 2.0, 3.0], np.float32)
    first = normalize(x, "bn", gamma=gamma)
    kept = first.normalized.copy(), {name: values.copy() for name, values in first.statistics.items()}
    gamma[:] = 7.0
    second = normalize(x + x, "bn", gamma=gamma)
    assert not np.shares_memory(first.normalized, second.normalized)
    np.testing.assert_array_equal(first.normalized, kept[0])
    expected = normalize(x + x, "bn", gamma=[7, 7, 7]).normalized
    np.testing.assert_array_equal(second.normalized, expected)
    for name, values in kept[1].items():
        np.testing.assert_array_equal(first.statistics[name], values)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'plan'"):
        first.plan = second.plan
