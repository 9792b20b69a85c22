"""The sections of a document, translated to the chosen language."""

from __future__ import annotations

from typing import TYPE_CHECKING

from normcli.documents.document import Blocks, Facts, Formulas, Line, Table, TableRow
from normcli.language import is_translating, translate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from normcli.documents.document import Section

    Change = Callable[[str], str]


def translate_sections(sections: Iterable[Section]) -> Iterator[Section]:
    """Yield sections in the chosen language; unchanged if that is English.

    Numbers, formulas and the names of groups, which may be the user's own, are not translated.
    """
    for section in sections:
        yield change_texts(section, translate) if is_translating() else section


def change_texts(section: Section, change: Change, change_name: Change = str) -> Section:
    """Return a section with its texts changed by a function.

    Parameters
    ----------
    section : Section
    change : callable
        Takes a text, and returns the new one.
    change_name : callable
        Takes the name of a group, a row's first cell, and returns the new name; by default the same name.
    """
    match section:
        case Facts(title, lines):
            changed = ((change(label), tuple(map(change, facts))) for label, facts in lines)
            return Facts(change(title), tuple(changed))
        case Line(facts, mark, details):
            changed_details = tuple((change(label), change(text)) for label, text in details)
            return Line(tuple(map(change, facts)), mark, changed_details)
        case Table(title, columns, _, rows, note):
            return section._replace(
                title=title and change(title),
                columns=tuple(map(change, columns)),
                rows=[row and _change_row(row, change, change_name) for row in rows],
                note=note and change(note),
            )
        case Blocks(title, caption, bands, note):
            changed_bands = [band and [m and m._replace(name=change(m.name)) for m in band] for band in bands]
            return Blocks(change(title), change(caption), changed_bands, note and change(note))
        case Formulas(title, equations, note):
            changed_equations = (e and e._replace(text=change(e.text)) for e in equations)
            return Formulas(change(title), tuple(changed_equations), note and change(note))


def _change_row(row: TableRow, change: Change, change_name: Change) -> TableRow:
    first, *others = row.cells
    is_name = row.group is not None
    return TableRow((change_name(first) if is_name else change(first), *map(change, others)), row.group)
