"""Whole processes timed in pairs: A, B, A, B, … so that a machine's drift falls on both alike."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass
from statistics import median

_ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
"""As users have it: modules are compiled once and not at every start."""


@dataclass(frozen=True)
class Pair:
    """A command, what it is held against, and the largest ratio of their times that is allowed.

    Parameters
    ----------
    work, against : str
        What each does, in a reader's words.
    command, reference : list of str
    at_most : float
    """

    work: str
    against: str
    command: list[str]
    reference: list[str]
    at_most: float


@dataclass(frozen=True)
class Measured:
    """The medians of a pair, in seconds of wall time, and of the ratios pair by pair."""

    pair: Pair
    seconds: float
    reference_seconds: float
    ratio: float

    @property
    def ok(self) -> bool:
        """Whether the ratio is within what is allowed."""
        return self.ratio <= self.pair.at_most


def measure(pair: Pair, runs: int) -> Measured:
    """Run a pair `runs` times after one warm-up of each."""
    times: list[tuple[float, float]] = []
    for number in range(runs + 1):
        both = _time(pair.command), _time(pair.reference)
        if number:
            times.append(both)
    return Measured(
        pair,
        median(first for first, _ in times),
        median(second for _, second in times),
        median(first / second for first, second in times),
    )


def _time(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True, env=_ENVIRONMENT)
    return time.perf_counter() - start
