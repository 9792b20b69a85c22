"""Hypothesis strategies: tensors, and norms that suit them."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from normcli.norms.rules import AxesRule, Centre
from normcli.norms.table import NORMS

shapes = hnp.array_shapes(min_dims=2, max_dims=5, min_side=1, max_side=5)

GROUPED = [n.name for n in NORMS.values() if n.axes is not AxesRule.CHANNEL_WINDOW and n.rows is None]
"""Norms whose values fall into groups, in any order: all but those of a window or a matrix."""

SCALERS = [n.name for n in NORMS.values() if n.axes is AxesRule.FIRST and n.centre is not Centre.MEAN]
"""Norms of columns, by the order of their values."""

every_norm = st.sampled_from(list(NORMS))


@st.composite
def tensors(draw, dtypes=("float32", "float64", "int16", "uint8"), scale=1.0):
    """A tensor of spread values, none of them subnormal or huge."""
    shape = draw(shapes)
    seed = draw(st.integers(0, 2**32 - 1))
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    values = np.random.default_rng(seed).normal(0, 20, shape) * scale
    return np.clip(values, 0, 255).astype(dtype) if dtype.kind == "u" else values.astype(dtype)


def options_for(norm: str, shape: tuple[int, ...]) -> dict[str, object]:
    """What a norm must be told for a shape: gn its number of groups."""
    if NORMS[norm].axes is AxesRule.CHANNEL_GROUPS:
        return {"groups": next(g for g in (2, 3, 1) if shape[1] % g == 0)}
    return {}
