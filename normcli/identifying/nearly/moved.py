"""Groups that are off as a whole: single roundings cancel out in their mean, those of statistics do not."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.ulp import measure_unit
from normcli.identifying.models.weight import CERTAIN
from normcli.identifying.search.affine import ESTIMATED
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from normcli.identifying.search.hypothesis import Hypothesis

_ROUNDED_TWICE = 1.0
"""Units of the last place that a careful kernel's value is off at most: half of x̂'s, and half of its own."""


class Moved(NamedTuple):
    """The index of the first value of a group, and how much of what they should be its values are."""

    first: tuple[int, ...]
    factor: float


def find_moved_group(hypothesis: Hypothesis, eps: float, dtype: np.dtype[Any]) -> Moved | None:
    """Return the group whose factor is off the most, if by more than careful kernels leave by chance.

    Parameters
    ----------
    hypothesis : Hypothesis
    eps : float
    dtype : numpy.dtype
        In which y was rounded.

    Notes
    -----
    Of n values that are off by h units in the last place at most, each by itself, the mean is off by more than
    h · √(2 · ln(2 / δ) / n) with a probability of δ at most (Hoeffding 1963, theorem 2). A gamma that was
    fitted to a column of such values is off by as much as they are.
    """
    sample = hypothesis.sample
    actual, expected = sample.actual, hypothesis.approximate(eps)
    counted = np.isfinite(actual) & np.isfinite(expected) & (expected != 0.0)
    counts = counted.sum(axis=1)
    most = _ROUNDED_TWICE * (2.0 if hypothesis.affine.way == ESTIMATED else 1.0)
    log = math.log(2.0 * len(actual)) + CERTAIN * math.log(2.0)
    with np.errstate(all="ignore"):
        off = np.sign(expected) * (actual - expected) / measure_unit(expected, dtype)
        total = np.abs(np.where(counted, off, 0.0).sum(axis=1))
        excess = np.where(counts > 0, total - most * np.sqrt(2.0 * log * counts), 0.0) / np.maximum(counts, 1)
    row = int(np.argmax(excess))
    if not excess[row] > 0.0:
        return None
    ours, theirs = expected[row, counted[row]], actual[row, counted[row]]
    return Moved(sample.locate(row, 0), float(theirs @ ours / (ours @ ours)))
