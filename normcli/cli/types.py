"""Parameter types of click: texts converted to values, with errors that show what a valid text looks like."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import click


class Integers(click.ParamType[tuple[int, ...]]):
    """Whole numbers.

    Parameters
    ----------
    pattern : str
        What each is written as.
    separators : str
        The characters that stand between them.
    example : str
        For the message.
    """

    name = "integers"

    def __init__(self, pattern: str, separators: str, example: str) -> None:
        self._pattern, self._separators, self._example = pattern, separators, example

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        """Return the numbers; `()` are none."""
        if value.replace(" ", "") == "()":
            return ()
        parts = re.split(rf"[{self._separators}]+", value.strip("()[] ,"))
        if not all(re.fullmatch(self._pattern, part) for part in parts):
            self.fail(f"{value!r} is not a list of lengths such as {self._example}", param, ctx)
        return tuple(map(int, parts))


class Number(click.ParamType[float]):
    """A number; an integer stays one."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return an int where the text is one, else a float."""
        with contextlib.suppress(ValueError):
            return int(value)
        try:
            return float(value)
        except ValueError:
            self.fail(f"{value!r} is not a number", param, ctx)


class Parts(click.ParamType[frozenset[str]]):
    """Some of a fixed set of words, separated by commas."""

    name = "parts"

    def __init__(self, parts: tuple[str, ...]) -> None:
        self.parts = parts

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> frozenset[str]:
        """Return the words."""
        words = frozenset(word.strip() for word in value.split(",") if word.strip())
        unknown = sorted(words - set(self.parts))
        if unknown or not words:
            self.fail(f"{', '.join(unknown) or 'nothing'!r} is none of {', '.join(self.parts)}", param, ctx)
        return words


class Framework(click.ParamType[str]):
    """A framework whose convention for a norm is known; the table of them is read on use alone.

    Parameters
    ----------
    norm : str
        The short name.
    """

    name = "framework"

    def __init__(self, norm: str) -> None:
        self.norm = norm

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        """Return the frameworks, as the help of a choice lists them."""
        from normcli.norms.conventions import list_frameworks

        return f"[{'|'.join(list_frameworks(self.norm))}]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the framework's name."""
        from normcli.norms.conventions import find_convention

        return find_convention(value, self.norm).framework


class Momentum(click.ParamType[Any]):
    """A weight, or the word `none`."""

    name = "momentum"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or the word."""
        return value if value == "none" else NUMBER.convert(value, param, ctx)


SHAPE = Integers(r"\d{1,400}", ",x× ", "2,3,4,4")
"""`2,3,4,4` or `2x3x4x4`; `()` is that of a single number."""

LENGTHS = Integers(r"-?\d{1,18}", ", ", "3,5,2")
"""The lengths of sequences; their number and the longest possible one depend on the tensor."""

NUMBER = Number()
