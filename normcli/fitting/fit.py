"""Statistics over many files: each is read once, and what is known of it is added exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from normcli.engine.counting import Selection
from normcli.errors import DataError, UsageError
from normcli.fitting.gather import gather
from normcli.fitting.order import find_quartiles
from normcli.fitting.stats_file import Stats
from normcli.fitting.subject import choose_subject, require_alike
from normcli.fitting.sums import require_no_nan
from normcli.norms import Divisor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.engine.effort import Effort
    from normcli.fitting.subject import Subject
    from normcli.numerics.quartiles import Quartiles
    from normcli.plan import Plan
    from normcli.request import Request
    from normcli.tensors.tensor import Tensor


class Policy(NamedTuple):
    """What is done about NaN, and about files that cannot be read or do not fit.

    Parameters
    ----------
    nan : {"propagate", "omit", "raise"}
    skips_bad : bool
        Whether such files are left out.
    """

    nan: str = "propagate"
    skips_bad: bool = False


class Source(NamedTuple):
    """Where a tensor comes from: its name, and what loads it."""

    name: str
    load: Callable[[], Tensor]


class Fitted(NamedTuple):
    """Statistics, and what is wrong with the files that were left out."""

    stats: Stats
    bad: tuple[str, ...]


def fit(request: Request, sources: Iterable[Source], policy: Policy, effort: Effort) -> Fitted:
    """Return the statistics over tensors as if they were one, joined along the batch axis.

    Parameters
    ----------
    request : Request
    sources : iterable of Source
        Each is loaded when the one before is done with.
    policy : Policy
    effort : Effort

    Raises
    ------
    UsageError
        If samples have statistics of their own, or the request does not fit the first tensor.
    DataError
        If one cannot be read or is unlike the first, unless such are left out; if none is left.
    """
    fitting = _Fitting(request, policy, effort)
    bad, good = [], []
    for source in sources:
        try:
            fitting.add(source)
            good.append(source)
        except (DataError, MemoryError) as error:
            told = str(error) or "it does not fit into memory"
            told = told if source.name in told else f"{source.name}: {told}"
            if not policy.skips_bad:
                raise DataError(told) from error
            bad.append(told)
    if fitting.stats is None:
        raise DataError("no file is left to fit" + (f": {bad[0]}" if bad else ""))
    stats = fitting.stats
    if stats.subject.plan(1).norm.divisor is Divisor.QUARTILES:
        stats = stats._replace(quartiles=_search_quartiles(stats, good, effort))
    return Fitted(stats, tuple(bad))


def _search_quartiles(stats: Stats, sources: Sequence[Source], effort: Effort) -> Quartiles:
    """Read all tensors again, as often as quartiles take."""
    subject = stats.subject
    batch = subject.plan(1).layout.batch or 0

    def load_all() -> Iterator[tuple[Plan, NDArray[Any]]]:
        for source in sources:
            values = _load(source)
            yield subject.plan(values.shape[batch]), values

    return find_quartiles(load_all, effort, Selection(omits_nan=True) if stats.omits_nan else None)


class _Fitting:
    """The statistics of the tensors so far."""

    def __init__(self, request: Request, policy: Policy, effort: Effort) -> None:
        self.request, self.policy, self.effort = request, policy, effort
        self.stats: Stats | None = None
        self._first = ""

    def add(self, source: Source) -> None:
        """Read one more: all of it or nothing enters the sums."""
        values = _load(source)
        subject = self._choose_subject(source.name, values)
        batch = subject.plan(1).layout.batch or 0
        plan = subject.plan(values.shape[batch])
        sums = gather(plan, values, self.effort)
        if self.policy.nan == "raise":
            require_no_nan(sums, source.name)
        found = Stats(subject, self.policy.nan == "omit", 1, values.shape[batch], sums)
        if self.stats is None:
            self.stats, self._first = found, source.name
            return
        self.stats.sums.merge(sums)
        self.stats = self.stats._replace(files=self.stats.files + 1, samples=self.stats.samples + found.samples)

    def _choose_subject(self, name: str, values: NDArray[Any]) -> Subject:
        if self.stats is None:
            return choose_subject(self.request, values.shape, values.dtype)
        require_alike(self.stats.subject, values.shape, values.dtype, name, self._first)
        return self.stats.subject


def _load(source: Source) -> NDArray[Any]:
    try:
        return source.load().values
    except UsageError as error:  # of a suffix or a key: a fault of this file, which can be left out
        raise DataError(str(error)) from error
