"""The answer of `normcli audit --against`: two runs of a model by layer, and the first layer that differs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from normcli.answers.judging.audit_report import (
    SCHEMA,
    build_answer,
    build_detail,
    describe_layer,
    name_norm,
    tell,
)
from normcli.answers.judging.distances import OF_COMPARISON, format_ulp, tell_agreement
from normcli.documents.document import Entry, Facts, Line, Listing, Table, TableRow, describe_members
from normcli.printable import format_count, make_printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from normcli.auditing.layer_verdict import LayerVerdict
    from normcli.auditing.runs import LayerPair, RunComparison
    from normcli.checking.tally import Comparison
    from normcli.documents.document import Section, View

_MOST_NAMED = 3
"""The most layers named of those that only one run has."""

_RUNS = ("first", "second")

_COLUMNS = ("layer", "norm", "input", "output", "nearer to exact")


@dataclass(frozen=True)
class RunReport:
    """The document of `normcli audit --against`: the comparison of two recorded runs of a model.

    Parameters
    ----------
    found : RunComparison
    sources : tuple of str
        The paths of the two recorded runs.
    """

    found: RunComparison
    sources: tuple[str, str]

    def sections(self, view: View) -> Iterator[Section]:
        """Yield a header, a table of layers, the report of `check` on the first layer that differs, a summary.

        The first layer that differs is the first whose inputs agree and whose outputs, settings or weights do
        not. The report is about the run whose layer is further from the exact norm; it is left out if that
        layer agrees with the norm too, or has no `detail`.
        """
        lines = zip(_RUNS, ((make_printable(name),) for name in self.sources), strict=True)
        order = (("paired", ("in their order, as no name is in both",)),) if self.found.by_order else ()
        weights = [
            ("weights", (f"the {run} run has none, and is judged with the other's",))
            for run in self.found.without_weights
        ]
        yield Facts("audit · two runs", (*lines, *order, *weights))
        rows = [*map(self._build_row, self.found.pairs)]
        note = "input, output: ulp between the runs"
        yield Table(None, _COLUMNS, (False, False, True, True, False), rows, note, wraps=True)
        parting = self.found.parting
        if parting is not None:
            worse, verdict = self._choose(parting)
            if verdict.detail is not None and verdict.ok is False:
                yield Facts(f"{make_printable(verdict.settings.name)} of the {worse} run", ())
                yield from build_detail(verdict.detail).sections(view)
        yield self._build_summary()

    def listing(self, view: View) -> Listing:
        """Return the layers as entries of an HTML page, each with the findings on both runs."""
        entries = [
            Entry(
                make_printable(pair.first.settings.name), make_printable(name_norm(pair.first)),
                None if pair.output is None else pair.output.max_ulp, _format(pair.output),
                make_printable("; ".join(pair.differences) or tell(self._choose(pair)[1])), pair.ok,
                [*build_answer(pair.first, view), *build_answer(pair.second, view)],
            )
            for pair in self.found.pairs
        ]  # fmt: skip
        title = f"audit · {' · '.join(map(make_printable, self.sources))}"
        return Listing(title, self._build_summary(), entries)

    def data(self) -> Mapping[str, Any]:
        """Return the comparison as a JSON object: `ok`, the `first` layer that differs, and `layers`.

        `alone` has the names of layers that one run alone has.
        """
        parting = self.found.parting
        return {
            "schema": SCHEMA,
            "source": self.sources[0],
            "against": self.sources[1],
            "ok": self.found.ok,
            "first": None if parting is None else parting.first.settings.name,
            **describe_members(self.found, "between", "by_order", "without_weights"),
            "alone": {run: list(names) for run, names in self.found.alone.items()},
            "layers": list(self.records()),
        }

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Yield a JSON object for each layer that both runs have: the runs' distance, and each run's verdict.

        `input` and `output` are the distances between the runs' tensors, None where these were not compared.
        `first_run` and `second_run` are the layer in each run, from `describe_layer`.
        """
        for pair in self.found.pairs:
            yield {
                **describe_members(pair.first.settings, "name", "norm"),
                "ok": pair.ok,
                "input": _describe(pair.input),
                "output": _describe(pair.output),
                **describe_members(pair, "differences", "nearer", "algorithms"),
                "first_run": describe_layer(pair.first),
                "second_run": describe_layer(pair.second),
            }

    def rows(self) -> Iterator[Sequence[Any]]:
        """Yield the rows of a CSV table: first the columns' names, then a row for each layer of both runs."""
        tensors = ("input", "output")
        ulps, causes = (f"{name}_ulp" for name in tensors), (f"{run}_cause" for run in _RUNS)
        yield ("name", "norm", *ulps, "differences", "nearer", *causes)
        for one in self.records():
            ulp = [None if one[role] is None else one[role]["max_ulp"] for role in tensors]
            cause = [one[f"{run}_run"]["cause"] for run in _RUNS]
            yield (one["name"], one["norm"], *ulp, "; ".join(one["differences"]), one["nearer"], *cause)

    def _choose(self, pair: LayerPair) -> tuple[str, LayerVerdict]:
        """Return ("first" or "second", verdict) of the run further from the exact norm; second if equal."""
        return ("first", pair.first) if pair.nearer == "second" else ("second", pair.second)

    def _tell_causes(self, pair: LayerPair) -> Iterator[tuple[str, str]]:
        """Yield pairs (run, text) on a layer: for each run that differs from the exact norm, the finding on it.

        If both runs have the same finding, one pair names both. If two different algorithms reproduce the bits
        of the runs, further pairs name each known algorithm.
        """
        both = zip(_RUNS, (pair.first, pair.second), strict=True)
        wrong = {run: tell(one) for run, one in both if one.ok is False}
        if len(wrong) > len({*wrong.values()}):
            wrong = {"first and the second": wrong["first"]}
        for run, cause in wrong.items():
            yield f"the {run}", make_printable(cause)
        if len({*pair.algorithms}) > 1:
            for run, algorithm in zip(_RUNS, pair.algorithms, strict=True):
                if algorithm is not None:
                    yield f"the {run}", f"{algorithm} gives every bit"

    def _build_row(self, pair: LayerPair) -> TableRow:
        name, norm = pair.first.settings.name, name_norm(pair.first)
        cells = (name, norm, _format(pair.input), _format(pair.output), pair.nearer or "")
        return TableRow(tuple(map(make_printable, cells)))

    def _build_summary(self) -> Line:
        """Return a line on both runs: that they agree, or the first layer with equal inputs and other outputs.

        If there is no such layer, the line says that both runs differ; it names the two layers between which
        they begin to, if these are known. If nothing differs, it counts the layers that could not be compared.
        """
        found, parting = self.found, self.found.parting
        details = [("only in", f"the {run}: {_join(names)}") for run, names in found.alone.items() if names]
        if found.ok:
            told = tell_agreement(len(found.pairs), format_count(len(found.pairs), "layer"))
            return Line((told, "in both runs"), mark=True)
        if parting is not None:
            second = [("the second", make_printable(text)) for text in parting.differences]
            causes = [*self._tell_causes(parting)]
            name = make_printable(parting.first.settings.name)
            return Line((f"both runs part at {name}",), mark=False, details=(*second, *causes, *details))
        if found.between is not None:
            before, after = found.between
            place = f"look before {after}" if before is None else f"look between {before} and {after}"
            details[:0] = [("to tell", make_printable(place)), *_list_suspects(found.suspects)]
            return Line(
                ("both runs differ, at no norm whose input agrees",), mark=False, details=tuple(details)
            )
        unsure = [pair for pair in found.pairs if pair.ok is None]
        known = len(found.pairs) - len(unsure)
        if not details and all(pair.ok is not False for pair in found.pairs):
            agreeing = (tell_agreement(known, format_count(known, "layer")), "in both runs") if known else ()
            problems = tuple(_list_problems(unsure))
            return Line((*agreeing, f"{len(unsure):,} could not be compared"), mark=False, details=problems)
        odd = next((pair for pair in found.pairs if pair.differences), None)
        if odd is not None:
            name = make_printable(odd.first.settings.name)
            details.insert(0, (name, make_printable("; ".join(odd.differences))))
        return Line(("both runs differ",), mark=False, details=tuple(details))


def _join(names: Sequence[str]) -> str:
    more = f", and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(map(make_printable, names[:_MOST_NAMED])) + more


def _list_problems(pairs: Sequence[LayerPair]) -> Iterator[tuple[str, str]]:
    """Yield pairs (name, reason) of layers that could not be compared."""
    for pair in pairs:
        problem = pair.first.problem or pair.second.problem or ""
        yield make_printable(pair.first.settings.name), make_printable(problem)


def _list_suspects(pairs: Sequence[LayerPair]) -> Iterator[tuple[str, str]]:
    """Yield two lines on each layer that could not be compared and may be the cause of a difference.

    They are pairs (label, text): the layer's name, and below it the reason why it could not be compared.
    """
    for name, problem in _list_problems(pairs):
        yield name, "was not compared, and may be the cause"
        yield "", problem


def _describe(found: Comparison | None) -> Mapping[str, Any] | None:
    return None if found is None else describe_members(found, *OF_COMPARISON)


def _format(found: Comparison | None) -> str:
    if found is None:
        return "?"
    return f"{format_ulp(found.max_ulp)} {'✓' if found.ok else '✗'}"
