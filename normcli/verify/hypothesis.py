"""A hypothesis of what made a tensor, and a match: one that reproduces it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.norms.table import NORMS, EpsMode
from normcli.numerics.rounding import store
from normcli.verify.evidence import COMMON_EPS, LENGTH_EPS, choose_eps
from normcli.verify.groups import take_groups
from normcli.verify.names import WINDOWED, find_like_window, name_hypothesis
from normcli.verify.ulp import measure_distance

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from normcli.norms.grid import Grid
    from normcli.norms.plan import Window
    from normcli.verify.affine import Affine
    from normcli.verify.evidence import Model, Standard

    Floats = NDArray[np.float64]


_FLOAT32 = np.dtype(np.float32)

_ROUNDED_ONCE = 0.501
"""The ulp that a result is off at most which is the exact one, rounded."""


class Match(NamedTuple):
    """A hypothesis that reproduces the tensor.

    Parameters
    ----------
    norm : str
        A name of the table of norms.
    axes : tuple of int
        Reduced, whole or (where there are groups) in part.
    groups : int or None
        Of channels.
    group_order : str or None
        `contiguous` or `interleaved`, where there are groups.
    eps : float
        The simplest that fits.
    eps_range : (float, float)
        The lowest and the highest that fit.
    eps_mode : str or None
    ddof : int
    p : float or None
        Of an ℓp length.
    affine : str
        How gamma and beta entered.
    precision : str
        The dtype in which it was accumulated, as far as the distance tells.
    like : tuple of str
        The frameworks whose defaults these are.
    max_ulp, max_abs : float
        The largest distance of a value from the exact result.
    order : tuple of int
        The axes of the actual tensor, in the order of the input's.
    window : Window or None
        Of `lrn`, which has no eps.
    by_default : bool
        Whether the axes are the norm's or a framework's own choice.
    """

    norm: str
    axes: tuple[int, ...]
    groups: int | None
    group_order: str | None
    eps: float
    eps_range: tuple[float, float]
    eps_mode: str | None
    ddof: int
    p: float | None
    affine: str
    precision: str
    like: tuple[str, ...]
    max_ulp: float
    max_abs: float
    order: tuple[int, ...]
    window: Window | None = None
    by_default: bool = True

    @property
    def takes_eps(self) -> bool:
        """Whether an eps could have been there: where there is no room for one, a norm without it has none."""
        return NORMS[self.norm].eps is not None or self.eps_range != (0.0, 0.0)

    @property
    def is_usual(self) -> bool:
        """Whether its eps is one that people choose."""
        return self.eps in COMMON_EPS


class Hypothesis(NamedTuple):
    """A way of grouping, dividing and scaling, on the groups that it was held against.

    Parameters
    ----------
    grid : Grid
    affine : Affine
        As it applies to the whole tensor.
    standard : Standard
    model : Model
    chosen : ndarray of int or None
        The groups' numbers; None for all.
    """

    grid: Grid
    affine: Affine
    standard: Standard
    model: Model
    chosen: NDArray[np.intp] | None

    def predict(self, eps: float) -> Floats:
        """Return the exact result for the groups, of shape (groups, group_size)."""
        return self._scale(self.standard.values * self._find_factor(eps)[:, None])

    def predict_rounded_first(self, eps: float, dtype: np.dtype[Any]) -> Floats:
        """Return what comes of x̂ being rounded to a dtype before gamma multiplies it, rounded again."""
        result = np.empty(self.standard.values.shape, dtype)
        store(result, self.standard.values * self._find_factor(eps)[:, None])
        store(result, self._scale(result.astype(np.float64)))
        return result.astype(np.float64)

    def _scale(self, result: Floats) -> Floats:
        if self.affine.scale is not None:
            result = result * take_groups(self.grid, self.affine.scale, self.chosen)
        if self.affine.shift is not None:
            result = result + take_groups(self.grid, self.affine.shift, self.chosen)
        return result

    def _is_rounded_first(self, rows: Floats, eps: float, ulp: float, dtype: np.dtype[Any]) -> bool | None:
        """Whether x̂ was rounded before gamma; None where there is no telling."""
        if self.affine.scale is None or self.affine.estimated or dtype.itemsize >= _FLOAT32.itemsize:
            return None
        first = bool(np.array_equal(rows, self.predict_rounded_first(eps, dtype)))
        once = ulp <= _ROUNDED_ONCE
        return None if first == once else first

    def _find_factor(self, eps: float) -> Floats:
        size, model = self.standard.size, self.model
        with np.errstate(all="ignore"):
            if model.p is not None:
                length = self.standard.lengths[model.p]
                floored = model.eps_mode is EpsMode.FLOOR
                factor = size / (np.maximum(length, eps) if floored else np.sqrt(length**2 + eps))
            else:
                share = self.standard.group_size / (self.standard.group_size - model.ddof)
                inside = np.sqrt(share * size**2 + eps)
                factor = size / (inside if model.eps_mode is EpsMode.INSIDE else math.sqrt(share) * size + eps)
        return np.where(size > 0.0, factor, 0.0)

    def describe(
        self,
        rows: Floats,
        dtype: np.dtype[Any],
        precision: str,
        order: tuple[int, ...],
        channels: frozenset[int],
    ) -> Iterator[Match]:
        """Yield the matches that this amounts to: one for each name that it has.

        Parameters
        ----------
        rows : ndarray
            The actual values of the groups.
        dtype : numpy.dtype
            Whose last place counts.
        precision : str
        order : tuple of int
        channels : frozenset of int
            The axes that may be the channel.
        """
        grid, model = self.grid, self.model
        eps = choose_eps(model.low, model.high, LENGTH_EPS if model.eps_mode is EpsMode.FLOOR else None)
        with np.errstate(all="ignore"):
            error, ulp = measure_distance(rows, self.predict(eps), dtype)
            first = self._is_rounded_first(rows, eps, float(ulp.max()), dtype)
        if first:
            precision = f"{precision}, rounded before gamma"
        for named in name_hypothesis(grid, model, self.affine, channels, dtype, first):
            yield Match(
                norm=named.name.norm,
                axes=grid.axes,
                groups=named.name.groups,
                group_order=None if named.name.groups is None else grid.group_order,
                eps=eps,
                eps_range=(model.low, model.high),
                eps_mode=None if model.eps_mode is EpsMode.FLOOR else model.eps_mode,
                ddof=model.ddof,
                p=model.p,
                affine=self.affine.name,
                precision=precision,
                like=named.like,
                max_ulp=float(ulp.max()),
                max_abs=float(error.max()),
                order=order,
                by_default=named.by_default,
            )


def describe_window(
    axis: int,
    window: Window,
    actual: Floats,
    exact: Floats,
    dtype: np.dtype[Any],
    precision: str,
    order: tuple[int, ...],
) -> Match:
    """Return the match of a window of local response normalization."""
    with np.errstate(all="ignore"):
        error, ulp = measure_distance(actual, exact, dtype)
    return Match(
        norm=WINDOWED,
        axes=(axis,),
        groups=None,
        group_order=None,
        eps=0.0,
        eps_range=(0.0, 0.0),
        eps_mode=None,
        ddof=0,
        p=None,
        affine="none",
        precision=precision,
        like=find_like_window(window, actual.shape, axis),
        max_ulp=float(ulp.max()),
        max_abs=float(error.max()),
        order=order,
        window=window,
    )
