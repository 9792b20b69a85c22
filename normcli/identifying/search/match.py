"""Matches: norms that reproduce a tensor, with their evidence, and the order in which they are listed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.ulp import measure_distance
from normcli.dtypes import find_type, is_half
from normcli.identifying.models.divisor_fit import COMMON_EPS
from normcli.identifying.models.weight import CERTAIN
from normcli.identifying.search.affine_step import ESTIMATED, NO_AFFINE, WAYS
from normcli.identifying.search.groups import find_equal
from normcli.norms.request import Request
from normcli.norms.rules import EpsMode
from normcli.norms.table import NORMS
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from normcli.dtypes import Floats
    from normcli.identifying.models.matrix_model import Start, Steps
    from normcli.identifying.search.groups import Hypothesis
    from normcli.norms.plan import Plan
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
        The permutation that puts the actual tensor's axes in the order of the input's.
    dtype : numpy.dtype
        The dtype to which y was rounded, in whose last place distances are counted.
    start : Start or None
        The vector from which power iterations may have started; None without one.
    is_laid_out : bool
        Whether a layout names the channel axis. If so, a framework's default axes count only if they are those
        that the norm has with this layout.
    """

    norm: str | None
    channels: frozenset[int]
    order: tuple[int, ...]
    dtype: np.dtype[Any]
    start: Start | None = None
    is_laid_out: bool = False


_MOST_LOST = 2.0**-8
"""A match is doubtful if the mean of a group may be off by more than this part of the group's deviation."""


_MOST_ULP = 2.0**40
"""A match with a value more than this many ulp from the exact result is not explained by rounding."""

_FEW_EXACT = 0.1
"""If means may be off that much, a match is doubtful with a smaller share of exact values than this."""


class Furthest(NamedTuple):
    """The value of y with the largest distance from the exact result.

    Parameters
    ----------
    place : tuple of int
        The index of the value in the input.
    exact, actual : float
        The exact result, and y.
    """

    place: tuple[int, ...]
    exact: float
    actual: float


