"""The answer of `normcli NORM --by COLUMN`: the statistics of each group of rows."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from normcli.documents.document import SCHEMA, Facts, Table, TableRow, flatten_records
from normcli.documents.excerpt import build_excerpt
from normcli.documents.plan_header import format_value
from normcli.errors import UsageError
from normcli.printable import format_count, make_printable
from normcli.tensors.formats.json_lists import to_lists

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from normcli.documents.document import Section, View
    from normcli.norms.norm import Norm


@dataclass(frozen=True)
class GroupedAnswer:
    """A document of the statistics of groups of rows.

    Parameters
    ----------
    norm : Norm
    source : tuple of str
        The facts of the header's line `input`.
    by : str
        The name of the column that rows are grouped by.
    names : sequence of str
        Its values.
    columns : sequence of str
        Of which there are statistics.
    statistics : mapping of str to ndarray, shape (groups, columns)
    warnings : sequence of str
    """

    norm: Norm
    source: tuple[str, ...]
    by: str
    names: Sequence[str]
    columns: Sequence[str]
    statistics: Mapping[str, NDArray[Any]]
    warnings: Sequence[str]

    def sections(self, view: View) -> Iterator[Section]:
        """Return the header and the table of groups."""
        groups = (f"rows by {make_printable(self.by)}", format_count(len(self.names), "group"))
        facts = (("input", self.source), ("groups", groups))
        yield Facts(f"{self.norm.name} · {self.norm.title}", facts)
        width = len(self.columns)

        def make_row(number: int) -> TableRow:
            group, column = divmod(number, width)
            values = (format_value(a[group, column], view) for a in self.statistics.values())
            own = (make_printable(self.names[group]), make_printable(self.columns[column]))
            return TableRow((*own, *values))

        titles = (make_printable(self.by), "column", *self.statistics)
        table = Table(None, titles, (False, False, *(True,) * (len(titles) - 2)))
        yield build_excerpt(table, make_row, len(self.names) * width, "group", view)

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
        lists = [to_lists(values.reshape(-1)) for values in self.statistics.values()]
        places = itertools.product(self.names, self.columns)
        for (name, column), *values in zip(places, *lists, strict=True):
            yield {"group": name, "column": column, **dict(zip(self.statistics, values, strict=True))}

    def rows(self) -> Iterator[Sequence[Any]]:
        """Return one line for each group and column, the header first."""
        return flatten_records(self.records())

    def field(self, name: str) -> NDArray[np.generic]:
        """Return a statistic of each group and column, or raise `UsageError` if there is none of that name."""
        return find_field(self.statistics, name)


def find_field(fields: Mapping[str, NDArray[Any]], name: str) -> NDArray[Any]:
    """Return the field that `--print` names, or raise `UsageError` if there is none of that name."""
    if name not in fields:
        raise UsageError(f"--print {name}: there is no such field; there are {', '.join(fields)}")
    return fields[name]
