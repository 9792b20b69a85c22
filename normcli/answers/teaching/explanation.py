"""The answer of `normcli explain NORM`: a `Story` as a document."""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from normcli.answers.calculating.calculation import require_page
from normcli.documents.document import Formulas, LongList, Page, RecordDocument, Table, TableRow
from normcli.documents.excerpt import cut_beyond, format_hidden
from normcli.documents.notation import MOST_SHOWN, build_equation, format_code, format_number
from normcli.documents.plan_header import build_header, describe_plan, describe_tensor, list_facts, name_inputs
from normcli.errors import UsageError
from normcli.teach.explain.measured_group import get_number
from normcli.teach.explain.story import RESIDUAL, RESULT
from normcli.teach.formulas.expression import Constant
from normcli.teach.value_index import format_index
from normcli.tensors.formats.json_lists import describe_number, to_lists
from normcli.tensors.pieces import iterate_pieces

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from normcli.documents.document import Facts, Section, View
    from normcli.documents.scene import Scene
    from normcli.results.arguments import Problem
    from normcli.results.result import Result
    from normcli.teach.explain.measured_group import MeasuredGroup
    from normcli.teach.explain.story import Story, StoryStep

_Item = TypeVar("_Item")

_HEAD, _TAIL = 4, 2
"""The numbers of first and last values of a long group that are listed."""

_EACH_HEAD, _EACH_TAIL = 3, 1
"""The numbers of first and last values of a long group whose arithmetic is shown."""

_AT_ONCE = 8192
"""The number of positions that are formatted at once."""

_LISTED = ("group", RESIDUAL)
"""The names of steps that are shown as a table of the group's values."""


