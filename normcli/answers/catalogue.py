"""The table of norms as a document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from normcli.documents.document import SCHEMA, Grid, Row
from normcli.norms.conventions import list_frameworks
from normcli.norms.table import NORMS, EpsMode, Norm

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from normcli.documents.document import Section, View


class Catalogue:
    """Every row of the table of norms."""

    def sections(self, view: View) -> Iterator[Section]:
        """Return the table a reader sees: one grid."""
        columns = ("norm", "name", "axes by default", "formula", "eps", "gamma, beta", "source")
        yield Grid(None, columns, (False,) * len(columns), [Row(_describe(norm)) for norm in NORMS.values()])

    def data(self) -> Mapping[str, Any]:
        """Return every row as an object."""
        return {"schema": SCHEMA, "norms": list(self.records())}

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Return one object a norm."""
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
                "eps": norm.eps,
                "eps_mode": norm.eps_mode,
                "statistics": list(norm.statistics),
                "options": sorted(norm.options),
                "like": list(list_frameworks(norm.name)),
                "source": norm.source,
                "use": norm.use,
            }

    def rows(self) -> Iterator[Sequence[Any]]:
        """Return one line a norm, lists joined by spaces."""
        records = list(self.records())
        yield list(records[0])
        for record in records:
            yield [" ".join(v) if isinstance(v, list) else "" if v is None else v for v in record.values()]


def _describe(norm: Norm) -> tuple[str, ...]:
    eps = "–" if norm.eps is None else f"{norm.eps:g}"
    if norm.eps_mode is EpsMode.OUTSIDE:
        eps += " outside"
    parameters = norm.parameters.value if norm.takes_beta else f"{norm.parameters.value}, gamma alone"
    name = ", ".join((norm.name, *(preset.name for preset in norm.presets)))
    return (name, norm.title, norm.axes.value, norm.formula(), eps, parameters, norm.source)
