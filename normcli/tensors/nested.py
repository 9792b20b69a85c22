"""JSON: bare nested lists, or normcli's own output, whose tensor is called `normalized`."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np

from normcli.dtypes import MOST_AXES, OUTPUT_DTYPES, find_type, is_float, is_real
from normcli.errors import DataError, UsageError
from normcli.tensors.pieces import forget

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

TENSOR_KEY = "normalized"
"""The key under which normcli's own JSON holds its tensor."""

DTYPE_KEY = "dtype"
"""The key under which it says the tensor's dtype, which JSON's numbers cannot."""

_FORMATTED_AT_ONCE = 8192
"""Values whose text is in memory at one time."""

_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "+inf": math.inf, "-inf": -math.inf}


def read_json(stream: BinaryIO, name: str, key: str | None = None) -> NDArray[Any]:
    """Read the tensor of a JSON text.

    Raises
    ------
    DataError
        If the text is no JSON, or holds no rectangular array of numbers.
    UsageError
        If there is no array called `key`.
    """
    try:
        text = stream.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{name} is no JSON: byte {error.start} is not UTF-8 text") from error
    return parse_json(text, name, key)


def parse_json(text: str, name: str, key: str | None = None) -> NDArray[Any]:
    """Return the tensor that a JSON text holds; see `read_json`."""
    if not text.strip():
        raise DataError(f"{name} is empty; a nested list of numbers is expected")
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(f"{name} is not valid JSON at line {error.lineno}, column {error.colno}") from error
    except RecursionError as error:
        raise DataError(f"{name} is nested too deeply; a tensor has at most {MOST_AXES} axes") from error
    except ValueError as error:  # an integer of more digits than Python converts
        raise DataError(f"{name} holds a number with too many digits") from error
    if not isinstance(value, dict):
        if key is not None:
            raise UsageError(f"{name} is a bare list and has no array {key!r}")
        return to_array(value, name)
    wanted = TENSOR_KEY if key is None else key
    if wanted not in value:
        if key is not None:
            raise UsageError(
                f"{name} holds no array {key!r}; it has {', '.join(map(repr, value)) or 'nothing'}"
            )
        raise DataError(f"{name} is a JSON object without {TENSOR_KEY!r}; a nested list of numbers is expected")
    array = to_array(value[wanted], name)
    dtype = value.get(DTYPE_KEY)
    if wanted == TENSOR_KEY and dtype in OUTPUT_DTYPES:
        with np.errstate(over="ignore"):
            return array.astype(find_type(dtype))
    return array


def to_array(value: Any, name: str) -> NDArray[Any]:
    """Return nested lists of numbers as an array; `"nan"`, `"inf"` and `"-inf"` count as numbers.

    Raises
    ------
    DataError
        If the lists are ragged or something in them is not a number; the message says where.
    """
    try:
        array = np.asarray(value)
        if is_real(array.dtype):
            return array
    except (ValueError, OverflowError):  # ragged, or too deep: found and named below
        pass
    shape = _measure(value, name)
    flat: list[float] = []
    _flatten(value, shape, (), flat, name)
    return np.array(flat, dtype=np.float64).reshape(shape)


def to_lists(array: NDArray[Any]) -> Any:
    """Return an array as nested lists that strict JSON can hold and `to_array` reads back."""
    values = np.asarray(array)
    if not is_float(values.dtype):
        return values.tolist()
    with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
        values = values.astype(np.float64, copy=False)
    if np.isfinite(values).all():
        return values.tolist()
    return _name_not_finite(values.tolist())


def describe_number(value: float) -> Any:
    """Return a number as strict JSON can hold it."""
    return _name_not_finite(float(value))


class NestedLists(NamedTuple):
    """An array whose JSON text is made a piece at a time, however long it is."""

    values: NDArray[Any]

    def format_json(self) -> Iterator[str]:
        """Yield the pieces of what `json.dumps(to_lists(values))` would return."""
        return _format_pieces(self.values)


def _format_pieces(values: NDArray[Any]) -> Iterator[str]:
    if values.size <= _FORMATTED_AT_ONCE:
        yield json.dumps(to_lists(values), allow_nan=False)
        return
    row = math.prod(values.shape[1:])
    yield "["
    if row > _FORMATTED_AT_ONCE:
        for number, part in enumerate(values):
            yield ", " if number else ""
            yield from _format_pieces(part)
    else:
        step = _FORMATTED_AT_ONCE // row
        for start in range(0, len(values), step):
            yield ", " if start else ""
            yield json.dumps(to_lists(values[start : start + step]), allow_nan=False)[1:-1]
            forget(values)
    yield "]"


def _name_not_finite(value: Any) -> Any:
    if isinstance(value, list):
        return [_name_not_finite(item) for item in value]
    if math.isfinite(value):
        return value
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"


def _measure(value: Any, name: str) -> tuple[int, ...]:
    shape: list[int] = []
    while isinstance(value, list):
        if len(shape) == MOST_AXES:
            raise DataError(f"{name} is nested too deeply; a tensor has at most {MOST_AXES} axes")
        shape.append(len(value))
        if not value:
            break
        value = value[0]
    return tuple(shape)


def _flatten(value: Any, shape: tuple[int, ...], path: tuple[int, ...], flat: list[float], name: str) -> None:
    where = "".join(f"[{i}]" for i in path) or "the top"
    if not shape:
        flat.append(_to_number(value, name, where))
        return
    if not isinstance(value, list):
        raise DataError(f"{name} is ragged: {_show(value)} at {where}, where a list of {shape[0]} belongs")
    if len(value) != shape[0]:
        raise DataError(f"{name} is ragged: a list of {len(value)} at {where}, where one of {shape[0]} belongs")
    for i, item in enumerate(value):
        _flatten(item, shape[1:], (*path, i), flat, name)


def _to_number(value: Any, name: str, where: str) -> float:
    if isinstance(value, str) and value.lower() in _NOT_FINITE:
        return _NOT_FINITE[value.lower()]
    if isinstance(value, list):
        raise DataError(f"{name} is ragged: a list at {where}, where a number belongs")
    if not isinstance(value, int | float):
        raise DataError(f"{name} holds {_show(value)} at {where}, where a number belongs")
    try:
        return float(value)
    except OverflowError as error:
        raise DataError(f"{name} holds an integer beyond float64 at {where}") from error


def _show(value: Any, most: int = 24) -> str:
    text = json.dumps(value) if isinstance(value, str | int | float | bool | None) else "an object"
    return text if len(text) <= most else f"{text[:most]}…"
