"""The choices of each framework for each norm: the table of `conventions.toml`."""

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
        The statistics whose weight the momentum is: "new" for those of the new batch (torch: 0.1), "old" for
        those kept so far (Keras and Flax: 0.99, ONNX: 0.9).
    ddof : int
        The ddof of the running variance, which may differ from that of the variance that divides.
    """

    momentum: float | None = 0.1
    weight_of: Literal["new", "old"] = "new"
    ddof: int = 1

    def __str__(self) -> str:
        if self.momentum is None:
            return f"none, the cumulative average, ddof {self.ddof}"
        return f"{self.momentum:g} of the {self.weight_of}, ddof {self.ddof}"


class Convention(NamedTuple):
    """The choices of one framework for one norm; None stands for the norm's own choice, if not said otherwise.

    Parameters
    ----------
    framework, norm : str
        The names that `--like` and the command line use.
    version, source : str
        The framework's version and the source file from which the choices were read.
    preset : str
        A name under which the row is known as if it were a norm of its own, such as `pixel norm`; else empty.
    modules : tuple of str
        The names of PyTorch modules that follow this row; of the rows of Keras and Flax Linen, of their layers.
    eps : float, EpsRule or None
    eps_mode : EpsMode or None
    ddof : int or None
        The ddof of the variance that divides.
    axes : AxesRule or None
        The axes reduced by default.
    chooses : AxesChoice or None
        The other axes that the framework lets its caller reduce.
    rows : AxesRule or None
        The axes that are a matrix's rows by default.
    channel : {"first", "last"} or None
        Whether the channel axis is the first after the batch or the last, for the default layout.
    parameters : ParameterRule or None
        The shape of gamma and beta; `NONE` where the framework's norm has none.
    takes_beta : bool or None
        False where the framework's norm has a gamma alone.
    group_order : GroupOrder or None
    gate_order : {"after", "before"} or None
        Whether a gate multiplies the norm's result or its input; None if the framework's norm has no gate.
    gamma_offset : int
        Added to gamma before it multiplies.
    rounds_before_gamma : bool
        Whether x̂ is rounded to the output's dtype before gamma multiplies it.
    rounds_product : bool
        Whether x̂ · gamma is rounded to the output's dtype before beta is added.
    zero_rule : ZeroRule
        The result of a group whose divisor is 0: NaN, as of 0/0, unless the framework treats such groups apart.
    flat_rule : FlatRule or None
        Further groups that count as groups with a divisor of 0.
    omits_nan : bool
        Whether NaN is ignored.
    short : ShortRule or None
        The quantities that are rounded to half precision, in addition to eps, for input in half precision; None
        if neither they nor eps are.
    one_pass : bool
        Whether the variance is E[x²] − E[x]², which loses all digits if |mean| is large against the deviation.
    sums_in_float64 : bool
        Whether squares of float32 values are summed in float64, where they do not overflow.
    divides_first : bool
        Whether x / divisor − centre / divisor is calculated, which loses digits if the centre is large.
    refuses : tuple of Refusal
        The inputs and options that the framework refuses.
    exponents : tuple of float
        The values of p that an ℓp length may have; empty where p may be any number.
    size, alpha, exponent, k : optional
        The defaults of a window's constants.
    extra_neighbour : ExtraNeighbour or None
        The side on which an even window holds one channel more.
    divides_alpha : bool
        Whether α is divided by the size of the window.
    running : RunningRule or None
        The rule of running statistics; None where there are none.
    precision : str
        The precision in which input in half precision is calculated, in words.
    note : str
        Other differences, in words: defaults of options that normcli does not have, limits, defects.
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
        """Whether input in half precision is calculated in float32, and rounded as `precision` says."""
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
"""Field → the enumeration of whose members the file `conventions.toml` writes the names, in lower case."""


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
"""All rows of the table, in the order of the norms."""


def list_frameworks(norm: str) -> tuple[str, ...]:
    """Return the names of the frameworks that have a row for a norm, given the norm's short name.

    Examples
    --------
    >>> list_frameworks("wn")
    ('torch', 'flax-linen', 'flax-nnx', 'equinox')
    """
    return tuple(row.framework for row in CONVENTIONS if row.norm == norm)


def find_convention(framework: str, norm: str) -> Convention:
    """Return the row of a framework (its name in any case) for a norm (its short name).

    Raises
    ------
    UsageError
        If the table has no such row; the message suggests similar names.
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
