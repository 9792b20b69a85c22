"""A plain map read as a norm's evaluation: which stored statistics would make it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from normcli.identifying.maps.known_maps import UNTRAINED_EPS
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from normcli.dtypes import Floats
    from normcli.identifying.maps.lines import PlainMap
    from normcli.identifying.search.affine import AffineStep


class Evaluation(NamedTuple):
    """y = scale · (x − mean) / √square + shift.

    Parameters
    ----------
    mean : ndarray
        Of the shape of the map's a and b: the running mean.
    square : ndarray
        The running variance and its eps together.
    affine : AffineStep
        How gamma and beta entered.
    """

    mean: Floats
    square: Floats
    affine: AffineStep


def read_evaluation(found: PlainMap, affines: Iterable[AffineStep]) -> Evaluation | None:
    """Return the stored statistics that make a plain map with the first of some affine steps that can be.

    Parameters
    ----------
    found : PlainMap
    affines : iterable of AffineStep
        The likelier ones first.

    Returns
    -------
    Evaluation or None
        None where every step would need a deviation that is negative or no number.
    """
    shape = found.scale.shape
    for step in affines:
        if any(not _fits(values, shape) for values in (step.scale, step.shift)):
            continue
        gamma = np.ones(1) if step.scale is None else step.scale
        beta = np.zeros(1) if step.shift is None else step.shift
        with np.errstate(all="ignore"):
            rstd, mean = found.scale / gamma, (beta - found.shift) / found.scale
            square = 1.0 / rstd**2
        known = (rstd > 0.0) & (square > 0.0) & np.isfinite(square)  # a gamma of 0 makes no factor
        if np.all(known) and np.all(np.isfinite(mean)):
            return Evaluation(mean, square, step)
    return None


def find_untrained_eps(found: Evaluation) -> float | None:
    """Return the eps in use with which stored statistics are those before training; None where they are not.

    The mean is 0 and the variance 1 of every index, and eps is seen: otherwise y may not be normalized at all.
    """
    if np.any(np.abs(found.mean) > _NO_MEAN):
        return None
    added = found.square - 1.0
    return next((eps for eps in UNTRAINED_EPS if np.all(np.abs(added - eps) <= _SEEN * eps)), None)


_NO_MEAN, _SEEN = 1e-4, 0.25
"""The largest mean that is 0, of a deviation of 1, and the part of eps that the variance may be off."""


def _fits(values: Floats | None, shape: tuple[int, ...]) -> bool:
    return values is None or all(n in (1, full) for n, full in zip(values.shape, shape, strict=True))
