"""The records of a delimited file, a line each (or several, with line ends in quotes), split into cells."""

from __future__ import annotations

import io
import re
from functools import lru_cache
from typing import TYPE_CHECKING, BinaryIO

from normcli.errors import DataError, UsageError
from normcli.printable import shorten

if TYPE_CHECKING:
    from collections.abc import Iterator

DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|"}
"""Name → delimiter; the first that splits all of the first records into equally many cells is used."""

_BYTES_AT_ONCE = 1 << 20
"""The number of bytes read at a time."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_LONGEST_RECORD = 1 << 20
"""The most characters of a record with line ends in quotes."""


class LineRecords:
    """Consecutive records of a file, which are split into texts only on demand.

    Parameters
    ----------
    line : int
        The number of the first record's first line, from 1.
    data : bytes or None
        The bytes of the records; None if they are split already.
    texts : list of str or None
        The records without their line ends; None if they are still to be split from `data`.
    delimiter : str
        The delimiter, by which quotes in `data` are told from others.
    """

    def __init__(
        self, line: int, data: bytes | None, texts: list[str] | None = None, delimiter: str = ","
    ) -> None:
        self.line, self.data, self._texts, self._delimiter = line, data, texts, delimiter

    @property
    def texts(self) -> list[str]:
        """The texts of the records without their line ends."""
        if self._texts is None:
            text = (self.data or b"").decode()
            if '"' in text:
                self._texts, _ = _join_quoted(text, self._delimiter)
                return self._texts
            if "\r" in text:
                text = text.replace("\r\n", "\n").replace("\r", "\n")
            self._texts = text.removesuffix("\n").split("\n") if text else []
        return self._texts

    @property
    def has_quotes(self) -> bool:
        """Whether there is a quote in some record."""
        return any('"' in text for text in self.texts) if self.data is None else b'"' in self.data

    def skip(self, count: int) -> LineRecords:
        """Return the records without the first `count`; empty if there are no more."""
        lines = [] if self.data is None or b"\r" in self.data else self.data.split(b"\n", count)
        if lines and not any(b'"' in line for line in lines[:count]):
            behind = lines[count] if len(lines) > count else b""
            return LineRecords(self.line + count, behind, delimiter=self._delimiter)
        line = self.line + sum(1 + count_ends(text) for text in self.texts[:count])
        return LineRecords(line, None, self.texts[count:])


def iterate_records(stream: BinaryIO, name: str, delimiter: str) -> Iterator[LineRecords]:
    """Yield the records of a file from its start, a MiB or so at a time.

    Raises
    ------
    DataError
        If the file is not UTF-8, or a quote never closes.
    """
    stream.seek(0)
    line, rest = 1, stream.read(len(_BYTE_ORDER_MARK)).removeprefix(_BYTE_ORDER_MARK)
    while True:
        more = stream.read(max(_BYTES_AT_ONCE, len(rest)))
        data = rest + more
        end = _find_last_end(data) if more else len(data)
        data, rest = data[:end], data[end:]
        if not data:
            if not more:
                return
            continue
        if not data.isascii():
            _require_text(data, line, name)
        text = data.decode() if b'"' in data else ""
        if _ends_outside_quotes(text, delimiter):
            yield LineRecords(line, data, delimiter=delimiter)
            line += count_ends(data)
            continue
        texts, opened = _join_quoted(text, delimiter)
        whole = text.removesuffix(opened).encode()
        if opened and (not more or len(opened) > _LONGEST_RECORD):
            line += count_ends(whole)
            raise DataError(f"{name} is no text table: a quote opens in line {line} and never closes")
        if texts:
            yield LineRecords(line, whole, texts, delimiter)
        line += count_ends(whole)
        rest = opened.encode() + rest


def _require_text(data: bytes, line: int, name: str) -> None:
    """Raise `DataError` with the number of the first line that is not UTF-8; the data begin at line `line`."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line += count_ends(data[: error.start])
        raise DataError(f"{name} is no text table: line {line} is not UTF-8") from error


def _ends_outside_quotes(text: str, delimiter: str) -> bool:
    """Whether the last quote that opens in a text closes again; the text begins outside quotes."""
    closing = _match_quoted(delimiter).findall(text)
    return not closing or bool(closing[-1])


