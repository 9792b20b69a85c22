"""Parsers of texts on a command line; their errors show what a valid text looks like."""

from __future__ import annotations

import contextlib
import os
import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from normcli.norms.option_kinds import OptionKind
from normcli.writers import SYNONYMS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from click.shell_completion import CompletionItem

    from normcli.norms.option_kinds import Option

    Completions = list[CompletionItem[str]]


def parse_shape(text: str) -> tuple[int, ...]:
    """Return the shape in a text such as `2,3,4,4` or `2x3x4x4`; `()` is the shape of a single number."""
    return _split_integers(text, r"\d{1,400}", ",x× ", "2,3,4,4")


def parse_lengths(text: str) -> tuple[int, ...]:
    """Return the lengths of sequences in a text such as `3,5,2`; they are not held against a tensor here."""
    return _split_integers(text, r"-?\d{1,18}", ", ", "3,5,2")


def _split_integers(text: str, pattern: str, separators: str, example: str) -> tuple[int, ...]:
    if text.replace(" ", "") == "()":
        return ()
    parts = re.split(rf"[{separators}]+", text.strip("()[] ,"))
    if not all(re.fullmatch(pattern, part) for part in parts):
        raise click.BadParameter(f"{text!r} is not a list of lengths such as {example}")
    return tuple(map(int, parts))


def parse_number(text: str) -> float:
    """Return an int where the text is one, else a float; click's `BadParameter` for any other text."""
    with contextlib.suppress(ValueError):
        return int(text)
    try:
        return float(text)
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a number") from None


def parse_momentum(text: str) -> float | str:
    """Return a weight, or the word `none`."""
    return text if text == "none" else parse_number(text)


def parse_shard(text: str) -> tuple[int, int]:
    """Return the number of one of several parts, from 1, and their number: `3/64` is the third of 64."""
    found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text)
    number, count = map(int, found.groups()) if found else (0, 0)
    if not 1 <= number <= count:
        raise click.BadParameter(f"{text!r} is no part of several, such as 3/64")
    return number, count


class FileName(click.types.StringParamType):
    """A click type for a text that may name a file, or an array in it (`FILE:KEY`): any text is valid."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> Completions:
        """Return the arrays of an existing file whose name a colon follows; otherwise files."""
        from click.shell_completion import CompletionItem

        path, colon, _ = incomplete.rpartition(":")
        if not colon or not os.path.isfile(path):  # noqa: PTH113
            return [CompletionItem(incomplete, type="file")]
        from normcli.tensors.many import list_keys

        names = (f"{path}:{key}" for key in list_keys(path))
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


class NormName(click.types.StringParamType):
    """A click type for a text that may name a norm: any text is valid, and names of norms are completed.

    Parameters
    ----------
    others : mapping of str to str
        Other words that are completed, with a description of each.
    files : bool
        Whether files are completed too.
    """

    def __init__(self, others: Mapping[str, str] = MappingProxyType({}), *, files: bool = False) -> None:
        self._others, self._files = others, files

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> Completions:
        """Return the norms, the other words and, if they may stand there, the files that begin with a text."""
        from normcli.cli.commands import complete_names

        files = FileName().shell_complete(ctx, param, incomplete) if self._files else []
        return [*complete_names(incomplete, self._others), *files]


class Word(click.Choice[str]):
    """One of a few words, or a synonym of one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the word, or fail on one that is not known."""
        return super().convert(SYNONYMS.get(value, value), param, ctx)


class Words(click.ParamType[tuple[str, ...]]):
    """A click type for words with commas between them.

    Parameters
    ----------
    known : sequence of str
        The words that are allowed; empty to allow any.
    """

    name = "words"

    def __init__(self, known: Sequence[str]) -> None:
        self.known = known

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> Completions:
        """Return the known words that begin with the text after the last comma."""
        from click.shell_completion import CompletionItem

        before, comma, begun = incomplete.rpartition(",")
        return [CompletionItem(f"{before}{comma}{word}") for word in self.known if word.startswith(begun)]

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        """Return the words in their order; click's `BadParameter` for none, and for an unknown one."""
        given = [word.strip() for word in value.split(",") if word.strip()]
        words = tuple(SYNONYMS.get(word, word) for word in given)
        unknown = [word for word in words if self.known and word not in self.known]
        if unknown or not words:
            self.fail(f"{', '.join(unknown) or 'nothing'!r} is none of {', '.join(self.known)}", param, ctx)
        return words


class Framework(click.ParamType[str]):
    """A click type for the name of a framework that has a convention for a norm.

    Parameters
    ----------
    norm : str
        The norm's short name.
    """

    name = "framework"

    def __init__(self, norm: str) -> None:
        self.norm = norm

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> Completions:
        """Return the frameworks whose names begin with a text."""
        from click.shell_completion import CompletionItem

        from normcli.norms.conventions import list_frameworks

        return [CompletionItem(name) for name in list_frameworks(self.norm) if name.startswith(incomplete)]

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the framework's name in the table of conventions; an unknown one raises `UsageError`."""
        from normcli.norms.conventions import find_convention

        return find_convention(value, self.norm).framework


class OptionValue(click.ParamType[Any]):
    """A click type for the value of an option of norms, which the option's row parses and checks.

    Parameters
    ----------
    row : Option
        The row of the table of options.
    """

    def __init__(self, row: Option) -> None:
        self.name, self._row = row.kind.value, row

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the parsed and checked value; a vector may be a file, JSON or one number.

        Raises `UsageError` for a wrong value, and `DataError` for a file that cannot be read.
        """
        if self._row.kind is OptionKind.VECTOR:
            from normcli.cli.files.sources import load_parameter

            parsed = self._row.convert(load_parameter(self._row.name, value))
        else:
            parsed = self._row.parse(value)
        self._row.check(parsed)
        return parsed


class LikeOption(click.Option):
    """A click option of the type `Framework`, whose help ends with the list of frameworks."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the option's name and its help, which ends with the frameworks of the norm."""
        from normcli.norms.conventions import list_frameworks

        record = super().get_help_record(ctx)
        if record is None or not isinstance(self.type, Framework):
            return record
        return record[0], f"{record[1]} There are {', '.join(list_frameworks(self.type.norm))}."
