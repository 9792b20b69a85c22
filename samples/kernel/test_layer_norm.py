"""The tests of a kernel: exact results to hold it against, on the inputs that kernels fail on.

pip install normcli pytest; pytest
"""

from contextlib import nullcontext

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


def judging(case):
    """Return what is expected of an assertion: nothing, or that it finds nothing promised."""
    return pytest.raises(AssertionError, match="promises nothing") if name(case) in LOST else nullcontext()


@pytest.mark.parametrize("case", CASES, ids=name)
def test_forward(case):
    """No value is further off than the roundings of two passes in float32 make it."""
    with np.errstate(over="ignore", invalid="ignore"):
        y = forward(case.x, case.gamma, case.beta)
    with judging(case):
        assert_matches(y, case.x, "ln", accumulate="float32", **case.options)


@pytest.mark.parametrize("case", CASES, ids=name)
def test_backward(case):
    """With a dy that hides no term; where there is a bug, the message says which term it is in."""
    with np.errstate(over="ignore", invalid="ignore"):
        dx, dgamma, dbeta = backward(case.dy, case.x, case.gamma)
    with judging(case):
        assert_backward_matches(
            dx, case.x, case.dy, "ln", dgamma=dgamma, dbeta=dbeta, accumulate="float32", **case.options
        )
