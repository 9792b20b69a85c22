from __future__ import annotations

import pickle

import numpy as np
import pytest

from normcli import apply, fit, invert, load, merge, normalize
from normcli.errors import DataError, MissingStatisticError, UsageError

X = np.array([[1.0, 2.0], [3.0, 6.0], [5.0, 7.0]])
FITTED = ["bn", "zscore", "minmax", "midrange", "maxabs", "mvn"]


@pytest.mark.parametrize("norm", FITTED)
def test_statistics_are_those_of_the_norm_and_apply_normalizes_as_it_does(norm, rng):
    x = rng.normal(size=(7, 4))
    stats, result = fit(x, norm), normalize(x, norm)
    for name, values in result.statistics.items():
        assert (getattr(stats, "norm_length" if name == "norm" else name) == values).all()
    assert (stats.apply(x) == result.normalized).all()
    assert np.allclose(stats.invert(stats.apply(x)), x, rtol=1e-15, atol=1e-15)
    assert (apply(stats, x) == stats.apply(x)).all()
    assert (invert(stats, x) == stats.invert(x)).all()


@pytest.mark.parametrize("norm", FITTED)
def test_in_any_parts_and_order_they_are_the_same(norm, rng):
    x = rng.normal(size=(9, 4)) * 10.0 ** rng.integers(-9, 9, size=(9, 1))
    whole, parts = fit(x, norm), [fit(part, norm) for part in (x[5:], x[:2], x[2:5])]
    assert merge(*parts) == whole
    assert parts[1] | parts[0] | parts[2] == whole
    assert fit(x[:4], norm).update(x[4:]) == whole
    assert merge(*parts).samples == 9
    assert whole != fit(x[:8], norm)
    assert (whole == 3) is False


def test_merging_leaves_both_as_they_were():
    one, other = fit(X[:1], "zscore"), fit(X[1:], "zscore")
    _ = one | other
    assert (one.samples, one.mean.tolist()) == (1, [1.0, 2.0])
    assert other == fit(X[1:], "zscore")
    with pytest.raises(TypeError):
        _ = one | 3


def test_they_are_kept_and_read_back(tmp_path, normcli):
    path = tmp_path / "stats.npz"
    stats = fit(X, "zscore")
    stats.save(path)
    assert load(path) == stats
    assert normcli("merge", path, "--print", "mean").out.split() == ["3.0", "5.0"]
    assert pickle.loads(pickle.dumps(stats)) == stats
    with pytest.raises(DataError, match="there is no such file"):
        load(tmp_path / "none.npz")


def test_they_print_as_a_table():
    stats = fit(X, "zscore")
    assert repr(stats) == "<Statistics: zscore of (N, 2), 3 samples>"
    assert "c=1" in str(stats)
    assert "mean" in dir(stats)


def test_a_statistic_of_another_norm_is_named():
    with pytest.raises(MissingStatisticError, match="minmax has no statistic mean; it has min, max, range"):
        _ = fit(X, "minmax").mean
    assert not hasattr(fit(X, "minmax"), "_nothing")


@pytest.mark.parametrize(
    ("norm", "options", "message"),
    [
        pytest.param("ln", {}, "there is nothing to fit", id="of each sample"),
        pytest.param("zscore", {"nan": "skip"}, "nan 'skip' is none of propagate, omit, raise", id="nan"),
        pytest.param("zcore", {}, "there is no norm 'zcore'", id="norm"),
    ],
)
def test_requests_that_make_no_sense(norm, options, message):
    with pytest.raises(UsageError, match=message):
        fit(X, norm, **options)


def test_quantiles_are_fitted_at_once():
    stats = fit(X, "robust")
    assert (stats.apply(X) == normalize(X, "robust").normalized).all()
    with pytest.raises(UsageError, match="robust has quantiles, which follow from no sums"):
        stats.update(X)
    with pytest.raises(DataError, match="cannot be merged|quantiles"):
        _ = stats | stats


# -- what goes in comes out


@pytest.mark.peers
def test_tables_go_by_the_names_of_columns():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b"], index=[7, 8, 9])
    stats = fit(frame, "zscore")
    assert stats.columns == ("a", "b")
    turned = stats.apply(frame[["b", "a"]])
    assert (list(turned.columns), list(turned.index)) == (["b", "a"], [7, 8, 9])
    pandas.testing.assert_frame_equal(turned[["a", "b"]], normalize(frame, "zscore").normalized)
    assert fit(frame[:1], "zscore").update(frame[1:][["b", "a"]]) == stats
    with pytest.raises(DataError, match="than a, b: there is no b$"):
        stats.apply(frame.rename(columns={"b": "c"}))


@pytest.mark.peers
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_further_columns_of_a_table_pass_through_as_of_the_command(library):
    frame = pytest.importorskip(library).DataFrame({"s": ["x", "y"], "b": [1.0, 3.0], "n": [7, 8], "a": [5, 9]})
    stats = fit(frame[["a", "b"]], "zscore")
    y = stats.apply(frame)
    assert [y[name].to_list() for name in y.columns] == [["x", "y"], [-1.0, 1.0], [7, 8], [-1.0, 1.0]]
    assert (list(y.columns), y["n"].dtype) == (["s", "b", "n", "a"], frame["n"].dtype)
    assert stats.invert(y)["a"].to_list() == frame["a"].to_list() == [5, 9]
    grouped = fit(frame[["b"]], "zscore", by=frame["s"]).apply(frame, by=frame["s"])
    assert grouped["b"].to_list() == [0.0, 0.0]
    with pytest.raises(DataError, match="than a, b: there is no b$"):
        stats.apply(frame[["s", "n", "a"]])


def test_groups_given_as_an_array_to_statistics_of_all_rows_are_refused():
    with pytest.raises(UsageError, match="these statistics are of all rows: leave out by"):
        fit([[1.0], [3.0]], "zscore").apply([[1.0], [3.0]], by=np.array(["a", "b"]))


@pytest.mark.peers
def test_named_axes_in_another_order_are_those_of_the_same_names():
    xarray = pytest.importorskip("xarray")
    x = xarray.DataArray(np.arange(9.0).reshape(3, 3) ** 2, dims=("time", "var"))
    stats = fit(x, "zscore", axes="time")
    assert stats.plan.grid.group_name(1) == "var=1"
    assert stats.apply(x.T).dims == ("var", "time")
    assert (stats.apply(x) == stats.apply(x.T).T).all()
    assert fit(x[:1], "zscore", axes="time").update(x[1:].T) == stats
    with pytest.raises(DataError, match="x has the axes time, depth; the statistics are of time,var"):
        stats.apply(x.rename({"var": "depth"}))


@pytest.mark.parametrize("others", [([],), (3,)])
def test_merge_takes_statistics_alone(others):
    first = fit(np.arange(6.0).reshape(3, 2), "zscore")
    with pytest.raises(UsageError, match=r"of a list merge\(\*list\)"):
        merge(first, *others)


def test_the_name_of_a_column_is_no_group_of_rows():
    with pytest.raises(UsageError, match=r"not a name: give the column itself, x\['ab'\]"):
        fit([[1.0], [2.0]], "zscore", by="ab")  # one letter for each row


@pytest.mark.parametrize(
    ("call", "first", "told"),
    [
        (apply, "stats.npz", "apply takes fitted statistics first"),
        (apply, np.ones((2, 1)), "apply takes fitted statistics first"),
        (invert, np.ones((2, 1)), "invert takes fitted statistics or the name of a norm first"),
    ],
)
def test_statistics_come_first(call, first, told):
    with pytest.raises(UsageError, match=told):
        call(first, fit([[1.0], [2.0]]))
