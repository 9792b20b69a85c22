"""Running statistics compared with those that follow from the state before and the batches; their faults."""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.auditing.dump_file import RUNNING
from normcli.checking.gradient_counts import find_multiple
from normcli.checking.half_precision import HALVES
from normcli.checking.tally import Comparison
from normcli.checking.ulp import choose_counting_dtype
from normcli.numerics.rounding import round_to_short
from normcli.running.average import measure_batch, update
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from numpy.typing import NDArray

    from normcli.checking.ulp import Tolerance
    from normcli.dtypes import Floats
    from normcli.norms.conventions import RunningRule
    from normcli.results.result import Result
    from normcli.running.average import State, Update


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
    updates = _enter(before, batches, rule)
    for place, name in enumerate(RUNNING):
        if name in stored:
            expected = (updates[-1].after if updates else before).statistics[place]
            theirs = stored[name].astype(np.float64).reshape(expected.shape)
            found = Comparison(tolerate(choose_counting_dtype(stored[name].dtype)))
            found.compare_all(theirs, expected)
            cause = None
            if not found.ok:
                course = _Course(place, before, batches, updates, rule)
                cause = f"{name} differs: {_explain(theirs, expected, course)}"
            yield name, found, cause


def _enter(before: State, batches: Sequence[Result], rule: RunningRule) -> list[Update]:
    """Return the updates by which all batches are averaged into the running statistics by a rule."""
    updates, state = [], before
    for batch in batches:
        updates.append(update(state, batch, rule))
        state = updates[-1].after
    return updates


class _Course(NamedTuple):
    """The way of a running statistic through all batches.

    Parameters
    ----------
    place : int
        0 for the mean, 1 for the variance.
    before : State
        The running statistics before the batches.
    batches : sequence of Result
        The statistics of the batches, in order.
    updates : sequence of Update
        The right update of each batch.
    rule : RunningRule
        The rule (momentum, ddof) that the layer should have followed.
    """

    place: int
    before: State
    batches: Sequence[Result]
    updates: Sequence[Update]
    rule: RunningRule

    @property
    def kept(self) -> Floats:
        """The statistic before the batches."""
        return self.before.statistics[self.place]

    @property
    def entering(self) -> list[Floats]:
        """The statistic of each batch."""
        return [one.batch[self.place] for one in self.updates]

    @property
    def weights(self) -> list[float]:
        """The weight of each batch's statistic, from 0 to 1."""
        return [one.weights[1] for one in self.updates]

    def follow(
        self, entering: Iterable[Floats] | None = None, weights: Iterable[float] | None = None
    ) -> Floats:
        """Return the statistic after all batches, of which other numbers enter, or with other weights."""
        state, entering = self.kept, self.entering if entering is None else entering
        for new, weight in zip(entering, self.weights if weights is None else weights, strict=True):
            state = (1.0 - weight) * state + weight * new
        return state

    def measure(self, ddof: int) -> list[Floats]:
        """Return the variances of each batch with a ddof, or with 0 if a group has too few values for it."""
        least = [np.min(one.plan.grid.group_size if one.counts is None else one.counts) for one in self.batches]
        return [
            measure_batch(one, ddof if n > ddof else 0).var for one, n in zip(self.batches, least, strict=True)
        ]


@np.errstate(all="ignore")
def _explain(theirs: Floats, expected: Floats, course: _Course) -> str:
    """Return words on why a running statistic, `theirs`, differs from the exact one, `expected`.

    They name the fault that reproduces it, or say that no momentum does.
    """
    causes = [_list_causes(theirs, expected, course), _fit_momentum(theirs, course)]
    if theirs.size > 1 and np.isfinite(theirs).all():  # one value is fitted by a number of any kind
        causes.append(_list_fitted(theirs, expected, course))
    every = itertools.chain.from_iterable(causes)
    close = (words for words, values in every if np.allclose(theirs, values, 1e-5))
    return next(close, "no momentum gives it from the batch, nor does a known fault")


