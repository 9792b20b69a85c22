"""The story of dx of a matrix; the rest of it is held by `test_teach_stories.py`."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.documents.notation import build_equation
from normcli.results.arguments import read_arguments
from normcli.teach.explain import explain as explaining
from tests.conftest import pose


@pytest.mark.parametrize("x", [[[3, 4]], [[3.0], [4.0]], [[0.1, 0.2], [0.0, 0.0]]])
def test_what_cancels_is_0(x):
    asked = read_arguments(np.asarray(x), "sn", {})
    story = explaining.explain(pose(asked.plan, asked.values, dy=2 * asked.values), at=(0, 0))
    told = {step.name: build_equation(step).text for step in story.steps if step.symbol is not None}
    assert told["dx"].endswith(" 0")
    assert told["result"].endswith(" 0")