def _join_quoted(text: str, delimiter: str) -> tuple[list[str], str]:
    """Return the complete records of a text, and the rest: an unfinished record, whose quote is still open."""
    records: list[str] = []
    opened: list[str] = []
    whole, continued = _match_lines(delimiter)
    for line in io.StringIO(text, newline=""):
        if not ((continued if opened else whole).fullmatch(line) if '"' in line else not opened):
            opened.append(line)
        elif opened:
            records.append("".join([*opened, line]).rstrip("\r\n"))
            opened = []
        else:
            records.append(line.rstrip("\r\n"))
    return records, "".join(opened)


@lru_cache
def _match_lines(delimiter: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return two patterns of a line that ends outside quotes: one that begins outside them, one inside."""
    between, cell, closing = _match_cells(delimiter)
    return re.compile(f"{cell}(?:{between}{cell})*+"), re.compile(f"{closing}(?:{between}{cell})*+")


@lru_cache
def _match_quoted(delimiter: str) -> re.Pattern[str]:
    """Return the pattern of quotes at the start of a cell and all within; its group is the closing quote."""
    return re.compile(rf'"(?<![^{re.escape(delimiter)}\r\n]")(?:[^"]++|"")*+("?)')


@lru_cache
def _match_first_or_next(delimiter: str) -> re.Pattern[str]:
    between, cell, _ = _match_cells(delimiter)
    return re.compile(rf"(?:\A|{between})({cell})")


def _match_cells(delimiter: str) -> tuple[str, str, str]:
    """Return the patterns of a delimiter, of a cell, and of the rest of a cell from inside its quotes."""
    between = re.escape(delimiter)
    closing = f'(?:[^"]|"")*+"[^{between}]*+'
    return between, f'(?:"{closing}|(?!")[^{between}]*+)', closing


def split_raw(record: str, delimiter: str) -> list[str]:
    """Return the cells of a record, which may have quotes, with these quotes."""
    return _match_first_or_next(delimiter).findall(record)


def _find_last_end(data: bytes) -> int:
    """Return the length of the complete lines at the start of a piece of a file.

    A carriage return at the end does not count: a newline may follow it in the next piece.
    """
    return max(data.rfind(b"\n"), data.rfind(b"\r", 0, len(data) - 1)) + 1


def count_ends(text: str | bytes) -> int:
    """Return the number of line ends in a text: newlines, carriage returns, or pairs of these."""
    data = text.encode() if isinstance(text, str) else text
    others = data.count(b"\r") - data.count(b"\r\n") if b"\r" in data else 0
    return data.count(b"\n") + others


def quote(cell: str, delimiter: str) -> str:
    """Return a cell as it is written to a file: in quotes if it would be read back differently without."""
    if any(character in cell for character in (delimiter, '"', "\n", "\r")) or cell != cell.strip():
        return '"' + cell.replace('"', '""') + '"'
    return cell


def unquote(cell: str) -> str:
    """Return the text of a cell without its quotes."""
    if not cell.startswith('"'):
        return cell
    inside, _, behind = cell[1:].rpartition('"')
    return inside.replace('""', '"') + behind


def is_blank(record: str, delimiter: str) -> bool:
    """Whether a record is blank, without any delimiter."""
    return not record.strip() and delimiter not in record


def read_name(cell: str) -> str:
    """Return the column name in a cell of a header, without its quotes, or without outer spaces."""
    return unquote(cell) if cell.startswith('"') else cell.strip()


def find_delimiter(word: str) -> str:
    """Return the delimiter for an option's value: a name in `DELIMITERS`, or one character.

    Raises
    ------
    UsageError
        If the value is neither, or the character is a letter, a digit, a quote or a line end.
    """
    if word.lower() in DELIMITERS:
        return DELIMITERS[word.lower()]
    character = "\t" if word == r"\t" else word
    if len(character) != 1 or character in '"\r\n\0' or character.isalnum():
        raise UsageError(
            f"--delimiter {shorten(word)!r} is no delimiter; give {', '.join(DELIMITERS)} or one character"
        )
    return character
