"""The diagnosis of a tensor: one record for the terminal, JSON and Python."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

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
"""Alternatives that are shown to a reader."""


class Diagnosis(NamedTuple):
    """A diagnosis of a tensor; texts are clauses, without a full stop.

    Parameters
    ----------
    verdict : str
        One of `VERDICTS`.
    cause : str
        What made the tensor, subject first, in at most `MOST_WORDS` words before the group whose rows differ.
    evidence : tuple of str
        The facts behind it.
    alternatives : tuple of str
        What fits as well, the likeliest first.
    remedy : str or None
        The command or the change of the kernel that makes both agree.
    next_step : str or None
        How to find out more.
    fault : str or None
        The id of the fault, as `normcli help faults` lists them.
    """

    verdict: str
    cause: str
    evidence: tuple[str, ...] = ()
    alternatives: tuple[str, ...] = ()
    remedy: str | None = None
    next_step: str | None = None
    fault: str | None = None

    @property
    def shown_alternatives(self) -> tuple[str, ...]:
        """The first alternatives, and how many more there are."""
        shown, more = self.alternatives[:_MOST_SHOWN], len(self.alternatives) - _MOST_SHOWN
        return (*shown, f"and {more} more") if more > 0 else shown

    def list_details(self) -> Iterator[tuple[str, str]]:
        """Yield the lines below the cause, each with its label, or with none below another of its kind."""
        for label, texts in self._label():
            for number, text in enumerate(texts):
                yield ("" if number else label), text

    @property
    def sentence(self) -> str:
        """All of it on one line, as JSON's `sentence` has it.

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
            ("try", () if self.remedy is None else (self.remedy,)),
            ("to tell", () if self.next_step is None else (self.next_step,)),
        )


_WORDS_FIRST = frozenset(("no", "nothing", "the", "every", "what", "running", "another"))
"""First words that get a capital where a sentence begins; y, eps, and a norm's name stay as they are."""


def begin_sentence(clause: str) -> str:
    """Return a clause as the beginning of a sentence."""
    first, _, _ = clause.partition(" ")
    return clause[:1].upper() + clause[1:] if first in _WORDS_FIRST else clause


def count_words(text: str) -> int:
    """Return how many words, names and numbers a text has; signs of operations are none.

    Examples
    --------
    >>> count_words("y is 0.5 · x + 1 over c h w")
    9
    """
    return sum(any(map(str.isalnum, word)) for word in text.split())


def add_clauses(text: str, clauses: Iterable[str], joint: str = ", ") -> tuple[str, tuple[str, ...]]:
    """Return a cause with the clauses for which it has room, and the remaining clauses.

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
    """Return `a, b or c`.

    Examples
    --------
    >>> join_words(["bn", "in", "ln"])
    'bn, in or ln'
    """
    *others, last = words
    return f"{', '.join(others)} {joint} {last}" if others else last
