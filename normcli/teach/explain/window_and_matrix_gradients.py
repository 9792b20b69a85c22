"""The steps to dx for norms with sliding windows, and for norms that divide a matrix by σ."""

from __future__ import annotations

import contextlib
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine.sn.gradients import find_sigma_gradient
from normcli.engine.sn.passes import lay_matrix
from normcli.norms.options import list_own_options
from normcli.teach.explain.gradient_steps import WORDS, BackwardSteps
from normcli.teach.explain.iteration_steps import format_vector
from normcli.teach.explain.measured_group import Outcome, get_number
from normcli.teach.explain.story import SYMBOLS, NoNumberError, StoryStep
from normcli.teach.formulas.chain_rule import Chain, Link, name_slope
from normcli.teach.formulas.exact_numbers import Numbers
from normcli.teach.formulas.expression import Constant, Difference, Sum
from normcli.teach.value_index import format_index

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.teach.explain.measured_group import MeasuredGroup
    from normcli.teach.formulas.expression import Expression


class WindowBackwardSteps(BackwardSteps):
    """The steps to dx of one value, through every window that it lies in.

    Parameters
    ----------
    group : MeasuredGroup
        The value's own window.
    values, dy : ndarray
        The whole tensors.
    """

    def __init__(self, group: MeasuredGroup, values: NDArray[Any], dy: NDArray[Any]) -> None:
        super().__init__(group, running=False)
        self.outcome = group.outcomes[0]
        self.chain = Chain(self.plan, (), given=False)
        self.windows = self._list_windows(values, dy)

    def _list_windows(self, values: NDArray[Any], dy: NDArray[Any]) -> list[Outcome]:
        """Return an `Outcome` with x and dy for each value whose window contains the explained value.

        The values of each window are stored in `self.arrays`, in the same order.
        """
        grid, at = self.plan.grid, self.outcome.index
        axis, reach = grid.axes[0], grid.reach
        assert reach is not None
        first, stop = max(0, at[axis] - reach.after), min(grid.shape[axis], at[axis] + reach.before + 1)
        self.arrays: list[Mapping[str, NDArray[Any]]] = []
        owners = []
        for place in range(first, stop):
            index = (*at[:axis], place, *at[axis + 1 :])
            number = int(grid.locate_groups([np.asarray(i) for i in index]))
            self.arrays.append({"x": grid.take_group(values, number).reshape(-1)})
            x, slope = get_number(values, index), get_number(dy, index)
            owners.append(Outcome(0, index, x, None, {}, math.nan, slope))
        return owners

    def build(self) -> tuple[StoryStep, ...]:
        """Return the steps to dx; only introduction and dx if a number in one of the windows is not finite."""
        self._introduce()
        with contextlib.suppress(NoNumberError):
            self._require_finite_windows()
            self._go_through_windows()
        self._add_dx(self.outcome)
        return tuple(self.steps)

    def _require_finite_windows(self) -> None:
        slopes = [owner.dy for owner in self.windows if owner.dy is not None]
        values = [value for arrays in self.arrays for value in arrays["x"].tolist()]
        if not all(map(math.isfinite, [*slopes, *values])):
            self._stop(StoryStep("not finite", "What is not finite lies within reach: there is no derivative."))

    def _go_through_windows(self) -> None:
        """Add the divisor of each window that contains the value, the derivatives by it, and their sum, dx."""
        layout, window = self.plan.grid.layout, self.spec.window
        ends = [format_index(owner.index, layout) for owner in (self.windows[0], self.windows[-1])]
        where = " … ".join(dict.fromkeys(ends))
        self.steps.append(
            StoryStep("windows", f"The value lies in the windows of {where}: dx is a sum over them.")
        )
        known = {name: Fraction(getattr(window, name)) for name in list_own_options(self.plan.norm)}
        every = [Numbers(self.chain, arrays, known) for arrays in self.arrays]
        for definition in self.chain.shared:
            link = Link(definition.name or "", definition.formula, ())
            step = StoryStep(link.name, f"T{WORDS[link.name][1:]} of each window.", SYMBOLS[link.name])
            self._add_for_each(step, link, every)
        self.links = self.chain.link_shared(every[0].work_out)
        for link in self.links:
            step = StoryStep(
                name_slope(link.name), f"How the loss changes with {WORDS[link.name]} of each window."
            )
            for numbers, found in zip(every, self._add_for_each(step, link, every), strict=True):
                numbers.shared[name_slope(link.name)] = found
        here = next(i for i, owner in enumerate(self.windows) if owner.index == self.outcome.index)
        self.numbers = _WindowNumbers(self.chain, every, here, _name_values(self.outcome))
        self._differentiate(self.outcome)

    def _add_for_each(self, step: StoryStep, link: Link, every: Sequence[Numbers]) -> list[Constant]:
        """Add a step for each window, which calculates a quantity such as its divisor, or the derivative by it.

        Return the results, in the order of the windows. `every` has, for each window, the numbers known so far.
        """
        found = []
        for owner, numbers in zip(self.windows, every, strict=True):
            self.numbers = numbers
            found.append(self._add_link(step._replace(outcome=owner), link, _name_values(owner)))
        return found


