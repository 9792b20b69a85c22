"""A question whose answer is known."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from normcli.identifying.question import Identification, Question
    from normcli.norms.plan import Plan
    from tests.plants.faults import Wrong

Array = np.ndarray[Any, np.dtype[Any]]


class Outcome(enum.Enum):
    """What `identify` made of a plant."""

    RIGHT = "right"
    AMONG = "among several"
    MISSED = "missed"
    WRONG = "wrong with certainty"


@dataclass(frozen=True)
class Plant:
    """A question whose answer is known.

    Parameters
    ----------
    name, kind : str
    question : Question
    truth : Plan or None
        None where no norm of the input made it.
    wrong : Wrong or None
        The wrong kernel that made it.
    is_open : bool
        Whether gamma and beta are to be found.
    nearly : tuple of str
        The faults that a map, or an algorithm, may be said to have: it is a norm but for these.
    one_pass : bool
        Whether its variances are E[x²] − E[x]²: a verdict that names the norm and says so is right.
    """

    name: str
    kind: str
    question: Question
    truth: Plan | None
    wrong: Wrong | None = None
    is_open: bool = False
    nearly: tuple[str, ...] = ()
    one_pass: bool = False


class Verdict(NamedTuple):
    """The outcome of a plant, what was found, and the seconds of a processor that it took."""

    plant: Plant
    outcome: Outcome
    found: Identification
    seconds: float
