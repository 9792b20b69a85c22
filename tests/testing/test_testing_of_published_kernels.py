"""Published wrong kernels: the assertions fail on each, and say what is wrong with it."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import backward, normalize
from normcli.testing import assert_backward_matches, assert_matches, provocations
from tests.marks import costly
from tests.testing.published import BACKWARD, FORWARD


def find(wrong):
    """Return the provocation that shows a fault, and what the kernel is documented to be, beta left out of rms."""
    running = {name: value for name, value in wrong.options.items() if name.startswith("running")}
    others = {name: value for name, value in wrong.options.items() if name not in running}
    cases = (c for c in provocations(wrong.norm, wrong.dtype, **others) if str(c).startswith(wrong.case))
    case = next(cases)
    options = {**case.options, **running}
    if wrong.norm == "rms":
        options.pop("beta", None)
    return case, options


def test_there_are_eight_at_least_and_each_has_its_report():
    assert len(FORWARD) >= 8
    assert len(BACKWARD) >= 8
    reports = [wrong.report for wrong in (*FORWARD, *BACKWARD)]
    assert len(set(reports)) == len(reports)


@pytest.mark.slow
@costly
@pytest.mark.parametrize("wrong", FORWARD, ids=str)
def test_a_wrong_forward_kernel_fails_and_is_explained(wrong):
    case, options = find(wrong)
    assert_matches(
        normalize(case.x, wrong.norm, **options).normalized, case.x, wrong.norm, max_ulp=0.51, **options
    )
    y = wrong.kernel(case.x, case.gamma, case.beta).astype(wrong.dtype)
    with pytest.raises(AssertionError) as caught:
        assert_matches(y, case.x, wrong.norm, **options)
    assert wrong.fault in " ".join(str(caught.value).split())


@pytest.mark.slow
@pytest.mark.parametrize("wrong", BACKWARD, ids=str)
def test_a_wrong_backward_kernel_fails_and_is_explained(wrong):
    """The arithmetic is float64's, and its result is rounded: what differs is the fault."""
    case, options = find(wrong)
    exact = backward(case.x, case.dy, wrong.norm, **options)
    names = ("dx", "dgamma", "dbeta")
    found = wrong.kernel(*(a.astype(np.float64) for a in (case.x, case.dy, case.gamma)))
    right = {name: exact.field(name) for name, array in zip(names, found, strict=True) if array is not None}
    arrays = {
        name: array.astype(wrong.dtype) for name, array in zip(names, found, strict=True) if array is not None
    }
    assert arrays
    assert_backward_matches(
        right.pop("dx", None), case.x, case.dy, wrong.norm, **right, max_ulp=0.501, **options
    )
    with pytest.raises(AssertionError) as caught:
        assert_backward_matches(arrays.pop("dx", None), case.x, case.dy, wrong.norm, **arrays, **options)
    assert wrong.fault in " ".join(str(caught.value).split())
