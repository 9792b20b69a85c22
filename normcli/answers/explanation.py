"""The answer of `normcli explain NORM`: a `Story` as a document."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.documents.document import Formulas, Page, Row, Table
from normcli.documents.excerpt import format_hidden
from normcli.documents.notation import MOST_SHOWN, print_number, spell_step, write_code
from normcli.documents.plans import build_header, describe_plan, describe_tensor, list_facts
from normcli.teach.expression import Constant
from normcli.teach.place import describe_index
from normcli.tensors.nested import describe_number, to_lists
from normcli.tensors.pieces import iterate_pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.documents.document import Equation, Facts, Section, View
    from normcli.results.result import Result
    from normcli.teach.group import MeasuredGroup
    from normcli.teach.story import Step, Story
    from normcli.tensors.tensor import Tensor

_HEAD, _TAIL = 4, 2
"""So many values of a long group are listed."""

_TOLD_HEAD, _TOLD_TAIL = 3, 1
"""Of so many values of a long group the arithmetic is shown."""

_AT_ONCE = 8192
"""Positions whose text is in memory at one time."""

_COLUMNS = ("step", "at", "symbol", "sentence", "text", "expression", "value")

_OF_EACH = ("quotient", "round", "affine")
"""The steps that each value of a group goes through by itself, before its result."""


class Explanation:
    """A story and the tensor that it is of.

    Parameters
    ----------
    story : Story
    tensor : Tensor
    parameters : mapping of str to ndarray or None
        gamma and beta, of the plan's shape.
    calculate : callable
        Returns the whole result, for a page.
    digits : int or None
        Significant digits of the texts in JSON.
    """

    def __init__(
        self,
        story: Story,
        tensor: Tensor,
        parameters: Mapping[str, NDArray[Any] | None],
        calculate: Callable[[], Result],
        digits: int | None = None,
    ) -> None:
        self.story, self.tensor, self.parameters = story, tensor, parameters
        self._calculate, self._digits = calculate, digits

    def sections(self, view: View) -> Iterator[Section]:
        """Return the header, the group, then a section for each step."""
        yield self._build_header(view)
        steps = iter(enumerate(self._shared(), start=1))
        for number, step in steps:
            if step.name == "group" and self.story.group is not None:
                yield self._list_members(f"{number}. {step.sentence}", self.story.group, view)
            else:
                yield _show(number, step, view)
        number = 1 + len(self._shared())
        if self.story.at is not None or self.story.group is None:
            for later, step in enumerate(self._own(), start=number):
                yield _show(later, step, view)
        else:
            yield from self._show_each(number, self.story.group, view)

    def data(self) -> Mapping[str, Any]:
        """Return the object of JSON: the group with its values, and the steps."""
        story, group = self.story, self.story.group
        return {
            **describe_plan(story.plan, {"input": describe_tensor(self.tensor)}),
            "at": None if story.at is None else list(story.at),
            "running": story.running,
            "group": None if group is None else _describe_group(group),
            "steps": list(self.records()),
            "warnings": [] if group is None else [str(kind) for kind in group.degeneracies],
        }

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Return one object a step: its printed text, and an expression in full precision."""
        for step in self.story.steps:
            yield self._describe(step)

    def rows(self) -> Iterator[Sequence[Any]]:
        """Return one line a step."""
        yield _COLUMNS
        for record in self.records():
            at = "" if record["at"] is None else " ".join(map(str, record["at"]))
            value = "" if record["value"] is None else repr(record["value"])
            cells = {**record, "at": at, "value": value}
            yield ["" if cells[name] is None else cells[name] for name in _COLUMNS]

    def page(self) -> Page:
        """Return the result as a page, open at the value that was asked for."""
        return Page(self._title(), [self._calculate()], self.tensor, self.story.at)

    # -- for a reader

    def _title(self) -> str:
        norm = self.story.plan.norm
        return f"explain {norm.name} · {norm.title}"

    def _build_header(self, view: View) -> Facts:
        plan, group, at = self.story.plan, self.story.group, self.story.at
        source = list_facts(self.tensor, None if group is None else group.dtype)
        asked = (("at", (describe_index(at, plan.grid.layout),)),) if at else ()
        return build_header(self._title(), plan, source, view, self.parameters, asked)

    def _shared(self) -> list[Step]:
        return [step for step in self.story.steps if step.outcome is None]

    def _own(self) -> list[Step]:
        return [step for step in self.story.steps if step.outcome is not None]

    def _list_members(self, title: str, group: MeasuredGroup, view: View) -> Table:
        asked = self._find_asked(group)
        places = _choose(group.count, asked, _HEAD, _TAIL, full=view.full)
        colour = None if group.plan.spec.window is not None else group.number
        rows: list[Row | None] = []
        for before, place in zip([-1, *places], places, strict=False):
            if place != before + 1:
                rows.append(None)
            where = describe_index(group.index(place), group.plan.grid.layout) or "the only value"
            mark = ("← this one" if place in asked else "",) if asked else ()
            rows.append(Row((where, print_number(Constant(group.value(place)), view.digits), *mark), colour))
        columns, numeric = (
            (("value", "x", ""), (False, True, False)) if asked else (("value", "x"), (False, True))
        )
        return Table(
            title, columns, numeric, rows, format_hidden(group.count - len(places), group.count, "value")
        )

    def _find_asked(self, group: MeasuredGroup) -> set[int]:
        """Return the number of the value that was asked for, unless it is the only one."""
        at = self.story.at
        if at is None or group.count == 1:
            return set()
        if group.plan.spec.window is None:
            return {group.outcomes[0].place}
        return {place for place in range(group.count) if group.index(place) == at}

    def _show_each(self, number: int, group: MeasuredGroup, view: View) -> Iterator[Section]:
        """Return the steps that each value goes through, each kind of step together, and the results."""
        shown = _choose(len(group.outcomes), set(), _TOLD_HEAD, _TOLD_TAIL, full=view.full)
        told = [group.outcomes[i] for i in shown]
        gaps = {
            outcome.place
            for before, outcome in zip([None, *told], told, strict=False)
            if outcome.place != (before.place + 1 if before else 0)
        }
        own = self._own()
        note = format_hidden(group.count - len(told), group.count, "value")
        for name in _OF_EACH:
            steps = {step.outcome.place: step for step in own if step.name == name and step.outcome}
            equations: list[Equation | None] = []
            for outcome in told:
                if outcome.place in steps:
                    equations += [None] if outcome.place in gaps else []
                    step = steps[outcome.place]
                    equations.append(spell_step(step, view.digits, full=view.full, index=outcome.index))
            if equations:
                sentence = next(iter(steps.values())).sentence
                yield Formulas(f"{number}. {sentence}", tuple(equations), note)
                number += 1
        rows: list[Row | None] = []
        for outcome in told:
            rows += [None] if outcome.place in gaps else []
            where = describe_index(outcome.index, group.plan.grid.layout) or "the only value"
            cells = (Constant(outcome.value), Constant(outcome.normalized))
            rows.append(Row((where, *(print_number(cell, view.digits) for cell in cells)), group.number))
        again = group.plan.spec.rounds_before_gamma and any(step.name == "round" for step in own)
        title = f"{number}. The results, rounded {'again' if again else 'once'}, to {group.dtype.name}."
        yield Table(title, ("value", "x", "y"), (False, True, True), rows, note)

    # -- for a machine

    def _describe(self, step: Step) -> Mapping[str, Any]:
        equation = spell_step(step, self._digits)
        value = None if step.value is None else step.value.value
        return {
            "step": step.name,
            "at": None if step.outcome is None else list(step.outcome.index),
            "symbol": None if step.symbol is None else step.symbol.text,
            "sentence": step.sentence,
            "text": None if equation is None else equation.text,
            "latex": None if equation is None else " ".join(equation.latex),
            "expression": write_code(step.chain[0]) if step.chain else None if value is None else repr(value),
            "value": value,
        }


