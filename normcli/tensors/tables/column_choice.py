"""The choice of a table's columns; their names, matched, and listed in messages."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from normcli.errors import DataError, UsageError
from normcli.printable import format_count, shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from normcli.tensors.tables.table_options import TableOptions
    from normcli.tensors.tables.tables import FileTable, Rows


_NAMED = r"""\s*(?:("(?:[^"]|"")*")|([^,"][^,]*))\s*(?:,|$)"""
"""A name in a list of names separated by commas, in quotes if it contains a comma."""

_PLACES = r"([0-9]+)(?:-([0-9]+))?"
"""A column's number, or a range of numbers: `2-5`."""

_LISTED = 12
"""The most columns that a message lists."""

UNNAMED = "its columns have no names: they are taken to be {}"
"""The note on a table or an array without column names, where names are wanted."""


_TAKING_ALL = ("--columns", "--exclude")
"""The options for which a name means all columns of the name; `FILE:COLUMN` means a single one."""


def choose_columns(rows: Rows, options: TableOptions) -> tuple[tuple[int, ...], str | None]:
    """Return the indices of the columns that make up the tensor, and a note, or None.

    The note says that columns are wanted by name (`options.wanted`) and the table has no names, or that rows
    are grouped by one of the columns. `rows.is_picked` is set in place.

    Raises
    ------
    UsageError
        If an option names a column that does not exist, both `columns` and `exclude` are given, or no column is
        left.
    DataError
        If the columns' names are not the wanted ones, or a name has characters that no file can keep.
    """
    for name in rows.names or ():
        if "\0" in name or (not name.isprintable() and name.encode(errors="replace").decode() != name):
            raise DataError(f"{rows.name}: the name {shorten(name)!r} has characters that no file can keep")
    if options.columns is not None and options.exclude is not None:
        raise UsageError("--columns and --exclude each say which columns are worked on; give one of them")
    by = () if options.by is None else find_grouping(rows, options.by)
    chosen = tuple(place for place in range(rows.width) if place not in by)
    rows.is_picked = options.columns is not None or bool(options.takes_wanted and options.wanted)
    if options.takes_wanted and {options.columns, options.exclude} == {None}:
        names, wanted = list(rows.names or ()), options.wanted or ()
        if all(names.count(name) == 1 for name in wanted):
            chosen = tuple(map(names.index, wanted)) or chosen
        elif not {*wanted} <= {*names}:  # others may be there, and are no part of what is wrong
            chosen = tuple(place for place in chosen if names and names[place] in wanted) or chosen
    if options.columns is not None:
        chosen = _find_places(rows, options.columns, options.columns_source)
    elif options.exclude is not None:
        left_out = _find_places(rows, options.exclude, "--exclude")
        chosen = tuple(place for place in chosen if place not in left_out)
    if not chosen:
        raise UsageError(f"{rows.name}: no column is left to work on")
    note, grouping = None, [name_column(rows, place) for place in chosen if place in by]
    if grouping:
        note = f"rows are grouped by {list_names(grouping)}: each group has one value there"
    if options.wanted is None:
        return chosen, note
    try:
        chosen, unnamed = match_columns(rows, chosen, options.wanted, options.columns_source)
    except DataError as error:
        held = tuple(dict.fromkeys(name for name in options.wanted if name in (rows.names or ())))
        if not options.takes_wanted or not held or {*held} == {*options.wanted}:
            raise
        import shlex  # on use: a small calculation imports this file

        raise DataError(f"{error}; --columns {shlex.quote(join_names(held))} takes that alone") from error
    return chosen, "; ".join(filter(None, (note, unnamed))) or None


