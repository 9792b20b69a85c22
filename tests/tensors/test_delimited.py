from __future__ import annotations

import io

import numpy as np
import pytest

from normcli.errors import DataError
from normcli.tensors.delimited import iterate_long, iterate_table, pick_from, read_delimited, write_rows


def read(text: str, delimiter: str = ","):
    return read_delimited(io.BytesIO(text.encode()), "x.csv", delimiter)


@pytest.mark.parametrize(
    ("text", "values", "columns"),
    [
        pytest.param("1,2\n3,4\n", [[1, 2], [3, 4]], None, id="no header"),
        pytest.param("a,b\n1,2\n3,4\n", [[1, 2], [3, 4]], ("a", "b"), id="header"),
        pytest.param("1,2\n3,4", [[1, 2], [3, 4]], None, id="no newline at the end"),
        pytest.param("1,2\r\n3,4\r\n", [[1, 2], [3, 4]], None, id="Windows lines"),
        pytest.param("1,2\n\n3,4\n\n", [[1, 2], [3, 4]], None, id="blank lines"),
        pytest.param("5\n6\n", [[5], [6]], None, id="one column"),
        pytest.param("1,2,3\n", [[1, 2, 3]], None, id="one row"),
        pytest.param('"1","2"\n', [[1, 2]], None, id="quoted numbers"),
        pytest.param('"a, b",c\n1,2\n', [[1, 2]], ("a, b", "c"), id="quoted header"),
        pytest.param(" 1 , 2\n", [[1, 2]], None, id="spaces"),
        pytest.param("1e3,-2.5e-3\n", [[1000, -0.0025]], None, id="exponents"),
        pytest.param("nan,inf,-inf\n", [[np.nan, np.inf, -np.inf]], None, id="not finite"),
        pytest.param("1,\n,4\n", [[1, np.nan], [np.nan, 4]], None, id="empty cells"),
        pytest.param("a,b\n1,\n", [[1, np.nan]], ("a", "b"), id="header and empty cells"),
        pytest.param("NA,1\n2,N/A\n", [[np.nan, 1], [2, np.nan]], None, id="NA in the first row"),
        pytest.param("a,,c\n1,2,3\n", [[1, 2, 3]], ("a", "", "c"), id="a header with a gap"),
    ],
)
def test_what_is_read(text, values, columns):
    array, names = read(text)
    np.testing.assert_array_equal(array, values)
    assert array.dtype == np.float64
    assert names == columns


def test_tabs():
    array, names = read("a b\tc\n1\t2\n", "\t")
    np.testing.assert_array_equal(array, [[1, 2]])
    assert names == ("a b", "c")


def test_a_byte_order_mark_is_no_matter():
    array, names = read("\ufeff1,2\n")
    np.testing.assert_array_equal(array, [[1, 2]])
    assert names is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "is empty", id="empty"),
        pytest.param("\n\n", "is empty", id="blank"),
        pytest.param("1,2\n3\n", "ragged: line 2 has 1 cells, the first row 2", id="ragged"),
        pytest.param("a,b\n1,2,3\n", "ragged: line 2 has 3 cells, the first row 2", id="header too short"),
        pytest.param("1,2\n3,x\n", "line 2, column 2: 'x' is not a number", id="text in a cell"),
        pytest.param("1,2\n1_000,3\n", "line 2, column 1: '1_000' is not a number", id="underscore"),
        pytest.param("a,b\n", "a header and no rows", id="header alone"),
        pytest.param("1,oops,2\n3,4,5\n", "line 1: 'oops' is not a number; a header row has no", id="neither"),
        pytest.param("a,b\n1,2\n\n3,c\n", "line 4, column 2: 'c'", id="lines are counted as in the file"),
        pytest.param("1,2\n" + "y" * 200000 + ",3\n", "line|text table", id="an endless cell"),
    ],
)
def test_what_is_refused(text, message):
    with pytest.raises(DataError, match=message):
        read(text)


def test_what_is_no_text_is_refused():
    with pytest.raises(DataError, match="is not UTF-8"):
        read_delimited(io.BytesIO(b"1,\xff\n"), "x.csv", ",")


@pytest.mark.parametrize(
    ("values", "columns", "text"),
    [
        pytest.param(np.array([[1.5, 2.0]]), ("a", "b"), "a,b\n1.5,2.0\n", id="2-D"),
        pytest.param(np.array([1, 2]), None, "1\n2\n", id="1-D: one value a line"),
        pytest.param(np.array(3.5), None, "3.5\n", id="0-D"),
        pytest.param(np.array([[True, False]]), None, "1,0\n", id="booleans"),
    ],
)
def test_write_a_table(values, columns, text):
    stream = io.StringIO()
    write_rows(stream, iterate_table(values, columns), ",")
    assert stream.getvalue() == text


def test_written_floats_read_back_to_the_same_bits():
    values = np.random.default_rng(0).normal(size=(100, 7)) * 10.0 ** np.arange(-150, 151, 50)
    stream = io.StringIO()
    write_rows(stream, iterate_table(values, None), ",")
    np.testing.assert_array_equal(read(stream.getvalue())[0], values)


def test_iterate_long():
    values = np.arange(6).reshape(1, 2, 3)
    rows = list(
        iterate_long(
            ["n", "c", "l"], values.shape, {"value": pick_from(values), "double": pick_from(values * 2.0)}
        )
    )
    assert rows[0] == ["n", "c", "l", "value", "double"]
    assert rows[5] == [0, 1, 1, "4", "8.0"]
    assert len(rows) == 7
