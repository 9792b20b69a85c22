"""The request of a caller: as a record, as one word (`gn:groups=4`), and with every open choice resolved."""

from __future__ import annotations

import enum
import json
from typing import TYPE_CHECKING, Any

from normcli.errors import UsageError, name_subject
from normcli.norms.options import NAMES, OPTIONS, find_option
from normcli.norms.table import find_norm, require_name
from normcli.printable import shorten
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from normcli.norms.norm import Norm
    from normcli.norms.option_kinds import Option


class NanRule(enum.StrEnum):
    """The effect of a NaN: it makes its group's statistics NaN, is left out, or the tensor is refused."""

    PROPAGATE = "propagate"
    OMIT = "omit"
    RAISE = "raise"


class Fill(enum.StrEnum):
    """The results for values that are masked or omitted: as they were, 0, NaN, or normalized too."""

    PASS = "pass"
    ZERO = "zero"
    NAN = "nan"
    NORMALIZE = "normalize"


class Request(NamedTuple):
    """The request of a caller: the name of a norm, and a value for each option of `OPTIONS`.

    None leaves an option to the convention or the norm. Axes are as in `normcli.normalize`: a string, a number
    or a tuple of both.
    """

    norm: str
    layout: str | None = None
    axes: str | int | tuple[int | str, ...] | None = None
    keep: str | int | tuple[int | str, ...] | None = None
    feature_axes: str | int | tuple[int | str, ...] | None = None
    gamma_offset: int | None = None
    rows: str | int | tuple[int | str, ...] | None = None
    iterations: int | None = None
    u: tuple[float, ...] | None = None
    v: tuple[float, ...] | None = None
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
    range: tuple[float, float] | None = None
    quantiles: tuple[float, float] | None = None
    over: tuple[int, int] | None = None
    no_mean: bool | None = None
    no_scale: bool | None = None
    dtype: str | None = None
    like: str | None = None

    @property
    def iterates(self) -> bool:
        """Whether `iterations`, `u` or `v` is given, so that a singular value is estimated as uᵀXv."""
        return (self.iterations, self.u, self.v) != (None, None, None)

    def adopt_layout(self, layout: str | None) -> Request:
        """Return this request with the layout `layout` if it has none of its own; None changes nothing."""
        return self if self.layout is not None or layout is None else self._replace(layout=layout)

    def adopt_dtype(self, dtype: str | None) -> Request:
        """Return this request with the output dtype `dtype` if it has none of its own; None changes nothing."""
        return self if self.dtype is not None or dtype is None else self._replace(dtype=dtype)

    @classmethod
    def collect(cls, norm: str, given: Mapping[str, Any]) -> Request:
        """Return the request for a norm and named values; None and names that are no option are ignored.

        Raises
        ------
        UsageError
            If a value is not of its option's kind, or the norm is no string.
        """
        require_name(norm)
        if not given:
            return cls(norm)
        chosen = {
            name: find_option(name).convert(value)
            for name, value in given.items()
            if name in NAMES and value is not None
        }
        return cls(norm, **chosen)

    def describe(self) -> dict[str, Any]:
        """Return the options that are set as name → value, as JSON can hold them; `read` is the inverse."""
        given = {option: getattr(self, option.name) for option in OPTIONS}
        return {option.name: option.describe(value) for option, value in given.items() if value is not None}

    @classmethod
    def read(cls, norm: str, described: Mapping[str, Any]) -> Request:
        """Return the request for a norm, with options in the JSON form that `describe` writes.

        Raises
        ------
        UsageError
            If a name is no option, or a value is not of its option's kind.
        """
        options: dict[str, Any] = {}
        for name, value in described.items():
            try:
                options[name] = find_option(name).read(value)
            except (KeyError, UsageError, TypeError, OverflowError) as error:
                raise UsageError(f"there is no option {name} = {shorten(json.dumps(value), 60)}") from error
        return cls(norm, **options)


