"""How the work is done: threads, sizes of tiles, who watches. None of it changes a bit of the result."""

from __future__ import annotations

from typing import NamedTuple, Protocol

BLOCK = 1 << 20
"""Values in a tile: enough that a hundred calls on its groups cost little beside those on its values."""

WHOLE = 1 << 18
"""Groups of at most so many values are read once and written at once."""


class Observer(Protocol):
    """Somebody who watches a long run, from several threads at once."""

    def expect(self, byte_count: int) -> None:
        """Hear that so many more bytes are to be worked through."""
        ...

    def advance(self, byte_count: int) -> None:
        """Hear that so many have been."""
        ...


class Effort(NamedTuple):
    """What changes the speed alone.

    Parameters
    ----------
    threads : int or None
        At most so many; as many as there are processors by default.
    observer : Observer or None
        Hears how far the work is.
    block, whole : int
        Values in a tile, and in the largest group that is read only once.
    """

    threads: int | None = None
    observer: Observer | None = None
    block: int = BLOCK
    whole: int = WHOLE


DEFAULT_EFFORT = Effort()
