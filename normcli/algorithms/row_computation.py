"""A computation, which is an algorithm, a dtype of sums and an order of casts, and its result for rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.algorithms.moment_formulas import measure_length, measure_squares
from normcli.algorithms.row_formula import RowElements, RowFormula
from normcli.algorithms.table import ALGORITHMS, CASTS, DTYPES, find_algorithm, find_cast, find_dtype
from normcli.dtypes import find_type
from normcli.errors import MissingExtraError, UsageError
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from normcli.algorithms.moment_formulas import RowMoments
    from normcli.algorithms.summation_orders import Values
    from normcli.algorithms.table import Algorithm, Cast

_WORDS = ("ALGORITHM:DTYPE", "ALGORITHM:DTYPE:CAST")


class Accumulation(NamedTuple):
    """The computation of statistics: an algorithm, and the dtype of its sums.

    Parameters
    ----------
    algorithm : Algorithm
    dtype : str
        The dtype to which the values are rounded first, and then the result of every operation.
    """

    algorithm: Algorithm
    dtype: str

    @property
    def name(self) -> str:
        """The name on a command line, such as `two-pass:float32`."""
        return f"{self.algorithm.name}:{self.dtype}"

    def widen(self, rows: Values) -> Values:
        """Return rows in the dtype of the sums."""
        with np.errstate(all="ignore"):
            return rows.astype(find_type(self.dtype), copy=False)

    def measure(self, rows: Values, formula: RowFormula) -> RowMoments:
        """Return the mean, and variance or mean square, of each row, as a kernel with this algorithm does.

        The rows must be in the dtype of the sums already.
        """
        with np.errstate(all="ignore"):
            if formula.centres:
                return self.algorithm.measure(rows, self.algorithm.add, formula.ddof)
            plain = measure_squares if formula.averages else measure_length
            return plain(rows, self.algorithm.add, formula.ddof)


class Computation(NamedTuple):
    """The computation of a norm, from the values to the result: its statistics, and its order of casts."""

    accumulation: Accumulation
    cast: Cast

    @property
    def name(self) -> str:
        """The name on a command line, `two-pass:float32:statistics`; the usual order of casts is left out."""
        usual = next(iter(CASTS))
        return self.accumulation.name + ("" if self.cast.name == usual else f":{self.cast.name}")

    def describe(self, formula: RowFormula) -> str:
        """Return the computation in words: dtype of sums, algorithm, and order of casts, joined by commas."""
        algorithm, dtype = self.accumulation
        return f"{dtype} sums, {algorithm.words if formula.centres else algorithm.squares}, {self.cast.words}"

    def run(
        self,
        rows: Values,
        formula: RowFormula,
        dtype: np.dtype[Any],
        affine: tuple[Values | None, Values | None] = (None, None),
    ) -> Values:
        """Return y of rows in the dtype of the result, with every operation rounded as by a kernel.

        Parameters
        ----------
        rows : ndarray, shape (groups, values)
        formula : RowFormula
        dtype : dtype
            The dtype of the result.
        affine : tuple of ndarray or None
            Gamma and beta, which broadcast against the rows; None for 1 and for 0.

        Examples
        --------
        The variance of 4097, 4098, 4099, 4100 comes out as 2 instead of 1.25.

        >>> rows = np.array([[1.0, 2.0, 3.0, 4.0]], np.float32) + 4096
        >>> formula = RowFormula(True, True, None, None)
        >>> parse_computation("one-pass:float32").run(rows, formula, rows.dtype)[0, :2]
        array([-1.0606601 , -0.35355338], dtype=float32)
        """
        wide = self.accumulation.widen(rows)
        with np.errstate(all="ignore"):
            moments = self.accumulation.measure(wide, formula)
            return self.write(RowElements.of(wide, moments, formula, affine, dtype))

    def write(self, given: RowElements) -> Values:
        """Return y, in the dtype of the result, for rows and statistics that are in the dtype of the sums."""
        with np.errstate(all="ignore"):
            return self.cast.write(given).astype(given.dtype, copy=False)


def parse_computation(text: str) -> Computation:
    """Return the computation of a name such as `two-pass:float32` or `two-pass:float32:statistics`.

    Raises
    ------
    UsageError
        If the name has another form, or a part that is in no table; the message has similar names.
    """
    names = text.split(":")
    if len(names) not in (2, 3):
        raise UsageError(f"{text!r} is not {' or '.join(_WORDS)}, such as two-pass:float32")
    algorithm, dtype = find_algorithm(names[0]), find_dtype(names[1])
    return Computation(Accumulation(algorithm, dtype), find_cast(names[2] if names[2:] else next(iter(CASTS))))


def list_accumulations(formula: RowFormula) -> Iterator[Accumulation]:
    """Yield the common algorithms that suit a formula, with every dtype of sums, the cheapest first.

    bfloat16 is left out if the package for it is not installed.
    """
    for dtype in DTYPES:
        if has_dtype(dtype):
            for algorithm in ALGORITHMS.values():
                if formula.centres or algorithm.squares:
                    yield Accumulation(algorithm, dtype)


def list_casts(accumulation: Accumulation, dtype: np.dtype[Any], *, has_gamma: bool) -> Iterator[Cast]:
    """Yield the orders of casts that may give different results for a kernel, the usual order first.

    `dtype` is the result's. Orders that need a gamma are left out without one, and those that need wide sums if
    sums have the result's dtype.
    """
    widens = accumulation.dtype != dtype.name
    yield from (cast for cast in CASTS.values() if cast.differs(widens=widens, has_gamma=has_gamma))


def has_dtype(name: str) -> bool:
    """Return True if a dtype is available; False for bfloat16 if its package is not installed."""
    try:
        find_type(name)
    except MissingExtraError:
        return False
    return True
