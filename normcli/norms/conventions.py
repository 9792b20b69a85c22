"""The choices of each framework where a norm leaves one: the table of `conventions.toml`."""

from __future__ import annotations

import pkgutil
import tomllib
from typing import TYPE_CHECKING, Any, Literal

from normcli.errors import UsageError
from normcli.norms.rules import (
    AxesChoice,
    AxesRule,
    EpsMode,
    EpsRule,
    ExtraNeighbour,
    FlatRule,
    GroupOrder,
    ParameterRule,
    Refusal,
    ShortRule,
    ZeroRule,
)
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    import enum
    from collections.abc import Mapping


class RunningRule(NamedTuple):
    """The rule by which running statistics are updated; by default torch's.

    Parameters
    ----------
    momentum : float or None
        From 0 to 1; None for the cumulative average, in which every batch weighs the same: after n batches the
        old statistics have the weight n/(n + 1).
    weight_of : {"new", "old"}
        The momentum is the weight of these: the new batch's statistics (0.1 of torch), or those kept so far
        (0.99 of Keras and Flax, 0.9 of ONNX).
    ddof : int
        Of the variance that is kept, whatever that of the output.
    """

    momentum: float | None = 0.1
    weight_of: Literal["new", "old"] = "new"
    ddof: int = 1

    def __str__(self) -> str:
        if self.momentum is None:
            return f"none, the cumulative average, ddof {self.ddof}"
        return f"{self.momentum:g} of the {self.weight_of}, ddof {self.ddof}"


class Convention(NamedTuple):
    """The choices of one framework for one norm; None means the norm's own choice.

    Parameters
    ----------
    framework, norm : str
        The names that `--like` and the command line use.
    version, source : str
        The version and file that were read.
    preset : str
        What the row is called, where people look for it as if for a norm of its own.
    modules : tuple of str
        The names of PyTorch modules that follow this row.
    eps : float, EpsRule or None
    eps_mode : EpsMode or None
    ddof : int or None
        The ddof of the variance that divides.
    axes : AxesRule or None
        The axes reduced by default.
    chooses : AxesChoice or None
        Which other axes are reduced where its caller says so.
    rows : AxesRule or None
        The axes that are a matrix's rows by default.
    channel : {"first", "last"} or None
        Where the channel axis is, from which the default layout follows.
    parameters : ParameterRule or None
        The shape of gamma and beta; `NONE` where the framework's norm has none.
    takes_beta : bool or None
        False where the framework's norm has a gamma alone.
    group_order : GroupOrder or None
    gate_order : {"after", "before"} or None
        Whether a gate multiplies the result or the tensor, where the framework's norm has one.
    gamma_offset : int
        Added to gamma before it multiplies.
    rounds_before_gamma : bool
        Whether x̂ is rounded to the output's dtype before gamma multiplies it.
    rounds_product : bool
        Whether x̂ · gamma is rounded to the output's dtype before beta is added.
    zero_rule : ZeroRule
        What becomes of a group whose divisor is 0: what IEEE 754 makes of 0/0, unless the source minds.
    flat_rule : FlatRule or None
        Which groups count as such besides.
    omits_nan : bool
        Whether NaN does not count.
    short : ShortRule or None
        What of half precision is kept in half precision, eps with it; None where it is float32.
    one_pass : bool
        Whether the variance is E[x²] − E[x]², which is lost far from zero.
    sums_in_float64 : bool
        Whether squares of float32 are summed in float64, where they do not overflow.
    divides_first : bool
        Whether it subtracts centre / divisor from x / divisor, which cancels far from zero.
    refuses : tuple of Refusal
    exponents : tuple of float
        Those that an ℓp length may have; empty where it may have any.
    size, alpha, exponent, k : optional
        The defaults of a window.
    extra_neighbour : ExtraNeighbour or None
        The side of the longer half of an even window.
    divides_alpha : bool
        Whether α is divided by the size of the window.
    running : RunningRule or None
    precision : str
        What half precision is calculated in.
    note : str
        What else differs: defaults of options that normcli does not have, limits, defects.
    """

    framework: str
    version: str
    norm: str
    source: str
    eps: float | EpsRule | None = None
    eps_mode: EpsMode | None = None
    ddof: int | None = None
    axes: AxesRule | None = None
    chooses: AxesChoice | None = None
    rows: AxesRule | None = None
    channel: Literal["first", "last"] | None = None
    parameters: ParameterRule | None = None
    takes_beta: bool | None = None
    group_order: GroupOrder | None = None
    gate_order: Literal["after", "before"] | None = None
    gamma_offset: int = 0
    rounds_before_gamma: bool = False
    rounds_product: bool = False
    zero_rule: ZeroRule = ZeroRule.NAN
    flat_rule: FlatRule | None = None
    omits_nan: bool = False
    short: ShortRule | None = None
    one_pass: bool = False
    sums_in_float64: bool = False
    divides_first: bool = False
    refuses: tuple[Refusal, ...] = ()
    exponents: tuple[float, ...] = ()
    size: int | None = None
    alpha: float | None = None
    exponent: float | None = None
    k: float | None = None
    extra_neighbour: ExtraNeighbour | None = None
    divides_alpha: bool = True
    running: RunningRule | None = None
    precision: str = "that of the input"
    note: str = ""
    preset: str = ""
    modules: tuple[str, ...] = ()

    @property
    def widens(self) -> bool:
        """Whether half precision is calculated in float32 up to the roundings that are named."""
        return self.precision.startswith("float32, rounded")


