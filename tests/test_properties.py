"""Laws that hold for every tensor."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from normcli import normalize
from normcli.norms.table import NORMS
from tests.strategies import (
    every_norm,
    options_for,
    tensors,
)

pytestmark = pytest.mark.usefixtures("either_kernel")

TOLERANCE = 1e-9


def _layout(shape):
    return "NCDHW"[: len(shape)]


@pytest.mark.slow
@given(tensors(dtypes=("float64", "int16")), every_norm)
def test_the_normalized_tensor_keeps_the_norms_promise(x, norm):
    result = normalize(x, norm, **options_for(norm, x.shape))
    assert all(check.ok for check in result.check), result.check


@pytest.mark.slow
@given(tensors(), every_norm, st.randoms(use_true_random=False))
def test_permuting_the_axes_permutes_the_answer(x, norm, random):
    letters = _layout(x.shape)
    order = list(range(x.ndim))
    random.shuffle(order)
    options = options_for(norm, x.shape) | ({} if NORMS[norm].rows is None else {"rows": letters[0]})
    plain = normalize(x, norm, layout=letters, **options)
    axes = [letters[axis] for axis in plain.axes]
    layout = "".join(letters[i] for i in order)
    moved = normalize(x.transpose(order), norm, layout=layout, axes=axes, **options)
    atol = TOLERANCE if plain.normalized.dtype == np.float64 else 1e-5
    np.testing.assert_allclose(moved.normalized, plain.normalized.transpose(order), atol=atol)
