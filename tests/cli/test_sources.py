"""The spellings of a tensor on a command line."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import NORMS, normalize
from normcli.norms.table import find_norm
from tests.conftest import require_refusal

X = np.array([[1.0, 2.0, 6.0], [4.0, 0.0, 3.0]])


@pytest.fixture
def here(here):
    np.save("x.npy", X)
    np.save("y.npy", normalize(X, "ln").normalized)
    return here


@pytest.mark.all_quick
@pytest.mark.parametrize(
    "line",
    [
        *("ln x.npy --print y", "explain ln x.npy", "draw ln x.npy", "restore bn x.npy", "fit zscore x.npy"),
        *("check ln x.npy --actual y.npy", "identify x.npy --actual y.npy", "compare ln x.npy bn"),
    ],
)
def test_a_file_is_named_alone_or_behind_i(line, here, normcli):
    alone, behind = (normcli(*words.split()) for words in (line, line.replace("x.npy", "-i x.npy")))
    assert (alone.err, alone.code) == ("", 0)
    assert alone.raw == behind.raw != b""


@pytest.mark.slow
def test_stats_files_are_named_either_way(here, normcli):
    normcli("fit", "zscore", "x.npy", "-o", "s.npz")
    assert normcli("merge", "s.npz").raw == normcli("merge", "-i", "s.npz").raw
    assert normcli("apply", "s.npz", "x.npy", "-o", "a.npy").code == 0
    assert normcli("apply", "s.npz", "-i", "x.npy", "-o", "b.npy").code == 0
    assert (here / "a.npy").read_bytes() == (here / "b.npy").read_bytes()


@pytest.mark.parametrize("verb", ["apply", "invert"])
def test_stats_and_file_exchanged_are_told_so(verb, here, normcli):
    normcli("fit", "zscore", "x.npy", "-o", "s.npz")
    ran = normcli(verb, "x.npy", "s.npz", "-o", "a.npy")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "normcli: x.npy is no stats file, and s.npz is one: it comes first\n"


@pytest.mark.parametrize("text", ["1,2,6", "[1,2,6]", " 1, 2, 6 "])
def test_data_need_no_brackets_around_one_list(text, normcli):
    ran = normcli("ln", "--data", text, "--print", "shape,mean")
    assert ran.err == ""
    assert ran.out == "3\t3.0\n"


@pytest.mark.parametrize(("suffix", "begins"), [(".svg", b"<svg"), (".png", b"\x89PNG")])
def test_a_picture_is_an_output_like_others(suffix, begins, here, normcli):
    ran = normcli("bn", "--shape", "2,3", "-o", f"a{suffix}")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert normcli("draw", "bn", "--shape", "2,3", "-o", f"b{suffix}").code == 0
    assert begins in (here / f"a{suffix}").read_bytes()[:64]
    assert (here / f"a{suffix}").read_bytes() == (here / f"b{suffix}").read_bytes()


CLASSES = {
    "bn": "BatchNorm1d BatchNorm2d BatchNorm3d BatchNormalization",
    "in": "InstanceNorm1d InstanceNorm2d InstanceNorm3d InstanceNormalization",
    "ln": "LayerNorm LayerNormalization",
    "gn": "GroupNorm GroupNormalization",
    "rms": "RMSNorm RMSNormalization",
    "lp": "LpNormalization",
    "lrn": "LocalResponseNorm",
    "mvn": "MeanVarianceNormalization",
    "zscore": "StandardScaler",
    "robust": "RobustScaler",
}


@pytest.mark.parametrize("norm", CLASSES)
def test_the_names_of_frameworks_classes_are_aliases(norm):
    assert {find_norm(name)[0] for name in CLASSES[norm].split()} == {NORMS[norm]}


@pytest.mark.parametrize("line", [["help", "hlp"], ["explain", "help"], ["help"]])
def test_nobody_who_asks_for_help_is_offered_lp(line, normcli):
    ran = normcli(*line)
    assert "mean lp" not in ran.err + ran.out
    assert "or lp" not in ran.err + ran.out


ROWS = "[[1,5],[3,5],[5,6]]"


def test_a_range_is_a_gamma_and_a_beta(here, normcli):
    ranged = normcli("minmax", "--data", ROWS, "--range", "-1,1", "--print", "y")
    assert ranged.out == normcli("minmax", "--data", ROWS, "--gamma", "2", "--beta", "-1", "--print", "y").out
    assert ranged.lines == ["-1.0", "-1.0", "0.0", "-1.0", "1.0", "1.0"]
    normcli("generate", "--shape", "6,2", "-o", "t.npy")
    normcli("fit", "minmax", "t.npy", "-o", "s.npz")
    assert normcli("apply", "s.npz", "t.npy", "--range", "-1,1", "-o", "u.npy").code == 0
    assert (np.load("u.npy").min(), np.load("u.npy").max()) == (-1.0, 1.0)
    assert normcli("check", "minmax", "t.npy", "--range", "-1,1", "--actual", "u.npy").code == 0
    assert normcli("invert", "s.npz", "u.npy", "--range", "-1,1", "-o", "v.npy").code == 0
    np.testing.assert_allclose(np.load("v.npy"), np.load("t.npy"), atol=1e-12)


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("minmax --range 1,-1", "range 1,-1 is not a lower and a higher bound, such as -1,1"),
        ("minmax --range=-1e308,1e308", "whose difference float64 holds"),
        ("restore minmax --range=-1,1", "No such option '--range'"),
        ("minmax --range 1", "range takes two numbers, not '1'"),
    ],
)
def test_what_is_no_range(line, message, normcli):
    require_refusal(normcli(*line.split(), "--data", ROWS), 2, message)


def test_a_range_is_of_statistics_of_minmax(here, normcli):
    normcli("fit", "zscore", "x.npy", "-o", "s.npz")
    ran = normcli("apply", "s.npz", "x.npy", "--range", "0,1", "-o", "y.npy")
    assert (ran.code, ran.err) == (2, "normcli: --range is of minima and maxima; s.npz holds others\n")


@pytest.fixture
def tables(here):
    (here / "t.csv").write_text("a,b,g\n1,2,p\n3,4,q\n5,7,p\n8,9,q\n")
    (here / "dup.csv").write_text("x,x,g\n1,2,a\n3,4,b\n5,7,a\n8,8,b\n")
    return here


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("zscore -i t.csv:a --columns b --print mean", "t.csv:a names the columns; leave out --columns"),
        ("fit zscore t.csv:a --columns b", "t.csv:a names the columns; leave out --columns"),
        ("zscore -i t.csv:1-9", "t.csv:1-9: t.csv has the columns 0 to 2, not 1-9"),
        (
            "zscore -i dup.csv --by x --exclude g -o -",
            "dup.csv has 2 columns called 'x': rename them, or group rows by the number of one: 0, 1",
        ),
        ("zscore -i dup.csv:x", "dup.csv has 2 columns called 'x': rename them, or give the number of one: 0, 1"),
        ("generate --shape 2,3 -f npy -o z.csv", "--format is of standard output: -o -; a file's name says its format"),
        ("ln -i x.npy --follow-links", "--follow-links is of Zarr stores and HDF5 files; none is read"),
        ("ln --data [[1,2]] --fill-missing", "--fill-missing is of Zarr stores and HDF5 files; none is read"),
    ],
)  # fmt: skip
def test_an_option_that_would_be_ignored_is_refused_by_what_was_given(line, message, tables, normcli):
    ran = normcli(*line.split())
    assert (ran.code, ran.out, ran.err) == (2, "", f"normcli: {message}\n")
    assert not (tables / "z.csv").exists()


@pytest.mark.usefixtures("tables")
def test_a_column_of_the_other_file_is_named_beside_columns(normcli):
    ran = normcli(*["check", "zscore", "-i", "t.csv", "--columns", "a", "--actual", "t.csv:a"])
    assert (ran.code, ran.err) == (1, "")


@pytest.mark.usefixtures("tables")
def test_a_column_may_be_grouped_by_its_number_where_names_are_equal(normcli):
    ran = normcli(*["zscore", "-i", "dup.csv", "--by", "2", "--columns", "1", "-o", "-"])
    assert (ran.code, ran.out) == (0, "x,x,g\n1,-1.0,a\n3,-1.0,b\n5,1.0,a\n8,1.0,b\n")
    ran = normcli(*["maxabs", "-i", "dup.csv", "--by", "0", "--columns", "1", "-o", "-"])
    assert (ran.code, ran.out) == (0, "x,x,g\n1,1.0,a\n3,1.0,b\n5,1.0,a\n8,1.0,b\n")


@pytest.mark.usefixtures("tables")
def test_a_column_that_groups_its_own_rows_is_told_so(normcli):
    ran = normcli(*["zscore", "-i", "t.csv", "--by", "a", "--columns", "a", "-o", "-"])
    assert ran.code == 0
    assert "normcli: t.csv: rows are grouped by a: each group has one value there\n" in ran.err


@pytest.mark.usefixtures("tables")
def test_fitted_columns_of_equal_names_are_used_together_or_not_at_all(normcli):
    """A column got the other's statistics, or one column stood in for both."""
    assert normcli(*["fit", "zscore", "dup.csv", "--exclude", "g", "-o", "d.npz"]).code == 0
    right = normcli(*["zscore", "-i", "dup.csv", "--exclude", "g", "-o", "-"]).out
    for columns in ("--columns x", "--columns x,x", "--columns 0,1", "--exclude g"):
        assert normcli(*f"apply d.npz dup.csv {columns} -o -".split()).out == right
    for columns, found in (
        ("--columns 0", "there is only one of x"),
        ("", "there is also g; there are two of x"),
    ):
        ran = normcli(*f"apply d.npz dup.csv {columns} -o -".split())
        told = f"normcli: dup.csv has other columns than x, x: {found}; --columns x takes those alone\n"
        assert (ran.code, ran.out, ran.err) == (3, "", told)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--gamma-offset 1 --beta 2", "--gamma-offset says nothing without gamma: give --gamma, or"),
        ("--feature-axes 1", "without gamma or beta: give --gamma or --beta, or"),
        ("--feature-axes 1 --beta 2", ""),
        ("--gamma-offset 1 --affine-seed 1", ""),
    ],
)
def test_options_that_only_act_on_parameters_need_one(words, told, normcli):
    ran = normcli("ln", "--shape", "4,8", *words.split())
    assert ran.code == (2 if told else 0)
    assert told in ran.err


def test_the_axes_of_a_gradient_need_no_parameter(normcli):
    assert normcli("backward", "ln", "--shape", "4,8", "--dy-seed", "1", "--feature-axes", "1").code == 0
