"""The language of answers: messages are made in English, and translated where they are shown to a person.

Nothing below `documents` knows of languages. Messages are f-strings in English, so that the code reads like the
screen. The few places that show text to a person pass it to `translate`, which finds the message that the text
was made from and returns it in the chosen language. Text for programs (JSON, CSV, field names, files) is never
translated.

The catalogues are gettext's: `normcli/language/zh/LC_MESSAGES/normcli.po`, compiled to `.mo` beside it. A
message of an f-string stands there as `{0} of {1} differ`, its values numbered in their order.

* `fonts`: installed fonts with Chinese letters
* `reading`: finding the messages that a text was made from, and their translations
"""

from __future__ import annotations

import contextlib
import os
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from normcli.language.reading import Reader

LANGUAGES = ("en", "zh")
"""The languages that can be chosen; English needs no catalogue."""

VARIABLES = ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG")
"""The environment variables in which gettext looks for a language; the first one that is set counts."""

DOMAIN = "normcli"

FOLDER = os.path.dirname(__file__)  # noqa: PTH120 - pathlib costs every run its import
"""The folder of the catalogues: `zh/LC_MESSAGES/normcli.mo`."""

_ENGLISH = ("C", "POSIX", "en")

_chosen: tuple[str, ...] = ()
_names: frozenset[str] = frozenset()


def choose_language(asked: str | None = None, environment: Mapping[str, str] = os.environ) -> None:
    """Choose the language of texts that are shown from here on.

    Parameters
    ----------
    asked : str or None
        One of `LANGUAGES`. None: the language that the environment names, as gettext reads it; `zh_CN.UTF-8` is
        `zh`, and every language other than Chinese is English.
    environment : mapping of str to str
        The environment variables; those of `VARIABLES` are read.
    """
    global _chosen, _names
    said = asked or next((environment[name] for name in VARIABLES if environment.get(name)), "")
    wished = []
    for name in said.split(":"):
        if name.startswith(_ENGLISH):
            break
        wished.append(name)
    _chosen, _names = (tuple(wished) if "zh" in said else ()), frozenset()
    translate.cache_clear()


def keep_names(names: Iterable[str]) -> None:
    """Keep some words, the user's own names, from being translated: a column called `mean` stays `mean`."""
    global _names
    if _chosen:
        _names |= frozenset(names)
        translate.cache_clear()


def is_translating() -> bool:
    """Whether a language other than English was chosen, and has a catalogue."""
    return bool(_chosen) and _load(_chosen) is not None


@lru_cache(maxsize=4096)
def translate(text: str) -> str:
    """Return a text in the chosen language; unchanged in English, or if any part of it has no translation."""
    if not _chosen or text in _names:
        return text
    reader = _load(_chosen)
    return text if reader is None else reader.translate(text, _names)


@contextlib.contextmanager
def speak_english() -> Iterator[None]:
    """Show texts in English within a `with` block, whichever language was chosen; a context manager."""
    global _chosen
    before, _chosen = _chosen, ()
    translate.cache_clear()
    try:
        yield
    finally:
        _chosen = before
        translate.cache_clear()


def look_up(message: str) -> str:
    """Return the translation of a message, whose values are written `{0}`; "" in English, or if it has none."""
    reader = _load(_chosen) if _chosen else None
    return "" if reader is None else reader.look_up(message)


def name_language() -> str:
    """Return the language in which texts are shown, one of `LANGUAGES`."""
    return LANGUAGES[is_translating()]


@lru_cache(maxsize=1)
def _load(languages: tuple[str, ...]) -> Reader | None:
    """Return a translator for the first language that normcli has (`zh` for `zh_CN.UTF-8`); None without one.

    `pkgutil` finds the catalogue also in a zip file, where gettext would not.
    """
    import gettext
    import io
    import pkgutil

    from normcli.language.reading import Reader

    for name in languages:
        language = name.partition(".")[0].partition("_")[0]
        if language in LANGUAGES[1:]:
            catalogue = pkgutil.get_data(__name__, f"{language}/LC_MESSAGES/{DOMAIN}.mo") or b""
            return Reader(vars(gettext.GNUTranslations(io.BytesIO(catalogue)))["_catalog"])
    return None
