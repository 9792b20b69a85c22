"""A tensor with the story of where it came from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from normcli.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

STANDARD_STREAM = "-"
"""What stands for standard input and output where a file is named."""

REAL_KINDS = "biuf"
"""NumPy's kinds of dtype that hold real numbers: bool, int, unsigned, float."""


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
    """

    values: NDArray[Any]
    source: str
    columns: tuple[str, ...] | None = None


def require_real(dtype: np.dtype[Any], name: str) -> None:
    """Raise `DataError` unless a dtype holds real numbers."""
    if dtype.kind not in REAL_KINDS:
        label = "Python objects" if dtype.kind == "O" else str(dtype)
        raise DataError(f"{name} holds {label}; integers, booleans and floats are taken")
