"""Batches that are drawn around one sample of a population."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.errors import DataError, UsageError
from normcli.printable import format_count
from normcli.tensors.mapped import fetch
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.engine.walk import Effort


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
