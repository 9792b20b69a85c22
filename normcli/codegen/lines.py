"""Lines of Python as a formatter leaves them: up to so many columns wide, longer calls an argument a line."""

from __future__ import annotations

import re
import textwrap

WIDTH = 100
"""Columns of a line of emitted code."""

_INDENT = "    "


def write_line(code: str, note: str = "", depth: int = 1) -> list[str]:
    """Return a statement, with a comment behind it or, where that is too far out, before it.

    Parameters
    ----------
    code : str
        On one line; it may end in a call, which is split where it is too long.
    note : str
        The comment.
    depth : int
        How far the statement is indented.
    """
    indent = _INDENT * depth
    comment = f"  # {note}" if note else ""
    if len(indent + code + comment) <= WIDTH:
        return [f"{indent}{code}{comment}"]
    name, _, value = code.partition(" = ")
    before = [f"{indent}# {name}: {note}" if value else f"{indent}# {note}"] if note else []
    return before + [f"{indent}{line}" for line in _split_call(code, WIDTH - len(indent))]


def write_constant(name: str, text: str) -> list[str]:
    """Return the definition of a constant; one of many numbers is filled, and formatters leave it so."""
    code = f"{name} = {text}"
    if len(code) <= WIDTH:
        return [code]
    skip = "  # fmt: skip"
    lines = textwrap.wrap(code, WIDTH - len(skip), subsequent_indent=_INDENT, break_on_hyphens=False)
    return [*lines[:-1], lines[-1] + skip]


def _split_call(code: str, width: int) -> list[str]:
    """Return a statement that ends in a call, with its arguments on lines of their own."""
    if len(code) <= width or not code.endswith(")"):
        return [code]
    start = _find_opening(code)
    arguments = code[start + 1 : -1]
    if len(_INDENT + arguments) <= width:
        return [code[: start + 1], _INDENT + arguments, ")"]
    parts = [f"{_INDENT}{part}," for part in _split_arguments(arguments)]
    return [code[: start + 1], *parts, ")"]


def _find_opening(code: str) -> int:
    """Return where the bracket opens that the last character closes."""
    depth = 0
    for place in range(len(code) - 1, -1, -1):
        depth += (code[place] in ")]}") - (code[place] in "([{")
        if not depth:
            return place
    raise ValueError(code)


def _split_arguments(text: str) -> list[str]:
    """Return the arguments of a call."""
    parts, depth = [""], 0
    for token in re.findall(r", |.", text):
        depth += (token in "([{") - (token in ")]}")
        if token == ", " and not depth:
            parts.append("")
        else:
            parts[-1] += token
    return parts
