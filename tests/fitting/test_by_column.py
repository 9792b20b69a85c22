"""Rows grouped by a column: statistics of each group, exact, from any parts, and their use."""

from __future__ import annotations

import itertools
import pickle
from fractions import Fraction

import numpy as np
import pytest

from normcli import NormError, fit, load, merge, normalize
from normcli.engine.walk import Effort
from normcli.errors import DataError, UsageError
from normcli.fitting import by_column
from normcli.fitting.stats_file import read_stats
from normcli.fitting.subject import choose_subject
from normcli.fitting.use import Use, use_stats
from normcli.norms.request import Request
from normcli.tensors.files import load as load_tensor
from normcli.tensors.tables.tables import TableOptions
from normcli.tensors.tensor import GroupingColumn, Tensor

NORMS = ["zscore", "minmax", "maxabs", "midrange"]


def make_rows(rng, dtype="float64", rows=60, columns=3):
    """Return a table of values of many magnitudes, and the group of each row; one group has a single row."""
    x = (rng.standard_normal((rows, columns)) * 10.0 ** rng.integers(-6, 7, (rows, columns))).astype(dtype)
    return x, ["z", *(str(label) for label in rng.choice(["b", "a", "éa", ""], rows - 1))]


def pick(labels, name):
    return [row for row, label in enumerate(labels) if label == name]


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64"])
@pytest.mark.parametrize("norm", NORMS)
def test_each_group_has_the_statistics_and_results_of_a_table_of_its_own(norm, dtype, rng, monkeypatch):
    monkeypatch.setattr(by_column, "_VALUES", 21)  # seven rows at a time
    x, labels = make_rows(rng, dtype)
    if dtype == "int64":
        x[:, 1] += 2**60  # float64 rounds these
    found = fit(x, norm, by=labels)
    normalized = found.apply(x, by=labels)
    restored = found.invert(normalized, by=labels)
    assert found.groups == tuple(sorted({*labels}))
    for row, name in enumerate(found.groups):
        rows = pick(labels, name)
        alone = fit(x[rows], norm)
        for statistic in ("min", "max", "count", *(("mean", "var", "std1") if norm == "zscore" else ())):
            assert getattr(found, statistic)[row].tobytes() == getattr(alone, statistic).tobytes(), statistic
        assert normalized[rows].tobytes() == normalize(x[rows], norm).normalized.tobytes()
        assert restored[rows].tobytes() == alone.invert(normalized[rows]).tobytes()


def test_a_mean_is_the_exact_one_rounded_once(rng):
    x, labels = make_rows(rng)
    found = fit(x, "zscore", by=labels)
    for row, name in enumerate(found.groups):
        column = [Fraction(float(value)) for value in x[pick(labels, name), 0]]
        assert found.mean[row, 0] == float(sum(column) / len(column))


def test_values_whose_squares_overflow_and_vanish_are_summed_exactly():
    x = np.array([[1e300], [2.0**-1000], [-1e300], [3 * 2.0**-1000]])
    found = fit(x, "zscore", by=["a", "b", "a", "b"])
    assert found.mean.tolist() == [[0.0], [2.0**-999]]
    assert found.std.tolist() == [[1e300], [2.0**-1000]]


def test_parts_in_any_order_give_the_file_of_one_fit(rng, tmp_path):
    x, labels = make_rows(rng)
    fit(x, "zscore", by=labels).save(tmp_path / "all.npz")
    cuts = [slice(0, 1), slice(1, 25), slice(25, 60)]
    for order in itertools.permutations(cuts):
        parts = [fit(x[rows], "zscore", by=labels[rows]) for rows in order]
        merged = merge(*parts)
        assert merged == load(tmp_path / "all.npz")
    updated = fit(x[:20], "zscore", by=labels[:20])
    updated.update(x[20:], by=labels[20:])
    assert updated == merged
    assert pickle.loads(pickle.dumps(updated)) == updated


