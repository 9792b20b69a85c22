"""The answer of `check --actual-running-mean`: whether running statistics are what the batches make them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from normcli.answers.judging.distances import format_ulp
from normcli.documents.document import SCHEMA, Facts, Line, describe_members
from normcli.printable import format_count, make_printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from normcli.checking.tally import Comparison
    from normcli.documents.document import Section, View


@dataclass(frozen=True)
class RunningVerdict:
    """Running statistics, checked.

    Parameters
    ----------
    norm : str
    batches : tuple of str
        Where the batches came from.
    found : sequence of tuple
        The name of each, how far it is off, and the cause where it differs.
    """

    norm: str
    batches: tuple[str, ...]
    found: Sequence[tuple[str, Comparison, str | None]]

    @property
    def ok(self) -> bool:
        """Whether all agree."""
        return all(one.ok for _, one, _ in self.found)

    def sections(self, view: View) -> Iterator[Section]:
        """Return the batches, and a line for each of the statistics."""
        yield Facts(
            f"check {self.norm} · running statistics", (("batches", tuple(map(make_printable, self.batches))),)
        )
        for name, one, cause in self.found:
            count = format_count(one.compared, "value")
            text = f"{one.mismatches:,} of {count} differ{'s' if one.mismatches == 1 else ''}"
            details = () if cause is None else (("evidence", cause),)
            yield Line((f"{name}: {text}", f"{format_ulp(one.max_ulp)} ulp"), mark=one.ok, details=details)

    def data(self) -> Mapping[str, Any]:
        """Return the verdicts as one object."""
        return {"schema": SCHEMA, "norm": self.norm, "ok": self.ok, "checked": list(self.records())}

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Return one object for each of the statistics."""
        for name, one, cause in self.found:
            told = describe_members(one, "ok", "max_ulp", "max_abs", "compared", "mismatches")
            yield {"name": name, **told, "cause": cause}

    def rows(self) -> Iterator[Sequence[Any]]:
        """Return one line for each of the statistics."""
        yield ("name", "ok", "max_ulp", "max_abs", "compared", "mismatches", "cause")
        for record in self.records():
            yield [*record.values()]
