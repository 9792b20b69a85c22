"""`normcli fit`, `merge`, `apply` and `invert`, on files."""

from __future__ import annotations

import json
import os
import re

import numpy as np
import pytest

from normcli import normalize
from tests.conftest import require_refusal
from tests.marks import costly

LENGTHS = (3, 1, 4)


@pytest.fixture
def data(rng, here):
    """Files x0.npy to x2.npy in the working folder; returns all of their values."""
    parts = [(rng.standard_normal((n, 3, 5, 4)) * 3 + 1).astype("float32") for n in LENGTHS]
    for i, part in enumerate(parts):
        np.save(f"x{i}.npy", part)
    return np.concatenate(parts)


def read_means(ran):
    assert (ran.code, ran.err) == (0, "")
    return [float(line) for line in ran.lines]


def expect_means(x):
    return normalize(x, "bn", dtype="float64").mean.tolist()


def test_files_patterns_folders_and_lists_name_the_same_tensors(data, normcli, tmp_path):
    os.makedirs("folder/inner")
    for i in range(3):
        np.save(f"folder/x{i}.npy", np.load(f"x{i}.npy"))
    (tmp_path / "folder/notes.md").write_text("no tensor")
    (tmp_path / "list").write_text("x2.npy\n\nx0.npy\nx1.npy\n")
    (tmp_path / "nul").write_bytes(b"x2.npy\0x0.npy\0x1.npy\0")
    np.savez("some.npz", a=np.load("x0.npy"), b=np.load("x1.npy"))
    np.savez("more.npz", c=np.load("x2.npy"), d=np.zeros(3))
    expected = expect_means(data)
    for line in (
        *("x0.npy x1.npy x2.npy", "x?.npy", "x1.npy x[02].npy", "folder", "some.npz more.npz:c"),
        *("--files-from list", "--files-from nul"),
    ):
        assert read_means(normcli("fit", "bn", *line.split(), "--print", "mean")) == expected, line
    listed = normcli("fit", "bn", "--files-from", "-", "--print", "mean", stdin=b"x0.npy\nx1.npy\nx2.npy")
    assert read_means(listed) == expected


def test_json_csv_and_lines_say_the_same(data, normcli):
    ran = normcli("fit", "bn", "x?.npy", "-f", "json")
    stats = ran.json["stats"]
    assert ran.json["files"] == 3
    header, *rows = normcli("fit", "bn", "x?.npy", "-f", "csv").lines
    assert header.split(",") == ["c", *stats]
    assert [float(row.split(",")[1]) for row in rows] == stats["mean"]
    lines = [json.loads(line) for line in normcli("fit", "bn", "x?.npy", "-f", "jsonl").lines]
    assert [line["mean"] for line in lines] == stats["mean"]
    assert lines[1]["group"] == {"c": 1}


def test_emitted_code_normalizes_alike(data, normcli):
    expected = normalize(data, "bn", eps=0.0, dtype="float64").normalized
    code = normcli("fit", "bn", "x?.npy", "--emit", "torchvision").out
    line = next(line for line in code.splitlines() if line.startswith("transforms.Normalize"))
    given = eval(line, {"transforms": type("T", (), {"Normalize": dict})})
    mean, std = (np.array(given[name])[:, None, None] for name in ("mean", "std"))
    np.testing.assert_allclose((data - mean) / std, expected, rtol=1e-12)
    assert normcli("fit", "bn", "x?.npy", "--emit", "json").json["mean"] == mean.reshape(-1).tolist()


@costly
@pytest.mark.parametrize(
    "norm",
    [
        *("zscore", "bn --eps 0.5", "minmax", "minmax --range -1,1", "maxabs", "midrange"),
        *("robust", "robust --quantiles 10,90", "robust --no-mean", "robust --no-scale", "zscore --no-mean"),
    ],
)
@pytest.mark.slow
def test_emitted_scikit_learn_code_runs(norm, rng, normcli, tmp_path):
    pytest.importorskip("sklearn")
    x = rng.standard_normal((40, 3)) * [1, 10, 0] + 4
    np.save(tmp_path / "x.npy", x)
    namespace = {}
    name, *options = norm.split()
    exec(normcli("fit", name, tmp_path / "x.npy", *options, "--emit", "sklearn", "-q").out, namespace)
    normcli("fit", name, tmp_path / "x.npy", *options, "-o", tmp_path / "s.npz", "-q")
    normcli("apply", tmp_path / "s.npz", tmp_path / "x.npy", "-o", tmp_path / "y.npy", "-q")
    got = namespace["scaler"].transform(x)
    np.testing.assert_allclose(got, np.load(tmp_path / "y.npy"), rtol=1e-12, atol=1e-14)


