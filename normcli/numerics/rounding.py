"""From any dtype to float64; and the last step of every result: rounded once, to the dtype of the output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import is_bfloat16

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats


def widen(values: NDArray[Any]) -> Floats:
    """Return numbers as float64, in an array of their own; NumPy warns where it casts a signalling NaN."""
    with np.errstate(invalid="ignore"):
        return values.astype(np.float64)


def store(out: NDArray[Any], values: Floats) -> None:
    """Write float64 values to an array of floats, each rounded once, to nearest even."""
    np.copyto(out, round_to_odd(values) if is_bfloat16(out.dtype) else values, casting="same_kind")


def round_to_odd(values: Floats) -> NDArray[np.float32]:
    """Return float64 values as float32, those that do not fit rounded to the neighbour whose last bit is 1.

    NumPy casts to bfloat16 by way of float32, and two roundings to nearest can differ from one: the first may
    make a tie of what is none. Rounding to odd never does (Boldo & Melquiond 2008).
    """
    nearest = np.asarray(values, dtype=np.float32)
    back = nearest.astype(np.float64)
    bits = nearest.view(np.int32)
    bits -= np.abs(back) > np.abs(values)
    bits |= back != values
    return nearest
