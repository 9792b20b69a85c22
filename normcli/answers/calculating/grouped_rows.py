"""The answer of `normcli NORM --by COLUMN`: the statistics of each group of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from normcli.documents.document import SCHEMA, Facts, Table, TableRow, flatten_records
from normcli.documents.excerpt import build_excerpt
from normcli.documents.number_format import format_statistic
from normcli.documents.plan_header import list_facts
from normcli.printable import format_count, make_printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from normcli.documents.document import Section, View
    from normcli.norms.norm import Norm
    from normcli.tensors.tensor import Tensor


@dataclass(frozen=True)
class GroupedAnswer:
    """A document of the statistics of groups of rows.

    Parameters
    ----------
    norm : Norm
    tensor : Tensor
        The columns that were normalized.
    by : str
        The name of the column that rows are grouped by.
    names : sequence of str
        Its values.
    counts : sequence of int
        The rows of each.
    statistics : mapping of str to ndarray, shape (groups, columns)
    warnings : sequence of str
    """

    norm: Norm
    tensor: Tensor
    by: str
    names: Sequence[str]
    counts: Sequence[int]
    statistics: Mapping[str, NDArray[np.float64]]
    warnings: Sequence[str]

    def sections(self, view: View) -> Iterator[Section]:
        """Return the header and the table of groups."""
        groups = (f"rows by {make_printable(self.by)}", format_count(len(self.names), "group"))
        facts = (("input", list_facts(self.tensor)), ("groups", groups))
        yield Facts(f"{self.norm.name} · {self.norm.title}", facts)
        width = self._width

        def make_row(number: int) -> TableRow:
            group, column = divmod(number, width)
            values = (format_statistic(float(a[group, column]), view.digits) for a in self.statistics.values())
            own = (make_printable(self.names[group]), make_printable(self._columns[column]))
            return TableRow((*own, str(self.counts[group]), *values))

        titles = (make_printable(self.by), "column", "count", *self.statistics)
        table = Table(None, titles, (False, False, *(True,) * (len(titles) - 2)))
        yield build_excerpt(table, make_row, len(self.names) * width, "group", view)

    @property
    def _width(self) -> int:
        return int(next(iter(self.statistics.values())).shape[1])

    @property
    def _columns(self) -> Sequence[str]:
        return self.tensor.columns or [str(number) for number in range(self._width)]

    def data(self) -> Mapping[str, Any]:
        """Return the object of JSON."""
        return {
            "schema": SCHEMA,
            "norm": self.norm.name,
            "by": self.by,
            "groups": list(self.records()),
            "warnings": list(self.warnings),
        }

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Return one object for each group and column."""
        for group, name in enumerate(self.names):
            for place, column in enumerate(self._columns):
                found = {key: float(values[group, place]) for key, values in self.statistics.items()}
                yield {"group": name, "column": column, "count": self.counts[group], **found}

    def rows(self) -> Iterator[Sequence[Any]]:
        """Return one line for each group and column, the header first."""
        return flatten_records(self.records())
