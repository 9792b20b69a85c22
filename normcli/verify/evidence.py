"""What values say of the norm that made them: per group, which factors agree; over all groups, which eps.

A group's values are turned into x̂ with eps = 0, so that eps and ddof leave one unknown: the factor r of
y = r · x̂, which is 1 without them. Every value, with what rounding allows it, bounds r from both sides; if the
bounds leave nothing, the group was not made so. The bounds of r are bounds of eps, which all groups must share.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from normcli.dtypes import is_long_integer
from normcli.norms.divisors import DIVISORS, ORDER_STATISTICS, Divisor, Measurement
from normcli.norms.rules import Centre, EpsMode, ZeroRule
from normcli.norms.table import NORMS
from normcli.results.normalize import normalize
from normcli.tuples import NamedTuple
from normcli.verify.lengths import USUAL_P, fit_lengths, intersect
from normcli.verify.weight import CERTAIN, Seen, is_odd_eps, weigh

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.norms.names import NanName, NormName


@dataclass(frozen=True, eq=False)
class Standard:
    """Groups, standardized without eps.

    Parameters
    ----------
    rows : ndarray, shape (groups, group_size)
        The groups as they are.
    values : ndarray, shape (groups, group_size)
        x̂ with eps = 0 and ddof = 0; NaN where the row is NaN, which does not count.
    size : ndarray, shape (groups,)
        What was divided by.
    offset : ndarray, shape (groups,)
        |mean| / deviation: how much of the arithmetic cancels; |mean| where all values are the same, 0 where
        nothing is subtracted.
    divisor : Divisor
        One of `STANDARDS`.
    """

    rows: NDArray[Any]
    values: Floats
    size: Floats
    offset: Floats
    divisor: Divisor

    @property
    def centred(self) -> bool:
        """Whether something was subtracted."""
        return is_centred(self.divisor)

    @cached_property
    def missing(self) -> Selected | None:
        """Which values do not count; None if all do."""
        missing: Selected = np.isnan(self.rows)
        return missing if missing.any() else None

    @cached_property
    def counts(self) -> Floats:
        """How many values of each group count, shape (groups,)."""
        counts: Floats = self.group_size - np.isnan(self.rows).sum(axis=1, dtype=np.float64)
        return counts

    @property
    def unit(self) -> Floats:
        """What the values are counted in: the size, and 1 where that is 0."""
        return np.where(self.size > 0.0, self.size, 1.0)

    @property
    def group_size(self) -> int:
        """Values in a group."""
        return int(self.values.shape[1])

    def take(self, step: int) -> Standard:
        """Return one group of so many."""
        every = slice(None, None, step)
        return Standard(
            self.rows[every], self.values[every], self.size[every], self.offset[every], self.divisor
        )

    def measure_length(self, p: float) -> Floats:
        """Return ‖x‖ₚ of each group, measured once."""
        if p not in self._lengths:
            self._lengths[p] = normalize(self.rows, "lp", axes=1, p=p, nan=_choose_rule(self.rows)).norm
        return self._lengths[p]

    @cached_property
    def _lengths(self) -> dict[float, Floats]:
        return {}


MOMENTS = tuple(divisor for divisor in DIVISORS if divisor.measurement is Measurement.MOMENTS)
"""The divisors with an eps; the root of the mean square stands for lengths too."""

STANDARDS = (*MOMENTS, *(divisor for divisor in DIVISORS if divisor.is_by_order))
"""What groups are standardized by, each with the centre of the first norm that divides so, or none."""

ROWS = {divisor: next(row for row in NORMS.values() if row.divisor == divisor) for divisor in DIVISORS}
"""The first norm that divides so."""


def is_centred(divisor: Divisor) -> bool:
    """Whether something is subtracted of what is divided so."""
    return ROWS[divisor].centre is not Centre.NOTHING


def standardize(rows: NDArray[Any], divisor: Divisor, *, omits_nan: bool = True) -> Standard:
    """Return groups, shape (groups, group_size), without centre (if there is one) and scale."""
    row = ROWS[divisor]
    name, rule = cast("NormName", row.name), _choose_rule(rows) if omits_nan else None
    result = normalize(rows, name, axes=1, eps=None if row.eps is None else 0.0, nan=rule)
    assert divisor.spread is not None  # of every standard
    size = result.statistics[divisor.spread]
    if row.zero_rule is ZeroRule.ONE:
        size = np.where(size == 0.0, 1.0, size)
    if row.centre is Centre.NOTHING:
        return Standard(rows, result.normalized, size, np.zeros_like(size), divisor)
    with np.errstate(all="ignore"):
        offset = np.abs(result.statistics[row.centre.value]) / np.where(size > 0.0, size, 1.0)
    offset = np.where(np.isfinite(offset), offset, 0.0)
    return Standard(rows, result.normalized, size, offset, divisor)


def standardize_roughly(rows: NDArray[Any], divisor: Divisor) -> Standard | None:
    """Return the same of finite values by a divisor that goes by order, in plain arithmetic, which is quicker.

    None for other divisors, and where that may be off by more than a few units of a float64's last place.
    """
    if not divisor.is_by_order or is_long_integer(rows.dtype):
        return None
    assert divisor.spread is not None  # of every standard
    ordered = np.sort(rows.astype(np.float64), axis=1)
    if np.abs(ordered[:, [0, -1]]).max() > _LARGEST:
        return None
    centre, size = (_read(ordered, name)[:, None] for name in (ROWS[divisor].centre.value, divisor.spread))
    if size.min() < _LEAST:
        return None
    offset = np.abs(centre / size)[:, 0]
    return Standard(rows, (rows.astype(np.float64) - centre) / size, size[:, 0], offset, divisor)


def _read(ordered: Floats, name: str) -> Floats:
    """Return a statistic of rows in order."""
    row = ORDER_STATISTICS[name]
    if row.combination is None:
        assert row.percent is not None  # of every standard
        place = row.percent / 100 * (ordered.shape[1] - 1)
        below = ordered[:, int(place)]
        above = ordered[:, min(int(place) + 1, ordered.shape[1] - 1)]
        read: Floats = below + (place - int(place)) * (above - below)
        return read
    left, right = (_read(ordered, part) for part in (row.combination.left, row.combination.right))
    both = left + right if row.combination.sign == "+" else left - right
    return both / 2.0 if row.combination.half else both


_LEAST, _LARGEST = 2.0**-900, 2.0**900
"""Between these, nothing over- or underflows."""


def _choose_rule(rows: NDArray[Any]) -> NanName | None:
    """Return what NaN does: rows with it are taken only where y has it too, and then it does not count."""
    return "omit" if np.isnan(rows).any() else None


class Model(NamedTuple):
    """How a divisor comes of a group, and the eps that all groups allow.

    Parameters
    ----------
    divisor : Divisor
    eps_mode : EpsMode
    ddof : int
    p : float or None
        Of an ℓp length.
    low, high : float
        The least and the largest eps that fit.
    floor : float
        The least divisor: a floor up to it changes nothing, where no eps fits too.
    square : float
        The largest eps under the root of an ℓ2 length that fits.
    bits : float
        The evidence for it; see `weight`.
    is_odd : bool
        Whether the eps is none in use and not small beside the variances.
    """

    divisor: Divisor
    eps_mode: EpsMode
    ddof: int = 0
    p: float | None = None
    low: float = 0.0
    high: float = 0.0
    floor: float = 0.0
    square: float = 0.0
    bits: float = math.inf
    is_odd: bool = False

    @property
    def is_likely(self) -> bool:
        """Whether there is evidence enough for it."""
        return self.bits >= CERTAIN and not self.is_odd


_OWN_ROUNDINGS = 2.0**-50
"""What the bounds themselves may be off, in units of the variance or the deviation."""


def fit_models(standard: Standard, least: Floats, largest: Floats) -> Iterator[Model]:
    """Yield the divisors that agree with the factors of all groups, which have two values at least."""
    informative = (standard.size > 0.0) & np.isfinite(largest)
    if not informative.any():
        return
    every, counts = (largest, least), standard.counts
    is_1 = np.all(least <= 1.0 + _OWN_ROUNDINGS) and np.all(largest >= 1.0 - _OWN_ROUNDINGS)
    size, least, largest = standard.size[informative], least[informative], largest[informative]
    seen = Seen(least, largest, size, standard.offset[informative], standard.group_size, standard.centred)
    divisor, weighed = standard.divisor, []
    if divisor not in MOMENTS:
        if is_1:
            yield _weigh(Model(divisor, EpsMode.FLOOR), seen)
        return
    with np.errstate(all="ignore"):
        for ddof in (0, 1) if standard.centred else (0,):
            root = np.sqrt(counts / (counts - ddof))
            floor = float((size * root[informative]).min())
            for mode, power in ((EpsMode.INSIDE, 2.0), (EpsMode.OUTSIDE, 1.0)):
                low, high = (_bound_eps(standard, bound, root, power) for bound in every)
                doubt = _OWN_ROUNDINGS * standard.size**power
                fitting = intersect(Model(divisor, mode, ddof, floor=floor), low - doubt, high + doubt)
                weighed += [_weigh(model, seen) for model in fitting]
        yield from weighed
        if standard.centred:
            return
        bounds, plain = (size / largest, size / least), Model(divisor, EpsMode.FLOOR)
        for model, lengths in fit_lengths(standard, informative, plain, *bounds, solves=not weighed):
            yield _weigh(model, seen._replace(size=lengths), numbers=model.p not in USUAL_P)


def _bound_eps(standard: Standard, bound: Floats, root: Floats, power: float) -> Floats:
    """Return what is added to a power of each group's size times `root` where its factor is a bound."""
    return np.asarray(standard.unit**power / bound**power - (standard.size * root) ** power)


