"""The options of a command line as typed records, made once, before a verb runs."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from normcli.errors import DegenerateError, UsageError
from normcli.language import translate
from normcli.norms.options import NAMES
from normcli.norms.request import Request
from normcli.printable import format_count, make_printable
from normcli.tensors.held_files import Stores
from normcli.tensors.tables.table_options import TableOptions
from normcli.tensors.tensor import find_place
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import TextIO

    from normcli.cli.progress import Watcher
    from normcli.documents.document import View
    from normcli.engine.walk import Effort


_MOST_NOTES = 3
"""The most notes on files that are written out; a further line gives the number of the others."""

NOTES = "normcli.notes"
"""The key of `Context.meta` that holds the callables that write notes after the command has succeeded."""


class SourceOptions(NamedTuple):
    """The options for the source of the input; a field is None if its option is not given."""

    inputs: tuple[str, ...] = ()
    data: str | None = None
    residual: str | None = None
    residual_sum: str | None = None
    shape: tuple[int, ...] | None = None
    dist: str | None = None
    low: float | None = None
    high: float | None = None
    seed: int | None = None
    rng: str | None = None
    skip: int | None = None
    dtype: str | None = None


class SurroundingOptions(NamedTuple):
    """The options for bounds before and after the norm and for a gate; see `normcli.results.surroundings`."""

    clip: str | None = None
    gate: str | None = None
    gate_act: str | None = None
    gate_order: str | None = None
    clip_output: str | None = None


class QuantizingOptions(NamedTuple):
    """The options for quantizing: the format, the groups that share a scale, and how scales are rounded."""

    quantize: str | None = None
    per: str | None = None
    scale_rounding: str | None = None


class ParameterOptions(NamedTuple):
    """The options for gamma and beta: texts of values, or the seed that both are drawn with."""

    gamma: str | None = None
    beta: str | None = None
    affine_seed: int | None = None


class RunningOptions(NamedTuple):
    """The options for running statistics: to start from or to evaluate with, and the file that keeps them."""

    evaluation: bool = False
    running_mean: str | None = None
    running_var: str | None = None
    state: str | None = None


class TrainingOptions(NamedTuple):
    """The options for updating running statistics, and for waiting for their file."""

    momentum: float | str | None = None
    momentum_of: str | None = None
    running_ddof: int | None = None
    lock_timeout: float | None = None


class SelectionOptions(NamedTuple):
    """The options that say which values count, and what becomes of the others."""

    mask: str | None = None
    lengths: tuple[int, ...] | None = None
    nan: str | None = None
    fill: str | None = None


class AnswerOptions(NamedTuple):
    """The options for an answer's destination and look."""

    output: str | None = None
    overwrite: bool = False
    stats_output: str | None = None
    format_name: str | None = None
    fields: tuple[str, ...] = ()
    show: tuple[str, ...] | None = None
    digits: int | None = None
    full: bool = False
    colour: str = "auto"

    def view(self) -> View:
        """Return the `View` for standard output: a terminal's width, or None; colours by `--color`."""
        from normcli.documents.document import View

        terminal, width = sys.stdout.isatty(), None
        if terminal:
            import shutil  # which imports what archives need: not for those who read from a pipe

            width = shutil.get_terminal_size().columns
        plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
        return View(
            show=self.show,
            digits=self.digits,
            full=self.full,
            width=width,
            colour=self.colour == "always" or (self.colour == "auto" and terminal and not plain),
        )


class RunOptions(NamedTuple):
    """The options of a run: threads, notes, progress, errors."""

    threads: int | None = None
    quiet: bool = False
    strict: bool = False
    scheduler: str | None = None
    workers: int | None = None

    @property
    def is_clustered(self) -> bool:
        """Whether workers of a dask cluster do the work."""
        return self.scheduler is not None or self.workers is not None

    @contextlib.contextmanager
    def open_effort(self, *, shows_bytes: bool = True) -> Iterator[Effort]:
        """Open, as a context manager, an `Effort` with the threads to use and an observer of progress.

        `shows_bytes` is False for work on no file, of which only the percentage is shown.
        """
        from normcli.engine.walk import Effort

        with self.show_progress(shows_bytes=shows_bytes) as observer:
            yield Effort(self.threads, observer)

    @contextlib.contextmanager
    def show_progress(
        self, *, beside: TextIO | None = None, shows_bytes: bool = True
    ) -> Iterator[Watcher | None]:
        """Show progress on standard error until the block of this context manager ends; it yields the watcher.

        Nothing is shown, and None is yielded, under `--quiet`, or if `beside`, the stream that the block writes
        to, is a terminal.
        """
        from normcli.cli.progress import watch_progress
        from normcli.tensors.pieces import Watch

        if self.quiet or (beside is not None and beside.isatty()):
            yield None
            return

        def say(message: str) -> None:
            self.warn("progress", message)

        with watch_progress(say, shows_bytes=shows_bytes) as Watch.observer:
            try:
                yield Watch.observer
            finally:
                Watch.observer = None

    def warn(self, subject: str, *messages: str) -> None:
        """Write messages about a norm or a file to standard error, a line each; nothing under `--quiet`."""
        if not self.quiet:
            for message in messages:
                click.echo(make_printable(f"normcli: {subject}: {translate(message)}"), err=True)

    def warn_of_files(self, verb: str, notes: Sequence[tuple[str, str]]) -> None:
        """Write the first three (file, note) pairs as warnings, and a line with the number of the others."""
        for name, note in notes[:_MOST_NOTES]:
            self.warn(name, note)
        hidden = len(notes) - _MOST_NOTES
        if hidden > 0:
            self.warn(verb, f"{format_count(hidden, 'more such note')}, each of a file")

    def note(self, subject: str, message: str) -> None:
        """Have `warn` write a message once the command has succeeded; after an error it is not written."""
        context = click.get_current_context()
        context.meta.setdefault(NOTES, []).append(lambda: self.warn(subject, message))

    def warn_of_groups(self, norm: str, warnings: Sequence[str]) -> None:
        """Write warnings of degenerate groups; under `--strict`, raise `DegenerateError` if there are any."""
        if self.strict and warnings:
            raise DegenerateError(f"{norm}: {'; '.join(warnings)}")
        self.warn(norm, *warnings)


