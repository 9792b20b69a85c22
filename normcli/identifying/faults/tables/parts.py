"""Faults known only by their place or their numbers, and half precision saved as a wider dtype."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from normcli.checking.fault import Fault, Row
from normcli.identifying.faults.variant import Variant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from normcli.identifying.faults.case import Case


def _take_zeros(case: Case) -> Iterator[Variant]:
    """Take 0, before beta is added or after it."""
    yield Variant(result=np.zeros_like(case.x), values={"what": "0"})
    if case.has_beta:
        yield Variant(result=np.broadcast_to(case.beta, case.x.shape), values={"what": "beta"})


def _take_infinite(case: Case) -> Variant | None:
    """Take y where it is not finite."""
    what = "infinite or NaN" if np.isnan(case.y).any() else "infinite"
    result = np.where(np.isfinite(case.y), np.nan, case.y)
    return Variant(result=result, values={"what": what}) if np.isinf(case.y).any() else None


OF_COPIES = (
    Row(Fault("where-input", "y is x", "write the result there", "y[n] = x[n]", ("for a part of the values",)),
        lambda c: Variant(result=c.x)),
    Row(Fault("where-zeros", "y is {what}", "write the result there", "y[n] = 0",
              ("0", "for a part of the values")), _take_zeros),
    Row(Fault("where-nan", "y is NaN", "find what makes NaN there", "y[n] = np.nan",
              ("for a part of the values",)), lambda c: Variant(result=np.full_like(c.x, np.nan))),
    Row(Fault("where-infinite", "y is {what}", "find what makes ∞ there", "y[n] = np.inf",
              ("infinite", "for a part of the values")), _take_infinite),
)  # fmt: skip
"""Tensors that may stand in a part of y in place of the result."""

NOT_FINITE = OF_COPIES[2:]

OF_REGIONS = {
    name: Row(Fault(f"where-{name}", "y is right, except", "finish or mask that part", example, (place,)))
    for name, example, place in (
        ("index", "y[3] = 1.0", "for one index of an axis"),
        ("region", "y[:, 10:] = 1.0", "for some indices of axes"),
        ("values", "y[3, 5] = np.nan", "for values here and there"),
    )
}
"""The faults of a part of y that a kernel left out, where no other row names its content."""

_COMPARE = "compare it with the right one"

UNKNOWN = {
    name: Row(Fault(f"{joint}-unknown-{name}", words, _COMPARE, example, shown))
    for joint, name, words, example, shown in (
        ("affine", "gamma", "another {what} used at {where}", "other_gamma * xhat + other_beta",
         ("gamma is", "N of M indices")),
        ("stats", "divisor", "the mean is right, the divisor is another", "(x - x.mean(-1)) / d", ()),
        ("stats", "mean", "the divisor is right, the mean is another", "(x - m) / x.std(-1)", ()),
        ("stats", "both", "mean and divisor are others", "(x - m) / d", ()),
    )
}  # fmt: skip
"""Groups or features whose statistics or parameters are wrong, without a row that names how."""

CAST = Row(Fault("after-cast", "y is rounded to {dtype}", "keep y in the dtype of x", "y.astype(np.float16)",
                 ("float16",)))  # fmt: skip
"""Half precision that was saved as another dtype, and is right but for that."""
