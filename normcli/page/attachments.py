"""The parts of a page below its results: a picture, and sections of a document, as HTML without script."""

from __future__ import annotations

import base64
import html
import io
from typing import TYPE_CHECKING

from normcli.documents.document import GAP, GUTTER, Facts, Formulas, Line, Table
from normcli.documents.translation import translate_sections
from normcli.language import translate
from normcli.pictures.svg import write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from normcli.documents.document import Page, Section, View
    from normcli.documents.scene import Scene


def format_further(page: Page, view: View) -> str:
    """Return the HTML of a page's further part; nothing where it has none."""
    if page.further is None:
        return ""
    parts = [] if page.picture is None else [_format_picture(page.picture)]
    for section in translate_sections(page.further(view)):
        parts += _format_section(section)
    return f'<section id="further" aria-label="{translate("Step by step")}">{"".join(parts)}</section>'


def _format_picture(scene: Scene) -> str:
    stream = io.BytesIO()
    write(scene, stream)
    source = base64.b64encode(stream.getvalue()).decode()
    words = html.escape(translate(scene.description))
    return f'<figure><img src="data:image/svg+xml;base64,{source}" alt="{words}"></figure>'


def _format_section(section: Section) -> Iterator[str]:
    match section:
        case Facts(title, facts):
            yield f"<h2>{html.escape(title or '')}</h2>"
            for label, words in facts:
                yield f"<p><b>{html.escape(label)}</b> · {html.escape(' · '.join(words))}</p>"
        case Line():
            yield f"<p>{html.escape(GUTTER.join(section.marked))}</p>"
        case Table(title, columns, _, rows):
            yield f"<h2>{html.escape(title or '')}</h2>"
            yield f"<table><thead>{_format_row(columns, 'th')}</thead><tbody>"
            yield from (_format_row(row.cells if row else (GAP,) * len(columns), "td") for row in rows)
            yield "</tbody></table>"
        case Formulas(title, equations):
            lines = "\n".join(GAP if equation is None else equation.text for equation in equations)
            yield f"<h2>{html.escape(title)}</h2><pre>{html.escape(lines)}</pre>"


def _format_row(cells: tuple[str, ...], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"
