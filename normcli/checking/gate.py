"""The gate of a block: a tensor that multiplies the norm's result, behind an activation.

References
----------
Dauphin et al. 2017, arXiv:1612.08083, have sigmoid(z); Shazeer 2020, arXiv:2002.05202, gelu(z) and silu(z).
"""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.errors import DataError, UsageError
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from normcli.dtypes import Floats


def apply_sigmoid(values: Floats) -> Floats:
    """Return the logistic function."""
    return np.asarray(1.0 / (1.0 + np.exp(-values)))


def _apply_gelu(values: Floats) -> Floats:
    return np.asarray(values * (1.0 + _find_error(values / math.sqrt(2.0))) / 2.0)


_find_error = np.vectorize(math.erf, otypes=[np.float64])


def _apply_gelu_by_tanh(values: Floats) -> Floats:
    inner = math.sqrt(2.0 / math.pi) * (values + 0.044715 * values**3)
    return np.asarray(values * (1.0 + np.tanh(inner)) / 2.0)


ACTIVATIONS: Mapping[str, Callable[[Floats], Floats]] = MappingProxyType(
    {
        "silu": lambda values: np.asarray(values * apply_sigmoid(values)),
        "sigmoid": apply_sigmoid,
        "gelu": _apply_gelu,
        "gelu-tanh": _apply_gelu_by_tanh,
        "relu": lambda values: np.maximum(values, 0.0),
        "tanh": np.tanh,
        "none": lambda values: values,
    }
)
"""The activations of a gate; the first is the usual one."""

SILU = next(iter(ACTIVATIONS))


class Gate(NamedTuple):
    """A tensor whose activation multiplies the result.

    Parameters
    ----------
    values : ndarray
        Of the input's shape.
    activation : str
        One of `ACTIVATIONS`.
    """

    values: NDArray[Any]
    activation: str = SILU

    def activate(self, values: NDArray[Any] | None = None) -> Floats:
        """Return the activated gate in float64, of all values or of some."""
        with np.errstate(all="ignore"):
            wide = np.asarray(self.values if values is None else values).astype(np.float64)
            return ACTIVATIONS[self.activation](wide)


def make_gate(
    values: NDArray[Any] | None, activation: str | None, shape: tuple[int, ...], option: str
) -> Gate | None:
    """Return the gate of a tensor of some shape; None where none is given.

    Raises
    ------
    DataError
        If it is of another shape.
    UsageError
        If there is no such activation, or one without a gate.
    """
    if activation not in (None, *ACTIVATIONS):
        raise UsageError(f"{option}_act {activation!r} is none of {', '.join(ACTIVATIONS)}")
    if values is None:
        if activation is not None:
            raise UsageError(f"what a gate goes through is given: give {option} too")
        return None
    if values.shape != shape:
        raise DataError(f"{option} has the shape {values.shape}; x has {shape}")
    return Gate(values, activation or SILU)
