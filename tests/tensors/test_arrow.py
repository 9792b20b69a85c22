"""What pyarrow reads and writes, held against what is read and written without it."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys

import numpy as np
import pytest

from normcli.errors import DataError
from normcli.tensors.tables import arrow, delimited
from normcli.tensors.tables.delimited import Lines
from normcli.tensors.tables.delimited_writing import to_cell, write_delimited
from normcli.tensors.tables.table_options import TableOptions
from normcli.tensors.tables.tables import TextError

pytest.importorskip("pyarrow")

ODD_CELLS = [
    "1", "-2.5", "+1", ".5", "5.", "-.5", ".", "-", "+", "", " ", " 1", "1 ", "\t1", "1 2", "1_000", "1e5", "1E+05", "1e", "e5", "1e+",
    "0x1F", "0x1p3", "0b1", "1,5", "1.5.2", "1..2", "--1", "+-1", "- 1", "1e400", "-1e400", "1e-400", "-1e-400", "5e-324", "2e-324",
    "inf", "-inf", "+inf", "Infinity", "INF", "-infinity", "infinit", "in", "nan", "NaN", "-nan", "+nan", "nAn", "nan()", "nan(1)",
    "-nan(ind)", "1.#IND", "1.#QNAN", "#N/A", "N/A", "NA", "na", "n/a", "Null", "NULL", "none", "None", "<NA>", "<na>", "true", "TRUE",
    "false", "x", "ann", "1f", "1d", "1L", "1j", "1%", "$1", "(1)", "'1'", "\\1", "1\\", "#1", "1;2", "1|2", "\x00", "1\x00", "\x0b1",
    "\x1c1", "\u00a01", "\u0661", "\uff11", "\ufeff1", "é", "−1", "9007199254740991", "9007199254740992", "9007199254740993",
    "123456789012345678901234567890", "0.1" + "0" * 400, "0" * 400 + "1", "1" + "0" * 400, "00012", "-0", "-0.0", "0e0", "1e0000000005",
    "4.35", "2.2250738585072011e-308", "179769313486231580793728971405301e276", "1e23", "8.5e22", "9007199254740993e-1",
]  # fmt: skip
"""What a cell may hold: of all that somebody once took for a number, and all that somebody once took for none."""

QUOTED = [
    '"{0}"', '"{0}"', '"{0}"', '"{0}{1}"', '"{1}"', '"{0}\n"', '"\r{0}"', '"{0}\r\n\n{0}"', '""', '"{0}""x"', '"""{0}"""', '{0}"', '{0}"{0}',
    ' "{0}"', '"{0}" ', '"{0}"{0}', '"{0}"x"', '""{0}"', '"{0}""', '"{0}', '"{0}"{1}"{0}"', '"{0}{1}"{0}"', '"\n"', '"{0}""\n{1}"',
]  # fmt: skip
"""How quotes may stand in a cell ({0}), with a delimiter ({1})."""

ENDS = ["\n", "\r\n", "\r", "\n\n", "\n \n", "\n\r", "\r\n\r\n"]


def read_without(data: bytes, options: TableOptions, chosen):
    """Return what is read without pyarrow, or None if it is refused."""
    try:
        lines = Lines(io.BytesIO(data), "x.csv", options, ",")
        blocks = [block.values for block in lines.read_blocks(chosen, np.float64)]
    except (DataError, TextError):
        return None
    return np.concatenate(blocks).tobytes() if blocks else b""


def make_tables(seed, quoted=0.0):
    """Yield 500 odd tables, each with a generator and the options to read it; empty ones are left out.

    `quoted` is the part of the cells that have quotes.
    """
    generator = np.random.default_rng(seed)
    for _ in range(500):
        delimiter, decimal = [*[(sign, ".") for sign in ",;\t|"], (";", ",")][generator.integers(5)]
        data = make_table(generator, delimiter, quoted)
        options = TableOptions(delimiter=delimiter, decimal=decimal, header=False)
        with contextlib.suppress(DataError):  # is it empty?
            yield data, options, Lines(io.BytesIO(data), "x.csv", options, ","), generator


def make_table(generator, delimiter: str, quoted: float) -> bytes:
    width, rows = generator.integers(2, 5), generator.integers(1, 6)
    odd = generator.choice([0.0, 0.1, 0.5])
    end = generator.choice(ENDS)
    text = "\ufeff" if generator.random() < 0.05 else ""
    for _ in range(rows):
        width_here = width + (generator.integers(-1, 2) if generator.random() < 0.05 else 0)
        cells = [
            str(generator.choice(ODD_CELLS)) if generator.random() < odd else repr(generator.normal())
            for _ in range(width_here)
        ]
        for place in np.flatnonzero(generator.random(width_here) < quoted).tolist() if quoted else []:
            cells[place] = str(generator.choice(QUOTED)).format(cells[place], delimiter)
        text += delimiter.join(cells) + (end if generator.random() < 0.9 else str(generator.choice(ENDS)))
    return text.encode()[: -1 if generator.random() < 0.1 else None]


@pytest.mark.parametrize("quoted", [0.0, 0.2])
def test_odd_tables_are_read_as_cell_by_cell_or_not_at_all(quoted, monkeypatch):
    monkeypatch.setattr(arrow, "LEAST_BYTES", 0)
    taken = 0
    for data, options, lines, generator in make_tables(0, quoted):
        width = lines.width
        chosen = tuple(sorted(generator.permutation(width)[: generator.integers(1, width + 1)].tolist()))
        parse = arrow.find_parser(len(data), width, chosen, options.delimiter, options.decimal)
        values = None if parse is None else parse(data)
        with monkeypatch.context() as patched:
            patched.setattr(delimited, "find_parser", lambda *_: None)
            without = read_without(data, options, chosen)
            patched.setattr(Lines, "_parse_quickly", lambda *_: None)
            expected = read_without(data, options, chosen)
        assert without == expected, data
        if values is not None:
            assert values.tobytes() == expected, data
            taken += 1
    assert taken > (50 if quoted else 100)


@pytest.mark.parametrize("quoted", [0.0, 0.2])
def test_texts_of_odd_tables_are_those_of_their_cells(quoted, monkeypatch):
    taken = 0
    for data, _, lines, _ in make_tables(2, quoted):
        places = range(lines.width)
        with monkeypatch.context() as patched:
            patched.setattr(delimited, "find_splitter", lambda *_: None)
            try:
                expected = [list(texts) for texts in zip(*lines.read_columns(places), strict=True)]
            except DataError:  # ragged
                continue
        found = [list(texts) for texts in zip(*lines.read_columns(places), strict=True)]
        taken += any(not isinstance(texts, list) for column in found for texts in column)
        assert [[list(map(str, texts)) for texts in column] for column in found] == expected, data
    assert taken > (50 if quoted else 100)


def write_in_many_ways(generator, count: int) -> list[str]:
    """Return doubles as text: all bits, usual sizes, subnormal ones, halves between two doubles, many digits."""
    numbers = generator.integers(0, 2**64, count, dtype=np.uint64).view(np.float64)
    numbers = np.concatenate([numbers[np.isfinite(numbers)], generator.normal(size=count)]).tolist()
    texts = [form(number) for number in numbers for form in (repr, "{:.17g}".format, "{:.6f}".format)]
    texts += [f"{number:.{generator.integers(0, 25)}e}" for number in numbers[:count]]
    small = generator.integers(1, 2**52, count).astype(np.uint64).view(np.float64)
    texts += map(repr, small.tolist())
    for _ in range(count):  # the exact decimal of a half, and of what lies just beside it
        whole, power = 2 * int(generator.integers(2**52, 2**53)) + 1, int(generator.integers(1, 60))
        half = str(whole * 5**power)
        texts += [f"{half}e-{power}", f"{half}0000000000000000001e-{power + 19}"]
        texts.append(f"{half[:-1]}4{'9' * 20}e-{power + 20}")
    return texts


@pytest.mark.slow
def test_doubles_in_many_spellings_have_the_same_bits():
    texts = [text for text in write_in_many_ways(np.random.default_rng(0), 2000) if abs(float(text)) < 2**53]
    texts = texts[: len(texts) // 2 * 2]
    parse = arrow.find_parser(arrow.LEAST_BYTES, 2, (0, 1), ",", ".")
    lines = "".join(f"{a},{b}\n" for a, b in zip(texts[::2], texts[1::2], strict=True))
    np.testing.assert_array_equal(
        parse(lines.encode()).reshape(-1).view(np.uint64),
        np.array([float(text) for text in texts]).view(np.uint64),
    )


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param((arrow.LEAST_BYTES - 1, 2, (0,), ",", "."), id="a small file"),
        pytest.param((arrow.LEAST_BYTES, 1, (0,), ",", "."), id="one column, whose empty lines are rows"),
        pytest.param((arrow.LEAST_BYTES, 100000, (0,), ",", "."), id="too many columns to gain anything"),
        pytest.param((arrow.LEAST_BYTES, 2, (0,), "-", "."), id="a delimiter that may be in a number"),
        pytest.param((arrow.LEAST_BYTES, 2, (0,), "é", "."), id="a delimiter of several bytes"),
    ],
)
def test_what_it_does_not_take(arguments):
    assert arrow.find_parser(*arguments) is None


def test_what_it_does_not_format():
    values = np.zeros((arrow.LEAST_VALUES, 2))
    assert arrow.find_formatter(values[1:], ",", str) is not None
    assert arrow.find_formatter(values[: len(values) // 2 - 1], ",", str) is None
    assert arrow.find_formatter(values.reshape(-1, 512), ",", str) is None
    assert arrow.find_formatter(values.astype(np.int64), ",", str) is None
    assert arrow.find_formatter(values, "-", str) is None


@pytest.mark.parametrize("text", ["1,9007199254740993\n", "\ufeff1,2\n", "1,2\n\ufeff3,4\n"])
def test_texts_that_it_does_not_take(text):
    """Of integers that may be rounded, and of a byte order mark, which is none within a file."""
    parse = arrow.find_parser(arrow.LEAST_BYTES, 2, (0, 1), ",", ".")
    assert parse(b"1,9007199254740991\n") is not None
    assert parse(text.encode()) is None


def test_without_pyarrow_there_is_no_parser_and_no_formatter(monkeypatch):
    values = np.zeros((arrow.LEAST_VALUES, 2))
    assert arrow.find_parser(arrow.LEAST_BYTES, 2, (0,), ",", ".") is not None
    assert arrow.find_formatter(values, ",", str) is not None
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert arrow.find_parser(arrow.LEAST_BYTES, 2, (0,), ",", ".") is None
    assert arrow.find_formatter(values, ",", str) is None


NUMBERS = np.random.default_rng(0)
USUAL = NUMBERS.normal(size=(4000, 3))
FEW = NUMBERS.random((4000, 3)) < 0.01
SPREAD = NUMBERS.normal(size=(4000, 3)) * 10.0 ** NUMBERS.integers(-5, 2, (4000, 3))


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(SPREAD, id="many small ones"),
        pytest.param(np.where(FEW, SPREAD / 1e5, USUAL), id="small ones among them"),
        pytest.param(np.where(FEW, SPREAD * 1e12, USUAL), id="large ones among them"),
        pytest.param(np.where(FEW, np.round(USUAL * 5), USUAL), id="whole ones among them"),
        pytest.param(np.where(FEW, np.nan, USUAL), id="NaN among them"),
        pytest.param(np.where(FEW, -np.inf, USUAL), id="infinities among them"),
        pytest.param(NUMBERS.integers(0, 2**64, (4000, 3), dtype=np.uint64).view(np.float64), id="all bits"),
        pytest.param(10.0 ** NUMBERS.uniform(-5, 17, (4000, 3)), id="at the ends of the usual range"),
        pytest.param(USUAL.astype(np.float32), id="float32"),
        pytest.param(np.asfortranarray(USUAL), id="in another order"),
        pytest.param(np.arange(12000).reshape(-1, 3), id="whole numbers"),
        pytest.param(USUAL > 0, id="booleans"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_the_same_text_is_written(values, delimiter, monkeypatch):
    def write() -> bytes:
        stream = io.BytesIO()
        write_delimited(stream, values, None, None, delimiter)
        return stream.getvalue()

    expected = write()
    cells = [to_cell(value) for value in values[7].tolist()]
    assert expected.decode().splitlines()[7].split(delimiter) == cells
    monkeypatch.setattr(arrow, "LEAST_VALUES", 0)
    assert write() == expected


@pytest.mark.slow
def test_pandas_is_not_imported(tmp_path):
    rows = NUMBERS.normal(size=(arrow.LEAST_BYTES // 40, 3))
    rows[::100, 1] = np.nan
    with (tmp_path / "x.csv").open("wb") as stream:
        write_delimited(stream, rows, None, None, ",")
    code = (
        "import sys; from normcli.cli.run import run\n"
        "run(['zscore', '-i', 'x.csv', '-o', 'y.csv', '-q']); print('pandas' in sys.modules, 'pyarrow' in sys.modules)"
    )
    said = subprocess.check_output([sys.executable, "-c", code], text=True, cwd=tmp_path)
    assert said.split()[-2:] == ["False", "True"]


def test_records_with_quotes_are_read_by_it(monkeypatch):
    """A comma or a line end in quotes, in a column that is left out, once made the whole file slow."""
    monkeypatch.setattr(arrow, "LEAST_BYTES", 0)
    monkeypatch.delattr(Lines, "_parse_quickly")
    data = b"id,note,x,y\n" + b'1,"late, slow","2.5",3\n2,"a ""b""\n\nc",,4\n' * 50000
    lines = Lines(io.BytesIO(data), "x.csv", TableOptions(), ",")
    values = np.concatenate([block.values for block in lines.read_blocks((2, 3), np.float64)])
    np.testing.assert_array_equal(values, np.tile([[2.5, 3], [np.nan, 4]], (50000, 1)))
