"""The answer of `normcli audit`: a line for each layer of a model, and the first bad one in full."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from normcli.answers.judging.check_verdict import Verdict
from normcli.answers.judging.distances import (
    build_short_line,
    format_ulp,
    tell_agreement,
    tell_difference,
    tell_ulp,
)
from normcli.answers.judging.gradients_verdict import GradientsVerdict
from normcli.checking.check import NORMALIZED
from normcli.documents.document import (
    Entry,
    Facts,
    Line,
    Listing,
    RecordDocument,
    Table,
    TableRow,
    describe_members,
)
from normcli.documents.plan_header import name_inputs
from normcli.identifying.question import label_remedy
from normcli.printable import format_count, make_printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from normcli.auditing.layer_verdict import Audit, Detail, JudgedTensor, LayerVerdict
    from normcli.documents.document import Section, View

SCHEMA = "normcli-audit/1"

_MARKS = {True: "✓", False: "✗", None: "?"}

_COLUMNS = ("layer", "norm", "shape", "dtype", "worst ulp", "verdict")

_OF_PART = ("ok", "max_ulp", "compared", "mismatches", "cause", "fault", "remedy")

_UNSAID = (("like", "torch"), ("axes", [-1]), ("layout", "NLC"))
"""Options of nearly every layer, which are left out of a line."""


@dataclass(frozen=True)
class AuditReport(RecordDocument):
    """The document of `normcli audit`: the verdicts on the norms of a recorded run.

    Parameters
    ----------
    audit : Audit
    source : str
        The path of the recorded run.
    """

    audit: Audit
    source: str
    row_names = ("name", "norm", "dtype", "ok", "max_ulp", "cause", "problem")

    def sections(self, view: View) -> Iterator[Section]:
        """Yield a header, a table of layers, the report of `check` on the first bad layer, and a summary."""
        layers, first = self.audit.layers, self.audit.first
        yield Facts(f"audit · {make_printable(self.source)}", (("layers", (f"{len(layers):,}",)),))
        rows = [_build_row(alike) for alike in _join_alike(layers)]
        yield Table(None, _COLUMNS, (False, False, False, False, True, False), rows, wraps=True)
        if first is not None and first.detail is not None:
            yield Facts(f"first bad layer: {make_printable(first.settings.name)}", ())
            yield from build_detail(first.detail).sections(view)
            yield from (
                _build_part(part) for part in first.parts if not part.ok and part.role.endswith("_after")
            )
        yield build_summary(self.audit)

    def listing(self, view: View) -> Listing:
        """Return the layers as entries of an HTML page, each with the sections of `build_answer`."""
        entries = [_build_entry(one, view) for one in self.audit.layers]
        return Listing(f"audit · {make_printable(self.source)}", build_summary(self.audit), entries)

    def data(self) -> Mapping[str, Any]:
        """Return the verdicts as a JSON object: `ok`, the `first` bad layer's name or None, and `layers`."""
        first = self.audit.first
        return {
            "schema": SCHEMA,
            "source": self.source,
            "ok": self.audit.ok,
            "first": None if first is None else first.settings.name,
            "layers": list(self.records()),
        }

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Return an iterator over a JSON object for each layer, from `describe_layer`."""
        return map(describe_layer, self.audit.layers)


def describe_layer(verdict: LayerVerdict) -> dict[str, Any]:
    """Return the verdict on one layer as a JSON object: settings, distances, cause and remedy.

    `parts` has the verdict on each of the layer's tensors, by role such as output.
    """
    telling = verdict.telling
    found = (None,) * 3 if telling is None else (telling.cause, telling.fault, telling.remedy)
    return {
        **describe_members(verdict.settings, "name", "norm", "options", "evaluation", "kind"),
        **describe_members(verdict, "shape", "dtype", "ok", "max_ulp"),
        **dict(zip(("cause", "fault", "remedy"), found, strict=True)),
        "problem": verdict.problem,
        "note": verdict.settings.note or None,
        "parts": {part.role: describe_members(part, *_OF_PART) for part in verdict.parts},
    }


def _build_entry(verdict: LayerVerdict, view: View) -> Entry:
    name, norm, ulp = make_printable(verdict.settings.name), make_printable(name_norm(verdict)), verdict.max_ulp
    distance = "?" if ulp is None else tell_ulp(ulp)
    said = f"{_MARKS[verdict.ok]} {tell(verdict)}".rstrip()
    sections = [*build_answer(verdict, view)]
    return Entry(name, norm, ulp, distance, make_printable(said), verdict.ok, sections)


def build_answer(verdict: LayerVerdict, view: View) -> Iterator[Section]:
    """Yield the sections on one layer: its norm, input and class, its problem if it has one, and its tensors.

    If the verdict has a `detail` (the full comparison), the report of `check` shows the tensors, and lines are
    added only for running statistics after the batch. Without a `detail`, each tensor has one line.
    """
    shape = "×".join(map(str, verdict.shape))
    kind = verdict.settings.kind
    told = (("norm", name_norm(verdict)), ("input", f"{shape} {verdict.dtype}"), ("class", kind))
    facts = tuple((label, (make_printable(words),)) for label, words in told if words.strip())
    yield Facts(make_printable(verdict.settings.name), facts)
    if verdict.problem is not None:
        yield Line((make_printable(verdict.problem),), mark=False)
    if verdict.detail is not None:
        yield from build_detail(verdict.detail).sections(view)
    for part in verdict.parts:
        if verdict.detail is None or part.role.endswith("_after"):
            yield _build_part(part)


def build_detail(detail: Detail) -> Verdict:
    """Return the report of `check` on a layer, from the `detail` of its verdict."""
    problem, gradients = detail.problem, None
    if detail.gradients is not None and problem.dy is not None:
        sources = {name: f"grad of {name.removeprefix('d')}" for name in detail.gradients.comparisons}
        gradients = GradientsVerdict(detail.gradients, problem.tensor, problem.dy, sources)
    sources = {NORMALIZED: detail.source}
    given = name_inputs(problem.inputs)
    return Verdict(
        problem.plan, problem.tensor, given, sources, detail.checked,
        diagnosis=detail.diagnosis, gradients=gradients,
    )  # fmt: skip


def _build_part(part: JudgedTensor) -> Line:
    """Return a line with the verdict on a tensor, and its cause and remedy below."""
    told = (("evidence", part.cause), (label_remedy(part.remedy or ""), part.remedy))
    details = tuple((label, words) for label, words in told if words is not None)
    return build_short_line(part.role, part, details)


def build_summary(audit: Audit) -> Line:
    """Return a line with the verdict on all layers: how many agree, or how many differ and the first of these.

    It also counts the layers that could not be judged. It is marked as right if all agree and all were judged.
    """
    layers, first = audit.layers, audit.first
    unknown, wrong = (sum(one.ok is kind for one in layers) for kind in (None, False))
    left = (f"{unknown:,} could not be judged",) if unknown else ()
    if unknown == len(layers):
        return Line(left, mark=False)
    if first is None:
        known = len(layers) - unknown
        told = tell_agreement(known, format_count(known, "layer"))
        return Line((told, *left), not unknown, details=tuple(_find_odd(layers)))
    found = tell_difference(wrong, format_count(len(layers), "layer"))
    name = make_printable(first.settings.name)
    return Line((found, f"first bad layer: {name}", *left), mark=False, details=tuple(_suggest_classes(layers)))


_FEWEST_ALIKE = 3
"""The fewest layers of a class that, if all need one remedy, suggest that the class means another norm."""


def _find_odd(layers: Sequence[LayerVerdict]) -> Iterator[tuple[str, str]]:
    """Yield a pair, ("another norm", text), for layers in whose place most others have another norm.

    These are layers whose norm was found, as no settings name it, and whose names differ in numbers alone.
    """
    by_name: dict[str, list[LayerVerdict]] = {}
    for one in layers:
        if one.settings.norm is None and one.ok:
            by_name.setdefault(re.sub(r"\b\d+\b", "*", one.settings.name), []).append(one)
    for pattern, alike in by_name.items():
        ((usual, count),) = Counter(map(tell, alike)).most_common(1)
        odd = [make_printable(one.settings.name) for one in alike if tell(one) != usual]
        if len(alike) >= _FEWEST_ALIKE and count > len(odd) > 0:
            yield "another norm", f"{', '.join(odd)}, than most of {make_printable(pattern)}: is it meant so?"


def _suggest_classes(layers: Sequence[LayerVerdict]) -> Iterator[tuple[str, str]]:
    """Yield a pair, ("reproduce", text), for each class of modules whose layers are all another norm.

    A class needs at least three layers with one remedy. The text says how to record the class as that norm.
    """
    by_class: dict[str, list[LayerVerdict]] = {}
    for one in layers:
        by_class.setdefault(one.settings.kind.rpartition(".")[2], []).append(one)
    for kind, alike in by_class.items():
        remedies = {None if one.ok or one.telling is None else one.telling.remedy for one in alike}
        (remedy, *others) = remedies
        called, *words = (remedy or "-").split()
        if others or len(alike) < _FEWEST_ALIKE or called != "normcli":
            continue
        norm, _, *options = words
        pairs = zip(options[::2], options[1::2], strict=True)
        spec = ":".join([norm, *(f"{name.removeprefix('--')}={value}" for name, value in pairs)])
        yield "reproduce", f"record {make_printable(kind)} as {spec}, by also=, if every one is meant so"


def _join_alike(layers: Sequence[LayerVerdict]) -> Iterator[list[LayerVerdict]]:
    """Yield lists of layers, one list for each row of the table.

    Layers that differ from the exact result, or could not be judged, are in one list if their norm, its options
    and the finding on them are equal.
    Every other layer has a list of its own.
    """
    alike: dict[tuple[str, str], list[LayerVerdict]] = {}
    for one in layers:
        key = (name_norm(one), tell(one)) if not one.ok else ("", one.settings.name)
        alike.setdefault(key, []).append(one)
    yield from alike.values()


def _build_row(alike: Sequence[LayerVerdict]) -> TableRow:
    first = alike[0]
    names = [one.settings.name for one in alike]
    name = names[0] if len(names) == 1 else f"{join_names(names)} ({len(names)})"
    furthest = [one.max_ulp for one in alike if one.max_ulp is not None]
    ulp = format_ulp(max(furthest)) if furthest else ""
    shape = "×".join(map(str, first.shape))
    cells = (name, name_norm(first), shape, first.dtype, ulp, f"{_MARKS[first.ok]} {tell(first)}".rstrip())
    return TableRow(tuple(map(make_printable, cells)))


def name_norm(verdict: LayerVerdict) -> str:
    """Return a layer's norm with its less usual options, such as `rms:like=llama:eps=1e-06`."""
    settings = verdict.settings
    options = [pair for pair in settings.options.items() if pair not in _UNSAID]
    words = [f"{name.replace('_', '-')}={_write_option(value)}" for name, value in options]
    gate = " --gate" if settings.gate_act else ""
    return ":".join((settings.norm or "?", *words)) + (" --eval" if settings.evaluation else gate)


