"""`normcli restore NORM`: whether gamma and beta can undo a norm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from click import option

from normcli.cli.files.choose_destination import choose_document_file
from normcli.cli.files.destination import leave_with_verdict
from normcli.cli.parameters import answer_options, options
from normcli.cli.problem import load_problem
from normcli.cli.verb_commands import EVALUATION, SELECTION, NamedNorm, Verb
from normcli.writers import FORMATS

if TYPE_CHECKING:
    from normcli.cli.parameters.settings import Settings


def _describe(named: NamedNorm) -> str:
    norm = named.norm
    if not norm.parameter_names:
        return f"Can gamma and beta undo {norm.title}? It has none, so this is refused."
    centre = norm.centre.statistic if norm.takes_beta else None
    beta = "" if centre is None else f" and beta = {centre}"
    return (
        f"Can gamma and beta undo {norm.title}?\n\n"
        f"The norm is applied with gamma = {norm.divisor.spread}{beta}, without eps, each measured over all "
        "values that share it, and what comes out is held against the input. Exit code 0 if that comes back, 1 "
        "if it does not."
    )


def _run(settings: Settings, rtol: float | None, atol: float | None) -> None:
    """See whether gamma = std and beta = mean can undo a norm.

    Gamma is set to what the norm divides by without its eps (in BatchNorm √var) and beta to what it subtracts
    (the mean), each measured over all values that share it: over all axes but those that gamma varies along.
    Where these are the axes of the statistics, as in BatchNorm, the input comes back; where they are not, as
    in LayerNorm, it cannot. The answer says which, by how much, and why. Exit code 0 if it comes back, 1 if it
    does not. A norm without gamma is refused.

    \b
      normcli restore bn --shape 3,4 --rng torch --dist normal --seed 0
      normcli restore ln -i x.npy --format json
    """
    destination = choose_document_file(settings, FORMATS)
    from normcli.answers.teaching.restoration import RestorationAnswer
    from normcli.teach.restore import restore

    problem = load_problem(settings)
    with settings.run.open_effort() as effort:
        attempt = restore(problem._replace(effort=effort), rtol, atol)
    settings.run.warn_of_groups(problem.plan.norm.name, attempt.result.warnings)
    destination.write(RestorationAnswer(attempt, problem.tensor), settings.answer.view())
    leave_with_verdict(ok=attempt.recovered)


RESTORE = Verb(
    "restore",
    _run,
    options=lambda named: [
        *options.TENSOR,
        *options.of_norm(named, but="range"),
        option("--rtol", type=float, help="Tolerated part of the input's value. [default: 1e-4]"),
        option(
            "--atol",
            type=float,
            help="Tolerated difference beside that. [default: 1e-4, or 1e-4 of the largest |x| if less]",
        ),
        answer_options.ANSWER_FILE,
        *answer_options.TABLE,
        *answer_options.RUN,
    ],
    examples=("--shape 3,4 --dist normal",),
    describe=_describe,
    refused={
        ("--gamma", "--beta", "--affine-seed"): "gamma and beta are what is looked for",
        SELECTION: "the whole input is to come back; values that do not count are never lost",
        EVALUATION: "they are measured on this tensor; normcli invert undoes given statistics",
    },
)
