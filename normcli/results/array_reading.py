"""An array of another library as a NumPy array, by the array's own methods; no library is imported."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import find_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

_REFUSALS = (TypeError, ValueError, RuntimeError, BufferError, AttributeError)
"""The exceptions that libraries raise where NumPy cannot read their arrays."""


def read_foreign(x: Any) -> NDArray[Any]:
    """Return an array of any library as a NumPy array.

    Parameters
    ----------
    x : array_like
        Anything that NumPy reads; also a tensor of torch that requires a gradient, lies on a GPU or holds
        bfloat16, an array whose values are copied by `get()` (CuPy) or `numpy()`, or one with DLPack only.

    Raises
    ------
    TypeError, ValueError, RuntimeError, BufferError or AttributeError
        NumPy's own error, if x cannot be read in any of these ways.

    Notes
    -----
    Values are never rounded: bfloat16 goes through float32, which holds all of it.

    References
    ----------
    `__array__` (NumPy 2), DLPack (array API 2023.12), `Tensor.detach` and `cpu` (PyTorch 2.13), `ndarray.get`
    (CuPy 13).

    Examples
    --------
    >>> class OnAnotherDevice:
    ...     def __array__(self, dtype=None, copy=None):
    ...         raise TypeError("use get()")
    ...     def get(self):
    ...         return np.array([1.0, 2.0])
    >>> read_foreign(OnAnotherDevice())
    array([1., 2.])
    """
    try:
        array = np.asarray(x)
        if array.dtype.kind != "O" or isinstance(x, np.ndarray):
            return array
        refusal: Exception | None = None
    except _REFUSALS as error:
        refusal = error
    for read in _list_ways(x):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a warning about a read-only array of another library
                array = np.asarray(read())
        except _REFUSALS:
            continue
        if array.dtype.kind != "O":
            return array
    if refusal is not None:
        raise refusal
    return array


def _list_ways(x: Any) -> Iterator[Callable[[], Any]]:
    """Yield functions that may return an array which NumPy can read, the most direct first; possibly none."""
    if callable(getattr(x, "detach", None)) and callable(getattr(x, "cpu", None)):
        yield lambda: x.detach().cpu()
        yield lambda: _narrow(x, x.detach().cpu().float())
    if callable(getattr(x, "get", None)) and not callable(getattr(x, "keys", None)):
        yield x.get
    if callable(getattr(x, "numpy", None)):
        yield x.numpy
    if callable(getattr(x, "__dlpack__", None)):
        yield lambda: np.from_dlpack(x)


def _narrow(x: Any, wide: Any) -> Any:
    """Return the float32 copy `wide` of a bfloat16 tensor as bfloat16; raise `TypeError` for other dtypes."""
    name = str(x.dtype).rpartition(".")[2]
    if name != "bfloat16":
        raise TypeError(f"{name} is none of NumPy's dtypes")
    return np.asarray(wide).astype(find_type(name))
