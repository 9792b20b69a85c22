"""Reading the members (arrays) of stats and state files, with checks of dtype, shape and range."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from normcli.errors import DataError
from normcli.printable import shorten
from normcli.tensors.formats.npz import load_members

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Integers, Selected
    from normcli.tensors.formats.npz import FileKind

MOST_COUNTED = 2**53
"""The largest count in such files: exact in float64, and a thousand of them can be added in int64."""


class Members:
    """The arrays of a file that normcli wrote, by name; every method raises `DataError` for a wrong one.

    Parameters
    ----------
    path : str
    kind : FileKind

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    DataError
        If the file cannot be read, or is of another kind or version.
    """

    def __init__(self, path: str, kind: FileKind) -> None:
        self._path, self._kind = path, kind
        self._arrays = load_members(path, kind)

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def refuse(self, name: str, problem: str) -> NoReturn:
        """Raise `DataError` with the file, a member's name and its problem."""
        raise DataError(f"{self._path} is no {self._kind.name} file of normcli: {name} {problem}")

    def get_shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a member."""
        return self._get(name).shape

    def take_integers(self, name: str, shape: tuple[int, ...], low: int, high: int) -> Integers:
        """Return an int64 member of a shape, whose values are from low to high, both included."""
        values = self._take(name, np.dtype(np.int64), shape)
        self.require(name, (values >= low) & (values <= high), values, f"not from {low} to {high}")
        return values

    def take_floats(self, name: str, shape: tuple[int, ...]) -> Floats:
        """Return a float64 member of a shape, of any values."""
        return self._take(name, np.dtype(np.float64), shape)

    def take_integer(self, name: str, low: int, high: int) -> int:
        """Return a member that is one integer from low to high, both included."""
        return int(self.take_integers(name, (), low, high))

    def take_word(self, name: str, known: Sequence[str] = ()) -> str:
        """Return a member that is a single text; if `known` is not empty, it must be one of those texts."""
        (word,) = self._take_texts(name, ())
        if known and word not in known:
            self.refuse(name, f"is {shorten(repr(word))}, none of {', '.join(known)}")
        return word

    def take_words(self, name: str, *shape: int) -> tuple[str, ...]:
        """Return the texts of a member of a shape, in C order."""
        return self._take_texts(name, shape)

    def require(self, name: str, right: Selected, values: NDArray[Any], problem: str) -> None:
        """Raise `DataError`, with the first wrong value, unless `right` is True for all values of a member."""
        if not right.all():
            self.refuse(name, f"is {values[~right].reshape(-1)[0]}, {problem}")

    def _get(self, name: str) -> NDArray[Any]:
        if name not in self._arrays:
            self.refuse(name, "is missing")
        array: Any = self._arrays[name]
        if not isinstance(array, np.ndarray):
            self.refuse(name, "is no array")
        return array

    def _take(self, name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        array = self._get(name)
        if array.dtype != dtype:
            self.refuse(name, f"is {array.dtype}, not {dtype}")
        if array.shape != shape:
            self.refuse(name, f"has the shape {array.shape}, not {shape}")
        return array

    def _take_texts(self, name: str, shape: tuple[int, ...]) -> tuple[str, ...]:
        array = self._get(name)
        if array.dtype.kind != "U":
            self.refuse(name, f"is {array.dtype}, and no text")
        if array.shape != shape:
            self.refuse(name, f"has the shape {array.shape}, not {shape}")
        texts = tuple(map(str, array.reshape(-1)))
        try:
            "".join(texts).encode()
        except UnicodeEncodeError:  # halves of characters, which can be neither printed nor written
            self.refuse(name, "has what is no character")
        return texts
