"""The table of options: each choice that a caller has for a norm, its values, and the norms that have it.

The command line, `NORM:option=value`, the arguments of `normalize`, the manifest of golden files, stats
files and the checks of a request are all made from this table. To add an option, add a row and a field of
`Request`.
"""

from __future__ import annotations

import enum
import math
import operator
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from normcli.dtypes import LARGEST_EXACT, OUTPUT_DTYPES, find_type
from normcli.errors import UsageError
from normcli.norms.divisors import LENGTH, WINDOW_POWER, Measurement
from normcli.norms.norm import QUARTILES, Norm
from normcli.norms.rules import AxesRule, EpsMode, GroupOrder, ParameterRule
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class OptionKind(enum.Enum):
    """The type of an option's values; the member's value is its name in messages."""

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
        Returns whether a norm has the option; None if every norm has it. (A convention may bring `eps` to a
        norm without eps of its own.)
    choices : tuple of str
        The words that a `CHOICE` or a `DTYPE` takes.
    default : int, float, str, tuple or None
        The value where neither caller nor convention nor norm chooses one; None without a default.
    metavar : str or None
        The placeholder of the value in help texts; None where the kind determines it.
    is_allowed : callable
        Returns whether a value of the right kind is in range.
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
        """Return the value where neither caller nor convention chooses one; None without a default."""
        own = getattr(norm, self.name, None) if self.is_of else None
        return self.default if own is None else own

    def convert(self, value: Any) -> Any:
        """Return a Python argument as a value of this option: a NumPy integer as an int, a list as a tuple.

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
        """Return a value as a word of the command line, such as `10,90` or `yes`; `parse` is the inverse."""
        if isinstance(value, bool):
            return next(word for word, meaning in _WORDS_OF_FLAGS.items() if meaning is value)
        if isinstance(value, float):
            short = f"{value:g}"
            return short if float(short) == value else repr(value)
        separator = ":" if self.kind is OptionKind.SLICE else ","
        return separator.join(map(self.format, value)) or "()" if isinstance(value, tuple) else str(value)

    def describe(self, value: Any) -> Any:
        """Return a value that JSON can hold: an infinity becomes a string; `read` is the inverse."""
        return str(value) if value in (math.inf, -math.inf) else value

    def read(self, value: Any) -> Any:
        """Return the value of this option that `describe` returned for JSON.

        Raises
        ------
        UsageError
            If the value is not of the option's kind.
        """
        is_infinite = self.kind is OptionKind.NUMBER and value in ("inf", "-inf")
        return self.convert(float(value) if is_infinite else value)

    def _write(self, value: Any) -> str:
        """Return a value as messages show it."""
        return self.format(value) if isinstance(value, tuple) else str(value)

    def check(self, value: Any) -> None:
        """Raise `UsageError` unless a value of the right kind is one of the choices and in range."""
        if self.choices and value not in self.choices:
            listed = f"none of {', '.join(self.choices)}"
            if len(self.choices) == 2:
                listed = f"neither {self.choices[0]!r} nor {self.choices[1]!r}"
            raise UsageError(f"{self.name} {value!r} is {listed}")
        if not self.is_allowed(value):
            shown = "" if self.kind is OptionKind.VECTOR else f" {self._write(value)}"
            raise UsageError(f"{self.name}{shown} is {self.requirement}")
        if self.kind is OptionKind.DTYPE:
            find_type(value)


_NEVER_TEXT = (*NUMERIC_TYPES, OptionKind.PAIR, OptionKind.SLICE, OptionKind.VECTOR, OptionKind.FLAG)
"""The kinds whose values are never strings."""


def _has_optional_steps(norm: Norm) -> bool:
    return norm.has_optional_steps


def _is_quantiles(pair: tuple[float, float]) -> bool:
    """Whether a pair is two ascending quantiles in per cent, with few enough decimals."""
    return 0 <= pair[0] < pair[1] <= 100 and all(round(share, QUANTILE_DIGITS) == share for share in pair)


QUANTILE_DIGITS = 3
"""The most decimals of a quantile in per cent: with more, its rank among values might not fit in 64 bits."""


def _has_groups(norm: Norm) -> bool:
    return norm.needs_groups or norm.takes_groups


def _has_parameters(norm: Norm) -> bool:
    return norm.parameters is not ParameterRule.NONE


def _takes_eps(norm: Norm) -> bool:
    return norm.eps is not None or norm.divisor.about_mean


def _has_matrices(norm: Norm) -> bool:
    return norm.rows is not None


def _is_start(vector: tuple[float, ...]) -> bool:
    """Whether power iterations may start from a vector."""
    return all(map(math.isfinite, vector)) and any(vector)


MOST_ITERATIONS = 1000
"""The most power iterations; a hundred for a 512×512 matrix take about a second, and frameworks use 1 or 15."""


def _has_window(norm: Norm) -> bool:
    return norm.divisor == WINDOW_POWER


_NO_START = "not a list of finite numbers of which one at least is not 0"

_ORDERS = tuple(order.value for order in GroupOrder)
_MODES = (EpsMode.INSIDE.value, EpsMode.OUTSIDE.value)

OPTIONS = (
    Option(
        "layout", OptionKind.TEXT, "A letter an axis, NCHW, or words: time,lat,lon. [default: by rank]",
        metavar="LETTERS",
    ),
    Option(
        "axes", OptionKind.AXES, "The axes to reduce, by letter or number: CHW, 1,2,3 or -1; () is none.",
        metavar="AXES",
    ),
    Option("keep", OptionKind.AXES, "The axes to keep; all others are reduced.", metavar="AXES"),
    Option(
        "feature_axes", OptionKind.AXES, "The axes that gamma and beta lie along.", _has_parameters,
        metavar="AXES",
    ),
    Option(
        "gamma_offset", OptionKind.INTEGER, "Added to gamma: 1 of Gemma's weights, and of a scale.",
        _has_parameters, metavar="N", default=0,
        is_allowed=lambda offset: 0 <= offset <= LARGEST_EXACT, requirement="not from 0 to 2⁵³",
    ),
    Option(
        "rows", OptionKind.AXES, "A matrix's rows; the other axes are its columns. [default: the first]",
        _has_matrices, metavar="AXES",
    ),
    Option(
        "iterations", OptionKind.INTEGER,
        "Divide by uᵀXv of so many power iterations from u (or v). [default: 1; 0 from both]", _has_matrices,
        metavar="N", is_allowed=lambda count: 0 <= count <= MOST_ITERATIONS,
        requirement=f"not a number of iterations from 0 to {MOST_ITERATIONS}",
    ),
    Option(
        "u", OptionKind.VECTOR,
        "What they start from, one number a row, as frameworks keep it: a file or JSON in place.",
        _has_matrices, metavar="VALUE", is_allowed=_is_start, requirement=_NO_START,
    ),
    Option(
        "v", OptionKind.VECTOR,
        "Likewise, one a column: of torch's parametrizations and Equinox. u and v: uᵀXv as it stands, not < 0.",
        _has_matrices, metavar="VALUE", is_allowed=_is_start, requirement=_NO_START,
    ),
    Option(
        "groups", OptionKind.INTEGER, "The number of groups of channels; of rms and lp, of the last axis.",
        _has_groups, metavar="G",
    ),
    Option(
        "group_order", OptionKind.CHOICE, "A group's channels: neighbours, or every G-th.", _has_groups,
        _ORDERS, default=GroupOrder.CONTIGUOUS.value,
    ),
    Option(
        "eps", OptionKind.NUMBER, "Keeps the divisor from 0.", _takes_eps,
        is_allowed=lambda eps: 0 <= eps < math.inf, requirement="not a finite number ≥ 0",
    ),
    Option(
        "eps_mode", OptionKind.CHOICE, "√(var + eps) or √var + eps.",
        lambda norm: norm.eps_mode in _MODES or (norm.eps is None and _takes_eps(norm)), _MODES,
    ),
    Option(
        "ddof", OptionKind.INTEGER, "The variance's divisor is n − ddof.",
        lambda norm: norm.divisor.about_mean,
        default=0, is_allowed=lambda ddof: ddof >= 0, requirement="negative",
    ),
    Option(
        "p", OptionKind.NUMBER, "The exponent of the length, or ±inf; if negative, one 0 makes the length 0.",
        lambda norm: norm.divisor == LENGTH and norm.p is None,
        default=2.0,  # as in every framework's `normalize`
        is_allowed=lambda p: not math.isnan(p), requirement="not a number",
    ),
    Option(
        "size", OptionKind.INTEGER, "Channels in a window; of an even one ONNX has one more after than before.",
        _has_window,
        default=5,  # Krizhevsky et al. 2012, section 3.3 (n = 5); ONNX and torch have no default
        is_allowed=lambda size: 1 <= size <= LARGEST_EXACT, requirement="not a window of 1 to 2⁵³ channels",
    ),
    # The defaults of ONNX LRN (opset 13) and of torch 2.13; the 2012 paper has k = 2 and an undivided α.
    Option(
        "alpha", OptionKind.NUMBER, "Factor of the mean square.", _has_window, default=1e-4,
        is_allowed=math.isfinite,
    ),
    Option(
        "exponent", OptionKind.NUMBER, "Power of the divisor.", _has_window, default=0.75,
        is_allowed=math.isfinite,
    ),
    Option(
        "k", OptionKind.NUMBER, "Summand of the divisor.", _has_window, default=1.0,
        is_allowed=math.isfinite,
    ),
    Option(
        "range", OptionKind.PAIR,
        "From where to where values come to lie: gamma = HIGH − LOW and beta = LOW. [default: 0,1]",
        lambda norm: norm.spans_range, metavar="LOW,HIGH",
        is_allowed=lambda pair: 0 < pair[1] - pair[0] < math.inf,
        requirement="not a lower and a higher bound, such as -1,1, whose difference float64 holds",
    ),
    Option(
        "quantiles", OptionKind.PAIR, "Per cent: what the values are divided by lies between these quantiles.",
        lambda norm: norm.divisor.measurement is Measurement.QUANTILES,
        default=QUARTILES, metavar="LOW,HIGH", is_allowed=_is_quantiles,
        requirement=f"no two quantiles from 0 to 100 with up to {QUANTILE_DIGITS} decimals, such as 10,90",
    ),
    Option(
        "over", OptionKind.SLICE, "Places of the last axis that statistics are over; all are normalized.",
        lambda norm: norm.axes is AxesRule.LAST, metavar="START:STOP",
        is_allowed=lambda places: 0 <= places[0] < places[1], requirement="not an ascending pair of places",
    ),
    Option("no_mean", OptionKind.FLAG, "Subtract nothing.", _has_optional_steps),
    Option("no_scale", OptionKind.FLAG, "Divide by nothing: only subtract.", _has_optional_steps),
    Option("dtype", OptionKind.DTYPE, "Of the output (and of a generated tensor).", choices=OUTPUT_DTYPES),
    Option("like", OptionKind.FRAMEWORK, "Follow a framework; other options override it.", metavar="FRAMEWORK"),
)  # fmt: skip
"""The table, in the order in which help texts list the options."""

_BY_NAME = {option.name: option for option in OPTIONS}

NAMES = _BY_NAME.keys()


def find_option(name: str) -> Option:
    """Return the option of a name; raise `KeyError` if there is none."""
    return _BY_NAME[name]


def list_own_options(norm: Norm) -> tuple[str, ...]:
    """Return the names of the options that a norm has and that not every norm has.

    Examples
    --------
    >>> from normcli.norms.table import NORMS
    >>> list_own_options(NORMS["rms"])
    ('feature_axes', 'gamma_offset', 'groups', 'group_order', 'eps', 'eps_mode', 'over')
    """
    return tuple(option.name for option in OPTIONS if option.is_of is not None and option.is_of(norm))
