"""Rows grouped by a column: statistics of each group, exact, from any parts, and their use."""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import pytest

from normcli import NormError, fit, load, merge, normalize, normalize_by
from normcli.engine.walk import Effort
from normcli.errors import DataError, UsageError
from normcli.fitting import by_column
from normcli.fitting.fit import Policy
from normcli.fitting.fit import fit as fit_files
from normcli.fitting.statistics import round_stats
from normcli.fitting.stats_file import read_stats
from normcli.fitting.subject import choose_subject
from normcli.norms.request import Request
from normcli.tensors.files import load as load_tensor
from normcli.tensors.many import name_tensors
from normcli.tensors.tables.table_options import TableOptions
from normcli.tensors.tensor import GroupingColumns, Tensor

NORMS = ["zscore", "minmax", "maxabs", "midrange", "robust"]


def make_rows(rng, dtype="float64", rows=60, columns=3):
    """Return a table of values of many magnitudes, and the group of each row; one group has a single row."""
    x = (rng.standard_normal((rows, columns)) * 10.0 ** rng.integers(-6, 7, (rows, columns))).astype(dtype)
    return x, ["z", *(str(label) for label in rng.choice(["b", "a", "éa", ""], rows - 1))]


def pick(labels, name):
    return [row for row, label in enumerate(labels) if label == name]


@pytest.mark.slow
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


def test_a_stats_file_of_groups_is_of_a_version_of_its_own(rng, tmp_path):
    """Versions that know of no groups refuse it by its schema, and its other members are those of all files."""
    x, labels = make_rows(rng)
    fit(x, "zscore", by=labels).save(tmp_path / "grouped.npz")
    fit(x, "zscore").save(tmp_path / "plain.npz")
    with np.load(tmp_path / "grouped.npz") as grouped, np.load(tmp_path / "plain.npz") as plain:
        assert (str(grouped["schema"]), str(plain["schema"])) == ("normcli-stats/2", "normcli-stats/1")
        assert {*grouped} - {*plain} == {"by", "by_values", "by_missing"}
        assert grouped["by_values"].tolist() == sorted({*labels})
        assert grouped["mean"].shape == (len({*labels}), 3)


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("change", "told"),
    [
        pytest.param({"by_values": ["b", "a"]}, "by_values is no sorted list", id="order"),
        pytest.param({"by_values": np.array([], "<U1")}, "by_values is no sorted list", id="none"),
        pytest.param({"by_values": "a"}, r"by_values has the shape \(\)", id="no list"),
        pytest.param({"by_values": ["a", "b", "c"]}, r"has the shape", id="more"),
        pytest.param({"by": 3}, "by is int64, and no text", id="by"),
        pytest.param({"samples": 5}, "count is 4, with the other counts, and a group has 5", id="samples"),
        pytest.param(
            {"shape": [0, 1, 1], "layout": ""}, "--by groups the rows of a table of two axes", id="axes"
        ),
        pytest.param({"norm": "robust"}, "quantile_values is missing", id="quantiles"),
        pytest.param({"by": ["p", "q"]}, r"by_values has the shape \(2,\), not \(2, 2\)", id="two columns"),
        pytest.param({"by": np.array([], "<U1")}, "by_values has the shape", id="no column"),
        pytest.param({"by_missing": [0, 2]}, "by_missing is 2, not from 0 to 1", id="missing"),
    ],
)
def test_a_damaged_file_of_groups_is_refused(change, told, tmp_path):
    fit([[1.0], [2.0], [4.0], [3.0]], "zscore", by=["a", "b", "b", "a"]).save(tmp_path / "s.npz")
    with np.load(tmp_path / "s.npz") as archive:
        members = dict(archive)
    np.savez(tmp_path / "s.npz", **members | {name: np.array(values) for name, values in change.items()})
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
        pytest.param(lambda s: fit([[1.0]], "zscore", by=[("a", "b"), "a"][:1]) | s, DataError, "rows: by and by, by", id="two"),
        pytest.param(lambda s: s.apply([[1.0]], by=[("a", "b")]), DataError, "by 1 column, not by 2", id="more names"),
        pytest.param(lambda s: fit([[1.0], [2.0]], "zscore", by=["a", ("a", "b")]), DataError, "has 1 names, of another 2", id="ragged"),
        pytest.param(lambda s: fit([1.0], "zscore", by=["a"]), UsageError, "a table of two axes", id="one axis"),
        pytest.param(lambda s: fit([[1.0]], "zscore", axes=(0, 1), by=["a"]), UsageError, "the first alone", id="axes"),
        pytest.param(lambda s: fit([[1.0]], "zscore", like="tensorflow", axes=0, by=["a"]), UsageError, "give --eps", id="eps"),
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


