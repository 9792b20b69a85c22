from __future__ import annotations

import io
import json

import numpy as np
import pytest

from normcli.errors import DataError
from normcli.tensors.tables.delimited_writing import write_delimited
from normcli.tensors.tables.json_records import (
    read_records,
    starts_like_lines,
    write_records,
)
from normcli.tensors.tables.table_options import TableOptions

NAN = np.nan


def open_table(text: str, *, is_lines: bool, **options):
    return read_records(io.BytesIO(text.encode()), "x.json", TableOptions(**options), is_lines=is_lines)[0]


def write(table, values, *, is_lines: bool):
    stream = io.BytesIO()
    write_records(stream, np.array(values), table.columns, table, is_lines=is_lines)
    return stream.getvalue().decode()


def write_csv(table, values):
    stream = io.BytesIO()
    write_delimited(stream, np.array(values), table.columns, table, ",")
    return stream.getvalue().decode()


def parse(text, is_lines):
    return [json.loads(line) for line in text.splitlines()] if is_lines else json.loads(text)


def join(records, is_lines):
    return "\n".join(map(json.dumps, records)) + "\n" if is_lines else json.dumps(records)


@pytest.fixture(params=[pytest.param(False, id="array"), pytest.param(True, id="lines")])
def is_lines(request):
    return request.param


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("records", "values", "columns"),
    [
        pytest.param([{"x": 1, "y": 2.5}, {"y": 4, "x": 3}], [[1, 2.5], [3, 4]], ("x", "y"), id="any order"),
        pytest.param([{"x": None}, {"x": ""}, {"x": "NA"}], [[NAN]] * 3, ("x",), id="missing values"),
        pytest.param([{"x": "nan"}, {"x": "-inf"}], [[NAN], [-np.inf]], ("x",), id="not finite"),
        pytest.param([{"x": -np.inf}, {"x": NAN}], [[-np.inf], [NAN]], ("x",), id="not finite, and no JSON"),
        pytest.param([{"x": "1.5"}, {"x": True}], [[1.5], [1]], ("x",), id="numbers in quotes, and truth"),
    ],
)
def test_what_is_read(records, values, columns, is_lines):
    table = open_table(join(records, is_lines), is_lines=is_lines)
    np.testing.assert_array_equal(table.read()[0], values)
    assert table.columns == columns


def test_columns_are_chosen_and_others_pass_through(is_lines):
    records = [{"name": "é, a", "x": 1, "ok": None}, {"name": {"a": [1]}, "x": 2, "ok": True}]
    table = open_table(join(records, is_lines), is_lines=is_lines, columns="x")
    np.testing.assert_array_equal(table.read()[0], [[1], [2]])
    found = parse(write(table, [[0.5], [NAN]], is_lines=is_lines), is_lines)
    assert found == [{**records[0], "x": 0.5}, {**records[1], "x": "nan"}]
    assert write_csv(table, [[0.5], [NAN]]) == 'name,x,ok\n"é, a",0.5,\n"{""a"": [1]}",nan,true\n'


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param('[{"x": 1}, {"y": 1}]', "record 2 has no 'x'", id="missing name"),
        pytest.param('[{"x": 1}, {"x": 1, "y": 1}]', "record 2 also has 'y'", id="a name more"),
        pytest.param('[{"x": 1}, 3]', "record 2 is no object", id="no object"),
        pytest.param('[{"x": 1, "x": 2}]', "has the name .x. twice behind record 0", id="a name twice"),
        pytest.param('[{"x": 1}, {"x": 2},]', "not valid JSON behind record 2", id="a comma at the end"),
        pytest.param('[{"x": 1} {"x": 2}]', "not valid JSON behind record 1", id="no comma"),
        pytest.param('[{"x": 1}, {"x": 2}', "not valid JSON", id="cut short"),
        pytest.param('[{"x": 1}] 5', "not valid JSON", id="more behind"),
        pytest.param('[{"x": [1]}]', r"record 1, column x: '\[1\]' is not a number; no chosen", id="a list"),
        pytest.param('[{"x": 1}, {"x": "ann"}]', "record 2, column x: 'ann' is not a number", id="text"),
        pytest.param('[{"x": ' + "[" * 100000, "nested too deeply", id="too deep"),
        pytest.param('[{"x": ' + "1" * 5000 + "}]", "too many digits", id="too many digits"),
    ],
)
def test_what_is_refused(text, message):
    with pytest.raises(DataError, match=message):
        open_table(text, is_lines=False).read()


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param('{"x": 1}\n{"x": 2\n', "line 2 is not valid JSON", id="cut short"),
        pytest.param('{"x": 1}\n\n{"y": 2}\n', "record 2 has no 'x'", id="missing name"),
        pytest.param("\n\n", "is empty", id="empty"),
        pytest.param('{"x": 1}\n{"x": 2}, {"x": 3}\n', "line 2 is not valid JSON", id="two in a line"),
        pytest.param('{"x": 1},{"x": [{}\n{}]}\n', "line 1 is not valid JSON", id="one in two lines"),
        pytest.param('{"x":1},-1e999,{"x": [{}\n{}]}\n', "line 1 is not valid JSON", id="as if joined"),
        pytest.param('{"x":1},-Infinity,{"x": [{}\n{}]}\n', "line 1 is not valid JSON", id="joined by our own"),
        pytest.param('{"x": 1}\n{"x": 1, "x": 2}\n', "line 2 has the name .x. twice", id="a name twice"),
        pytest.param('{"x": 1}\n"x"\n', "record 2 is no object", id="a text"),
    ],
)
def test_what_is_refused_of_lines(text, message):
    with pytest.raises(DataError, match=message):
        open_table(text, is_lines=True).read()


