"""Formats for programs, always complete: strict JSON, JSON lines, CSV, and `--print` of one field."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TextIO

from normcli.tensors.formats.json_lists import join_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.documents.document import Document, View

_AT_ONCE = 8192
"""The number of lines that are written at once."""


def write_json(document: Document, stream: TextIO, view: View) -> None:
    """Write all there is as one object of strict JSON, on one line."""
    stream.writelines(format_json(document.data()))
    stream.write("\n")


def write_json_lines(document: Document, stream: TextIO, view: View) -> None:
    """Write an object for each record (for a norm, each group), a line each."""
    for record in document.records():
        stream.writelines(format_json(record))
        stream.write("\n")


def write_csv(document: Document, stream: TextIO, view: View) -> None:
    """Write a header, then a line for each row (for a norm, each value)."""
    csv.writer(stream, lineterminator="\n").writerows(document.rows())


def write_tsv(document: Document, stream: TextIO, view: View) -> None:
    """Write the same as csv, with tabs between the cells."""
    csv.writer(stream, delimiter="\t", lineterminator="\n").writerows(document.rows())


def write_fields(fields: Sequence[NDArray[Any]], stream: TextIO) -> None:
    """Write fields as columns with tabs between them, in C order; numbers read back to the same bits.

    Parameters
    ----------
    fields : sequence of ndarray
        One array or more, all with the same number of values.
    stream : TextIO
    """
    from normcli.tensors.pieces import expect, iterate_pieces
    from normcli.tensors.tables.delimited_writing import to_cell

    columns = [
        itertools.chain.from_iterable(
            map(to_cell, piece.tolist()) for piece in iterate_pieces(values, _AT_ONCE)
        )
        for values in fields
    ]
    lines = map("\t".join, zip(*columns, strict=True))
    advance = expect(fields[0].nbytes)
    while some := list(itertools.islice(lines, _AT_ONCE)):
        stream.write("\n".join(some) + "\n")
        advance(len(some) * fields[0].itemsize)


def format_json(value: Any) -> Iterator[str]:
    """Yield the pieces of a value's JSON text; the value may hold objects with a method `format_json`.

    Such an object (`NestedLists`) yields its own pieces. NaN and infinities raise `ValueError`.
    """
    if hasattr(value, "format_json"):
        yield from value.format_json()
    elif isinstance(value, Mapping):
        members = (([f"{json.dumps(key)}: "], format_json(member)) for key, member in value.items())
        yield from join_json(map(itertools.chain.from_iterable, members), "{}")
    elif isinstance(value, list | tuple) and value and isinstance(value[0], Mapping):
        yield from join_json(map(format_json, value))
    else:
        yield json.dumps(value, allow_nan=False)
