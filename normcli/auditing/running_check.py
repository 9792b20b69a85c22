"""Running statistics compared with those that follow from the state before and the batches; their faults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from normcli.auditing.dump_file import RUNNING
from normcli.checking.tally import Comparison
from normcli.checking.ulp import choose_counting_dtype
from normcli.running.average import update

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from numpy.typing import NDArray

    from normcli.checking.ulp import Tolerance
    from normcli.norms.conventions import RunningRule
    from normcli.results.result import Result
    from normcli.running.average import State


def check_running(
    before: State,
    batches: Sequence[Result],
    rule: RunningRule,
    stored: Mapping[str, NDArray[Any]],
    tolerate: Callable[[np.dtype[Any]], Tolerance],
) -> Iterator[tuple[str, Comparison, str | None]]:
    """Yield (name, comparison, cause) for each of `running_mean` and `running_var` that is in `stored`.

    A stored statistic is compared with the exact one, calculated from the statistics before and the batches.
    The cause of a difference is in words; None if there is no difference.

    Parameters
    ----------
    before : State
        The running statistics before the batches.
    batches : sequence of Result
        The statistics of the batches, in order.
    rule : RunningRule
        The momentum and ddof by which they are averaged.
    stored : mapping of str to ndarray, shape (C)
        The layer's running statistics after these batches, by name.
    tolerate : callable
        Takes a dtype and returns the `Tolerance` for its values.

    Raises
    ------
    DataError
        If the batches do not fit the state, or a statistic is not finite.
    """
    expected = _enter(before, batches, rule)
    for place, name in enumerate(RUNNING):
        if name in stored:
            theirs = stored[name].astype(np.float64).reshape(expected[place].shape)
            found = Comparison(tolerate(choose_counting_dtype(stored[name].dtype)))
            found.compare_all(theirs, expected[place])
            yield name, found, None if found.ok else _explain(place, theirs, before, batches, rule)


def _enter(before: State, batches: Sequence[Result], rule: RunningRule) -> tuple[NDArray[Any], ...]:
    """Return the running mean and variance after all batches were averaged into them by a rule."""
    state = before
    for batch in batches:
        state = update(state, batch, rule).after
    return tuple(state.statistics)


def _explain(
    place: int, theirs: NDArray[Any], before: State, batches: Sequence[Result], rule: RunningRule
) -> str:
    """Return words on why running statistics differ, such as `running_var differs: …`.

    They name the fault that reproduces them; if no known fault does, they say that momentum or the batch must
    be another.

    Parameters
    ----------
    place : int
        0 for the mean, 1 for the variance.
    theirs : ndarray
        The layer's statistics after the batches, which differ from the exact ones.
    before : State
        The running statistics before the batches.
    batches : sequence of Result
        The statistics of the batches, in order.
    rule : RunningRule
        The rule (momentum, ddof) that the layer should have followed.
    """
    other: Literal["new", "old"] = "old" if rule.weight_of == "new" else "new"
    rules = {
        "the variance that enters is of another ddof": rule._replace(ddof=1 - rule.ddof),
        "momentum is the weight of the other statistics": rule._replace(weight_of=other),
    }
    known = {words: _enter(before, batches, one)[place] for words, one in rules.items()}
    known["it was not updated"] = before.statistics[place]
    close = (
        words for words, values in known.items() if np.allclose(theirs, values.reshape(theirs.shape), 1e-5)
    )
    return f"{RUNNING[place]} differs: {next(close, 'momentum or the batch is another')}"
