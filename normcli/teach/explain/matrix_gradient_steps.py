"""The story of dx of a norm whose groups are matrices: σ changes with each value by u and v."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine.sn.gradients import CANCELLED, find_sigma_gradient
from normcli.engine.sn.passes import lay_matrix
from normcli.teach.explain.gradient_steps import BackwardSteps
from normcli.teach.explain.iteration_steps import format_vector
from normcli.teach.explain.story import StoryStep
from normcli.teach.formulas.exact_numbers import Numbers
from normcli.teach.formulas.expression import Constant, Difference, Sum

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from normcli.teach.formulas.chain_rule import Chain
    from normcli.teach.formulas.expression import Expression

_CHANGES = "σ changes with each value by u of its row times v of its column"


class MatrixBackwardSteps(BackwardSteps):
    """The steps to dx of a value that is divided by the largest singular value, or by an estimate of it."""

    def _make_numbers(self, arrays: Mapping[str, NDArray[Any]], known: Mapping[str, Fraction]) -> Numbers:
        iteration = self.spec.iteration
        by_sigma = find_sigma_gradient(lay_matrix(self.plan, self.group.values), iteration)
        if by_sigma is None:
            sentence = "Two of the singular values are equally large: there is no derivative."
            self._stop(StoryStep("no derivative", sentence))
        u, v = by_sigma.list_vectors()
        if iteration is None:
            left, right = (format_vector(np.array(vector, np.float64)) for vector in (u, v))
            sentence = f"The singular vectors of σ have the length 1: u = {left} and v = {right}."
            self.steps += [StoryStep("vectors", sentence), StoryStep("changes", f"{_CHANGES}.")]
        else:
            self.steps.append(StoryStep("changes", f"u and v count as constants: {_CHANGES}."))
        places = lay_matrix(self.plan, np.arange(self.group.count))
        known = {**known, "sigma": by_sigma.sigma, "divisor": by_sigma.sigma}
        return _MatrixNumbers(self.chain, arrays, known, (places, u, v))


class _MatrixNumbers(Numbers):
    """The numbers of a matrix by name, with u and v of each value.

    Parameters
    ----------
    chain, arrays, known
        As of `Numbers`.
    vectors : tuple
        The number of the value at each place of the matrix, and the numbers of u and v.
    """

    def __init__(
        self,
        chain: Chain,
        arrays: Mapping[str, NDArray[Any]],
        known: Mapping[str, Fraction],
        vectors: tuple[NDArray[np.intp], list[Fraction], list[Fraction]],
    ) -> None:
        super().__init__(chain, arrays, known)
        self._places, self._u, self._v = vectors

    def take(self, place: int) -> dict[str, Constant]:
        """Return the names of one value of the matrix."""
        ((row, column),) = np.argwhere(self._places == place)
        return {**super().take(place), "u": Constant(self._u[row]), "v": Constant(self._v[column])}

    def work_out(self, expression: Expression, own: Mapping[str, Constant] | None = None) -> Fraction:
        """Return the value of an expression; 0 where its terms cancel to the rounding of u and v."""
        own = own or {}
        found = super().work_out(expression, own)
        if own and isinstance(expression, Sum | Difference):
            largest = max(abs(super(_MatrixNumbers, self).work_out(part, own)) for part in expression.parts)
            return found if abs(found) * 2**CANCELLED > largest else Fraction(0)
        return found
