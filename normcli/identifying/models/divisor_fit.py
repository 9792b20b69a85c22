"""Evidence of values for a norm: the factors that fit each group, and the eps that fits all groups.

x̂ is a group standardized with eps = 0 and ddof = 0. Then y = r · x̂ with one unknown factor r, which only eps
and ddof make other than 1. Every value of y, with the bound on its rounding error, bounds r from both sides; if
no r is left, the norm did not make the group. Bounds of r are bounds of eps, which all groups must share.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.identifying.models.standards import MOMENTS, ROWS, Standard
from normcli.identifying.models.weight import CERTAIN, Seen, is_odd_eps, weigh
from normcli.norms.divisors import LENGTH
from normcli.norms.plan import Plan, make_plan
from normcli.norms.request import Request
from normcli.norms.rules import EpsMode
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.norms.divisors import Divisor


_OWN_ROUNDINGS = 2.0**-50
"""The error of computed bounds of a divisor, as a part of the variance or the deviation."""

_MOST_DIGITS = 16
"""The most digits of a rounded number: with one digit more, every number fits."""


class Model(NamedTuple):
    """A divisor of groups with its options, and the range of eps that all groups of y allow.

    Parameters
    ----------
    divisor : Divisor
    eps_mode : EpsMode
    ddof : int
    p : float or None
        The exponent of an ℓp length; None for other divisors.
    low, high : float
        The least and the largest eps that fit.
    floor : float
        The least divisor of a group without eps: if an eps of 0 fits, so does any eps up to this as a floor.
    square : float
        For an ℓ2 length, the largest eps under the root that fits; else 0.
    bits : float
        The evidence in bits; see the module `weight`.
    fine : float
        The evidence in bits that statistics were not rounded to half precision; infinite if y is of a longer
        dtype.
    is_odd : bool
        True if the eps is not a common one and not small in comparison with the variances.
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
    fine: float = math.inf
    is_odd: bool = False

    def make_plan(self, axes: tuple[int, ...], x: NDArray[Any], eps: float) -> Plan:
        """Return the plan of a norm with this model's divisor over some axes of x, with an eps, in float64."""
        row = ROWS[self.divisor]
        plan = make_plan(Request(row.name, axes=axes, dtype="float64"), x.shape, x.dtype)
        return plan.change_spec(
            eps=None if row.eps is None else eps, eps_mode=self.eps_mode, ddof=self.ddof, p=self.p
        )

    @property
    def is_likely(self) -> bool:
        """Whether there are at least 20 bits of evidence, and `is_odd` is False."""
        return self.bits >= CERTAIN and not self.is_odd


def fit_models(standard: Standard, least: Floats, largest: Floats, roundings: float = 0.0) -> Iterator[Model]:
    """Yield the models (divisor, ddof, p, range of eps) that agree with the factors of all groups.

    Nothing if no model agrees, or if every group is constant or has no largest factor. A kernel's variance may
    be E[x²] − E[x]², off by `roundings` · E[x]²: if a likelier eps fits with such an error, the range of eps is
    widened by it.

    Parameters
    ----------
    standard : Standard
        The groups of x, with at least two values each, standardized without eps to x̂.
    least, largest : ndarray, shape (groups,)
        The bounds of each group's factor r with y = r · x̂; `largest` is infinite if r has no upper bound.
    roundings : float
        The relative error of the kernel's averages; 0 for exact ones.
    """
    informative = (standard.size > 0.0) & np.isfinite(largest)
    if not informative.any():
        return
    seen = Seen(
        least[informative],
        largest[informative],
        standard.size[informative],
        standard.offset[informative],
        standard.group_size,
        standard.centred,
    )
    divisor, counts = standard.divisor, standard.counts
    if divisor not in MOMENTS:
        if np.all(least <= 1.0 + _OWN_ROUNDINGS) and np.all(largest >= 1.0 - _OWN_ROUNDINGS):
            yield _weigh(Model(divisor, EpsMode.FLOOR), seen)
        return
    with np.errstate(all="ignore"):
        low, high = standard.unit / largest, standard.unit / least
        weighed: list[Model] = []
        for ddof in (0, 1) if standard.centred else (0,):
            size = standard.size * np.sqrt(counts / (counts - ddof))
            model = Model(divisor, EpsMode.INSIDE, ddof, floor=float(size[informative].min()))
            cancelled = roundings * standard.offset**2 if standard.centred else 0.0
            weighed += [_weigh(fitted, seen) for fitted in _fit_eps(model, _MODES, size, low, high, cancelled)]
        yield from weighed
        if standard.centred:
            return
        between = low[informative], high[informative]
        for model, lengths in _fit_lengths(standard, informative, *between, solves=not weighed):
            yield _weigh(model, seen._replace(size=lengths), numbers=model.p not in USUAL_P)


_MODES = EpsMode.INSIDE, EpsMode.OUTSIDE


