"""`normcli explain`: the arithmetic of one value, or of one group, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from click import option

from normcli.cli.files.choose_destination import choose_document_file
from normcli.cli.files.sources import require_one_stream
from normcli.cli.parameters import answer_options, options
from normcli.cli.problem import load_problem
from normcli.cli.verb_commands import BOUNDS, SELECTION, Verb
from normcli.cli.verbs.calculating.backward import ask_for_backward, load_gradient
from normcli.writers import WRITERS

if TYPE_CHECKING:
    from normcli.cli.parameters.settings import Settings
    from normcli.teach.explain.story import Story


def _run(settings: Settings, at: str | None, backward: bool, dy: str | None, dy_seed: int | None) -> None:
    """Show the arithmetic of one value, step by step, as on paper.

    Which values are in the group, what they add up to, what is divided by what, and how it is rounded. Without
    --at, that of the first group: what its values share, then each of them; of a long group the first and the
    last, and how many are not shown. Formulas of -f markdown show on GitHub; -f json has every number in full.

    With --backward, that of dx: how a loss, whose derivative by the normalized tensor is --dy, changes with the
    divisor, with the statistics and with the value, each by the chain rule.

    \b
      normcli explain ln --data '[[1,2,3,4]]' --at 0,0
      normcli explain ln --data 1,2,3,4 --at 0 --backward --dy 1,0,0,2
      normcli explain bn --shape 2,3,4,4 --at 0,1,2,3
      normcli explain gn --groups 2 -i x.npy -o story.md
      normcli explain rms -i x.npy --gate z.npy --gate-order before --at 0,0
    """
    asks_backward = backward or dy is not None or dy_seed is not None
    destination = choose_document_file(settings, WRITERS)
    from normcli.answers.teaching.explanation import Explanation
    from normcli.engine.walk import Effort
    from normcli.teach.explain.explain import explain
    from normcli.teach.value_index import parse_index

    require_one_stream(settings, dy, settings.around.gate)
    problem = load_problem(settings)._replace(effort=Effort(settings.run.threads))
    plan = problem.plan
    index = None if at is None else parse_index(at, plan.grid.shape, plan.grid.layout)
    if asks_backward:
        settings.refuse("has no story of its backward pass", *BOUNDS)
        problem = load_gradient(settings, problem, dy, dy_seed)
    story = explain(problem, at=index, every=settings.answer.full)
    settings.run.warn_of_groups(plan.norm.name, _list_warnings(story))
    document = Explanation(story, problem, settings.answer.digits)
    destination.write(document, settings.answer.view())


def _list_warnings(story: Story) -> list[str]:
    """Return the warnings of a story: its group's degeneracies, or without a group its sentences."""
    if story.group is None:
        return [f"t{step.sentence.removeprefix('T').rstrip('.')}" for step in story.steps]
    return [str(kind) for kind in story.group.degeneracies]


EXPLAIN = Verb(
    "explain",
    _run,
    options=lambda named: [
        option(
            "--at",
            metavar="I,J,…",
            help="Which value: 0,1,-1 or n=0,c=1,l=-1. [default: the first group, whole]",
        ),
        *ask_for_backward("Explain dx, the derivative of a loss by the value."),
        *options.of_problem(named),
        *options.GATE,
        *answer_options.ANSWER,
        *answer_options.RUN,
    ],
    examples=(
        "{tensor}",
        "-i x.npy --at n=0,c=1,h=2,w=3 -f markdown",
    ),
    refused={SELECTION: "the steps are of groups of which every value counts"},
)
