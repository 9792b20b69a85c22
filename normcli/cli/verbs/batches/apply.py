"""`normcli apply` and `normcli invert`: files normalized with fitted statistics, and the inverse."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click import option

from normcli.cli.files.choose_destination import choose_files_for
from normcli.cli.files.destination import Destination, WholeFiles, describe_written
from normcli.cli.files.sources import load_affine
from normcli.cli.parameters import answer_options, options
from normcli.cli.verb_commands import Verb
from normcli.errors import UsageError, name_subject
from normcli.printable import agree, format_count
from normcli.tensors.tensor import STANDARD_STREAM

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from normcli.cli.parameters.settings import Settings
    from normcli.engine.invert import Loss
    from normcli.engine.walk import Effort
    from normcli.fitting.use import Use
    from normcli.tensors.many import Named


_OPTIONS: tuple[options.Option, ...] = (
    click.argument("stats", required=False, metavar="STATS"),
    *options.declare_inputs("As FILE.", "FILE…"),
    answer_options.output("Of the result; of several files, a folder; - is standard output.", "FILE|DIR/"),
    answer_options.OVERWRITE,
    answer_options.TENSOR_FORMAT,
    *options.TABLE_INPUT,
    option("--partial", is_flag=True, help="Use statistics of some shards, though not all N."),
    option("--eps", type=float, help="Instead of that of the statistics."),
    *options.declare_affine(),
    options.RANGE,
    options.DTYPE,
    answer_options.THREADS,
    *answer_options.CLUSTER,
    answer_options.QUIET,
)


def _apply(settings: Settings, stats: str | None, *, partial: bool) -> None:
    """Normalize files with fitted statistics.

    STATS is what normcli fit has kept. The files may have other lengths along the axes that were reduced.
    Where a group was constant and there is no eps, it is only centred, as scikit-learn does. Of a table the
    columns of the statistics are normalized, whatever stands beside them; --columns chooses some of these. Of
    statistics that were fitted --by a column each row is normalized by those of its own group; a row of a group
    that was not fitted is an error, and nothing is written.

    \b
      normcli apply stats.npz x.npy -o y.npy
      normcli apply stats.npz 'test/*.npy' -o normalized/
    """
    _use_statistics(settings, stats, partial=partial, inverts=False)


def _invert(settings: Settings, stats: str | None, *, partial: bool, of: str | None) -> None:
    """Undo what apply did.

    x = (y - beta) / gamma * divisor + mean. Each result is the exact one of its y, rounded once. What y lost
    when it was itself rounded stays lost: up to 0.5 ulp(y) * divisor. Values where that may be more than half a
    ulp of x are counted on standard error; all others come back to 1 ulp.

    With --of STATS is a norm and its options, and each group is brought back by the statistics that the same
    group of --of has itself: forecasts to the scale of their input, as RevIN does.

    \b
      normcli invert stats.npz y.npy -o x.npy
      normcli invert stats.npz 'normalized/*.npy' -o restored/ --dtype float64
      normcli invert stats.npz predictions.csv --columns price -o prices.csv
      normcli invert in:like=revin forecast.npy --of input.npy -o restored.npy
    """
    if of is not None:
        _restore_by(settings, stats, of)
        return
    _use_statistics(settings, stats, partial=partial, inverts=True)


def _describe_loss(loss: Loss, size: int) -> Iterator[str]:
    """Yield warnings on the errors of inverted values that the rounding of y has caused.

    `size` is the number of values. Nothing is yielded if all values are within 1 ulp, and none overflows.
    """
    if loss.count:
        yield (
            f"{loss.count:,} of {format_count(size, 'value')} may be more than 1 ulp from what they were: "
            f"rounding y changed none by more than {loss.bound:.2g}"
        )
    if loss.overflows:
        values = agree(loss.overflows, "value overflows", "values overflow")
        yield f"{loss.overflows:,} {values} the dtype; --dtype chooses a wider one"


def _use_statistics(settings: Settings, stats: str | None, *, partial: bool, inverts: bool) -> None:
    """Normalize each input with the statistics of a stats file, and write the results.

    With `inverts`, the inputs are normalized values, which are restored. `partial` allows statistics of some
    shards only. Raises `UsageError` for options that do not fit, and `DataError` for bad files; with several
    inputs, all are checked before any is written.
    """
    files = settings.source.inputs
    if stats is None or not files:
        raise UsageError("give a stats file and the files to use it on: stats.npz FILE… -o OUT")
    if settings.answer.output is None:
        raise UsageError("say where it goes: -o FILE, -o DIR/ for several files, -o - for standard output")
    from normcli.fitting.by_column import find_groups
    from normcli.fitting.shards import require_all
    from normcli.fitting.statistics import warn_of_nan
    from normcli.fitting.stats_file import read_stats
    from normcli.fitting.use import Use
    from normcli.tensors.many import expand, name_tensors
    from normcli.tensors.tables.column_choice import join_names, split_names

    answer = settings.answer
    if answer.output != STANDARD_STREAM and answer.format_name is not None:
        raise UsageError("--format is of standard output: -o -; a file's name says its format")
    _refuse_exchanged(stats, files)
    paths = expand(files)
    if settings.run.is_clustered:
        from normcli.cli.verbs.calculating.on_cluster import locate_files

        paths = locate_files(paths)
    destinations = choose_files_for([one.name for one in name_tensors(paths)], answer)
    kept = read_stats(stats)
    if kept.subject.by is not None and settings.run.is_clustered:
        raise UsageError(f"{stats} groups rows of tables, on this machine: leave out --scheduler and --workers")
    by = None if kept.subject.by is None else join_names(kept.subject.by)
    table = settings.table._replace(takes_wanted=True, by=by)
    named = list(name_tensors(paths, table))
    if settings.table.columns is not None:
        kept = kept.take_columns(tuple(dict.fromkeys(split_names(settings.table.columns, "--columns"))))
    request = settings.request
    if request.range is not None and not kept.subject.plan(1).norm.spans_range:
        raise UsageError(f"--range is of minima and maxima; {stats} holds others")
    if not partial:
        with name_subject(stats):
            require_all(kept.shards, "use")
    settings.run.warn(stats, *warn_of_nan(kept))
    loaded = load_affine(settings.parameters, kept.subject.columns)
    use = Use(kept, **loaded, eps=request.eps, dtype=request.dtype, range=request.range)
    pairs = list(zip(named, destinations, strict=True))
    if settings.run.is_clustered:
        from normcli.cli.verbs.calculating.on_cluster import use_on_cluster

        use_on_cluster(settings, use, pairs, use_one, inverts=inverts)
        return
    for one in named if len(named) > 1 else ():  # before any is written
        tensor = one.load(use.wanted)
        use.plan(one.name, tensor.values)
        if tensor.by is not None:
            find_groups(tensor, kept.subject)
    notes: list[tuple[str, str]] = []
    with settings.run.open_effort() as effort:
        for one, destination in pairs:
            messages = use_one(one, destination, use, effort, inverts=inverts)
            notes += [(one.name, message) for message in messages]
    settings.run.warn_of_files("invert" if inverts else "apply", notes)


def _restore_by(settings: Settings, text: str | None, of: str) -> None:
    """Undo a normalization by the statistics of another tensor, and write the result to `--output`.

    `text` is the norm with its options (`in:like=revin`), `of` the file of the other tensor. Raises
    `UsageError` for options that do not fit, and `DataError` for bad files.
    """
    from normcli.cli.files.sources import load_file
    from normcli.library.restoring import restore_by
    from normcli.norms.request import Request, parse_norm_spec
    from normcli.tensors.formats.file_formats import Saved

    files, answer, given = settings.source.inputs, settings.answer, settings.request
    if text is None or len(files) != 1 or answer.output is None:
        raise UsageError("--of undoes a norm: normcli invert in:like=revin y.npy --of x.npy -o OUT")
    if settings.run.is_clustered or given.range is not None:
        raise UsageError("--of is of one machine, and without --range")
    spec = parse_norm_spec(text)
    own = {
        **spec.own,
        **{name: value for name in ("eps", "dtype") if (value := getattr(given, name)) is not None},
    }
    tensor, other = (load_file(name, settings) for name in (files[0], of))
    request, affine = Request.collect(spec.name, own), load_affine(settings.parameters, tensor.columns)
    (destination,) = choose_files_for([files[0]], answer)
    with WholeFiles() as whole, settings.run.open_effort() as effort:
        result, loss = restore_by(request, tensor.values, other.arrange(tensor.columns), affine, effort)
        destination.write_tensor(whole, Saved.like(tensor, result))
    settings.run.warn(files[0], *_describe_loss(loss, result.size))


def _refuse_exchanged(stats: str, files: Sequence[str]) -> None:
    """Raise `UsageError` if the first argument is no stats file, but one of the other files is."""
    from normcli.fitting.stats_file import is_stats_file

    found = next(filter(is_stats_file, files), None)
    if found is not None and not is_stats_file(stats):
        raise UsageError(f"{stats} is no stats file, and {found} is one: it comes first")


def use_one(one: Named, destination: Destination, use: Use, effort: Effort, *, inverts: bool) -> list[str]:
    """Normalize one file with fitted statistics, write the result, and return notes for the user.

    Parameters
    ----------
    one : Named
        The input.
    destination : Destination
    use : Use
        The statistics, with gamma, beta and options.
    effort : Effort
    inverts : bool
        Whether the file has normalized values, which are restored.

    Raises
    ------
    DataError
        If the file cannot be read or does not fit the statistics, or the result cannot be written.
    """
    from normcli.fitting.subject import require_order
    from normcli.fitting.use import use_stats
    from normcli.tensors.formats.file_formats import Saved

    tensor = one.load(use.wanted)
    values = tensor.values
    require_order(use.stats.subject, tensor.dimensions, one.name)
    dtype = use.plan(one.name, values).choose_output_dtype(values.dtype)
    with WholeFiles() as files:
        out = destination.start_tensor(files, tensor, dtype)
        with name_subject(one.name):
            result, loss = use_stats(use, tensor, out, effort, inverts=inverts)
        if out is None:
            destination.write_tensor(files, Saved.like(tensor, result))
    notes = [*tensor.remarks, *describe_written(destination, tensor)]
    if tensor.columns is not None and use.stats.subject.columns is None:
        notes.append("the statistics name no columns: those of this file are taken in its order")
    return [*notes, *_describe_loss(loss, values.size)]


APPLY = Verb("apply", _apply, options=_OPTIONS)

_OF = option("--of", metavar="FILE", help="Undo a norm by the statistics of this tensor's own groups.")

INVERT = Verb("invert", _invert, options=(*_OPTIONS, _OF))
