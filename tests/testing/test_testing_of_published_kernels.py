"""Published wrong kernels: the assertions fail on each, and say what is wrong with it."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import backward
from normcli.testing import assert_backward_matches, provocations
from tests.testing.published import BACKWARD


def find(wrong):
    """Return the provocation that shows a fault, and what the kernel is documented to be, beta left out of rms."""
    running = {name: value for name, value in wrong.options.items() if name.startswith("running")}
    others = {name: value for name, value in wrong.options.items() if name not in running}
    cases = (c for c in provocations(wrong.norm, **others) if str(c).startswith(wrong.case))
    case = next(cases)
    options = {**case.options, **running}
    if wrong.norm == "rms":
        options.pop("beta", None)
    return case, options


def test_there_are_eight_at_least_and_each_has_its_report():
    assert len(BACKWARD) >= 8
    reports = [wrong.report for wrong in BACKWARD]
    assert len(set(reports)) == len(reports)


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
        name: array.astype("float32") for name, array in zip(names, found, strict=True) if array is not None
    }
    assert arrays
    assert_backward_matches(
        right.pop("dx", None), case.x, case.dy, wrong.norm, **right, max_ulp=0.501, **options
    )
    with pytest.raises(AssertionError) as caught:
        assert_backward_matches(arrays.pop("dx", None), case.x, case.dy, wrong.norm, **arrays, **options)
    assert wrong.fault in " ".join(str(caught.value).split())
