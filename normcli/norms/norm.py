"""A norm: one row of the table of norms, and the names and texts that follow from it. Data, no arithmetic."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from normcli.norms.divisors import (
    ITERATED_VALUE,
    QUANTILE_RANGE,
    QUARTILE_RANGE,
    RANGE,
    Divisor,
    spell_statistic,
)
from normcli.norms.rules import AxesRule, Centre, EpsMode, ParameterRule, ZeroRule
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

_SUBSCRIPTS = str.maketrans("0123456789-+", "₀₁₂₃₄₅₆₇₈₉₋₊")


class Norm(NamedTuple):
    """One norm, as a row of the table of norms.

    Parameters
    ----------
    name, title : str
        The short name (`bn`) and the usual term ("batch normalization").
    aliases : tuple of str
        Other names of the norm.
    summary : str
        One line for help texts: which values share a statistic.
    axes : AxesRule
        The axes reduced by default.
    centre : Centre
    divisor : Divisor
    eps : float or None
        The default of eps; None if the definition has no eps.
    eps_mode : EpsMode or None
        The place of eps in the divisor; None if and only if `eps` is None.
    parameters : ParameterRule
        The shape of gamma (and beta).
    takes_beta : bool
        False if the norm has a gamma (gain) and no beta (bias).
    zero_rule : ZeroRule
        The result of a group whose divisor is 0: zeros, x − centre (as scikit-learn does), or NaN.
    tracks : bool
        Whether training keeps running statistics, with which evaluation normalizes.
    p : float or None
        The exponent of the ℓp length that the definition fixes; None if the caller chooses p, and for norms
        that do not divide by an ℓp length.
    presets : tuple of (str, float)
        Names of special cases, such as `l1`, and the exponent p that each fixes.
    takes_groups : bool
        Whether a caller may split the last reduced axis into groups; False for norms that need groups of
        channels anyway (see `needs_groups`).
    has_optional_steps : bool
        Whether a caller may leave out the centring, or the division, as scikit-learn's scalers do.
    rows : AxesRule or None
        For a norm of matrices, the axes that are rows by default (the others are columns); None for others.
    is_partial : bool
        Whether centring or division is left out: True only for norms that `leave_out` returns.
    source : str
        The paper or specification that defines it.
    use : str
        Where it is typically found, in a few words.
    """

    name: str
    title: str
    summary: str
    axes: AxesRule
    divisor: Divisor
    source: str
    use: str
    centre: Centre = Centre.NOTHING
    aliases: tuple[str, ...] = ()
    eps: float | None = None
    eps_mode: EpsMode | None = None
    parameters: ParameterRule = ParameterRule.NONE
    takes_beta: bool = True
    zero_rule: ZeroRule = ZeroRule.ZERO
    tracks: bool = False
    p: float | None = None
    presets: tuple[tuple[str, float], ...] = ()
    takes_groups: bool = False
    has_optional_steps: bool = False
    rows: AxesRule | None = None
    is_partial: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Every name of the norm: the short name, the aliases, the presets."""
        return (self.name, *self.aliases, *dict(self.presets))

    @property
    def needs_groups(self) -> bool:
        """Whether a number of groups has to be given."""
        return self.axes is AxesRule.CHANNEL_GROUPS

    @property
    def statistics(self) -> tuple[str, ...]:
        """The names of the statistics that each group has."""
        return self.divisor.statistics

    @property
    def all_statistics(self) -> tuple[str, ...]:
        """The names of all statistics that groups of this norm may have, whatever the options.

        For `robust` they include those of other quantiles than the quartiles.
        """
        others = QUANTILE_RANGE.statistics if self.divisor == QUARTILE_RANGE else ()
        return tuple(dict.fromkeys((*self.statistics, *others)))

    @property
    def vector_names(self) -> tuple[str, ...]:
        """The names of further results, `("u", "v", "largest")` for a norm of matrices; `()` for others."""
        return () if self.rows is None else ("u", "v", "largest")

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """`("gamma", "beta")`, `("gamma",)` or `()`."""
        if self.parameters is ParameterRule.NONE:
            return ()
        return ("gamma", "beta") if self.takes_beta else ("gamma",)

    @property
    def gradient_names(self) -> tuple[str, ...]:
        """The gradients of the backward pass: `("dx", "dgamma", "dbeta")` or fewer; `()` if there is none.

        There is none for norms of extremes and quantiles, and for norms whose centring or division is left out.
        """
        if self.is_by_order or self.is_partial:
            return ()
        return ("dx", *(f"d{name}" for name in self.parameter_names))

    @property
    def spans_range(self) -> bool:
        """Whether each group is scaled to span 0 to 1, so that gamma and beta can set any other range."""
        return self.centre is Centre.MINIMUM and self.divisor == RANGE

    @property
    def drawn_names(self) -> tuple[str, ...]:
        """The parameters of this norm that are drawn at random: no beta if nothing is subtracted."""
        return self.parameter_names if self.centre.statistic else self.parameter_names[:1]

    def leave_out(self, *, centring: bool, division: bool) -> Norm:
        """Return this norm without its centring or its division, or without both; equal to it if neither."""
        row = self._replace(is_partial=centring or division)
        if centring:
            promises = tuple(each for each in self.divisor.promises if each.statistic != self.centre.statistic)
            row = row._replace(centre=Centre.NOTHING, divisor=self.divisor._replace(promises=promises))
        if division:
            row = row._replace(divisor=row.divisor.leave_out())
        return row

    def choose_quantiles(self, quantiles: tuple[float, float] | None) -> Norm:
        """Return this norm with the range between two quantiles (in per cent) as its divisor.

        None, and the quartiles (25, 75), stand for this norm itself. Only for norms of quantiles.
        """
        if quantiles in (None, QUARTILES):
            return self
        return self._replace(divisor=QUANTILE_RANGE)

    def iterate(self) -> Norm:
        """Return the norm that divides by the estimate of power iterations of the largest singular value."""
        return self._replace(divisor=ITERATED_VALUE)

    @property
    def is_by_order(self) -> bool:
        """Whether the divisor is made of extremes or quantiles, or is the largest absolute value (`maxabs`)."""
        return self.divisor.is_by_order or self.p == math.inf

    def format_zero(self, rule: ZeroRule) -> str:
        """Return the normalized values of a group whose divisor is 0, in words: `0`, `x − mean`, `nan`."""
        return rule.value.replace(
            " − centre", "" if self.centre is Centre.NOTHING else f" − {self.centre.value}"
        )

    def formula(self, eps_mode: EpsMode | None = None, *, divides_alpha: bool = True) -> str:
        """Return the definition on one line, such as `(x − mean) / √(var + eps)`.

        Parameters
        ----------
        eps_mode : EpsMode or None
            The place of eps; None for the norm's own.
        divides_alpha : bool
            Whether a window's alpha is divided by the size of the window.
        """
        return "".join(self.split_formula(eps_mode, divides_alpha=divides_alpha))

    def split_formula(self, eps_mode: EpsMode | None = None, *, divides_alpha: bool = True) -> tuple[str, ...]:
        """Return the pieces of `formula`: eight, some of them empty; or four for a norm without its division.

        An example of eight: `("(", "x", " − ", "mean", ")", " / √(", "var", " + eps)")`. The last but one is
        the quantity that the divisor measures. The arguments are those of `formula`.
        """
        centre, row = self.centre.statistic, self.divisor
        numerator = ("x", "", "") if centre is None else ("x", " − ", spell_statistic(centre))
        if not row.divides:
            return "", *numerator
        opening, closing = ("", "") if centre is None else ("(", ")")
        root = row.root.replace("ₚ", format_subscript(self.p)) or f"({spell_statistic(row.spread or '')})"
        before, behind = _AROUND[eps_mode or self.eps_mode]
        quantity = row.square if before.startswith("√") else root
        if not divides_alpha:
            quantity = quantity.replace("/size", "")
        measured = quantity.removeprefix("√")
        return opening, *numerator, closing, f" / {before}{quantity.removesuffix(measured)}", measured, behind


QUARTILES = (25.0, 75.0)
"""The quantiles of the interquartile range, in per cent."""

_AROUND: Mapping[EpsMode | None, tuple[str, str]] = {
    None: ("", ""),
    EpsMode.INSIDE: ("√(", " + eps)"),
    EpsMode.OUTSIDE: ("(", " + eps)"),
    EpsMode.FLOOR: ("max(", ", eps)"),
    EpsMode.SQUARE_FLOOR: ("√max(", ", eps)"),
}
"""The place of eps → what stands around the square or, without a root sign there, the root in the divisor."""


def format_subscript(p: float | None) -> str:
    """Return the exponent of an ℓp length as a subscript, such as ₂; ₚ for None."""
    if p is None:
        return "ₚ"
    return f"{p:g}".replace("inf", "∞").translate(_SUBSCRIPTS)
