"""`--by COLUMN` of a norm and of `check`: rows of a table, normalized with the statistics of their group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from normcli.cli.files.outputs import choose_outputs
from normcli.cli.files.sources import load_file, load_parameters, require_one_source
from normcli.cli.verb_commands import AROUND, CLUSTER, OF_ONE_TENSOR
from normcli.errors import DegenerateError, UsageError
from normcli.language import keep_names
from normcli.norms.request import Choices
from normcli.writers import PAGE, PICTURES

if TYPE_CHECKING:
    from normcli.cli.parameters.settings import Settings


def normalize_groups(settings: Settings) -> None:
    """Normalize a table's rows by their groups' statistics, into `--output`, or print the statistics.

    Raises
    ------
    UsageError
        If there is no table or no such column, or an option does not go with `--by`.
    DataError
        If the table cannot be read, or the output cannot be written.
    DegenerateError
        If a group is degenerate, under `--strict`.
    """
    from normcli.answers.calculating.grouped_rows import GroupedAnswer
    from normcli.cli.verbs.batches.apply import use_one
    from normcli.documents.plan_header import list_facts
    from normcli.fitting.fit import fit_tensor
    from normcli.fitting.statistics import round_stats, warn
    from normcli.fitting.use import Use
    from normcli.tensors.many import Named

    refuse_beside_groups(settings)
    outputs = choose_outputs(settings)
    if outputs.document is not None and outputs.document.format_name in (PAGE, *PICTURES):
        raise UsageError("--by has no page and no picture: leave it out, or write a table")
    tensor = load_file(settings.source.inputs[0], settings)
    nan = Choices(settings.request).pick_nan_rule(settings.selection.nan)
    with settings.run.open_effort() as effort:
        stats = fit_tensor(settings.request, tensor, nan, effort)
        (plan, fields), subject, warnings = round_stats(stats), stats.subject, warn(stats)
        if settings.run.strict and warnings:
            raise DegenerateError(f"{plan.norm.name}: {'; '.join(warnings)}")
        affine = load_parameters(plan, settings)
        use = Use(stats, affine.get("gamma"), affine.get("beta"), dtype=settings.request.dtype)
        one = Named(tensor.source, lambda _: tensor)
        notes = [] if outputs.tensor is None else use_one(one, outputs.tensor, use, effort, inverts=False)
    settings.run.warn(plan.norm.name, *warnings, *(note for note in notes if note not in tensor.remarks))
    if outputs.document is not None:
        columns = tensor.columns or tuple(map(str, range(tensor.values.shape[1])))
        keep_names(cell for label in subject.labels for cell in label if cell)
        shown = {name: fields[name] for name in ("count", *plan.norm.statistics)}
        answer = GroupedAnswer(
            plan.norm, list_facts(tensor), subject.by or (), subject.labels, columns, shown, warnings
        )
        outputs.document.write(answer, settings.answer.view())


def refuse_beside_groups(settings: Settings) -> None:
    """Raise `UsageError` if an option is given that `--by` excludes, or not exactly one input file."""
    if settings.answer.stats_output and not settings.given.intersection(AROUND):
        instead = f"normcli fit {settings.request.norm} … --by {settings.table.by} -o STATS.npz"
        raise UsageError(f"--stats-output is of the whole tensor: {instead} keeps statistics of groups")
    settings.refuse(
        "is of the whole tensor: leave it out beside --by",
        *(*AROUND, "--emit", "--print", "--show", "--residual", "--residual-sum", *OF_ONE_TENSOR),
        *("--axes", "--keep", "--layout", *CLUSTER),
    )
    if len(settings.source.inputs) != 1:
        raise UsageError("--by groups the rows of one table: give -i FILE")
    require_one_source(settings)