def _write_option(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def tell(verdict: LayerVerdict) -> str:
    """Return the finding on a layer as a clause; "" if there is none.

    It is the reason why the layer could not be judged, the cause of its first difference, or a note on its
    settings.
    """
    if verdict.problem is not None:
        return verdict.problem
    telling = verdict.telling
    if telling is None:
        return verdict.settings.note
    cause = telling.cause or f"{telling.role} differs"
    return cause.removeprefix(f"{verdict.settings.norm} differs: ")


def join_names(names: Sequence[str]) -> str:
    """Return one pattern for several names, with `*` for each dot-separated part that differs.

    Names of different numbers of parts have one `*` between the parts that all begin and end with.

    Examples
    --------
    >>> join_names(["layers.0.norm", "layers.1.norm"])
    'layers.*.norm'
    >>> join_names(["layers.0.norm", "layers.0.mlp.norm", "norm"])
    '*'
    """
    parts = [name.split(".") for name in names]
    fewest = min(map(len, parts))
    if fewest == max(map(len, parts)):
        return ".".join(column[0] if len({*column}) == 1 else "*" for column in zip(*parts, strict=True))
    begin = _find_common(parts)[: fewest - 1]
    end = _find_common([one[::-1] for one in parts])[: fewest - 1 - len(begin)]
    return ".".join([*begin, "*", *reversed(end)])


def _find_common(lists: Sequence[list[str]]) -> list[str]:
    """Return the longest list with which all of several lists begin."""
    columns = zip(*lists, strict=False)
    return [column[0] for column in itertools.takewhile(lambda column: len({*column}) == 1, columns)]