@dataclass(frozen=True)
class Explanation(RecordDocument):
    """The document of `normcli explain NORM`: a story, the steps of the arithmetic of a value or a group.

    Parameters
    ----------
    story : Story
    problem : Problem
        The tensor, its norm, and dy if the story is of a backward pass; a page has the result of all of it.
    digits : int or None
        The number of significant digits of texts in JSON; None for the default.
    """

    story: Story
    problem: Problem
    digits: int | None = None
    row_names = ("step", "at", "symbol", "sentence", "text", "expression", "value")

    def sections(self, view: View) -> Iterator[Section]:
        """Yield a header, and a section for each step of the story.

        If the story is of a whole group, the steps that its values share come first, then those of single
        values.
        """
        yield self._build_header(view)
        group = self.story.group
        together = self.story.at is None and group is not None
        shared = [step for step in self.story.steps if step.outcome is None or step.name == RESIDUAL]
        alike = itertools.groupby(shared if together else self.story.steps, lambda step: step.sentence)
        for number, (sentence, some) in enumerate(alike, start=1):
            steps = list(some)
            if steps[0].name in _LISTED and group is not None:
                yield self._list_members(f"{number}. {sentence}", group, view, steps[0].name)
                continue
            equations = (
                build_equation(
                    step,
                    view.digits,
                    full=view.full,
                    index=step.outcome.index if step.outcome is not None and len(steps) > 1 else None,
                )
                for step in steps
            )
            yield Formulas(f"{number}. {sentence}", tuple(each for each in equations if each is not None))
        if together and group is not None:
            own = [step for step in self.story.steps if step.outcome is not None and step.name != RESIDUAL]
            count = len({step.sentence for step in shared})
            yield from _build_each(count + 1, own, group, view)

    def data(self) -> Mapping[str, Any]:
        """Return the story as a JSON object: plan, `at`, the `group` with its values, `steps`, warnings."""
        story, group, dy = self.story, self.story.group, self.problem.dy
        given = {"input": self.problem.tensor} | ({} if dy is None else {"dy": dy})
        return {
            **describe_plan(story.plan, {name: describe_tensor(tensor) for name, tensor in given.items()}),
            "at": None if story.at is None else list(story.at),
            "running": story.running,
            "group": None if group is None else _describe_group(group),
            "steps": list(self.records()),
            "warnings": [] if group is None else [str(kind) for kind in group.degeneracies],
        }

    def records(self) -> Iterator[Mapping[str, Any]]:
        """Yield a JSON object per step: its name, index and symbol, a sentence, and its arithmetic and value.

        The arithmetic is in `text`, `latex` and `expression` (Python code); `value` is its result in full
        precision. All are None for a step without arithmetic; all but `expression` if the result is not finite.
        """
        for step in self.story.steps:
            equation = build_equation(step, self.digits)
            value = None if step.value is None else step.value.value
            written = None if value is None else repr(value)
            yield {
                "step": step.name,
                "at": None if step.outcome is None else list(step.outcome.index),
                "symbol": None if step.symbol is None else step.symbol.text,
                "sentence": step.sentence,
                "text": None if equation is None else equation.text,
                "latex": None if equation is None else " ".join(equation.latex),
                "expression": format_code(step.chain[0]) if step.chain else written,
                "value": value,
            }

    def page(self) -> Page:
        """Return an HTML page of the result, opened at the story's value, or else at the first value.

        With dy, the steps of the derivative follow below. Raises `UsageError` if a page cannot show
        the result.
        """
        result = self.problem.calculate()
        require_page(result)
        shape = self.story.plan.grid.shape
        at = (0,) * len(shape) if self.story.at is None and 0 not in shape else self.story.at
        page = Page(self._title(), [result], self.problem.tensor, at)
        if self.problem.dy is None:
            return page
        picture = None if self.story.group is None else self._draw_reach(result)
        return page._replace(
            further=lambda view: itertools.islice(self.sections(view), 1, None), picture=picture
        )

    def _draw_reach(self, result: Result) -> Scene | None:
        """Return a picture of the values whose dx depends on one dy; None if the tensor cannot be drawn.

        The dy is that of the value at `self.story.at`, or if that is None, of the tensor's first value.
        """
        from normcli.pictures import Options  # for pages alone
        from normcli.pictures.draw import draw
        from normcli.results.gradient_reach import find_reach

        reach = find_reach(self.problem, self.story.at)
        with contextlib.suppress(UsageError):
            return draw([result], self.problem.tensor, Options(reach=reach))
        return None

    # -- for a reader

    def _title(self) -> str:
        norm = self.story.plan.norm
        return f"explain {'' if self.problem.dy is None else 'backward '}{norm.name} · {norm.title}"

    def _build_header(self, view: View) -> Facts:
        plan, group, at = self.story.plan, self.story.group, self.story.at
        source = list_facts(self.problem.tensor, None if group is None else group.dtype)
        asked: list[tuple[str, tuple[str, ...]]] = []
        if self.problem.dy is not None:
            asked.append(("dy", list_facts(self.problem.dy)))
        if at:
            asked.append(("at", (format_index(at, plan.grid.layout),)))
        return build_header(self._title(), plan, source, view, name_inputs(self.problem.inputs), asked)

    def _list_members(self, title: str, group: MeasuredGroup, view: View, step: str) -> Table:
        """Return a table of a group's values; of a long group, the first and last ones unless the view is full.

        Parameters
        ----------
        title : str
        group : MeasuredGroup
        view : View
        step : str
            The name of the step that the table shows: for `RESIDUAL`, with the two addends of each value.
        """
        alone = self.story.at is None or group.count == 1
        asked = set() if alone else {group.outcomes[0].place}
        ends = cut_beyond(MOST_SHOWN, group.count, _HEAD, _TAIL, full=view.full)
        places = sorted({*ends.shown, *asked})
        colour = None if group.plan.groups_overlap else group.number
        columns = group.list_columns(summed=step == RESIDUAL)
        rows: dict[int, TableRow] = {}
        for place in places:
            where = format_index(group.index(place), group.plan.grid.layout) or "the only value"
            within = np.unravel_index(place, group.values.shape)
            listed = (get_number(values, within) for values in columns.values())
            numbers = (format_number(Constant(number), view.digits) for number in listed)
            mark = ["← this one" if place in asked else ""] if asked else []
            rows[place] = TableRow((where, *numbers, *mark), colour)
        note = format_hidden(group.count - len(places), group.count, "value")
        names = ("value", *columns, *([""] if asked else []))
        return Table(title, names, tuple(name in columns for name in names), _open_gaps(rows, places), note)


