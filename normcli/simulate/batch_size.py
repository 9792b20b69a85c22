"""Batches drawn around one sample, and the movement of its statistics and output as they change."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine.inputs import NO_INPUTS
from normcli.engine.walk import DEFAULT_EFFORT
from normcli.errors import DataError, UsageError, name_subject
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.printable import format_count
from normcli.results.calculate import calculate
from normcli.teach.side_by_side import depends_on_batch
from normcli.tensors.mapped import fetch
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import ArrayLike, NDArray

    from normcli.dtypes import Floats
    from normcli.engine.inputs import Inputs
    from normcli.engine.walk import Effort
    from normcli.norms.plan import Plan
    from normcli.results.result import Result


MOST_BATCHES = 10_000_000
"""What is measured of each batch is kept until all are drawn."""


class Change(NamedTuple):
    """A change of values: scale · x + shift."""

    shift: float = 0.0
    scale: float = 1.0

    def require_finite(self) -> None:
        """Raise `UsageError` if a number is NaN or infinite: no value would be left."""
        for name, number in self._asdict().items():
            if not math.isfinite(number):
                raise UsageError(f"{name} {number:g} is not a finite number")

    def apply(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return changed values, as float64; the array itself where nothing changes."""
        return values if self == NO_CHANGE else values.astype(np.float64) * self.scale + self.shift


NO_CHANGE = Change()


class Population(NamedTuple):
    """The samples that batches are drawn from, and the one that is in all of them.

    Parameters
    ----------
    values : ndarray
        Which may be a map of a file: of it, only the samples of one batch are in memory at a time.
    axis : int
        Along which the samples lie.
    sample : int
        The number of the one that is watched.
    """

    values: NDArray[Any]
    axis: int
    sample: int

    @property
    def sample_count(self) -> int:
        """The number of samples."""
        return int(self.values.shape[self.axis])

    def require_batches(self, sizes: Sequence[int], option: str = "batches") -> None:
        """Raise `NormError` unless the watched sample is there, and batches of some sizes can be drawn."""
        if not 0 <= self.sample < self.sample_count:
            raise UsageError(f"sample {self.sample} is none of the {format_count(self.sample_count, 'sample')}")
        if not sizes or min(sizes) < 1:
            raise UsageError(f"{option} are of 1 sample or more")
        if max(sizes) > self.sample_count:
            held = format_count(self.sample_count, "sample")
            raise DataError(f"{option} of {max(sizes)} take as many samples; the input has {held}")

    def take(self, numbers: Sequence[int]) -> NDArray[Any]:
        """Return some samples as a tensor."""
        index: tuple[Any, ...] = (*(slice(None),) * self.axis, list(numbers))
        return np.asarray(fetch(self.values[index]))

    def draw(self, size: int, rng: np.random.Generator, change: Change = NO_CHANGE) -> NDArray[Any]:
        """Return a batch whose first sample is the watched one; the others are drawn, without repeats.

        Parameters
        ----------
        size : int
            Of the batch.
        rng : numpy.random.Generator
        change : Change
            Of the others' values.
        """
        drawn = rng.choice(self.sample_count - 1, size - 1, replace=False)
        others = self.take((drawn + (drawn >= self.sample)).tolist())
        return np.concatenate([self.take([self.sample]), change.apply(others)], axis=self.axis)

    def follow(self, effort: Effort, sizes: Sequence[int], times: int) -> Callable[[int], None]:
        """Let an observer expect batches of some sizes, each so often; return what tells it of one.

        Raises
        ------
        UsageError
            If they are more than `MOST_BATCHES`.
        """
        if len(sizes) * times > MOST_BATCHES:
            raise UsageError(f"{len(sizes) * times:,} batches are drawn; at most {MOST_BATCHES:,} are")
        observer, sample = effort.observer, self.values.nbytes // max(1, self.sample_count)
        if observer is None:
            return lambda size: None
        observer.expect(times * sum(sizes) * sample)
        return lambda size: observer.advance(size * sample)


