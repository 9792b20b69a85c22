"""A match: a hypothesis that reproduces a tensor, how sure that is, and which of several is named first."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.ulp import measure_distance
from normcli.dtypes import find_type, is_half
from normcli.identifying.models.evidence import COMMON_EPS
from normcli.identifying.models.weight import CERTAIN
from normcli.identifying.search.affine_step import ESTIMATED, NO_AFFINE, WAYS
from normcli.identifying.search.hypothesis import find_equal
from normcli.norms.request import Request
from normcli.norms.table import NORMS
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from normcli.dtypes import Floats
    from normcli.identifying.models.matrix_model import Start, Steps
    from normcli.identifying.search.hypothesis import Hypothesis
    from normcli.norms.spec import Window


class Scope(NamedTuple):
    """The norms that a search looks for, and the tensor's axes and dtype.

    Parameters
    ----------
    norm : str or None
        The norm to look for; None for all.
    channels : frozenset of int
        The axes that may be the channel.
    order : tuple of int
        The axes of the actual tensor, in the order of the input's.
    dtype : numpy.dtype
        The dtype in whose last place distances are counted.
    start : Start or None
        What power iterations may have started from.
    is_laid_out : bool
        Whether a layout says which axis is the channel: then what a framework takes for it is no default.
    """

    norm: str | None
    channels: frozenset[int]
    order: tuple[int, ...]
    dtype: np.dtype[Any]
    start: Start | None = None
    is_laid_out: bool = False


_MOST_LOST = 2.0**-8
"""The error of a mean, in deviations, up to which a norm can be told from its neighbours."""


_MOST_ULP = 2.0**40
"""No rounding in float64 takes a value so far."""

_FEW_EXACT = 0.1
"""The share of values with the exact bits by luck, if a mean has lost that many digits."""


class Furthest(NamedTuple):
    """The value that is furthest from the exact one.

    Parameters
    ----------
    place : tuple of int
        Its index in the input.
    exact, actual : float
    """

    place: tuple[int, ...]
    exact: float
    actual: float


class Match(NamedTuple):
    """A hypothesis that reproduces the tensor.

    Parameters
    ----------
    norm : str
        A name of the table of norms.
    axes : tuple of int
        The reduced axes; with groups, one of them in part.
    precision : str
        The dtype of the kernel's sums, as far as distances show it.
    like : tuple of str
        The frameworks with these defaults.
    max_ulp, max_abs : float
        The largest distance of a value from the exact result, in units of the shorter of y's dtype and that.
    equal : float
        The share of the values that have the bits of the exact result, rounded as the hypothesis says.
    compared : int
        How many values these shares are of.
    furthest : Furthest
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
    rows : tuple of int or None
        Of `sn`: the axes that are the rows of its matrix.
    steps : Steps or None
        Of `sn`: the power iterations from a given start that give y.
    by_default : bool
        Whether the axes are the norm's or a framework's own choice.
    bits : float
        The evidence for it; see `weight`.
    is_odd : bool
        Whether the eps is none in use and not small beside the variances: then it is no match.
    has_default_eps : bool
        Whether its eps is its norm's or one of these frameworks' own, or none is to be seen.
    users : int
        How many of the frameworks leave nothing of it to the caller.
    lost : float
        How far off the mean may be, as a part of a deviation: that shifts a whole group, whatever divides it.
    fine : float
        Of half precision, the bits that tell its statistics from some that were rounded to it; see `weight`.
    rounds_length : bool
        Whether every value has the bits of a length that was rounded to half precision before it divided.
    hypothesis : Hypothesis or None
        None for a window, for a matrix, and beside a gate.
    gate : tuple of str or None
        Order and activation of a gate that was given, as `--gate-order` and `--gate-act` have them.
    """

    norm: str
    axes: tuple[int, ...]
    precision: str
    like: tuple[str, ...]
    max_ulp: float
    max_abs: float
    equal: float
    compared: int
    furthest: Furthest
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
    rows: tuple[int, ...] | None = None
    steps: Steps | None = None
    by_default: bool = True
    bits: float = math.inf
    is_odd: bool = False
    has_default_eps: bool = True
    users: int = 0
    lost: float = 0.0
    fine: float = math.inf
    rounds_length: bool = False
    hypothesis: Hypothesis | None = None
    gate: tuple[str, str] | None = None

    @classmethod
    def of(
        cls,
        norm: str,
        actual: Floats,
        exact: Floats,
        dtype: np.dtype[Any],
        locate: Callable[..., tuple[int, ...]] = lambda *index: index,
        **others: Any,
    ) -> Match:
        """Return the match of a norm with its exact result; the other fields are given as they are.

        Parameters
        ----------
        norm : str
        actual, exact : ndarray
            Of one shape.
        dtype : numpy.dtype
            The dtype in whose last place distances are counted.
        locate : callable
            Takes the index of one of these values, and returns its index in the input.
        """
        error, ulp = measure_distance(actual, exact, dtype)
        equal = find_equal(actual, exact, dtype)
        index = tuple(map(int, np.unravel_index(int(np.where(equal, 0.0, ulp).argmax()), ulp.shape)))
        furthest = Furthest(locate(*index), float(exact[index]), float(actual[index]))
        return cls(
            norm,
            max_ulp=float(ulp.max()),
            max_abs=float(error.max()),
            equal=float(np.mean(equal)),
            compared=actual.size,
            furthest=furthest,
            **others,
        )

    def make_request(self) -> Request:
        """Return the request of the norm of these groups, with the norm's own eps and ddof."""
        return Request(self.norm, axes=self.axes, groups=self.groups, group_order=self.group_order, p=self.p)

    @property
    def is_certain(self) -> bool:
        """Whether it is more than a plain map would be by chance."""
        return self.bits >= CERTAIN and not (self.is_odd or self.is_rough or self.takes_up_rounding)

    @property
    def takes_up_rounding(self) -> bool:
        """Whether its eps, where it shows, may be what statistics of half precision make of a default one."""
        return not self.has_default_eps and self.eps_range[0] > 0.0 and self.fine < CERTAIN

    @property
    def is_rough(self) -> bool:
        """Whether only a kernel whose sums are of half precision, or lose all digits, may give these values."""
        if self.rounds_length:
            return False
        is_alone = (
            self.hypothesis is not None and len(self.hypothesis.sample.chosen) == 1
        )  # any number is a factor
        is_lost = self.lost > _MOST_LOST or (self.p is not None and is_alone)
        is_blurred = is_lost and self.equal < _FEW_EXACT and self.affine != ESTIMATED
        return self.sums_in_half or is_blurred

    @property
    def is_far(self) -> bool:
        """Whether it is off by more than rounding makes, of numbers whose squares float64 does not hold."""
        return self.max_ulp > _MOST_ULP

    @property
    def sums_in_half(self) -> bool:
        """Whether a kernel with sums of float32 would not give these values."""
        return is_half(np.dtype(find_type(self.precision.split(",")[0])))

    @property
    def takes_eps(self) -> bool:
        """Whether an eps could have been there: where there is no room for one, a norm without it has none."""
        return NORMS[self.norm].eps is not None or any(self.eps_range)

    @property
    def is_usual(self) -> bool:
        """Whether its eps is one that people choose."""
        return self.eps in COMMON_EPS


