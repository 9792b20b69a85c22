"""A page: results of one tensor, to be moved over, flipped between and recalculated. One file, no network.

`page.html`, `page.css` and the scripts are put together with the data of `content`. Nothing is
fetched, and the page forbids itself to: its policy names its one style and its one script by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from importlib import resources
from string import Template
from typing import TYPE_CHECKING, TextIO

from normcli.documents.palette import PALETTE
from normcli.errors import UsageError
from normcli.page.content import make_content
from normcli.page.further import format_further
from normcli.version import __version__

if TYPE_CHECKING:
    from normcli.documents.document import Document, Page, View


_SCRIPTS = ("numbers.js", "arithmetic.js", "page.js")


def write(document: Document, stream: TextIO, view: View) -> None:
    """Write one page, without network, in which results of norms can be explored.

    Raises
    ------
    UsageError
        If the document is made of no results.
    """
    make_page = getattr(document, "page", None)
    if make_page is None:
        raise UsageError("this answer is no page: --format html is for the results of norms")
    stream.write(_put_together(make_page(), view))


def _put_together(page: Page, view: View) -> str:
    """Return the page, all ASCII: no encoding of any output can then change what was hashed."""
    script = _wrap("".join(map(_read, _SCRIPTS))).encode("ascii", "backslashreplace").decode()
    style = _read("page.css") + _colour_groups()
    text = Template(_read("page.html")).substitute(
        policy=f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'",
        title=html.escape(page.title),
        version=__version__,
        style=style,
        script=script,
        data=_embed(make_content(page, view)),
        further=format_further(page, view),
    )
    return text.encode("ascii", "xmlcharrefreplace").decode()


def _wrap(script: str) -> str:
    """Return a script whose names are its own, and which knows the data of its page as `data`."""
    data = 'const data = JSON.parse(document.getElementById("data").textContent);'
    return f'(() => {{\n"use strict";\n{data}\n{script}}})();\n'


def _embed(content: dict[str, object]) -> str:
    """Return JSON that ends no element and begins none, wherever its strings come from."""
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _colour_groups() -> str:
    rules = (
        f".c{number}{{--fill:{background};--ink:{text}}}" for number, (background, text) in enumerate(PALETTE)
    )
    return "\n".join(rules) + "\n"


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def _read(name: str) -> str:
    return resources.files(__name__).joinpath(name).read_text(encoding="utf-8")
