"""The record of a fault, whose words `faults.toml` has, and the row of a table of faults, by its id."""

from __future__ import annotations

import functools
import pkgutil
import re
import tomllib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from normcli.dtypes import Floats

_PLACE = re.compile(r"\{(\w+)\}")


class Fault(NamedTuple):
    """One way in which a kernel is wrong.

    Parameters
    ----------
    id : str
        The wrong part and its fault, `dx-pull-missing`, as JSON has them; an id never changes.
    words : str
        The cause, in at most 15 words. Names in braces, such as `{eps}`, are filled in with values found in a
        tensor.
    remedy : str
        The change that mends the kernel; it may have names in braces too.
    example : str
        The wrong code, in one line of NumPy.
    shown : tuple of str
        Where faults are listed without a tensor, the texts that fill the braces, in order. Texts for which
        there are no braces are appended to `words`.
    """

    id: str
    words: str
    remedy: str
    example: str
    shown: tuple[str, ...] = ()

    def fill(self, values: Sequence[str]) -> Fault:
        """Return the fault with values in the numbered braces of its words."""
        return self._replace(words=self.words.format(*values), remedy=self.remedy.format(*values))

    def generalize(self) -> Fault:
        """Return the fault as a list of faults shows it, with the names in braces replaced by `shown`.

        Examples
        --------
        >>> Fault("dx-ddof", "it is divided by {0}, not {1}", "divide by {1}", "", ("N", "M")).generalize()[1:3]
        ('it is divided by N, not M', 'divide by M')
        """
        places = dict.fromkeys(_PLACE.findall(f"{self.words} {self.remedy}"))
        values = dict(zip(places, self.shown, strict=False))
        words, remedy = (_PLACE.sub(lambda place: values[place[1]], text) for text in (self.words, self.remedy))
        return self._replace(words=" ".join([words, *self.shown[len(places) :]]), remedy=remedy)


@functools.cache
def _read_faults() -> Mapping[str, Fault]:
    table = tomllib.loads((pkgutil.get_data("normcli.checking", "faults.toml") or b"").decode())
    return {name: Fault(name, **{**row, "shown": tuple(row.get("shown", ()))}) for name, row in table.items()}


def find_fault(name: str) -> Fault:
    """Return the fault of `faults.toml` that has an id."""
    return _read_faults()[name]


class Row(NamedTuple):
    """A row of a table of faults: a fault's id, and a function that calculates as a kernel with it does.

    Parameters
    ----------
    id : str
        The id, by which `faults.toml` has the fault's words.
    make : callable
        Takes a case (the data of a wrong tensor or gradient), and returns a variant: the numbers that a kernel
        with the fault makes of it. It returns a list or an iterator of variants if the fault has several forms,
        and None if the case cannot have the fault.
    needs : str
        Names that must be in the `parts` of a case for the fault to be possible, such as `gamma beta`.
    """

    id: str
    make: Callable[[Any], Any] = lambda _: None
    needs: str = ""

    @property
    def fault(self) -> Fault:
        """The fault, with its words."""
        return find_fault(self.id)

    def vary(self, case: Any) -> Iterable[Any]:
        """Return the variants of a case: what kernels with this row's fault make of its data.

        It is a list, an iterator or a tuple; empty if the case lacks a part in `needs`, or if `make` returns
        None.
        """
        made = self.make(case) if case.parts.issuperset(self.needs.split()) else None
        if isinstance(made, list | Iterator):
            return made
        return () if made is None else (made,)


_BLOCKS = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
"""Block lengths, in values, to which kernels pad a group."""


def list_padded_counts(count: int) -> list[int]:
    """Return the lengths to which kernels pad a group of `count` values, in increasing order.

    They are the next power of two and whole blocks, at most four times the group's size.

    Examples
    --------
    >>> list_padded_counts(100)
    [104, 112, 128, 256]
    """
    ends = {1 << max(0, count - 1).bit_length(), *(-count % block + count for block in _BLOCKS)}
    return sorted(end for end in ends if count < end <= 4 * count)


def list_padded_moments(
    mean: Floats,
    add_squares: Callable[[Floats], Floats],
    count: float | Floats,
    freedom: float | Floats,
    zeros: float | Floats,
) -> Mapping[str, list[tuple[Floats, Floats]]]:
    """Return the mean and variance of each form of statistics that count zeros of padding, by their fault.

    The faults are `count` (the sum of squares is divided by the padded length), `variance` (the sum of squares
    has the zeros' deviations from the mean), `mean` (the sum is divided by the padded length), and `both`.

    Parameters
    ----------
    mean : ndarray
        The mean of each group, without padding.
    add_squares : callable
        Takes centres of the groups, and returns the sums of squares about them.
    count : float or ndarray
        The number of values in a group, or in each.
    freedom : float or ndarray
        The number by which a sum of squares is divided: n − ddof.
    zeros : float or ndarray
    """
    moved, padded = mean * (count / (count + zeros)), freedom + zeros
    own, about = add_squares(mean), add_squares(moved)
    whole = about + zeros * moved**2
    return {
        "count": [(mean, own / padded)],
        "variance": [(mean, (own + zeros * mean**2) / divided) for divided in (freedom, padded)],
        "mean": [(moved, total / freedom) for total in (own, about)],
        "both": [(moved, one) for one in (whole / padded, about / padded, own / padded, whole / freedom)],
    }
