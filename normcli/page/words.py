"""The words of a page's script in the language that was chosen."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from normcli.language import is_translating, look_up, translate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SAID = re.compile(r"""\bsay\("((?:[^"\\\\]|\\\\.)*)\"""")
"""A message of the script: `say("{0} values", n)`."""

_TOLD = ("name", "head", "words", "rounding", "epsPlace")
"""Under these the content keeps texts that the script says."""


def find_words(script: str, content: Mapping[str, Any]) -> dict[str, str]:
    """Return the script's words and their translations into the chosen language; empty for English."""
    if not is_translating():
        return {}
    said = {message: look_up(message) for message in _SAID.findall(script)}
    told = {text: translate(text) for text in _list_told(content["results"])}
    statistics = {
        name: translate(name) for result in content["results"] for name in ("group", *result["statistics"])
    }
    return {message: text for message, text in (said | told | statistics).items() if text}


def _list_told(part: Any) -> Iterator[str]:
    for name, value in part.items() if isinstance(part, dict) else enumerate(part):
        if name in _TOLD and isinstance(value, str):
            yield value
        elif isinstance(value, dict | list):
            yield from _list_told(value)
