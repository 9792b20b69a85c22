"""Which cases of a test are tried, and which of them the quick loop keeps."""

from __future__ import annotations

import os
import random

import pytest

EVERY_CASE = "NORMCLI_EVERY_CASE" in os.environ
"""Whether all cases are tried where otherwise some are drawn."""

MOST_CASES, TRIED_CASES = 8, 4
"""Of a test with more cases than the first, the second are tried, unless it is marked `all_quick` or `all_tried`."""

COSTLY_CASES, COSTLY_SAMPLED = 2, 3
"""So many of a costly test, and of one that is `sampled` as well."""

sampled = pytest.mark.sampled
"""Of a product of parameters, try as many cases as it takes to have every value of each."""

costly = pytest.mark.costly
"""A case of this test takes a good part of a second: few are tried, and one of them in the quick loop."""


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


def sample(cases, test):
    """Return the cases of a test that are tried where not every one is, in their order.

    Which ones is drawn by the name of the test, so that it is the same in every run. Cases with a value that no
    case before them has come first. A test marked `sampled` keeps these and no others, of a costly one the first
    few; names given to that mark are the parameters that count, as others may follow from them.
    """
    mark, is_costly = map(test.get_closest_marker, ("sampled", "costly"))
    most, tried = (COSTLY_CASES,) * 2 if is_costly else (MOST_CASES, TRIED_CASES)
    if mark is None and (len(cases) <= most or any(map(test.get_closest_marker, ("all_quick", "all_tried")))):
        return cases
    drawn = random.Random(test.originalname).sample(cases, len(cases))
    if test.get_closest_marker("slow") is None:
        drawn.sort(key=lambda case: any(mark.name == "slow" for mark in case.marks))
    enough = (COSTLY_SAMPLED if is_costly else len(cases)) if mark else tried
    seen, new, others = set(), [], []
    for case in drawn:
        if len(new) == enough:
            break
        values = {(name, repr(case.params[name])) for name in (mark and mark.args) or case.params}
        (new if values - seen else others).append(case)
        seen |= values
    kept = set(map(id, new if mark else (new + others)[:tried]))
    return [case for case in cases if id(case) in kept]
