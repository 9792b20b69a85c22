"""Which cases of a test the quick loop keeps."""

from __future__ import annotations

import pytest

from tests.reference.limits import HOLDS

as_specified = pytest.mark.xfail(not HOLDS, reason="results are not yet as specified", strict=False)
"""Marks tests of what is specified of results, which fail until it holds."""


def slowly(cases):
    """Return cases for `parametrize` that run only where everything does."""
    marked = []
    for case in cases:
        values, name = (
            (case.values, case.id) if hasattr(case, "values") and hasattr(case, "id") else ((case,), None)
        )
        marked.append(pytest.param(*values, id=name, marks=pytest.mark.slow))
    return marked