def _name_values(owner: Outcome) -> dict[str, Constant]:
    return {"x": Constant(owner.value), "dy": Constant(owner.dy or 0.0)}


class _WindowNumbers(Numbers):
    """The numbers in the formula of a value's dx, by name; sums are over the windows that contain the value."""

    def __init__(self, chain: Chain, every: Sequence[Numbers], here: int, own: dict[str, Constant]) -> None:
        self.chain, self.count, self.arrays = chain, len(every), {}
        self.shared, self._every, self._own = every[here].shared, every, own

    def take(self, place: int) -> dict[str, Constant]:
        """Return the value's numbers, and the derivatives with respect to names of one of its windows."""
        slopes = {name: each for name, each in self._every[place].shared.items() if name.startswith("∂")}
        return {**slopes, **self._own}


_CHANGES = "σ changes with each value by u of its row times v of its column"


class MatrixBackwardSteps(BackwardSteps):
    """The steps to dx of a value that is divided by the largest singular value, or by an estimate of it."""

    def _make_numbers(self, arrays: Mapping[str, NDArray[Any]], known: Mapping[str, Fraction]) -> Numbers:
        """Return the numbers in the matrix's formulas by name, after steps on the singular vectors.

        If the largest singular values are equal, a step says that there is no derivative, and `NoNumberError`
        is raised. `arrays` and `known` are arguments of `Numbers`.
        """
        iteration = self.spec.iteration
        by_sigma = find_sigma_gradient(lay_matrix(self.plan, self.group.values), iteration)
        if by_sigma is None:
            sentence = "Two of the singular values are equally large: there is no derivative."
            self._stop(StoryStep("no derivative", sentence))
        u, v = by_sigma.list_vectors(iteration)
        if iteration is None:
            left, right = (format_vector(np.array(vector, np.float64)) for vector in (u, v))
            sentence = f"The singular vectors of σ have the length 1: u = {left} and v = {right}."
            self.steps += [StoryStep("vectors", sentence), StoryStep("changes", f"{_CHANGES}.")]
        else:
            self.steps.append(StoryStep("changes", f"u and v count as constants: {_CHANGES}."))
        places = lay_matrix(self.plan, np.arange(self.group.count))
        known = {**known, "sigma": by_sigma.sigma, "divisor": by_sigma.sigma}
        return _MatrixNumbers(self.chain, arrays, known, (places, u, v))


_CANCELLED = 140
"""Bits by which a sum is smaller than its terms where nothing but the rounding of u and v is left of it."""


class _MatrixNumbers(Numbers):
    """The numbers of a matrix by name, with `u` of the row and `v` of the column of each value.

    Parameters
    ----------
    chain, arrays, known
        The parameters of `Numbers`.
    vectors : tuple of (ndarray of int, list of Fraction, list of Fraction)
        The matrix of the values' flat indices in the group, the elements of u, and the elements of v.
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
        """Return the numbers of one value by name, `u` of its row and `v` of its column among them."""
        ((row, column),) = np.argwhere(self._places == place)
        return {**super().take(place), "u": Constant(self._u[row]), "v": Constant(self._v[column])}

    def work_out(self, expression: Expression, own: Mapping[str, Constant] | None = None) -> Fraction:
        """Return the exact value of an expression; 0 if its terms cancel to rounding errors of u and v.

        `own` has the numbers of one value by name; None if the expression has only names that all values share.
        """
        own = own or {}
        found = super().work_out(expression, own)
        if own and isinstance(expression, Sum | Difference):
            largest = max(abs(super(_MatrixNumbers, self).work_out(part, own)) for part in expression.parts)
            return found if abs(found) * 2**_CANCELLED > largest else Fraction(0)
        return found
