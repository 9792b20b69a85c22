"""The tables of algorithms, of cast orders, and of what frameworks do. To add one, add a row.

A common computation is named `ALGORITHM:DTYPE`, or `ALGORITHM:DTYPE:CAST`: two-pass:float32.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from normcli.algorithms import moment_formulas as moments
from normcli.algorithms import row_formula as elements
from normcli.algorithms import summation_orders as sums
from normcli.errors import UsageError
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from normcli.algorithms.moment_formulas import Measure
    from normcli.algorithms.row_formula import Write
    from normcli.algorithms.summation_orders import Add

Item = TypeVar("Item")


class Algorithm(NamedTuple):
    """An algorithm that accumulates mean and variance.

    Parameters
    ----------
    name : str
    words : str
        Its words in a sentence.
    add : Add
        The order of addition.
    measure : Measure
        The formula of norms that centre.
    squares : str
        The words for norms that do not centre, which add squares only; empty if the algorithm is none for them.
    in_turn : bool
        Whether values are added from first to last, so that the place where a sum overflows can be named.
    """

    name: str
    words: str
    add: Add
    measure: Measure
    squares: str = ""
    in_turn: bool = False


_ALGORITHMS = (
    Algorithm(
        "one-pass", "E[x²] − E[x]² in one pass", sums.add_in_turn, moments.measure_one_pass,
        squares="squares added in turn", in_turn=True,
    ),
    Algorithm(
        "one-pass-clamped", "E[x²] − E[x]² in one pass, at least 0", sums.add_in_turn,
        moments.measure_one_pass_clamped, in_turn=True,
    ),
    Algorithm(
        "shifted", "one pass over x less the first value", sums.add_in_turn, moments.measure_shifted,
        in_turn=True,
    ),
    Algorithm(
        "two-pass", "the mean first, then E[(x − mean)²]", sums.add_in_turn, moments.measure_two_pass,
        in_turn=True,
    ),
    Algorithm(
        "tree", "two passes, each half added to the other", sums.add_by_halves, moments.measure_two_pass,
        squares="squares added by halves",
    ),
    Algorithm("pairwise", "two passes, added as NumPy does", sums.add_pairwise, moments.measure_two_pass,
        squares="squares added as NumPy does",),
    Algorithm("welford", "Welford's recurrence", sums.add_in_turn, moments.measure_welford),
    Algorithm(
        "chunked-welford", "Welford's recurrence in 32 threads, merged by halves", sums.add_by_halves,
        moments.measure_chunked_welford,
    ),
)  # fmt: skip

ALGORITHMS: Mapping[str, Algorithm] = MappingProxyType({row.name: row for row in _ALGORITHMS})
"""The common algorithms by name, the cheapest first: by operations for each value, then by reads."""

DTYPES = ("float16", "bfloat16", "float32", "float64")
"""The dtypes of sums, the cheapest first."""


KERNELS = (
    Algorithm(
        "torch-cpu", "added as in torch's CPU kernels with AVX2", sums.add_in_vectors, moments.measure_cascade,
        squares="squares added as in torch's CPU kernels with AVX2",
    ),
    Algorithm(
        "torch-cpu-half", "added as in torch's CPU kernels with AVX2 of half precision", sums.add_in_vectors,
        moments.measure_cascade_of_halves,
    ),
    Algorithm(
        "torch-cpu-batch", "added in float64 as in torch's CPU kernel for batch norm", sums.add_in_turn,
        moments.measure_in_float64,
    ),
)  # fmt: skip
"""The algorithms of kernels whose source was read, reproduced to the bit; each is a kind of a common one."""


class Cast(NamedTuple):
    """An order of casts: which values are rounded when, from the statistics to the result.

    Parameters
    ----------
    name : str
    words : str
        The order's words in a sentence.
    write : Write
        The function that calculates y in this order.
    needs_gamma : bool
        Whether the order differs from the usual one only if there is a gamma.
    narrows : bool
        Whether the order differs from the usual one only if sums are wider than the result.
    """

    name: str
    words: str
    write: Write
    needs_gamma: bool = False
    narrows: bool = False

    def differs(self, *, widens: bool, has_gamma: bool) -> bool:
        """Whether results may differ from the usual order's; `widens`: sums are wider than the result."""
        return (has_gamma or not self.needs_gamma) and (widens or not self.narrows)


_CASTS = (
    Cast("once", "rounded once at the end", elements.write_once),
    Cast("statistics", "mean and divisor rounded first", elements.write_from_rounded, narrows=True),
    Cast("before-gamma", "x̂ rounded before gamma", elements.write_before_gamma, needs_gamma=True, narrows=True),
)

CASTS: Mapping[str, Cast] = MappingProxyType({row.name: row for row in _CASTS})
"""The cast orders by name, the usual one first."""

FORMS = (
    Cast("divided", "divided by the root itself", elements.write_divided),
    Cast("gamma-first", "gamma over the root first", elements.write_scaled, needs_gamma=True),
    Cast("folded", "as x · a + b", elements.write_folded),
    Cast("fused", "gamma and beta in one rounding", elements.write_fused, needs_gamma=True),
    Cast("folded-fused", "as x · a + b in one rounding", elements.write_folded_fused),
    Cast("wide-root", "the root taken in float64", elements.write_wide_root),
    Cast("folded-wide-root", "as x · a + b, the root taken in float64", elements.write_folded_wide_root),
    Cast(
        "stored", "mean and divisor rounded first, then x · a + b in one rounding", elements.write_from_stored,
        narrows=True,
    ),
    Cast(
        "stored-sums", "mean, sum of squares and divisor rounded first, then x · a + b in one rounding",
        elements.write_from_stored_sums, narrows=True,
    ),
)  # fmt: skip
"""Other orders of the operations from statistics to y, whose results differ in the last place."""


def find_algorithm(name: str) -> Algorithm:
    """Return the common algorithm of a name.

    Raises
    ------
    UsageError
        If there is none; the message has similar names.
    """
    return _find(name, ALGORITHMS, "algorithm")


def find_cast(name: str) -> Cast:
    """Return the cast order of a name, or raise `UsageError`."""
    return _find(name, CASTS, "cast order")


def find_dtype(name: str) -> str:
    """Return `name` if it is a dtype of sums, or raise `UsageError`."""
    return _find(name, {dtype: dtype for dtype in DTYPES}, "dtype of sums")


def _find(name: str, rows: Mapping[str, Item], what: str) -> Item:
    if name in rows:
        return rows[name]
    from difflib import get_close_matches

    near = get_close_matches(name.lower(), rows, n=2)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(rows)}"
    raise UsageError(f"there is no {what} {name!r}; {hint}")