def rank_matches(matches: Iterable[Match]) -> list[Match]:
    """Sort matches: usual eps first, then by the share of equal values, then by how common the norm is."""
    matches = list(matches)
    most = max((match.equal for match in matches), default=1.0)

    def rank(match: Match) -> tuple[Any, ...]:
        return (
            not match.is_usual,
            most == 1.0 and (1.0 - match.equal) * match.compared > _FEW,
            int((most - match.equal) / BY_LUCK),
            not match.has_default_eps,
            _round_distance(match.max_abs),
            not match.by_default,
            match.affine != NO_AFFINE.way and not NORMS[match.norm].parameter_names,
            match.users == 0,
            match.groups == 1,  # of all channels: layer normalization by another name
            -match.users,
            list(WAYS).index(match.affine),
            match.ddof,
            list(NORMS).index(match.norm),
            -match.equal,
        )

    return sorted(matches, key=rank)


BY_LUCK = 0.1
"""Shares of equal values that differ by less differ by luck."""


_FEW = 4.0
"""The most values without the exact bits that are an accident if another match gives every bit."""


def _round_distance(distance: float) -> float:
    """Return a distance's exponent to base 4: what differs by less differs by luck."""
    if distance == 0.0:
        return -math.inf
    return math.frexp(distance)[1] // 2 if math.isfinite(distance) else math.inf
