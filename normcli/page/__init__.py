"""An interactive page on the results of one tensor, in one file that needs no network.

* `content`: the data of a page: the excerpt of the tensor, groups and numbers of each result
* `arithmetic`: the steps of a norm, the part of the formula of each, and their arithmetic as nested lists

`page.html`, `page.css` and the scripts are put together here with the data of `content`, the picture of cubes,
which the script colours, and the script's words in another language. The scripts, in the order in which they
are joined: `numbers.js` (numbers as texts), `arithmetic.js` (works out and writes the nested lists), `model.js`
(what is known, and what the reader has moved), `matrices.js`, `story.js` (formula, steps and their words),
`histogram.js`, `knobs.js` (sliders), `link.js` (the state in the address), `quiz.js`, `page.js` (what is shown
when). `answer.css` is the style of answers and lists, which have no script.

The page fetches nothing: its content security policy allows its one style and its one script, by their hashes,
and nothing else.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import io
import json
import math
import re
from importlib import resources
from string import Template
from typing import TYPE_CHECKING, Any, TextIO

import numpy as np

from normcli.documents.document import GAP, GUTTER, Facts, Formulas, Line, Table
from normcli.documents.excerpt import Positions
from normcli.documents.palette import PALETTE
from normcli.documents.translation import translate_sections
from normcli.language import is_translating, look_up, name_language, translate
from normcli.page.content import choose_slice, make_content
from normcli.pictures import svg
from normcli.pictures.cubes import Cubes
from normcli.pictures.svg import format_shapes
from normcli.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from normcli.documents.document import Document, Entry, Listing, Page, Section, View
    from normcli.documents.scene import Data, Scene
    from normcli.norms.plan import Plan


_SCRIPTS = (
    "numbers.js", "arithmetic.js", "model.js", "matrices.js", "story.js", "histogram.js", "knobs.js", "link.js",
    "quiz.js", "page.js",
)  # fmt: skip

_NOTES = re.compile(r"^ *(?://[^\n]*\n|/\*\*.*?\*/\n)|^ +|^\n", re.MULTILINE | re.DOTALL)
"""Comments on lines of their own, indentation and empty lines."""

_KNOBS = ("x", "gamma", "beta", "eps")


def write(document: Document, stream: TextIO, view: View) -> None:
    """Write one page, without network: results of norms that can be explored, a list, or an answer as it is.

    A document with a method `page` is shown as results, which a script lets readers explore; one with a method
    `listing` as a list whose entries open; any other as its sections. The first line is a help text.
    """
    make_page = getattr(document, "page", None)
    if make_page is not None:
        stream.write(_put_together(make_page(), view))
        return
    policy = f"default-src 'none'; style-src {_hash(read_style())}; base-uri 'none'; form-action 'none'"
    make_list = getattr(document, "listing", None)
    if make_list is not None:
        pieces = format_entries(make_list(view), policy)
    else:
        pieces = format_answer(document.sections(view), policy)
    stream.writelines(piece.encode("ascii", "xmlcharrefreplace").decode() for piece in pieces)


def _put_together(page: Page, view: View) -> str:
    """Return the HTML of a page of results, in ASCII, so that no encoding changes the parts that are hashed."""
    script = _wrap("".join(map(_read, _SCRIPTS))).encode("ascii", "backslashreplace").decode()
    style = _read("page.css") + _colour_groups()
    plan = page.results[0].plan
    content = make_content(page, view)
    page_html = _TRANSLATED.sub(
        lambda found: look_up(" ".join(found[1].split())) or found[1], _read("page.html")
    )
    text = Template(page_html).substitute(
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
"""A message in the page's HTML that is translated: `[[message]]`."""