class Choices:
    """The choices that a norm leaves open: the caller's, else the convention's, else the norm's own.

    Parameters
    ----------
    request : Request
        The request, whose options are checked here as far as this needs no tensor's shape.

    Attributes
    ----------
    norm : Norm
        The norm's row, changed by options such as `quantiles` and `no_mean`.
    convention : Convention or None
        The row of the framework that `like` names; None without `like`.
    like : str or None
        The framework's name; None without `like`.

    Raises
    ------
    UsageError
        If the norm or the framework is unknown, or an option is unknown to the norm, fixed by a preset, or out
        of range; or if both `axes` and `keep` are given.

    Examples
    --------
    >>> chosen = Choices(Request("bn", ddof=1, like="keras"))
    >>> chosen.pick("eps"), chosen.pick("ddof"), chosen.pick("channel")
    (0.001, 1, 'last')
    """

    def __init__(self, request: Request) -> None:
        self.request = request
        self.norm, self._fixed = find_norm(request.norm)
        self.convention = None
        if request.like is not None:
            from normcli.norms.conventions import find_convention  # a long table, loaded only if asked for

            self.convention = find_convention(request.like, self.norm.name)
        self.like = None if self.convention is None else self.convention.framework
        for option in OPTIONS:
            if getattr(request, option.name) is not None:
                self._check(option)
        self.norm = self.norm.choose_quantiles(request.quantiles)
        if request.iterates:
            self.norm = self.norm.iterate()
        self.norm = self.norm.leave_out(centring=bool(request.no_mean), division=bool(request.no_scale))
        if request.axes is not None and request.keep is not None:
            raise UsageError("axes and keep say the same thing from two sides; give one of them")

    def pick(self, name: str) -> Any:
        """Return the choice for a field of `Request`, `Convention` or `Norm`, by the field's name.

        It is the first that is not None of: the preset's (such as `l1`), the caller's, the convention's, the
        norm's, and the option's default; None if all are.
        """
        owners = (self.request, self.convention, self.norm)
        default = find_option(name).default if name in NAMES else None
        choices = (self._fixed.get(name), *(getattr(owner, name, None) for owner in owners), default)
        return next((choice for choice in choices if choice is not None), None)

    def pick_nan_rule(self, given: str | None) -> str:
        """Return the effect of NaN when statistics are fitted: `given`, or if it is None, the convention's.

        Raises
        ------
        UsageError
            If `given` is not the name of a `NanRule`.
        """
        if given is None:
            return NanRule.OMIT if self.pick("omits_nan") else NanRule.PROPAGATE
        if given not in [*map(str, NanRule)]:
            raise UsageError(f"nan {given!r} is none of {', '.join(NanRule)}")
        return given

    def _check(self, option: Option) -> None:
        brings_eps = option.name == "eps" and getattr(self.convention, "eps", None) is not None
        if not option.belongs_to(self.norm) and not brings_eps:
            raise UsageError(f"{self.norm.name} has no option {option.name}")
        if option.name in self._fixed:
            raise UsageError(f"{self.request.norm} fixes {option.name}; use {self.norm.name} to choose it")
        option.check(getattr(self.request, option.name))


_SHARED = "dtype"
"""The option that all norms on one tensor share: it is refused behind the name of a single norm."""


_EVALUATION = "eval"
"""The word behind a norm that is to normalize with running statistics: `bn:eval`."""


class NormSpec(NamedTuple):
    """A norm and the options that were written after its name: `gn:groups=4`.

    Parameters
    ----------
    text : str
        The whole word, as it was written.
    name : str
        The norm's name, alias or preset.
    norm : Norm
    own : mapping of str to value
        The options written after the name, and their values.
    open_options : frozenset of str
        The names of the norm's options, those in `own` included, without `dtype` and without options that a
        preset such as `l1` fixes.
    evaluates : bool
        Whether the norm is to normalize with running statistics: `bn:eval`.
    """

    text: str
    name: str
    norm: Norm
    own: Mapping[str, Any]
    open_options: frozenset[str]
    evaluates: bool = False


def parse_norm_spec(text: str) -> NormSpec:
    """Return the norm and options of a word `NAME:KEY=VALUE:KEY=VALUE`, or `NAME:eval` for running statistics.

    Raises
    ------
    UsageError
        If the norm or an option is unknown, a part is no KEY=VALUE, a value is of the wrong kind, or an option
        occurs twice.

    Examples
    --------
    >>> spec = parse_norm_spec("gn:groups=4:eps=0")
    >>> spec.norm.name, dict(spec.own)
    ('gn', {'groups': 4, 'eps': 0.0})
    """
    name, *parts = text.split(":")
    norm, fixed = find_norm(name)
    known = {
        option.name: option
        for option in OPTIONS
        # A framework's convention may bring an eps.
        if (option.belongs_to(norm) or option.name == "eps") and option.name not in (_SHARED, *fixed)
    }
    own: dict[str, Any] = {}
    evaluates = norm.tracks and _EVALUATION in parts
    for part in parts:
        if evaluates and part == _EVALUATION:
            continue
        key, equals, value = part.partition("=")
        option = key.strip().lower().replace("-", "_")
        if not equals or not value.strip() or not option:
            raise UsageError(f"{text}: {part!r} is no KEY=VALUE, such as {name}:axes=0")
        if option not in known:
            words = [other.word for other in known.values()]
            listed = ", ".join([*words, _EVALUATION] if norm.tracks else words)
            raise UsageError(f"{text}: {name} has no option {key.strip()!r}; it has {listed}")
        if option in own:
            raise UsageError(f"{text} says {key.strip()} twice")
        with name_subject(text):
            own[option] = known[option].parse(value.strip())
    return NormSpec(
        text, name, norm, own, frozenset(name for name, row in known.items() if row.belongs_to(norm)), evaluates
    )
