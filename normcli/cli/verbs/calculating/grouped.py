"""`normcli NORM --by COLUMN`: the rows of each group of a table, normalized by themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from normcli.cli.files.destination import WholeFiles
from normcli.cli.files.outputs import choose_outputs
from normcli.cli.files.sources import load_file, load_parameters
from normcli.errors import DegenerateError, UsageError
from normcli.language import keep_names
from normcli.norms.table import find_norm
from normcli.writers import PAGE, PICTURES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from normcli.cli.parameters.settings import Settings


def normalize_groups(settings: Settings, by: str, emit: str | None) -> None:
    """Normalize a table's rows group by group; save them, or print the statistics.

    Raises
    ------
    UsageError
        If there is no table, no such column, or something is asked for that groups of rows do not have.
    DegenerateError
        If a group is degenerate, under `--strict`.
    """
    import numpy as np

    from normcli.answers.calculating.grouped_rows import GroupedAnswer
    from normcli.documents.plan_header import list_facts
    from normcli.library.grouping import normalize_by
    from normcli.norms.plan import make_plan
    from normcli.tensors.formats.file_formats import Saved

    _refuse(settings, emit)
    outputs = choose_outputs(settings.answer)
    if outputs.document is not None and outputs.document.format_name in (PAGE, *PICTURES):
        raise UsageError("--by has no page and no picture: leave it out, or write a table")
    tensor = load_file(settings.source.inputs[0], settings)
    assert tensor.by is not None
    plan = make_plan(settings.request, tensor.values.shape, tensor.values.dtype, tensor.columns)
    affine = {name: values for name, values in load_parameters(plan, settings).items() if values is not None}
    options: Mapping[str, Any] = settings.request._asdict()
    given = {name: value for name, value in options.items() if value is not None and name != "norm"}
    found = normalize_by(
        tensor.values,
        list(tensor.by.read()),
        cast("Any", settings.request.norm),
        nan=settings.selection.nan,
        **given,
        **affine,
    )
    keep_names(found.names)
    norm = find_norm(settings.request.norm)[0]
    if settings.run.strict and found.warnings:
        raise DegenerateError(f"{norm.name}: {'; '.join(found.warnings)}")
    with WholeFiles() as files:
        if outputs.tensor is not None:
            outputs.tensor.write_tensor(files, Saved.like(tensor, found.normalized))
    settings.run.warn(norm.name, *found.warnings)
    if outputs.document is not None:
        columns = tensor.columns or tuple(map(str, range(tensor.values.shape[1])))
        counts = np.repeat(found.counts, len(columns)).reshape(-1, len(columns))
        answer = GroupedAnswer(
            norm,
            list_facts(tensor),
            by,
            found.names,
            columns,
            {"count": counts, **found.statistics},
            found.warnings,
        )
        outputs.document.write(answer, settings.answer.view())


def _refuse(settings: Settings, emit: str | None) -> None:
    settings.around.refuse("is of the whole tensor: leave it out beside --by")
    answer, source, selection = settings.answer, settings.source, settings.selection
    given = {
        "--emit": emit, "--print": answer.fields, "--show": answer.show, "--stats-output": answer.stats_output,
        "--residual": source.residual, "--mask": selection.mask, "--lengths": selection.lengths,
        "--fill": selection.fill, "--axes": settings.request.axes, "--keep": settings.request.keep,
        "--layout": settings.request.layout, "--scheduler": settings.run.scheduler,
        "--workers": settings.run.workers,
    }  # fmt: skip
    refused = next((name for name, value in given.items() if value), None)
    if refused is not None:
        raise UsageError(f"{refused} is of the whole tensor: leave it out beside --by")
    if len(source.inputs) != 1:
        raise UsageError("--by groups the rows of one table: give -i FILE")
