"""Which cases of a test the quick loop keeps."""

from __future__ import annotations

import pytest


def slowly(cases):
    """Return cases for `parametrize` that run only where everything does."""
    marked = []
    for case in cases:
        values, name = (
            (case.values, case.id) if hasattr(case, "values") and hasattr(case, "id") else ((case,), None)
        )
        marked.append(pytest.param(*values, id=name, marks=pytest.mark.slow))
    return marked
