"""Pages without script: an answer as it is; a list of entries, each with its worst distance and its answer."""

from __future__ import annotations

import html
import math
from typing import TYPE_CHECKING

from normcli.documents.document import Facts
from normcli.documents.translation import translate_sections
from normcli.language import name_language, translate
from normcli.page.attachments import format_section

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from normcli.documents.document import Entry, Listing, Section

STYLE = """
:root { color-scheme: light dark; --line: #d5d3cc; --good: #2a7d46; --bad: #b3261e; --open: #8a6d00; }
@media (prefers-color-scheme: dark) {
  :root { --line: #44474e; --good: #6cc48a; --bad: #ff8a80; --open: #e2c25a; }
}
body { margin: 0 auto; padding: 1rem; max-width: 80rem; font: 1rem/1.45 system-ui, sans-serif; }
h1 { font-size: 1.3rem; }
h2 { font-size: 1rem; margin: 0.8rem 0 0.2rem; }
p { margin: 0.3rem 0; }
details { border-top: 1px solid var(--line); }
summary { display: grid; gap: 0 1rem; padding: 0.3rem 0; cursor: pointer; }
summary { grid-template-columns: minmax(9rem, 22rem) minmax(6rem, 12rem) 9rem 1fr; }
summary > * { overflow-wrap: anywhere; min-width: 0; }
.answer { padding: 0 0 0.8rem 1rem; overflow-x: auto; }
.kind { opacity: 0.75; }
svg { display: block; width: 100%; height: 0.45rem; }
.bar { fill: var(--good); }
.bad .bar { fill: var(--bad); }
.bad .said { color: var(--bad); }
.open .said { color: var(--open); }
p, td { white-space: pre-wrap; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 0.1rem 1rem 0.1rem 0; vertical-align: top; }
@media (max-width: 50rem) { summary { grid-template-columns: 1fr 9rem; } }
"""

_MOST_DOUBLINGS = 32.0
"""The doublings of an ulp that fill a bar."""

_CLASSES = {True: "good", False: "bad", None: "open"}


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
    yield f"<title>{title}</title><style>{STYLE}</style></head><body>"
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
