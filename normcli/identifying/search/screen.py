"""A test of large groups before they are measured: with any centre and divisor, values lie on a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from normcli.identifying.maps.line_fit import fit_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from normcli.dtypes import Floats, Selected
    from normcli.identifying.search.affine_step import AffineStep

SCREENED = 256
"""Values of a group that are looked at."""

_MARGIN = 8.0
"""How much further off than rounding allows values may be: their group's mean and size are guessed."""


def measure_offset(x: Floats) -> float:
    """Return about how many deviations values are from zero; infinite where most of them are one."""
    middle = float(np.median(x))
    size = float(np.median(np.abs(x - middle)))
    return abs(middle) / size if size > 0.0 else np.inf


def lie_on_lines(x: Floats, y: Floats, steps: Sequence[tuple[AffineStep, Floats]], before: Floats) -> Selected:
    """Return with which affine steps values of one group may be centred and divided by anything before.

    Parameters
    ----------
    x, y : ndarray, shape (values,)
    steps : sequence of (AffineStep, ndarray)
        Of these values, each with how far it may be off; their lines are fitted together.
    before : ndarray, shape (values,)
        How far x̂ may be off before a step, where it is as large as 1.
    """
    undone = [_undo(y, step, slack, before) for step, slack in steps]
    targets, allowed = (np.stack(parts) for parts in zip(*undone, strict=True))
    known = np.isfinite(x) & np.isfinite(targets) & np.isfinite(allowed)
    targets, allowed = np.where(known, targets, np.nan), np.where(known, allowed, np.nan)
    size = np.frexp(np.abs(np.where(known, targets, 0.0)).max(axis=1, keepdims=True))[1]
    scaled = np.ldexp(targets, -size)  # each line as if it were alone
    lines = fit_lines(np.broadcast_to(x, scaled.shape), scaled, (0,), through_zero=False)
    rest = np.abs(targets - np.ldexp(lines.apply(np.where(np.isfinite(x), x, 0.0)), size))
    middle = np.array(
        [np.median(row[some]) if some.any() else 0.0 for row, some in zip(allowed, known, strict=True)]
    )
    refuted: Selected = (known & (rest > _MARGIN * (allowed + middle[:, None]))).any(axis=1)
    return ~refuted


def _undo(y: Floats, step: AffineStep, slack: Floats, before: Floats) -> tuple[Floats, Floats]:
    """Return x̂ and how far it may be off."""
    targets, _ = step.undo(y, slack, before)
    return step.undo(y, slack, before * (1.0 + np.abs(targets)))
