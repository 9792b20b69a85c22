from __future__ import annotations

import io
import sys

import numpy as np
import pytest

from normcli.errors import DataError, UsageError
from normcli.tensors.tables.delimited import read_delimited
from normcli.tensors.tables.delimited_writing import write_delimited
from normcli.tensors.tables.line_records import find_delimiter
from normcli.tensors.tables.numerals import MISSING
from normcli.tensors.tables.table_options import TableOptions
from tests.marks import sampled


@pytest.fixture(
    autouse=True,
    params=[
        "without pyarrow",
        pytest.param("in small blocks", marks=pytest.mark.slow),
        pytest.param("with pyarrow", marks=pytest.mark.slow),
    ],
)
def way(request, monkeypatch):
    """How tables are read and written; the fast tests of pyarrow are in test_arrow.py."""
    if request.param == "with pyarrow":
        pytest.importorskip("pyarrow")
        monkeypatch.setattr("normcli.tensors.tables.arrow.LEAST_BYTES", 0)
        monkeypatch.setattr("normcli.tensors.tables.arrow.LEAST_VALUES", 0)
    else:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    if request.param != "without pyarrow":
        monkeypatch.setattr("normcli.tensors.tables.line_records._BYTES_AT_ONCE", 16)
    return request.param


def open_table(text: str | bytes, usual: str = ",", **options):
    data = text.encode() if isinstance(text, str) else text
    return read_delimited(io.BytesIO(data), "x.csv", TableOptions(**options), usual)[0]


def read(text: str | bytes, usual: str = ",", **options):
    table = open_table(text, usual, **options)
    return table.read()[0], table.columns


def write(table, values, delimiter=","):
    stream = io.BytesIO()
    write_delimited(stream, np.array(values), table.columns, table, delimiter)
    return stream.getvalue().decode()


NAN = np.nan


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("text", "values", "columns"),
    [
        pytest.param("1,2\n3,4", [[1, 2], [3, 4]], None, id="no header, no newline at the end"),
        pytest.param("a,b\n1,2\n3,4\n", [[1, 2], [3, 4]], ("a", "b"), id="header"),
        pytest.param("1,2\r\n3,4\r\n", [[1, 2], [3, 4]], None, id="Windows lines"),
        pytest.param("1,2\r3,4\r", [[1, 2], [3, 4]], None, id="old Macintosh lines"),
        pytest.param("\n\na,b\n\n1,2\n", [[1, 2]], ("a", "b"), id="blank lines around a header"),
        pytest.param("x,y\n1,2\n,\n3,4\n", [[1, 2], [NAN, NAN], [3, 4]], ("x", "y"), id="a row of empty cells"),
        pytest.param("x\n5\n\n6\n\n\n", [[5], [NAN], [6]], ("x",), id="an empty cell in one column"),
        pytest.param('"1","2"\n', [[1, 2]], None, id="quoted numbers"),
        pytest.param('"a, b",c\n1,2\n', [[1, 2]], ("a, b", "c"), id="quoted header"),
        pytest.param(
            '"a\r\nb","say ""c"""\n1,2\n', [[1, 2]], ("a\r\nb", 'say "c"'), id="a header of two lines"
        ),
        pytest.param(" 1 , -2.5e-3\n", [[1, -0.0025]], None, id="spaces"),
        pytest.param("nan,inf,-inf\n", [[NAN, np.inf, -np.inf]], None, id="not finite"),
        pytest.param("x\ty\n1\t2\n\t\n", [[1, 2], [NAN, NAN]], ("x", "y"), id="empty cells between tabs"),
        pytest.param("\t\n1\t2\n", [[NAN, NAN], [1, 2]], None, id="empty cells between tabs in the first row"),
        pytest.param('"1"\t2\n\t\n', [[1, 2], [NAN, NAN]], None, id="empty cells between tabs behind quotes"),
        pytest.param(" \n1,2\n\t \n", [[1, 2]], None, id="lines of spaces"),
        pytest.param('a;"b\nc"\n1;2\n', [[1, 2]], ("a", "b\nc"), id="a line end behind a semicolon"),
        pytest.param('1,""\n"",4\n', [[1, NAN], [NAN, 4]], None, id="empty cells in quotes"),
        pytest.param("NA,1\n2,N/A\n", [[NAN, 1], [2, NAN]], None, id="NA in the first row"),
        pytest.param("-,-\n1,2\n", [[NAN, NAN], [1, 2]], None, id="dashes are no header"),
        pytest.param("NA,x\n1,2\n", [[1, 2]], ("NA", "x"), id="a name among missing values is"),
        pytest.param("a,,c\n1,2,3\n", [[1, 2, 3]], ("a", "", "c"), id="a header with a gap"),
        pytest.param("a|b\n1|2\n", [[1, 2]], ("a", "b"), id="bars"),
        pytest.param("\ufeffa,b\n1,2\n", [[1, 2]], ("a", "b"), id="byte order mark"),
    ],
)
def test_what_is_read(text, values, columns):
    array, names = read(text)
    np.testing.assert_array_equal(array, values)
    assert array.dtype == np.float64
    assert names == columns