def _format_knob(name: str) -> str:
    """Return the HTML of the slider and the number field of a number that the reader may change."""
    return (
        f'<div class="knob" id="knob-{name}">'
        f'<label id="{name}-label" for="{name}-number">{name}</label>'
        f'<input id="{name}-slider" type="range" min="0" step="1" aria-labelledby="{name}-label">'
        f'<input id="{name}-number" type="number" step="any" aria-describedby="{name}-error">'
        f'<p id="{name}-error" class="error" role="alert" hidden></p></div>'
    )


def _wrap(script: str) -> str:
    """Return a script in a function of its own, with the data of its page as `data`."""
    data = 'const data = JSON.parse(document.getElementById("data").textContent);'
    return f'(() => {{\n"use strict";\n{data}\n{script}}})();\n'


def _embed(content: dict[str, object]) -> str:
    """Return JSON with `<`, `>` and `&` escaped, so that no string in it ends or begins an HTML element."""
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
    """Return the text of a file of this folder; scripts and styles without comments and indentation."""
    text = resources.files(__name__).joinpath(name).read_text(encoding="utf-8")
    return text if name.endswith(".html") else _NOTES.sub("", text)


_SAID = re.compile(r"""\bsay\("((?:[^"\\\\]|\\\\.)*)\"""")
"""A message of the script: `say("{0} values", n)`."""

_TOLD = ("name", "head", "words", "rounding", "epsPlace")
"""The keys of the content whose values are texts that the script shows."""


def find_words(script: str, content: Mapping[str, Any]) -> dict[str, str]:
    """Return message → translation for all texts that the page's script shows; empty for English.

    `script` is the text of the script, `content` the data of the page.
    """
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


def format_blocks(plan: Plan, stretches: Sequence[range]) -> str:
    """Return the tensor's picture of cubes as SVG; "" if the shown part of the tensor has no values.

    Parameters
    ----------
    plan : Plan
        The plan, whose layout decides the direction of each axis.
    stretches : sequence of range
        The positions that the page shows along each axis: cubes of these cells carry their number, in C order.
    """
    sides = tuple(map(len, stretches))
    if 0 in sides:
        return ""
    cubes = Cubes(plan, [Positions(tuple(stretch)) for stretch in stretches])

    def describe(index: tuple[int, ...]) -> tuple[str, Data]:
        if not all(i in stretch for i, stretch in zip(index, stretches, strict=True)):
            return "neutral", ()
        place = tuple(i - stretch.start for i, stretch in zip(index, stretches, strict=True))
        return "face", (("cell", str(int(np.ravel_multi_index(place, sides)) if sides else 0)),)

    panel = cubes.draw(describe)
    width, height = (f"{length:.2f}" for length in (panel.width, panel.height))
    words = html.escape(translate(f"The tensor as cubes: {', '.join(cubes.captions)}"))
    shapes = "".join(format_shapes(panel.shapes))
    return f'<svg viewBox="0 0 {width} {height}" width="{width}" role="img" aria-label="{words}">{shapes}</svg>'


def format_further(page: Page, view: View) -> str:
    """Return the HTML below the results: the page's picture, if it has one, and its further sections.

    It is "" if `page.further` is None, even if there is a picture.
    """
    if page.further is None:
        return ""
    parts = [] if page.picture is None else [_format_picture(page.picture)]
    parts += _format_sections(page.further(view))
    return f'<section id="further" aria-label="{translate("Step by step")}">{"".join(parts)}</section>'


def _format_picture(scene: Scene) -> str:
    stream = io.BytesIO()
    svg.write(scene, stream)
    source = base64.b64encode(stream.getvalue()).decode()
    words = html.escape(translate(scene.description))
    return f'<figure><img src="data:image/svg+xml;base64,{source}" alt="{words}"></figure>'


