"""What `normcli apply` and `normcli invert` share: a stats file, tensors, and where the results go."""

from __future__ import annotations

import contextlib
import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from normcli.cli import options
from normcli.cli.progress import show_progress
from normcli.cli.sources import load_parameter
from normcli.errors import NormError, UsageError
from normcli.tensors.tensor import STANDARD_STREAM

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from normcli.engine.walk import Effort
    from normcli.fitting.use import Use
    from normcli.norms.plan import Plan

    Work = Callable[[str, Use, Plan, NDArray[Any], NDArray[Any] | None, Effort], NDArray[Any]]

OPTIONS = (
    options.make(
        "-o",
        "--output",
        metavar="FILE|DIR/",
        help="Of the result; of several files, a folder; - is .npy on stdout.",
    ),
    options.make("--eps", type=float, help="Instead of that of the statistics."),
    options.GAMMA,
    options.BETA,
    options.DTYPE,
    options.THREADS,
    options.QUIET,
)


def use_statistics(stats_path: str | None, files: Sequence[str], settings: dict[str, Any], work: Work) -> None:
    """Do some work on each file with a stats file, and write what comes of it."""
    if stats_path is None or not files:
        raise UsageError("give a stats file and the files to use it on: stats.npz FILE… -o OUT")
    if settings["output"] is None:
        raise UsageError("say where the result goes: -o FILE, or -o DIR/ for several files")
    from normcli.engine.walk import Effort
    from normcli.fitting.stats_file import read_stats
    from normcli.fitting.use import Use
    from normcli.tensors.many import expand, name_tensors

    named = list(name_tensors(expand(files)))
    targets = _choose_targets([one.name for one in named], settings["output"])
    parameters = {
        name: None if settings[name] is None else load_parameter(name, settings[name])
        for name in ("gamma", "beta")
    }
    use = Use(read_stats(stats_path), **parameters, eps=settings["eps"], dtype=settings["dtype"])
    with show_progress(quiet=settings["quiet"]) as observer:
        for one, target in zip(named, targets, strict=True):
            _use_one(one.name, one.load().values, use, target, Effort(settings["threads"], observer), work)


def _use_one(name: str, values: NDArray[Any], use: Use, target: str, effort: Effort, work: Work) -> None:
    from normcli.cli.large import open_large_output
    from normcli.cli.saving import require_holdable_answer
    from normcli.tensors.files import Saved, save

    plan = use.plan(name, values)
    require_holdable_answer(target, plan, values)
    with contextlib.ExitStack() as files:
        out = open_large_output(files, target, plan, values)
        try:
            result = work(name, use, plan, values, out, effort)
        except NormError as error:
            raise type(error)(str(error) if name in str(error) else f"{name}: {error}") from error
    if out is None:
        axes = [plan.grid.layout.name(axis) for axis in range(len(plan.grid.shape))]
        save(target, Saved(result, "normalized", axis_names=axes))


def _choose_targets(names: Sequence[str], output: str) -> list[str]:
    """Return the file that each result goes to, checked before any work."""
    from normcli.tensors.files import require_saveable

    folder = output.endswith(os.sep) or os.path.isdir(output)  # noqa: PTH112
    if not folder:
        if len(names) > 1:
            raise UsageError(f"--output {output}: {len(names)} results need a folder: -o {output}{os.sep}")
        if output != STANDARD_STREAM:
            require_saveable(output, "--output")
        return [output]
    targets = [str(Path(output, _name_result(name))) for name in names]
    ordered = sorted(targets)
    for one, next_one in itertools.pairwise(ordered):
        if one == next_one:
            raise UsageError(f"two of the files would both be written to {one}")
    try:
        Path(output).mkdir(exist_ok=True)
    except OSError as error:
        raise UsageError(f"--output {output}: the folder cannot be made: {error.strerror}") from error
    for target in targets:
        require_saveable(target, "--output")
    return targets


def _name_result(name: str) -> str:
    """Return the name of what is made of a file: its own, with the key before the suffix if there is one."""
    if os.path.exists(name) or ":" not in os.path.basename(name):  # noqa: PTH110, PTH119
        return Path(name).name
    path, key = name.rsplit(":", 1)
    return f"{Path(path).stem}-{key}.npy"


def tell(name: str, message: str, settings: dict[str, Any]) -> None:
    """Say something of a file on standard error, unless quiet is asked for."""
    if not settings["quiet"]:
        click.echo(f"normcli: {name}: {message}", err=True)
