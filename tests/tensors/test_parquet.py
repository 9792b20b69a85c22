"""Parquet files as tables: held against the same tables as CSV, and against what pyarrow and pandas read back."""

from __future__ import annotations

import datetime
import json

import numpy as np
import pytest

from normcli.errors import DataError, MissingExtraError, UsageError
from normcli.tensors.files import load
from normcli.tensors.formats.file_formats import FORMATS, Saved
from normcli.tensors.tables import parquet as module
from normcli.tensors.tables import parquet_writing
from normcli.tensors.tables.table_options import TableOptions

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

ROWS = [("ann", 1.5, 3, True), ("bob", None, 4, None), ('c, "d"', -2.25, 5, False)]


@pytest.fixture
def path(tmp_path):
    names, x, n, ok = zip(*ROWS, strict=True)
    table = pyarrow.table({"name": names, "x": x, "n": pyarrow.array(n, pyarrow.int16()), "ok": ok})
    parquet.write_table(table, tmp_path / "x.parquet", row_group_size=2)
    return str(tmp_path / "x.parquet")


def save(path, columns, **options):
    parquet.write_table(pyarrow.table(columns), path, **options)
    return str(path)


def pass_through(source, path, **options):
    """Read a table, write its numbers back, and return the file."""
    tensor = load(str(source), TableOptions(**options))
    with open(path, "wb") as stream:
        FORMATS[path.suffix].write(stream, Saved.like(tensor, tensor.values + 1))
    return path


def write(path, saved):
    with open(path, "wb") as stream:
        FORMATS[".parquet"].write(stream, saved)


@pytest.mark.parametrize(
    ("kinds", "dtype"),
    [
        pytest.param(["float32", "float32"], "float32", id="float32"),
        pytest.param(["float32", "int8"], "float32", id="float32 beside small integers"),
        pytest.param(["float32", "int32"], "float64", id="float32 beside large integers"),
        pytest.param(["float16"], "float16", id="float16"),
        pytest.param(["int8", "uint16"], "int32", id="integers"),
        pytest.param(["int64", "uint64"], "int64", id="signed and unsigned"),
        pytest.param(["bool", "bool"], "bool", id="booleans"),
    ],
)
def test_the_dtype_is_one_that_holds_all_columns(kinds, dtype, tmp_path):
    given = np.array([[0, 1], [1, 1], [1, 0]])[:, : len(kinds)]
    columns = {str(place): given[:, place].astype(kind) for place, kind in enumerate(kinds)}
    values = load(save(tmp_path / "x.parquet", columns)).values
    assert values.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(values, given)


@pytest.mark.parametrize("number", [2**60 + 1, 2**64 - 1, -(2**62) - 1])
def test_whole_numbers_beyond_doubles_are_exact(number, tmp_path):
    given = np.array([number, 7], dtype="uint64" if number > 0 else "int64")
    values = load(save(tmp_path / "x.parquet", {"i": given})).values
    assert values.tolist() == [[number], [7]]


@pytest.mark.parametrize(
    "beside", [{"j": [0.5, 1.0, 2.0]}, {}], ids=["beside fractions", "beside a missing one"]
)
def test_what_is_rounded_is_said(beside, tmp_path):
    whole = [2**60, 2**60 + 1, None if not beside else 3]
    tensor = load(save(tmp_path / "x.parquet", {"i": whole, **beside}))
    assert tensor.values[1, 0] == 2.0**60
    assert tensor.note is not None
    assert tensor.note.startswith("1152921504606846977 in row 2, column i, is rounded to float64")


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        (None, r"columns without numbers: name \(string\); --exclude name leaves it out"),
        ("x,name", r"name \(string\); --columns x takes the others"),
    ],
    ids=["all", "named"],
)
def test_columns_without_numbers_are_named(columns, told, path):
    with pytest.raises(DataError, match=told):
        load(path, TableOptions(columns=columns))


