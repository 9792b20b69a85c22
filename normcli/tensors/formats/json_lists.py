"""Lists of numbers as text: JSON, bare or in normcli's own output; and as NumPy and PyTorch print them."""

from __future__ import annotations

import contextlib
import json
import math
import re
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from normcli.dtypes import LARGEST_EXACT, MOST_AXES, OUTPUT_DTYPES, find_type, is_float, is_real
from normcli.errors import DataError, UsageError
from normcli.printable import shorten
from normcli.tensors.formats.json_items import RepeatedNameError, make_object
from normcli.tensors.pieces import decode, expect, iterate_blocks
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray


TENSOR_KEY = "normalized"
"""The key under which normcli's own JSON holds its tensor."""

DTYPE_KEY = "dtype"
"""The key under which normcli's own JSON holds the dtype of its tensor."""

_FORMATTED_AT_ONCE = 8192
"""The number of values formatted at a time, whose text is in memory."""

_NOT_FINITE = frozenset(("nan", "inf", "+inf", "-inf"))
"""The texts of numbers that strict JSON lacks: NaN and infinities."""


class Parsed(NamedTuple):
    """The array that a text holds, and a note on numbers that were rounded as it was read, or None."""

    values: NDArray[Any]
    note: str | None = None


def read_json(stream: BinaryIO, name: str, key: str | None = None) -> Parsed:
    """Read the tensor of a JSON text: a nested list, or the member `key` (`normalized` if None) of an object.

    Raises
    ------
    DataError
        If the text is no JSON in UTF-8, holds no rectangular array of numbers, or is an object without
        `normalized` and no key is given.
    UsageError
        If there is a key, and no array called so.
    """
    return parse_json(decode(stream.read(), name, "JSON"), name, key)


def parse_json(text: str, name: str, key: str | None = None) -> Parsed:
    """Return the tensor of a JSON text: a nested list, or the member `key` (`normalized` if None) of an object.

    The member `normalized` is rounded to the dtype that the object's member `dtype` names, if there is one.
    `DataError` and `UsageError` are raised as by `read_json`; `name` is the text's name in messages.
    """
    if not text.strip():
        raise DataError(f"{name} is empty; a nested list of numbers is expected")
    try:
        value = json.loads(text, object_pairs_hook=make_object)
    except json.JSONDecodeError as error:
        raise DataError(f"{name} is not valid JSON at line {error.lineno}, column {error.colno}") from error
    except RecursionError as error:
        raise DataError(f"{name} is nested too deeply; a tensor has at most {MOST_AXES} axes") from error
    except RepeatedNameError as error:
        raise DataError(f"{name}: an object {error}") from error
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
    parsed = to_array(value[wanted], name)
    dtype = value.get(DTYPE_KEY)
    if wanted == TENSOR_KEY and dtype in OUTPUT_DTYPES:
        with np.errstate(over="ignore"):
            return Parsed(parsed.values.astype(find_type(dtype)))
    return parsed


def to_array(value: Any, name: str) -> Parsed:
    """Return nested lists of numbers as an array; `"nan"`, `"inf"` and `"-inf"` count as numbers.

    Lists of whole numbers become int64, or uint64 if all of them fit only there; lists of booleans become bool;
    all others become float64, with a note if that rounds a whole number.

    Raises
    ------
    DataError
        If the lists are ragged or an item is not a number; the message says where.
    """
    with contextlib.suppress(ValueError, OverflowError):  # ragged, or too deep: what is wrong is found below
        array = np.asarray(value)
        if is_real(array.dtype) and array.ndim <= MOST_AXES:
            return _hold_whole_numbers(value, array)
    shape = _find_shape(value, name)
    array = np.array(list(_flatten(value, shape, name)), dtype=np.float64).reshape(shape)
    return _hold_whole_numbers(value, array)