def _show(number: int, step: Step, view: View) -> Formulas:
    equation = spell_step(step, view.digits, full=view.full)
    return Formulas(f"{number}. {step.sentence}", () if equation is None else (equation,))


def _choose(count: int, asked: set[int], head: int, tail: int, *, full: bool) -> Sequence[int]:
    if full or count <= MOST_SHOWN:
        return range(count)
    return sorted({*range(head), *range(count - tail, count), *asked})


def _describe_group(group: MeasuredGroup) -> Mapping[str, Any]:
    return {
        "index": group.plan.grid.group_index(group.number),
        "count": group.count,
        "positions": _Positions(group),
        "values": _Values(group),
        "stats": {name: describe_number(value) for name, value in group.statistics.items()},
        "dtype": group.dtype.name,
    }


class _Positions:
    """Where the values of a group lie, formatted some at a time."""

    def __init__(self, group: MeasuredGroup) -> None:
        self.group = group

    def format_json(self) -> Iterator[str]:
        """Yield the JSON text of a list of indices."""
        yield "["
        for start in range(0, self.group.count, _AT_ONCE):
            places = np.arange(start, min(start + _AT_ONCE, self.group.count))
            yield f"{', ' if start else ''}{json.dumps(self.group.indices(places).tolist())[1:-1]}"
        yield "]"


class _Values:
    """The values of a group in one list, formatted some at a time."""

    def __init__(self, group: MeasuredGroup) -> None:
        self.group = group

    def format_json(self) -> Iterator[str]:
        """Yield the JSON text of a list of numbers."""
        yield "["
        for number, piece in enumerate(iterate_pieces(self.group.values)):
            yield f"{', ' if number else ''}{json.dumps(to_lists(piece), allow_nan=False)[1:-1]}"
        yield "]"