def test_a_stats_file_of_groups_is_of_a_version_of_its_own(rng, tmp_path):
    """Versions that know of no groups refuse it by its schema, and its other members are those of all files."""
    x, labels = make_rows(rng)
    fit(x, "zscore", by=labels).save(tmp_path / "grouped.npz")
    fit(x, "zscore").save(tmp_path / "plain.npz")
    with np.load(tmp_path / "grouped.npz") as grouped, np.load(tmp_path / "plain.npz") as plain:
        assert (str(grouped["schema"]), str(plain["schema"])) == ("normcli-stats/2", "normcli-stats/1")
        assert {*grouped} - {*plain} == {"by", "by_values"}
        assert grouped["by_values"].tolist() == sorted({*labels})
        assert grouped["mean"].shape == (len({*labels}), 3)


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("change", "told"),
    [
        pytest.param({"by_values": np.array(["b", "a"])}, "by_values is no sorted list", id="order"),
        pytest.param({"by_values": np.array(["a", "a"])}, "by_values is no sorted list", id="twice"),
        pytest.param({"by_values": np.array([], "<U1")}, "by_values is no sorted list", id="none"),
        pytest.param({"by_values": np.array("a")}, r"by_values has the shape \(\)", id="no list"),
        pytest.param({"by_values": np.array(["a", "b", "c"])}, r"has the shape", id="more"),
        pytest.param({"by": np.array(3)}, "by is int64, and no text", id="by"),
        pytest.param(
            {"samples": np.array(5)}, "count is 4, with the other counts, and a group has 5", id="samples"
        ),
        pytest.param(
            {"shape": np.array([0, 1, 1]), "layout": np.array("")},
            "--by groups the rows of a table of two axes",
            id="axes",
        ),
        pytest.param({"norm": np.array("robust")}, "robust has quantiles", id="quantiles"),
        pytest.param({"schema": np.array("normcli-stats/1")}, "has the shape", id="schema"),
    ],
)
def test_a_damaged_file_of_groups_is_refused(change, told, tmp_path):
    fit([[1.0], [2.0], [4.0], [3.0]], "zscore", by=["a", "b", "b", "a"]).save(tmp_path / "s.npz")
    with np.load(tmp_path / "s.npz") as archive:
        members = dict(archive)
    np.savez(tmp_path / "s.npz", **members | change)
    with pytest.raises(DataError, match=told):
        read_stats(str(tmp_path / "s.npz"))


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("call", "kind", "told"),
    [
        pytest.param(lambda s: s.apply([[1.0], [2.0]], by=["a", "new"]), DataError, "x, row 2: .* group 'new'", id="new"),
        pytest.param(lambda s: s.invert([[1.0]], by=["A"]), DataError, "x, row 1: .* group 'A' of by", id="case"),
        pytest.param(lambda s: s.apply([[1.0]]), UsageError, "are of groups of rows: give by", id="no by"),
        pytest.param(lambda s: fit([[1.0]], "zscore").apply([[1.0]], by=["a"]), UsageError, "leave out by", id="by"),
        pytest.param(lambda s: s.apply([[1.0, 2.0]], by=["a"]), DataError, r"statistics are of \(1,\)", id="columns"),
        pytest.param(lambda s: s.apply([[1.0]], by=["a", "a"]), DataError, "2 groups' names for 1 rows", id="length"),
        pytest.param(lambda s: s.update([[1.0]]), DataError, "column that groups rows: none and by", id="update"),
        pytest.param(lambda s: fit([[1.0]], "robust", by=["a"]), UsageError, "robust has quantiles", id="quantiles"),
        pytest.param(lambda s: fit([1.0], "zscore", by=["a"]), UsageError, "a table of two axes", id="one axis"),
        pytest.param(lambda s: fit([[1.0]], "zscore", axes=(0, 1), by=["a"]), UsageError, "the first alone", id="axes"),
        pytest.param(
            lambda s: fit([[1.0]], "zscore", like="tensorflow", axes=(0,), by=["a"]), UsageError, "give --eps", id="eps"
        ),
        pytest.param(lambda s: fit([[1.0]], "zscore", by=["a\0"]), DataError, "that no stats file can keep", id="NUL"),
        pytest.param(lambda s: fit([[np.nan]], "zscore", nan="raise", by=["a"]), DataError, "is NaN", id="NaN"),
        pytest.param(lambda s: s.apply([[1.0]], by=["a"], gamma=[2.0]), UsageError, "zscore has no gamma", id="gamma"),
    ],
)  # fmt: skip
def test_refusals(call, kind, told):
    stats = fit([[1.0], [2.0], [4.0], [3.0]], "zscore", by=["a", "b", "b", "a"])
    with pytest.raises(NormError, match=told) as raised:
        call(stats)
    assert raised.type is kind


def test_nan_spreads_within_its_group_or_counts_not():
    x, labels = [[1.0], [np.nan], [3.0], [5.0], [2.0]], ["a", "a", "b", "b", "a"]
    spread = fit(x, "zscore", by=labels)
    np.testing.assert_array_equal(spread.mean, [[np.nan], [4.0]])
    assert spread.warnings == ("by=a 0: NaN spreads; --nan omit leaves such values out",)
    assert fit(x, "zscore", nan="omit", by=labels).mean.tolist() == [[1.5], [4.0]]


def test_minmax_takes_a_range_and_gamma_along_columns(rng):
    x, labels = make_rows(rng)
    ranged = fit(x, "minmax", range=(-1.0, 1.0), by=labels)
    for name in ranged.groups:
        rows = pick(labels, name)
        alone = fit(x[rows], "minmax", range=(-1.0, 1.0)).apply(x[rows])
        assert ranged.apply(x, by=labels)[rows].tobytes() == alone.tobytes()


