"""Windows and matrices, which are named apart from other norms, as matches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from normcli.checking.ulp import measure_distance
from normcli.identifying.models.windows import WINDOWED
from normcli.identifying.search.hypothesis import find_furthest, measure_equality
from normcli.identifying.search.match import Furthest, Match
from normcli.identifying.search.names import try_plan
from normcli.norms.conventions import list_frameworks
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.table import OF_MATRICES

if TYPE_CHECKING:
    from normcli.dtypes import Floats
    from normcli.identifying.models.matrices import FittedMatrix
    from normcli.identifying.models.windows import FittedWindow
    from normcli.identifying.search.match import Scope
    from normcli.norms.spec import Window


def describe_window(fitted: FittedWindow, actual: Floats, scope: Scope, precision: str) -> Match:
    """Return the match of a window of local response normalization."""
    axis, window, exact, bits = fitted
    covers_all = min(window.before, window.after) >= actual.shape[axis] - 1
    like, users = [], 0
    for framework in list_frameworks(WINDOWED):
        plan = try_plan(Request(WINDOWED, like=framework, size=window.size, axes=(axis,)), actual.shape)
        if plan is not None and plan.grid.reach == (window.before, window.after):
            is_own = _has_constants(plan.spec.window, window)
            users += is_own
            if is_own or not covers_all:  # the constants are often the user's, and the window tells enough
                like.append(framework)
    error, ulp = measure_distance(actual, exact, scope.dtype)
    return Match(
        norm=WINDOWED,
        axes=(axis,),
        precision=precision,
        like=tuple(like),
        max_ulp=float(ulp.max()),
        max_abs=float(error.max()),
        equal=measure_equality(actual, exact, scope.dtype),
        compared=actual.size,
        furthest=Furthest(*find_furthest(actual, exact, ulp, scope.dtype)),
        order=scope.order,
        window=window,
        by_default=users > 0 or not covers_all,
        users=users,
        bits=bits,
    )


def describe_matrix(fitted: FittedMatrix, actual: Floats, scope: Scope, precision: str) -> Match:
    """Return the match of the largest singular value of a matrix."""
    shape = actual.shape
    default = make_plan(Request(OF_MATRICES), shape, actual.dtype).spec.rows
    error, ulp = measure_distance(actual, fitted.exact, scope.dtype)
    return Match(
        norm=OF_MATRICES,
        axes=tuple(range(actual.ndim)),
        precision=precision,
        like=(),
        max_ulp=float(ulp.max()),
        max_abs=float(error.max()),
        equal=measure_equality(actual, fitted.exact, scope.dtype),
        compared=actual.size,
        furthest=Furthest(*find_furthest(actual, fitted.exact, ulp, scope.dtype)),
        order=scope.order,
        rows=fitted.rows,
        steps=fitted.steps,
        by_default=fitted.rows == default,
        bits=fitted.bits,
    )


def _has_constants(default: Window | None, window: Window) -> bool:
    """Whether k and the exponent are those of a framework; alpha is seldom known so well."""
    return default is not None and (default.k, default.exponent) == (window.k, window.exponent)