@pytest.mark.parametrize("word", [*MISSING, *(word.upper() for word in MISSING if word.upper() not in MISSING)])
def test_missing_values(word):
    np.testing.assert_array_equal(read(f"1,2\n{word},4\n")[0], [[1, 2], [NAN, 4]])


@sampled
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    ("lines", "where"),
    [
        pytest.param(["\ufeffn,x,y", "é,1,2", '"a\nb",3,4', "", ",,", '"say ""hi""\nmore",5,"6"', "c,7,8"], None, id="a table"),
        pytest.param(["n,x,y", "a,1,2", "", '"\n\n",3,4', "c,d,5"], "line 7, column x", id="text in its last line"),
        pytest.param(["n,x,y", "a,1,2", "", "b,3,4", "c,5"], "line 5 has 2", id="a ragged one"),
        pytest.param(["", "x", "1", "", "2", "", "3", "", ""], None, id="one column"),
    ],
)  # fmt: skip
def test_blocks_of_any_size_are_read_alike(lines, where, end, monkeypatch):
    text = end.join(lines) + end

    def describe() -> object:
        try:
            table = open_table(text, columns="x")
            values = table.read()[0]
            return values.tobytes(), write(table, values)
        except DataError as error:
            return str(error)

    monkeypatch.setattr("normcli.tensors.tables.line_records._BYTES_AT_ONCE", 1 << 20)
    expected = describe()
    assert where is None or where in str(expected)
    for size in range(1, 40):
        monkeypatch.setattr("normcli.tensors.tables.line_records._BYTES_AT_ONCE", size)
        assert describe() == expected, size


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("text", "options", "values", "columns"),
    [
        pytest.param("1 2\n", {"delimiter": " "}, [[1, 2]], None, id="a delimiter that is not guessed"),
        pytest.param("a;b\n1,5;2\n", {"decimal": ","}, [[1.5, 2]], ("a", "b"), id="decimal comma"),
        pytest.param('a;b\n"1,5";2\n', {"decimal": ","}, [[1.5, 2]], ("a", "b"), id="decimal comma in quotes"),
        pytest.param(
            "2019,2020\n1,2\n", {"header": True}, [[1, 2]], ("2019", "2020"), id="a header of numbers"
        ),
        pytest.param("n,x,y\na,1,2\n", {"columns": "y, x"}, [[2, 1]], ("y", "x"), id="columns in an order"),
        pytest.param("n,x,y\na,1,2\n", {"columns": "1-2"}, [[1, 2]], ("x", "y"), id="columns by number"),
        pytest.param("n,x,y\na,1,2\n", {"exclude": "n"}, [[1, 2]], ("x", "y"), id="exclude"),
        pytest.param('"a,b",x\nq,1\n', {"exclude": '"a,b"'}, [[1]], ("x",), id="a comma in a name"),
        pytest.param("a,1,2\n", {"exclude": "0"}, [[1, 2]], None, id="exclude by number"),
        pytest.param("3,1\n5,6\n", {"columns": "1"}, [[1], [6]], None, id="a number that is no name"),
        pytest.param("3,1\n5,6\n", {"columns": "1", "header": True}, [[6]], ("1",), id="a name of a number"),
        pytest.param("x,y\n1,2\n", {"wanted": ("y", "x")}, [[2, 1]], ("y", "x"), id="wanted in another order"),
        pytest.param("n,x\na,1\n", {"wanted": ("x",), "exclude": "n"}, [[1]], ("x",), id="and others"),
        pytest.param("1,2\n", {"wanted": ("y", "x")}, [[1, 2]], None, id="wanted, without names"),
    ],
)
def test_what_options_choose(text, options, values, columns):
    array, names = read(text, **options)
    np.testing.assert_array_equal(array, values)
    assert names == columns


