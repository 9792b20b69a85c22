"""`normcli doctor`: whether a norm is safe to calculate in low precision, and by which algorithm."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click import option

from normcli.algorithms.row_computation import parse_computation
from normcli.cli.files.choose_destination import choose_document_file
from normcli.cli.files.destination import leave_with_verdict
from normcli.cli.parameters import answer_options, options
from normcli.cli.problem import load_problem, warn_of_input
from normcli.cli.verb_commands import EVALUATION, NamedNorm, Verb
from normcli.dtypes import OUTPUT_DTYPES
from normcli.writers import FORMATS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from normcli.cli.parameters.settings import Settings


def _list_options(named: NamedNorm) -> Sequence[options.Option]:
    affine = options.declare_affine(named.norm.parameter_names)
    return [
        *options.TENSOR,
        option(
            "--dtype",
            type=click.Choice(OUTPUT_DTYPES),
            help="Of the tensor, which is rounded to it, and of the result. [default: the input's]",
        ),
        option(
            "--require",
            metavar="ALGORITHM:DTYPE",
            help="Exit with 1 unless this is safe: two-pass:float32, or with a cast order behind it.",
        ),
        option(
            "--max-ulp",
            type=float,
            metavar="ULP",
            help="What is safe. [default: what torch's assert_close tolerates, as of normcli check]",
        ),
        *options.of_norm(named, but="dtype"),
        *((*affine, options.AFFINE_SEED) if affine else ()),
        *options.COUNTING[:-1],
        answer_options.ANSWER_FILE,
        *answer_options.TABLE,
        *answer_options.RUN,
    ]


def _run(settings: Settings, require: str | None, max_ulp: float | None) -> None:
    """Find out whether a norm is safe to calculate in low precision, and by which algorithm.

    Runs the common algorithms on the tensor itself: E[x²] − E[x]² in one pass, as it is and clamped, shifted,
    two passes, sums by halves and pairwise, Welford's recurrence, plain and in chunks; each with sums in
    float16, bfloat16, float32 and float64, every operation rounded as a kernel's is. Of each it prints how far
    the worst and the median value are off, whose variances came out negative or as 0, and what overflowed.

    The tensor is rounded to --dtype first. Safe is an algorithm if no value is further off than is tolerated;
    the last line names the cheapest. --full shows the cast orders too: the statistics, or x̂, rounded first.
    Last it prints what the exact result loses in each format of --quantize.

    \b
      normcli doctor ln -i x.npy --dtype float16
      normcli doctor rms -i x.npy --require one-pass:float32
      normcli doctor bn -i x.npy --dtype bfloat16 --max-ulp 2 -f json
    """
    required = None if require is None else parse_computation(require)
    destination = choose_document_file(settings, FORMATS)
    from normcli.answers.judging.doctor_report import ExaminationAnswer
    from normcli.doctor.doctor import examine, require_summed_statistics
    from normcli.quantizing.quantize import list_costs

    problem = load_problem(settings)
    require_summed_statistics(problem.plan)
    with settings.run.open_effort() as effort:
        problem = problem._replace(effort=effort)
        warn_of_input(settings.run, problem, problem.calculate(statistics_alone=True))
        found, costs = examine(problem, max_ulp), list(list_costs(problem))
    answer = ExaminationAnswer(found, problem.tensor, problem.inputs, required, costs)
    destination.write(answer, settings.answer.view())
    leave_with_verdict(ok=answer.ok)


DOCTOR = Verb(
    "doctor",
    _run,
    options=_list_options,
    examples=("{tensor} --dtype float16", "-i x.npy --require two-pass:float32"),
    refused={
        ("--fill",): "nothing is written in place of values that do not count",
        EVALUATION: "given statistics are added up by nobody here",
    },
)