def _hold_whole_numbers(value: Any, array: NDArray[Any]) -> Parsed:
    """Return the array of nested lists, as uint64 if float64 may round one of its numbers and uint64 holds all.

    Otherwise the array is returned as it is, with a note that names the first whole number that float64
    rounded, if there is one.

    Parameters
    ----------
    value : list, number or str
        The nested lists.
    array : ndarray
        The array that NumPy made of them.
    """
    if array.dtype != np.float64 or not (np.abs(array) >= LARGEST_EXACT).any():
        return Parsed(array)
    members = np.asarray(value, dtype=object)
    if all(type(member) is int for member in members.flat):
        with contextlib.suppress(OverflowError):  # beyond uint64 too, or some are negative
            return Parsed(members.astype(np.uint64))
    for index, member in np.ndenumerate(members):
        if type(member) is int and int(float(member)) != member:
            where = "".join(f"[{i}]" for i in index) or "the top"
            reason = "no integer dtype holds all numbers there"
            return Parsed(array, f"{shorten(str(member))} at {where} is rounded to float64: {reason}")
    return Parsed(array)


def to_lists(array: NDArray[Any]) -> Any:
    """Return an array as nested lists that strict JSON can hold, NaN and infinities as strings."""
    values = np.asarray(array)
    if not is_float(values.dtype):
        return values.tolist()
    with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
        values = values.astype(np.float64, copy=False)
    if np.isfinite(values).all():
        return values.tolist()
    return _name_not_finite(values.tolist())


def describe_number(value: float) -> Any:
    """Return a number as strict JSON can hold it: `"nan"`, `"inf"` or `"-inf"` if it is not finite."""
    return _name_not_finite(float(value))


class NestedLists(NamedTuple):
    """An array that is written as JSON, in pieces, as its text may be too long for memory."""

    values: NDArray[Any]

    def format_json(self) -> Iterator[str]:
        """Yield pieces of the array's JSON text: nested lists, NaN and infinities as strings (`"nan"`)."""
        values, row = self.values, math.prod(self.values.shape[1:])
        if values.size <= _FORMATTED_AT_ONCE:
            yield json.dumps(to_lists(values), allow_nan=False)
            return
        advance = expect(values.nbytes)

        def format_parts() -> Iterator[Iterable[str]]:
            if row > _FORMATTED_AT_ONCE:
                for part in values:
                    yield NestedLists(part).format_json()
                    advance(part.nbytes)
                return
            for rows in iterate_blocks(values, _FORMATTED_AT_ONCE):
                yield [json.dumps(to_lists(rows), allow_nan=False)[1:-1]]
                advance(rows.nbytes)

        yield from join_json(format_parts())


def join_json(parts: Iterable[Iterable[str]], brackets: str = "[]") -> Iterator[str]:
    """Yield the pieces of a JSON list, or with `brackets` "{}" an object, from the pieces of each item."""
    yield brackets[0]
    for number, part in enumerate(parts):
        yield ", " if number else ""
        yield from part
    yield brackets[1]


def _name_not_finite(value: Any) -> Any:
    if isinstance(value, list):
        return [_name_not_finite(item) for item in value]
    if math.isfinite(value):
        return value
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"


def _find_shape(value: Any, name: str) -> tuple[int, ...]:
    """Return the shape of nested lists, judged by the first item of each list; `()` for anything else.

    Raises `DataError` for lists that are nested more deeply than a tensor has axes.
    """
    shape: list[int] = []
    while isinstance(value, list):
        if len(shape) == MOST_AXES:
            raise DataError(f"{name} is nested too deeply; a tensor has at most {MOST_AXES} axes")
        shape.append(len(value))
        if not value:
            break
        value = value[0]
    return tuple(shape)


def _flatten(value: Any, shape: tuple[int, ...], name: str, path: str = "") -> Iterator[float]:
    """Yield the numbers of nested lists as floats; raise `DataError` if the lists are not of the shape.

    `path` is the index of `value` in the outermost list, such as `[0][2]`, for messages.
    """
    where = path or "the top"
    if not shape:
        yield _to_number(value, name, where)
        return
    if not isinstance(value, list):
        raise DataError(
            f"{name} is ragged: {_format_value(value)} at {where}, where a list of {shape[0]} belongs"
        )
    if len(value) != shape[0]:
        raise DataError(f"{name} is ragged: a list of {len(value)} at {where}, where one of {shape[0]} belongs")
    for i, item in enumerate(value):
        yield from _flatten(item, shape[1:], name, f"{path}[{i}]")