def format_section(section: Section) -> Iterator[str]:
    """Yield the pieces of a section's HTML."""
    match section:
        case Facts(title, facts):
            yield _format_heading(title)
            yield from _format_details([(label, GUTTER.join(words)) for label, words in facts])
        case Line(details=details):
            yield f"<p>{html.escape(GUTTER.join(section.marked))}</p>"
            yield from _format_details(details)
        case Table(title, columns, _, rows, note):
            yield _format_heading(title)
            yield f"<table><thead>{_format_row(columns, 'th')}</thead><tbody>"
            yield from (_format_row(row.cells if row else (GAP,) * len(columns), "td") for row in rows)
            yield f"</tbody></table>{f'<p>{html.escape(note)}</p>' if note else ''}"
        case Formulas(title, equations):
            lines = "\n".join(GAP if equation is None else equation.text for equation in equations)
            yield f"{_format_heading(title)}<pre>{html.escape(lines)}</pre>"


def _format_heading(title: str | None) -> str:
    return f"<h2>{html.escape(title)}</h2>" if title else ""


def _format_details(details: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield the HTML of a table of labels and texts; nothing if there are none."""
    if details:
        yield f"<table>{''.join(_format_row(pair, 'td') for pair in details)}</table>"


def _format_row(cells: tuple[str, ...], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"


_MOST_DOUBLINGS = 32.0
"""The value of log₂(1 + ulp) that fills a bar."""

_CLASSES = {True: "good", False: "bad", None: "open"}


@functools.cache
def read_style() -> str:
    """Return the style of a page without script."""
    return "\n" + resources.files("normcli.page").joinpath("answer.css").read_text(encoding="utf-8")


def format_entries(listing: Listing, policy: str) -> Iterator[str]:
    """Yield the pieces of the HTML page of a list whose entries open.

    `policy` is the page's content security policy, which is written as it is, without escapes.
    """
    yield from _begin(listing.title, policy)
    yield from _format_sections([listing.verdict])
    for entry in listing.entries:
        name, kind, said = map(html.escape, (entry.name, entry.kind, entry.said))
        yield f'<details class="{_CLASSES[entry.ok]}"><summary><span>{name}</span>'
        yield f'<span class="kind">{kind}</span>'
        yield f'<span>{_format_bar(entry)}</span><span class="said">{said}</span></summary>'
        yield '<div class="answer">'
        yield from _format_sections(entry.sections)
        yield "</div></details>"
    yield _END


def format_answer(sections: Iterable[Section], policy: str) -> Iterator[str]:
    """Yield the pieces of the HTML page of an answer.

    The page's title is the title of the first section if that is `Facts`, else `normcli`.

    Parameters
    ----------
    sections : iterable of Section
        One section or more; none raises `ValueError`.
    policy : str
        The page's content security policy, which is written as it is, without escapes.
    """
    first, *others = sections
    title = first.title if isinstance(first, Facts) else "normcli"
    yield from _begin(translate(title), policy)
    yield from _format_sections([first._replace(title="") if isinstance(first, Facts) else first, *others])
    yield _END


_END = "</main></body></html>\n"


def _begin(title: str, policy: str) -> Iterator[str]:
    title = html.escape(title)
    yield f'<!doctype html><html lang="{name_language()}"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{title}</title><style>{read_style()}</style></head><body>"
    yield f"<main><h1>{title}</h1>"


def _format_sections(sections: Iterable[Section]) -> Iterator[str]:
    for section in translate_sections(sections):
        yield from format_section(section)


def _format_bar(entry: Entry) -> str:
    """Return the HTML of an entry's distance and of a bar, which is full for 2³² ulp: log₂(1 + ulp) / 32 long.

    Without an ulp, or with NaN, there is no bar.
    """
    if entry.ulp is None or math.isnan(entry.ulp):
        return html.escape(entry.distance)
    length = 1.0 if math.isinf(entry.ulp) else min(1.0, math.log2(1.0 + entry.ulp) / _MOST_DOUBLINGS)
    drawn = f'<rect class="bar" width="{100.0 * length:.4g}" height="6"/>'
    bar = f'<svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">{drawn}</svg>'
    return html.escape(entry.distance) + bar
