"""The loss of a norm's result in each format of few bits, on some data."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from normcli.errors import NormError
from normcli.quantizing.formats import FORMATS, read_quantization
from normcli.quantizing.quantize import quantize_plan
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from normcli.engine.inputs import Inputs
    from normcli.engine.walk import Effort
    from normcli.norms.plan import Plan


class FormatCost(NamedTuple):
    """The loss in one format: its name, the values that share a scale, and the fields of `Losses`.

    `signal_to_noise` is in dB, `error` in the unit of y; `saturated` and `flushed` are shares of the values.
    """

    format: str
    per: str
    signal_to_noise: float
    error: float
    saturated: float
    flushed: float


MOST_VALUES = 1 << 22
"""The most values of a tensor whose costs are listed."""


def list_costs(plan: Plan, values: NDArray[Any], inputs: Inputs, effort: Effort) -> Iterator[FormatCost]:
    """Yield the loss in each format in which a norm's result can be stored.

    Formats whose blocks do not divide the rows are left out. Nothing is yielded for a tensor of more than
    `MOST_VALUES` values, a norm with windows, or a result that is not finite.

    Parameters
    ----------
    plan : Plan
    values : ndarray
    inputs : Inputs
    effort : Effort
    """
    if values.size > MOST_VALUES:
        return
    exact = replace(plan, spec=plan.spec._replace(dtype="float64"))
    for name in FORMATS:
        asked = read_quantization(name, None, None)
        with contextlib.suppress(
            NormError
        ):  # rows that do not divide into blocks, or a result that is not finite
            found = quantize_plan(exact, values, inputs, asked, effort)
            told = (found.signal_to_noise, found.error, found.saturated, found.flushed)
            yield FormatCost(name, asked.per, *told)