@pytest.mark.parametrize("row", [0, 1, 48])
def test_a_header_is_suggested_for_the_first_row_alone(row, monkeypatch):
    monkeypatch.setattr("normcli.tensors.tables.line_records._BYTES_AT_ONCE", 16)
    text = "\n" + "1,2\n" * row + "3,x\n" + "1,2\n" * 50
    with pytest.raises(DataError, match=f"line {row + 2}, column 1: 'x'") as raised:
        read(text)
    assert ("--header yes" in str(raised.value)) == (row == 0)


def test_names_that_are_only_taken_to_be_there_are_told_of():
    _, note = read_delimited(io.BytesIO(b"1,2\n"), "x.csv", TableOptions(wanted=("y", "x")), ",")
    assert note == "its columns have no names: they are taken to be y, x"


LONG = '1,2\n"' + f"{'3' * 99}\n" * 10_600


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        pytest.param("", {}, "is empty", id="empty"),
        pytest.param("x,y\n1,2\n", {"header": False}, "line 1, column 0: 'x' is not", id="no header"),
        pytest.param("\n\n", {}, "is empty", id="blank"),
        pytest.param("1,2\n3\n", {}, "ragged: line 2 has 1 cell, the first row 2", id="ragged"),
        pytest.param("a,b\n1,2,3\n", {}, "ragged: line 2 has 3 cells", id="header too short"),
        pytest.param("n,x\na,1\nb,2,3\n", {"columns": "x"}, "ragged: line 3", id="ragged behind"),
        pytest.param("1,2\n3,x\n", {}, "line 2, column 1: 'x' is not a number", id="text in a cell"),
        pytest.param("n,x\nann,1\n", {}, "line 2, column n: 'ann' is not .*; --exclude n leaves", id="text"),
        pytest.param("n,2019\nann,1\n", {}, "line 1, column 0: 'n' .*--header yes", id="half a header"),
        pytest.param("1,2\n1_000,3\n", {}, "line 2, column 0: '1_000' is not", id="underscore"),
        pytest.param("1,2\n٣,3\n", {}, "line 2, column 0", id="another script's digit"),
        pytest.param("a;b\n1.5;2\n", {"decimal": ","}, "'1.5' is not a number", id="a point for a comma"),
        pytest.param("a,b\n", {}, "names of columns and no rows", id="header alone"),
        pytest.param("a,b\n1,2\n\n3,c\n", {}, "line 4, column b: 'c'", id="lines as in the file"),
        pytest.param('n,x\n"a\nb",1\nc,d\n', {"exclude": "n"}, "line 4, column x", id="lines in quotes"),
        pytest.param("1,2\n" + "y" * 200000 + ",3\n", {}, "line 2", id="an endless cell"),
        pytest.param('1,2\n"3,4\n' + "5,6\n" * 9, {}, "a quote opens in line 2", id="an open quote"),
        pytest.param(b"1,2\n\xff,3\n", {}, "line 2 is not UTF-8", id="no text"),
        pytest.param('"a\nb",x\n1,2\n3,c\n', {}, "line 4, column x", id="lines behind a header of two"),
        pytest.param(LONG, {}, "a quote opens in line 2", id="a long open quote"),
        pytest.param("x,z\n1,2\n", {"wanted": ("y", "x")}, "there is no y; there is also z", id="other names"),
        pytest.param("x,x\n1,2\n", {"wanted": ("x", "y")}, "there are two of x", id="a name twice"),
        pytest.param("1,2,3\n", {"wanted": ("x", "y")}, "has 3 columns without names", id="too many"),
    ],
)
def test_what_is_refused(text, options, message):
    with pytest.raises(DataError, match=message):
        read(text, **options)


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param({"columns": "z"}, "has no column 'z'; it has x, y", id="no column"),
        pytest.param({"exclude": "0-2"}, "has the columns 0 to 1", id="no number"),
        pytest.param({"exclude": "0-1"}, "no column is left", id="none left"),
        pytest.param({"columns": ""}, "names no column", id="empty option"),
        pytest.param({"columns": "x", "exclude": "x"}, "give one of them", id="both"),
    ],
)
def test_columns_that_cannot_be_chosen(options, message):
    with pytest.raises(UsageError, match=message):
        read("x,y\n1,2\n", **options)