@pytest.mark.all_quick
@pytest.mark.parametrize("size", [1, 7, 50, 1000])
@pytest.mark.parametrize("indent", [None, 1])
def test_pieces_of_any_size_are_read_alike(size, indent, is_lines, monkeypatch):
    monkeypatch.setattr("normcli.tensors.formats.json_items._TEXT_AT_ONCE", size)
    records = [{"s": "}, {" * (i % 3), "x": i / 4, "o": {"a": [i, {}]}} for i in range(60)]
    lines = "\n \n\n".join(map(json.dumps, records)) + "\n" * 60
    text = lines if is_lines else json.dumps(records, indent=indent) + " " * 60
    table = open_table(text, is_lines=is_lines, columns="x")
    values = table.read()[0]
    np.testing.assert_array_equal(values, [[i / 4] for i in range(60)])
    assert parse(write(table, values, is_lines=is_lines), is_lines) == records


@pytest.mark.parametrize(
    ("values", "written"),
    [
        pytest.param([[0.1, -0.0]], '{"x": 0.1, "y": -0.0}\n', id="floats"),
        pytest.param([[NAN, -np.inf]], '{"x": "nan", "y": "-inf"}\n', id="not finite"),
        pytest.param(
            [[1, 2**60], [-3, 0]], '{"x": 1, "y": 1152921504606846976}\n{"x": -3, "y": 0}\n', id="whole"
        ),
        pytest.param([[True, False]], '{"x": true, "y": false}\n', id="booleans"),
        pytest.param(np.float32([[0.1, 2.0]]), '{"x": 0.10000000149011612, "y": 2.0}\n', id="float32"),
    ],
)
def test_numbers_are_written_as_json(values, written):
    stream = io.BytesIO()
    write_records(stream, np.array(values), ("x", "y"), None, is_lines=True)
    assert stream.getvalue().decode() == written


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        pytest.param(b'{"x": 1}\n{"x": 2}\n', True, id="records"),
        pytest.param(b'{"x": 1}\n', True, id="one record"),
        pytest.param(b"[1, 2]\n[3, 4]\n", True, id="lists"),
        pytest.param(b"[[1, 2],\n[3, 4]]\n", False, id="one list over lines"),
        pytest.param(b"[[1, 2], [3, 4]]\n", False, id="one list"),
        pytest.param(b'{"normalized": [1]}\n', False, id="an answer"),
        pytest.param(b'{\n"normalized": [1]}\n', False, id="an answer over lines"),
    ],
)
def test_lines_are_told_from_one_value(head, expected):
    assert starts_like_lines(head) is expected


def test_numbers_that_pass_through_keep_their_digits(is_lines):
    cells = ['"x": 0.12345678901234567890123', '"y": 1e400', '"u": 10.10', '"v": -0', '"w": [1.50, {"k": 1E2}]']
    text = '{"a": 1, ' + ", ".join(cells) + "}"
    table = open_table(text + "\n" if is_lines else f"[{text}]", is_lines=is_lines, columns="a")
    written = write(table, [[2.0]], is_lines=is_lines)
    assert all(cell in written for cell in cells)
    assert write_csv(table, [[2.0]]).splitlines()[1].startswith("2.0,0.12345678901234567890123,1e400,10.10,-0,")


def test_half_a_surrogate_pair_stays_escaped_or_is_refused(is_lines):
    text = '{"a": 1, "h": "\\ud800x"}'
    table = open_table(text if is_lines else f"[{text}]", is_lines=is_lines, columns="a")
    assert r'"\ud800x"' in write(table, [[2.0]], is_lines=is_lines)
    with pytest.raises(DataError, match="half a surrogate pair"):
        write_csv(table, [[2.0]])


@pytest.mark.parametrize("name", ["a\0", "\ud800"])
def test_names_that_no_file_keeps_are_refused(name, is_lines):
    with pytest.raises(DataError, match="characters that no file can keep"):
        open_table(join([{name: 1}], is_lines), is_lines=is_lines)
