"""The calculation of a result from a plan, for commands and functions that have read their options."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from normcli.engine.inputs import COUNT, NO_INPUTS, Inputs
from normcli.engine.run import make_copy, measure, run
from normcli.engine.walk import DEFAULT_EFFORT, Effort
from normcli.errors import UsageError
from normcli.results.arrays import Give, give_back_as_is
from normcli.results.result import Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from normcli.norms.plan import Plan


class _Later(Mapping[str, "NDArray[np.float64]"]):
    """A mapping of statistics by name that are all calculated when one of them is first read.

    Parameters
    ----------
    names : sequence of str
        The names of the statistics.
    measure : callable
        Takes nothing, and returns the statistics by name; it is called once.
    """

    def __init__(self, names: Sequence[str], measure: Callable[[], Mapping[str, NDArray[np.float64]]]) -> None:
        self._names, self._measure = names, measure

    @functools.cached_property
    def _found(self) -> Mapping[str, NDArray[np.float64]]:
        return self._measure()

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def calculate(
    plan: Plan,
    values: NDArray[Any],
    inputs: Inputs = NO_INPUTS,
    *,
    out: NDArray[Any] | None = None,
    effort: Effort = DEFAULT_EFFORT,
    statistics_alone: bool = False,
    may_copy: bool = False,
    give: Give = give_back_as_is,
) -> Result:
    """Normalize an array by a plan.

    Parameters
    ----------
    plan : Plan
        The plan for the shape and dtype of `values`.
    values : ndarray
        The tensor, of an integer, boolean or float dtype.
    inputs : Inputs
        Gamma, beta, running statistics and the selection of values, as `fit_inputs` returns them.
    out : ndarray or None
        The array into which the normalized tensor is written; None: a new one.
    effort : Effort
        The number of threads, the observer of progress, and whether statistics are kept; if not, they are
        measured from `values` again when they are read. With a selection of values they are kept in any case.
    statistics_alone : bool
        Whether only the statistics are calculated now, and the normalized tensor when it is first read; `out`
        is then not used.
    may_copy : bool
        Whether a copy of the tensor may be kept in place of its statistics, if its groups are so short that
        keeping statistics would take longer than the arithmetic. They are measured from the copy when read.
    give : callable
        Converts a NumPy array to the type of the caller's tensor.

    Raises
    ------
    NormError
        If the number of threads is below 1, or `out` does not fit.
    """
    require_threads(effort)
    again = effort if effort.keeps_statistics else effort._replace(keeps_statistics=True)
    if statistics_alone:
        statistics = measure(plan, values, inputs, again)
        return Result(plan, values, statistics, inputs, again, statistics.pop(COUNT, None), give)
    if inputs.selection is not None:
        effort = again
    copy = make_copy(plan, values, inputs) if may_copy and effort.keeps_statistics else None
    if copy is not None:
        effort = effort._replace(keeps_statistics=False)
    y, statistics = run(plan, values, inputs, out, effort, copy)
    counts = statistics.pop(COUNT, None)
    shown: Mapping[str, NDArray[np.float64]] = statistics
    if not effort.keeps_statistics:
        measured = values if copy is None else copy
        shown = _Later(plan.norm.statistics, functools.partial(measure, plan, measured, inputs, again))
    return Result(plan, values, shown, inputs, again, counts, give, y=y)


def require_threads(effort: Effort) -> None:
    """Raise `UsageError` if the number of threads is below 1."""
    if effort.threads is not None and effort.threads < 1:
        raise UsageError(f"threads {effort.threads} is less than one")
