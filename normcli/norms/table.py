"""The table of norms: what each one centres by, divides by and over which axes. Data, no arithmetic.

Nearly every norm is one sentence: over these axes, subtract this (or nothing), divide by that, then scale
and shift along those axes. A row of `NORMS` is that sentence. To add a norm of that kind, add a row.
"""

from __future__ import annotations

import enum
import math
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from normcli.errors import UsageError
from normcli.norms.divisors import (
    DEVIATION,
    HALF_RANGE,
    LENGTH,
    QUANTILE_RANGE,
    QUARTILE_RANGE,
    RANGE,
    ROOT_MEAN_SQUARE,
    WINDOW_POWER,
    Divisor,
    format_statistic,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


class AxesRule(enum.Enum):
    """Which axes are reduced unless the caller names them; the value is what the table of norms prints."""

    ALL_BUT_CHANNEL = "all but channel"
    LAST = "last"
    ALL_BUT_BATCH_AND_CHANNEL = "all but batch and channel"
    CHANNEL_GROUPS = "C/G and all but batch"
    ALL_BUT_FIRST = "all but the first"
    FIRST = "first"
    SECOND = "second"
    CHANNEL = "channel"
    ALL_BUT_BATCH = "all but batch"
    ALL_BUT_LAST = "all but the last"
    LAST_THREE = "the last three"
    GIVEN = "as given"
    CHANNEL_WINDOW = "a window along channel"


class AxesChoice(enum.Enum):
    """Which axes are reduced where a caller says so; the value is what the table of conventions adds."""

    TRAILING = "or more trailing ones"
    ALL_BUT_ONE = "or all but another one"


class Centre(enum.Enum):
    """What is subtracted from each value; the value is the statistic's name."""

    NOTHING = "nothing"
    MEAN = "mean"
    MINIMUM = "min"
    MEDIAN = "median"
    MIDDLE = "middle"

    @property
    def statistic(self) -> str | None:
        """The statistic that is subtracted; None where nothing is."""
        return None if self is Centre.NOTHING else self.value


class EpsMode(enum.StrEnum):
    """Where eps stands in the divisor."""

    INSIDE = "inside"
    OUTSIDE = "outside"
    FLOOR = "floor"
    SQUARE_FLOOR = "square-floor"


class EpsRule(enum.Enum):
    """An eps that is no number until the tensor is known; the value is how it is printed."""

    MACHINE = "2⁻²³, float64: 2⁻⁵²"
    ROOT_COUNT = "1/√n"
    GIVEN = "as given"


class ZeroRule(enum.Enum):
    """What becomes of a group whose divisor is 0; `Norm.format_zero` writes it for a norm."""

    ZERO = "0"
    ONE = "x − centre"
    NAN = "nan"


class FlatRule(enum.Enum):
    """Which groups count as constant though their divisor is not 0; the value says how small it is."""

    SMALL = "below 10 machine epsilons"
    SMALL_OF_ROUNDED = "of quartiles rounded to float64 below 10 of its machine epsilons"
    TWO_PASSES = "within the rounding errors of its two passes"
    BESIDE_MEAN = "within a machine epsilon of the mean"


class ShortRule(enum.Enum):
    """What of half precision stays in it, where eps may be 0: the size of a group, or its square too."""

    SIZE = "size"
    SQUARE = "square"


class Refusal(enum.Enum):
    """What a framework refuses to do, or to take."""

    ONE_IN_GROUP = "to train on one value a group"
    ONE_IN_BATCH = "to train on one value a group of the whole batch"
    EPS_0 = "to train with an eps of 0"
    INFINITY = "infinities"
    NAN = "NaN"


class GroupOrder(enum.StrEnum):
    """Which channels are of group g of G: C/G neighbours, or g, g + G, g + 2G and so on."""

    CONTIGUOUS = "contiguous"
    INTERLEAVED = "interleaved"


class ExtraNeighbour(enum.StrEnum):
    """On which side an even window holds one channel more; `neither` has one channel less instead."""

    AFTER = "after"
    BEFORE = "before"
    NEITHER = "neither"


class ParameterRule(enum.Enum):
    """The shape of gamma and beta; the value is how the table of norms prints it."""

    NONE = "–"
    CHANNEL = "(C)"
    REDUCED = "the reduced axes"
    KEPT = "the kept axes"
    LAST = "(last axis)"
    GROUP = "(G)"


_SUBSCRIPTS = str.maketrans("0123456789-+", "₀₁₂₃₄₅₆₇₈₉₋₊")


class Norm(NamedTuple):
    """One row of the table.

    Parameters
    ----------
    name, title : str
        The short name (`bn`) and the field's term ("batch normalization").
    aliases : tuple of str
        Other names of the same row.
    summary : str
        One line for help texts: which values share a statistic.
    axes : AxesRule
        The axes reduced by default.
    centre : Centre
    divisor : Divisor
    eps : float or None
        The default; None where the definition has no eps.
    eps_mode : EpsMode or None
        None exactly where `eps` is None.
    parameters : ParameterRule
        The shape of gamma (and beta).
    takes_beta : bool
        False where the norm has a gain and no bias.
    zero_rule : ZeroRule
        What becomes of a group whose divisor is 0; scikit-learn divides it by 1.
    tracks : bool
        Whether training keeps running statistics, which evaluation then normalizes with.
    p : float or None
        The exponent of an ℓp length that the definition fixes; None where the caller chooses it.
    presets : tuple of (str, float)
        Names of special cases, such as `l1`, and the exponent p that each fixes.
    has_optional_steps : bool
        Whether a caller may leave out the centring, or the division, as scikit-learn's scalers do.
    is_partial : bool
        Whether one has: no row of the table is, but those that `leave_out` returns.
    source : str
        The paper or specification that defines it.
    use : str
        Where it is typically found, in a few words.
    """

    name: str
    title: str
    summary: str
    axes: AxesRule
    divisor: Divisor
    source: str
    use: str
    centre: Centre = Centre.NOTHING
    aliases: tuple[str, ...] = ()
    eps: float | None = None
    eps_mode: EpsMode | None = None
    parameters: ParameterRule = ParameterRule.NONE
    takes_beta: bool = True
    zero_rule: ZeroRule = ZeroRule.ZERO
    tracks: bool = False
    p: float | None = None
    presets: tuple[tuple[str, float], ...] = ()
    has_optional_steps: bool = False
    is_partial: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that means this row: its own, the aliases, the presets."""
        return (self.name, *self.aliases, *dict(self.presets))

    @property
    def statistics(self) -> tuple[str, ...]:
        """The names of the statistics that each group has."""
        return self.divisor.statistics

    @property
    def all_statistics(self) -> tuple[str, ...]:
        """Those, and what groups have instead where a caller chooses other quantiles."""
        others = QUANTILE_RANGE.statistics if self.divisor == QUARTILE_RANGE else ()
        return tuple(dict.fromkeys((*self.statistics, *others)))

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """`("gamma", "beta")`, `("gamma",)` or `()`."""
        if self.parameters is ParameterRule.NONE:
            return ()
        return ("gamma", "beta") if self.takes_beta else ("gamma",)

    @property
    def gradient_names(self) -> tuple[str, ...]:
        """What a backward pass makes: `("dx", "dgamma", "dbeta")` or fewer; `()` where there is none."""
        if self.is_by_order or self.is_partial:
            return ()
        return ("dx", *(f"d{name}" for name in self.parameter_names))

    @property
    def spans_range(self) -> bool:
        """Whether each group comes to lie from 0 to 1, which gamma and beta make any other range."""
        return self.centre is Centre.MINIMUM and self.divisor == RANGE

    @property
    def drawn_names(self) -> tuple[str, ...]:
        """Those of them that layers begin with: where nothing is subtracted, nothing is added either."""
        return self.parameter_names if self.centre.statistic else self.parameter_names[:1]

    def leave_out(self, *, centring: bool, division: bool) -> Norm:
        """Return the row without one of its steps, or without both."""
        row = self._replace(is_partial=centring or division)
        if centring:
            whole = self.divisor.break_promise(self.centre.statistic)
            row = row._replace(centre=Centre.NOTHING, divisor=whole)
        if division:
            row = row._replace(divisor=row.divisor.leave_out())
        return row

    def choose_quantiles(self, quantiles: tuple[float, float] | None) -> Norm:
        """Return the row of a range of quantiles, in per cent; itself where they are its own, or none."""
        if quantiles in (None, QUARTILES):
            return self
        return self._replace(divisor=QUANTILE_RANGE)

    @property
    def is_by_order(self) -> bool:
        """Whether what values are divided by goes by their order, or is the largest of them."""
        return self.divisor.is_by_order or self.p == math.inf

    def format_zero(self, rule: ZeroRule) -> str:
        """Return what the normalized values of a group are whose divisor is 0: `0`, `x − mean`, `nan`."""
        return rule.value.replace(
            " − centre", "" if self.centre is Centre.NOTHING else f" − {self.centre.value}"
        )

    def formula(self, eps_mode: EpsMode | None = None, *, divides_alpha: bool = True) -> str:
        """Return the definition on one line, with eps where `eps_mode` (or the row's own) puts it."""
        numerator = "x" if self.centre is Centre.NOTHING else f"(x − {format_statistic(self.centre.value)})"
        if not self.divisor.divides:
            return numerator.strip("()")
        root = self.divisor.root.replace("ₚ", format_subscript(self.p))
        if not divides_alpha:
            root = root.replace("/size", "")
        with_eps = _WITH_EPS[eps_mode or self.eps_mode]
        return f"{numerator} / {with_eps.format(root=root, square=self.divisor.square)}"


QUARTILES = (25.0, 75.0)
"""The quantiles whose range is the interquartile one, in per cent."""

_WITH_EPS: Mapping[EpsMode | None, str] = {
    None: "{root}",
    EpsMode.INSIDE: "√({square} + eps)",
    EpsMode.OUTSIDE: "({root} + eps)",
    EpsMode.FLOOR: "max({root}, eps)",
    EpsMode.SQUARE_FLOOR: "√max({square}, eps)",
}
"""Where eps stands → the divisor as a formula has it."""


def format_subscript(p: float | None) -> str:
    """Return the exponent of an ℓp length as a subscript; ₚ where it is left open."""
    if p is None:
        return "ₚ"
    return f"{p:g}".replace("inf", "∞").translate(_SUBSCRIPTS)


_standardization = partial(Norm, centre=Centre.MEAN, divisor=DEVIATION, eps=1e-5, eps_mode=EpsMode.INSIDE)
"""A row of (x − mean) / √(var + eps), unless it names another eps; 1e-5 is PyTorch's default."""

_scaling = partial(Norm, axes=AxesRule.FIRST)
"""A row of a column less its centre, divided by its size, without eps."""

_ROWS = (
    _standardization(
        name="bn",
        title="batch normalization",
        aliases=("batchnorm", "batch-norm", "batchnorm1d", "batchnorm2d", "batchnorm3d", "batchnormalization"),
        summary="one mean and variance per channel, over batch and positions",
        axes=AxesRule.ALL_BUT_CHANNEL,
        parameters=ParameterRule.CHANNEL,
        tracks=True,
        source="Ioffe & Szegedy 2015, arXiv:1502.03167",
        use="convolutional networks on images, with large batches",
    ),
    _standardization(
        name="ln",
        title="layer normalization",
        aliases=("layernorm", "layer-norm", "layernormalization"),
        summary="one mean and variance per sample (and position), over its features",
        axes=AxesRule.LAST,
        parameters=ParameterRule.REDUCED,
        source="Ba, Kiros & Hinton 2016, arXiv:1607.06450",
        use="Transformers and recurrent networks, sequences of any length",
    ),
    _standardization(
        name="in",
        title="instance normalization",
        aliases=(
            *("instancenorm", "instance-norm", "instancenorm1d", "instancenorm2d", "instancenorm3d"),
            "instancenormalization",
        ),
        summary="one mean and variance per sample and channel, over its positions",
        axes=AxesRule.ALL_BUT_BATCH_AND_CHANNEL,
        parameters=ParameterRule.CHANNEL,
        tracks=True,
        source="Ulyanov, Vedaldi & Lempitsky 2016, arXiv:1607.08022",
        use="style transfer and image generation",
    ),
    _standardization(
        name="gn",
        title="group normalization",
        aliases=("groupnorm", "group-norm", "groupnormalization"),
        summary="one mean and variance per sample and group of channels",
        axes=AxesRule.CHANNEL_GROUPS,
        parameters=ParameterRule.CHANNEL,
        source="Wu & He 2018, arXiv:1803.08494",
        use="detection and segmentation, where batches are small",
    ),
    Norm(
        name="rms",
        title="root mean square normalization",
        aliases=("rmsnorm", "rms-norm", "rmsnormalization"),
        summary="one root mean square per sample (and position); nothing is subtracted",
        axes=AxesRule.LAST,
        divisor=ROOT_MEAN_SQUARE,
        eps=1e-5,
        eps_mode=EpsMode.INSIDE,
        parameters=ParameterRule.REDUCED,
        source="Zhang & Sennrich 2019, arXiv:1910.07467",
        use="large language models, such as T5 and LLaMA",
    ),
    Norm(
        name="lp",
        title="ℓp normalization",
        aliases=("lpnorm", "lp-norm", "lpnormalization"),
        summary="each vector divided by its ℓp length",
        axes=AxesRule.LAST,
        divisor=LENGTH,
        eps=1e-12,
        eps_mode=EpsMode.FLOOR,
        presets=(("l1", 1.0), ("l2", 2.0)),
        source="torch.nn.functional.normalize (PyTorch 2.13)",
        use="embeddings that are compared by their angle",
    ),
    Norm(
        name="wn",
        title="weight normalization",
        aliases=("weightnorm", "weight-norm"),
        summary="each output unit's weights divided by their ℓ2 length, times a gain g",
        axes=AxesRule.ALL_BUT_FIRST,
        divisor=LENGTH,
        parameters=ParameterRule.KEPT,
        takes_beta=False,
        p=2.0,
        source="Salimans & Kingma 2016, arXiv:1602.07868",
        use="weights of recurrent and generative models",
    ),
    _standardization(
        name="ws",
        title="weight standardization",
        aliases=("weightstandardization", "weight-standardization"),
        summary="one mean and variance per output unit, over its weights",
        axes=AxesRule.ALL_BUT_FIRST,
        parameters=ParameterRule.KEPT,
        source="Qiao et al. 2019, arXiv:1903.10520",
        use="weights of convolutions, beside group normalization",
    ),
    _standardization(
        name="mvn",
        title="mean-variance normalization",
        aliases=("meanvariancenormalization", "mean-variance"),
        summary="one mean and variance per channel, eps added to the deviation",
        axes=AxesRule.ALL_BUT_CHANNEL,
        eps=1e-9,
        eps_mode=EpsMode.OUTSIDE,
        source="ONNX MeanVarianceNormalization, opset 13",
        use="input images in exported graphs (ONNX, Caffe)",
    ),
    _standardization(
        name="zscore",
        title="standard score",
        aliases=("standardize", "standardscaler", "z-score"),
        summary="each column to mean 0 and deviation 1; a constant column is only centred",
        axes=AxesRule.FIRST,
        eps=None,
        eps_mode=None,
        zero_rule=ZeroRule.ONE,
        has_optional_steps=True,
        source="scikit-learn StandardScaler",
        use="features of tables, before any model sees them",
    ),
    _scaling(
        name="minmax",
        title="min-max scaling",
        aliases=("minmaxscaler", "min-max"),
        summary="each column from its minimum to its maximum, as 0 to 1; a constant column is 0",
        centre=Centre.MINIMUM,
        divisor=RANGE,
        parameters=ParameterRule.LAST,
        source="scikit-learn MinMaxScaler",
        use="pixels and features that must lie between bounds",
    ),
    _scaling(
        name="midrange",
        title="mid-range scaling",
        aliases=("mid-range",),
        summary="each column from its minimum to its maximum, as −1 to 1; a constant column is 0",
        centre=Centre.MIDDLE,
        divisor=HALF_RANGE,
        zero_rule=ZeroRule.ONE,
        source="scikit-learn MaxAbsScaler of x less its middle",
        use="features that must lie between −1 and 1, with the middle of their range at 0",
    ),
    _scaling(
        name="maxabs",
        title="maximum absolute scaling",
        aliases=("maxabsscaler", "max-abs"),
        summary="each column divided by its largest absolute value; zeros stay zeros",
        divisor=LENGTH,
        p=math.inf,
        source="scikit-learn MaxAbsScaler",
        use="sparse features, whose zeros stay zeros",
    ),
    _scaling(
        name="robust",
        title="robust scaling",
        aliases=("robustscaler", "robust-scaler"),
        summary="each column less its median, divided by its interquartile range",
        centre=Centre.MEDIAN,
        divisor=QUARTILE_RANGE,
        zero_rule=ZeroRule.ONE,
        has_optional_steps=True,
        source="scikit-learn RobustScaler",
        use="tables with outliers",
    ),
    Norm(
        name="lrn",
        title="local response normalization",
        aliases=("localresponsenorm", "local-response-norm"),
        summary="each value divided by a power of the mean square of its neighbouring channels",
        axes=AxesRule.CHANNEL_WINDOW,
        divisor=WINDOW_POWER,
        source="Krizhevsky et al. 2012; as in ONNX LRN, opset 13",
        use="early convolutional networks (AlexNet, GoogLeNet)",
    ),
)

NORMS: Mapping[str, Norm] = MappingProxyType({row.name: row for row in _ROWS})
"""The table: short name → row, in the order in which the norms are listed everywhere."""

BY_ANY_NAME: Mapping[str, Norm] = MappingProxyType({name: row for row in _ROWS for name in row.names})
"""Every name, alias and preset, in lower case → its row."""


def find_norm(name: str) -> tuple[Norm, Mapping[str, float]]:
    """Return the row called `name` and the options that this name fixes.

    Parameters
    ----------
    name : str
        A short name, an alias or a preset, in any case.

    Returns
    -------
    tuple of (Norm, mapping)
        The mapping is empty but for presets such as `l1`.

    Raises
    ------
    UsageError
        If no row has that name, or it is no string.

    Examples
    --------
    >>> find_norm("LayerNorm")[0].name
    'ln'
    >>> dict(find_norm("l1")[1])
    {'p': 1.0}
    """
    if not isinstance(name, str):
        raise UsageError(f"norm {name!r} is not a name")
    key = name.lower()
    row = BY_ANY_NAME.get(key)
    if row is None:
        raise UsageError(f"there is no norm {name!r}; the norms are {', '.join(NORMS)}")
    presets = dict(row.presets)
    return row, {"p": presets[key]} if key in presets else {}
