"""Parsing long JSON text in parts: values of JSON Lines, or objects of one array."""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, BinaryIO

from normcli.errors import DataError
from normcli.printable import shorten
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_TEXT_AT_ONCE = 1 << 18
"""The number of characters that are read at a time."""

_LINE_END = "-Infinity"
"""A word set between lines that are parsed together; lines that contain it are parsed one by one."""

_AT_LINE_END = object()
"""The object that `_LINE_END` is parsed as; no other text is parsed as it."""

_BLANK = " \t\n\r"
_FILLED = re.compile(f"[^{_BLANK}]")


def read_lines(stream: BinaryIO, name: str, decoders: Decoders) -> Iterator[list[Any]]:
    """Yield lists of values of JSON Lines, in order, one value for each line that is not blank.

    Parameters
    ----------
    stream : BinaryIO
        A seekable stream, which is read from its start.
    name : str
        The file's name in messages.
    decoders : Decoders
        The parsers: `AS_NUMBERS` or `AS_WRITTEN`.

    Raises
    ------
    DataError
        If a line is no JSON, or the text is not UTF-8.
    """
    stream.seek(0)
    text = io.TextIOWrapper(stream, "utf-8-sig", newline="\n")
    number = 0
    try:
        while piece := text.read(_TEXT_AT_ONCE):
            lines = (piece + text.readline()).removesuffix("\n").split("\n")
            if found := _parse_lines(lines, number + 1, name, decoders):
                yield found
            number += len(lines)
    except UnicodeDecodeError as error:
        raise DataError(f"{name} is no JSON: behind line {number} it is not UTF-8 text") from error
    finally:
        text.detach()


def _parse_lines(lines: Sequence[str], first: int, name: str, decoders: Decoders) -> list[Any]:
    """Return the values of the lines that are not blank, in order.

    All lines are parsed together; if that fails, one by one.

    Parameters
    ----------
    lines : sequence of str
    first : int
        The number of the first line.
    name : str
        The file's name in messages.
    decoders : Decoders

    Raises
    ------
    DataError
        If a line is no JSON; the message has its number.
    """
    texts = [line for line in lines if line.strip(_BLANK)]
    whole = f",{_LINE_END},".join(texts)
    ends = [_AT_LINE_END] * (len(texts) - 1)
    if whole.count(_LINE_END) == len(ends):
        with contextlib.suppress(ValueError, RecursionError):
            found: list[Any] = decoders.lines.decode(f"[{whole}]")
            # If every second value is the end of a line, none of these ends is within a value.
            if found[1::2] == ends:
                return found[::2]
    found = []
    for number, line in enumerate(lines, first):
        if line.strip(_BLANK):
            try:
                found.append(decoders.one.decode(line))
            except (ValueError, RecursionError) as error:
                raise DataError(f"{name}, line {number} {_explain(error)}") from error
    return found


def read_array(stream: BinaryIO, name: str, decoders: Decoders) -> Iterator[list[Any]]:
    """Yield the items of a JSON array of objects, in order, in lists of some items each.

    Parameters
    ----------
    stream : BinaryIO
        A seekable stream, which is read from its start; the text begins with `[`.
    name : str
        The file's name in messages.
    decoders : Decoders
        The parsers: `AS_NUMBERS` or `AS_WRITTEN`.

    Raises
    ------
    DataError
        If the text is no such array, or not UTF-8.
    """
    stream.seek(0)
    text = io.TextIOWrapper(stream, "utf-8-sig", newline="\n")
    number = 0
    try:
        buffer = text.read(_TEXT_AT_ONCE)
        place = _skip_blanks(buffer, 0) + 1
        while True:
            items, end, problem = _parse_items(buffer, place, decoders.one)
            if end == len(buffer):  # the last item, or what is behind it, may go on
                more = text.read(max(_TEXT_AT_ONCE, len(buffer)))
                if not more:
                    raise DataError(f"{name} {_explain(problem)} behind record {number}") from problem
                buffer, place = buffer[place:] + more, 0
                continue
            number += len(items)
            yield items
            if buffer[end] == "]" and not (buffer[end + 1 :] + text.read(_TEXT_AT_ONCE)).strip(_BLANK):
                return
            if buffer[end] != ",":
                raise DataError(f"{name} is not valid JSON behind record {number}")
            place = end + 1
    except UnicodeDecodeError as error:
        raise DataError(f"{name} is no JSON: behind record {number} it is not UTF-8 text") from error
    finally:
        text.detach()


def _parse_items(buffer: str, place: int, decoder: json.JSONDecoder) -> tuple[list[Any], int, Exception | None]:
    """Parse the complete items of an array in a buffer, from the index `place` on.

    They are parsed together up to the last brace, if that closes an item; otherwise one by one.

    Returns
    -------
    list
        The items.
    int
        The index of the next character that is not blank; the buffer's length if no item is complete.
    Exception or None
        The parser's error where it stopped, which counts if the file ends there; None without one.
    """
    last = buffer.rfind("}") + 1
    if last > place:
        with contextlib.suppress(ValueError, RecursionError):
            items: list[Any] = decoder.decode(f"[{buffer[place:last]}]")
            return items, _skip_blanks(buffer, last), None
    items = []
    end = len(buffer)
    while True:
        try:
            item, behind = decoder.raw_decode(buffer, _skip_blanks(buffer, place))
        except (ValueError, RecursionError) as error:
            return items, end, error
        items.append(item)
        end = _skip_blanks(buffer, behind)
        if buffer[end : end + 1] != ",":
            return items, end, None
        place = end + 1


def _skip_blanks(text: str, place: int) -> int:
    """Return the index of the first character at or after `place` that is not blank, or the text's length."""
    found = _FILLED.search(text, place)
    return found.start() if found else len(text)


def _explain(problem: Exception | None) -> str:
    """Return the rest of a message, after a name, that says why a JSON text cannot be parsed."""
    if isinstance(problem, RecursionError):
        return "is nested too deeply"
    if isinstance(problem, ValueError) and not isinstance(problem, json.JSONDecodeError):
        return str(problem) if isinstance(problem, RepeatedNameError) else "holds a number of too many digits"
    return "is not valid JSON"


class RepeatedNameError(ValueError):
    """The error for a JSON object that has a name twice."""


def make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object as a dict, for `object_pairs_hook`; raise `RepeatedNameError` for a double name."""
    made = dict(pairs)
    if len(made) != len(pairs):
        name = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise RepeatedNameError(f"has the name {shorten(name)!r} twice")
    return made


class Digits(str):
    """The text of a number, digit for digit as it is written in JSON."""


class Decoders(NamedTuple):
    """Two JSON parsers: `one` for a single value, `lines` for several lines joined by `_LINE_END`."""

    one: json.JSONDecoder
    lines: json.JSONDecoder


def _make_decoders(**numbers: Any) -> Decoders:
    """Return two parsers; `numbers` are arguments of `JSONDecoder`, such as `parse_int`."""
    one = json.JSONDecoder(object_pairs_hook=make_object, **numbers)
    lines = json.JSONDecoder(
        object_pairs_hook=make_object,
        parse_constant=lambda word: _AT_LINE_END if word == _LINE_END else float(word),
        **numbers,
    )
    return Decoders(one, lines)


AS_NUMBERS = _make_decoders()
AS_WRITTEN = _make_decoders(parse_float=Digits, parse_int=Digits)
"""Parsers that return numbers as `Digits`, for cells that are written again unchanged."""
