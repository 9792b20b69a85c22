"""The question about a tensor, reasons for no answer, and the answer."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.tensors.pieces import iterate_pieces
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.identifying.faults.claim import Claim
    from normcli.identifying.faults.fault_search import NearNorm
    from normcli.identifying.faults.open_case import AskedNorm
    from normcli.identifying.maps.known_maps import Evaluation
    from normcli.identifying.maps.line_fit import PlainMap
    from normcli.identifying.models.matrix_model import Start
    from normcli.identifying.reproduction import Reproduction
    from normcli.identifying.search.match import Match


class Question(NamedTuple):
    """A question: the tensors, and the names of the axes.

    Parameters
    ----------
    x, y : ndarray
        Of one shape, or y with its axes in another order.
    gamma, beta : ndarray or None
        If neither is given and nothing fits without, they are estimated.
    layout : str or None
        One letter an axis, which name the channel axis; without it, the second and the last may be.
    start : Start or None
        What power iterations may have started from, which estimate a singular value.
    subject : AskedNorm or None
        What y should be: the norm that was asked for, with its own gamma, beta and running statistics.
    """

    x: NDArray[Any]
    y: NDArray[Any]
    gamma: NDArray[Any] | None = None
    beta: NDArray[Any] | None = None
    layout: str | None = None
    start: Start | None = None
    subject: AskedNorm | None = None


class Kind(StrEnum):
    """The kind of an answer about a tensor."""

    NORM = "norm"
    FAULT = "fault"
    AFFINE = "affine"
    UNDECIDED = "undecided"
    NONE = "none"


class Identification(NamedTuple):
    """What was found.

    Parameters
    ----------
    question : Question
    matches : tuple of Match
        The best first.
    sampled : int or None
        About how many values each hypothesis was compared with, if not with all.
    reason : str or None
        Why no norm can be identified; None where one may be.
    plain : PlainMap or None
        A map without statistics that explains the tensor as well as any norm does.
    known : tuple of str
        What that map may be.
    evaluation : Evaluation or None
        The stored statistics that would make it.
    doubtful : tuple of Match
        Hypotheses that fit, of which there is too little evidence.
    unchanged : int or None
        How many values are those of the input, where nothing fits and these are more than half.
    reproductions : tuple of Reproduction
        Algorithms that give y's bits, where the exact result does not; the best first.
    claims : tuple of Claim
        What a kernel did wrong, the likeliest first.
    rounded_to : str or None
        The dtype of half precision whose numbers all values of y are, where it was saved as another.
    nearest : NearNorm or None
        The norm that y is but for small errors all over, where nothing explains them.
    """

    question: Question
    matches: tuple[Match, ...]
    sampled: int | None = None
    reason: str | None = None
    plain: PlainMap | None = None
    known: tuple[str, ...] = ()
    evaluation: Evaluation | None = None
    doubtful: tuple[Match, ...] = ()
    unchanged: int | None = None
    reproductions: tuple[Reproduction, ...] = ()
    claims: tuple[Claim, ...] = ()
    rounded_to: str | None = None
    nearest: NearNorm | None = None

    @property
    def kind(self) -> Kind:
        """What was found."""
        found = {
            Kind.NORM: self.matches,
            Kind.FAULT: self.claims,
            Kind.AFFINE: self.plain,
            Kind.UNDECIDED: self.doubtful or self.nearest,
        }
        return next((kind for kind, there in found.items() if there), Kind.NONE)


NOT_FINITE = "the actual tensor holds no finite value"
CONSTANT = "the input is constant: every norm makes the same of it"
CONSTANT_GROUPS = ": ".join(("x is constant in every group", "it shows nothing of the norm"))
"""Reasons why no norm can be identified; of the last two, another input helps."""

ZEROS = ", as where ".join(
    (
        "every value of the actual tensor is 0",
        "a sum of squares overflows to ∞ and divides, groups of one value are centred, or gamma is 0",
    )
)
"""The reason of zeros, of which a norm that was asked for may be told to have overflowed."""


def find_reason(x: NDArray[Any], y: NDArray[Any]) -> str | None:
    """Return why no norm can be identified of these tensors; None where one may be."""
    if x.size < 2:
        return "the input has fewer than two values"
    if not any(np.isfinite(piece).any() for piece in iterate_pieces(y)):
        return NOT_FINITE
    if _is_constant(x):
        return CONSTANT
    if x.shape == y.shape and all(map(np.array_equal, iterate_pieces(x), iterate_pieces(y))):
        return "the actual tensor is the input, unchanged"
    if _is_constant(y):
        if not y[(0,) * y.ndim]:
            return ZEROS
        return "the actual tensor is constant: so is every norm of groups of one value"
    return None


def _is_constant(values: NDArray[Any]) -> bool:
    first = values[(0,) * values.ndim]
    return all(bool(np.all(piece == first)) for piece in iterate_pieces(values))
