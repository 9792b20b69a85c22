"""The table of options: what can be chosen of a norm, by which values, and which norms have the choice.

All that names options reads this table: the command line, `NORM:option=value`, the arguments of `normalize`,
the manifest of golden files, stats files, and the checks. To add an option, add a row and a
field of `Request`.
"""

from __future__ import annotations

import enum
import math
import operator
from typing import TYPE_CHECKING, Any, NamedTuple

from normcli.dtypes import OUTPUT_DTYPES, find_type
from normcli.errors import UsageError
from normcli.norms.divisors import LENGTH, WINDOW_POWER
from normcli.norms.table import AxesRule, Centre, EpsMode, GroupOrder, Norm

if TYPE_CHECKING:
    from collections.abc import Callable


class Kind(enum.Enum):
    """What the values of an option are; the value is how a message says it."""

    INTEGER = "an integer"
    NUMBER = "a number"
    CHOICE = "one of a few words"
    TEXT = "a name"
    AXES = "axes, by number or letter"
    DTYPE = "a dtype"
    FRAMEWORK = "the name of a framework"


class Option(NamedTuple):
    """One row of the table.

    Parameters
    ----------
    name : str
        As a Python argument; the command line has dashes for its underscores.
    kind : Kind
    help : str
        What it means, in a sentence for help texts.
    is_of : callable or None
        Whether a norm has the option; None where every norm has. A convention may bring an `eps` to a norm that
        has none of its own.
    choices : tuple of str
        The words that a `CHOICE` or a `DTYPE` takes.
    default : int, float, str or None
        The value where neither caller nor convention nor norm chooses one; None where there is none.
    default_words : str
        The default in words, where it depends on the tensor.
    metavar : str
        What stands for the value in help texts; empty for what follows from the kind.
    is_allowed : callable
        Whether a value, of the right kind, is in range.
    requirement : str
        What a value that is not allowed fails to be: "is not a finite number".
    """

    name: str
    kind: Kind
    help: str
    is_of: Callable[[Norm], bool] | None = None
    choices: tuple[str, ...] = ()
    default: float | str | None = None
    default_words: str = ""
    metavar: str = ""
    is_allowed: Callable[[Any], bool] = lambda _: True
    requirement: str = ""

    @property
    def word(self) -> str:
        """The name on a command line, without its leading dashes."""
        return self.name.replace("_", "-")

    def belongs_to(self, norm: Norm) -> bool:
        """Whether a norm has the option."""
        return self.is_of is None or self.is_of(norm)

    def say_default(self, norm: Norm | None) -> str:
        """Return the default in words, of a norm or of any; empty where there is none."""
        own = None if norm is None or self.kind is Kind.AXES else getattr(norm, self.name, None)
        value = self.default if own is None else own
        if value is None and norm is None and self.name in Norm._fields:
            return "each norm's"
        if self.default_words or value is None:
            return self.default_words
        return f"{value:g}" if isinstance(value, float | int) else str(value)

    def convert(self, value: Any) -> Any:
        """Return an argument of Python, or a member of a JSON object, as a value of this option.

        Raises
        ------
        UsageError
            If it is of another kind.
        """
        if value is None:
            return None
        match self.kind:
            case Kind.INTEGER:
                return self._convert_by(operator.index, value)
            case Kind.NUMBER:
                return self._convert_by(lambda number: float(operator.pos(number)), value)  # text has no sign
            case Kind.AXES:
                return self._convert_axes(value)
            case _ if isinstance(value, str):
                return value
        raise UsageError(f"{self.name} {value!r} is not {self.kind.value}")

    def parse(self, text: str) -> Any:
        """Return a word of a command line as a value of this option.

        Raises
        ------
        UsageError
            If it is none.
        """
        number = {Kind.INTEGER: int, Kind.NUMBER: float}.get(self.kind)
        try:
            return text if number is None else number(text)
        except ValueError:
            raise UsageError(f"{self.name} takes {self.kind.value}, not {text!r}") from None

    def format(self, value: Any) -> str:
        """Return a value as a command line has it: `parse` gives it back."""
        if isinstance(value, float):
            short = f"{value:g}"
            return short if float(short) == value else repr(value)
        return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)

    def describe(self, value: Any) -> Any:
        """Return a value as JSON has it, which knows no infinity: `read` gives it back."""
        return str(value) if value in (math.inf, -math.inf) else value

    def read(self, value: Any) -> Any:
        """Return what `describe` made of a value.

        Raises
        ------
        UsageError
            If it is of another kind.
        """
        is_infinite = self.kind is Kind.NUMBER and value in ("inf", "-inf")
        return self.convert(float(value) if is_infinite else value)

    def check(self, value: Any) -> None:
        """Raise `UsageError` unless a value of the right kind is in range."""
        if self.choices and value not in self.choices:
            listed = f"none of {', '.join(self.choices)}"
            if len(self.choices) == 2:
                listed = f"neither {self.choices[0]!r} nor {self.choices[1]!r}"
            raise UsageError(f"{self.name} {value!r} is {listed}")
        if not self.is_allowed(value):
            raise UsageError(f"{self.name} {value} is {self.requirement}")
        if self.kind is Kind.DTYPE:
            find_type(value)

    def _convert_by(self, function: Callable[[Any], Any], value: Any) -> Any:
        try:
            return function(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise UsageError(f"{self.name} {value!r} is not {self.kind.value}") from error

    def _convert_axes(self, value: Any) -> str | int | tuple[int | str, ...]:
        if isinstance(value, str):
            return value
        try:
            return operator.index(value)  # whatever is an integer: NumPy's too
        except TypeError:
            pass
        try:
            return tuple(part if isinstance(part, str) else operator.index(part) for part in value)
        except TypeError as error:
            raise UsageError(f"{self.name} {value!r} is no list of {Kind.AXES.value}") from error


def _has_window(norm: Norm) -> bool:
    return norm.divisor == WINDOW_POWER


_IS_NOT_FINITE = "not a finite number"

OPTIONS = (
    Option(
        "layout",
        Kind.TEXT,
        "One letter an axis: NCHW, NLC, bnd.",
        default_words="by rank",
        metavar="LETTERS",
    ),
    Option(
        "axes",
        Kind.AXES,
        "The axes to reduce, by letter or number: CHW, 1,2,3 or -1.",
        metavar="AXES",
    ),
    Option(
        "keep",
        Kind.AXES,
        "The axes to keep; all others are reduced.",
        metavar="AXES",
    ),
    Option(
        "groups",
        Kind.INTEGER,
        "The number of channel groups.",
        is_of=lambda norm: norm.axes is AxesRule.CHANNEL_GROUPS,
        metavar="G",
    ),
    Option(
        "group_order",
        Kind.CHOICE,
        "A group's channels: neighbours, or every G-th.",
        is_of=lambda norm: norm.axes is AxesRule.CHANNEL_GROUPS,
        choices=tuple(order.value for order in GroupOrder),
        default=GroupOrder.CONTIGUOUS.value,
    ),
    Option(
        "eps",
        Kind.NUMBER,
        "Keeps the divisor from 0.",
        is_of=lambda norm: norm.eps is not None,
        is_allowed=lambda eps: 0 <= eps < math.inf,
        requirement="not a finite number ≥ 0",
    ),
    Option(
        "eps_mode",
        Kind.CHOICE,
        "√(var + eps) or √var + eps.",
        is_of=lambda norm: norm.eps_mode in (EpsMode.INSIDE, EpsMode.OUTSIDE),
        choices=(EpsMode.INSIDE.value, EpsMode.OUTSIDE.value),
    ),
    Option(
        "ddof",
        Kind.INTEGER,
        "The variance's divisor is n − ddof.",
        is_of=lambda norm: norm.centre is Centre.MEAN,
        default=0,
        is_allowed=lambda ddof: ddof >= 0,
        requirement="negative",
    ),
    Option(
        "p",
        Kind.NUMBER,
        "The exponent of the length, ≥ 0 or inf.",
        is_of=lambda norm: norm.divisor == LENGTH and norm.p is None,
        default=2.0,  # ℓ2, as in every framework's `normalize`
        is_allowed=lambda p: p >= 0,
        requirement="not a number ≥ 0 (inf is one)",
    ),
    Option(
        "size",
        Kind.INTEGER,
        "Channels in a window.",
        is_of=_has_window,
        default=5,  # Krizhevsky et al. 2012, section 3.3 (n = 5); ONNX and torch have no default
        is_allowed=lambda size: size >= 1,
        requirement="not a window of one channel or more",
    ),
    # The defaults of ONNX LRN (opset 13) and of torch 2.13; the 2012 paper has k = 2 and an undivided α.
    Option(
        "alpha",
        Kind.NUMBER,
        "Factor of the mean square.",
        is_of=_has_window,
        default=1e-4,
        is_allowed=math.isfinite,
        requirement=_IS_NOT_FINITE,
    ),
    Option(
        "exponent",
        Kind.NUMBER,
        "Power of the divisor.",
        is_of=_has_window,
        default=0.75,
        is_allowed=math.isfinite,
        requirement=_IS_NOT_FINITE,
    ),
    Option(
        "k",
        Kind.NUMBER,
        "Summand of the divisor.",
        is_of=_has_window,
        default=1.0,
        is_allowed=math.isfinite,
        requirement=_IS_NOT_FINITE,
    ),
    Option(
        "dtype",
        Kind.DTYPE,
        "Of the output (and of a generated tensor).",
        choices=OUTPUT_DTYPES,
    ),
    Option(
        "like",
        Kind.FRAMEWORK,
        "Follow a framework; other options override it.",
        metavar="FRAMEWORK",
    ),
)
"""The table, in the order in which help texts list the options."""

NAMES = tuple(option.name for option in OPTIONS)

_BY_NAME = {option.name: option for option in OPTIONS}


def find_option(name: str) -> Option:
    """Return the option of that name."""
    return _BY_NAME[name]