class Settings(NamedTuple):
    """The options that several verbs have, a record for each kind.

    Parameters
    ----------
    request : Request
        The norm by the name that the caller used, and its options; the name is "" for verbs that take no norm.
    source : SourceOptions
    table : TableOptions
    around : SurroundingOptions
    quantizing : QuantizingOptions
    parameters : ParameterOptions
    running : RunningOptions
    training : TrainingOptions
    selection : SelectionOptions
    answer : AnswerOptions
    run : RunOptions
    given : frozenset of str
        The options that the command line gives, by their long names: `--axes`.
    """

    request: Request
    source: SourceOptions
    table: TableOptions
    around: SurroundingOptions
    quantizing: QuantizingOptions
    parameters: ParameterOptions
    running: RunningOptions
    training: TrainingOptions
    selection: SelectionOptions
    answer: AnswerOptions
    run: RunOptions
    given: frozenset[str] = frozenset()

    def refuse(self, reason: str, *names: str) -> None:
        """Raise `UsageError`, with the option's name and the reason, if one of the named options is given."""
        for name in names:
            if name in self.given:
                raise UsageError(f"{name} {reason}")

    def want(self, columns: tuple[str, ...] | None) -> Settings:
        """Return settings in which the input table's columns are to come in this order; None for any order."""
        return self._replace(table=self.table._replace(wanted=columns))


_KINDS = (
    SourceOptions, TableOptions, SurroundingOptions, QuantizingOptions, ParameterOptions, RunningOptions,
    TrainingOptions, SelectionOptions, AnswerOptions, RunOptions,
)  # fmt: skip
"""The records of `Settings` behind the request, in their order."""


def _require_store(values: Mapping[str, Any]) -> None:
    """Raise `UsageError` if an option of stores is given, and no other value names a store."""
    words = [word for name, word in _RULES.items() if getattr(Stores.rules, name)]
    read = [value for name, value in values.items() if name not in ("output", "stats_output")]
    texts = [text for value in read for text in (value if isinstance(value, tuple) else (value,))]
    found = any(isinstance(text, str) and (find_place(text) or {*text} & {"*", "?"}) for text in texts)
    if words and not found and values.get("files_from") is None:
        raise UsageError(f"{words[0]} is of Zarr stores and HDF5 files; none is read")


_RULES = {"follows_links": "--follow-links", "fills_missing": "--fill-missing"}
"""The option that sets each field of `StoreRules`."""


def parse_settings(
    norm: str, values: Mapping[str, Any], params: Sequence[click.Parameter]
) -> tuple[Settings, dict[str, Any]]:
    """Return click's values as `Settings`, and the values of the verb's own options by name.

    A field of a record keeps its default where its option is not given, or the verb has none.

    Parameters
    ----------
    norm : str
        The norm's name; "" for a verb that takes none.
    values : mapping of str to value
        The values of all parameters, as click parsed them.
    params : sequence of click.Parameter
        The command's parameters, whose defaults tell which options were given.

    Raises
    ------
    UsageError
        If an option of stores is given and no store is read.
    """
    _require_store(values)
    values = {**values, "inputs": (*values.get("files", ()), *values.get("inputs", ()))}
    records: list[Any] = [
        kind(**{name: values[name] for name in kind._fields if values.get(name) is not None}) for kind in _KINDS
    ]
    shared = {*NAMES, "files", *(name for kind in _KINDS for name in kind._fields)}
    own = {name: value for name, value in values.items() if name not in shared}
    open_values = (None, False, ())
    given = frozenset(
        next((name for name in param.opts if name.startswith("--")), "")
        for param in params
        if not any(values.get(str(param.name)) is value for value in (*open_values, param.default))
    )
    return Settings(Request.collect(norm, values), *[*records, given]), own
