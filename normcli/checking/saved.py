"""Half precision that was saved as a wider dtype: which numbers a tensor holds, whatever its own dtype is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import find_type
from normcli.errors import MissingExtraError
from normcli.numerics.rounding import round_to_half
from normcli.tensors.mapped import fetch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

HALVES = ("bfloat16", "float16")
"""The dtypes of half precision."""

_LEAST_SAVED, _MOST_SAVED = 16, 1 << 22
"""Different values that tell half precision from round numbers; larger tensors are not looked at."""

_FEW = 1 << 10
"""Values that are looked at before all are."""

_HALF_BYTES = 2


def find_saved_dtype(y: NDArray[Any]) -> np.dtype[Any] | None:
    """Return the dtype of half precision whose numbers a wider tensor holds, as one that was saved so."""
    if y.dtype.kind != "f" or y.dtype.itemsize <= _HALF_BYTES or y.size > _MOST_SAVED:
        return None
    values = fetch(y).reshape(-1)
    for name in HALVES:
        if _holds(values[:_FEW], name) and _holds(values, name):
            if len(np.unique(values[: _MOST_SAVED >> 4])) < _LEAST_SAVED:
                return None
            try:
                half: np.dtype[Any] = np.dtype(find_type(name))
            except MissingExtraError:
                return None
            return half
    return None


def find_common_half(every: Sequence[NDArray[Any]], y: NDArray[Any]) -> np.dtype[Any] | None:
    """Return the dtype of half precision that y was saved from, where x, or its addends, have such numbers.

    A kernel of it is right then; of a wider x, y has lost what it should hold.
    """
    half = find_saved_dtype(y)
    return half if half is not None and all(_is_of(x, half) for x in every) else None


def _is_of(x: NDArray[Any], half: np.dtype[Any]) -> bool:
    is_wider = x.dtype.kind == "f" and x.dtype.itemsize > _HALF_BYTES
    return x.dtype == half or (is_wider and _holds(fetch(x), half.name))


def _holds(values: NDArray[Any], name: str) -> bool:
    wide = values.astype(np.float64)
    return bool(np.array_equal(round_to_half(wide, name), wide, equal_nan=True))