_TIED = 1.02
"""The distance of a rounded number, as a multiple of the nearest's: a tie may have gone either way."""


def _list_causes(theirs: Floats, expected: Floats, course: _Course) -> Iterator[tuple[str, Floats]]:
    """Yield the words of each fault without a number of its own, and the statistic that it gives."""
    yield "it was not updated", course.kept
    for name in HALVES:
        own, nearest = round_to_short(theirs, name), round_to_short(expected, name)
        is_near = np.abs(own - expected) <= _TIED * np.abs(nearest - expected)
        yield f"it is rounded to {name}", np.where(is_near, own, nearest)
    swapped = [1.0 - weight for weight in course.weights]
    yield "momentum is the weight of the other statistics", course.follow(weights=swapped)
    if course.place == 0:
        return
    ddof = course.rule.ddof
    another = 0 if ddof else 1
    right, biased, other = map(course.measure, (ddof, 0, another))
    yield f"the variance that enters is of another ddof: {another}, not {ddof}", course.follow(other)
    for variances in (right, other):
        yield "the standard deviation enters, not the variance", course.follow(map(np.sqrt, variances))
    for word, about in (("updated", "after"), ("old", "before")):
        offs = [one.batch.mean - getattr(one, about).statistics.mean for one in course.updates]
        wide = [plain + off**2 for plain, off in zip(biased, offs, strict=True)]
        unbiased = [square * var / plain for square, var, plain in zip(wide, right, biased, strict=True)]
        for variances in (unbiased, wide):
            yield f"the variance that enters is about the {word} running mean", course.follow(variances)


def _fit_momentum(theirs: Floats, course: _Course) -> Iterator[tuple[str, Floats]]:
    """Yield words with the momentum from 0 to 1 that fits best, and the statistic that it gives."""
    low, high = 0.0, 1.0
    for _ in range(_SEARCHES):
        tried = np.linspace(low, high, _TRIED)
        errors = [np.linalg.norm(theirs - course.follow(weights=[w] * len(course.updates))) for w in tried]
        best = int(np.argmin(errors))
        low, high = tried[max(0, best - 1)], tried[min(_TRIED - 1, best + 1)]
    weight, rule = float(tried[best]), course.rule
    momentum = weight if rule.weight_of == "new" else 1.0 - weight
    words = f"momentum is {momentum:.3g}, not {'none' if rule.momentum is None else f'{rule.momentum:g}'}"
    words = words if theirs.size > 1 else f"{words}, or the batch is another"
    yield words, course.follow(weights=[weight] * len(course.updates))


_SEARCHES, _TRIED = 6, 65
"""The rounds of the search for a momentum, and how many are tried in each."""


def _list_fitted(theirs: Floats, expected: Floats, course: _Course) -> Iterator[tuple[str, Floats]]:
    """Yield the words of faults with a number, the one that fits best, and the statistic that each gives."""
    word = ("mean", "variance")[course.place]
    share = 1.0 - math.prod(1.0 - weight for weight in course.weights)
    if share == 0.0:
        return
    kept = (1.0 - share) * course.kept
    entered = expected - kept
    biased = course.follow(course.measure(0)) - kept if course.place else entered
    times = find_multiple(theirs - kept, biased)
    count = round(times / (times - 1.0)) if times > 1.0 else 0
    if count > 1:
        words = f"the {word} that enters is multiplied by {count}/{count - 1}, as if of {count} values"
        yield words, kept + biased * count / (count - 1)
    times = find_multiple(theirs - kept, entered)
    yield f"the {word} that enters is multiplied by {times:.4g}", kept + times * entered
    off = float(np.mean(theirs - expected))
    yield f"{off / share:.4g} is added to the {word} that enters", expected + off
    times = find_multiple(theirs, expected)
    yield f"every value is {times:.4g} times what it should be", times * expected
