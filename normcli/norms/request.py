"""What a caller asks for, in one record, and the checks that need no tensor."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, NamedTuple

from normcli.errors import UsageError
from normcli.norms.options import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from normcli.norms.conventions import Convention
    from normcli.norms.table import Norm


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
    """What the caller asked for: a norm and a value for each row of `OPTIONS`.

    None means the row's (or the convention's) own choice. `axes` and `keep` are as in `normcli.normalize`, as a
    string or a tuple.
    """

    norm: str
    layout: str | None = None
    axes: str | int | tuple[int | str, ...] | None = None
    keep: str | int | tuple[int | str, ...] | None = None
    groups: int | None = None
    group_order: str | None = None
    eps: float | None = None
    eps_mode: str | None = None
    ddof: int | None = None
    p: float | None = None
    size: int | None = None
    alpha: float | None = None
    exponent: float | None = None
    k: float | None = None
    dtype: str | None = None
    like: str | None = None

    @classmethod
    def collect(cls, norm: str, given: Mapping[str, Any]) -> Request:
        """Return the request that named values make; what is no option is left aside.

        Raises
        ------
        UsageError
            If a value is of another kind than its option.
        """
        return cls(norm, **{option.name: option.convert(given.get(option.name)) for option in OPTIONS})


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
    brings_eps = convention is not None and convention.eps is not None
    for option in OPTIONS:
        value = getattr(request, option.name)
        if value is None:
            continue
        if not option.belongs_to(norm) and not (option.name == "eps" and brings_eps):
            raise UsageError(f"{norm.name} has no option {option.name}")
        if option.name in fixed:
            raise UsageError(f"{request.norm} fixes {option.name}; use {norm.name} to choose it")
        option.check(value)
    if request.axes is not None and request.keep is not None:
        raise UsageError("axes and keep say the same thing from two sides; give one of them")
