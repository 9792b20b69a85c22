"""Every choice that a norm leaves open: the caller's, else the convention's, else the norm's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from normcli.norms.divisors import LENGTH
from normcli.norms.options import NAMES, find_option
from normcli.norms.table import (
    AxesRule,
    EpsMode,
    EpsRule,
    ExtraNeighbour,
    GroupOrder,
    Norm,
    ParameterRule,
    ZeroRule,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from normcli.norms.conventions import Convention
    from normcli.norms.request import Request


class Choices(NamedTuple):
    """What a norm does to any shape; None where the norm has no such thing.

    Parameters
    ----------
    layout : str or None
        The caller's; None means the default of a rank, with the channel last if `channel_last`.
    axes : AxesRule
        Which axes are reduced unless the caller names them.
    parameters : ParameterRule
        The shape of gamma and beta.
    eps : float, EpsRule or None
        A rule where the number depends on the tensor.
    divides_alpha : bool
        Whether α of a window is divided by its size.
    gamma_offset : int
        Added to gamma before it multiplies.
    rounds_before_gamma : bool
        Whether x̂ is rounded to the output's dtype before gamma multiplies it.
    like : str or None
        The convention that was followed.
    """

    layout: str | None
    channel_last: bool
    axes: AxesRule
    parameters: ParameterRule
    group_order: GroupOrder
    eps: float | EpsRule | None
    eps_mode: EpsMode | None
    ddof: int
    zero_rule: ZeroRule
    p: float | None
    size: int
    alpha: float
    exponent: float
    k: float
    extra_neighbour: ExtraNeighbour
    divides_alpha: bool
    gamma_offset: int
    rounds_before_gamma: bool
    like: str | None


def choose(request: Request, norm: Norm, convention: Convention | None, fixed: Mapping[str, float]) -> Choices:
    """Settle every choice.

    Parameters
    ----------
    request : Request
        What the caller asked for, which comes first.
    norm : Norm
        The row of the table, which comes last.
    convention : Convention or None
        What a framework does, in between.
    fixed : mapping
        The options that the name of a preset fixes.

    Examples
    --------
    >>> from normcli.norms.conventions import find_convention
    >>> from normcli.norms.table import find_norm
    >>> from normcli.norms.request import Request
    >>> norm, fixed = find_norm("bn")
    >>> chosen = choose(Request("bn", ddof=1), norm, find_convention("keras", "bn"), fixed)
    >>> chosen.eps, chosen.ddof, chosen.channel_last
    (0.001, 1, True)
    """

    def pick(option: str, default: Any = None) -> Any:
        chosen = (getattr(record, option, None) for record in (request, convention, norm))
        if option in NAMES:
            default = find_option(option).default
        return next((value for value in chosen if value is not None), default)

    rules = convention or norm
    mode = pick("eps_mode")
    return Choices(
        layout=request.layout,
        channel_last=pick("channel_last", False),  # noqa: FBT003
        axes=rules.axes or norm.axes,
        # Gamma is the caller's to give, whether the framework's own norm takes one or not.
        parameters=norm.parameters if rules.parameters in (None, ParameterRule.NONE) else rules.parameters,
        group_order=GroupOrder(pick("group_order")),
        eps=pick("eps"),
        eps_mode=None if mode is None else EpsMode(mode),
        ddof=pick("ddof"),
        zero_rule=pick("zero_rule"),
        p=fixed.get("p", pick("p")) if norm.divisor == LENGTH else None,
        size=pick("size"),
        alpha=pick("alpha"),
        exponent=pick("exponent"),
        k=pick("k"),
        extra_neighbour=pick("extra_neighbour", ExtraNeighbour.AFTER),
        divides_alpha=pick("divides_alpha", True),  # noqa: FBT003
        gamma_offset=pick("gamma_offset", 0),
        rounds_before_gamma=pick("rounds_before_gamma", False),  # noqa: FBT003
        like=None if convention is None else convention.framework,
    )
