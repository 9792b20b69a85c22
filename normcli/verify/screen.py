"""Large groups, looked at before they are measured: whatever centres and divides, values lie on a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from normcli.verify.plain import fit_lines

if TYPE_CHECKING:
    from normcli.dtypes import Floats
    from normcli.verify.affine import AffineStep

SCREENED = 256
"""Values of a group that are looked at."""

_MARGIN = 8.0
"""How much further off than rounding allows values may be: their group's mean and size are guessed."""


def measure_offset(x: Floats) -> float:
    """Return about how many deviations values are from zero; infinite where most of them are one."""
    middle = float(np.median(x))
    size = float(np.median(np.abs(x - middle)))
    return abs(middle) / size if size > 0.0 else np.inf


def lie_on_line(x: Floats, y: Floats, step: AffineStep, slack: Floats, before: Floats) -> bool:
    """Whether values of one group may be centred and divided by anything, before an affine step.

    Parameters
    ----------
    x, y : ndarray, shape (values,)
    step : AffineStep
        Of these values.
    slack, before : ndarray, shape (values,)
        How far the affine step may be off, and x̂ before it, where x̂ is as large as 1.
    """
    targets, _ = step.undo(y, slack, before)
    targets, allowed = step.undo(y, slack, before * (1.0 + np.abs(targets)))
    known = np.isfinite(x) & np.isfinite(targets) & np.isfinite(allowed)
    if not known.any():
        return True
    x, targets, allowed = x[known], targets[known], allowed[known]
    rest = np.abs(targets - fit_lines(x, targets, (), through_zero=False).apply(x))
    return not np.any(rest > _MARGIN * (allowed + np.median(allowed)))
