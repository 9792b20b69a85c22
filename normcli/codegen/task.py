"""The task for which code is written: a plan, its inputs, the source of its tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from normcli.errors import UsageError
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from normcli.codegen.inputs import Source
    from normcli.engine.inputs import Inputs
    from normcli.norms.plan import Plan


class Task(NamedTuple):
    """A request, and where its tensors come from.

    Parameters
    ----------
    plan : Plan
    inputs : Inputs
        Running statistics, if the plan is to be carried out with them.
    sources : sequence of Source
        The tensor `x`; `gamma` and `beta` where they are given, of the shapes that the plan has.
    """

    plan: Plan
    inputs: Inputs
    sources: Sequence[Source]

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The dtype of x and y in the code: the output's."""
        return self.plan.choose_output_dtype(self.sources[0].values.dtype)

    @property
    def evaluation(self) -> bool:
        """Whether running statistics are given."""
        return self.inputs.given is not None

    def require_whole(self) -> None:
        """Raise `UsageError` unless every value counts."""
        selection, values = self.inputs.selection, self.sources[0].values
        if selection is not None and selection.count(values) < values.size:
            raise UsageError("--emit is of tensors whose values all count, and some of these are left out")
