"""The steps around a norm: bounds and a gate before it, a gate and bounds after it."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import is_float, is_half
from normcli.errors import DataError, UsageError
from normcli.norms.request import Choices
from normcli.numerics.elements.activation import Activation
from normcli.numerics.elements.gate import Gated
from normcli.numerics.elements.in_fractions import normalize
from normcli.numerics.elements.kernel import Parameters
from normcli.numerics.rounding import widen
from normcli.numerics.statistics.divisor import make_neutral
from normcli.tensors.mapped import fetch
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.engine.inputs import Inputs
    from normcli.norms.plan import Plan
    from normcli.norms.request import Request

Bounds = tuple[str | float, str | float]
"""A lower and a higher bound: numbers, or percentiles of the tensor such as `0.5%`."""


class GateOrder(enum.StrEnum):
    """Whether a gate multiplies the result, norm(x) · act(z), or the tensor, norm(x · act(z))."""

    AFTER = "after"
    BEFORE = "before"


class Surroundings(NamedTuple):
    """The steps before and after a norm: clipping, and the product with act(gate); None for a step left out.

    Parameters
    ----------
    clip : tuple or None
        The bounds to which the tensor is clipped, first of all: numbers, or percentiles of it such as "0.5%".
    gate : ndarray or None
        The gate, of a shape that broadcasts to the tensor's.
    gate_act : str or None
        The name of an `Activation`, the function act; None: `silu`.
    gate_order : str or None
        `before` (the gate multiplies the tensor) or `after` (it multiplies the result); None: the order of the
        request's convention, or `after`.
    clip_output : tuple of float or None
        The bounds to which the result is clipped, last of all.
    """

    clip: Bounds | None = None
    gate: NDArray[Any] | None = None
    gate_act: str | None = None
    gate_order: str | None = None
    clip_output: tuple[float, float] | None = None

    def prepare(self, request: Request, values: NDArray[Any]) -> tuple[Request, NDArray[Any]]:
        """Return the request, and the tensor as the norm takes it: clipped, and multiplied by a gate before it.

        `values` is left unchanged. If a gate before the norm makes float32 of a tensor of half precision, the
        request's output dtype becomes the tensor's, unless the request names one.

        Notes
        -----
        Integers that are clipped become float64. x · act(z) is rounded once: to float64 if x or z is of float64
        or of integers, else to float32, in which models multiply tensors of half precision too.

        Raises
        ------
        UsageError
            If `gate_act` or `gate_order` is unknown, or given without a gate.
        DataError
            If the gate's shape does not broadcast to the tensor's.
        """
        self._require_words()
        if self.clip is not None:
            values = clip_values(values, self.clip)
        if self.gate is None or find_gate_order(request, self.gate_order) is not GateOrder.BEFORE:
            return request, values
        narrow = all(is_float(one.dtype) and one.dtype.itemsize <= 4 for one in (values, self.gate))
        dtype, gated = np.dtype(np.float32 if narrow else np.float64), self._fit_gate(values.shape).map(fetch)
        product = normalize(values, dtype, make_neutral(values.ndim), Parameters(gate=gated))
        return request.adopt_dtype(values.dtype.name if is_half(values.dtype) else None), product

    def surround(self, inputs: Inputs, plan: Plan, values: NDArray[Any]) -> Inputs:
        """Return the inputs of a calculation with the gate and the bounds after the norm added.

        A gate before the norm is added as `gated_input`, for gradients: its product with the tensor is already
        in the norm's input.

        Parameters
        ----------
        inputs : Inputs
        plan : Plan
        values : ndarray
            The tensor before `prepare`.

        Raises
        ------
        UsageError
            If there is a gate or a bound after a norm with sliding windows.
        DataError
            If the gate's shape does not broadcast to the tensor's.
        """
        follows = self.gate is not None and find_gate_order(plan.request, self.gate_order) is GateOrder.AFTER
        if plan.groups_overlap and (follows or self.clip_output is not None):
            raise UsageError(f"{plan.norm.name} takes no gate and no bounds behind it")
        inputs = inputs._replace(clip=self.clip_output)
        if self.gate is None:
            return inputs
        gate = self._fit_gate(plan.grid.shape)
        if follows:
            return inputs._replace(gate=gate)
        times = values if self.clip is None else clip_values(values, self.clip)
        return inputs._replace(gated_input=gate._replace(times=times))

    def _fit_gate(self, shape: tuple[int, ...]) -> Gated:
        """Return the gate with as many axes as `shape`; raise `DataError` if it does not broadcast to it."""
        gate = self.gate
        assert gate is not None
        try:
            np.broadcast_to(gate, shape)
        except ValueError:
            raise DataError(
                f"the gate has the shape {gate.shape}, which does not broadcast to {shape}"
            ) from None
        spread = gate.reshape((1,) * (len(shape) - gate.ndim) + gate.shape)
        return Gated(spread, Activation(self.gate_act or Activation.SILU), given_axes=gate.ndim)

    def _require_words(self) -> None:
        """Raise `UsageError` for an unknown activation or order of the gate, or for one without a gate."""
        for name, value, words in (
            ("gate_act", self.gate_act, Activation), ("gate_order", self.gate_order, GateOrder),
        ):  # fmt: skip
            option = f"--{name.replace('_', '-')}"
            if value is not None and value not in tuple(words):
                raise UsageError(f"{option} {value!r} is none of {', '.join(words)}")
            if value is not None and self.gate is None:
                raise UsageError(f"{option} says how a gate multiplies; give --gate too")


def find_gate_order(request: Request, given: str | None) -> GateOrder:
    """Return the order `given`; for None that of the request's convention, or `after` if it has none."""
    return GateOrder(given or Choices(request).pick("gate_order") or GateOrder.AFTER)


