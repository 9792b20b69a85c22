from __future__ import annotations

import io
import json

import numpy as np
import pytest

from normcli.errors import DataError, UsageError
from normcli.tensors.formats.json_lists import parse_json, read_json, to_lists


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("text", "values", "dtype"),
    [
        pytest.param("5", 5, "int64", id="a number"),
        pytest.param("[]", [], "float64", id="empty"),
        pytest.param("[[],[]]", [[], []], "float64", id="empty rows"),
        pytest.param("[[1,2],[3,4]]", [[1, 2], [3, 4]], "int64", id="integers"),
        pytest.param("[1, 2.5]", [1, 2.5], "float64", id="floats"),
        pytest.param("[true, false]", [True, False], "bool", id="booleans"),
        pytest.param('[1, "nan", "inf", "-inf"]', [1, np.nan, np.inf, -np.inf], "float64", id="not finite, spelt"),
        pytest.param("[NaN, Infinity]", [np.nan, np.inf], "float64", id="not finite, as Python spells it"),
        pytest.param('{"schema": "normcli/1", "normalized": [[1.5]]}', [[1.5]], "float64", id="our own output"),
        pytest.param("[100000000000000000000000000]", [1e26], "float64", id="beyond 64 bits"),
    ],
)  # fmt: skip
def test_what_is_read(text, values, dtype):
    np.testing.assert_array_equal(parse_json(text, "x.json").values, np.array(values, dtype), strict=True)


def test_a_byte_order_mark_is_no_matter():
    np.testing.assert_array_equal(read_json(io.BytesIO(b"\xef\xbb\xbf[1]"), "x.json").values, [1])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_our_own_output_is_read_to_the_bit_with_its_dtype(dtype):
    values = np.frombuffer(np.random.default_rng(0).bytes(8 * 2000), dtype=dtype)
    text = json.dumps({"normalized": to_lists(values), "dtype": dtype}, allow_nan=False)
    np.testing.assert_array_equal(parse_json(text, "x.json").values, values, strict=True)


def test_another_array_of_an_object_is_picked_by_its_key():
    np.testing.assert_array_equal(parse_json('{"gamma": [1, 2]}', "x.json", "gamma").values, [1, 2])
    for text in ("[1]", '{"normalized": [1]}'):
        with pytest.raises(UsageError, match="no array 'gamma'"):
            parse_json(text, "x.json", "gamma")


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", "is empty", id="empty"),
        pytest.param("[[1,2],[3]]", r"ragged: a list of 1 at \[1\], where one of 2", id="ragged"),
        pytest.param("[[1,2],3]", r"ragged: 3 at \[1\], where a list of 2", id="ragged: a number"),
        pytest.param("[1,[2]]", r"ragged: a list at \[1\], where a number", id="ragged: a list"),
        pytest.param('[1,"a"]', r'holds "a" at \[1\]', id="text"),
        pytest.param('["1"]', r'holds "1" at \[0\]', id="a number in quotes"),
        pytest.param("[[1],[null]]", r"holds null at \[1\]\[0\]", id="null"),
        pytest.param("[{}]", r"holds an object at \[0\]", id="object"),
        pytest.param('"abc"', 'holds "abc" at the top', id="bare text"),
        pytest.param('{"a": [1], "a": [2]}', "an object has the name 'a' twice", id="a name twice"),
        pytest.param("[1, 2", "not valid JSON at line 1, column 6", id="unterminated"),
        pytest.param("[" * 5000 + "]" * 5000, "nested too deeply", id="5000 deep"),
        pytest.param("[" * 64 + "1" + "]" * 64, "nested too deeply; .* at most 32 axes", id="64 deep"),
        pytest.param("[" * 33 + "1" + "]" * 33, "nested too deeply", id="33 deep"),
        pytest.param('{"a": 1}', "without 'normalized'", id="another object"),
        pytest.param("[1" + "0" * 400 + "]", r"an integer beyond float64 at \[0\]", id="too large an integer"),
        pytest.param("[" + "9" * 5000 + "]", "too many digits", id="too long an integer"),
    ],
)
def test_what_is_refused(text, message):
    with pytest.raises(DataError, match=message):
        parse_json(text, "x.json")


def test_what_is_no_text_is_refused():
    with pytest.raises(DataError, match="byte 1 is not UTF-8"):
        read_json(io.BytesIO(b"[\xff]"), "x.json")


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("text", "dtype", "note"),
    [
        pytest.param("[9007199254740993, 3]", "int64", None, id="int64"),
        pytest.param("[18446744073709551615, 3]", "uint64", None, id="uint64"),
        pytest.param("[9007199254740992, 0.5]", "float64", None, id="float64 holds it"),
        pytest.param("[[0.5], [9007199254740993]]", "float64", "9007199254740993 at [1][0]", id="a fraction"),
        pytest.param("[18446744073709551615, -1]", "float64", "18446744073709551615 at [0]", id="both ends"),
        pytest.param('["nan", 9007199254740993]', "float64", "9007199254740993 at [1]", id="nan"),
        pytest.param("36893488147419103233", "float64", "36893488147419103233 at the top", id="beyond uint64"),
    ],
)
def test_whole_numbers_are_what_they_are_or_it_is_said(text, dtype, note):
    parsed = parse_json(text, "x.json")
    assert parsed.values.dtype == dtype
    assert parsed.note is None if note is None else parsed.note.startswith(f"{note} is rounded")
