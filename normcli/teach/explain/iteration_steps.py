"""The largest singular value of a matrix as a step, and the power iterations that estimate it, in sentences."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from normcli.engine.sn.gradients import find_sigma_gradient
from normcli.engine.sn.passes import lay_matrix
from normcli.engine.sn.sigma_of_groups import SingularValue
from normcli.printable import format_count
from normcli.teach.explain.story import SIGMA, StepWriter, StoryStep, enumerate_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from normcli.dtypes import Floats
    from normcli.norms.spec import Iteration
    from normcli.teach.explain.measured_group import MeasuredGroup
    from normcli.teach.formulas.expression import Constant

_MOST_VALUES = 1 << 16
"""The most values of a matrix whose vectors and largest singular value a story calculates."""

_MOST_SHOWN = 6

_TURNS = {
    "u": "v = Xᵀu / ‖Xᵀu‖, then u = Xv / ‖Xv‖",
    "v": "u = Xv / ‖Xv‖, then v = Xᵀu / ‖Xᵀu‖",
}


class MatrixSteps(StepWriter):
    """A builder of the step to the largest singular value of a group that is a matrix."""

    def _find_singular_value(self) -> Constant:
        """Add a step with the largest singular value of the matrix, without arithmetic; return the number."""
        sigma, rows = self.group.statistics["sigma"], self.spec.rows or ()
        along = enumerate_words([self.plan.grid.layout.name(axis) for axis in rows])
        what = "the root of the largest eigenvalue of XᵀX"
        sentence = f"The largest singular value of X, whose rows are along {along or 'no axis'}: {what}."
        iteration = self.spec.iteration
        if iteration is not None:
            sentence = f"The rows of X are along {along or 'no axis'}. {_tell_iteration(iteration)}"
            self.steps.append(StoryStep("power iteration", sentence))
            *vectors, sentence = (*_tell_vectors(self.group, iteration), "σ is uᵀXv.")
            self.steps += [StoryStep("vectors", told) for told in vectors]
        step = StoryStep("singular value", sentence, SIGMA)
        if not math.isfinite(sigma):
            self._stop(step._replace(sentence="The largest singular value is beyond float64."))
        return self._add_value(step, sigma)


def _tell_iteration(iteration: Iteration) -> str:
    """Return a sentence on the updates of u and v, without numbers."""
    if not iteration.steps:
        return "u and v are as they were given: uᵀXv is of no iteration."
    count = format_count(iteration.steps, "power iteration")
    return f"{count} from {iteration.start}: {_TURNS[iteration.start]}."


def _tell_vectors(group: MeasuredGroup, iteration: Iteration) -> Iterator[str]:
    """Yield sentences on the power iteration's v and u, and on σ = uᵀXv beside the largest singular value.

    Nothing is yielded for matrices of more than `_MOST_VALUES` values, or whose largest singular value is
    known without calculation.
    """
    matrix = lay_matrix(group.plan, group.values)
    value = SingularValue(matrix)
    if group.count > _MOST_VALUES or value.known is not None:
        return
    if iteration.steps:
        by_sigma = find_sigma_gradient(matrix, iteration)
        if by_sigma is None:
            yield f"{iteration.start} is at a right angle to the matrix: σ is 0."
            return
        u, v = (np.array(vector, np.float64) for vector in by_sigma.list_vectors(iteration))
        yield f"That makes v = {format_vector(v)} and u = {format_vector(u)}."
    largest, sigma = float(value.find()), group.statistics["sigma"]
    if 0.0 < sigma < largest < math.inf:
        yield f"The largest singular value is {largest:.6g}: σ is {1.0 - sigma / largest:.2%} below it."


def format_vector(vector: Floats) -> str:
    """Return a vector as text with its first six numbers: `(0.6, 0.8)`."""
    shown = ", ".join(f"{value:.6g}" for value in vector[:_MOST_SHOWN])
    return f"({shown}{', …' if len(vector) > _MOST_SHOWN else ''})"