class Quartiles(NamedTuple):
    """The quartiles of numbers: a quarter lie below `low`, half below `median`, a quarter above `high`."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, numbers: Sequence[float] | Floats) -> Quartiles:
        """Return the quartiles of one or more numbers; NaN if one of them is NaN."""
        return cls(*np.quantile(np.asarray(numbers, np.float64), (0.25, 0.5, 0.75)).tolist())

    @classmethod
    def of_all(cls, numbers: Sequence[float | None]) -> Quartiles | None:
        """Return the quartiles of numbers; None if one of them is None."""
        known = [number for number in numbers if number is not None]
        return cls.of(known) if len(known) == len(numbers) else None


UNMOVED = Quartiles(0.0, 0.0, 0.0)


def measure_distance(output: NDArray[Any], reference: NDArray[Any]) -> float:
    """Return the mean of |y − reference| over the values of a sample."""
    return float(np.mean(np.abs(output.astype(np.float64) - reference)))


BATCHES = (1, 2, 4, 8, 32, 128)
DRAWS = 100
"""Sizes of batches, and draws of each, by default."""


class Movement(NamedTuple):
    """The movement of a sample by batches of one size, over draws of the batch around it.

    Parameters
    ----------
    size : int
        Samples in a batch, the watched one among them.
    output : Quartiles
        Of the mean of |y − y of the population| over the values of the sample, in the unit of y.
    centre : Quartiles or None
        Of |centre − that of the population| over the spread of the population, the mean over the groups; None
        where nothing is subtracted.
    spread : Quartiles or None
        Of |spread / that of the population − 1|, likewise; None where the divisor has none.
    """

    size: int
    output: Quartiles
    centre: Quartiles | None
    spread: Quartiles | None


class MovedNorm(NamedTuple):
    """The movements of one norm's statistics and output, for each batch size.

    Parameters
    ----------
    name : str
        As it was asked for.
    plan : Plan
        Of the whole population.
    movements : tuple of Movement
        In the order of the sizes.
    """

    name: str
    plan: Plan
    movements: tuple[Movement, ...]

    @property
    def moves(self) -> bool:
        """Whether other samples are in the groups of a sample."""
        return depends_on_batch(self.plan)


class BatchSizes(NamedTuple):
    """The result of `simulate_batch_size`.

    Parameters
    ----------
    population : Population
    norms : tuple of MovedNorm
    sizes : tuple of int
    draws, seed : int
    change : Change
        Of the other samples of a batch.
    """

    population: Population
    norms: tuple[MovedNorm, ...]
    sizes: tuple[int, ...]
    draws: int
    seed: int
    change: Change

    @property
    def is_finite(self) -> bool:
        """Whether no distance is NaN, as where values of the population are."""
        return all(math.isfinite(one.output.median) for norm in self.norms for one in norm.movements)


def simulate_batch_size(
    x: ArrayLike,
    norms: Sequence[str] | Mapping[str, Request] = ("bn", "ln", "in"),
    *,
    batches: Sequence[int] | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    sample: int = 0,
    shift: float = 0.0,
    scale: float = 1.0,
    effort: Effort = DEFAULT_EFFORT,
) -> BatchSizes:
    """Draw batches around one sample of a population, and measure how far it moves.

    Parameters
    ----------
    x : array_like, shape (samples, …)
        The population; a layout's batch axis, or else the first, is that of the samples. It may be a map of a
        file: of it, the population's statistics are taken in a pass, and then one batch at a time is read.
    norms : sequence of str, or mapping of str to Request
        Names of the table `normcli.NORMS`, or requests by what to call them.
    batches : sequence of int, optional
        How many samples are in a batch, the watched one among them; of sizes that are repeated, each once. By
        default `BATCHES`, with the whole population in place of sizes that are larger.
    draws : int
        How often a batch of each size is drawn; of each, the norms see the same batches.
    seed : int
        Of NumPy's `default_rng`.
    sample : int
        The number of the sample that is watched.
    shift, scale : float
        The other samples of a batch become scale · x + shift: a batch that comes from elsewhere.
    effort : Effort

    Raises
    ------
    NormError
        If a batch is larger than the population, a request does not fit it, shift or scale is not finite, or
        more than ten million batches are to be drawn.

    Notes
    -----
    Where the groups of a norm lie within one sample, as its plan says, nothing is drawn: every distance is 0.
    This is the story of figure 1 of Wu & He 2018, "Group Normalization", arXiv:1803.08494.

    Examples
    --------
    >>> x = np.random.default_rng(0).normal(size=(64, 3, 2, 2))
    >>> found = simulate_batch_size(x, ["bn", "ln"], batches=[2, 32], draws=20)
    >>> [[round(one.output.median, 2) for one in norm.movements] for norm in found.norms]
    [[0.33, 0.07], [0.0, 0.0]]
    """
    values = np.asanyarray(x)
    requests = norms if isinstance(norms, Mapping) else {name: Request(name) for name in norms}
    plans: dict[str, Plan] = {}
    for name, request in requests.items():
        with name_subject(name):
            plans[name] = _plan(request, values)
    axis = next(iter(plans.values())).grid.layout.batch or 0
    population, change = Population(values, axis, sample), Change(shift, scale)
    if batches is None:
        batches = [min(size, population.sample_count) for size in BATCHES]
    sizes = tuple(dict.fromkeys(batches))
    population.require_batches(sizes)
    change.require_finite()
    found = BatchSizes(population, (), sizes, draws, seed, change)
    moved = (MovedNorm(name, plan, tuple(_move(plan, found, effort))) for name, plan in plans.items())
    return found._replace(norms=tuple(moved))


def _plan(request: Request, values: NDArray[Any]) -> Plan:
    """Return the plan of a batch, its output in float64: what moves is not hidden by rounding."""
    return make_plan(request._replace(dtype="float64"), values.shape, values.dtype)


def calculate_batch(plan: Plan, batch: NDArray[Any], inputs: Inputs = NO_INPUTS) -> Result:
    """Return the result of a batch, by a plan's request."""
    return calculate(_plan(plan.request, batch), batch, inputs)


