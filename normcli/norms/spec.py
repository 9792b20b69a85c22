"""The numeric options of a norm, resolved for a dtype: eps, the window of neighbouring channels and others."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from normcli.dtypes import get_eps, is_half, is_short_float
from normcli.errors import UsageError
from normcli.norms.divisors import LENGTH, WINDOW_POWER, Measurement
from normcli.norms.rules import EpsMode, EpsRule, ExtraNeighbour, FlatRule, ZeroRule
from normcli.printable import format_count
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from normcli.norms.request import Choices


class Window(NamedTuple):
    """The window of `lrn` around channel c: channels c − before … c + after, and the constants of the divisor.

    The divisor of a value is (k + alpha · Σx² / `divisor`)^exponent. `size` is the option of that name, and
    the field `divisor` is either `size` or 1, as the convention says.
    """

    before: int
    after: int
    size: int
    alpha: float
    exponent: float
    k: float
    divisor: int


class Iteration(NamedTuple):
    """Power iterations, which estimate the largest singular value of a matrix X as uᵀXv.

    If u is given, each iteration is v = Xᵀu / ‖Xᵀu‖, then u = Xv / ‖Xv‖; if v is given, the other way round. If
    both are given, there is no iteration: uᵀXv uses them as they are.

    Parameters
    ----------
    steps : int
        The number of iterations.
    u, v : tuple of float or None
        The vectors to start from; at least one of them is not None.
    """

    steps: int
    u: tuple[float, ...] | None
    v: tuple[float, ...] | None

    @property
    def start(self) -> str:
        """The given vectors, in words: `u`, `v`, or `u and v`."""
        return " and ".join(name for name in ("u", "v") if getattr(self, name) is not None)


class NumericSpec(NamedTuple):
    """The numeric options of a norm, resolved; an option that the norm does not have is None.

    Parameters
    ----------
    eps : float or None
    eps_mode : EpsMode or None
    ddof : int
    zero_rule : ZeroRule
        The result of a group whose divisor is 0.
    flat_rule : FlatRule or None
        Further groups that count as constant though their divisor is not 0; None for no others.
    omits_nan : bool
        True if statistics leave NaN out, unless the caller chooses otherwise.
    p : float or None
    quantiles : tuple of float or None
        The two quantiles whose difference is the divisor, in per cent.
    range : tuple of float or None
        The lower and upper bound that each group is scaled to; None for 0 and 1.
    window : Window or None
    dtype : str or None
        The output's dtype; None for the input's.
    like : str or None
        The framework whose convention is followed.
    gamma_offset : int
        Added to gamma before it multiplies.
    rounds_before_gamma : bool
        True if x̂ is rounded to the output's dtype before gamma multiplies it.
    rows : tuple of int or None
        The axes that are the rows of a group's matrix; None where groups are no matrices.
    iteration : Iteration or None
        The power iterations that estimate a matrix's largest singular value; None where the exact one divides.
    """

    eps: float | None
    eps_mode: EpsMode | None
    ddof: int
    zero_rule: ZeroRule
    flat_rule: FlatRule | None
    omits_nan: bool
    p: float | None
    quantiles: tuple[float, float] | None
    range: tuple[float, float] | None
    window: Window | None
    dtype: str | None
    like: str | None
    gamma_offset: int
    rounds_before_gamma: bool
    rows: tuple[int, ...] | None = None
    iteration: Iteration | None = None


def make_spec(chosen: Choices, window: Window | None, dtype: np.dtype[Any], group_size: int) -> NumericSpec:
    """Return the numeric options of a request, resolved for a tensor's dtype and a number of values per group.

    `window` is the window of `lrn`, None for other norms. In the result, `rows` and `iteration` are None: the
    caller fills them in.

    Raises
    ------
    UsageError
        If the convention has no default eps and none is given; if eps_mode is given without any eps; if both a
        range and an offset of gamma apply; or if eps is added to squares and p is not 2.
    """
    request, norm, mode = chosen.request, chosen.norm, chosen.pick("eps_mode")
    eps = _resolve_eps(chosen, dtype, group_size)
    if request.eps_mode is not None and eps is None:
        raise UsageError("eps_mode says where eps stands; give eps too")
    spec = NumericSpec(
        eps=eps,
        eps_mode=EpsMode(mode or EpsMode.OUTSIDE) if mode is not None or eps is not None else None,
        ddof=chosen.pick("ddof"),
        zero_rule=chosen.pick("zero_rule"),
        flat_rule=chosen.pick("flat_rule"),
        omits_nan=bool(chosen.pick("omits_nan")),
        p=chosen.pick("p") if norm.divisor == LENGTH else None,
        quantiles=chosen.pick("quantiles") if norm.divisor.measurement is Measurement.QUANTILES else None,
        range=request.range,
        window=window,
        dtype=request.dtype,
        like=chosen.like,
        gamma_offset=chosen.pick("gamma_offset"),
        rounds_before_gamma=bool(chosen.pick("rounds_before_gamma")),
    )
    if spec.range is not None and spec.gamma_offset:
        raise UsageError("range says what gamma is; leave out gamma_offset")
    if spec.eps_mode in (EpsMode.INSIDE, EpsMode.SQUARE_FLOOR) and spec.p not in (None, 2.0):
        raise UsageError(f"{norm.name} like {spec.like} has eps among the squares of ℓ2; p {spec.p:g} has none")
    return spec


def _resolve_eps(chosen: Choices, dtype: np.dtype[Any], group_size: int) -> float | None:
    """Return eps as a number, also if the convention's is the machine epsilon or 1/√n; None without eps.

    For input in half precision, eps is rounded to its dtype if the convention does so. Raises `UsageError` if
    the convention has no default eps and none is given.
    """
    match chosen.pick("eps"):
        case EpsRule.MACHINE:
            return get_eps(np.dtype(np.float32 if is_short_float(dtype) else np.float64))
        case EpsRule.ROOT_COUNT:
            return 1.0 / math.sqrt(max(1, group_size))
        case EpsRule.GIVEN:
            raise UsageError(f"{chosen.norm.name} like {chosen.like} has no default eps; give it (--eps)")
        case eps if eps is None or chosen.pick("short") is None or not is_half(dtype):
            return cast("float | None", eps)
        case eps:
            return float(dtype.type(eps))


def find_window(chosen: Choices) -> Window | None:
    """Return the window of neighbouring channels of `lrn`, with its constants; None for other norms."""
    if chosen.norm.divisor != WINDOW_POWER:
        return None
    size = chosen.pick("size")
    shorter, longer = (size - 1) // 2, size // 2
    side = chosen.pick("extra_neighbour") or ExtraNeighbour.AFTER
    before = longer if side is ExtraNeighbour.BEFORE else shorter
    after = longer if side is ExtraNeighbour.AFTER else shorter
    alpha, exponent, k = map(chosen.pick, ("alpha", "exponent", "k"))
    divisor = 1 if chosen.pick("divides_alpha") is False else size
    return Window(before, after, size, alpha, exponent, k, divisor)


def find_iteration(chosen: Choices, height: int, width: int) -> Iteration | None:
    """Return the power iterations of a request; None if it has neither iterations nor u nor v.

    Parameters
    ----------
    chosen : Choices
    height, width : int
        The matrix's numbers of rows (the length of u) and of columns (the length of v).

    Raises
    ------
    UsageError
        If neither u nor v is given, one has another length, both are given with iterations above 0, or only one
        is given with 0 iterations.
    """
    count, u, v = chosen.request.iterations, chosen.request.u, chosen.request.v
    if not chosen.request.iterates:
        return None
    if u is None and v is None:
        raise UsageError(
            "iterations start from a vector: give u (--u), one number a row, or v (--v), one a column"
        )
    for name, vector, length, lines in (("u", u, height, "rows"), ("v", v, width, "columns")):
        if vector is not None and len(vector) != length:
            raise UsageError(
                f"{name} has {format_count(len(vector), 'number')}, and the matrix {length} {lines}: "
                "it takes one for each"
            )
    if u is not None and v is not None:
        if count:
            raise UsageError(
                "iterations start from one of u and v and make the other; leave out one, or iterations"
            )
        return Iteration(0, u, v)
    if count == 0:
        raise UsageError("iterations 0 is uᵀXv of a u and a v as they are: give both")
    return Iteration(1 if count is None else count, u, v)
