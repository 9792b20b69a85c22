"""The record of a fault: forward and backward passes have tables of such records."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_PLACE = re.compile(r"\{(\w+)\}")


class Fault(NamedTuple):
    """One way in which a kernel is wrong.

    Parameters
    ----------
    id : str
        The wrong part, and how it is wrong: `dx-pull-missing`. JSON has it; it never changes.
    words : str
        The cause, in at most 15 words; values of the tensor stand in braces.
    remedy : str
        How to mend the kernel.
    example : str
        The wrong code, in one line of NumPy.
    shown : tuple of str
        What lists have in the place of each value, in their order; behind the words where there is none.
    """

    id: str
    words: str
    remedy: str
    example: str
    shown: tuple[str, ...] = ()

    def generalize(self) -> Fault:
        """Return the fault as it is listed: of no tensor.

        Examples
        --------
        >>> Fault("dx-ddof", "it is divided by {0}, not {1}", "divide by {1}", "", ("N", "M")).generalize()[1:3]
        ('it is divided by N, not M', 'divide by M')
        """
        places = dict.fromkeys(_PLACE.findall(f"{self.words} {self.remedy}"))
        values = dict(zip(places, self.shown, strict=False))
        words, remedy = (_PLACE.sub(lambda place: values[place[1]], text) for text in (self.words, self.remedy))
        return self._replace(words=" ".join([words, *self.shown[len(places) :]]), remedy=remedy)


class Row(NamedTuple):
    """A row of a table: a fault, and the numbers of a kernel that has it.

    Parameters
    ----------
    fault : Fault
    make : callable
        Returns, for a case, the numbers that such a kernel would have used or made: one variant, None, or
        several variants where a number has to be found.
    needs : str
        Names of `parts` that a case must have for the fault to be possible, such as `gamma beta`.
    """

    fault: Fault
    make: Callable[[Any], Any] = lambda _: None
    needs: str = ""

    def vary(self, case: Any) -> Iterable[Any]:
        """Return all variants of a case that kernels with this fault would have used or made."""
        made = self.make(case) if case.parts.issuperset(self.needs.split()) else None
        if isinstance(made, list | Iterator):
            return made
        return () if made is None else (made,)
