"""A page: results of one tensor, to be moved over, flipped between and recalculated. One file, no network.

* `content`: the data of a page: the excerpt of the tensor, groups and numbers of each result
* `norm_steps`: the steps in which a norm is shown, and the part of the formula of each
* `trees`: arithmetic as nested lists, which the script evaluates
* `page_cubes`: the picture of cubes, coloured by the script
* `attachments`: a picture or sections of a document below the results
* `entry_list`: a page of entries, as the layers of a model, that opens the answer of each
* `words`: the script's words in another language

`page.html`, `page.css` and the scripts are put together here with the data of `content`. Nothing is
fetched, and the page forbids itself to: its policy names its one style and its one script by their hashes.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from importlib import resources
from string import Template
from typing import TYPE_CHECKING, TextIO

from normcli.documents.palette import PALETTE
from normcli.language import look_up, name_language, translate
from normcli.page.attachments import format_further
from normcli.page.content import choose_slice, make_content
from normcli.page.entry_list import STYLE, format_answer, format_entries
from normcli.page.page_cubes import format_blocks
from normcli.page.words import find_words
from normcli.version import __version__

if TYPE_CHECKING:
    from normcli.documents.document import Document, Page, View


_SCRIPTS = (
    "numbers.js", "arithmetic.js", "model.js", "matrices.js", "story.js", "histogram.js", "knobs.js", "link.js",
    "quiz.js", "page.js",
)  # fmt: skip

_NOTES = re.compile(r"^ *(?://[^\n]*\n|/\*\*.*?\*/\n)|^ +|^\n", re.MULTILINE | re.DOTALL)
"""Comments on lines of their own, indentation and empty lines."""

_KNOBS = ("x", "gamma", "beta", "eps")


def write(document: Document, stream: TextIO, view: View) -> None:
    """Write one page, without network: results of norms that can be explored, a list, or an answer as it is."""
    make_page = getattr(document, "page", None)
    if make_page is not None:
        stream.write(_put_together(make_page(), view))
        return
    policy = f"default-src 'none'; style-src {_hash(STYLE)}; base-uri 'none'; form-action 'none'"
    make_list = getattr(document, "listing", None)
    if make_list is not None:
        pieces = format_entries(make_list(view), policy)
    else:
        pieces = format_answer(document.sections(view), policy)
    stream.writelines(piece.encode("ascii", "xmlcharrefreplace").decode() for piece in pieces)


def _put_together(page: Page, view: View) -> str:
    """Return the page in ASCII, so that no encoding changes the hashed parts."""
    script = _wrap("".join(map(_read, _SCRIPTS))).encode("ascii", "backslashreplace").decode()
    style = _read("page.css") + _colour_groups()
    plan = page.results[0].plan
    content = make_content(page, view)
    text = Template(_TRANSLATED.sub(_translate, _read("page.html"))).substitute(
        language=name_language(),
        policy=f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'",
        title=html.escape(translate(page.title)),
        version=__version__,
        style=style,
        script=script,
        data=_embed({**content, "words": find_words(script, content)}),
        knobs="\n".join(map(_format_knob, _KNOBS)),
        blocks=format_blocks(plan, choose_slice(plan.grid.shape, page.at)),
        further=format_further(page, view),
    )
    return text.encode("ascii", "xmlcharrefreplace").decode()


_TRANSLATED = re.compile(r"\[\[(.*?)\]\]", re.DOTALL)
"""A message in the page's HTML."""


def _translate(found: re.Match[str]) -> str:
    return look_up(" ".join(found[1].split())) or found[1]


def _format_knob(name: str) -> str:
    """Return the slider and the number field of an option that the reader may move."""
    return (
        f'<div class="knob" id="knob-{name}">'
        f'<label id="{name}-label" for="{name}-number">{name}</label>'
        f'<input id="{name}-slider" type="range" min="0" step="1" aria-labelledby="{name}-label">'
        f'<input id="{name}-number" type="number" step="any" aria-describedby="{name}-error">'
        f'<p id="{name}-error" class="error" role="alert" hidden></p></div>'
    )


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
    """Return a file of this room; of a script or a style without what only its readers need."""
    text = resources.files(__name__).joinpath(name).read_text(encoding="utf-8")
    return text if name.endswith(".html") else _NOTES.sub("", text)
