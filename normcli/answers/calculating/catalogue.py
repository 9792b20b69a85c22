"""The tables of norms and of conventions as documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from normcli.documents.document import (
    SCHEMA,
    Facts,
    RecordDocument,
    Table,
    TableRow,
    describe_members,
    describe_value,
    flatten_records,
)
from normcli.norms.conventions import CONVENTIONS, Convention, list_frameworks
from normcli.norms.options import list_own_options
from normcli.norms.rules import AxesRule, EpsMode, EpsRule, GroupOrder, ShortRule, ZeroRule
from normcli.norms.table import NORMS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from normcli.documents.document import Section, View
    from normcli.norms.norm import Norm

_COLUMNS = (
    "framework", "norm", "eps", "place", "ddof", "axes", "channel", "parameters", "running", "zero variance",
    "precision", "source",
)  # fmt: skip

_NOTHING = "–"


class Catalogue(RecordDocument):
    """The document of `normcli norms`: the table of norms, and of presets."""

    def sections(self, view: View) -> Iterator[Section]:
        """Yield two tables: norms, and presets (conventions with names of their own)."""
        columns = ("norm", "name", "axes by default", "formula", "eps", "gamma, beta", "source")
        rows = [TableRow(_format_norm(norm)) for norm in NORMS.values()]
        yield Table(None, columns, (False,) * len(columns), rows)
        presets = [TableRow(tuple(preset.values())) for preset in _list_presets()]
        yield Table("presets", ("preset", "command", "source"), (False,) * 3, presets)

    def data(self) -> Mapping[str, Any]:
        """Return the answer as a JSON object: the norms, and the presets."""
        return {"schema": SCHEMA, "norms": list(self.records()), "presets": list(_list_presets())}

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Yield a JSON object per norm: names, formula, axes, parameters, eps, statistics, options, source."""
        for norm in NORMS.values():
            yield {
                "norm": norm.name,
                "title": norm.title,
                "aliases": list(norm.names[1:]),
                "summary": norm.summary,
                "formula": norm.formula(),
                "axes": norm.axes.value,
                "parameters": list(norm.parameter_names),
                "parameter_shape": None if not norm.parameter_names else norm.parameters.value,
                **describe_members(norm, "eps", "eps_mode", "statistics"),
                "options": sorted(list_own_options(norm)),
                "like": list(list_frameworks(norm.name)),
                **describe_members(norm, "source", "use"),
            }


def _list_presets() -> Iterator[dict[str, str]]:
    for row in CONVENTIONS:
        if row.preset:
            call = f"normcli {row.norm} --like {row.framework}"
            yield {"preset": row.preset, "command": call, "source": f"{row.version}: {row.source}"}


def _format_norm(norm: Norm) -> tuple[str, ...]:
    eps = _format_eps(norm.eps) + (" outside" if norm.eps_mode is EpsMode.OUTSIDE else "")
    parameters = norm.parameters.value if norm.takes_beta else f"{norm.parameters.value}, gamma alone"
    name = ", ".join((norm.name, *dict(norm.presets)))
    return (name, norm.title, norm.axes.value, norm.formula(), eps, parameters, norm.source)


class ConventionTable:
    """The document of the table of conventions.

    Parameters
    ----------
    name : str or None
        The norm (its short name) or the framework whose conventions are listed; None: all.
    """

    def __init__(self, name: str | None = None) -> None:
        self._name = name
        self._conventions = [row for row in CONVENTIONS if name in (None, row.norm, row.framework)]

    def sections(self, view: View) -> Iterator[Section]:
        """Yield a table of conventions and, if they are of one norm or framework alone, notes on them."""
        rows = [TableRow(_format_convention(row)) for row in self._conventions]
        yield Table(None, _COLUMNS, (False,) * len(_COLUMNS), rows)
        told = (
            (row.norm if row.framework == self._name else row.framework, " ".join(_list_notes(row)))
            for row in self._conventions
        )
        notes = tuple((label, (note,)) for label, note in told if note)
        if self._name is not None and notes:
            yield Facts("notes", notes)

    def data(self) -> Mapping[str, Any]:
        """Return the answer as a JSON object: an object per convention."""
        return {"schema": SCHEMA, "conventions": list(self.records())}

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Return one object per convention."""
        return map(describe_value, self._conventions)

    def rows(self) -> Iterator[Sequence[Any]]:
        """Return one row per convention; the names of the columns come first."""
        records = (
            {**describe_value(row), "running": row.running and str(row.running)} for row in self._conventions
        )
        return flatten_records(records, Convention._fields)


def _format_convention(row: Convention) -> tuple[str, ...]:
    norm = NORMS[row.norm]
    return (
        row.framework,
        row.norm,
        _format_eps(row.eps),
        row.eps_mode or _NOTHING,
        _NOTHING if row.ddof is None else str(row.ddof),
        _format_axes(row),
        row.channel or _NOTHING,
        _format_parameters(row),
        _NOTHING if row.running is None else str(row.running),
        _NOTHING if norm.axes is AxesRule.CHANNEL_WINDOW else _format_zero(row),
        row.precision,
        f"{row.version}: {row.source}",
    )


def _format_zero(row: Convention) -> str:
    return ZeroRule.ZERO.value if row.eps else NORMS[row.norm].format_zero(row.zero_rule)


def _list_notes(row: Convention) -> Iterator[str]:
    """Yield sentences on what no column of the table shows: variance in one pass, half precision, refusals."""
    size = NORMS[row.norm].divisor.size
    if row.note:
        yield row.note
    if row.one_pass:
        yield "The variance is E[x²] − E[x]², which is lost far from zero."
    if row.flat_rule is not None:
        yield f"A {size} {row.flat_rule.value} counts as 0."
    if row.short is not None:
        square = f", the {size} and its square" if row.short is ShortRule.SQUARE else f" and the {size}"
        yield f"Of half precision, eps{square} are in half precision."
    if row.exponents:
        yield f"p is {' or '.join(f'{p:g}' for p in row.exponents)}."
    if row.omits_nan:
        yield "NaN is omitted."
    if row.divides_first:
        yield "Centre / divisor is subtracted from x / divisor, which cancels far from zero."
    yield from (f"It refuses {refusal.value}." for refusal in row.refuses)


def _format_eps(eps: float | EpsRule | None) -> str:
    if eps is None:
        return _NOTHING
    return eps.value if isinstance(eps, EpsRule) else f"{eps:g}"


def _format_axes(row: Convention) -> str:
    norm, parts = NORMS[row.norm], []
    if norm.axes is AxesRule.CHANNEL_WINDOW:
        options = {name: getattr(row, name) for name in ("size", "alpha", "exponent", "k")}
        parts += [f"{name} {number:g}" for name, number in options.items() if number is not None]
        parts += [] if row.divides_alpha else ["alpha not divided"]
        parts += [] if row.extra_neighbour is None else [f"even: the extra one {row.extra_neighbour}"]
    elif row.group_order is GroupOrder.INTERLEAVED:
        parts.append("interleaved")
    elif row.rows is not None:
        parts.append(f"rows: {row.rows.value}")
    elif row.chooses is not None:
        parts.append(row.chooses.value)
    return ", ".join(((row.axes or norm.axes).value, *parts))


def _format_parameters(row: Convention) -> str:
    parts = [(row.parameters or NORMS[row.norm].parameters).value]
    parts += ["gamma alone"] if row.takes_beta is False else []
    parts += [f"as {row.gamma_offset} + gamma"] if row.gamma_offset else []
    return ", ".join(parts)
