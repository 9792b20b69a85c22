"""The language of the command line: the option that chooses it, and help texts that are shown in it."""

from __future__ import annotations

import inspect
import itertools
import re
from typing import TYPE_CHECKING

import click

from normcli.language import LANGUAGES, is_translating, translate
from normcli.printable import WideWrapper, gather_wide, spread_wide

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_OPTION = "--lang"

LANGUAGE = click.Option(
    [_OPTION],
    type=click.Choice(LANGUAGES),
    expose_value=False,
    help="Of what is said; numbers and JSON stay. [default: as the environment says]",
)
"""The option of every command; click only validates it, as `find_language` reads it before click runs."""

_ANY_OPTIONS = "[OPTIONS]"
"""The word for all options in click's usage lines."""

_UNWRAPPED = "\b\n"
"""The mark before a paragraph whose lines click does not rewrap."""

_COLUMNS = r"(.*normcli .* {2,})(\S.*)"
"""A line of an example: the command, two or more blanks, and its description."""


def find_language(arguments: Sequence[str]) -> str | None:
    """Return the language that `--lang` chooses anywhere on a command line; None without a known one.

    Examples
    --------
    >>> find_language(["bn", "--help", "--lang", "zh"]), find_language(["--lang=en"]), find_language(["bn"])
    ('zh', 'en', None)
    """
    for argument, following in itertools.pairwise([*arguments, ""]):
        name, _, value = argument.partition("=")
        if name == _OPTION and (value or following) in LANGUAGES:
            return value or following
    return None


class TranslatedFormatter(click.HelpFormatter):
    """Click's formatter of help texts, with all text translated to the chosen language."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """Write how a command is called."""
        colon = "：" if is_translating() else ": "
        args = translate(args).replace(_ANY_OPTIONS, translate(_ANY_OPTIONS))
        super().write_usage(prog, args, prefix or f"{translate('Usage')}{colon}")

    def write_heading(self, heading: str) -> None:
        """Write the title of a section."""
        if not is_translating():
            return super().write_heading(heading)
        return self.write(f"{' ' * self.current_indent}{translate(heading)}：\n")

    def write_text(self, text: str) -> None:
        """Write paragraphs in the chosen language, wrapped to the formatter's width."""
        if is_translating():
            paragraphs = inspect.cleandoc(text).split("\n\n")
            width = self.width - self.current_indent
            text = "\n\n".join(_wrap_paragraph(paragraph, width) for paragraph in paragraphs)
        super().write_text(text)

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        """Write rows of two columns in the chosen language: terms, and what they mean."""
        rows = list(rows)
        if is_translating():
            rows = [(spread_wide(term), text) for term, text in rows]
            terms = min(col_max, max((len(term) for term, _ in rows), default=0)) + col_spacing
            room = max(self.width - terms - 2, 10)
            rows = [(term, _wrap_paragraph(text, room)) for term, text in rows]
        super().write_dl(rows, col_max, col_spacing)

    def getvalue(self) -> str:
        """Return the text that was written."""
        return gather_wide(super().getvalue())


class TranslatedContext(click.Context):
    """A click context whose help texts are in the chosen language."""

    formatter_class = TranslatedFormatter


def _wrap_paragraph(paragraph: str, width: int) -> str:
    """Return a paragraph in the chosen language, in lines of at most `width` that click does not rewrap.

    It is "" for an empty paragraph.
    """
    if paragraph.startswith("\b"):
        lines = [_translate_example(line) for line in paragraph.split("\n")[1:]]
    else:
        lines = WideWrapper(width).wrap(spread_wide(translate(" ".join(paragraph.split()))))
    return _UNWRAPPED + gather_wide("\n".join(lines)) if lines else ""


def _translate_example(line: str) -> str:
    found = re.fullmatch(_COLUMNS, line)
    if found is not None:
        return found[1] + translate(found[2])
    return line if "normcli " in line else translate(line)
