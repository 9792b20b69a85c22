"""Progress of long work outside the engine, such as unpacking and formatting, for the run's observer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable

_LEAST = 1 << 26
"""The size of work, in bytes, below which no progress is reported."""


class Watch:
    """The holder of the run's progress observer (`normcli.engine.walk.Observer`), None in most runs."""

    observer: ClassVar[Any] = None


def expect(byte_count: int) -> Callable[[int], None]:
    """Announce work on a number of bytes; return a function that takes the bytes done since its last call.

    Without an observer, or for little work, nothing is announced, and the function does nothing.
    """
    observer = Watch.observer
    if observer is None or byte_count < _LEAST:
        return lambda count: None
    observer.expect(byte_count)
    advance: Callable[[int], None] = observer.advance
    return advance
