"""The answer of `check --by`: a table whose rows are normalized group by group, beside the exact one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.answers.judging.check_verdict import Verdict
from normcli.language import keep_names
from normcli.printable import format_count, make_printable
from normcli.teach.value_index import format_index

if TYPE_CHECKING:
    from collections.abc import Mapping

    from normcli.documents.document import Facts, View
    from normcli.identifying.grouped_check import GroupedCheck


@dataclass(frozen=True, kw_only=True)
class GroupedVerdict(Verdict):
    """A verdict whose groups are those of rows, each with statistics of every column.

    Parameters
    ----------
    found : GroupedCheck
    """

    found: GroupedCheck

    @property
    def _kept_names(self) -> tuple[str, ...]:
        return (*self.tensor.by.names, "column") if self.tensor.by is not None else ()

    def _build_header(self, view: View) -> Facts:
        labels = self.found.groups.labels
        keep_names(cell for label in labels for cell in label if cell)
        by = make_printable(", ".join(self._kept_names[:-1]))
        groups = ("groups", (f"rows by {by}", format_count(len(labels), "group")))
        header = super()._build_header(view)
        return header._replace(lines=tuple(groups if line[0] == "groups" else line for line in header.lines))

    def data(self) -> Mapping[str, Any]:
        """Return the verdicts as one object, with the columns that group rows."""
        return {**super().data(), "by": list(self._kept_names[:-1]), "group_count": self._count_groups()}

    def _count_groups(self) -> int:
        return len(self.found.groups.labels) * int(self.tensor.values.shape[1])

    def _measure_group(self, number: int) -> int:
        groups, row = self.found.groups, number // self.tensor.values.shape[1]
        return int(np.count_nonzero(groups.places[groups.met] == row))

    def _name_group(self, number: int) -> str:
        name: str = self.found.stats.subject.name_group(number)
        return name

    def _index_group(self, number: int) -> Mapping[str, Any]:
        row, place = divmod(number, self.tensor.values.shape[1])
        column = str(place) if self.tensor.columns is None else self.tensor.columns[place]
        return dict(zip(self._kept_names, (*self.found.groups.labels[row], column), strict=True))

    def _locate(self, name: str, place: int) -> tuple[tuple[int, ...], int]:
        row, column = divmod(place, self.tensor.values.shape[1])
        groups = self.found.groups
        return (row, column), int(groups.places[groups.met[row]]) * self.tensor.values.shape[1] + column

    def _name_place(self, name: str, place: int) -> tuple[str, ...]:
        index, number = self._locate(name, place)
        return format_index(index, self.plan.grid.layout), f"group {self._name_group(number)}"
