"""Sections of a document as HTML without script: below a page's results, as an answer, as a list of answers."""

from __future__ import annotations

import base64
import functools
import html
import io
import math
from importlib import resources
from typing import TYPE_CHECKING

from normcli.documents.document import GAP, GUTTER, Facts, Formulas, Line, Table
from normcli.documents.translation import translate_sections
from normcli.language import name_language, translate
from normcli.pictures.svg import write

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from normcli.documents.document import Entry, Listing, Page, Section, View
    from normcli.documents.scene import Scene


def format_further(page: Page, view: View) -> str:
    """Return the HTML of a page's further part; nothing where it has none."""
    if page.further is None:
        return ""
    parts = [] if page.picture is None else [_format_picture(page.picture)]
    for section in translate_sections(page.further(view)):
        parts += format_section(section)
    return f'<section id="further" aria-label="{translate("Step by step")}">{"".join(parts)}</section>'


def _format_picture(scene: Scene) -> str:
    stream = io.BytesIO()
    write(scene, stream)
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
    """Yield a table of labels and texts, if there are any."""
    if details:
        yield f"<table>{''.join(_format_row(pair, 'td') for pair in details)}</table>"


def _format_row(cells: tuple[str, ...], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"


_MOST_DOUBLINGS = 32.0
"""The doublings of an ulp that fill a bar."""

_CLASSES = {True: "good", False: "bad", None: "open"}


@functools.cache
def read_style() -> str:
    """Return the style of a page without script."""
    return "\n" + resources.files("normcli.page").joinpath("answer.css").read_text(encoding="utf-8")


def format_entries(listing: Listing, policy: str) -> Iterator[str]:
    """Yield the pieces of a list's HTML, under a content security policy."""
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
    """Yield the pieces of an answer's HTML, under a policy; its title is that of a first section of facts."""
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
    """Return a bar whose length is the logarithm of a distance, and the distance."""
    if entry.ulp is None or math.isnan(entry.ulp):
        return html.escape(entry.distance)
    length = 1.0 if math.isinf(entry.ulp) else min(1.0, math.log2(1.0 + entry.ulp) / _MOST_DOUBLINGS)
    drawn = f'<rect class="bar" width="{100.0 * length:.4g}" height="6"/>'
    bar = f'<svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">{drawn}</svg>'
    return html.escape(entry.distance) + bar