def find_grouping(rows: Rows, text: str) -> tuple[int, ...]:
    """Return the indices of the columns by which rows are grouped.

    `text` lists their names or numbers from 0, separated by commas (`--by`), or is the name of a single column.

    Raises
    ------
    UsageError
        If a column does not exist or is named twice, or several columns have a name.
    """
    names = rows.names or ()
    wanted = [text] if text in names else [name.strip() for name in split_names(text, "--by")]
    numbers = {str(place): place for place in range(rows.width)}
    places = {name: names.index(name) if name in names else numbers.get(name) for name in wanted or [text]}
    found = [*places.values()]
    for name, place in places.items():
        if place is None:
            known = (
                ", ".join(map(shorten, names[:_LISTED]))
                or f"no names of columns, but numbers from 0 to {rows.width - 1}"
            )
            raise UsageError(
                f"{rows.name} has no column {shorten(name)!r} to group its rows by; it has {known}"
            )
        if found.count(place) > 1 or wanted.count(name) > 1:
            raise UsageError(f"--by names the column {shorten(name)!r} of {rows.name} twice")
        equal = [number for number, other in enumerate(names) if other == name]
        if len(equal) > 1:
            raise UsageError(_format_equal(rows, name, "group rows by", equal))
    return tuple(place for place in found if place is not None)


def _format_equal(rows: Rows, name: str, remedy: str, places: Sequence[int]) -> str:
    """Return the message on columns with one name; the remedy is a verb before the numbers of the columns."""
    numbers = ", ".join(map(str, places))
    called = f"{rows.name} has {len(places)} columns called {shorten(name)!r}"
    return f"{called}: rename them, or {remedy} the number of one: {numbers}"


def match_columns(
    rows: Rows, chosen: tuple[int, ...], wanted: tuple[str, ...], columns_source: str
) -> tuple[tuple[int, ...], str | None]:
    """Return the indices of the chosen columns in the order of the wanted names, and None.

    For a table without names, return the chosen columns unchanged, and a note.

    Parameters
    ----------
    rows : Rows
    chosen : tuple of int
        The indices of the chosen columns.
    wanted : tuple of str
        All names that these columns must have.
    columns_source : str
        The words with which the caller chose columns, for messages: `--columns`, or `FILE:COLUMN`.

    Raises
    ------
    DataError
        If a wanted name is missing, there are other names, or a table without names has another number of
        columns.
    """
    if rows.names is None:
        listed = list_names(wanted)
        if len(chosen) != len(wanted):
            raise DataError(
                f"{rows.name} has {format_count(len(chosen), 'column')} without names; wanted are {listed}"
            )
        return chosen, UNNAMED.format(listed)
    try:
        places = match_names([rows.names[place] for place in chosen], wanted, rows.name)
    except DataError as error:
        if any(rows.names.count(name) != wanted.count(name) for name in wanted):
            raise
        import shlex  # on use: a small calculation imports this file

        listed = shlex.quote(join_names(tuple(dict.fromkeys(wanted))))
        is_by_option = columns_source == "--columns" or len({*wanted}) < len(wanted)
        taking = f"--columns {listed}" if is_by_option else f"{rows.name}:{listed}"
        raise DataError(f"{error}; {taking} takes those alone") from error
    return tuple(chosen[place] for place in places), None


def _find_places(rows: Rows, text: str, option: str) -> tuple[int, ...]:
    """Return the indices of the columns that an option's text names, without repetition, in the text's order.

    Raises `UsageError` if a column does not exist, none is named, or several have a name and the option is none
    of `_TAKING_ALL`.
    """
    found: dict[int, None] = {}
    for part in split_names(text, option):
        named = [place for place, name in enumerate(rows.names or ()) if name == part.strip()]
        numbered = re.fullmatch(_PLACES, part.strip())
        if named:
            if len(named) > 1 and option not in _TAKING_ALL:
                raise UsageError(_format_equal(rows, part.strip(), "give", named))
            found.update(dict.fromkeys(named))
            continue
        if numbered is None:
            known = ", ".join(map(shorten, rows.names[:_LISTED])) if rows.names else f"0 to {rows.width - 1}"
            ends = part.strip().split("-")
            of_names = len(ends) == 2 and all(end in (rows.names or ()) for end in ends)
            remedy = "; ranges are of numbers, from 0" if of_names else ""
            raise UsageError(f"{option}: {rows.name} has no column {shorten(part)!r}; it has {known}{remedy}")
        first, last = int(numbered[1]), int(numbered[2] or numbered[1])
        if not first <= last < rows.width:
            raise UsageError(f"{option}: {rows.name} has the columns 0 to {rows.width - 1}, not {part}")
        found.update(dict.fromkeys(range(first, last + 1)))
    if not found:
        raise UsageError(f"{option} names no column")
    return tuple(found)


