"""Text of unknown origin, such as names of files and columns, made fit to print on a terminal."""

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
