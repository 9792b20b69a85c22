"""A tensor with the story of where it came from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

STANDARD_STREAM = "-"
"""What stands for standard input and output where a file is named."""


class Tensor(NamedTuple):
    """Values, and what to call them.

    Parameters
    ----------
    values : ndarray
        Of an integer, boolean or float dtype.
    source : str
        Where they came from, as a person would say it: `x.npy`, `standard input`, `randint [0, 10), ...`.
    columns : tuple of str or None
        The names of the last axis, where the source had some (the header row of a CSV file).
    note : str or None
        What was done to get them that a person should know of.
    """

    values: NDArray[Any]
    source: str
    columns: tuple[str, ...] | None = None
    note: str | None = None
