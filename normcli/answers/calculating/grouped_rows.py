"""The answer of `normcli NORM --by COLUMN`: the statistics of each group of rows."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from normcli.documents.document import SCHEMA, Facts, Table, TableRow
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
    from normcli.tensors.tables.numerals import Label


LABELS = {
    "var0": "var (n)",
    "std0": "std (n)",
    "var1": "var (n − 1)",
    "std1": "std (n − 1)",
    "image_std": "per-image std",
    "nan_count": "NaN",
}
"""The words for statistics in the heads of tables, where they are not their names."""


@dataclass(frozen=True)
class GroupedAnswer:
    """The document of `normcli NORM --by COLUMN`: statistics of groups of a table's rows.

    Parameters
    ----------
    norm : Norm
    source : tuple of str
        The facts on the input, for the header.
    by : tuple of str
        The names of the columns that rows are grouped by.
    names : sequence of Label
        The groups: for each, a value for each column of `by`.
    columns : sequence of str
        The names of the columns with the numbers.
    statistics : mapping of str to ndarray, shape (groups, columns)
    warnings : sequence of str
    """

    norm: Norm
    source: tuple[str, ...]
    by: tuple[str, ...]
    names: Sequence[Label]
    columns: Sequence[str]
    statistics: Mapping[str, NDArray[Any]]
    warnings: Sequence[str]

    def sections(self, view: View) -> Iterator[Section]:
        """Yield a header, and a table with a row for each group of rows and each column."""
        groups = (f"rows by {make_printable(', '.join(self.by))}", format_count(len(self.names), "group"))
        facts = (("input", self.source), ("groups", groups))
        yield Facts(f"{self.norm.name} · {self.norm.title}", facts)
        width = len(self.columns)

        def make_row(number: int) -> TableRow:
            group, column = divmod(number, width)
            values = (format_value(a[group, column], view) for a in self.statistics.values())
            own = (*(cell or "" for cell in self.names[group]), self.columns[column])
            return TableRow((*map(make_printable, own), *values))

        own = (*map(make_printable, self.by), "column")
        labels = (LABELS.get(name, name) for name in self.statistics)
        table = Table(None, (*own, *labels), (*(False for _ in own), *(True for _ in self.statistics)))
        yield build_excerpt(table, make_row, len(self.names) * width, "group", view)

    def data(self) -> Mapping[str, Any]:
        """Return the statistics as a JSON object: `by`, `groups` (the objects of `records`) and warnings."""
        return {
            "schema": SCHEMA,
            "norm": self.norm.name,
            "by": self.by[0] if len(self.by) == 1 else list(self.by),
            "groups": list(self.records()),
            "warnings": list(self.warnings),
        }

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Yield a JSON object per group and column: `group`, `column`, and the statistics by name.

        `group` is a list if several columns group rows.
        """
        for label, column, *values in self._list():
            group = label[0] if len(label) == 1 else list(label)
            yield {"group": group, "column": column, **dict(zip(self.statistics, values, strict=True))}

    def rows(self) -> Iterator[Sequence[Any]]:
        """Yield one row per group and column; the names of the columns come first."""
        yield (*self.by, "column", *self.statistics)
        yield from ((*label, *values) for label, *values in self._list())

    def _list(self) -> Iterator[Sequence[Any]]:
        lists = (to_lists(values.reshape(-1)) for values in self.statistics.values())
        places = itertools.product(self.names, self.columns)
        return ((*place, *values) for place, *values in zip(places, *lists, strict=True))

    def field(self, name: str) -> NDArray[np.generic]:
        """Return a statistic, shape (groups, columns), or raise `UsageError` if there is none of that name."""
        return find_field(self.statistics, name)


def find_field(fields: Mapping[str, NDArray[Any]], name: str) -> NDArray[Any]:
    """Return the field that `--print` names, or raise `UsageError` if there is none of that name."""
    if name not in fields:
        raise UsageError(f"--print {name}: there is no such field; there are {', '.join(fields)}")
    return fields[name]
