"""The exact result of some groups that were taken out of a tensor, as rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from normcli.engine.inputs import Inputs
from normcli.engine.run import run
from normcli.engine.walk import Effort
from normcli.norms.grid import Grid
from normcli.norms.layout import Layout
from normcli.norms.plan import ParameterShapes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.norms.plan import Plan

    Affine = tuple[NDArray[Any] | None, NDArray[Any] | None]


def calculate_rows(plan: Plan, rows: NDArray[Any], affine: Affine) -> tuple[Floats, dict[str, Floats]]:
    """Return the exact result of rows, in float64, and the statistics of each.

    Parameters
    ----------
    plan : Plan
        Of the tensor; without windows.
    rows : ndarray, shape (groups, values)
    affine : tuple of ndarray or None
        The scale and the shift of each value, of the shape of the rows: what is added to gamma is in it.
    """
    parameters = ParameterShapes(plan.parameters.rule, (0, 1), rows.shape, rows.shape, rows.shape)
    alone = replace(plan, grid=Grid(rows.shape, Layout(2, None), (1,)), parameters=parameters)
    plain = alone.change_spec(dtype="float64", gamma_offset=0, rounds_before_gamma=False)
    return run(plain, rows, Inputs(*affine), effort=Effort(threads=1))
