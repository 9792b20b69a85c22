"""The answer of `normcli identify`: what reproduces a tensor, as a document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from normcli.documents.document import SCHEMA, Facts, Line, Row, Table, describe_members
from normcli.documents.excerpt import format_hidden
from normcli.documents.plans import describe_tensor, list_facts
from normcli.verify.sentence import format_share

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from normcli.documents.document import Section, View
    from normcli.tensors.tensor import Tensor
    from normcli.verify.hypothesis import Match
    from normcli.verify.identify import Identification

_MOST_MATCHES = 12

_COLUMNS = (
    "norm",
    "axes",
    "eps",
    "fits",
    "place",
    "ddof",
    "affine",
    "precision",
    "like",
    "equal",
    "max ulp",
    "max abs",
)
_NUMERIC = frozenset(("eps", "ddof", "equal", "max ulp", "max abs"))

_MEMBERS = (
    *("norm", "axes", "groups", "group_order", "eps", "eps_range", "eps_mode", "ddof", "p"),
    *("affine", "precision", "like", "equal", "max_ulp", "max_abs", "order", "window"),
)
"""Those of a match in JSON; p and the window only where a norm has them."""


@dataclass(frozen=True)
class IdentificationAnswer:
    """The norms that reproduce a tensor, and the two tensors.

    Parameters
    ----------
    found : Identification
    sentence : str
    source, actual : Tensor
    axis_names : sequence of str
    """

    found: Identification
    sentence: str
    source: Tensor
    actual: Tensor
    axis_names: Sequence[str]

    def sections(self, view: View) -> Iterator[Section]:
        """Return a header, the matches, the sentence."""
        lines = (("input", list_facts(self.source)), ("actual", list_facts(self.actual)))
        yield Facts("what made the actual tensor of the input?", lines)
        if self.found.matches:
            yield self._list_matches(view)
        yield Line((self.sentence,), bool(self.found.matches))

    def data(self) -> Mapping[str, Any]:
        """Return the object of JSON."""
        nearest = self.found.nearest
        return {
            "schema": SCHEMA,
            "input": describe_tensor(self.source),
            "actual": describe_tensor(self.actual),
            "matches": [_describe_match(match) for match in self.found.matches],
            "nearest": None
            if nearest is None
            else _describe_match(nearest.match) | describe_members(nearest, "mismatches", "compared", "first"),
            "sampled": self.found.sampled,
            "sentence": self.sentence,
        }

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Return one object per match."""
        return map(_describe_match, self.found.matches)

    def rows(self) -> Iterator[Sequence[Any]]:
        """Return one line per match."""
        return iter((_COLUMNS, *map(self._to_cells, self.found.matches)))

    def _list_matches(self, view: View) -> Table:
        matches = self.found.matches if view.full else self.found.matches[:_MOST_MATCHES]
        count = len(self.found.matches)
        note = format_hidden(count - len(matches), count, "match", "matches")
        rows = [Row(self._to_cells(match)) for match in matches]
        return Table(None, _COLUMNS, tuple(name in _NUMERIC for name in _COLUMNS), rows, note)

    def _to_cells(self, match: Match) -> tuple[str, ...]:
        low, high = match.eps_range
        eps = (f"{match.eps:g}", f"{low:.3g} … {high:.3g}", match.eps_mode or "floor")
        groups = "" if match.groups is None else f" {match.groups} {match.group_order}"
        return (
            f"{match.norm}{groups}" + ("" if match.p is None else f" p {match.p:g}"),
            " ".join(self.axis_names[axis] for axis in match.axes),
            *(eps if match.takes_eps else ("–",) * len(eps)),
            str(match.ddof),
            match.affine,
            match.precision,
            ", ".join(match.like) or "–",
            format_share(match.equal),
            f"{match.max_ulp:.3g}",
            f"{match.max_abs:.2e}",
        )


def _describe_match(match: Match) -> dict[str, Any]:
    absent = {name for name in ("p", "window") if getattr(match, name) is None}
    return describe_members(match, *(name for name in _MEMBERS if name not in absent))
