"""The engine: carries a tensor through the kernel in the plan's view and brings the results home.

One block that holds the whole tensor, for now: where blocks, passes and threads come, they come here and
nothing around it changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.errors import DataError
from normcli.kernel import normalize_block

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.plan import Plan


def choose_output_dtype(plan: Plan, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of the result: the plan's, else the input's if NumPy's own float, else float64."""
    if plan.dtype is not None:
        return np.dtype(plan.dtype)
    if dtype.kind == "f" and dtype.itemsize <= np.dtype(np.float64).itemsize:
        return dtype.newbyteorder("=")
    return np.dtype(np.float64)


def run(
    plan: Plan,
    values: NDArray[Any],
    gamma: NDArray[Any] | None,
    beta: NDArray[Any] | None,
) -> tuple[NDArray[Any], dict[str, NDArray[np.float64]]]:
    """Normalize a tensor.

    Parameters
    ----------
    plan : Plan
        Made for the shape of `values`.
    values : ndarray
        Real numbers of any dtype and memory order; it is not written to.
    gamma, beta : ndarray or None
        Of the plan's `parameter_shape`.

    Returns
    -------
    tuple of (ndarray, dict)
        The normalized tensor, in C order, of `choose_output_dtype`; the statistics, of `plan.stats_shape`.

    Raises
    ------
    DataError
        If the work does not fit into memory.
    """
    try:
        with np.errstate(all="ignore"):  # a signalling NaN, a longer float beyond float64
            block = np.asarray(values, dtype=np.float64, order="C").reshape(plan.view_shape)
        result, statistics = normalize_block(plan, block, _as_view(plan, gamma), _as_view(plan, beta))
        with np.errstate(over="ignore"):
            normalized = (
                np.asarray(result)
                .reshape(plan.shape)
                .astype(choose_output_dtype(plan, values.dtype), copy=False)
            )
    except MemoryError as error:
        raise DataError(f"a tensor of {plan.shape} does not fit into memory with its working copies") from error
    return normalized, {name: np.asarray(array).reshape(plan.stats_shape) for name, array in statistics.items()}


def _as_view(plan: Plan, parameter: NDArray[Any] | None) -> NDArray[np.float64] | None:
    if parameter is None:
        return None
    return np.asarray(parameter, dtype=np.float64).reshape(plan.parameter_view_shape)
