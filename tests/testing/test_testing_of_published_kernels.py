"""Published wrong kernels: the assertions fail on each, and say what is wrong with it."""

from __future__ import annotations

from normcli.testing import provocations
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
