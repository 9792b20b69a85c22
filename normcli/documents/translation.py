"""The sections of a document, translated to the chosen language."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from normcli.documents.document import Equation, Matrix, TableRow
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


def change_texts(part: Any, change: Change, change_name: Change = str) -> Any:
    """Return a section, or a part of one, with its texts changed by a function; cells of matrices stay.

    Parameters
    ----------
    part : Section, or a field of one
    change : callable
        Takes a text, and returns the new one.
    change_name : callable
        Takes the name of a group, a row's first cell, and returns the new name; by default the same name.
    """
    match part:
        case str():
            return change(part)
        case TableRow((first, *others), group):
            name = change(first) if group is None else change_name(first)
            return TableRow((name, *map(change, others)), group)
        case Matrix(name):
            return part._replace(name=change(name))
        case Equation(text):
            return part._replace(text=change(text))
        case tuple() | list():
            changed = [change_texts(each, change, change_name) for each in part]
            return changed if isinstance(part, list) else getattr(part, "_make", tuple)(changed)
    return part
