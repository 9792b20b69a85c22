"""The divisors of norms: the statistics, words and promised results of each. Data, no arithmetic.

A norm with a new divisor is one new row here, if a `Measurement` measures its groups already.
"""

from __future__ import annotations

import enum
from types import MappingProxyType
from typing import TYPE_CHECKING

from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Measurement(enum.Enum):
    """The kinds of statistics of a group, by which the algorithm is chosen that calculates them."""

    MOMENTS = "mean and mean square"
    LENGTH = "length"
    WINDOW = "mean square of a window"
    EXTREMES = "smallest and largest value"
    QUANTILES = "quantiles"
    SINGULAR_VALUE = "largest singular value"


class Combination(NamedTuple):
    """A statistic made of two others: `left sign right`, such as max − min; or half of it, (max + min)/2."""

    left: str
    sign: str
    right: str
    half: bool = False

    def __str__(self) -> str:
        both = f"{self.left} {self.sign} {self.right}"
        return f"({both})/2" if self.half else both


class OrderStatistic(NamedTuple):
    """A statistic that depends on the order of values.

    Parameters
    ----------
    name : str
    sentence : str
        The statistic's definition; `{count}` stands for the number of values, `{percent}` for the quantile.
    symbol, latex : str
        The statistic's symbol in plain text and in LaTeX; if `latex` is empty, `symbol` serves for both.
    percent : float or None
        The quantile that the statistic is, in per cent: 0 for the minimum, 50 for the median. None for a
        combination, and for a quantile that a caller chooses.
    chosen : int or None
        0 for the lower of the caller's two quantiles, 1 for the upper; None for other statistics.
    combination : Combination or None
        The sum or difference that defines the statistic; None for a quantile.
    """

    name: str
    sentence: str
    symbol: str
    latex: str = ""
    percent: float | None = None
    chosen: int | None = None
    combination: Combination | None = None


_ORDER_STATISTICS = (
    OrderStatistic("min", "The smallest of the {count}.", "min x", r"\min x", percent=0),
    OrderStatistic("max", "The largest of the {count}.", "max x", r"\max x", percent=100),
    OrderStatistic(
        "median", "The median: as many values lie below it as above.", "x̃", r"\tilde{x}", percent=50
    ),
    OrderStatistic("q1", "The first quartile: a quarter of the values lie below.", "q₁", "q_1", percent=25),
    OrderStatistic("q3", "The third quartile: a quarter of the values lie above.", "q₃", "q_3", percent=75),
    OrderStatistic(
        "range", "The range: the one less the other.", "d", combination=Combination("max", "−", "min")
    ),
    OrderStatistic(
        "middle",
        "The middle: halfway between the two.",
        "m",
        combination=Combination("max", "+", "min", half=True),
    ),
    OrderStatistic(
        "half_range",
        "The half range: half of the one less the other.",
        "d",
        combination=Combination("max", "−", "min", half=True),
    ),
    OrderStatistic(
        "iqr", "The interquartile range: the one less the other.", "d", combination=Combination("q3", "−", "q1")
    ),
    OrderStatistic("q_low", "The lower quantile: {percent} % of the values lie below.", "q₁", "q_1", chosen=0),
    OrderStatistic("q_high", "The upper quantile: {percent} % of the values lie below.", "q₂", "q_2", chosen=1),
    OrderStatistic(
        "q_range",
        "The quantile range: the one less the other.",
        "d",
        combination=Combination("q_high", "−", "q_low"),
    ),
)

ORDER_STATISTICS: Mapping[str, OrderStatistic] = MappingProxyType({row.name: row for row in _ORDER_STATISTICS})
"""The statistics that depend on the order of values, by name."""


def spell_statistic(name: str) -> str:
    """Return a statistic as formulas write it: its name, or its definition, such as `(max + min)/2`."""
    row = ORDER_STATISTICS.get(name)
    return name if row is None or row.combination is None else str(row.combination)


class Promise(NamedTuple):
    """A statistic of a normalized group, and its value by definition if eps is 0."""

    statistic: str
    target: float


