"""Candidates for the arithmetic of a kernel, run on sampled groups and scored by the share of equal values."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.algorithms.row_computation import Accumulation, Computation, list_accumulations
from normcli.algorithms.row_formula import RowElements, RowFormula
from normcli.algorithms.table import CASTS, FORMS, KERNELS
from normcli.checking.check import calculate_rows
from normcli.identifying.models.divisor_fit import list_usual_eps
from normcli.identifying.sampling import locate_value, take_groups
from normcli.identifying.search.affine_step import round_array
from normcli.identifying.search.match import Match
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from normcli.algorithms.summation_orders import Values
    from normcli.checking.check import Affine
    from normcli.dtypes import Floats, Selected
    from normcli.identifying.search.affine_step import AffineStep
    from normcli.norms.plan import Plan
    from normcli.norms.request import Request

LEAST_SHARE = 0.9
"""The least share of values of y that are equal to a computation's result, for it to be named."""


class Candidate(NamedTuple):
    """A norm that y may be the result of.

    Parameters
    ----------
    request : Request
        The norm, with its axes, groups and eps.
    way : str
        The way in which gamma and beta entered: one of `affine_step.WAYS`.
    order : tuple of int
        The permutation that puts the axes of the actual tensor into the order of the input's.
    """

    request: Request
    way: str
    order: tuple[int, ...]


class Trial(NamedTuple):
    """Sampled groups of x and y, on which computations are tried.

    Parameters
    ----------
    plan : Plan
    chosen : ndarray of int
        The indices of the groups, ascending.
    rows, actual : ndarray, shape (groups, group_size)
        The groups of x, and of y.
    affine : tuple of ndarray or None
        Scale and shift of each value, of the shape of the rows; None for 1 and for 0.
    """

    plan: Plan
    chosen: NDArray[np.intp]
    rows: Values
    actual: Values
    affine: Affine

    @classmethod
    def take(
        cls, plan: Plan, x: NDArray[Any], y: NDArray[Any], step: AffineStep, chosen: NDArray[np.intp]
    ) -> Trial:
        """Return a trial of the groups of a plan with the indices `chosen`.

        Parameters
        ----------
        plan : Plan
        x, y : ndarray
            Input and output, of the plan's shape.
        step : AffineStep
            The gamma and beta of the whole tensor, in the way in which they entered.
        chosen : ndarray of int
        """
        rows, actual = (take_groups(plan.grid, values, chosen) for values in (x, y))
        scale, shift = (
            None if p is None else take_groups(plan.grid, p, chosen) for p in (step.scale, step.shift)
        )
        return cls(plan, chosen, rows, actual, (scale, shift))

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of y, in native byte order."""
        return self.actual.dtype.newbyteorder("=")

    def score_all(self) -> Iterator[tuple[list[Computation], Floats]]:
        """Yield pairs (computations, shares): the share of y's values that each computation gives bit for bit.

        There is one pair for each accumulation that is known. Its computations are the accumulation with each
        order of casts. `shares` has the shape (computations, eps), for the norm's eps and the other usual ones.
        """
        formula, has_gamma = RowFormula.of(self.plan), self.affine[0] is not None
        for accumulation in _list_all(formula):
            widens = accumulation.dtype != self.dtype.name
            given = self.measure(accumulation, list_usual_eps(formula.eps))
            casts = [
                cast for cast in (*CASTS.values(), *FORMS) if cast.differs(widens=widens, has_gamma=has_gamma)
            ]
            computations = [Computation(accumulation, cast) for cast in casts]
            equal = (self.find_equal(computation.write(given)) for computation in computations)
            yield computations, np.stack([one.mean(axis=(1, 2)) for one in equal])

    def measure(self, accumulation: Accumulation, every: Sequence[float | None]) -> RowElements:
        """Return the elements of the rows for several eps, with statistics computed in one way."""
        formula, wide = RowFormula.of(self.plan), accumulation.widen(self.rows)
        moments = accumulation.measure(wide, formula)
        return RowElements.of(wide, moments, formula, self.affine, self.dtype, every)

    def write(self, computation: Computation, eps: float | None) -> Values:
        """Return the result of a computation with an eps, of the shape and dtype of the rows of y."""
        written: Values = computation.write(self.measure(computation.accumulation, (eps,)))[0]
        return written

    def count_told(self, computation: Computation) -> float:
        """Return the number of groups where a computation with the norm's default eps gives other bits than y.

        Each such group is evidence for another eps. Groups are counted and not values, as another rounding of a
        group's statistics changes all of its values.
        """
        row = self.plan.norm
        formula = RowFormula.of(self.plan)._replace(eps=row.eps, eps_mode=row.eps_mode)
        written = computation.run(self.rows, formula, self.dtype, self.affine)
        return float(np.count_nonzero(~self.find_equal(written).all(axis=1)))

    def find_equal(self, written: Values) -> Selected:
        """Return a bool array, True for values of y that are equal to `written`, the result of a computation.

        NaN equals NaN. `written` may have a further first axis (one result for each of several eps); then the
        array has it, too.
        """
        same: Selected = (self.actual == written) | (np.isnan(self.actual) & np.isnan(written))
        return same

    def find_rough(self, eps: float | None) -> Selected:
        """Return True for values of y that differ from the exact result, rounded to y's dtype, and from beta.

        Only these show how a kernel calculates. The array has the shape of y; `eps` is that of the exact
        result, None for norms without eps.
        """
        rough: Selected = ~self.find_equal(round_array(self._calculate(eps), self.dtype))
        shift = self.affine[1]
        return rough if shift is None else rough & ~self.find_equal(round_array(shift, self.dtype))

    def describe(self, candidate: Candidate, computation: Computation, bits: float) -> Match:
        """Return a candidate norm as a match, with the distances of y from its exact result.

        The dtype of the computation's sums is the precision of the match, `bits` is its evidence.
        """
        eps = candidate.request.eps
        return Match.of_plan(
            self.plan.change_spec(eps=eps),
            self.actual.astype(np.float64),
            self._calculate(eps),
            self.dtype,
            locate=functools.partial(locate_value, self.plan.grid, self.chosen),
            precision=computation.accumulation.dtype,
            order=candidate.order,
            affine=candidate.way,
            bits=bits,
        )

    def _calculate(self, eps: float | None) -> Floats:
        return calculate_rows(self.plan.change_spec(eps=eps), self.rows, self.affine)[0]


def _list_all(formula: RowFormula) -> Iterator[Accumulation]:
    """Yield every way to add up a norm's statistics, the kernels of frameworks first."""
    for kernel in KERNELS:
        if formula.centres or kernel.squares:
            yield Accumulation(kernel, "float32")
    yield from list_accumulations(formula)