def _fit_eps(
    model: Model,
    modes: Iterable[EpsMode],
    size: Floats,
    low: Floats,
    high: Floats,
    cancelled: Floats | float = 0.0,
) -> Iterator[Model]:
    """Yield the model once for each eps mode in which some eps fits all groups, with the range of these eps.

    Parameters
    ----------
    model : Model
    modes : iterable of EpsMode
        Inside the root, outside it, or both.
    size : ndarray, shape (groups,)
        The divisor of each group without eps.
    low, high : ndarray, shape (groups,)
        The bounds of each group's divisor with eps, as y shows them.
    cancelled : ndarray, shape (groups,), or float
        The relative error of the kernel's variances; the range is widened by it if a likelier eps fits then.
    """
    for mode in modes:
        power = 2.0 if mode is EpsMode.INSIDE else 1.0
        without, doubt = size**power, _OWN_ROUNDINGS * size**power
        least, largest = low**power - without - doubt, high**power - without + doubt
        if max(0.0, float(least.max())) <= float(largest.min()) and float(least.max()) < np.inf:
            blur = cancelled * without * (power / 2.0)
            exact, blurred = (
                (max(0.0, float((least - by).max())), float((largest + by).min())) for by in (0.0, blur)
            )
            low_eps, high_eps = exact if choose_eps(*exact) == choose_eps(*blurred) else blurred
            yield model._replace(eps_mode=mode, low=low_eps, high=high_eps)


def _weigh(model: Model, seen: Seen, numbers: int = 0) -> Model:
    """Return a model with its evidence in bits; `numbers` is how many numbers besides eps were fitted to y."""
    eps = 0.0 if model.low == 0.0 else choose_eps(model.low, model.high)
    is_fitted = eps not in COMMON_EPS
    unit = seen.size if model.eps_mode is EpsMode.OUTSIDE else seen.size**2
    is_factor = not seen.centred and seen.least.max() <= seen.largest.min()  # one factor fits all groups
    is_odd = bool(is_fitted and (is_factor or is_odd_eps(eps, unit)))
    bits = weigh(seen, eps=eps, is_fitted=is_fitted, is_odd=is_odd, numbers=numbers)
    return model._replace(bits=bits, is_odd=is_odd)


_MACHINE_EPS = (2.0**-23, 2.0**-52, 2.0**-7, 2.0**-10)
"""The machine epsilons of float32, float64, bfloat16 and float16: an eps of None of torch's `RMSNorm`."""

COMMON_EPS = (1e-5, 1e-6, 1e-3, 1e-12, 1e-8, 1e-7, 0.0, 1e-9, 1e-4, 1e-2, 1e-10, *_MACHINE_EPS, 1e-1)
"""The usual eps, defaults of frameworks and 0, the likelier ones first."""


def list_usual_eps(own: float | None) -> tuple[float | None, ...]:
    """Return a norm's own eps and the other usual ones; None alone for a norm without eps."""
    return (own,) if own is None else tuple(dict.fromkeys((own, *COMMON_EPS)))


_LONGEST_ROUNDED = 4
"""Results of at most this many bytes do not show whether eps was rounded to float32, as in ONNX files."""


def list_usual(dtype: np.dtype[Any]) -> tuple[float, ...]:
    """Return the usual eps, the likelier ones first; for dtypes above 4 bytes also each rounded to float32."""
    if dtype.itemsize <= _LONGEST_ROUNDED:
        return COMMON_EPS
    return tuple(dict.fromkeys((*COMMON_EPS, *(float(np.float32(eps)) for eps in COMMON_EPS))))


LENGTH_EPS = 1e-12
"""The default eps of ℓp norms in frameworks."""


def choose_eps(low: float, high: float, preferred: float | None = None) -> float:
    """Return the simplest eps between bounds: `preferred`, a usual one, or the middle with the fewest digits.

    If no number of up to 16 digits lies between them, `low` is returned.

    Examples
    --------
    >>> choose_eps(9.7e-6, 1.04e-5), choose_eps(0.0123, 0.0127)
    (1e-05, 0.0125)
    """
    usual = COMMON_EPS if preferred is None else (preferred, *COMMON_EPS)
    rounded = round_between(low, high)
    return next((eps for eps in usual if low <= eps <= high), low if rounded is None else rounded)


def round_between(low: float, high: float) -> float | None:
    """Return the middle between two bounds, rounded to the fewest digits with which it stays between them.

    If `high` is infinite, `low` is rounded in place of the middle. None if 16 digits are not enough.
    """
    middle = low if math.isinf(high) else (low + high) / 2.0
    rounded = (float(f"{middle:.{digits}g}") for digits in range(1, _MOST_DIGITS + 1))
    return next((number for number in rounded if low <= number <= high), None)


_EUCLIDEAN = 2.0

