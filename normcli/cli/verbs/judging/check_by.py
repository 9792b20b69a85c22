"""`normcli check NORM --by COLUMNS`: whether each group of a table's rows was normalized by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from normcli.cli.files.sources import load_file, load_parameters, require_one_stream
from normcli.cli.verbs.calculating.grouped import refuse_beside_groups
from normcli.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np

    from normcli.answers.judging.check_verdict import GroupedVerdict
    from normcli.checking.ulp import Tolerance
    from normcli.cli.parameters.settings import Settings
    from normcli.norms.plan import Plan
    from normcli.tensors.tensor import Tensor

    Load = Callable[[str, str, Plan, Settings], Tensor]


ALONE = "--by checks --actual alone; normcli fit --by has the statistics of groups"
"""The refusal of what is to be checked beside the normalized table."""


def check_rows_by(
    settings: Settings,
    paths: Mapping[str, str],
    load: Load,
    tolerate: Callable[[np.dtype[Any]], Tolerance],
) -> GroupedVerdict:
    """Return the verdict on a table whose rows are normalized group by group.

    Parameters
    ----------
    settings : Settings
    paths : mapping of str to str
        The files to check, by what they hold.
    load : callable
        Returns one of them.
    tolerate : callable
        As of `normcli.checking.check.check`.

    Raises
    ------
    UsageError
        If statistics are to be checked, or something is asked for that groups of rows do not have.
    """
    from normcli.answers.judging.check_verdict import GroupedVerdict
    from normcli.checking.check import NORMALIZED
    from normcli.identifying.grouped_check import GroupedTable
    from normcli.norms.plan import make_plan
    from normcli.norms.request import Choices

    refuse_beside_groups(settings)
    if list(paths) != [NORMALIZED]:
        raise UsageError(ALONE)
    require_one_stream(settings, *paths.values())
    tensor = load_file(settings.source.inputs[0], settings)
    plan = make_plan(settings.request, tensor.values.shape, tensor.values.dtype, tensor.columns)
    affine = load_parameters(plan, settings)
    theirs = load(NORMALIZED, paths[NORMALIZED], plan, settings)
    nan = Choices(settings.request).pick_nan_rule(settings.selection.nan)
    with settings.run.open_effort() as effort:
        table = GroupedTable(tensor, theirs, affine, nan, tolerate, effort)
        found = table.compare(settings.request)
        told = None if found.checked.ok else table.diagnose(settings.request, found)
    settings.run.warn_of_groups(plan.norm.name, found.warnings)
    sources = {NORMALIZED: theirs.source}
    return GroupedVerdict(plan, tensor, affine, sources, found.checked, found.warnings, told, found=found)
