"""What a caller asks for, in one record, and the checks that need no tensor."""

from __future__ import annotations

import enum
import math
from typing import TYPE_CHECKING, NamedTuple

from normcli.dtypes import OUTPUT_DTYPES, find_type
from normcli.errors import UsageError
from normcli.norms.table import EpsMode, GroupOrder, Norm

if TYPE_CHECKING:
    from collections.abc import Mapping

    from normcli.norms.conventions import Convention


class NanRule(enum.StrEnum):
    """What a NaN does: its group's statistics are NaN; it does not count; the tensor is refused."""

    PROPAGATE = "propagate"
    OMIT = "omit"
    RAISE = "raise"


class Fill(enum.StrEnum):
    """What becomes of values that do not count."""

    PASS = "pass"
    ZERO = "zero"
    NAN = "nan"
    NORMALIZE = "normalize"


class Request(NamedTuple):
    """What the caller asked for; None means the row's (or the convention's) own choice.

    `axes` and `keep` are as in `normcli.normalize`, as a string or a tuple; the rest are its options.
    """

    norm: str
    axes: str | int | tuple[int | str, ...] | None = None
    keep: str | int | tuple[int | str, ...] | None = None
    layout: str | None = None
    groups: int | None = None
    group_order: str | None = None
    eps: float | None = None
    eps_mode: str | None = None
    ddof: int | None = None
    dtype: str | None = None
    p: float | None = None
    size: int | None = None
    alpha: float | None = None
    exponent: float | None = None
    k: float | None = None
    like: str | None = None


_OPTIONAL = ("groups", "group_order", "eps", "eps_mode", "ddof", "p", "size", "alpha", "exponent", "k")
"""The options that not every norm has."""


def check_options(
    norm: Norm, request: Request, fixed: Mapping[str, float], convention: Convention | None = None
) -> None:
    """Check every option that can be judged without a shape.

    Parameters
    ----------
    norm : Norm
    request : Request
    fixed : mapping
        The options that the name of a preset fixes.
    convention : Convention or None
        What is followed; it may bring an eps to a norm that has none.

    Raises
    ------
    UsageError
        If an option means nothing to the norm, is out of range, or contradicts another.
    """
    brought = {"eps"} if convention is not None and convention.eps is not None else set()
    for option in _OPTIONAL:
        if getattr(request, option) is None:
            continue
        if option not in norm.options | brought:
            raise UsageError(f"{norm.name} has no option {option}")
        if option in fixed:
            raise UsageError(f"{request.norm} fixes {option}; use {norm.name} to choose it")
    if request.eps is not None and not 0 <= request.eps < math.inf:
        raise UsageError(f"eps {request.eps} is not a finite number ≥ 0")
    if request.eps_mode not in (None, EpsMode.INSIDE, EpsMode.OUTSIDE):
        raise UsageError(f"eps_mode {request.eps_mode!r} is neither 'inside' nor 'outside'")
    if request.group_order not in (None, *GroupOrder):
        raise UsageError(f"group_order {request.group_order!r} is neither 'contiguous' nor 'interleaved'")
    if request.ddof is not None and request.ddof < 0:
        raise UsageError(f"ddof {request.ddof} is negative")
    if request.p is not None and not request.p >= 0:
        raise UsageError(f"p {request.p} is not a number ≥ 0 (inf is one)")
    if request.size is not None and request.size < 1:
        raise UsageError(f"size {request.size} is not a window of one channel or more")
    for option in ("alpha", "exponent", "k"):
        value = getattr(request, option)
        if value is not None and not math.isfinite(value):
            raise UsageError(f"{option} {value} is not a finite number")
    if request.dtype is not None and request.dtype not in OUTPUT_DTYPES:
        raise UsageError(f"dtype {request.dtype!r} is none of {', '.join(OUTPUT_DTYPES)}")
    if request.dtype is not None:
        find_type(request.dtype)
    if request.axes is not None and request.keep is not None:
        raise UsageError("axes and keep say the same thing from two sides; give one of them")
