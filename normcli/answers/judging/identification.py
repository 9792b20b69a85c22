"""The answer of `normcli identify`: the norms and maps that reproduce a tensor, and the diagnosis."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.documents.document import SCHEMA, Facts, Line, Table, TableRow, describe_members, describe_value
from normcli.documents.excerpt import format_hidden
from normcli.documents.plan_header import describe_tensor, list_facts
from normcli.identifying.question import Kind, begin_sentence
from normcli.identifying.search.affine_step import NO_AFFINE
from normcli.identifying.words.match_words import format_share

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from normcli.documents.document import Section, View
    from normcli.dtypes import Floats
    from normcli.identifying.models.line_fit import PlainMap
    from normcli.identifying.question import Diagnosis, Identification
    from normcli.identifying.search.match import Match
    from normcli.tensors.tensor import Tensor

_MOST_LINES, _MOST_ON_SCREEN = 12, 4
"""The most rows of a table in a pipe, and in a terminal, where the verdict below should stay in sight."""

_COLUMNS = (
    *("norm", "axes", "eps", "fits", "place", "ddof"),
    *("affine", "precision", "like", "equal", "max ulp", "max abs"),
)
_ABSENT = "–"
_NUMERIC = frozenset(("eps", "ddof", "equal", "max ulp", "max abs"))

_NOTHING = frozenset((_ABSENT, NO_AFFINE.way, "0"))
"""Cells without information; a column that has only such cells is left out."""

_MEMBERS = (
    *("norm", "axes", "groups", "group_order", "eps", "eps_range", "eps_mode", "ddof", "p"),
    *("affine", "precision", "like", "equal", "max_ulp", "max_abs", "order", "window", "rows"),
)
"""The members of a match in JSON; `p`, `window` and `rows` are left out if they are None."""


def build_verdict(diagnosis: Diagnosis, mark: bool | None) -> Line:
    """Return a line with the cause, and below it evidence, alternatives, remedy and next step.

    `mark` is True for ✓, False for ✗, and None for no mark.
    """
    return Line((f"{begin_sentence(diagnosis.cause)}.",), mark, tuple(diagnosis.list_details()))


def describe_diagnosis(diagnosis: Diagnosis) -> dict[str, Any]:
    """Return the fields of a diagnosis as members of a JSON object."""
    return describe_members(diagnosis, *diagnosis._fields)


@dataclass(frozen=True)
class IdentificationAnswer:
    """The document of `normcli identify`: the norms found for a tensor, and the diagnosis.

    Parameters
    ----------
    found : Identification
    diagnosis : Diagnosis
    source, actual : Tensor
        The input, and the tensor that is identified.
    axis_names : sequence of str
        The names of the input's axes.
    """

    found: Identification
    diagnosis: Diagnosis
    source: Tensor
    actual: Tensor
    axis_names: Sequence[str]

    def sections(self, view: View) -> Iterator[Section]:
        """Yield a header, the table of matches if there are any, and the verdict.

        If y = a · x + b with a and b for each index along some axes, a table of a and b comes before the
        verdict.
        """
        lines = (("input", list_facts(self.source)), ("actual", list_facts(self.actual)))
        yield Facts("what made the actual tensor of the input?", lines)
        if self.found.matches:
            yield self._list_matches(view)
        if self.found.plain is not None and self.found.plain.axes:
            yield self._list_lines(self.found.plain, view)
        yield build_verdict(self.diagnosis, self.diagnosis.verdict == Kind.NORM)

    def data(self) -> Mapping[str, Any]:
        """Return the identification as a JSON object: diagnosis, `matches`, `affine`, `doubtful`, `computed`.

        `affine` is y = a · x + b, or None; `computed` are the algorithms whose bits were compared with y's.
        """
        return {
            "schema": SCHEMA,
            "input": describe_tensor(self.source),
            "actual": describe_tensor(self.actual),
            **describe_diagnosis(self.diagnosis),
            "matches": [_describe_match(match) for match in self.found.matches],
            "affine": None if self.found.plain is None else self._describe_map(self.found.plain),
            "doubtful": [_describe_match(match) for match in self.found.doubtful],
            "computed": [
                {"name": one.computation.name, "does": one.words}
                | describe_members(one, "equal", "compared", "bits")
                for one in self.found.reproductions
            ],
            "sampled": self.found.sampled,
            "sentence": self.diagnosis.sentence,
        }

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Return an iterator of one object for each match."""
        return map(_describe_match, self.found.matches)

    def rows(self) -> Iterator[Sequence[Any]]:
        """Return an iterator of a header and one row for each match."""
        return iter((_COLUMNS, *map(self._to_cells, self.found.matches)))

    def _list_matches(self, view: View) -> Table:
        count = len(self.found.matches)
        matches = self.found.matches[: _count_lines(count, view)]
        note = format_hidden(count - len(matches), count, "match", "matches")
        every = [self._to_cells(match) for match in matches]
        told = [i for i in range(len(_COLUMNS)) if not {cells[i] for cells in every} <= _NOTHING]
        columns = tuple(_COLUMNS[i] for i in told)
        rows = [TableRow(tuple(cells[i] for i in told)) for cells in every]
        return Table(None, columns, tuple(name in _NUMERIC for name in columns), rows, note, wraps=True)

    def _list_lines(self, plain: PlainMap, view: View) -> Table:
        """Return a table of a and b in y = a · x + b, with a row for each index along the map's axes.

        If the map may be a norm in evaluation, and running statistics are derived from a and b
        (`found.evaluation`), the table has columns for these too.
        """
        columns = {"a": plain.scale, "b": plain.shift}
        evaluation = self.found.evaluation
        if evaluation is not None:
            columns |= {"running mean": evaluation.mean, "running var + eps": evaluation.square}
        names = tuple(self.axis_names[axis] for axis in plain.axes)
        count = plain.scale.size
        most = _count_lines(count, view)
        places = itertools.islice(np.ndindex(*(plain.scale.shape[axis] for axis in plain.axes)), most)
        rows = [
            TableRow((*map(str, place), *(f"{values.reshape(-1)[number]:.6g}" for values in columns.values())))
            for number, place in enumerate(places)
        ]
        note = format_hidden(count - most, count, "line")
        return Table(None, (*names, *columns), (True,) * (len(names) + len(columns)), rows, note)

    def _describe_map(self, plain: PlainMap) -> Mapping[str, Any]:
        """Return the map y = a · x + b as a JSON object.

        `a` and `b` are numbers, or nested lists with a level for each of `axes`. `evaluation` has the running
        statistics derived from them, or None.
        """
        evaluation = self.found.evaluation
        stored = evaluation and {
            "mean": _drop_ones(evaluation.mean, plain),
            "var_plus_eps": _drop_ones(evaluation.square, plain),
            "affine": evaluation.affine.way,
        }
        return {
            "axes": list(plain.axes),
            "a": _drop_ones(plain.scale, plain),
            "b": _drop_ones(plain.shift, plain),
            "wrong": plain.wrong,
            "may_be": list(self.found.known),
            "evaluation": stored,
        }

    def _to_cells(self, match: Match) -> tuple[str, ...]:
        ends = dict.fromkeys(f"{end:.3g}" for end in match.eps_range)
        eps = (f"{match.eps:g}", " … ".join(ends), match.eps_mode or "floor")
        groups = "" if match.groups is None else f" {match.groups} {match.group_order}"
        return (
            f"{match.norm}{groups}" + ("" if match.p is None else f" p {match.p:g}") + _name_gate(match),
            " ".join(self.axis_names[axis] for axis in match.axes),
            *(eps if match.takes_eps else (_ABSENT,) * len(eps)),
            str(match.ddof),
            match.affine,
            match.precision,
            ", ".join(match.like) or _ABSENT,
            format_share(match.equal),
            f"{match.max_ulp:.3g}",
            f"{match.max_abs:.2e}",
        )


def _count_lines(count: int, view: View) -> int:
    """Return the number of rows, of `count` rows of a table, that a view shows."""
    return count if view.full else min(count, _MOST_LINES if view.width is None else _MOST_ON_SCREEN)


def _drop_ones(values: Floats, plain: PlainMap) -> Any:
    lengths = [plain.scale.shape[axis] for axis in plain.axes]
    numbers = np.broadcast_to(values, plain.scale.shape)
    return describe_value(numbers.reshape(lengths) if lengths else float(numbers.flat[0]))


def _name_gate(match: Match) -> str:
    if match.gate is None:
        return ""
    order, act = match.gate
    factor = "gate" if act == "none" else f"{act}(gate)"
    return f" of x · {factor}" if order == "before" else f" · {factor}"


def _describe_match(match: Match) -> dict[str, Any]:
    absent = {name for name in ("p", "window", "rows") if getattr(match, name) is None}
    members = describe_members(match, *(name for name in _MEMBERS if name not in absent))
    if match.gate is not None:
        members |= dict(zip(("gate_order", "gate_act"), match.gate, strict=True))
    if (steps := match.steps) is None:
        return members
    return {**members, "iterations": steps.fewest, "most_iterations": steps.most, "start": steps.start}
