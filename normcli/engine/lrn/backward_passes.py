"""The backward pass of a norm with a sliding window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine.inputs import zero_unselected
from normcli.engine.lrn.gradients import differentiate_line, differentiate_windows
from normcli.engine.passes import Passes
from normcli.norms.request import Fill
from normcli.numerics.gradients.in_fractions import round_exactly, round_values
from normcli.numerics.gradients.values import round_known

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.engine.blocks import Source
    from normcli.engine.geometry import Slices
    from normcli.numerics.deciding import Bounded
    from normcli.numerics.workspace import Workspace

MOST_VALUES = 1 << 14
"""Values in a tile: derivatives are made of some forty float64 arrays of its size."""


class WindowBackwardPasses(Passes):
    """The pass of a norm with a sliding window, which has no gamma and no beta."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        selection = arguments[4].selection
        self.fill = None if selection is None else selection.fill

    def differentiate(self, gradients: Source, values: NDArray[Any]) -> None:
        """Write dx."""
        geometry, window = self.geometry, self.plan.spec.window
        assert window is not None  # of every norm that has such passes
        order = geometry.reduced_runs + geometry.kept_runs

        def work_on(index: Slices, work: Workspace) -> None:
            assert self.sink is not None
            raw = np.array(self.source.read(index, order, work))
            dy = np.array(gradients.read(index, order, work), np.float64).reshape(len(raw), -1)
            counted = self.select(raw, index, order)
            x = np.array(zero_unselected(raw, counted), np.float64).reshape(len(raw), -1)
            used = dy if counted is None else np.where(counted.reshape(dy.shape), dy, 0.0)
            place = self.sink.open(index, work)
            dx, undecided = round_known(differentiate_windows(window, x, used), place.dtype)
            for line in np.flatnonzero(undecided.any(axis=0)).tolist():

                def evaluate(places: list[int], bits: int, line: int = line) -> list[Bounded]:
                    return [differentiate_line(window, x[:, line], used[:, line], i, bits) for i in places]

                chosen = np.flatnonzero(undecided[:, line])
                dx[chosen, line] = round_exactly(evaluate, chosen, dx.dtype)
            out = place.transpose(order)
            out[...] = dx.reshape(out.shape)
            if counted is not None:
                others = round_values(dy if self.fill is Fill.PASS else np.zeros_like(dy), out.dtype)
                np.copyto(out, others.reshape(out.shape), where=~counted)
            self.sink.put(index, place, work)

        self.walk.expect(1)
        self.walk.each(work_on, whole=True, line=0, most=MOST_VALUES)

    def find_parameters(self) -> tuple[None, None]:
        """Return nothing: there are none."""
        return None, None
