"""Statistics over many files: each is read once, and its sums are added exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from normcli.engine.inputs import Selection
from normcli.engine.order import RankedValues, find_quantiles
from normcli.engine.walk import Effort, count_processors
from normcli.errors import DataError, UsageError
from normcli.fitting.by_column import find_groups, gather_by_column, number_groups_of
from normcli.fitting.gather import gather
from normcli.fitting.shards import Shards, digest_inputs, take_shard
from normcli.fitting.statistics import Stats
from normcli.fitting.subject import choose_subject, require_alike, require_order
from normcli.fitting.sums import require_no_nan
from normcli.fitting.workers import can_fork, run_in_processes
from normcli.norms.divisors import Measurement
from normcli.tensors.held_files import refuse_changed
from normcli.tensors.many import Named
from normcli.tensors.mapped import fetch
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from normcli.fitting.by_column import RowGroups
    from normcli.fitting.subject import Subject
    from normcli.norms.request import Request
    from normcli.numerics.statistics.order_statistics import Quantiles
    from normcli.tensors.held_files import Opened, StoreVersion
    from normcli.tensors.tensor import Tensor


class Surveyed(NamedTuple):
    """The statistics of one tensor, and what was seen when it was read.

    Parameters
    ----------
    stats : Stats
    note : str or None
        A note for the user on how the tensor was read; None without one.
    columns : tuple of str or None
        The names of the tensor's columns, None without names.
    kind : str
        NumPy's kind of its dtype, such as `f` or `i`.
    opened : Opened, StoreVersion or None
        The state of its file when it was opened; None without a file.
    """

    stats: Stats
    note: str | None
    columns: tuple[str, ...] | None
    kind: str
    opened: Opened | StoreVersion | None


MUCH = 1 << 26
"""The least size in bytes of all tensors together for which several processes are started."""


class Policy(NamedTuple):
    """The treatment of NaN, and of files that cannot be read or do not fit.

    Parameters
    ----------
    nan : {"propagate", "omit", "raise"}
        `propagate`: a NaN makes the statistics of its group NaN. `omit`: it is left out. `raise`: its file
        counts as one that does not fit.
    skips_bad : bool
        True: files that cannot be read or do not fit are left out. False: the first such file is an error.
    """

    nan: str = "propagate"
    skips_bad: bool = False


class Fitted(NamedTuple):
    """The statistics, a message for each file that was left out (`bad`), and notes: pairs (file name, note)."""

    stats: Stats
    bad: tuple[str, ...]
    notes: tuple[tuple[str, str], ...]


def fit(
    request: Request,
    sources: Iterable[Named],
    policy: Policy,
    effort: Effort,
    survey_all: SurveyAll | None = None,
) -> Fitted:
    """Return the statistics over tensors as if they were one, joined along the batch axis.

    Parameters
    ----------
    request : Request
    sources : iterable of Named
        The tensors. Each process has one in memory at a time; the first stays to the end.
    policy : Policy
    effort : Effort
    survey_all : callable, optional
        Measures the tensors: takes a `Survey` and the sources, and yields the result of `Survey.survey` for
        each, in order. By default this is done on this machine, on Linux by several processes.

    Raises
    ------
    UsageError
        If the request does not fit the first tensor, or `fit` has no statistics for the norm, such as where
        each sample has statistics of its own.
    DataError
        If a tensor cannot be read, does not fit the first or holds a NaN that is refused, and `policy` does not
        leave it out; if no tensor is left; if files name their columns differently.
    """
    waiting, bad = list(sources), list[str]()
    notes: list[tuple[str, str]] = []
    named: tuple[str, tuple[str, ...]] | None = None
    survey: Survey | None = None
    stats: Stats | None = None
    good: list[tuple[Named, Opened | StoreVersion | None]] = []
    kinds: set[str] = set()

    def leave_out(problem: str) -> None:
        if not policy.skips_bad:
            raise DataError(problem)
        bad.append(problem)

    while waiting and survey is None:
        try:
            tensor = _load(waiting[0], None)
            survey = Survey(choose_subject(request, tensor), waiting[0].name, tensor.columns, policy)
        except (DataError, MemoryError) as error:
            leave_out(_format_problem(waiting.pop(0), error))
    outcomes: Iterable[Surveyed | str] = ()
    if survey is not None and survey_all is not None:
        outcomes = survey_all(survey, waiting)
    elif survey is not None:
        waiting[0] = Named(survey.first, lambda _: tensor)  # standard input cannot be read again
        outcomes = _survey_all(survey, waiting, tensor.values.nbytes, effort)
    for source, outcome in zip(waiting, outcomes, strict=True):
        if isinstance(outcome, str):
            leave_out(outcome)
        else:
            found, note, columns, kind, opened = outcome
            kinds.add(kind)
            if named is not None and columns is not None and columns != named[1]:
                raise DataError(
                    f"{source.name} names its columns otherwise than {named[0]}, and the first file does not: "
                    "give a file with names first"
                )
            if columns is not None:
                named = source.name, columns
            stats = found if stats is None else stats.add(found)
            if note is not None:
                notes.append((source.name, note))
            good.append((source, opened))
    if survey is None or stats is None:
        raise DataError("no file is left to fit" + (f": {bad[0]}" if bad else ""))
    if named is not None and stats.subject.columns is None and stats.subject.has_columns():
        stats = stats._replace(subject=stats.subject._replace(columns=named[1]))
    if stats.subject.plan(1).norm.divisor.measurement is Measurement.QUANTILES:
        if len(kinds) > 1:  # text files: some hold whole numbers beyond 2⁵³, others do not
            notes.append(("the quantiles", "whole numbers beyond 2^53 beside others are rounded to float64"))
        found_in_all = _search_quantiles(stats, good, survey.columns, effort, widens=len(kinds) > 1)
        stats = stats._replace(quantiles=found_in_all)
    return Fitted(stats, tuple(bad), tuple(notes))


def fit_tensor(request: Request, tensor: Tensor, nan: str, effort: Effort) -> Stats:
    """Return the statistics over one tensor; `nan` is the policy for NaN. The errors are those of `fit`."""
    return fit(request, [Named(tensor.source, lambda _: tensor)], Policy(nan), effort).stats


def fit_shard(
    request: Request, sources: Sequence[Named], policy: Policy, effort: Effort, shard: tuple[int, int]
) -> Fitted:
    """Return the statistics over one shard of tensors, to be merged with those of the other shards.

    `shard` has its number, from 1, and the number of all. The errors are those of `fit` and `take_shard`.
    """
    number, count = shard
    held = Shards(count, (number,), digest_inputs(sources))
    fitted = fit(request, take_shard(sources, request, number, count), policy, effort)
    stats = fitted.stats._replace(shards=held if count > 1 else None)
    if number > 1 and len(sources) == 1:  # the first shard counts the file
        stats = stats._replace(files=0)
    return fitted._replace(stats=stats)


def _format_problem(source: Named, error: BaseException) -> str:
    """Return an error's message, with the name of the tensor put before it unless it is in there."""
    problem = str(error) or "it does not fit into memory"
    return problem if source.name in problem else f"{source.name}: {problem}"