def _move(plan: Plan, asked: BatchSizes, effort: Effort) -> Iterator[Movement]:
    """Yield how far batches of each size move the watched sample."""
    population, _, sizes, draws, seed, change = asked
    if not depends_on_batch(plan):
        centre, spread = (
            UNMOVED if name else None for name in (plan.norm.centre.statistic, plan.norm.divisor.spread)
        )
        yield from (Movement(size, UNMOVED, centre, spread) for size in sizes)
        return
    whole = calculate(plan, population.values, effort=effort)
    reference = take_sample(whole, population.axis, population.sample)
    advance = population.follow(effort, sizes, draws)
    for size in sizes:
        rng = np.random.default_rng([seed, size])
        found = []
        for _ in range(draws):
            result = calculate_batch(plan, population.draw(size, rng, change))
            distance = measure_distance(take_sample(result, population.axis, 0), reference)
            found.append((distance, *_compare_statistics(result, whole)))
            advance(size)
        outputs, centres, spreads = zip(*found, strict=True)
        yield Movement(size, Quartiles.of(outputs), Quartiles.of_all(centres), Quartiles.of_all(spreads))


def take_sample(result: Result, axis: int, sample: int) -> Floats:
    """Return the output of one sample of a batch."""
    return np.asarray(result.normalized.take(sample, axis), np.float64)


def _compare_statistics(result: Result, whole: Result) -> tuple[float | None, float | None]:
    """Return how far centre and spread of a batch are from the population's, as `Movement` has them."""
    centre, spread = whole.plan.norm.centre.statistic, whole.plan.norm.divisor.spread
    scale = np.asarray(1.0 if spread is None else whole.statistics[spread])
    moved = relative = None
    with np.errstate(all="ignore"):
        if centre is not None:
            gaps = np.abs(result.statistics[centre] - whole.statistics[centre])
            moved = float(np.mean(gaps / scale))
        if spread is not None:
            relative = float(np.mean(np.abs(result.statistics[spread] / scale - 1.0)))
    return moved, relative
