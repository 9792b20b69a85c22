"""What wrong kernels made, asked of as `check` and as `identify` do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from normcli.identifying.question import Question
from tests.conftest import pose
from tests.plants.faults import list_wrong
from tests.plants.plant import Plant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.plants.faults import Wrong

CHECKED = "a fault, checked"
IDENTIFIED = "a fault, identified"


def list_checked() -> Iterator[Plant]:
    """Yield every wrong kernel, where it is known what it should be."""
    for wrong in list_wrong():
        yield Plant(wrong.name, CHECKED, ask(wrong, is_checked=True), wrong.really, wrong)


def list_identified() -> Iterator[Plant]:
    """Yield every other wrong kernel, where only gamma and beta are known; none that is given more."""
    bare = (wrong for wrong in list_wrong() if wrong.kernel.given is None and wrong.row.other is None)
    known = [wrong for wrong in bare if wrong.inputs.selection is None]
    for wrong in known[::2]:
        yield Plant(wrong.name, IDENTIFIED, ask(wrong, is_checked=False), wrong.really, wrong)


def ask(wrong: Wrong, *, is_checked: bool) -> Question:
    """Return the question that a wrong kernel's result is: with the plan, and all that is given, where it is checked."""
    x, plan = wrong.kernel.tensor, wrong.kernel.plan
    question = Question(x, wrong.y, **wrong.kernel.parameters, layout=plan.request.layout)
    if not is_checked:
        return question
    subject = pose(plan, x, wrong.inputs, addends=wrong.addends)
    return question._replace(layout=plan.grid.layout.text, subject=subject)