def read_bounds(name: str, given: Any, *, takes_percent: bool) -> Any:
    """Return a pair (lower, upper) of bounds, from the text `LOW,HIGH` or a sequence of two.

    Numbers become floats. With `takes_percent`, texts that end in % are returned as texts.

    Raises
    ------
    UsageError
        If `given` is not two ascending numbers or percentiles; `name` is the option's name in the message.

    Examples
    --------
    >>> read_bounds("clip", "0.5%,99.5%", takes_percent=True)
    ('0.5%', '99.5%')
    """
    parts = given.split(",") if isinstance(given, str) else list(given)
    try:
        low, high = (one.strip() if _is_percent(one) and takes_percent else float(one) for one in parts)
        sizes = [float(str(one).removesuffix("%")) for one in (low, high)]
        shares = [size for one, size in zip((low, high), sizes, strict=True) if _is_percent(one)]
        is_mixed, is_share = len(shares) == 1, all(0 <= share <= 100 for share in shares)
        if (is_mixed or sizes[0] <= sizes[1]) and is_share:
            return low, high
    except (TypeError, ValueError):
        pass
    kind = "numbers or percentiles, such as 0.5%,99.5%" if takes_percent else "numbers, such as -10,10"
    raise UsageError(f"{name} takes two ascending {kind}, not {given!r}")


def _is_percent(bound: Any) -> bool:
    return isinstance(bound, str) and bound.strip().endswith("%")


def clip_values(values: NDArray[Any], bounds: Bounds) -> NDArray[Any]:
    """Return a tensor clipped to two bounds, each rounded to its dtype; integers become float64.

    Percentiles are taken from all values but NaN, interpolated linearly as `numpy.percentile` does. A tensor
    without such values is returned unclipped if a bound is a percentile.
    """
    own = values if is_float(values.dtype) else values.astype(np.float64)
    shares = [float(str(one).rstrip("%")) for one in bounds]
    found = list(shares)
    if any(map(_is_percent, bounds)):
        counted = widen(own[~np.isnan(own)])
        if not counted.size:
            return own
        found = [
            float(np.percentile(counted, share)) if _is_percent(bound) else share
            for bound, share in zip(bounds, shares, strict=True)
        ]
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = (own.dtype.newbyteorder("=").type(bound) for bound in found)
        return np.asarray(np.minimum(np.maximum(own, low), high))
