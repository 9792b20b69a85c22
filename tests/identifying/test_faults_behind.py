"""What follows a norm is named, and a bound only where several values stand at it."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.dtypes import find_type
from tests.identifying.faulty import ask, draw, draw_affine, name, standardize

X = draw((12, 64))
GAMMA, BETA = draw_affine(64)
Y = standardize(X) * GAMMA + BETA


def test_x_itself_is_no_sum_with_a_result_that_is_lost():
    x = draw((6, 8), "f8") * 1e300
    assert not any(claim.fault.id == "after-input-added" for claim in ask("ln", x, x))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_rounding_before_a_factor_is_as_small_as_the_factor(dtype):
    x = draw((16, 64), find_type(dtype))
    assert name("rms", x, 0.02 * x.astype("f8") / np.sqrt((x.astype("f8") ** 2).mean(-1, keepdims=True)))[
        0
    ] == ["affine-constant"]
    assert ask("rms", x, x / np.abs(x.astype("f8")).sum(-1, keepdims=True)) == ()


@pytest.mark.slow
def test_a_bounded_step_explains_no_result_of_a_huge_gamma():
    given = GAMMA * np.float32(1e8)
    assert not [one for one in ask("ln", X, Y, given) if one.fault.id.startswith("after-")]