def _search_quantiles(
    stats: Stats,
    sources: Sequence[tuple[Named, Opened | StoreVersion | None]],
    columns: tuple[str, ...] | None,
    effort: Effort,
    *,
    widens: bool,
) -> Quantiles:
    """Return the quantiles of each group over all tensors together.

    All tensors are read again: twice for float32, four times for float64, more often for many groups. Each
    reading makes some further bits of the quantiles known.

    Parameters
    ----------
    stats : Stats
        The statistics fitted so far.
    sources : sequence
        Pairs of a tensor's source and the version of its file when it was first read (None without a file).
    columns : tuple of str or None
        The columns of the first tensor, in whose order those of all are put.
    effort : Effort
    widens : bool
        Whether all values are converted to float64.

    Raises
    ------
    DataError
        If a file has changed since it was first read, or cannot be read.
    """
    subject = stats.subject
    batch = subject.plan(1).grid.layout.batch or 0

    grouped: dict[str, RowGroups] = {}  # the cells of each source are read once

    def load_all() -> Iterator[RankedValues]:
        for source, opened in sources:
            tensor = _load(source, columns)
            if widens:
                tensor = tensor._replace(values=tensor.values.astype("float64", copy=False))
            if tensor.opened != opened:
                refuse_changed(source.name)
            if subject.by is None:
                yield RankedValues(subject.plan(tensor.values.shape[batch]), tensor.values)
                continue
            groups = grouped[source.name] = grouped.get(source.name) or find_groups(tensor, subject)
            for rows, places in groups.iterate_rows(tensor.values):
                numbers = number_groups_of(places, subject.shape[-1])
                yield RankedValues(subject.plan(len(places)), fetch(tensor.values[rows]), numbers)

    return find_quantiles(load_all, effort, Selection(omits_nan=True) if stats.omits_nan else None)