def _build_each(number: int, own: Sequence[StoryStep], group: MeasuredGroup, view: View) -> Iterator[Section]:
    """Yield a section for each kind of step on single values of a group, and a table of the results.

    Of a long group, the first and the last values are shown unless the view is full.

    Parameters
    ----------
    number : int
        The number in the title of the first of these sections.
    own : sequence of StoryStep
        The steps on single values.
    group : MeasuredGroup
    view : View
    """
    chosen = cut_beyond(MOST_SHOWN, len(group.outcomes), _EACH_HEAD, _EACH_TAIL, full=view.full)
    outcomes = [group.outcomes[i] for i in chosen.shown]
    places = [outcome.place for outcome in outcomes]
    note = format_hidden(group.count - len(outcomes), group.count, "value")
    for name in dict.fromkeys(step.name for step in own if step.name != RESULT):
        steps = {step.outcome.place: step for step in own if step.name == name and step.outcome}
        equations = {
            place: build_equation(steps[place], view.digits, full=view.full, index=group.index(place))
            for place in places
            if place in steps
        }
        if equations:
            sentence = next(iter(steps.values())).sentence
            yield Formulas(f"{number}. {sentence}", tuple(_open_gaps(equations, places)), note)
            number += 1
    rows: dict[int, TableRow] = {}
    for outcome in outcomes:
        where = format_index(outcome.index, group.plan.grid.layout) or "the only value"
        became = [outcome.normalized] if outcome.dx is None else [outcome.dy, outcome.dx]
        texts = (format_number(Constant(n), view.digits) for n in (outcome.value, *became) if n is not None)
        rows[outcome.place] = TableRow((where, *texts), group.number)
    again = group.plan.spec.rounds_before_gamma and any(step.name == "round" for step in own)
    title = f"{number}. The results, rounded {'again' if again else 'once'}, to {group.dtype.name}."
    columns = ("value", "x", "y") if group.gradients is None else ("value", "x", "dy", "dx")
    yield Table(title, columns, (False, *(True,) * (len(columns) - 1)), _open_gaps(rows, places), note)


def _open_gaps(items: Mapping[int, _Item], places: Sequence[int]) -> list[_Item | None]:
    """Return items in the order of their positions, with None where positions are missing in between.

    `items` has the items by position; `places` are the positions of all of them, ascending. None comes first,
    too, if position 0 is missing.
    """
    gaps = {place for before, place in zip([-1, *places], places, strict=False) if place != before + 1}
    return [each for place, item in items.items() for each in ((None, item) if place in gaps else (item,))]


def _describe_group(group: MeasuredGroup) -> Mapping[str, Any]:
    dy = {} if group.gradients is None else {"dy": group.gradients}
    arrays = {"values": group.values, **dict(zip(("x", "residual"), group.addends, strict=False)), **dy}
    return {
        "index": group.plan.grid.group_index(group.number),
        "count": group.count,
        "positions": LongList(
            group.indices(np.arange(start, min(start + _AT_ONCE, group.count))).tolist()
            for start in range(0, group.count, _AT_ONCE)
        ),
        **{name: LongList(map(to_lists, iterate_pieces(array))) for name, array in arrays.items()},
        "stats": {name: describe_number(value) for name, value in group.statistics.items()},
        "dtype": group.dtype.name,
    }