def _to_number(value: Any, name: str, where: str) -> float:
    """Return a parsed number, or a text such as "nan", as a float; raise `DataError` for other values."""
    if isinstance(value, list):
        raise DataError(f"{name} is ragged: a list at {where}, where a number belongs")
    is_text = isinstance(value, str) and value.lower() in _NOT_FINITE
    if not isinstance(value, int | float) and not is_text:
        raise DataError(f"{name} holds {_format_value(value)} at {where}, where a number belongs")
    try:
        return float(value)
    except OverflowError as error:
        raise DataError(f"{name} holds an integer beyond float64 at {where}") from error


def _format_value(value: Any) -> str:
    return shorten(json.dumps(value)) if isinstance(value, str | int | float | bool | None) else "an object"


_PRINTED = (
    r"\s*(?:Parameter containing:\s*)?(?:\w+\s*=\s*)?(?P<call>[\w.]+\()?"
    r"\s*(?P<numbers>\[[^()]*\]|(?(call)[^\s,\[\]()]+|(?!)))"
    r"\s*(?P<options>(?:,(?:[^\[\]()]|\([\d,\s]*\))*)?)\)?\s*"
)
_SCALAR = r"\bnp\.\w+\(([^()]*)\)"
_COMMENT = r"#[^\n]*"
_DTYPE = r"dtype='?(?:torch\.|np\.|numpy\.)?(\w+)"
_NO_NUMBER = r"[\[,]\s*,"
_TOKEN = r"[\[\]]|[^\s,\[\]]+"
_WHOLE = r"[-+]?\d+"
_NUMBER = r"[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan|inf)"
_TRUTH = {"True": "true", "False": "false"}


class Printed(NamedTuple):
    """A list of numbers that NumPy, PyTorch or Python printed.

    Parameters
    ----------
    json : str
        The numbers as nested lists in JSON.
    dtype : dtype or None
        The dtype that is printed after the numbers; None without one.
    """

    json: str
    dtype: np.dtype[Any] | None


def read_printed(text: str, name: str) -> Printed | None:
    r"""Return the numbers that NumPy, PyTorch or Python printed; None if a text is no such list.

    A single number counts if it stands in a call, such as `tensor(1.5)`.

    Parameters
    ----------
    text : str
    name : str
        The origin of the text, for messages.

    Raises
    ------
    DataError
        If numbers are left out (`...`), or the dtype is none of real numbers.

    Examples
    --------
    >>> read_printed("tensor([[1., 2.], [nan, -.5]], dtype=torch.float64)", "--data")
    Printed(json='[[1.0,2.0],["nan",-0.5]]', dtype=dtype('float64'))
    >>> read_printed("[[6 3]\n [7 4]]", "--data").json
    '[[6,3],[7,4]]'
    """
    text = re.sub(_COMMENT, "", text)
    found = re.fullmatch(_PRINTED, text) or re.fullmatch(_PRINTED, re.sub(_SCALAR, r"\1", text))
    if found is None or re.search(_NO_NUMBER, found["numbers"]):
        return None
    tokens = re.findall(_TOKEN, found["numbers"])
    if "..." in tokens:
        raise DataError(f"{name} leaves out numbers at “...”: print all of them, or save the array to a file")
    spelled = ""
    for token in tokens:
        if token not in "[]" and token not in _TRUTH and not re.fullmatch(_NUMBER, token):
            return None
        spelled += ("" if token == "]" or spelled[-1:] in ("", "[") else ",") + _spell(token)
    if tokens.count("[") != tokens.count("]"):
        return None
    return Printed(spelled, _read_dtype(found["options"], name))


def _spell(token: str) -> str:
    """Return a bracket, truth value or number of a printed list as JSON text, NaN and infinities as strings."""
    if token in "[]" or re.fullmatch(_WHOLE, token):
        return token.removeprefix("+")
    if token in _TRUTH:
        return _TRUTH[token]
    return f'"{token}"' if token[-1] in "nf" else repr(float(token))


def _read_dtype(options: str, name: str) -> np.dtype[Any] | None:
    """Return the dtype in what is printed after numbers, such as `dtype=torch.float16`; None without one.

    Raises `DataError` for a dtype that is none of real numbers.
    """
    found = re.search(_DTYPE, options)
    if found is None:
        return None
    dtype = found[1]
    if dtype not in OUTPUT_DTYPES and not re.fullmatch(r"u?int\d+|bool_?", dtype):
        raise DataError(f"{name} holds {dtype}; integers, booleans and floats are taken")
    made: np.dtype[Any] = np.dtype(find_type(dtype))
    return made
