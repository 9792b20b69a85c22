"""Tensors that were given the other way round."""

from __future__ import annotations

import pytest

from normcli import identify, normalize
from tests.marks import costly


@costly
@pytest.mark.parametrize("norm", ["ln", "bn", "rms", "zscore", "minmax"])
@pytest.mark.parametrize("offset", [0.0, 30.0])
def test_they_are_asked_after(norm, offset, rng):
    x = (rng.normal(size=(12, 7)) * 3 + offset).astype("f4")
    y = normalize(x, norm).normalized
    told = identify(x, y).diagnosis
    assert told.next_step is not None
    assert told.next_step.endswith("of y: are input and actual exchanged?")
    assert norm in told.next_step or norm in ("bn", "zscore")
    right = identify(y, x).diagnosis
    assert "exchanged" not in (right.next_step or "")


@pytest.mark.slow
def test_what_is_no_norm_either_way_is_not_asked_after(rng):
    x, y = rng.normal(size=(2, 8, 9))
    assert "exchanged" not in (identify(y, x).diagnosis.next_step or "")
    assert "exchanged" not in (identify(2 * x, x).diagnosis.next_step or "")