def test_columns_go_by_their_names_and_so_does_a_column_of_groups(rng):
    pandas = pytest.importorskip("pandas")
    x, labels = make_rows(rng)
    table = pandas.DataFrame(x, columns=["u", "v", "w"])
    found = fit(table, "zscore", by=pandas.Series(labels, name="shop"))
    other = found.apply(table[["w", "u", "v"]], by=labels)
    assert list(other.columns) == ["w", "u", "v"]
    np.testing.assert_array_equal(other[["u", "v", "w"]], found.apply(table, by=labels))
    assert found.update(table, by=labels).samples == 120  # a list has no name, and is of the same column
    assert "rows by shop" in str(found)
    assert "by shop" in found._repr_html_()
    assert repr(found).endswith("120 samples, 5 groups>")


def test_rows_that_do_not_fit_their_labels_are_refused(rng):
    """As where the file of a table has changed between its two readings."""
    x, labels = make_rows(rng)
    tensor = Tensor(x, "x.csv", by=GroupingColumn("shop", labels[:-1].__iter__))
    with pytest.raises(DataError, match="x.csv"):
        by_column.gather_by_column(choose_subject(Request("zscore"), tensor), tensor, Effort())


def test_labels_that_come_one_by_one_are_all_kept(monkeypatch):
    monkeypatch.setattr(by_column, "_VALUES", 1)
    x = np.arange(40.0)[:, np.newaxis]
    labels = [f"{number % 20:02d}" for number in range(40)]
    assert fit(x, "zscore", by=labels).mean[:, 0].tolist() == [10.0 + number for number in range(20)]


def test_a_table_that_changes_between_its_two_readings_is_refused(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("shop,v\nA,1\nB,2\n")
    tensor = load_tensor(str(path), TableOptions(by="shop"))
    path.write_text("shop,v\nB,1\nA,2\n")
    with pytest.raises(DataError, match=r"s\.csv .*chang"):
        by_column.gather_by_column(choose_subject(Request("zscore"), tensor), tensor, Effort())


def test_what_rounding_has_cost_is_added_up(rng, monkeypatch):
    x, labels = make_rows(rng)
    stats = fit(x, "zscore", by=labels)._stats
    y = Tensor(x.astype("float32"), "y", by=GroupingColumn("by", labels.__iter__))
    found = []
    for values in (1 << 17, 3):
        monkeypatch.setattr(by_column, "_VALUES", values)
        use = Use(stats, dtype="float64")
        found.append(use_stats(use, use.plan("y", y.values), y, None, Effort(), inverts=True)[1])
    assert found[0] == found[1]
    assert found[0].count > 60


def test_rows_that_are_read_are_released(rng, monkeypatch):
    x, labels = make_rows(rng)
    released = []
    monkeypatch.setattr(by_column, "_VALUES", 30)
    monkeypatch.setattr(by_column, "forget", released.append)
    fit(x, "zscore", by=labels)
    assert len(released) == 6


def test_groups_of_an_array_in_blocks_are_refused():
    array = pytest.importorskip("dask.array")
    blocks = array.from_array(np.ones((4, 2)), chunks=2)
    with pytest.raises(UsageError, match="of one in blocks, leave it out"):
        fit(blocks, "zscore", by=["a", "a", "b", "b"])
    with pytest.raises(UsageError, match="of one in blocks, leave it out"):
        fit(np.ones((2, 2)), "zscore", by=["a", "b"]).apply(blocks, by=["a", "a", "b", "b"])


@pytest.mark.parametrize(
    "options",
    [
        {"like": "sklearn"},
        {"like": "keras"},
        {"like": "scipy"},
        {"ddof": 1},
        {"eps": 0.5},
        {"no_mean": True},
        {"no_scale": True},
    ],
    ids=str,
)
def test_conventions_hold_for_each_group_by_its_own_count(options):
    """scikit-learn counts a group as constant by its number of values."""
    x = np.array([[1.0], [1.0 + 2.0**-51], [5.0], [7.0], [11.0], [1.0], [1.0 + 2.0**-51], [3.0]])
    labels = ["flat", "flat", "b", "b", "b", "flat", "flat", "one"]
    found = fit(x, "zscore", by=labels, **options)
    y = found.apply(x, by=labels)
    for name in found.groups:
        rows = pick(labels, name)
        alone = fit(x[rows], "zscore", **options)
        assert y[rows].tobytes() == alone.apply(x[rows]).tobytes()
        assert found.invert(y, by=labels)[rows].tobytes() == alone.invert(y[rows]).tobytes()
