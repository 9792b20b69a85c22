"""Text for a reader: names without control characters, numbers with nouns or units, wide characters."""

from __future__ import annotations

import codecs
import functools
import io
import re
from textwrap import TextWrapper
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import TextIO

    from _typeshed import ReadableBuffer

_UNPRINTABLE = (
    "["
    r"\x00-\x1f\x7f-\x9f"  # control characters
    r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # characters that turn the direction of writing round
    r"\u2028\u2029"  # separators of lines and paragraphs
    r"\ud800-\udfff\ufffe\uffff"  # surrogates (undecodable bytes of file names); characters XML refuses
    "]"
)


def make_printable(text: str) -> str:
    r"""Return a text on one line, with escape sequences in place of characters that a terminal must not get.

    These are control characters, characters that turn the direction of writing round, which would show a name
    in another order than it has, and code points that are no characters.

    Examples
    --------
    >>> make_printable("red \x1b[31m"), make_printable("exe.\u202egnp")
    ('red \\x1b[31m', 'exe.\\u202egnp')
    """
    return text if text.isprintable() else re.sub(_UNPRINTABLE, _escape, text)


class TerminalBytes(io.RawIOBase):
    """A binary stream that writes UTF-8 to a terminal, with escape sequences for control characters.

    Tabs and line ends are written as they are.

    Parameters
    ----------
    terminal : TextIO
    """

    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: ReadableBuffer) -> int:
        """Write bytes of UTF-8, the last character of which may be cut; return their number."""
        text = self._decoder.decode(bytes(data))
        self._terminal.write(
            re.sub(_UNPRINTABLE, lambda found: found[0] if found[0] in "\t\n" else _escape(found), text)
        )
        return memoryview(data).nbytes


def _escape(found: re.Match[str]) -> str:
    r"""Return the escape sequence of a matched character, such as `\x1b` or `\u202e`."""
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def shorten(text: str, most: int = 24) -> str:
    """Return a text cut to `most` characters, followed by an ellipsis if it was longer."""
    return text if len(text) <= most else f"{text[:most]}…"


def agree(count: int, one: str, more: str) -> str:
    """Return the words that go with a number: `one` for 1, otherwise `more`.

    Examples
    --------
    >>> agree(1, "value differs", "values differ"), agree(0, "is", "are")
    ('value differs', 'are')
    """
    return one if count == 1 else more


def format_count(count: int, noun: str, plural: str | None = None) -> str:
    """Return a number with its noun: `noun` for 1, otherwise `plural`, by default the noun with an s.

    Examples
    --------
    >>> format_count(1, "file"), format_count(1200, "file"), format_count(2, "batch", "batches")
    ('1 file', '1,200 files', '2 batches')
    """
    return f"{count:,} {agree(count, noun, plural or f'{noun}s')}"


_LIMIT_DIGITS = 3
"""The number of significant digits of a tolerance in messages."""


def format_up(value: float) -> str:
    """Return a number ≥ 0 rounded up to three significant digits, as text.

    Examples
    --------
    >>> format_up(0.00021001), format_up(9895.0)
    ('0.000211', '9900')
    """
    nearest = f"{value:.{_LIMIT_DIGITS - 1}e}"
    if float(nearest) < value:
        unit = float(f"1{nearest[nearest.index('e') :]}") / 10 ** (_LIMIT_DIGITS - 1)
        nearest = f"{float(nearest) + unit:.{_LIMIT_DIGITS - 1}e}"
    return f"{float(nearest):g}"


_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")


def format_bytes(count: int) -> str:
    """Return a size with its unit, in powers of a thousand.

    Examples
    --------
    >>> format_bytes(512), format_bytes(1_073_741_952), format_bytes(999_950)
    ('512 bytes', '1.07 GB', '1 MB')
    """
    value, unit = float(count), 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1000.0, unit + 1
    return f"{value:.3g} {_UNITS[unit]}"


_FILLER = "\v"
"""The character that follows a wide one, for the second half of its width; rich shows it as nothing."""

_WIDE = (
    "\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff"
    "\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6\U0001f300-\U0001faff"
)
"""Ranges of characters that take two columns of a terminal: East Asian writing, punctuation and emoji."""

_CLOSING = "、。，．：；？！）】》」』”’"
"""Characters that no line begins with."""

_OPENING = "（【《「『“‘"
"""Characters that no line ends with."""


@functools.cache  # on use: these patterns take longer to compile than all others
def _find_patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return two patterns: of a unit within which a text is not broken, and of one wide character.

    A unit is a wide character with the marks around it, or a narrow word after an opening mark.
    """
    wide = f"[{_OPENING}]*(?![{_OPENING}])[{_WIDE}][{_CLOSING}]*(?![{_CLOSING}])"
    narrow = f"[{_OPENING}]+(?:(?![{_WIDE}])\\S)*[{_CLOSING}]*"
    return re.compile(f"{wide}|{narrow}"), re.compile(f"[{_WIDE}]")


def spread_wide(text: str) -> str:
    r"""Return a text with a filler after each wide character, so that its length is its width in columns.

    The text may be broken at a filler. `gather_wide` takes fillers away, and so does rich.

    Examples
    --------
    >>> spread_wide("x 均值。"), len(spread_wide("x 均值。"))
    ('x 均\x0b值。\x0b\x0b', 8)
    """
    if text.isascii() or not any("\u1100" <= c <= "\u115f" or c >= "\u2e80" for c in text):
        return text
    unit, one_wide = _find_patterns()
    return unit.sub(lambda found: found[0] + _FILLER * len(one_wide.findall(found[0])), text)


def gather_wide(text: str) -> str:
    """Return a text without the fillers of `spread_wide`."""
    return text.replace(_FILLER, "")


def split_words(text: str) -> list[str]:
    """Return the pieces of a text between which a line may be broken, each with the space before it.

    Joined, they are the text again.
    """
    pieces = re.split(f"{_FILLER}+|(?= )", spread_wide(text))
    return [piece for piece in pieces if piece]


_CHUNK = rf"[^\S{_FILLER}]+|[^\s]+{_FILLER}+|[^\s]+"
"""The pattern of white space, or of a word or a wide character with its fillers."""


class WideWrapper(TextWrapper):
    """A wrapper that breaks a text of `spread_wide` into lines, between words and between wide characters.

    Parameters
    ----------
    width : int
        The width of a line in columns.
    first, other : str
        The indents of the first and of all other lines.
    breaks_words : bool
        Whether words that are longer than a line are broken, and words at hyphens.
    """

    def __init__(self, width: int, first: str = "", other: str = "", *, breaks_words: bool = False) -> None:
        super().__init__(
            width,
            first,
            other,
            break_long_words=breaks_words,
            break_on_hyphens=breaks_words,
            replace_whitespace=False,
        )

    def _split(self, text: str) -> list[str]:
        return re.findall(_CHUNK, text) if _FILLER in text else super()._split(text)
