"""A hypothesis of what made a tensor, and a match: one that reproduces it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.norms.table import NORMS
from normcli.numerics.divisor import find_divisor
from normcli.numerics.rounding import store
from normcli.verify.affine import ESTIMATED
from normcli.verify.evidence import COMMON_EPS
from normcli.verify.groups import take_groups
from normcli.verify.ulp import ROUNDED_ONCE
from normcli.verify.weight import CERTAIN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.norms.grid import Grid
    from normcli.norms.plan import Window
    from normcli.verify.affine import AffineStep
    from normcli.verify.evidence import Model, Standard


_FLOAT32 = np.dtype(np.float32)


class Scope(NamedTuple):
    """What a search looks for, and in which tensor.

    Parameters
    ----------
    norm : str or None
        The norm to look for; None for all.
    channels : frozenset of int
        The axes that may be the channel.
    order : tuple of int
        The axes of the actual tensor, in the order of the input's.
    dtype : numpy.dtype
        In whose last place distances are counted.
    """

    norm: str | None
    channels: frozenset[int]
    order: tuple[int, ...]
    dtype: np.dtype[Any]


class Match(NamedTuple):
    """A hypothesis that reproduces the tensor.

    Parameters
    ----------
    norm : str
        A name of the table of norms.
    axes : tuple of int
        Reduced, whole or (where there are groups) in part.
    precision : str
        The dtype in which it was accumulated, as far as the distance shows.
    like : tuple of str
        The frameworks whose defaults these are.
    max_ulp, max_abs : float
        The largest distance of a value from the exact result.
    order : tuple of int
        The axes of the actual tensor, in the order of the input's.
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
        How gamma and beta entered: one of `affine.WAYS`.
    window : Window or None
        Of `lrn`, which has no eps.
    by_default : bool
        Whether the axes are the norm's or a framework's own choice.
    bits : float
        The evidence for it; see `weight`.
    is_odd : bool
        Whether the eps is none in use and not small beside the variances: then it is no match.
    """

    norm: str
    axes: tuple[int, ...]
    precision: str
    like: tuple[str, ...]
    max_ulp: float
    max_abs: float
    order: tuple[int, ...]
    groups: int | None = None
    group_order: str | None = None
    eps: float = 0.0
    eps_range: tuple[float, float] = (0.0, 0.0)
    eps_mode: str | None = None
    ddof: int = 0
    p: float | None = None
    affine: str = "none"
    window: Window | None = None
    by_default: bool = True
    bits: float = math.inf
    is_odd: bool = False

    @property
    def is_certain(self) -> bool:
        """Whether it is more than a plain map would be by chance."""
        return self.bits >= CERTAIN and not self.is_odd

    @property
    def takes_eps(self) -> bool:
        """Whether an eps could have been there: where there is no room for one, a norm without it has none."""
        return NORMS[self.norm].eps is not None or self.eps_range != (0.0, 0.0)

    @property
    def is_usual(self) -> bool:
        """Whether its eps is one that people choose."""
        return self.eps in COMMON_EPS


class Sample(NamedTuple):
    """Groups that hypotheses are compared with.

    Parameters
    ----------
    grid : Grid
    chosen : ndarray of int
        The groups' numbers, in order.
    standard : Standard
        The input's values, standardized.
    actual : ndarray, shape (groups, group_size)
    """

    grid: Grid
    chosen: NDArray[np.intp]
    standard: Standard
    actual: Floats

    def place(self, affine: AffineStep) -> AffineStep:
        """Return an affine step with its scale and shift of the sampled values."""
        return affine.map(lambda values: take_groups(self.grid, values, self.chosen))


class Hypothesis(NamedTuple):
    """A way of grouping, dividing and scaling.

    Parameters
    ----------
    sample : Sample
        The groups that it is compared with.
    affine : AffineStep
        As it applies to the whole tensor.
    model : Model
    """

    sample: Sample
    affine: AffineStep
    model: Model

    def predict(self, eps: float) -> Floats:
        """Return the exact result for the sampled values."""
        with np.errstate(all="ignore"):
            return self.sample.place(self.affine).apply(self.standardize(eps))

    def standardize(self, eps: float) -> Floats:
        """Return the exact x̂ of the sampled values."""
        standard, model = self.sample.standard, self.model
        if model.p is None:
            size = standard.size * math.sqrt(standard.group_size / (standard.group_size - model.ddof))
        else:
            size = standard.lengths[model.p]
        with np.errstate(all="ignore"):
            factor = standard.size / find_divisor(size, eps, model.eps_mode)
        return standard.values * np.where(standard.size > 0.0, factor, 0.0)[:, None]

    def is_rounded_first(self, eps: float, ulp: float, dtype: np.dtype[Any]) -> bool | None:
        """Whether x̂ was rounded to a dtype before gamma multiplied it; None where the data do not show it."""
        if self.affine.scale is None or self.affine.way == ESTIMATED or dtype.itemsize >= _FLOAT32.itemsize:
            return None
        result = np.empty(self.sample.actual.shape, dtype)
        with np.errstate(all="ignore"):
            store(result, self.standardize(eps))
            store(result, self.sample.place(self.affine).apply(result.astype(np.float64)))
        first = np.array_equal(self.sample.actual, result.astype(np.float64))
        once = ulp <= ROUNDED_ONCE
        return None if first == once else first
