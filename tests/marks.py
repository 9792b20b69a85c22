"""Which cases of a test are tried, and which of them the quick loop keeps."""

from __future__ import annotations

import random
from collections import Counter

import pytest

sampled = pytest.mark.sampled
"""Of a product of parameters, try as many cases as it takes to have every value of each twice, or as often as `times` says."""


def slowly(cases):
    """Return cases for `parametrize` that run only where everything does."""
    marked = []
    for case in cases:
        values, name = (
            (case.values, case.id) if hasattr(case, "values") and hasattr(case, "id") else ((case,), None)
        )
        marked.append(pytest.param(*values, id=name, marks=pytest.mark.slow))
    return marked


def sample(cases):
    """Return some cases of a test, in their order: every value of every parameter is in two of them, or in `times`.

    Which ones is drawn by the name of the test, so that it is the same in every run. Names given to the mark are
    those of the parameters that count: others may follow from them.
    """
    drawn = random.Random(cases[0].originalname).sample(cases, len(cases))
    drawn.sort(key=lambda case: case.get_closest_marker("slow") is not None)
    mark = cases[0].get_closest_marker("sampled")
    times, seen, kept = mark.kwargs.get("times", 1), Counter(), set()
    for case in drawn:
        parameters = case.callspec.params
        values = [(name, repr(parameters[name])) for name in mark.args or parameters]
        if min(seen[value] for value in values) < times:
            seen.update(values)
            kept.add(case)
    return [case for case in cases if case in kept]
