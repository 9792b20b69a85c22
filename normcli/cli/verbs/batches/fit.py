"""`normcli fit NORM` and `normcli merge`: exact statistics over files, saved, printed, or written as code."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click import option

from normcli.cli.files.choose_destination import choose_values_file
from normcli.cli.files.conflicting_files import require_unread
from normcli.cli.files.destination import Destination, collect_fields, print_document
from normcli.cli.parameters import answer_options, options
from normcli.cli.parameters.types import parse_shard
from normcli.cli.verb_commands import CLUSTER, EVALUATION, OF_ONE_TENSOR, NamedNorm, Verb
from normcli.errors import DataError, UsageError
from normcli.language import keep_names
from normcli.norms.request import Choices
from normcli.printable import agree

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from normcli.cli.parameters.settings import Settings
    from normcli.fitting.statistics import Stats

_EMITTED = ("torchvision", "keras", "sklearn", "json")

_ANSWER = (
    answer_options.output("Keep the statistics: a stats file, .npz; with -q and no -f, no table is printed."),
    option("--emit", type=click.Choice(_EMITTED), help="Print them as code to paste."),
    answer_options.print_fields(),
    *answer_options.TABLE,
)


def _list_options(named: NamedNorm) -> Sequence[options.Option]:
    return [
        *options.declare_inputs("As FILE.", "FILE…"),
        option(
            "--files-from",
            metavar="FILE",
            help="Also what FILE lists, one file a line (or NUL between); - is stdin.",
        ),
        *options.TABLE_INPUT,
        *options.of_columns(named.norm),
        *options.of_norm(named, but="dtype"),
        options.NAN,
        option("--skip-bad", is_flag=True, help="Leave out bad files, list them at the end, exit 3."),
        *_ANSWER,
        option("--shard", metavar="I/N", type=parse_shard, help="Fit the I-th of N parts; merge joins all N."),
        answer_options.THREADS,
        *answer_options.CLUSTER,
        answer_options.QUIET,
    ]  # fmt: skip


def _fit(
    settings: Settings,
    files_from: str | None,
    emit: str | None,
    shard: tuple[int, int] | None,
    *,
    skip_bad: bool,
) -> None:
    """Fit a norm to files: exact statistics over all of them, mergeable.

    fit keeps statistics, to normalize other files with (normcli apply). normcli NORM normalizes one tensor with
    its own, and keeps none.

    With --by each value of a column of a table, or each combination of values of several, has a row of
    statistics; apply and invert know the columns. Numbers are compared as numbers (1 is 1.0, 007 is a code).

    The stats file keeps exact sums: files fitted apart and merged, in any order, give the same bits. Quantiles
    (robust) follow from no sums: fit all their files at once. normcli merge, apply and invert use it.

    FILE… are files, FILE:KEY, quoted patterns and folders; of an .npz all arrays are taken. They are joined
    along the batch axis: their other axes and dtypes must agree, and the columns of tables by their names.
    Where samples have statistics of their own there is nothing to fit; --axes and --keep choose others.

    \b
      normcli fit bn 'train/*.npy' -o stats.npz
      normcli fit zscore iris.csv --emit sklearn
      normcli fit zscore shops.csv --by shop -o stats.npz
      find data -name '*.npy' | normcli fit bn --files-from - --print mean
      normcli fit bn store.zarr:x --workers 4 -o stats.npz
      normcli fit bn store.zarr:x --shard 3/64 -o 3.npz
    """
    destination = _choose_output(settings)
    files = settings.source.inputs
    if shard is not None and settings.run.is_clustered:
        raise UsageError("--shard is for those who have no cluster; --scheduler and --workers fit all of it")
    if settings.table.by is not None:
        settings.refuse(
            "goes with no --by, which groups the rows of tables on this machine",
            *("--axes", "--keep", "--layout", *CLUSTER),
        )
    if not files and files_from is None:
        raise UsageError("fit needs files: FILE…, or --files-from FILE")
    from normcli.fitting.fit import Policy, fit, fit_shard
    from normcli.tensors.many import expand, name_tensors, read_list

    nan = Choices(settings.request).pick_nan_rule(settings.selection.nan)
    policy = Policy(nan, skips_bad=skip_bad)
    with settings.run.open_effort() as effort:
        listed = [] if files_from is None else read_list(files_from)
        paths = [*expand(files), *listed]
        require_unread("--output", settings.answer.output, paths)
        _tell_repeated(settings.run.warn, paths)
        if settings.run.is_clustered:
            from normcli.cli.verbs.calculating.on_cluster import locate_files

            paths = locate_files(paths)
        named = list(name_tensors(paths, settings.table))
        if settings.run.is_clustered:
            from normcli.cli.verbs.calculating.on_cluster import fit_on_cluster

            fitted = fit_on_cluster(settings, named, policy)
        elif shard is not None:
            fitted = fit_shard(settings.request, named, policy, effort, shard)
        else:
            fitted = fit(settings.request, named, policy, effort)
    settings.run.warn_of_files("fit", fitted.notes)
    _show(fitted.stats, settings, emit, destination)
    if fitted.bad:
        settings.run._replace(quiet=False).warn("left out", *fitted.bad)
        left_out = f"{len(fitted.bad):,} {agree(len(fitted.bad), 'file was', 'files were')} left out"
        raise DataError(f"{left_out}; the statistics are of the others")


def _tell_repeated(tell: Callable[[str, str], None], paths: Sequence[str]) -> None:
    for path, count in Counter(paths).items():
        if count > 1:
            tell(path, f"it is given {count} times, and counts as often")


def _tell_copies(tell: Callable[[str, str], None], paths: Sequence[str]) -> None:
    """Report each stats file with the same bytes as an earlier one, by calls `tell(path, note)`.

    Files that cannot be read are passed over.
    """
    first: dict[bytes, str] = {}
    for path in dict.fromkeys(paths):
        with contextlib.suppress(OSError):
            original = first.setdefault(Path(path).read_bytes(), path)
            if original != path:
                tell(path, f"it is a copy of {original}, and counts beside it")


def _merge(settings: Settings, emit: str | None, *, partial: bool) -> None:
    """Merge stats files, or print one.

    What comes out is the same, to the bit, as of one fit over all their files, in any order. Of a single stats
    file it prints what that holds. What fit --shard I/N has made is merged when all N are there, each once;
    what --partial has merged of them knows which it holds, and is merged further.

    \b
      normcli merge a.npz b.npz -o all.npz
      normcli merge stats.npz --emit torchvision
    """
    if not settings.source.inputs:
        raise UsageError("merge needs stats files: normcli merge a.npz b.npz -o all.npz")
    destination = _choose_output(settings)
    from normcli.fitting.statistics import merge_stats
    from normcli.fitting.stats_file import read_stats
    from normcli.tensors.many import expand

    files = expand(settings.source.inputs)
    _tell_repeated(settings.run.note, files)
    _tell_copies(settings.run.note, files)
    merged = read_stats(files[0])
    holders = {} if merged.shards is None else dict.fromkeys(merged.shards.held, files[0])
    for name in files[1:]:
        other = read_stats(name)
        if (other.subject.columns is None) != (merged.subject.columns is None):
            settings.run.note(
                name, f"its columns are taken to be those of {files[0]}: one of them has no names"
            )
        held = () if other.shards is None else other.shards.held
        holder = next((holders[number] for number in held if number in holders), files[0])
        merged = merge_stats(merged, other, holder, name)
        holders |= dict.fromkeys(held, name)
    if not partial and (len(files) > 1 or destination is not None):
        from normcli.fitting.shards import require_all

        require_all(merged.shards)
    _show(merged, settings, emit, destination)


def _choose_output(settings: Settings) -> Destination | None:
    """Return the destination of the stats file (`.npz`); None without `--output`.

    Raises
    ------
    UsageError
        If two of `--emit`, `--print` and `--format` are given, as each says what is printed; or if the file has
        another suffix or cannot be written.
    """
    asked = [name for name in ("--emit", "--print", "--format") if name in settings.given]
    if len(asked) > 1:
        raise UsageError(f"{' and '.join(asked)} each say what is printed; give one of them")
    return choose_values_file(settings.answer.output, suffixes=(".npz",))


def _show(stats: Stats, settings: Settings, emit: str | None, destination: Destination | None) -> None:
    """Write the stats file, unless `destination` is None, and print the statistics.

    They are printed as code for the framework `emit` if it is not None, as fields with `--print`, and else as a
    document, but for a `--quiet` run that writes a file and has no `--format`. Raises `UsageError`, before
    anything is written, if there is no such code or field.
    """
    from normcli.answers.batches.fitted_statistics import EMITTERS, StatisticsAnswer, answer_fit
    from normcli.fitting.statistics import round_stats, warn
    from normcli.fitting.stats_file import write_stats
    from normcli.writers.structured import write_fields

    keep_names(cell for label in (*stats.subject.labels, stats.subject.columns or ()) for cell in label if cell)
    rounded = round_stats(stats)
    answer, code = answer_fit(stats, rounded), None
    fields = collect_fields(answer, settings.answer.fields)
    if emit is not None:
        if not isinstance(answer, StatisticsAnswer):
            columns = " and ".join(stats.subject.by or ())
            raise UsageError(
                f"--emit {emit} has one row of statistics; these have one for each {columns}: fit "
                "without --by, or keep them by -o STATS.npz and use normcli apply"
            )
        code = EMITTERS[emit](answer)
    if destination is not None:
        write_stats(str(destination.path), stats, rounded.fields)
    settings.run.warn(rounded.plan.norm.name, *warn(stats))
    if code is not None:
        click.echo(code)
    elif fields:
        write_fields(fields, sys.stdout)
    elif destination is None or settings.answer.format_name or not settings.run.quiet:
        print_document(answer, settings.answer)


FIT = Verb(
    "fit",
    _fit,
    options=_list_options,
    examples=(
        "'train/*.npy' -o stats.npz",
        "a.npy b.npz:x more/ --emit json",
    ),
    refused={
        OF_ONE_TENSOR: "they are of one tensor, and these are many; --nan omit leaves out values that are NaN",
        EVALUATION: "statistics are measured here; normcli apply normalizes with them",
    },
)

MERGE = Verb(
    "merge",
    _merge,
    options=(
        *options.declare_inputs("As STATS.", "STATS…"),
        option("--partial", is_flag=True, help="Merge the shards that there are, though not all N."),
        *_ANSWER,
        answer_options.QUIET,
    ),
)
