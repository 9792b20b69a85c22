"""A norm: one row of the table, and what follows of it. Data, no arithmetic."""

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
    """One row of the table.

    Parameters
    ----------
    name, title : str
        The short name (`bn`) and the field's term ("batch normalization").
    aliases : tuple of str
        Other names of the same row.
    summary : str
        One line for help texts: which values share a statistic.
    axes : AxesRule
        The axes reduced by default.
    centre : Centre
    divisor : Divisor
    eps : float or None
        The default; None where the definition has no eps.
    eps_mode : EpsMode or None
        None exactly where `eps` is None.
    parameters : ParameterRule
        The shape of gamma (and beta).
    takes_beta : bool
        False where the norm has a gain and no bias.
    zero_rule : ZeroRule
        What becomes of a group whose divisor is 0; scikit-learn divides it by 1.
    tracks : bool
        Whether training keeps running statistics, which evaluation then normalizes with.
    p : float or None
        The exponent of an ℓp length that the definition fixes; None where the caller chooses it.
    presets : tuple of (str, float)
        Names of special cases, such as `l1`, and the exponent p that each fixes.
    takes_groups : bool
        Whether the last axis reduced may be split into groups, which `CHANNEL_GROUPS` cannot do without.
    has_optional_steps : bool
        Whether a caller may leave out the centring, or the division, as scikit-learn's scalers do.
    rows : AxesRule or None
        Of a norm of matrices: which axes are rows by default, where the others are columns.
    is_partial : bool
        Whether one has: no row of the table is, but those that `leave_out` returns.
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
        """Every name that means this row: its own, the aliases, the presets."""
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
        """Those, and what groups have instead where a caller chooses other quantiles."""
        others = QUANTILE_RANGE.statistics if self.divisor == QUARTILE_RANGE else ()
        return tuple(dict.fromkeys((*self.statistics, *others)))

    @property
    def vector_names(self) -> tuple[str, ...]:
        """The further results of a norm of matrices: u, v and the largest singular value."""
        return () if self.rows is None else ("u", "v", "largest")

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """`("gamma", "beta")`, `("gamma",)` or `()`."""
        if self.parameters is ParameterRule.NONE:
            return ()
        return ("gamma", "beta") if self.takes_beta else ("gamma",)

    @property
    def gradient_names(self) -> tuple[str, ...]:
        """The gradients of a backward pass: `("dx", "dgamma", "dbeta")` or fewer; `()` if there is none."""
        if self.is_by_order or self.is_partial:
            return ()
        return ("dx", *(f"d{name}" for name in self.parameter_names))

    @property
    def spans_range(self) -> bool:
        """Whether each group comes to lie from 0 to 1, which gamma and beta make any other range."""
        return self.centre is Centre.MINIMUM and self.divisor == RANGE

    @property
    def drawn_names(self) -> tuple[str, ...]:
        """The parameters of a new layer: a norm that subtracts no mean has no beta."""
        return self.parameter_names if self.centre.statistic else self.parameter_names[:1]

    def leave_out(self, *, centring: bool, division: bool) -> Norm:
        """Return the row without one of its steps, or without both."""
        row = self._replace(is_partial=centring or division)
        if centring:
            whole = self.divisor.break_promise(self.centre.statistic)
            row = row._replace(centre=Centre.NOTHING, divisor=whole)
        if division:
            row = row._replace(divisor=row.divisor.leave_out())
        return row

    def choose_quantiles(self, quantiles: tuple[float, float] | None) -> Norm:
        """Return the row of a range of quantiles, in per cent; itself where they are its own, or none."""
        if quantiles in (None, QUARTILES):
            return self
        return self._replace(divisor=QUANTILE_RANGE)

    def iterate(self) -> Norm:
        """Return the row of matrices with what power iterations make of the largest singular value."""
        return self._replace(divisor=ITERATED_VALUE)

    @property
    def is_by_order(self) -> bool:
        """Whether what values are divided by goes by their order, or is the largest of them."""
        return self.divisor.is_by_order or self.p == math.inf

    def format_zero(self, rule: ZeroRule) -> str:
        """Return the normalized values of a group whose divisor is 0, in words: `0`, `x − mean`, `nan`."""
        return rule.value.replace(
            " − centre", "" if self.centre is Centre.NOTHING else f" − {self.centre.value}"
        )

    def formula(self, eps_mode: EpsMode | None = None, *, divides_alpha: bool = True) -> str:
        """Return the definition on one line, with eps where `eps_mode` (or the row's own) puts it."""
        numerator = "x" if self.centre is Centre.NOTHING else f"(x − {spell_statistic(self.centre.value)})"
        if not self.divisor.divides:
            return numerator.strip("()")
        root = self.divisor.root.replace("ₚ", format_subscript(self.p))
        if not divides_alpha:
            root = root.replace("/size", "")
        with_eps = _WITH_EPS[eps_mode or self.eps_mode]
        return f"{numerator} / {with_eps.format(root=root, square=self.divisor.square)}"


QUARTILES = (25.0, 75.0)
"""The quantiles whose range is the interquartile one, in per cent."""

_WITH_EPS: Mapping[EpsMode | None, str] = {
    None: "{root}",
    EpsMode.INSIDE: "√({square} + eps)",
    EpsMode.OUTSIDE: "({root} + eps)",
    EpsMode.FLOOR: "max({root}, eps)",
    EpsMode.SQUARE_FLOOR: "√max({square}, eps)",
}
"""The place of eps → the divisor in a formula."""


def format_subscript(p: float | None) -> str:
    """Return the exponent of an ℓp length as a subscript; ₚ where it is left open."""
    if p is None:
        return "ₚ"
    return f"{p:g}".replace("inf", "∞").translate(_SUBSCRIPTS)
