"""Text for a reader: names made fit for a terminal, and nouns that agree with their numbers."""

from __future__ import annotations

_CONTROL = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))}


def make_printable(text: str) -> str:
    r"""Return a text on one line, its control characters spelt out.

    Examples
    --------
    >>> make_printable("red \x1b[31m")
    'red \\x1b[31m'
    """
    return text.translate(_CONTROL)


def format_count(count: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun, which gets an s (or is another) unless it is one.

    Examples
    --------
    >>> format_count(1, "file"), format_count(1200, "file"), format_count(2, "batch", "batches")
    ('1 file', '1,200 files', '2 batches')
    """
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"
