"""Which numbers are taken and given: the dtypes of input and output, and NumPy's limit of axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from normcli.errors import DataError

if TYPE_CHECKING:
    import numpy as np

OUTPUT_DTYPES = ("float16", "float32", "float64")
"""The dtypes that a result can be asked for in."""

REAL_KINDS = "biuf"
"""NumPy's kinds of dtype that hold real numbers: bool, int, unsigned, float."""

MOST_AXES = 64
"""NumPy's limit."""


def require_real(dtype: np.dtype[Any], name: str) -> None:
    """Raise `DataError` unless a dtype holds real numbers."""
    if dtype.kind not in REAL_KINDS:
        label = "Python objects" if dtype.kind == "O" else str(dtype)
        raise DataError(f"{name} holds {label}; integers, booleans and floats are taken")
