"""What is said of a tensor that was checked, beside how far it is off."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from normcli.verify.casts import find_other_casts
from normcli.verify.sentence import explain_actual

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.engine.inputs import Inputs
    from normcli.norms.plan import Plan


def remark_on(
    plan: Plan, values: NDArray[Any], actual: NDArray[Any], inputs: Inputs, *, ok: bool
) -> str | None:
    """Return what made a tensor that differs, or whose bits are another kernel's; None where all is well.

    Parameters
    ----------
    plan : Plan
        Of the norm that it should be.
    values, actual : ndarray
    inputs : Inputs
        With gamma and beta in the plan's shape.
    ok : bool
        Whether all is within the tolerance.
    """
    sentence = find_other_casts(plan, values, actual, inputs)
    if sentence is not None or ok:
        return sentence
    parameters = {"gamma": inputs.gamma, "beta": inputs.beta}
    return explain_actual(plan, values, actual, parameters, inputs.given)
