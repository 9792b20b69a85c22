"""Assertions for the tests of kernels: y is the norm of x; if it is not, the message names the fault.

* `assertions`: `assert_matches` and assertions on gradients, models and recorded runs
* `declared_algorithm`: error bounds of each value for `accumulate=` and `algorithm=`
* `provocations`: the inputs on which kernels fail

>>> import numpy as np
>>> from normcli.testing import assert_matches
>>> x = np.arange(12, dtype=np.float32).reshape(3, 4)
>>> y = (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)
>>> assert_matches(y, x, "ln", eps=0.0, max_ulp=2)
"""

from __future__ import annotations

from normcli.testing.assertions import (
    assert_backward_matches,
    assert_matches,
    assert_model_matches,
    assert_runs_match,
)
from normcli.testing.provocations import Provocation, provocations

__all__ = [
    "Provocation", "assert_backward_matches", "assert_matches", "assert_model_matches", "assert_runs_match",
    "provocations",
]  # fmt: skip
