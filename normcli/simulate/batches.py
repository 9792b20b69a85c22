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
"""The most batches that are drawn: the distances of each are kept until the end."""


class Change(NamedTuple):
    """A change of values, scale · x + shift, as if they came from other data."""

    shift: float = 0.0
    scale: float = 1.0

    def require_finite(self) -> None:
        """Raise `UsageError` if shift or scale is NaN or infinite."""
        for name, number in self._asdict().items():
            if not math.isfinite(number):
                raise UsageError(f"{name} {number:g} is not a finite number")

    def apply(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return scale · values + shift in float64; the array itself if scale is 1 and shift 0."""
        return values if self == NO_CHANGE else values.astype(np.float64) * self.scale + self.shift


NO_CHANGE = Change()


class Population(NamedTuple):
    """The samples from which batches are drawn, and the watched one, which is in every batch.

    Parameters
    ----------
    values : ndarray
        All samples. For a memory map of a file, only the samples of one batch are in memory at a time.
    axis : int
        The axis along which the samples lie.
    sample : int
        The index of the watched sample.
    """

    values: NDArray[Any]
    axis: int
    sample: int

    @property
    def sample_count(self) -> int:
        """The number of samples; raises `UsageError` if the values have no axis."""
        if not self.values.ndim:
            raise UsageError("a tensor of 0 axes holds no samples")
        return int(self.values.shape[self.axis])

    def require_batches(self, sizes: Sequence[int], option: str = "batches") -> None:
        """Raise an error unless the watched sample exists, and batches of all sizes can be drawn.

        Parameters
        ----------
        sizes : sequence of int
        option : str
            The name of the sizes in messages.

        Raises
        ------
        UsageError
            If there is no such sample, no size, or a size below 1.
        DataError
            If a size is larger than the population.
        """
        if not 0 <= self.sample < self.sample_count:
            raise UsageError(f"sample {self.sample} is none of the {format_count(self.sample_count, 'sample')}")
        if not sizes or min(sizes) < 1:
            raise UsageError(f"{option} are of 1 sample or more")
        if max(sizes) > self.sample_count:
            held = format_count(self.sample_count, "sample")
            raise DataError(f"{option} of {max(sizes)} take as many samples; the input has {held}")

    def take(self, numbers: Sequence[int]) -> NDArray[Any]:
        """Return the samples with these indices along the batch axis, in order, as one array in memory."""
        index: tuple[Any, ...] = (*(slice(None),) * self.axis, list(numbers))
        return np.asarray(fetch(self.values[index]))

    def draw(self, size: int, rng: np.random.Generator, change: Change = NO_CHANGE) -> NDArray[Any]:
        """Return a batch whose first sample is the watched one; the others are drawn without repeats.

        Parameters
        ----------
        size : int
            The number of samples in the batch.
        rng : numpy.random.Generator
        change : Change
            Scale and shift, applied to the values of the other samples.
        """
        drawn = rng.choice(self.sample_count - 1, size - 1, replace=False)
        others = self.take((drawn + (drawn >= self.sample)).tolist())
        return np.concatenate([self.take([self.sample]), change.apply(others)], axis=self.axis)

    def follow(self, effort: Effort, sizes: Sequence[int], times: int) -> Callable[[int], None]:
        """Announce the bytes of all batches as work; return a function that reports a finished batch.

        Parameters
        ----------
        effort : Effort
            Its observer is used; without one, the function does nothing.
        sizes : sequence of int
            The numbers of samples in batches.
        times : int
            The number of batches of each size.

        Returns
        -------
        callable
            Takes the number of samples in the batch that is finished.

        Raises
        ------
        UsageError
            If there are more than ten million batches.
        """
        if len(sizes) * times > MOST_BATCHES:
            raise UsageError(f"{len(sizes) * times:,} batches are drawn; at most {MOST_BATCHES:,} are")
        observer, sample = effort.observer, self.values.nbytes // max(1, self.sample_count)
        if observer is None:
            return lambda size: None
        observer.expect(times * sum(sizes) * sample)
        return lambda size: observer.advance(size * sample)


class Quartiles(NamedTuple):
    """The quartiles of numbers: a quarter are below `low`, half below `median`, a quarter above `high`."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, numbers: Sequence[float] | Floats) -> Quartiles:
        """Return the quartiles of one or more numbers; NaN if one of them is NaN."""
        return cls(*np.quantile(np.asarray(numbers, np.float64), (0.25, 0.5, 0.75)).tolist())


UNMOVED = Quartiles(0.0, 0.0, 0.0)


def measure_distance(output: NDArray[Any], reference: NDArray[Any]) -> float:
    """Return the mean of |y − reference| over the values of a sample."""
    return float(np.mean(np.abs(output.astype(np.float64) - reference)))
