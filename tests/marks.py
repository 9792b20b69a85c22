"""Which cases of a test are tried, and which of them the quick loop keeps."""

from __future__ import annotations

import os
import random

import pytest

EVERY_CASE = "NORMCLI_EVERY_CASE" in os.environ
"""Whether all cases are tried where otherwise some are drawn."""

sampled = pytest.mark.sampled
"""Of a product of parameters, try as many cases as it takes to have every value of each."""


def choose_some(cases, every):
    """Return one of so many cases, or every case where that is asked for."""
    return list(cases)[:: 1 if EVERY_CASE else every]


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
    """Return some cases of a test, in their order: every value of every parameter is in one of them.

    Which ones is drawn by the name of the test, so that it is the same in every run. Names given to the mark are
    those of the parameters that count: others may follow from them.
    """
    drawn = random.Random(cases[0].originalname).sample(cases, len(cases))
    drawn.sort(key=lambda case: case.get_closest_marker("slow") is not None)
    mark = cases[0].get_closest_marker("sampled")
    seen, kept = set(), set()
    for case in drawn:
        parameters = case.callspec.params
        values = {(name, repr(parameters[name])) for name in mark.args or parameters}
        if values - seen:
            seen |= values
            kept.add(case)
    return [case for case in cases if case in kept]
