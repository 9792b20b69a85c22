"""The index of a value: read from the command line, and written for a reader."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from normcli.errors import UsageError
from normcli.printable import format_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from normcli.norms.layout import Layout


def parse_index(text: str, shape: tuple[int, ...], layout: Layout) -> tuple[int, ...]:
    """Return the index that a text names.

    Parameters
    ----------
    text : str
        `0,1,-1`: a number an axis, negative ones from the end; or `n=0,w=3,c=1,h=2`, in any order.
    shape : tuple of int
    layout : Layout

    Raises
    ------
    UsageError
        If the text names no value of a tensor of this shape.

    Examples
    --------
    >>> from normcli.norms.layout import make_layout
    >>> parse_index("c=1, n=-1", (2, 3), make_layout("NC", 2))
    (1, 1)
    """
    bare = re.sub(r"\s*=\s*", "=", text.strip().strip("()[]"))
    parts = [part for part in re.split(r"[,\s]+", bare) if part]
    names = layout.names
    if any("=" in part for part in parts):
        numbers = _sort_by_axis(parts, names)
    elif len(parts) == len(shape):
        numbers = parts
    else:
        wanted = f"takes {len(shape)}, one for each of {', '.join(names)}" if names else "takes none"
        raise UsageError(
            f"--at {text!r} has {format_count(len(parts), 'number')}; a tensor of shape {shape} {wanted}"
        )
    return tuple(
        _place(number, axis, length, names[axis])
        for axis, (number, length) in enumerate(zip(numbers, shape, strict=True))
    )


def format_index(index: Sequence[int], layout: Layout) -> str:
    """Return an index as text: `n=0 c=1`; empty for a tensor without axes."""
    return " ".join(f"{layout.name(axis)}={number}" for axis, number in enumerate(index))


def _sort_by_axis(parts: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the numbers of texts such as `n=0` in the order of the axes.

    Raises
    ------
    UsageError
        If a text names no axis or an unknown one, or if an axis is named twice or not at all.
    """
    given: dict[str, str] = {}
    for part in parts:
        name, equals, number = part.lower().partition("=")
        if not equals:
            raise UsageError(f"--at: {part!r} names no axis, as the others do; write it as {names[0]}={part}")
        if name not in names:
            raise UsageError(f"--at: there is no axis {name!r}; the axes are {', '.join(names) or 'none'}")
        if name in given:
            raise UsageError(f"--at names axis {name} twice")
        given[name] = number
    missing = [name for name in names if name not in given]
    if missing:
        raise UsageError(f"--at leaves {', '.join(missing)} open; the axes are {', '.join(names)}")
    return [given[name] for name in names]


def _place(text: str, axis: int, length: int, name: str) -> int:
    """Return the position along an axis that a text holds; a negative number counts from the end.

    Raises
    ------
    UsageError
        If the text is no whole number, or the position is outside the axis.
    """
    called = name if name == f"axis{axis}" else f"axis {name}"
    if not re.fullmatch(r"[-+−]?\d{1,18}", text):
        raise UsageError(f"--at: {text!r} is no whole number along {called}")
    number = int(text.replace("−", "-"))
    if not -length <= number < length:
        may_be = f"0 to {length - 1} (or -{length} to -1)" if length else "nothing"
        raise UsageError(f"--at: {number} is outside {called}, whose length is {length}: it may be {may_be}")
    return number % length
