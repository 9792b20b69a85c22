"""The record of an option: its kind, and its values in Python, on a command line and in JSON."""

from __future__ import annotations

import enum
import math
import operator
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from normcli.dtypes import find_type
from normcli.errors import UsageError
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from normcli.norms.norm import Norm


class OptionKind(enum.Enum):
    """The type of an option's values; the value of a member is the type's name in messages."""

    INTEGER = "an integer"
    NUMBER = "a number"
    CHOICE = "one of a few words"
    TEXT = "a text"
    PAIR = "two numbers"
    VECTOR = "a list of numbers"
    SLICE = "a first place and the one after the last, such as 0:64"
    FLAG = "yes or no"
    AXES = "a list of axes, by number or letter"
    DTYPE = "the name of a dtype"
    FRAMEWORK = "the name of a framework"


NUMERIC_TYPES: Mapping[OptionKind, type[int] | type[float]] = MappingProxyType(
    {OptionKind.INTEGER: int, OptionKind.NUMBER: float}
)
"""Kind → Python's type, for the two kinds of numeric options."""


def _convert_axes(value: Any) -> int | tuple[int | str, ...]:
    try:
        return operator.index(value)  # whatever is an integer: NumPy's too
    except TypeError:
        return tuple(part if isinstance(part, str) else operator.index(part) for part in value)


def _convert_pair(value: Any) -> tuple[float, float]:
    low, high = (float(operator.pos(part)) for part in value)
    return low, high


def _convert_vector(value: Any) -> tuple[float, ...]:
    """Return the numbers of a list, or of an array of any shape."""
    parts = value.reshape(-1).tolist() if hasattr(value, "reshape") else value
    return tuple(float(operator.pos(part)) for part in parts)


def _convert_slice(value: Any) -> tuple[int, int]:
    ends = (value.start or 0, value.stop) if isinstance(value, slice) else value
    start, stop = map(operator.index, ends)
    return start, stop


def read_flag(value: Any) -> bool:
    """Return a bool from a boolean of any library, or from 0 or 1."""
    return bool(operator.index(value.item() if hasattr(value, "item") else value))


_CONVERTERS: Mapping[OptionKind, Callable[[Any], Any]] = {
    OptionKind.INTEGER: operator.index,
    OptionKind.NUMBER: lambda value: float(operator.pos(value)),  # a string has no sign
    OptionKind.AXES: _convert_axes,
    OptionKind.PAIR: _convert_pair,
    OptionKind.SLICE: _convert_slice,
    OptionKind.VECTOR: _convert_vector,
    OptionKind.FLAG: lambda value: read_flag(value) or None,  # what is not asked for is left open
}

_WORDS_OF_FLAGS = {"yes": True, "no": False}


