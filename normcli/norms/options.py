"""The table of options: each choice that a caller has for a norm, its values, and the norms that have it.

The command line, `NORM:option=value`, the arguments of `normalize`, the manifest of golden files, stats
files and the checks of a request are all made from this table. To add an option, add a row and a field of
`Request`.
"""

from __future__ import annotations

import math

from normcli.dtypes import LARGEST_EXACT, OUTPUT_DTYPES
from normcli.norms.divisors import LENGTH, WINDOW_POWER, Measurement
from normcli.norms.norm import QUARTILES, Norm
from normcli.norms.option_kinds import Option, OptionKind
from normcli.norms.rules import AxesRule, EpsMode, GroupOrder, ParameterRule


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
    """Return the names of a norm's options, without the options that all norms have.

    Examples
    --------
    >>> from normcli.norms.table import NORMS
    >>> list_own_options(NORMS["rms"])
    ('feature_axes', 'gamma_offset', 'groups', 'group_order', 'eps', 'eps_mode', 'over')
    """
    return tuple(option.name for option in OPTIONS if option.is_of is not None and option.is_of(norm))