class Match(NamedTuple):
    """A norm with options that reproduces the actual tensor y.

    Parameters
    ----------
    norm : str
        A name of the table of norms.
    axes : tuple of int
        The reduced axes; with groups, one of them in part.
    precision : str
        The dtype of the kernel's arithmetic that the distances show; with ", rounded before gamma" behind it if
        x̂ was rounded.
    like : tuple of str
        The frameworks whose layers compute this match.
    max_ulp : float
        The largest distance of y from the exact result, in units in the last place of the shorter of y's dtype
        and `precision`.
    max_abs : float
        The largest |y − exact result|.
    equal : float
        The share of values that are equal to the exact result, rounded as the hypothesis says.
    compared : int
        The number of compared values.
    furthest : Furthest
    order : tuple of int
        The permutation that puts the actual tensor's axes in the order of the input's.
    groups : int or None
        The number of channel groups; None for norms without.
    group_order : str or None
        `contiguous` or `interleaved`; None without channel groups.
    eps : float
        The simplest eps that fits.
    eps_range : (float, float)
        The lowest and the highest eps that fit.
    eps_mode : str or None
        Whether eps is inside or outside the root; None if it is a floor of the divisor.
    ddof : int
    p : float or None
        The exponent of an ℓp length; None for other divisors.
    affine : str
        The way in which gamma and beta entered: one of `affine_step.WAYS`.
    window : Window or None
        The window of `lrn`, which has no eps; None for other norms.
    rows : tuple of int or None
        The axes that are the rows of the matrix of `sn`; None for other norms.
    steps : Steps or None
        The power iterations of `sn` from a given start that reproduce y; None without a start.
    by_default : bool
        Whether the axes are the norm's or a framework's own choice.
    bits : float
        The evidence in bits that y is not a match by chance; see the module `models.weight`.
    is_odd : bool
        Whether the eps is unusual and not small in comparison with the variances: then the match is doubtful.
    has_default_eps : bool
        Whether the eps is the default of the norm or of a framework in `like`, or does not show.
    users : int
        The number of frameworks that compute the match with their default options.
    lost : float
        The largest error that a group's mean may have, as a part of the group's deviation.
    fine : float
        The evidence in bits that statistics were not rounded to half precision; infinite if y is of a longer
        dtype.
    rounds_length : bool
        Whether division by a length that was rounded to half precision reproduces every bit.
    hypothesis : Hypothesis or None
        The hypothesis; None for a window, a matrix, or a norm with a gate.
    gate : tuple of str or None
        The order and the activation of a given gate, as `--gate-order` and `--gate-act` name them; None without
        a gate.
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
        like: tuple[str, ...] = (),
        **others: Any,
    ) -> Match:
        """Return the match of a norm, with the distances of an actual tensor from the exact result.

        Parameters
        ----------
        norm : str
        actual, exact : ndarray
            The compared values of y and of the exact result, of one shape.
        dtype : numpy.dtype
            The dtype in whose last place distances are counted.
        locate : callable
            Takes the index of a compared value, an integer for each axis, and returns its index in the input.
        like : tuple of str
            The frameworks whose layers compute this match.
        **others
            The remaining fields of the match.
        """
        error, ulp = measure_distance(actual, exact, dtype)
        equal = find_equal(actual, exact, dtype)
        index = tuple(map(int, np.unravel_index(int(np.where(equal, 0.0, ulp).argmax()), ulp.shape)))
        furthest = Furthest(locate(*index), float(exact[index]), float(actual[index]))
        return cls(
            norm,
            like=like,
            max_ulp=float(ulp.max()),
            max_abs=float(error.max()),
            equal=float(np.mean(equal)),
            compared=actual.size,
            furthest=furthest,
            **others,
        )

    @classmethod
    def of_plan(cls, plan: Plan, actual: Floats, exact: Floats, dtype: np.dtype[Any], **others: Any) -> Match:
        """Return the match of a plan's norm and options, with the distances of y from the exact result.

        The parameters are as of `of`. The range of eps holds the plan's alone.
        """
        grid, spec, eps = plan.grid, plan.spec, plan.spec.eps or 0.0
        is_floor = spec.eps_mode in (EpsMode.FLOOR, EpsMode.SQUARE_FLOOR)
        options: dict[str, Any] = {
            "axes": grid.axes, "groups": grid.groups, "group_order": grid.group_order, "eps": eps,
            "eps_range": (eps, eps), "eps_mode": None if is_floor else spec.eps_mode, "ddof": spec.ddof,
            "p": spec.p, "window": spec.window, "rows": spec.rows,
        }  # fmt: skip
        return cls.of(plan.norm.name, actual, exact, dtype, **options, **others)

    def make_request(self) -> Request:
        """Return the request of the match's norm, axes, groups and p, with the norm's own eps and ddof."""
        return Request(self.norm, axes=self.axes, groups=self.groups, group_order=self.group_order, p=self.p)

    @property
    def is_certain(self) -> bool:
        """Whether there are 20 bits of evidence, and neither `is_odd`, `is_rough` nor `takes_up_rounding`."""
        return self.bits >= CERTAIN and not (self.is_odd or self.is_rough or self.takes_up_rounding)

    @property
    def takes_up_rounding(self) -> bool:
        """Whether the fitted eps may be a default eps with statistics that were rounded to half precision.

        True for an eps above 0 that is not the norm's own default, with less than 20 bits in `fine`.
        """
        is_own = self.has_default_eps and self.eps == NORMS[self.norm].eps
        return not is_own and self.eps_range[0] > 0.0 and self.fine < CERTAIN

    @property
    def is_rough(self) -> bool:
        """Return True if only rough arithmetic makes y: half-precision sums, or large errors of statistics.

        Large errors in means or lengths count only if less than 10 % of the values are exact. False with
        `rounds_length`.
        """
        if self.rounds_length:
            return False
        is_alone = self.hypothesis is not None and len(self.hypothesis.sample.chosen) == 1
        is_lost = self.lost > _MOST_LOST or (self.p is not None and is_alone)
        is_blurred = is_lost and self.equal < _FEW_EXACT and self.affine != ESTIMATED
        return self.sums_in_half or is_blurred

    @property
    def is_far(self) -> bool:
        """Whether a value is off by more than 2⁴⁰ ulp, as with numbers whose squares overflow float64."""
        return self.max_ulp > _MOST_ULP

    @property
    def sums_in_half(self) -> bool:
        """Whether the precision is a half precision: no kernel with sums in float32 reproduces the values."""
        return is_half(np.dtype(find_type(self.precision.split(",")[0])))

    @property
    def takes_eps(self) -> bool:
        """Whether the norm has an eps, or an eps above 0 fits y."""
        return NORMS[self.norm].eps is not None or any(self.eps_range)

    @property
    def is_usual(self) -> bool:
        """Whether the eps is one of `COMMON_EPS`."""
        return self.eps in COMMON_EPS


def rank_matches(matches: Iterable[Match]) -> list[Match]:
    """Return matches, the best first: a usual eps counts first, then exact values, then default options.

    A window whose constants are no framework's is last of those with a usual eps: they suit almost any divisor.
    """
    matches = list(matches)
    most = max((match.equal for match in matches), default=1.0)

    def rank(match: Match) -> tuple[Any, ...]:
        return (
            not match.is_usual,
            match.window is not None and match.users == 0,
            most == 1.0 and (1.0 - match.equal) * match.compared > _FEW,
            int((most - match.equal) / max(BY_LUCK, 1.0 / math.sqrt(match.compared))),
            not match.has_default_eps,
            match.eps_mode is EpsMode.OUTSIDE and not match.like,
            _round_distance(match.max_abs),
            not match.by_default,
            match.affine != NO_AFFINE.way and not NORMS[match.norm].parameter_names,
            list(WAYS).index(match.affine),
            match.users == 0,
            match.groups == 1,  # of all channels: layer normalization by another name
            -match.users,
            match.ddof,
            list(NORMS).index(match.norm),
            -match.equal,
        )

    return sorted(matches, key=rank)


BY_LUCK = 0.1
"""Shares of equal values that differ by less than this are taken for equal."""


_FEW = 4.0
"""If a match reproduces every bit, matches with more wrong values than this rank below it."""


def _round_distance(distance: float) -> float:
    """Return log₄ of a distance as a whole number, so that similar distances rank alike.

    −∞ for 0, and ∞ for infinity and NaN.
    """
    if distance == 0.0:
        return -math.inf
    return math.frexp(distance)[1] // 2 if math.isfinite(distance) else math.inf
