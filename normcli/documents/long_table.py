"""Tensors as long tables: one line a value, its index along each axis before it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.tensors.pieces import forget
from normcli.tensors.tables.delimited_writing import to_cell
from normcli.tensors.watched import expect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    Column = Callable[[tuple[NDArray[np.intp], ...]], NDArray[Any]]

_LINES_AT_ONCE = 8192

_BYTES = 8
"""Of the value of a line, as progress is told."""


def pick_from(values: NDArray[Any]) -> Column:
    """Return a column of an array's values."""

    def pick(index: tuple[NDArray[np.intp], ...]) -> NDArray[Any]:
        picked: NDArray[Any] = np.asarray(values[index]).reshape(-1)
        forget(values)
        return picked

    return pick


def iterate_long(
    axis_names: Sequence[str], shape: tuple[int, ...], columns: Mapping[str, Column]
) -> Iterator[list[Any]]:
    """Yield a header, then one row a value: its index along each axis, then each column's value there.

    Parameters
    ----------
    axis_names : sequence of str
        One for each axis of the shape.
    shape : tuple of int
    columns : mapping of str to callable
        Each returns the values at some indices, given as one array an axis.
    """
    yield [*axis_names, *columns]
    size = math.prod(shape)
    advance = expect(size * _BYTES)
    for start in range(0, size, _LINES_AT_ONCE):
        index = np.unravel_index(np.arange(start, min(size, start + _LINES_AT_ONCE)), shape) if shape else ()
        cells = [map(_to_cell, pick(index).reshape(-1).tolist()) for pick in columns.values()]
        yield from map(list, zip(*(i.tolist() for i in index), *cells, strict=True))
        advance(min(_LINES_AT_ONCE, size - start) * _BYTES)


def _to_cell(value: float | bool | str) -> str:
    return value if isinstance(value, str) else to_cell(value)
