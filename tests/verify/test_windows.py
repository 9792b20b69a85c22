"""Windows of local response normalization are summed as they are."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import normalize
from normcli.verify.identify import Question, identify


@pytest.mark.parametrize("size", [3, 4])
def test_a_large_channel_does_not_cancel_the_others(size):
    x = np.random.default_rng(0).normal(size=(5, 9, 7))
    x[:, 0] *= 1e9
    y = normalize(x, "lrn", size=size, alpha=1e-2, k=2.0).normalized
    match = identify(Question(x, y), "lrn").matches[0]
    assert (match.window.size, match.window.k, match.equal) == (size, 2.0, 1.0)
