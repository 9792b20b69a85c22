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
    from collections.abc import Iterator, Sequence

    from normcli.documents.document import Page, Section, View
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
