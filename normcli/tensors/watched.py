"""Long work that no engine does (unpacking, formatting) tells the observer of the run how far it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable

_LEAST = 1 << 26
"""Bytes of work that nobody waits for."""


class Watch:
    """The observer of the run's progress (`normcli.engine.walk.Observer`); None in most runs."""

    observer: ClassVar[Any] = None


def expect(byte_count: int) -> Callable[[int], None]:
    """Let the observer expect work on so many bytes, if they are many; return what tells it of a part."""
    observer = Watch.observer
    if observer is None or byte_count < _LEAST:
        return lambda count: None
    observer.expect(byte_count)
    advance: Callable[[int], None] = observer.advance
    return advance
