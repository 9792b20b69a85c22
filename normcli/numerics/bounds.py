"""Bounds of the errors of the fast paths: rows that the code decides by, and that tests measure."""

from __future__ import annotations

from normcli.tuples import NamedTuple


class Bound(NamedTuple):
    """An upper bound of an error, as a part of the number that is off.

    Parameters
    ----------
    bits : int
        The error is below 2^−bits.
    because : str
        Why it holds; u is 2⁻⁵³.
    source : str
        Where the reason is proved: a paper, or the name of a test that measures it.
    """

    bits: int
    because: str
    source: str

    @property
    def error(self) -> float:
        """2^−bits."""
        return 2.0**-self.bits


PAIR = Bound(
    99,
    "a sum is within 3 u², a product 7 u², a quotient 15 u², a root 4 u² of itself where pairs do not overlap; "
    "three bits are left for pairs that overlap by one",
    "Joldes, Muller & Popescu 2017, Tight and rigorous error bounds for double-word arithmetic; test_bounds",
)
PAIRS = Bound(95, "sixteen operations on pairs, one after the other", "PAIR; test_bounds")

LOGARITHM = Bound(
    100,
    "the table and first three coefficients of artanh s are pairs; the others are rounded at 2⁻¹⁰⁴ of s "
    "for |s| < 2⁻⁸; and s is a quotient of pairs",
    "Tang 1990, Table-driven implementation of the logarithm; test_powers",
)
POWER = Bound(
    97,
    "beside four products of pairs, the last terms of the series of 2ᶻ are rounded at 2⁻¹⁰⁷ for |z| < 2⁻¹²; "
    "the error of z comes on top",
    "Tang 1989, Table-driven implementation of the exponential function; test_powers",
)
SUM_OF_POWERS = Bound(
    88,
    "a power of 2⁻ᶻ is off by z · 2⁻¹⁰⁰ of itself; of n powers of which one is 1, the mean of z, each weighted "
    "with its power, is below log₂ n + 1; and each of up to 2¹² foldings adds an operation on pairs",
    "LOGARITHM; test_lengths",
)
GRADIENT_POWER = Bound(
    80,
    "2⁻¹⁰⁰ of a logarithm below 2⁹ beside 2⁻⁹⁷ of the power, sixteen times that for a root, ten operations",
    "LOGARITHM, POWER; test_gradients",
)
