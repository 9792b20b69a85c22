"""The steps to dx for norms with sliding windows, and for norms that divide a matrix by σ."""

from __future__ import annotations

import contextlib
import functools
import math
from fractions import Fraction
from types import MappingProxyType
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
from normcli.teach.formulas.expression import Constant, Difference, Sum
from normcli.teach.value_index import format_index

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

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
        every = [Chain(self.plan, arrays, known) for arrays in self.arrays]
        for definition in every[0].shared:
            link = Link(definition.name or "", definition.formula, ())
            step = StoryStep(link.name, f"T{WORDS[link.name][1:]} of each window.", SYMBOLS[link.name])
            self._add_for_each(step, link, every)
        for link in every[0].links:
            step = StoryStep(
                name_slope(link.name), f"How the loss changes with {WORDS[link.name]} of each window."
            )
            for chain, found in zip(every, self._add_for_each(step, link, every), strict=True):
                chain.numbers[name_slope(link.name)] = found
        here = next(i for i, owner in enumerate(self.windows) if owner.index == self.outcome.index)
        own = _name_values(self.outcome)
        self.chain = _WindowChain(every, here, own)
        self._differentiate(self.outcome, own)

    def _add_for_each(self, step: StoryStep, link: Link, every: Sequence[Chain]) -> list[Constant]:
        """Add a step for each window, which calculates a quantity such as its divisor, or the derivative by it.

        Return the results, in the order of the windows. `every` has, for each window, the numbers known so far.
        """
        found = []
        for owner, chain in zip(self.windows, every, strict=True):
            self.chain = chain
            found.append(self._add_link(step._replace(outcome=owner), link, _name_values(owner)))
        return found


def _name_values(owner: Outcome) -> dict[str, Constant]:
    return {"x": Constant(owner.value), "dy": Constant(owner.dy or 0.0)}


class _WindowChain(Chain):
    """The formulas of a value's own window, in which sums are over the windows that contain the value."""

    def __init__(self, every: Sequence[Chain], here: int, own: dict[str, Constant]) -> None:
        vars(self).update(vars(every[here]), arrays={}, count=len(every))
        self._every, self._own = every, own

    def take(self, place: int) -> dict[str, Constant]:
        """Return the value's numbers, and the derivatives with respect to names of one of its windows."""
        slopes = {name: each for name, each in self._every[place].numbers.items() if name.startswith("∂")}
        return {**slopes, **self._own}


_CHANGES = "σ changes with each value by u of its row times v of its column"


class MatrixBackwardSteps(BackwardSteps):
    """The steps to dx of a value that is divided by the largest singular value, or by an estimate of it."""

    def _choose_chain(self, known: dict[str, Fraction]) -> Callable[..., Chain]:
        """Return the function that makes the matrix's formulas, after steps on its singular vectors.

        σ is put into `known`.

        If the largest singular values are equal, a step says that there is no derivative, and `NoNumberError`
        is raised.
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
        known["sigma"] = by_sigma.sigma
        places = lay_matrix(self.plan, np.arange(self.group.count))
        return functools.partial(_MatrixChain, vectors=(places, u, v))


_CANCELLED = 140
"""Bits by which a sum is smaller than its terms where nothing but the rounding of u and v is left of it."""


class _MatrixChain(Chain):
    """The formulas of a matrix, with `u` of the row and `v` of the column of each value.

    Parameters
    ----------
    *arguments, **options
        The parameters of `Chain`.
    vectors : tuple of (ndarray of int, list of Fraction, list of Fraction)
        The matrix of the values' flat indices in the group, the elements of u, and the elements of v.
    """

    def __init__(
        self, *arguments: Any, vectors: tuple[NDArray[np.intp], list[Fraction], list[Fraction]], **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self._places, self._u, self._v = vectors

    def take(self, place: int) -> dict[str, Constant]:
        """Return the numbers of one value by name, `u` of its row and `v` of its column among them."""
        ((row, column),) = np.argwhere(self._places == place)
        return {**super().take(place), "u": Constant(self._u[row]), "v": Constant(self._v[column])}

    def work_out(self, expression: Expression, own: Mapping[str, Constant] = MappingProxyType({})) -> Fraction:
        """Return the exact value of an expression; 0 if its terms cancel to rounding errors of u and v.

        `own` has the numbers of one value by name, if the expression has any of them.
        """
        found = super().work_out(expression, own)
        if own and isinstance(expression, Sum | Difference):
            largest = max(abs(super(_MatrixChain, self).work_out(part, own)) for part in expression.parts)
            return found if abs(found) * 2**_CANCELLED > largest else Fraction(0)
        return found
