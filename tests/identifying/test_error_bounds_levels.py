"""How careless a kernel may be: each level allows more than the one before it."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.identifying.models.error_bounds import choose_careless, list_levels

CARELESS = [(1.0, 1.0), (1.0, 2.0), (1.0, 4.0), (1.0, 8.0), (1.0, 16.0), (1.0, 32.0)]


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("float16", {"float32": [(0.501, k) for _, k in CARELESS[1:]], "float16": CARELESS[:2]}),
        ("float32", {"float32": [(0.501, 0.0), (2.0, 0.0), *CARELESS]}),
        ("float64", {"float64": [(0.501, 0.0), (2.0, 0.0), *CARELESS], "float32": [(1.0, 4.0), (1.0, 32.0)]}),
    ],
)
def test_levels_of_a_dtype_go_from_rounded_once_to_careless(dtype, expected):
    levels = list_levels(np.dtype(dtype))
    assert levels == tuple((precision, *each) for precision, some in expected.items() for each in some)
    careless = choose_careless(np.dtype(dtype))
    assert careless == (levels[0].precision, *expected[levels[0].precision][-1])


def test_roundings_are_of_the_terms_and_of_the_precision_that_is_calculated_in():
    *_, careless = list_levels(np.dtype("float64"))
    assert careless.measure(np.array([1.0, 3.0])).tolist() == [32 * 2.0**-23, 96 * 2.0**-23]