class Option(NamedTuple):
    """One option, as a row of the table.

    Parameters
    ----------
    name : str
        The name of the Python argument; the command line has dashes for its underscores.
    kind : OptionKind
    help : str
        The description in help texts.
    is_of : callable or None
        Takes a norm and returns whether it has the option; None if every norm has it. (A convention may bring
        `eps` to a norm without eps of its own.)
    choices : tuple of str
        The words that a `CHOICE` or a `DTYPE` takes.
    default : int, float, str, tuple or None
        The value if neither caller nor convention nor norm chooses one; None without a default.
    metavar : str or None
        The placeholder of the value in help texts; None if the kind determines it.
    is_allowed : callable
        Takes a value of the right kind and returns whether it is in range.
    requirement : str
        The end of the message for a value out of range, after "is": "not a finite number".
    """

    name: str
    kind: OptionKind
    help: str
    is_of: Callable[[Norm], bool] | None = None
    choices: tuple[str, ...] = ()
    default: float | str | tuple[float, float] | None = None
    metavar: str | None = None
    is_allowed: Callable[[Any], bool] = lambda _: True
    requirement: str = "not a finite number"

    @property
    def word(self) -> str:
        """The name on a command line, without its leading dashes."""
        return self.name.replace("_", "-")

    def belongs_to(self, norm: Norm) -> bool:
        """Whether a norm has the option."""
        return self.is_of is None or self.is_of(norm)

    def find_default(self, norm: Norm) -> Any:
        """Return the default of this option for a norm: the norm's own, else the option's; None without one."""
        own = getattr(norm, self.name, None) if self.is_of else None
        return self.default if own is None else own

    def convert(self, value: Any) -> Any:
        """Return a Python argument as a value of this option: a NumPy integer as an int, a list as a tuple.

        None stays None, and a flag that is False becomes None.

        Raises
        ------
        UsageError
            If the argument is not of the option's kind.
        """
        if value is None or (isinstance(value, str) and self.kind not in _NEVER_TEXT):
            return value
        try:
            return _CONVERTERS[self.kind](value)
        except (KeyError, TypeError, ValueError, OverflowError):
            raise UsageError(f"{self.name} {value!r} is not {self.kind.value}") from None

    def parse(self, text: str) -> Any:
        """Return a word of the command line as a value of this option.

        Raises
        ------
        UsageError
            If the word is no value of the option's kind.
        """
        try:
            if self.kind in (OptionKind.PAIR, OptionKind.VECTOR):
                return self.convert([*map(float, text.split(","))])
            if self.kind is OptionKind.SLICE:
                return self.convert([*map(int, text.split(":"))])
            if self.kind is OptionKind.FLAG:
                return _WORDS_OF_FLAGS[text]
            return NUMERIC_TYPES[self.kind](text) if self.kind in NUMERIC_TYPES else text
        except (ValueError, KeyError, UsageError):
            raise UsageError(f"{self.name} takes {self.kind.value}, not {text!r}") from None

    def format(self, value: Any) -> str:
        """Return a value of this option as a word of the command line, such as `10,90` or `yes`.

        `parse` is the inverse.
        """
        if isinstance(value, bool):
            return next(word for word, meaning in _WORDS_OF_FLAGS.items() if meaning is value)
        if isinstance(value, float):
            short = f"{value:g}"
            return short if float(short) == value else repr(value)
        separator = ":" if self.kind is OptionKind.SLICE else ","
        return separator.join(map(self.format, value)) or "()" if isinstance(value, tuple) else str(value)

    def describe(self, value: Any) -> Any:
        """Return a value of this option as JSON can hold it: an infinity becomes a string.

        `read` is the inverse.
        """
        return str(value) if value in (math.inf, -math.inf) else value

    def read(self, value: Any) -> Any:
        """Return a value of this option from its JSON form, as `describe` writes it.

        Raises
        ------
        UsageError
            If the value is not of the option's kind.
        """
        is_infinite = self.kind is OptionKind.NUMBER and value in ("inf", "-inf")
        return self.convert(float(value) if is_infinite else value)

    def check(self, value: Any) -> None:
        """Raise `UsageError` unless a value, of this option's kind, is one of its choices and in range.

        bfloat16 raises `MissingExtraError` if its library is missing.
        """
        if self.choices and value not in self.choices:
            listed = f"none of {', '.join(self.choices)}"
            if len(self.choices) == 2:
                listed = f"neither {self.choices[0]!r} nor {self.choices[1]!r}"
            raise UsageError(f"{self.name} {value!r} is {listed}")
        if not self.is_allowed(value):
            written = self.format(value) if isinstance(value, tuple) else value
            shown = "" if self.kind is OptionKind.VECTOR else f" {written}"
            raise UsageError(f"{self.name}{shown} is {self.requirement}")
        if self.kind is OptionKind.DTYPE:
            find_type(value)


_NEVER_TEXT = (*NUMERIC_TYPES, OptionKind.PAIR, OptionKind.SLICE, OptionKind.VECTOR, OptionKind.FLAG)
"""The kinds whose values are never strings."""