def test_rows_across_batches_and_groups_are_read_in_order(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_ROWS", 7)
    given = np.arange(100.0).reshape(50, 2)
    path = save(tmp_path / "x.parquet", {"a": given[:, 0], "b": given[:, 1]}, row_group_size=13)
    np.testing.assert_array_equal(load(path, TableOptions(columns="b,a")).values, given[:, ::-1])


def test_other_columns_keep_types_and_what_was_missing_stays_so(path, tmp_path):
    tensor = load(path, TableOptions(columns="ok,x"))
    write(tmp_path / "y.parquet", Saved.like(tensor, tensor.values.astype("f4") * 2))
    table = parquet.read_table(tmp_path / "y.parquet")
    assert [str(field.type) for field in table.schema] == ["string", "float", "int16", "float"]
    assert table.to_pylist() == [
        {"name": name, "x": x and 2 * x, "n": n, "ok": None if ok is None else 2.0 * ok}
        for name, x, n, ok in ROWS
    ]


def test_other_columns_come_through_text(path, tmp_path):
    rows = json.loads(pass_through(path, tmp_path / "y.json", columns="x").read_text())
    assert rows[2] == {"name": 'c, "d"', "x": -1.25, "n": 5, "ok": False}
    assert rows[1]["x"] is None
    text = pass_through(path, tmp_path / "y.csv", columns="x").read_text()
    assert text == 'name,x,n,ok\nann,2.5,3,true\nbob,,4,\n"c, ""d""",-1.25,5,false\n'
    again = parquet.read_table(pass_through(tmp_path / "y.csv", tmp_path / "z.parquet", columns="x"))
    assert again.column("name").to_pylist() == ["ann", "bob", 'c, "d"']


def test_dates_and_bytes_come_through_text(tmp_path):
    path = save(tmp_path / "x.parquet", {"d": [datetime.date(2020, 1, 2)], "b": [b"\x00\xff"], "x": [1.0]})
    assert pass_through(path, tmp_path / "y.csv", columns="x").read_text() == "d,b,x\n2020-01-02,00ff,2.0\n"


def test_the_index_of_pandas_passes_through(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": [1.0, 3.0], "q": pandas.array([1, None], dtype="Int64")}, index=[10, 20])
    frame.to_parquet(tmp_path / "x.parquet")
    tensor = load(str(tmp_path / "x.parquet"))
    assert tensor.columns == ("x", "q")
    write(tmp_path / "y.parquet", Saved.like(tensor, tensor.values * 0.5))
    expected = pandas.DataFrame({"x": [0.5, 1.5], "q": [0.5, None]}, index=[10, 20])
    pandas.testing.assert_frame_equal(pandas.read_parquet(tmp_path / "y.parquet"), expected)


def test_two_columns_of_one_name_are_refused(tmp_path):
    table = pyarrow.Table.from_arrays([pyarrow.array([1.0]), pyarrow.array([2.0])], ["x", "x"])
    parquet.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(DataError, match="several columns called x"):
        load(str(tmp_path / "x.parquet"))
    with pytest.raises(UsageError, match=r"\.parquet cannot hold two columns called 'x'"):
        write(tmp_path / "y.parquet", Saved(np.zeros((1, 2)), "x", columns=("x", "x")))


def test_without_the_library_the_extra_is_named(path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    monkeypatch.delattr(pyarrow, "parquet", raising=False)
    with pytest.raises(MissingExtraError, match=r"pip install 'normcli\[parquet\]'"):
        load(path)


def test_a_key_is_a_column(path):
    found = load(f"{path}:x")
    assert found.columns == ("x",)
    np.testing.assert_array_equal(found.values, [[1.5], [np.nan], [-2.25]])


# -- the verbs


def test_a_full_disk_leaves_the_old_file(path, tmp_path, normcli, monkeypatch):
    target = tmp_path / "y.parquet"
    target.write_bytes(b"old")

    def fail(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(parquet_writing, "_make_column", fail)
    ran = normcli("zscore", "-i", path, "--columns", "x,n", "--nan", "omit", "-o", target)
    assert (ran.code, ran.out, target.read_bytes()) == (3, "", b"old")
    assert ran.err.endswith("y.parquet cannot be written: No space left on device\n")


def test_a_damaged_file_is_one_line(path, normcli):
    with open(path, "r+b") as stream:
        stream.seek(-8, 2)
        footer = int.from_bytes(stream.read(4), "little") + 8
        length = stream.seek(0, 2) - footer - 4
        stream.seek(4)
        stream.write(b"\xff" * length)
    ran = normcli("zscore", "-i", path, "--columns", "x")
    assert (ran.code, ran.out, ran.err.count("\n")) == (3, "", 1)
    assert "x.parquet is no readable .parquet file: " in ran.err


def test_what_pandas_says_may_be_nested_without_end(tmp_path, normcli):
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"x": [1.0, 3.0]}).replace_schema_metadata({b"pandas": b"[" * 100_000})
    pyarrow.parquet.write_table(table, tmp_path / "x.parquet")
    ran = normcli("zscore", "-i", tmp_path / "x.parquet", "-o", tmp_path / "y.parquet")
    assert ran.code == 0
    assert normcli("zscore", "-i", tmp_path / "y.parquet", "--print", "mean").out == "0.0\n"


def test_standard_input_is_told_by_its_first_bytes(path, normcli):
    with open(path, "rb") as stream:
        assert (
            normcli("zscore", "-i", "-", "--columns", "n", "--print", "mean", stdin=stream.read()).out
            == "4.0\n"
        )


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("cells", "kind", "values"),
    [
        pytest.param(["1", "-20"], "int64", [1, -20], id="whole"),
        pytest.param(["1", "2.5e3"], "double", [1.0, 2500.0], id="numbers"),
        pytest.param(["True", "false"], "bool", [True, False], id="booleans"),
        pytest.param(["2024-02-29", ""], "date32[day]", [datetime.date(2024, 2, 29), None], id="days"),
        pytest.param(["2023-02-29", ""], "string", ["2023-02-29", ""], id="no day"),
        pytest.param(["0123", "1"], "string", ["0123", "1"], id="a leading zero"),
        pytest.param(["NA", "1"], "int64", [None, 1], id="missing"),
        pytest.param(["NA", "x"], "string", ["NA", "x"], id="a word among text"),
        pytest.param(["", "NA"], "string", ["", "NA"], id="nothing known"),
        pytest.param(["1" * 19, "1"], "string", ["1" * 19, "1"], id="too long to be exact"),
        pytest.param(['"a,b"', '"1"'], "string", ["a,b", "1"], id="quotes"),
        pytest.param([2, None], "int64", [2, None], id="numbers of JSON"),
        pytest.param(["2", "3"], "string", ["2", "3"], id="texts of JSON"),
    ],
)
def test_columns_of_text_that_pass_through_have_the_type_that_fits_all(cells, kind, values, request, tmp_path):
    source = tmp_path / "x.csv"
    source.write_text("x,c\n" + "".join(f"{row}.5,{cell}\n" for row, cell in enumerate(cells)))
    if "JSON" in request.node.callspec.id:
        source = tmp_path / "x.jsonl"
        source.write_text("".join(json.dumps({"x": row, "c": cell}) + "\n" for row, cell in enumerate(cells)))
    column = parquet.read_table(pass_through(source, tmp_path / "y.parquet", columns="x")).column("c")
    assert (str(column.type), column.to_pylist()) == (kind, values)
