"""The task for which code is written: a plan, its inputs, the source of its tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from normcli.dtypes import is_half
from normcli.errors import UsageError
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from normcli.codegen.inputs import NamedTensor
    from normcli.engine.inputs import Inputs
    from normcli.norms.calls import Call
    from normcli.norms.plan import Plan


class Task(NamedTuple):
    """A request, and where its tensors come from.

    Parameters
    ----------
    plan : Plan
    inputs : Inputs
        Running statistics, if the plan is to be carried out with them.
    sources : sequence of NamedTensor
        The tensor `x`, before a gate; `gate`, `gamma` and `beta` where they are given.
    """

    plan: Plan
    inputs: Inputs
    sources: Sequence[NamedTensor]

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The dtype of x and y in the code: the output's."""
        return self.plan.choose_output_dtype(self.sources[0].values.dtype)

    @property
    def evaluation(self) -> bool:
        """Whether running statistics are given."""
        return self.inputs.given is not None

    def list_obstacles(self, call: Call | None) -> list[str]:
        """Return why a framework's call does not do what is asked; without a call, none."""
        if call is None:
            return []
        wide = self.inputs.gated_input is not None and is_half(self.dtype)
        gated = ["a product with the gate of more digits than x"] if wide else []
        return [*call.list_obstacles(self.plan, evaluation=self.evaluation), *gated]

    def require_whole(self) -> None:
        """Raise `UsageError` unless every value counts."""
        selection, values = self.inputs.selection, self.sources[0].values
        if selection is not None and selection.count(values) < values.size:
            raise UsageError("--emit is of tensors whose values all count, and some of these are left out")
