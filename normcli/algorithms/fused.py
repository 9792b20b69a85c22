"""x · y + z of arrays: rounded after each operation, or once, as processors with such an instruction do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from normcli.algorithms.summation_orders import Values

    MultiplyAdd = Callable[[Values, Values | np.generic, Values], Values]


def round_twice(x: Values, y: Values | np.generic, z: Values) -> Values:
    """Return x · y + z with the product rounded, then the sum."""
    result: Values = x * y + z
    return result


def fuse(x: Values, y: Values | np.generic, z: Values) -> Values:
    """Return x · y + z rounded once if x is float32; for other dtypes with the product rounded, then the sum.

    The product is exact in float64. Its sum is rounded there to odd, which leaves the second rounding right
    (Boldo & Melquiond 2008, "Emulation of FMA and correctly rounded sums").

    Examples
    --------
    >>> x, z = np.float32([1 + 2.0**-12]), np.float32([-1.0])
    >>> bool(fuse(x, x, z) == 2.0**-11 + 2.0**-24), bool(round_twice(x, x, z) == 2.0**-11)
    (True, True)
    """
    if x.dtype != np.float32:
        return round_twice(x, y, z)
    product, term = x.astype(np.float64) * np.float64(y), z.astype(np.float64)
    total = product + term
    shift = total - product
    error = (product - (total - shift)) + (term - shift)
    is_even = (total.view(np.int64) & 1) == 0
    goes_on = np.nextafter(total, np.copysign(np.inf, error))
    odd = np.where((error != 0.0) & is_even & np.isfinite(total), goes_on, total)
    return odd.astype(np.float32)