class Survey(NamedTuple):
    """The rules by which each tensor of a fit is measured; it can be pickled and sent to other processes.

    Parameters
    ----------
    subject : Subject
        The norm, shape and dtype that all tensors must have, from the first one.
    first : str
        The name of the first tensor, for messages.
    columns : tuple of str or None
        The names of the first tensor's columns, in whose order other tensors' columns are put.
    policy : Policy
    """

    subject: Subject
    first: str
    columns: tuple[str, ...] | None
    policy: Policy

    def survey(self, source: Named, effort: Effort) -> Surveyed | str:
        """Return the statistics of a source's tensor, or a message if it cannot be read or does not fit."""
        try:
            return self._survey(source.name, _load(source, self.columns), effort)
        except (DataError, MemoryError) as error:
            return _format_problem(source, error)

    def _survey(self, name: str, tensor: Tensor, effort: Effort) -> Surveyed:
        """Return a tensor's statistics; raise `DataError` if it does not fit or has a NaN that is refused."""
        subject = self.subject
        values, note = tensor.values, "; ".join(tensor.remarks) or None
        if tensor.columns is not None and subject.columns is None and subject.has_columns():
            note = "the first file names no columns: those of this one are taken in its order"
        require_alike(subject, values.shape, tensor.dtype, name, self.first)
        require_order(subject, tensor.dimensions, name)
        samples = values.shape[subject.plan(1).grid.layout.batch or 0]
        if tensor.by is None:
            sums = gather(subject.plan(samples), values, effort)
        else:
            subject, sums = gather_by_column(subject, tensor, effort)
        if self.policy.nan == "raise":
            require_no_nan(sums, name)
        stats = Stats(subject, self.policy.nan == "omit", 1, samples, sums)
        return Surveyed(stats, note, tensor.columns, values.dtype.kind, tensor.opened)


SurveyAll: TypeAlias = "Callable[[Survey, Sequence[Named]], Iterable[Surveyed | str]]"


def _survey_all(
    survey: Survey, sources: Sequence[Named], size: int, effort: Effort
) -> Iterator[Surveyed | str]:
    """Yield for each source, in order, the statistics of its tensor, or a message if that cannot be fitted.

    On Linux, several processes do so if all tensors together have 64 MiB or more, estimated as `size`, the
    bytes of the first, times their number.
    """
    workers = min(effort.threads or count_processors(), len(sources))
    if workers < 2 or size * len(sources) < MUCH or not can_fork():
        yield from (survey.survey(source, effort) for source in sources)
        return
    observer, alone = effort.observer, Effort(threads=1)
    if observer is not None:
        observer.expect(size * len(sources))
    for outcome in run_in_processes(lambda n: survey.survey(sources[n], alone), range(len(sources)), workers):
        if observer is not None:
            observer.advance(size)
        yield outcome


def _load(source: Named, wanted: tuple[str, ...] | None) -> Tensor:
    try:
        return source.load(wanted)
    except UsageError as error:  # a wrong suffix or key is a fault of this file alone
        raise DataError(str(error)) from error
