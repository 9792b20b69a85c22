"""The question about a tensor, reasons for no answer, the answer, and its diagnosis in words."""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.tensors.pieces import iterate_pieces
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.identifying.faults.claim import Claim
    from normcli.identifying.faults.fault_search import NearNorm
    from normcli.identifying.models.known_maps import Evaluation
    from normcli.identifying.models.line_fit import PlainMap
    from normcli.identifying.models.matrix_model import Start
    from normcli.identifying.reproduction import Reproduction
    from normcli.identifying.search.match import Match
    from normcli.results.arguments import Problem
    from normcli.tensors.residual import Addends


class Question(NamedTuple):
    """The question of which norm, fault or map turns x into y.

    Parameters
    ----------
    x, y : ndarray
        Input and output, of one shape; y may have its axes in another order.
    gamma, beta : ndarray or None
        Scale and shift, None if not given. If neither is given and nothing fits without, both are fitted.
    layout : str or None
        One letter for each axis, C for the channel; if None, the second or the last axis may be the channel.
    start : Start or None
        The vector from which power iterations may have started; None without one.
    addends : Addends or None
        The two addends of x, if a residual was added.
    saved : str or None
        The half precision of y if it was saved in a longer dtype, which it had before; else None.
    subject : Problem or None
        The norm that y should be, with its inputs; None if no norm was requested.
    """

    x: NDArray[Any]
    y: NDArray[Any]
    gamma: NDArray[Any] | None = None
    beta: NDArray[Any] | None = None
    layout: str | None = None
    start: Start | None = None
    addends: Addends | None = None
    saved: str | None = None
    subject: Problem | None = None


class Kind(StrEnum):
    """The kind of an answer about a tensor; `VERDICTS` says what each means."""

    NORM = "norm"
    FAULT = "fault"
    AFFINE = "affine"
    UNDECIDED = "undecided"
    NONE = "none"


