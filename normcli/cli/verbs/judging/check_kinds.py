"""The kinds of checks of `normcli check`: each reads its files, and has the library judge them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from normcli.cli.files.sources import load_actual, load_file, load_parameters, require_one_stream
from normcli.cli.problem import advise, load_problem, load_training
from normcli.cli.verbs.calculating.backward import load_gradient
from normcli.cli.verbs.calculating.grouped import refuse_beside_groups
from normcli.cli.verbs.calculating.quantized import load_codes, require_format
from normcli.errors import DataError, UsageError, name_subject
from normcli.norms.request import Choices
from normcli.norms.table import find_norm
from normcli.writers import GRADIENTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from normcli.checking.ulp import Tolerance
    from normcli.cli.parameters.settings import Settings
    from normcli.library.judgement import Judgement
    from normcli.norms.plan import Plan
    from normcli.results.arguments import Problem
    from normcli.tensors.tensor import Tensor

    Own = Mapping[str, Any]
    """The own options of `check` by name; None, or False, for one that is not given."""

RUNNING = ("running_mean", "running_var")
"""The running statistics that can be checked."""

ONLY_ROWS = "--by checks --actual alone; normcli fit --by has the statistics of groups"
"""The message of `check --by` if anything but the normalized table is to be checked."""


def check_codes(settings: Settings, own: Own) -> Judgement[Any]:
    """Judge codes and scales (`--actual`, `--actual-scale`) that somebody made of a norm's result.

    Raises `UsageError` if neither is given or options contradict each other, and `DataError` for bad files.
    """
    from normcli.library.judging_codes import CODES, judge_codes
    from normcli.quantizing.formats import read_quantization

    require_format(settings)
    asked = read_quantization(*settings.quantizing)
    if own["actual"] is None and own["actual_scale"] is None:
        raise UsageError("there is nothing to check: give --actual FILE with codes, or --actual-scale FILE")
    problem = load_problem(settings._replace(request=settings.request._replace(dtype="float64")))
    files = {name: load_codes(own[name], name, settings) for name in CODES if own[name] is not None}
    with settings.run.open_effort() as effort:
        told = judge_codes(problem._replace(effort=effort), asked, files, own["max_ulp"])
    settings.run.warn(problem.plan.norm.name, *told.found.exact.warnings)
    return told


def check_running(settings: Settings, own: Own) -> Judgement[Any]:
    """Judge the running statistics after some batches; the inputs are the batches, in their order.

    The running statistics before the first batch are those in the settings, or mean 0 and variance 1. Raises
    `UsageError` for options that do not fit, and `DataError` for bad files.
    """
    from normcli.library.judgement import judge_running
    from normcli.running.average import begin, choose_rule

    request = settings.request
    rule = choose_rule(find_norm(request.norm)[0].name, request.like, *settings.training[:3])
    batches, before = [], None
    with settings.run.open_effort() as effort:
        for file in settings.source.inputs or [None]:
            source = settings.source._replace(inputs=() if file is None else (file,))
            problem, given = load_training(settings._replace(source=source))
            before = before or begin(problem.plan, given)
            batches.append((problem.tensor.source, problem.calculate(effort, statistics_alone=True)))
    assert before is not None
    actual = {}
    for name in RUNNING:
        path = own[f"actual_{name}"]
        if path is not None:
            with name_subject(f"--actual-{name.replace('_', '-')} {path}"):
                actual[name] = load_actual(path, settings, None).values
                if actual[name].size != before.statistics[0].size:
                    raise DataError(f"it has {actual[name].size:,} values, not {before.statistics[0].size:,}")
    return judge_running(batches, before, rule, actual, _read_limits(own))


def check_gradients(settings: Settings, own: Own) -> Judgement[Any]:
    """Judge gradients (`--actual-dx` and the like) by the exact ones that follow from `--dy`.

    Raises `UsageError` if there are none or options contradict each other, and `DataError` for bad files.
    """
    paths = {name: path for name in GRADIENTS if (path := own[f"actual_{name}"]) is not None}
    if not paths:
        raise UsageError("there is nothing to check: give --actual-dx FILE, --actual-dgamma or --actual-dbeta")
    require_one_stream(settings, own["dy"], settings.around.gate, *paths.values())
    from normcli.library.judgement import judge_gradients

    problem = load_gradient(settings, load_problem(settings), own["dy"], own["dy_seed"])
    actual: dict[str, Tensor] = {}
    for name, path in paths.items():
        with name_subject(f"--actual-{name}"):
            columns = problem.plan.grid.columns if name in ("dx", "dgate") else None
            actual[name] = load_actual(path, settings, columns)
    with settings.run.open_effort() as effort:
        told = judge_gradients(problem._replace(effort=effort), actual, _read_limits(own))
    return warn(settings, problem, told)


def check_blocks(settings: Settings, own: Own) -> Judgement[Any]:
    """Judge an array of a store or file, block by block, on a dask cluster."""
    from normcli.cli.verbs.calculating.on_cluster import check_on_cluster

    return check_on_cluster(settings, _find_paths(settings, own), _read_limits(own))


def check_rows(settings: Settings, own: Own) -> Judgement[Any]:
    """Judge a table whose rows should be normalized with the statistics of their groups (`--by`).

    Raises `UsageError` for options that do not fit, `DataError` for bad files, and under `--strict`
    `DegenerateError` for degenerate groups.
    """
    from normcli.checking.check import NORMALIZED
    from normcli.identifying.grouped_check import GroupedTable
    from normcli.library.judgement import judge_rows
    from normcli.norms.plan import make_plan

    paths = _find_paths(settings, own)
    refuse_beside_groups(settings)
    if list(paths) != [NORMALIZED]:
        raise UsageError(ONLY_ROWS)
    tensor = load_file(settings.source.inputs[0], settings)
    plan = make_plan(settings.request, tensor.values.shape, tensor.values.dtype, tensor.columns)
    affine = load_parameters(plan, settings)
    theirs = _load_actual(NORMALIZED, paths[NORMALIZED], plan, settings)
    nan = Choices(settings.request).pick_nan_rule(settings.selection.nan)
    with settings.run.open_effort() as effort:
        table = GroupedTable(tensor, theirs, affine, nan, _read_limits(own), effort)
        told = judge_rows(table, settings.request, plan)
    settings.run.warn_of_groups(plan.norm.name, list(map(str, told.warnings)))
    return told


def check_tensor(settings: Settings, own: Own) -> Judgement[Any]:
    """Judge a tensor and its statistics (`--actual`, `--actual-mean` and the like) by the exact ones.

    With `--accumulate`, the tolerance is what the roundings of the declared kernel add up to. Raises
    `UsageError` for options that do not fit, `DataError` for bad files, and under `--strict` `DegenerateError`.
    """
    from normcli.library.judgement import judge
    from normcli.testing.declared_algorithm import derive_bounds, describe_void, read_declared, tolerate_derived

    paths, tolerate, allowed = _find_paths(settings, own), _read_limits(own), None
    declared = read_declared(own["accumulate"], own["algorithm"], own["cast"], tolerate.keywords.values())
    if declared is not None and (settings.around.gate is not None or list(paths) != ["normalized"]):
        raise UsageError(OF_ONE_TENSOR)
    problem = load_problem(settings)
    actual = {name: _load_actual(name, path, problem.plan, settings) for name, path in paths.items()}
    with settings.run.open_effort() as effort:
        problem = problem._replace(effort=effort)
        if declared is not None:
            allowed, void = derive_bounds(declared, problem)
            if void.size:
                why = describe_void(declared, problem, void)
                raise UsageError(f"{why}; give --max-ulp, or --rtol and --atol")
            tolerate = functools.partial(tolerate_derived, declared.name)
        told = judge(problem, actual, tolerate, allowed)
    return warn(settings, problem, told)


OF_ONE_TENSOR = "--accumulate is of --actual alone, without --gate, on one machine"


def warn(settings: Settings, problem: Problem, told: Judgement[Any]) -> Judgement[Any]:
    """Write warnings of degenerate groups of the input, and return the judgement unchanged.

    Under `--strict`, raise `DegenerateError` if there are any.
    """
    settings.run.warn_of_groups(problem.plan.norm.name, advise(told.warnings, problem.inputs))
    return told


def _read_limits(own: Own) -> functools.partial[Tolerance]:
    """Return the function that chooses the tolerance for a dtype, by `--rtol`, `--atol` and `--max-ulp`."""
    from normcli.checking.ulp import choose_tolerance

    return functools.partial(choose_tolerance, **{name: own[name] for name in ("rtol", "atol", "max_ulp")})


def _find_paths(settings: Settings, own: Own) -> dict[str, str]:
    """Return the files to check, path by name: `normalized`, or the name of a statistic.

    Raises
    ------
    UsageError
        If there are none, or standard input is named twice among all files.
    """
    norm = find_norm(settings.request.norm)[0]
    names = {"normalized": "actual", **{name: f"actual_{name}" for name in norm.statistics}}
    paths = {name: path for name, option in names.items() if (path := own[option]) is not None}
    if not paths:
        raise UsageError(
            f"there is nothing to check: give --actual FILE, or --actual-{norm.statistics[-1]} FILE"
        )
    require_one_stream(settings, settings.source.residual, settings.around.gate, *paths.values())
    return paths


def _load_actual(name: str, path: str, plan: Plan, settings: Settings) -> Tensor:
    """Return the tensor or statistic in a file to check; `name` is `normalized` or the statistic's name.

    Raises
    ------
    DataError
        If the file cannot be read, or the shape is not the plan's.
    """
    from normcli.checking.check import NORMALIZED, fit_actual, require_shape

    option = "--actual" if name == NORMALIZED else f"--actual-{name}"
    with name_subject(option):
        tensor = load_actual(path, settings, plan.grid.columns)
    if name == NORMALIZED:
        tensor = tensor._replace(values=fit_actual(plan, tensor.values))
    with name_subject(f"{option} {path}"):
        require_shape(plan, name, tensor.values)
    return tensor