USUAL_P = (1.0, _EUCLIDEAN, math.inf)
"""The p that are tried with every eps; any other p is solved for with an eps of 0."""

_LEAST_P, _LARGEST_P = 2.0**-4, 2.0**6
"""The range in which p is looked for: beyond it, a length overflows or is about the largest |value|."""

_MOST_VALUES = 1 << 15
"""No unusual p is solved for if groups have more values than this, since it would take long."""

_GROUPS = 4
"""The most groups from which p is solved for; the solution is compared with all groups."""

_STEPS = 48
"""The number of halvings of the interval of log p, enough for float64."""


def _fit_lengths(
    standard: Standard, chosen: Selected, low: Floats, high: Floats, *, solves: bool
) -> Iterator[tuple[Model, Floats]]:
    """Yield pairs: a model with an ℓp length that fits, and the length of each chosen group.

    Parameters
    ----------
    standard : Standard
        Groups that were not centred.
    chosen : ndarray of bool
        The groups that are not constant and have a largest factor.
    low, high : ndarray
        The bounds of the divisor of each chosen group.
    solves : bool
        True to solve for p if no usual p fits and groups have at most 32,768 values.
    """
    found = False
    for p in USUAL_P:
        lengths, model = standard.measure_length(p)[chosen], Model(LENGTH, EpsMode.FLOOR, p=p)
        modes = _MODES if p == _EUCLIDEAN else _MODES[1:]
        fitting = _fit_floor(model, lengths, low, high) or _fit_eps(model, modes, lengths, low, high)
        for fitted in fitting:
            found = True
            yield fitted, lengths
    if found or not solves or standard.group_size > _MOST_VALUES:
        return
    solved = solve_p(standard.rows[chosen][:_GROUPS], low[:_GROUPS], high[:_GROUPS])
    if solved is not None and solved not in USUAL_P:
        lengths = standard.measure_length(solved)[chosen]
        yield from (
            (m, lengths) for m in _fit_floor(Model(LENGTH, EpsMode.FLOOR, p=solved), lengths, low, high)
        )


def _fit_floor(model: Model, length: Floats, low: Floats, high: Floats) -> list[Model]:
    """Return a list with the model, eps being a floor of the divisor, if all lengths are within their bounds.

    The list is empty if one is not. `low` and `high` are the bounds of each length.
    """
    doubt = _OWN_ROUNDINGS * length
    if not (np.all(low - doubt <= length) and np.all(length <= high + doubt)):
        return []
    square = float((high**2 - length**2).min()) if model.p == _EUCLIDEAN else 0.0
    least = float(length.min())
    return [model._replace(high=least, floor=least, square=square)]


def solve_p(rows: NDArray[Any], low: Floats, high: Floats) -> float | None:
    """Return the p with the fewest digits for which the ℓp length of each row is between its `low` and `high`.

    Lengths fall as p grows, so that bounds of a length are bounds of p. None without such a p from 1/16 to 64,
    or with fewer than two rows that are not 0.

    Examples
    --------
    >>> rows = np.array([[1.0, 2.0, 4.0], [3.0, 1.0, 5.0]])
    >>> lengths = (rows**1.5).sum(axis=1) ** (1 / 1.5)
    >>> solve_p(rows, lengths * (1 - 1e-7), lengths * (1 + 1e-7))
    1.5
    """
    size = np.nan_to_num(np.abs(rows.astype(np.float64)))  # NaN counts as no value
    largest = size.max(axis=1, initial=0.0)
    informative = (largest > 0.0) & np.isfinite(high) & (low > 0.0)
    if np.count_nonzero(informative) < _LEAST_GROUPS:
        return None
    parts = size[informative] / largest[informative, None]
    between = _bisect(parts, *(bound[informative] / largest[informative] for bound in (high, low)))
    return None if between is None else round_between(*between)


_LEAST_GROUPS = 2
"""The fewest groups from which p is solved for: with one group, some p fits any divisor."""


def _bisect(parts: Floats, longest: Floats, shortest: Floats) -> tuple[float, float] | None:
    """Return the least and the largest p for which each row has an ℓp length within its bounds; else None.

    Parameters
    ----------
    parts : ndarray, shape (rows, values)
        Sizes of values, the largest of each row being 1.
    longest, shortest : ndarray, shape (rows,)
        The bounds of each row's length.
    """
    logarithms = np.log(np.stack((longest, shortest)))
    low, high = (np.full(logarithms.shape, bound) for bound in (_LEAST_P, _LARGEST_P))
    for _ in range(_STEPS):
        p = np.sqrt(low * high)
        is_long = np.log((parts ** p[..., None]).sum(axis=-1)) / p > logarithms
        low, high = np.where(is_long, p, low), np.where(is_long, high, p)
        if low[0].max() > high[1].min():
            return None
    least, most = np.sqrt(low * high)
    return float(least.max()), float(most.min())