@pytest.mark.peers
def test_emitted_keras_code_runs(data, normcli):
    keras = pytest.importorskip("keras")
    code = normcli("fit", "bn", "x?.npy", "--emit", "keras").out
    layer = eval(code.split("\n\n")[1], {"keras": keras})
    got = np.asarray(layer(data))
    np.testing.assert_allclose(got, normalize(data, "bn", eps=0.0).normalized, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_apply_and_invert_go_there_and_back(data, normcli):
    normcli("fit", "bn", "x?.npy", "-o", "stats.npz")
    assert normcli("apply", "stats.npz", "x?.npy", "-o", "y/", "-q").code == 0
    got = np.concatenate([np.load(f"y/x{i}.npy") for i in range(3)])
    np.testing.assert_array_equal(got, normalize(data, "bn").normalized, strict=True)
    ran = normcli("invert", "stats.npz", "y/x0.npy", "-o", "back.npy")
    assert (ran.code, ran.out) == (0, "")
    assert "may be more than 1 ulp" in ran.err
    np.testing.assert_allclose(np.load("back.npy"), np.load("x0.npy"), atol=2e-6)


@pytest.fixture
def bad(data, tmp_path):
    whole = (tmp_path / "x1.npy").read_bytes()
    (tmp_path / "x1.npy").write_bytes(whole[:-8])
    return data


def test_bad_files_can_be_left_out_and_are_listed(bad, normcli, tmp_path):
    np.save("x3.npy", np.zeros((2, 4), "float32"))
    ran = normcli("fit", "bn", "x?.npy", "x9.npy", "--skip-bad", "-o", "stats.npz", "--print", "mean")
    assert ran.code == 3
    assert [float(line) for line in ran.lines] == expect_means(np.concatenate([bad[:3], bad[4:]]))
    *left_out, said = ran.err.splitlines()
    assert [line.split()[3][:6] for line in left_out] == ["x1.npy", "x3.npy", "x9.npy"]
    assert said == "normcli: 3 files were left out; the statistics are of the others"
    assert (tmp_path / "stats.npz").exists()


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["fit", "bn"], 2, "fit needs files"),
        (["fit", "ln", "x0.npy"], 2, "ln has statistics of each sample (along n): there is nothing to fit"),
        (["fit", "lp", "x0.npy", "--p", "3", "--axes", "N"], 2, "lengths of p = 2 and inf, not of p = 3"),
        (["fit", "bn", "none*.npy"], 3, "none*.npy: no file fits the pattern"),
        (["fit", "bn", "x0.npy", "x0.npy:key"], 3, "holds one array and has no keys"),
        (["fit", "bn", "x0.npy", "-o", "s.npy"], 2, "--output s.npy has the suffix .npy; .npz is known"),
        (["fit", "bn", "x0.npy", "--print", "median"], 2, "there is no such field"),
        (["fit", "bn", "x0.npy", "--print", "mean", "--emit", "keras"], 2, "give one of them"),
        (["fit", "rms", "x0.npy", "--axes", "NHW", "--emit", "keras"], 2, "rms has none"),
        (["fit", "lp", "x0.npy", "--axes", "N", "--emit", "sklearn"], 2, "has no scaler for lp; it has zscore"),
        (["fit", "bn", "x0.npy", "--keep", "HW", "--emit", "torchvision"], 2, "one mean a channel"),
        (["merge"], 2, "merge needs stats files"),
        (["merge", "x0.npy"], 3, "x0.npy is no stats file of normcli: it is no .npz"),
        (["merge", "no.npz"], 3, "there is no such file"),
        (["apply", "s.npz"], 2, "give a stats file and the files"),
        (["apply", "s.npz", "x0.npy"], 2, "say where it goes"),
        (["apply", "s.npz", "x0.npy", "-o", "y.npy", "-f", "json"], 2, "--format is of standard output: -o -"),
        (["apply", "s.npz", "x0.npy", "x1.npy", "-o", "y.npy"], 2, "2 results need a folder: -o y.npy/"),
        (["apply", "s.npz", "x0.npy", "x1.npy", "-o", "-"], 2, "2 results need a folder: -o FOLDER/"),
        (["apply", "s.npz", "x0.npy", "x0.npy", "-o", "y/"], 2, "two of the files"),
        (["apply", "s.npz", "x0.npy", "-o", "y.npy"], 3, "s.npz: there is no such file"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(arguments, code, told, data, normcli):
    require_refusal(normcli(*arguments), code, told)


def test_quiet_prints_no_table_beside_a_stats_file(data, normcli):
    fit = ("fit", "bn", "x0.npy", "-q")
    assert (normcli(*fit, "-o", "s.npz").out, normcli("merge", "s.npz", "-o", "m.npz", "-q").out) == ("", "")
    assert normcli(*fit).out == normcli("fit", "bn", "x0.npy", "-o", "s.npz").out != ""
    for asked in (("-f", "json"), ("--print", "mean"), ("--emit", "json")):
        assert normcli(*fit, "-o", "s.npz", *asked).out == normcli(*fit, *asked).out != "", asked


@pytest.mark.parametrize("framework", ["sklearn", "torchvision", "keras"])
def test_emitted_code_needs_no_names_for_what_is_not_finite(framework, tmp_path, normcli):
    np.save(tmp_path / "x.npy", [[np.nan, 1.0], [2.0, np.inf]])
    code = normcli("fit", "zscore", tmp_path / "x.npy", "--emit", framework, "-q").out
    lists = re.findall(r"\[[^]]*\]", code)
    assert lists
    for text in lists:
        assert "nan" in text
        assert len(eval(text)) == 2


@pytest.mark.slow
def test_merge_takes_patterns_and_folders(normcli, here):
    np.save("a.npy", [[1.0], [3.0]])
    (here / "kept").mkdir()
    for name in "ab":
        normcli("fit", "zscore", "a.npy", "-o", f"kept/{name}.npz")
    for asked in ("kept/*.npz", "kept"):
        ran = normcli("merge", asked, "--print", "count")
        said = "normcli: kept/b.npz: it is a copy of kept/a.npz, and counts beside it\n"
        assert (ran.lines, ran.err) == (["4"], said)


def test_of_many_notes_on_files_the_first_are_written_and_a_remedy(normcli, here):
    for number in range(5):
        (here / f"t{number}.csv").write_text("a,b\n9007199254740993,1.5\n2,3\n")
    ran = normcli("fit", "zscore", "t*.csv")
    assert ran.err.count("rounded to float64") == 3
    assert "read exactly where all --columns hold whole numbers, none missing" in ran.err
    assert ran.err.splitlines()[-1] == "normcli: fit: 2 more such notes, each of a file"


def test_statistics_that_are_nan_are_told_where_they_are_used(normcli, tmp_path):
    x = np.array([[1.0, 2.0], [3.0, np.nan], [4.0, 6.0]])
    np.save(tmp_path / "x.npy", x)
    for rule, said in (("omit", ""), ("propagate", "c=1: the statistics are NaN, and so is all")):
        stats, y = tmp_path / f"{rule}.npz", tmp_path / "y.npy"
        normcli("fit", "zscore", tmp_path / "x.npy", "--nan", rule, "-o", stats, "-q")
        applied = normcli("apply", stats, tmp_path / "x.npy", "-o", y)
        assert (said in applied.err, applied.err.count("\n")) == (True, bool(said))
        assert np.isnan(np.load(y)[:, 1]).sum() == (3 if said else 1)


@pytest.fixture
def shops(here):
    """Tables of two shops: the fitted one, and others."""
    (here / "s.csv").write_text('shop,price,qty\nA,1,2\n"B, C",5,4\nA,3,2\n"B, C",9,8\n')
    (here / "new.csv").write_text('qty,shop,day,price\n4,A,mon,2\n6,"B, C",tue,11\n')
    (here / "third.csv").write_text("shop,price,qty\nA,1,2\nD,5,4\n")
    (here / "none.csv").write_text("price,qty\n1,2\n")


@pytest.mark.slow
@pytest.mark.usefixtures("shops")
def test_rows_of_another_table_are_normalized_by_their_groups_and_back(normcli, tmp_path):
    assert normcli("fit", "zscore", "-i", "s.csv", "--by", "shop", "-o", "st.npz", "-q").code == 0
    assert normcli("apply", "st.npz", "new.csv", "-o", "y.csv").code == 0
    assert (tmp_path / "y.csv").read_text() == 'qty,shop,day,price\n2.0,A,mon,0.0\n0.0,"B, C",tue,2.0\n'
    assert normcli("invert", "st.npz", "y.csv", "-o", "x.csv").code == 0
    assert (tmp_path / "x.csv").read_text() == 'qty,shop,day,price\n4.0,A,mon,2.0\n6.0,"B, C",tue,11.0\n'
    piped = normcli("apply", "st.npz", "-", "-o", "-", stdin=(tmp_path / "new.csv").read_bytes())
    assert piped.out == (tmp_path / "y.csv").read_text()
    alone = normcli("apply", "st.npz", "new.csv", "--columns", "price", "-o", "-")
    assert alone.out == 'qty,shop,day,price\n4,A,mon,0.0\n6,"B, C",tue,2.0\n'


@pytest.mark.usefixtures("shops")
def test_a_row_of_a_group_that_was_never_seen_is_one_error_and_nothing_is_written(normcli, tmp_path):
    normcli("fit", "zscore", "s.csv", "--by", "shop", "-o", "st.npz", "-q")
    for files in (["third.csv"], ["s.csv", "third.csv"]):
        ran = normcli("apply", "st.npz", *files, "-o", "out/")
        assert (ran.code, ran.out) == (3, "")
        told = "third.csv, row 2: there are no statistics of the group 'D' of shop; fit it too, or leave its rows out"
        assert ran.err == f"normcli: {told}\n"
        assert not [*tmp_path.glob("out/*")]
    (tmp_path / "third.csv").write_text("shop,price,qty\nE,1,2\nF,1,2\nA,1,2\nG,3,4\nE,5,6\n")
    told = "of the group 'E' of shop, nor of 2 more; fit them too, or leave their rows out"
    assert told in normcli("apply", "st.npz", "third.csv", "-o", "out.csv").err


@pytest.mark.usefixtures("shops")
def test_statistics_of_groups_are_printed_and_merged(normcli, tmp_path):
    rows = (tmp_path / "s.csv").read_text().splitlines(keepends=True)
    for name, part in (("a", rows[1:3]), ("b", rows[3:])):
        (tmp_path / f"{name}.csv").write_text(rows[0] + "".join(part))
        normcli("fit", "zscore", f"{name}.csv", "--by", "shop", "-o", f"{name}.npz", "-q")
    for number in (1, 2):
        normcli("fit", "zscore", "s.csv", "--by", "shop", "--shard", f"{number}/2", "-o", f"{number}.npz", "-q")
    calls = [
        *("fit zscore s.csv --by shop", "fit zscore b.csv a.csv --by shop"),
        *("merge b.npz a.npz", "merge 1.npz 2.npz"),
    ]
    printed = [normcli(*call.split(), "-f", "csv", "-q").out for call in calls]
    assert printed[0].splitlines()[:2] == [
        "shop,column,mean,var,std,rstd,var1,std1,min,max,count,nan_count",
        f"A,price,2.0,1.0,1.0,1.0,2.0,{2**0.5},1.0,3.0,2,0",
    ]
    assert {*printed} == {printed[0]}
    groups = normcli("fit", "zscore", "a.csv", "--by", "shop", "-f", "json", "-q").json["groups"]
    told = [(group["group"], group["count"], group["var1"]) for group in groups[::2]]
    assert told == [("A", 1, "nan"), ("B, C", 1, "nan")]
    assert normcli("merge", "a.npz", "b.npz", "--print", "mean").lines == ["2.0", "2.0", "7.0", "6.0"]
    table = normcli("fit", "zscore", "s.csv", "--by", "shop")
    assert "rows by shop   2 groups" in table.out
    assert table.err == "normcli: zscore: shop=A qty: constant\n"


@pytest.mark.parametrize("suffix", ["jsonl", "json", "parquet"])
def test_groups_of_one_table_are_those_of_another_format(suffix, normcli, tmp_path):
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"shop": [3, None, 3, 4], "v": [1.0, 5.0, 3.0, 7.0]}).astype({"shop": "Int64"})
    table.to_csv(tmp_path / "t.csv", index=False)
    if suffix == "parquet":
        table.to_parquet(tmp_path / "t.parquet")
    else:
        table.to_json(tmp_path / f"t.{suffix}", orient="records", lines=suffix == "jsonl")
    first, other = (
        normcli("fit", "zscore", tmp_path / f"t.{each}", "--by", "shop", "-f", "csv", "-q").lines
        for each in ("csv", suffix)
    )
    assert [line.split(",")[0] for line in first] == ["shop", "", "3", "4"]
    assert first == other


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["fit", "zscore", "s.csv", "--by", "town"], 3, "s.csv has no column 'town' to group its rows by; it has shop, price"),
        (["fit", "zscore", "half.jsonl", "--by", "shop"], 3, "half.jsonl holds half a surrogate pair"),
        (["fit", "zscore", "x.npy", "--by", "shop"], 3, "--by is of tables; x.npy is none"),
        (["fit", "zscore", "none.csv", "--header", "no", "--by", "shop"], 3, "it has no names of columns"),
        (["fit", "zscore", "s.csv", "--by", "0,shop"], 3, "--by names the column '0' of s.csv twice"),
        (["fit", "zscore", "s.csv", "--by", "shop", "--axes", "0"], 2, "--axes goes with no --by"),
        (["fit", "zscore", "s.csv", "--by", "shop", "--workers", "2"], 2, "--workers goes with no --by"),
        (["fit", "zscore", "s.csv", "--by", "shop", "--emit", "sklearn"], 2, "one for each shop: fit without --by, or keep them by -o STATS.npz"),
        (["fit", "zscore", "s.csv", "--by", "shop", "--print", "median"], 2, "there is no such field"),
        (["fit", "bn", "s.csv", "--by", "shop"], 2, "No such option '--by'"),
        (["apply", "st.npz", "none.csv", "-o", "y.csv"], 2, "none.csv has no column 'shop' to group its rows by"),
        (["apply", "st.npz", "s.csv", "-o", "y.csv", "--workers", "2"], 2, "leave out --scheduler and --workers"),
        (["merge", "st.npz", "plain.npz"], 3, "differ in the column that groups rows: none and shop"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("shops")
def test_what_is_wrong_with_groups_is_said_in_a_line(arguments, code, told, normcli, tmp_path):
    np.save(tmp_path / "x.npy", np.ones((2, 2)))
    (tmp_path / "half.jsonl").write_text('{"shop": "\\ud800", "v": 1}\n')
    normcli("fit", "zscore", "s.csv", "--by", "shop", "-o", "st.npz", "-q")
    normcli("fit", "zscore", "s.csv", "--exclude", "shop", "-o", "plain.npz", "-q")
    require_refusal(normcli(*arguments), code, told)
    assert not (tmp_path / "y.csv").exists()


@pytest.mark.usefixtures("shops")
def test_names_of_groups_stay_as_they_are_in_other_languages(normcli, tmp_path):
    (tmp_path / "w.csv").write_text("mean,std\nmean,1\nmean,3\n")
    ran = normcli("fit", "zscore", "s.csv", "--by", "shop", "--lang", "zh", "-q")
    assert "B, C   price " in ran.out
    assert re.search(r"^shop +列 +均值 +方差 +标准差 +rstd .* NaN$", ran.out, re.MULTILINE)
    for verb in (["fit", "zscore"], ["zscore"]):
        ran = normcli(*verb, "w.csv", "--by", "mean", "--lang", "zh", "-q")
        assert any(line.startswith("mean   std ") for line in ran.lines)


@pytest.mark.usefixtures("shops")
def test_the_memory_of_a_result_in_a_file_is_released_as_it_is_written(normcli, tmp_path, monkeypatch):
    """So that it does not grow with the number of rows: a result of 8 MiB and more goes to a temporary file."""
    from normcli.fitting import use
    from normcli.tensors import spool

    forgotten = []
    monkeypatch.setattr(spool, "SMALLEST_SCRATCH", 1)
    monkeypatch.setattr(use, "forget", lambda values: forgotten.append(isinstance(values, np.memmap)))
    normcli("fit", "zscore", "s.csv", "--by", "shop", "-o", "st.npz", "-q")
    normcli("apply", "st.npz", "s.csv", "-o", "y.csv")
    assert (tmp_path / "y.csv").read_text().startswith('shop,price,qty\nA,-1.0,0.0\n"B, C",-1.0,-1.0\n')
    assert forgotten == [True]
