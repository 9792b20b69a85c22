"""What stands in parts of y: what a kernel left out, what is not finite, and what nothing is known of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from normcli.checking.fault import Fault
from normcli.identifying.faults.claim import Row
from normcli.identifying.faults.unknown import vary_nothing
from normcli.identifying.faults.variant import Variant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from normcli.identifying.faults.case import Case


def _take_zeros(case: Case) -> Iterator[Variant]:
    """Take 0, before beta is added or after it."""
    yield Variant(result=np.zeros_like(case.x), values={"what": "0"})
    if case.has_beta:
        yield Variant(result=np.broadcast_to(case.beta, case.x.shape), values={"what": "beta"})


def _take_infinite(case: Case) -> Iterator[Variant]:
    """Take y where it is not finite."""
    if np.isinf(case.y).any():
        what = "infinite or NaN" if np.isnan(case.y).any() else "infinite"
        yield Variant(result=np.where(np.isfinite(case.y), np.nan, case.y), values={"what": what})


OF_COPIES = (
    Row(Fault("where-input", "y is x", "write the result there", "y[n] = x[n]",
              ("for a part of the values",)),
              lambda case: iter([Variant(result=case.x)])),
    Row(Fault("where-zeros", "y is {what}", "write the result there", "y[n] = 0",
              ("0", "for a part of the values")),
              _take_zeros),
    Row(Fault("where-nan", "y is NaN", "find what makes NaN there", "y[n] = np.nan",
              ("for a part of the values",)),
              lambda case: iter([Variant(result=np.full_like(case.x, np.nan))])),
    Row(Fault("where-infinite", "y is {what}", "find what makes ∞ there", "y[n] = np.inf",
              ("infinite", "for a part of the values")),
              _take_infinite),
)  # fmt: skip
NOT_FINITE = OF_COPIES[2:]
OF_REGIONS = {
    name: Row(Fault(f"where-{name}", "y is right, except", "finish or mask that part", example, (place,)),
              vary_nothing)
    for name, example, place in (
        ("index", "y[3] = 1.0", "for one index of an axis"),
        ("region", "y[:, 10:] = 1.0", "for some indices of axes"),
        ("values", "y[3, 5] = np.nan", "for values here and there"),
    )
}  # fmt: skip
"""What stands in a part of y that a kernel left out."""

CAST = Row(Fault("after-cast", "y is rounded to {dtype}",
                 "keep y in the dtype of x", "y.astype(np.float16)",
              ("float16",)),
           vary_nothing)  # fmt: skip
"""Half precision that was saved as another dtype, and is right but for that."""
