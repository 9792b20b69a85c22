"""The catalogue of a language: renewed from the messages of the code, and compiled, by Babel."""

from __future__ import annotations

import io
import re
from datetime import UTC, datetime
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

from normcli.language import DOMAIN, FOLDER
from tests.language.messages import find_messages

_DATE = datetime(2026, 1, 1, tzinfo=UTC)
"""Stands in every header, so that the same messages give the same file."""

BY_HAND = "by hand"
"""What the comment of a message says that no text of the code is: of one word, or a part of a joined text."""


def find_catalogue(language: str) -> Path:
    return Path(FOLDER) / language / "LC_MESSAGES" / f"{DOMAIN}.po"


def load(language: str) -> Catalog:
    with find_catalogue(language).open("rb") as file:
        return read_po(file, locale=language, domain=DOMAIN)


def renew(language: str, said: dict[str, str]) -> tuple[Catalog, list[str]]:
    """Return the catalogue of the code's messages and of those that were written by hand, and what has no translation."""
    old = load(language) if find_catalogue(language).exists() else Catalog(locale=language)
    kept = {message.id: message for message in old if message.id}
    said = {message.id: message.string for message in kept.values()} | said
    catalogue = Catalog(
        locale=language, domain=DOMAIN, project=DOMAIN, fuzzy=False, creation_date=_DATE, revision_date=_DATE,
        header_comment="# The answers of normcli in another language: renewed by `python -m tests.language`.",
        last_translator="", language_team="", copyright_holder="", msgid_bugs_address="",
    )  # fmt: skip
    found = find_messages()
    for text in sorted(found):
        catalogue.add(text, said.get(text, ""), locations=[(name, 0) for name in found[text]])
    for text in sorted(set(said) - set(found)):
        if text not in kept or BY_HAND in kept[text].auto_comments:
            catalogue.add(text, said[text], auto_comments=[BY_HAND])
    return catalogue, [message.id for message in catalogue if message.id and not message.string]


def format_po(catalogue: Catalog) -> bytes:
    """Return the text of a catalogue, without the line that names Babel's version."""
    file = io.BytesIO()
    write_po(file, catalogue, width=0, include_lineno=False, sort_output=True)
    return re.sub(rb'"Generated-By: [^"]*"\n', b"", file.getvalue())


def compile_mo(catalogue: Catalog) -> bytes:
    file = io.BytesIO()
    write_mo(file, catalogue)
    return file.getvalue()