def test_columns_go_by_their_names_and_so_does_a_column_of_groups(rng):
    pandas = pytest.importorskip("pandas")
    x, labels = make_rows(rng)
    table = pandas.DataFrame(x, columns=["u", "v", "w"])
    found = fit(table, "zscore", by=pandas.Series(labels, name="shop"))
    other = found.apply(table[["w", "u", "v"]], by=labels)
    assert list(other.columns) == ["w", "u", "v"]
    np.testing.assert_array_equal(other[["u", "v", "w"]], found.apply(table, by=labels))
    assert found.update(table, by=labels).samples == 120  # a list has no name, and is of the same column
    assert "by shop" in found._repr_html_()
    assert repr(found).endswith("120 samples, 5 groups>")


def test_rows_that_do_not_fit_their_labels_are_refused(rng):
    """As where the file of a table has changed between its two readings."""
    x, labels = make_rows(rng)
    tensor = Tensor(x, "x.csv", by=GroupingColumns(("shop",), lambda: zip(labels[:-1], strict=True)))
    with pytest.raises(DataError, match="x.csv"):
        by_column.gather_by_column(choose_subject(Request("zscore"), tensor), tensor, Effort())


def test_a_table_that_changes_between_its_two_readings_is_refused(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("shop,v\nA,1\nB,2\n")
    tensor = load_tensor(str(path), TableOptions(by="shop"))
    path.write_text("shop,v\nB,1\nA,2\n")
    with pytest.raises(DataError, match=r"s\.csv .*chang"):
        by_column.gather_by_column(choose_subject(Request("zscore"), tensor), tensor, Effort())


def test_groups_of_an_array_in_blocks_are_refused():
    blocks = pytest.importorskip("dask.array").from_array(np.ones((4, 2)), chunks=2)
    for use in (partial(fit, norm="zscore"), fit(np.ones((2, 2)), "zscore", by=["a", "b"]).apply):
        with pytest.raises(UsageError, match="of one in blocks, leave it out"):
            use(blocks, by=["a", "a", "b", "b"])


@pytest.mark.parametrize(
    "options",
    [{"like": "sklearn"}, {"like": "keras"}, {"like": "scipy"}, {"ddof": 1}, {"eps": 0.5}, {"no_mean": True},
     {"no_scale": True}, {"norm": "minmax", "range": (-1.0, 1.0)}],
    ids=str,
)  # fmt: skip
def test_conventions_hold_for_each_group_by_its_own_count(options):
    """scikit-learn counts a group as constant by its number of values."""
    x = np.array([[1.0], [1.0 + 2.0**-51], [5.0], [7.0], [11.0], [1.0], [1.0 + 2.0**-51], [3.0]])
    labels = ["flat", "flat", "b", "b", "b", "flat", "flat", "one"]
    options = {"norm": "zscore"} | options
    found = fit(x, by=labels, **options)
    y = found.apply(x, by=labels)
    for name in found.groups:
        rows = pick(labels, name)
        alone = fit(x[rows], **options)
        assert y[rows].tobytes() == alone.apply(x[rows]).tobytes()
        assert found.invert(y, by=labels)[rows].tobytes() == alone.invert(y[rows]).tobytes()


def test_a_robust_scaling_of_groups_in_several_tables_is_that_of_each_group(rng, tmp_path, monkeypatch):
    monkeypatch.setattr(by_column, "_VALUES", 21)
    x, labels = make_rows(rng)
    x[5] = np.nan
    for nan in ("propagate", "omit"):
        found = fit(x, "robust", by=labels, nan=nan)
        for row, name in enumerate(found.groups):
            alone = fit(x[pick(labels, name)], "robust", nan=nan)
            for statistic in ("median", "q1", "q3", "iqr", "count"):
                np.testing.assert_array_equal(getattr(found, statistic)[row], getattr(alone, statistic))
        found.save(tmp_path / "robust.npz")
        assert load(tmp_path / "robust.npz") == found
    for name, rows in (("a", slice(0, 20)), ("b", slice(20, 60))):
        lines = (f"{label},{value!r}" for label, value in zip(labels[rows], x[rows, 0].tolist(), strict=True))
        (tmp_path / f"{name}.csv").write_text("shop,v\n" + "\n".join(lines) + "\n")
    sources = [*name_tensors([str(tmp_path / f"{name}.csv") for name in "ab"], TableOptions(by="shop"))]
    stats = fit_files(Request("robust"), sources, Policy("omit"), Effort()).stats
    np.testing.assert_array_equal(round_stats(stats).fields["median"][:, 0], found.median[:, 0])


def test_statistics_of_several_columns_are_kept_and_merged(rng, tmp_path):
    x = rng.standard_normal((6, 1))
    labels = [("a", 1), ("a", None), ("", 2), (None, 2.0), ("a", 1.0), ("a", 10)]
    found = fit(x, "zscore", by=labels)
    assert found.groups == ((None, "2"), ("", "2"), ("a", None), ("a", "1"), ("a", "10"))
    found.save(tmp_path / "two.npz")
    kept = load(tmp_path / "two.npz")
    assert kept == found == merge(fit(x[:2], "zscore", by=labels[:2]), fit(x[2:], "zscore", by=labels[2:]))
    np.testing.assert_array_equal(kept.apply(x, by=labels), found.apply(x, by=labels))
    assert kept.warnings[0] == "rows whose group has no name make one group"


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet", "python"])
def test_numbers_are_compared_as_numbers_and_texts_as_texts(kind, tmp_path):
    """As texts of a typed column 1 and 1.0 are two, and in CSV one; 7 and 007 are two; nothing is no empty text."""
    untyped = kind in ("csv", "tsv")
    hashes = [*(["100"] if untyped else ["1e+2"]), "0e1", "0e2", "120000", "12e4"]
    for cells, expected in (
        ([1, 1.0, 0.0, -0.0, 2.5, None, float("nan")], [None, "0", "1", "2.5"]),
        ([10**18, 10**18 + 1], ["1" + "0" * 18, "1" + "0" * 17 + "1"]),
        (["1", "1.0", "x", "nan"], [None, "1", "x"] if untyped else ["1", "1.0", "nan", "x"]),
        (["12e4", "120000", "0e1", "0e2", "1e+2"], hashes),
        (["007", "7"], ["007", "7"]),
        (["a", None, "", "a"], [None, "a"] if untyped else [None, "", "a"]),
    ):
        if kind == "python":
            found = fit(np.arange(float(len(cells)))[:, np.newaxis], "zscore", by=cells).groups
        else:
            path = tmp_path / f"t.{kind}"
            write_table(path, cells)
            tensor = load_tensor(str(path), TableOptions(by="g", columns="v"))
            found = [label[0] for label in by_column.find_groups(tensor).labels]
        assert sorted(found, key=str) == sorted(expected, key=str)


def write_table(path, cells):
    """Write the column of groups g, and a column of numbers v."""
    if path.suffix == ".parquet":
        pandas = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        pandas.DataFrame({"g": cells, "v": range(len(cells))}).to_parquet(path)
    elif path.suffix == ".jsonl":
        lines = (json.dumps({"g": cell, "v": row}).replace("NaN", "null") for row, cell in enumerate(cells))
        path.write_text("\n".join(lines) + "\n")
    else:
        between = "," if path.suffix == ".csv" else "\t"
        texts = ("" if cell is None else str(cell) for cell in cells)
        path.write_text(f"g{between}v\n" + "".join(f"{text}{between}{row}\n" for row, text in enumerate(texts)))


@pytest.mark.parametrize(
    ("old", "cells", "expected"),
    [
        (["", "1.0", "10.0", "2.0"], [None, 1, 10.0, 2], (None, "1.0", "2.0", "10.0")),
        (["", "1", "1.0", "x"], [None, "1", "1.0", "x"], (None, "1", "1.0", "x")),
        (["0", "1", "1.0", "2"], ["0", "1", "1.0", "2"], ("0", "1", "1.0", "2")),
    ],
    ids=["numbers", "texts", "both"],
)
def test_a_file_of_old_names_of_numbers_is_read_and_used(old, cells, expected, tmp_path):
    """Earlier versions kept them in the order of their text, each spelling for itself, and "" for what is missing."""
    fit(np.arange(8.0)[:, np.newaxis], "zscore", by=[*"abcd", *"abcd"]).save(tmp_path / "s.npz")
    with np.load(tmp_path / "s.npz") as archive:
        members = dict(archive)
    np.savez(tmp_path / "s.npz", **members | {"by_values": np.array(old)})
    kept = load(tmp_path / "s.npz")
    assert kept.groups == expected
    means = dict(zip(old, [2.0, 3.0, 4.0, 5.0], strict=True))
    np.testing.assert_array_equal(kept.mean[:, 0], [means[name or ""] for name in expected])
    y = kept.apply(np.zeros((4, 1)), by=cells)
    np.testing.assert_array_equal(y[:, 0], [-mean / 2.0 for mean in means.values()])


@pytest.mark.parametrize("norm", ["zscore", "robust"])
def test_the_groups_of_a_table_do_not_depend_on_its_split_into_files(norm, tmp_path, monkeypatch, normcli):
    """Whatever else a file holds, 1.0 and +1.00 are group 1, as in Python; so it is for shards and merged files."""
    monkeypatch.chdir(tmp_path)
    names = [
        "1.0",
        "+1.00",
        "abc",
        "nan",
        "1",
        "",
        "007",
        "-0.0",
        "7",
        "0",
        "NA",
        "1e-1",
        "abc",
        "007",
        "",
        "7",
        ".10",
        "NA",
    ]
    values = [10, 30, 1, 2, 200, 6, 5, 6, 9, 2, 4, 8, 3, 7, 7, 5, 2, 8]
    rows = [f"{name},{value}" for name, value in zip(names, values, strict=True)]
    parts = {"all": slice(None), "a": slice(3), "b": slice(3, 5), "c": slice(5, 12), "d": slice(12, None)}
    for name, part in parts.items():
        (tmp_path / f"{name}.csv").write_text("\n".join(["g,x", *rows[part]]) + "\n")

    def run(*words):
        ran = normcli(*words, "-q")
        assert ran.code == 0
        return ran.lines[1:]

    whole = run(norm, "all.csv", "--by", "g", "-o", "-")
    run("fit", norm, "all.csv", "--by", "g", "-o", "all.npz")
    found = load("all.npz")
    assert found.groups == (None, "0", "0.1", "1", "007", "7", "NA", "abc")
    for order in ("abcd", "dbca"):
        run("fit", norm, *(f"{name}.csv" for name in order), "--by", "g", "-o", "s.npz")
        other = load("s.npz")
        assert (other.groups, str(other.count)) == (found.groups, str(found.count))
        for name, part in parts.items():
            assert run("apply", "s.npz", f"{name}.csv", "-o", "-") == whole[part]
    typed = {"nan": None, "": None, "007": "007", "NA": "NA", "abc": "abc"}
    cells = [typed[name] if name in typed else float(name) for name in names]
    y = normalize_by(np.array(values), cells, norm).normalized
    assert [repr(value) for value in y.tolist()] == [line.rpartition(",")[2] for line in whole]
    if norm == "zscore":
        for name in "abcd":
            run("fit", norm, f"{name}.csv", "--by", "g", "-o", f"{name}.npz")
        for part in "123":
            run("fit", norm, "all.csv", "--by", "g", "--shard", f"{part}/3", "-o", f"{part}.npz")
        for pieces in ("abcd", "dcba", "123"):
            run("merge", *(f"{piece}.npz" for piece in pieces), "-o", "merged.npz")
            merged = load("merged.npz")
            assert (merged.groups, merged.std.tobytes()) == (found.groups, found.std.tobytes())
