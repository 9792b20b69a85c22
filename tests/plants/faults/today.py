"""Faults on the layers of today: statistics over a slice or of some positions, a gamma of each sample or head."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.plants.faults import behind, parameters, statistics
from tests.plants.faults.kernel import (
    ADALN,
    BN,
    BN_LENGTHS,
    IN,
    IN_LENGTHS,
    LN,
    LN_ROWS,
    LN_SLICE,
    QK,
    RMS,
    RMS_ROWS,
    RMS_SLICE,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.plants.faults.row import Row

_ALIKE = (
    (LN_SLICE, (LN, LN_ROWS)),
    (RMS_SLICE, (RMS, RMS_ROWS)),
    (ADALN, (LN,)),
    (QK, (RMS,)),
    (BN_LENGTHS, (BN, LN)),
    (IN_LENGTHS, (IN, LN)),
)
"""Each layer, and those whose faults it may have too."""

_STATISTICS = (
    "absolute constant count eps-floor eps-scaled eps-subtracted eps-twice length mean-square median multiplied "
    "no-divisor no-mean not-rooted partial unknown-both unknown-divisor unknown-mean"
)
"""Faults of statistics that say nothing of lanes, of other axes or of half precision."""

_ALIKE_HERE = {
    "mean square in the place of the variance": (LN_SLICE,),
    "mean absolute deviation": (LN_SLICE,),
    "mean absolute value": (RMS_SLICE,),
    "mean divided by n + 1": (LN_SLICE,),
    "statistics of the first 40 features": (LN_SLICE, RMS_SLICE, QK),
    "statistics of the first quarter": (LN_SLICE, RMS_SLICE),
    "statistics of features 24 to 48": (LN_SLICE, RMS_SLICE),
    "mean square divided by the padded lanes": (RMS_SLICE, QK),
    "relu(y)": (RMS_SLICE, QK),
}
"""Kernels that make what is right on a layer, or what another statistic of the slice gives as well."""


_NOT_MASKED = "stats-partial", "after-quantized"
"""Faults that are not looked for beside a mask."""


def _list_rows() -> Iterator[Row]:
    named = {f"stats-{name}" for name in _STATISTICS.split()}
    of_groups = [row for row in statistics.ROWS if row.ids[0] in named]
    for row in (*of_groups, *parameters.ROWS, *behind.ROWS):
        if row.really or row.other:
            continue
        for layer, like in _ALIKE:
            is_left_out = layer in row.layers or layer in _ALIKE_HERE.get(row.words, ())
            is_left_out |= bool(layer.lengths) and row.ids[0] in _NOT_MASKED
            if not is_left_out and any(one in row.layers for one in like):
                yield row._replace(layers=(layer,), times=1)


ROWS = tuple(_list_rows())