_WORDS: Mapping[str, type[enum.Enum]] = {
    "eps": EpsRule,
    "eps_mode": EpsMode,
    "axes": AxesRule,
    "rows": AxesRule,
    "chooses": AxesChoice,
    "parameters": ParameterRule,
    "group_order": GroupOrder,
    "zero_rule": ZeroRule,
    "flat_rule": FlatRule,
    "short": ShortRule,
    "refuses": Refusal,
    "extra_neighbour": ExtraNeighbour,
}
"""The fields whose words in the file are the names of members, in lower case."""


def _read_rows() -> tuple[Convention, ...]:
    table = tomllib.loads((pkgutil.get_data("normcli.norms", "conventions.toml") or b"").decode())
    rows = ({**table["frameworks"].get(row["framework"], {}), **row} for row in table["rows"])
    return tuple(Convention(**{field: _read(field, value) for field, value in row.items()}) for row in rows)


def _read(field: str, value: Any) -> Any:
    if isinstance(value, dict):
        return RunningRule(**value)
    if isinstance(value, list):
        return tuple(_read(field, word) for word in value)
    return _WORDS[field][value.upper()] if field in _WORDS and isinstance(value, str) else value


CONVENTIONS = _read_rows()
"""Every row, in the order of the norms."""


def list_frameworks(norm: str) -> tuple[str, ...]:
    """Return the frameworks that have a row for the norm of that short name.

    Examples
    --------
    >>> list_frameworks("wn")
    ('torch', 'flax-linen', 'flax-nnx', 'equinox')
    """
    return tuple(row.framework for row in CONVENTIONS if row.norm == norm)


def find_convention(framework: str, norm: str) -> Convention:
    """Return the row of a framework for a norm.

    Raises
    ------
    UsageError
        If the table has no such row.
    """
    name = framework.lower()
    for row in CONVENTIONS:
        if (row.framework, row.norm) == (name, norm):
            return row
    known = list_frameworks(norm)
    near = _find_near(name, known)
    hint = f"did you mean {' or '.join(near)}?" if near else f"{norm} knows {', '.join(known)}"
    raise UsageError(f"like={framework!r}: {hint}")


def _find_near(name: str, known: tuple[str, ...]) -> list[str]:
    from difflib import get_close_matches

    begun = [other for other in known if name and (other.startswith(name) or name.startswith(other))]
    return begun or get_close_matches(name, known, n=2)