def _weigh(model: Model, seen: Seen, numbers: int = 0) -> Model:
    """Return a model with the evidence for it, to which so many numbers were fitted beside eps."""
    eps = 0.0 if model.low == 0.0 else choose_eps(model.low, model.high)
    is_fitted = eps not in COMMON_EPS
    is_odd = is_fitted and is_odd_eps(eps, seen.size if model.eps_mode is EpsMode.OUTSIDE else seen.size**2)
    bits = weigh(seen, eps=eps, is_fitted=is_fitted, is_odd=is_odd, numbers=numbers)
    return model._replace(bits=bits, is_odd=is_odd)


COMMON_EPS = (1e-5, 1e-6, 1e-3, 1e-12, 1e-8, 1e-7, 0.0, 1e-9, 1e-4, 1e-2, 1e-10, 2.0**-23, 2.0**-52, 1e-1)
"""The likelier ones first: those that are defaults of frameworks."""


LENGTH_EPS = 1e-12
"""The default of the frameworks' ℓp norms."""


def choose_eps(low: float, high: float, preferred: float | None = None) -> float:
    """Return the simplest eps between bounds: a common one, or the one with the fewest digits.

    Examples
    --------
    >>> choose_eps(9.7e-6, 1.04e-5), choose_eps(0.0123, 0.0127)
    (1e-05, 0.0125)
    """
    for eps in COMMON_EPS if preferred is None else (preferred, *COMMON_EPS):
        if low <= eps <= high:
            return eps
    middle = low if math.isinf(high) else (low + high) / 2.0
    for digits in range(17):
        eps = float(f"{middle:.{digits}e}")
        if low <= eps <= high:
            return eps
    return middle