class Identification(NamedTuple):
    """The answer to a question: all norms, faults and maps with which y agrees within rounding.

    Parameters
    ----------
    question : Question
    matches : tuple of Match
        The norms that reproduce y with enough evidence, the best first.
    sampled : int or None
        About how many values each hypothesis was compared with; None if all values were.
    reason : str or None
        The reason why no norm can be identified; None if one can.
    plain : PlainMap or None
        A map y = a · x + b that fits y as well as any norm does; None without one.
    known : tuple of str
        The well-known maps that `plain` may be.
    evaluation : Evaluation or None
        The running statistics with which the evaluation of a norm is the map `plain`; None without any.
    doubtful : tuple of Match
        Norms that reproduce y with too little evidence.
    unchanged : int or None
        The number of values of y that are equal to x, if nothing fits and these are more than half; else None.
    reproductions : tuple of Reproduction
        Algorithms that reproduce y's bits, if the exact result does not; the best first.
    claims : tuple of Claim
        Claims that a norm with faults made y, the likeliest first.
    nearest : NearNorm or None
        The norm whose result y is near, with small errors that nothing explains; None without one.
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
    nearest: NearNorm | None = None

    @property
    def is_told(self) -> bool:
        """Whether anything explains y, or why there is no answer; a norm with too little evidence does not."""
        explains = self.kind not in (Kind.NONE, Kind.UNDECIDED)
        return explains or bool(self.reason or self.unchanged or self.reproductions)

    @property
    def kind(self) -> Kind:
        """The kind of the answer: the first of match, fault, y = a · x + b, doubtful match, nothing."""
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
"""Reasons why no norm can be identified; with the last two, another input would help."""

ZEROS = ", as where ".join(
    (
        "every value of the actual tensor is 0",
        "a sum of squares overflows to ∞ and divides, groups of one value are centred, or gamma is 0",
    )
)
"""The reason for a y of zeros; a requested norm may still be found to have overflowed."""

INFINITE = "every finite value of the actual tensor is 0: ∞ or NaN in x divides"
"""The reason for a y of zeros beside an x that is not finite."""


def find_reason(x: NDArray[Any], y: NDArray[Any]) -> str | None:
    """Return the reason why no norm can be identified from input x and output y; None if one can."""
    if x.size < 2:
        return "the input has fewer than two values"
    if not any(np.isfinite(piece).any() for piece in iterate_pieces(y)):
        return NOT_FINITE
    if _is_constant(x):
        return CONSTANT
    if x.shape == y.shape and all(map(np.array_equal, iterate_pieces(x), iterate_pieces(y))):
        return "the actual tensor is the input, unchanged"
    if not any(piece[np.isfinite(piece)].any() for piece in iterate_pieces(y)) and not np.isfinite(x).all():
        return INFINITE
    if _is_constant(y):
        if not y[(0,) * y.ndim]:
            return ZEROS
        return "the actual tensor is constant: so is every norm of groups of one value"
    return None


def _is_constant(values: NDArray[Any]) -> bool:
    first = values[(0,) * values.ndim]
    return all(bool(np.all(piece == first)) for piece in iterate_pieces(values))


# -- the diagnosis: one record for the terminal, JSON and Python

VERDICTS: Mapping[str, str] = MappingProxyType(
    {
        "norm": "a norm of some request reproduces y",
        "fault": "a norm with a fault that kernels have reproduces y",
        "affine": "a map y = a · x + b without statistics of x explains y",
        "undecided": "a norm fits, but the values show too little, or only nearly fit",
        "none": "nothing known explains every value of y",
    }
)
"""The words of `Diagnosis.verdict`, each with its meaning; y was made of x."""

MOST_WORDS = 15
"""Words of a cause; signs of operations are none."""

_MOST_SHOWN = 3
"""The most alternatives that are shown to a reader."""


class Diagnosis(NamedTuple):
    """A diagnosis of a tensor; texts are clauses, without a full stop.

    Parameters
    ----------
    verdict : str
        One of `VERDICTS`.
    cause : str
        A clause on what made the tensor, subject first, of at most `MOST_WORDS` words; the name of a group may
        follow.
    evidence : tuple of str
        The facts that support the cause.
    alternatives : tuple of str
        Other causes that fit as well, the likeliest first.
    remedy : str or None
        The command, or the change of the kernel, that makes both agree; None without one.
    next_step : str or None
        A step that would tell more; None without one.
    fault : str or None
        The id of the fault, one that `normcli help faults` lists; None without a fault.
    """

    verdict: str
    cause: str
    evidence: tuple[str, ...] = ()
    alternatives: tuple[str, ...] = ()
    remedy: str | None = None
    next_step: str | None = None
    fault: str | None = None

    @property
    def asks_for_gamma(self) -> bool:
        """Whether the tensor is explained, without a named fault, by some gamma or beta that was not given."""
        is_explained = (self.verdict != Kind.NONE or ANY_NORM in self.cause) and "unknown" in (
            self.fault or "unknown"
        )
        return is_explained and (self.next_step or "").startswith(("give --gamma", "give --beta"))

    @property
    def shown_alternatives(self) -> tuple[str, ...]:
        """The first three alternatives, and if there are more, a text with their number."""
        shown, more = self.alternatives[:_MOST_SHOWN], len(self.alternatives) - _MOST_SHOWN
        return (*shown, f"and {more} more") if more > 0 else shown

    def list_details(self) -> Iterator[tuple[str, str]]:
        """Yield the lines below the cause, as pairs of label and text; a repeated label is an empty text."""
        for label, texts in self._label():
            for number, text in enumerate(texts):
                yield ("" if number else label), text

    @property
    def sentence(self) -> str:
        """The whole diagnosis on one line, as `sentence` of JSON.

        Examples
        --------
        >>> Diagnosis("none", "nothing known explains y", ("13 norms were tried",)).sentence
        'Nothing known explains y. Evidence: 13 norms were tried.'
        """
        parts = [f"{label.capitalize()}: {'; '.join(texts)}." for label, texts in self._label() if texts]
        return " ".join([f"{begin_sentence(self.cause)}.", *parts])

    def _label(self) -> tuple[tuple[str, Sequence[str]], ...]:
        return (
            ("evidence", self.evidence),
            ("also", self.shown_alternatives),
            *(() if self.remedy is None else ((label_remedy(self.remedy), (self.remedy,)),)),
            ("to tell", () if self.next_step is None else (self.next_step,)),
        )


ANY_NORM = "y may be any norm with unknown gamma and beta"
"""The cause where y has too few values for each gamma."""

_PASSING = ("check", "--max-ulp", "--rtol", "--atol")
"""The first words of remedies, behind `normcli`, that only tolerate more."""


def label_remedy(remedy: str) -> str:
    """Return the label of a remedy, by what it is for.

    `reproduce`: a command or option with which normcli gives y; `accept`: one that y passes; `to tell`: a file
    that would say more; `fix`: what to change in the kernel.

    Examples
    --------
    >>> [*map(label_remedy, ("normcli ln … --ddof 1", "--max-ulp 2", "divide by n"))]
    ['reproduce', 'accept', 'fix']
    """
    if remedy.removeprefix("normcli ").startswith(_PASSING):
        return "accept"
    if remedy.startswith("--actual"):
        return "to tell"
    return "reproduce" if remedy.startswith(("normcli ", "--")) else "fix"


_WORDS_FIRST = frozenset(("no", "nothing", "the", "every", "what", "running", "another"))
"""First words that get a capital at the beginning of a sentence; y, eps, and a norm's name stay as they are."""


def begin_sentence(clause: str) -> str:
    """Return a clause with a capital, as the beginning of a sentence; unchanged if it begins with a name."""
    first, _, _ = clause.partition(" ")
    return clause[:1].upper() + clause[1:] if first in _WORDS_FIRST else clause


def count_words(text: str) -> int:
    """Return the number of words, names and numbers in a text; signs of operations are none.

    Examples
    --------
    >>> count_words("y is 0.5 · x + 1 over c h w")
    9
    """
    return sum(any(map(str.isalnum, word)) for word in text.split())


def add_clauses(text: str, clauses: Iterable[str], joint: str = ", ") -> tuple[str, tuple[str, ...]]:
    """Return a cause with the clauses for which it has room (15 words in all), and the remaining clauses.

    Examples
    --------
    >>> add_clauses("y is batch normalization over n h w", ["eps 1e-05", "a b c d e f", "ddof 1"])
    ('y is batch normalization over n h w, eps 1e-05, ddof 1', ('a b c d e f',))
    """
    left = []
    for clause in clauses:
        longer = f"{text}{joint}{clause}"
        if count_words(longer) <= MOST_WORDS:
            text = longer
        else:
            left.append(clause)
    return text, tuple(left)


def join_words(words: Sequence[str], joint: str = "or") -> str:
    """Return words as a list in a sentence, such as `a, b or c`; there must be at least one.

    Examples
    --------
    >>> join_words(["bn", "in", "ln"])
    'bn, in or ln'
    """
    *others, last = words
    return f"{', '.join(others)} {joint} {last}" if others else last
