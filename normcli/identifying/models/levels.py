"""How well a result may have been calculated: from rounded once to as careless as a correct kernel may be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.ulp import ROUNDED_ONCE
from normcli.dtypes import find_type, get_eps, is_half
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from normcli.dtypes import Floats


class Level(NamedTuple):
    """How well a result was calculated.

    Parameters
    ----------
    precision : str
        The dtype of the calculation.
    ulp : float
        How many units in the result's last place each value may be off.
    roundings : float
        How many units of the calculation's last place, at values of the size of its terms, on top.
    """

    precision: str
    ulp: float
    roundings: float

    def measure(self, terms: Floats) -> Floats:
        """Return how far off a calculation with such terms may be."""
        return self.roundings * get_eps(np.dtype(find_type(self.precision))) * terms


_CALCULATED = "float32"
"""What kernels calculate half precision in, and some of them float64."""

_OF_SHORTER = (4.0, 32.0)
"""The roundings of float32 that a result of float64 may be off."""


def list_levels(dtype: np.dtype[Any]) -> tuple[Level, ...]:
    """Return the levels for results of a dtype: from rounded once to as careless as a correct kernel may be.

    Of half precision that is one whose sums are of float32, however it rounds on the way: sums of float16 have
    errors that grow with the length of the sum. Results of float64 may have been calculated in float32, as
    those of Keras and some of ONNX. The first level at which anything fits is the one that counts.
    """
    name, careless = dtype.name, [2.0**k for k in range(6)]
    if is_half(dtype):
        wide = (Level(_CALCULATED, ROUNDED_ONCE, roundings) for roundings in careless[1:])
        return (*wide, Level(name, 1.0, 1.0), Level(name, 1.0, 2.0))
    levels = (Level(name, ROUNDED_ONCE, 0.0), Level(name, 2.0, 0.0), *(Level(name, 1.0, n) for n in careless))
    shorter = [Level(_CALCULATED, 1.0, roundings) for roundings in _OF_SHORTER] if name != _CALCULATED else []
    return (*levels, *shorter)


def choose_careless(dtype: np.dtype[Any]) -> Level:
    """Return the most careless of the levels that calculate in the precision of the first."""
    first, *others = list_levels(dtype)
    return [level for level in others if level.precision == first.precision][-1]