@pytest.mark.parametrize("word", ["comma ,", "TAB \t", "bar |", "semicolon ;", r"\t " + "\t"])
def test_delimiters_have_names(word):
    name, _, delimiter = word.partition(" ")
    assert find_delimiter(name) == delimiter


@pytest.mark.parametrize("word", ["", "ab", "x", "5", '"', "\n"])
def test_what_is_no_delimiter(word):
    with pytest.raises(UsageError, match="--delimiter"):
        find_delimiter(word)


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        pytest.param("18446744073709551615\n0\n", np.uint64, id="uint64"),
        pytest.param(
            "t\n1700000000000000001\x1e\n-3\n", np.int64, id="beside a space that `int` does not strip"
        ),
        pytest.param("t\n1700000000000000001\n" + "5\n" * 9000, np.int64, id="in one of several blocks"),
    ],
)
def test_whole_numbers_beyond_float64_are_read_as_they_are(text, dtype):
    values, _ = read(text)
    assert values.dtype == dtype
    assert [str(value) for value in values[:, 0]] == text.replace("\x1e", "").removeprefix("t\n").split()


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param("t,f\n1700000000000000001,1.5\n", 2, id="beside a fraction"),
        pytest.param("t\n1700000000000000001\n\n2\n", 2, id="beside a missing value"),
        pytest.param("t\n18446744073709551615\n-1\n", 2, id="no integer dtype has both"),
        pytest.param("t,f\n1e300,9007199254740992\n", None, id="exact"),
    ],
)
def test_what_must_be_rounded_is_told_of(text, line):
    values, note = open_table(text).read()
    assert values.dtype == np.float64
    assert note is None if line is None else f"in line {line}, column t, is rounded to float64" in note


TABLE = 'name;x;y;"a ""q"""\nann; 1 ;2,50;"x;y"\n"b\r\no";-;1e3;\n'


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("text", "options", "values", "written"),
    [
        pytest.param(TABLE, {"decimal": ",", "columns": "x,y"}, [[0.5, 1.0], [2.0, -3.0]],
                     'name;x;y;"a ""q"""\nann;0,5;1,0;"x;y"\n"b\r\no";2,0;-3,0;\n', id="decimal commas"),
        pytest.param('x,n,y,m\n1,a,2,\n3,"b",4,c\n', {"columns": "x,y"}, [[0.5, 1.5], [2.5, 3.5]],
                     'x,n,y,m\n0.5,a,1.5,\n2.5,"b",3.5,c\n', id="between others"),
        pytest.param("x,y\n1,2\n", {"wanted": ("y", "x")}, [[20.0, 10.0]], "x,y\n10.0,20.0\n", id="in the file's order"),
    ],
)  # fmt: skip
def test_other_columns_pass_through_cell_by_cell(text, options, values, written):
    table = open_table(text, **options)
    table.read()
    assert write(table, values) == written


@pytest.mark.parametrize(
    "cell",
    ['"say ""hi""\nmore"', '"a\n\n"', '"\n"', '"a"b', 'a"b"', '"a,\n""b"""', '"é\r\n"', '""', '"a""\n"', '"a" "b"'],
)  # fmt: skip
def test_a_cell_in_quotes_passes_through(cell):
    text = f"n,x\n{cell},1.0\n,2.0\n{cell},3.0\n"
    table = open_table(text, exclude="n")
    assert write(table, table.read()[0]) == text


def test_other_columns_are_quoted_as_another_delimiter_needs():
    table = open_table('n;x\n"a;b";1\n"c\td";2\n', columns="x")
    assert write(table, [[5.0], [6.0]], "\t") == 'n\tx\na;b\t5.0\n"c\td"\t6.0\n'


def test_large_tables_lie_in_a_temporary_file(monkeypatch):
    monkeypatch.setattr("normcli.tensors.spool.SMALLEST_SCRATCH", 1)
    values, _ = read("".join(f"{i},{i}.5\n" for i in range(2_000)))
    assert isinstance(values, np.memmap)
    np.testing.assert_array_equal(values, [[i, i + 0.5] for i in range(2_000)])