def split_names(text: str, option: str) -> list[str]:
    """Return the names and numbers in an option's list of columns; raise `UsageError` if it is no list."""
    if text.strip() and re.fullmatch(f"(?:{_NAMED})+", text) is None:
        raise UsageError(
            f"{option}: {shorten(text)!r} is no list of names; quotes go around a name with a comma"
        )
    return [quoted[1:-1].replace('""', '"') if quoted else plain for quoted, plain in re.findall(_NAMED, text)]


def name_column(rows: Rows, place: int) -> str:
    """Return a column's name, shortened for messages; its index, from 0, in a table without names."""
    return str(place) if rows.names is None else shorten(rows.names[place])


def advise_columns(rows: Rows, rest: Sequence[int]) -> str:
    """Return advice for a message: the option by which only the columns with the indices `rest` are chosen."""
    if not rest:
        return "no chosen column holds numbers"
    import shlex  # on use: a small calculation imports this file

    places = rest if rows.is_picked else [place for place in range(rows.width) if place not in rest]
    names = shlex.quote(join_names([name_column(rows, place) for place in places]))
    if rows.is_picked:
        return f"--columns {names} takes the others"
    return f"--exclude {names} leaves {'it' if len(places) == 1 else 'them'} out"


def join_names(columns: Sequence[str]) -> str:
    """Return names as a list for --columns and --exclude, each in quotes if it contains a comma."""
    return ",".join(f'"{name}"' if "," in name else name for name in columns)


def name_all(names: Sequence[str], table: FileTable | None, kind: str) -> Sequence[str]:
    """Return the names of all columns of a file that is to be written; refuse equal ones.

    Parameters
    ----------
    names : sequence of str
        The names of a tensor's columns.
    table : FileTable or None
        The table into whose columns the tensor's are written: the names are then the table's, or if it has none
        `names` and the numbers of its other columns. None to return `names`.
    kind : str
        The kind of file, for the message.

    Raises
    ------
    UsageError
        If two names are equal.
    """
    if table is not None:
        chosen = dict(zip(table.chosen, names, strict=True))
        names = table.rows.names or [chosen.get(place, str(place)) for place in range(table.rows.width)]
    equal = [name for name, count in Counter(names).items() if count > 1]
    if equal:
        raise UsageError(f"{kind} cannot hold two columns called {shorten(equal[0])!r}; .csv and .tsv can")
    return names


def match_names(names: Sequence[str], wanted: Sequence[str], source: str) -> list[int]:
    """Return the index of each wanted column name among the names of a source: an order of all its columns.

    Raises
    ------
    DataError
        If a wanted name is missing, the source has a further name, or a name is there twice. Equal sequences of
        names are never refused.
    """
    if tuple(names) == tuple(wanted):
        return list(range(len(names)))
    problems = [
        f"{what} {list_names(found)}"
        for what, found in (
            ("there is no", [name for name in wanted if name not in names]),
            ("there is also", [name for name in names if name not in wanted]),
            ("there are two of", sorted({name for name in names if list(names).count(name) > 1})),
            (
                "there is only one of",
                sorted({name for name in names if wanted.count(name) > names.count(name)}),
            ),
        )
        if found
    ]
    if problems:
        raise DataError(f"{source} has other columns than {list_names(wanted)}: {'; '.join(problems)}")
    return [list(names).index(name) for name in wanted]


def list_names(names: Sequence[str]) -> str:
    """Return names for a message: the first 12, and the number of further ones."""
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(map(shorten, names[:_LISTED])) + more