class Divisor(NamedTuple):
    """A divisor of centred values, with the statistics that it is made of.

    Parameters
    ----------
    measurement : Measurement
    statistics : tuple of str
        The names of a group's statistics, in the order in which they are shown.
    size : str
        The noun for the quantity that is 0 if and only if the divisor is, such as `variance`.
    spread : str or None
        The statistic by which values are divided, apart from eps; None if the divisor is no statistic.
    root : str
        The divisor without eps, as formulas write it; "" if the sum or difference that defines `spread` is it.
    square : str
        The quantity under the root in formulas, such as `var`; empty for a divisor without a root.
    promises : tuple of Promise
        The statistics of a normalized group that the definition fixes.
    is_0_of_nothing : bool
        Whether the statistics of a group without values are 0; they are NaN otherwise.
    bounded : bool
        Whether normalized values, before gamma and beta, stay small however large a single value is.
    resists_outliers : bool
        Whether the statistics can be finite although a value is infinite, and the divisor 0 although values
        differ, as with quartiles.
    about_mean : bool
        Whether deviations from the mean are squared, and not the values themselves.
    divides : bool
        False where a caller leaves the division out: values are divided by 1, the statistics still measured.
    """

    measurement: Measurement
    statistics: tuple[str, ...]
    size: str
    spread: str | None
    root: str = ""
    square: str = ""
    promises: tuple[Promise, ...] = ()
    is_0_of_nothing: bool = False
    bounded: bool = True
    resists_outliers: bool = False
    about_mean: bool = False
    divides: bool = True

    @property
    def is_by_order(self) -> bool:
        """Whether the statistics are extremes or quantiles; the divisor then has no root and no eps."""
        return self.measurement in (Measurement.EXTREMES, Measurement.QUANTILES)

    @property
    def sizes(self) -> tuple[str, ...]:
        """The names of the statistics that cannot overflow where all values are finite.

        They are all but the square, the inverse `rstd`, and sums and differences of two statistics.
        """
        made = {name for name, row in ORDER_STATISTICS.items() if row.combination is not None}
        return tuple(name for name in self.statistics if name not in {self.square, "rstd", *made})

    def leave_out(self) -> Divisor:
        """Return this divisor for a norm that does not divide: 1, without `rstd` and without promises."""
        statistics = tuple(name for name in self.statistics if name != "rstd")  # one over the divisor
        return self._replace(divides=False, statistics=statistics, bounded=False, promises=())

    @property
    def words_for_empty(self) -> str:
        """The words for a group without values, as a part of a sentence."""
        return f"its {self.size} is 0" if self.is_0_of_nothing else "its statistics are NaN"


DEVIATION = Divisor(
    measurement=Measurement.MOMENTS,
    statistics=("mean", "var", "std", "rstd"),
    root="√var",
    square="var",
    size="variance",
    spread="std",
    promises=(Promise("mean", 0.0), Promise("var", 1.0)),
    about_mean=True,
)
ROOT_MEAN_SQUARE = Divisor(
    measurement=Measurement.MOMENTS,
    statistics=("ms", "rms", "rstd"),
    root="√ms",
    square="ms",
    size="mean square",
    spread="rms",
    promises=(Promise("ms", 1.0),),
)
LENGTH = Divisor(
    measurement=Measurement.LENGTH,
    statistics=("norm",),
    root="‖x‖ₚ",
    square="Σx²",
    size="length",
    spread="norm",
    promises=(Promise("norm", 1.0),),
    is_0_of_nothing=True,
)
WINDOW_POWER = Divisor(
    measurement=Measurement.WINDOW,
    statistics=("ms", "rstd"),
    root="(k + alpha · Σx²/size)^exponent",
    size="mean square",
    spread=None,
    bounded=False,
)
RANGE = Divisor(
    measurement=Measurement.EXTREMES,
    statistics=("min", "max", "range"),
    size="range",
    spread="range",
    promises=(Promise("min", 0.0), Promise("max", 1.0)),
)
HALF_RANGE = Divisor(
    measurement=Measurement.EXTREMES,
    statistics=("min", "max", "middle", "half_range"),
    size="half range",
    spread="half_range",
    promises=(Promise("min", -1.0), Promise("max", 1.0)),
)
QUARTILE_RANGE = Divisor(
    measurement=Measurement.QUANTILES,
    statistics=("median", "q1", "q3", "iqr"),
    size="interquartile range",
    spread="iqr",
    promises=(Promise("median", 0.0), Promise("iqr", 1.0)),
    bounded=False,
    resists_outliers=True,
)
QUANTILE_RANGE = QUARTILE_RANGE._replace(
    statistics=("median", "q_low", "q_high", "q_range"),
    size="quantile range",
    spread="q_range",
    promises=(Promise("median", 0.0), Promise("q_range", 1.0)),
)
"""The divisor in place of the interquartile range where a caller chooses other quantiles."""
SINGULAR_VALUE = Divisor(
    measurement=Measurement.SINGULAR_VALUE,
    statistics=("sigma",),
    root="σ(X)",
    size="largest singular value",
    spread="sigma",
    promises=(Promise("sigma", 1.0),),
    is_0_of_nothing=True,
)
ITERATED_VALUE = SINGULAR_VALUE._replace(
    root="uᵀXv", size="estimate of its largest singular value", promises=()
)
"""The divisor in place of the largest singular value where power iterations estimate it from below."""
