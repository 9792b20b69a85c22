"""The tests of a kernel: exact results to hold it against, on the inputs that kernels fail on.

pip install normcli pytest; pytest
"""

import numpy as np
import pytest
from layer_norm import backward, forward

from normcli.testing import assert_backward_matches, assert_matches, provocations

CASES = [case for dtype in ("float16", "float32") for case in provocations("ln", dtype)]


def name(case):
    """Return the id of a test."""
    return f"{case.x.dtype}, {case}"


LOST = ("float32, mean 4.1943e+06 times the spread", "float32, edge of float32")
"""What two passes in float32 promise nothing of: the mean has few digits left, or squares overflow."""


@pytest.mark.parametrize("case", CASES, ids=name)
def test_forward(case):
    """No value is further off than the roundings of two passes in float32 make it."""
    with np.errstate(over="ignore", invalid="ignore"):
        y = forward(case.x, case.gamma, case.beta)
    if name(case) in LOST:
        with pytest.raises(AssertionError, match="promises nothing"):
            assert_matches(y, case.x, "ln", accumulate="float32", **case.options)
        return
    assert_matches(y, case.x, "ln", accumulate="float32", **case.options)


KINDS = ("group size", "rank", "transposed", "every other value", "no values")

USUAL = [case for case in CASES if str(case).startswith(KINDS)]

LIMITS = {"float16": {"rtol": 2e-3, "atol": 2e-3}, "float32": {"rtol": 1e-5, "atol": 1e-5}}


@pytest.mark.parametrize("case", USUAL, ids=name)
def test_backward(case):
    """With a dy that hides no term; where there is a bug, the message says which term it is in."""
    with np.errstate(invalid="ignore"):  # rows of no values
        dx, dgamma, dbeta = backward(case.dy, case.x, case.gamma)
    limits = LIMITS[case.x.dtype.name]
    assert_backward_matches(dx, case.x, case.dy, "ln", dgamma=dgamma, dbeta=dbeta, **limits, **case.options)
