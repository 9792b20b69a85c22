"""The vocabulary of the tables of norms and conventions: rules of axes, eps and the like, and names as types.

A type checker needs names spelled out; `tests/norms/test_rules.py` compares them with the tables.
"""

from __future__ import annotations

import enum
from typing import Literal


class AxesRule(enum.Enum):
    """The axes that a norm reduces by default; the value is how the table of norms prints the rule."""

    ALL = "all"
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
    """Other axes that a framework lets its caller reduce; the value is printed in the table of conventions."""

    TRAILING = "or more trailing ones"
    ALL_BUT_ONE = "or all but another one"


class Centre(enum.Enum):
    """The centre that is subtracted; the member's value is the statistic's name."""

    NOTHING = "nothing"
    MEAN = "mean"
    MINIMUM = "min"
    MEDIAN = "median"
    MIDDLE = "middle"

    @property
    def statistic(self) -> str | None:
        """The name of the statistic that is subtracted; None if nothing is subtracted."""
        return None if self is Centre.NOTHING else self.value


class EpsMode(enum.StrEnum):
    """The place of eps in the divisor: √(var + eps), √var + eps, max(√var, eps), √max(var, eps).

    Callers may ask for the first two only; the others belong to certain norms and frameworks.
    """

    INSIDE = "inside"
    OUTSIDE = "outside"
    FLOOR = "floor"
    SQUARE_FLOOR = "square-floor"


class EpsRule(enum.Enum):
    """An eps that depends on the tensor or the caller; the value is how it is printed.

    `MACHINE` is the machine epsilon, `ROOT_COUNT` 1/√n of the n values of a group; `GIVEN` has no default.
    """

    MACHINE = "2⁻²³, float64: 2⁻⁵²"
    ROOT_COUNT = "1/√n"
    GIVEN = "as given"


class ZeroRule(enum.Enum):
    """The normalized values of a group whose divisor is 0: zeros, the centred values, or NaN."""

    ZERO = "0"
    ONE = "x − centre"
    NAN = "nan"


class FlatRule(enum.Enum):
    """A condition under which a group counts as constant, although its divisor is not exactly 0.

    The members' values describe the condition in words.
    """

    SMALL = "below 10 machine epsilons"
    SMALL_OF_ROUNDED = "of quartiles rounded to float64 below 10 of its machine epsilons"
    TWO_PASSES = "within the rounding errors of its two passes"
    BESIDE_MEAN = "within a machine epsilon of the mean"


class ShortRule(enum.Enum):
    """The numbers that a framework rounds to half precision, in addition to eps, for input of that precision.

    `SIZE`: the divisor before eps enters, such as the length. `SQUARE`: the divisor and its square. A
    convention has None in place of a rule if its framework rounds neither these nor eps.
    """

    SIZE = "size"
    SQUARE = "square"


class Refusal(enum.Enum):
    """An input or option that a framework refuses; the member's value ends the sentence "It refuses …"."""

    ONE_IN_GROUP = "to train on one value a group"
    ONE_IN_BATCH = "to train on one value a group of the whole batch"
    EPS_0 = "to train with an eps of 0"
    INFINITY = "infinities"
    NAN = "NaN"


class GroupOrder(enum.StrEnum):
    """The channels of group g of G: C/G neighbours, or g, g + G, g + 2G and so on."""

    CONTIGUOUS = "contiguous"
    INTERLEAVED = "interleaved"


class ExtraNeighbour(enum.StrEnum):
    """The side on which an even window has one channel more; with `neither`, it has one channel less."""

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
    GIVEN = "as given"


NormName = Literal[
    "bn", "batchnorm", "batch-norm", "batchnorm1d", "batchnorm2d", "batchnorm3d", "batchnormalization",
    "ln", "layernorm", "layer-norm", "layernormalization",
    "in", "instancenorm", "instance-norm", "instancenorm1d", "instancenorm2d", "instancenorm3d",
    "instancenormalization",
    "gn", "groupnorm", "group-norm", "groupnormalization",
    "rms", "rmsnorm", "rms-norm", "rmsnormalization",
    "lp", "lpnorm", "lp-norm", "lpnormalization", "l1", "l2",
    "wn", "weightnorm", "weight-norm",
    "ws", "weightstandardization", "weight-standardization",
    "mvn", "meanvariancenormalization", "mean-variance",
    "zscore", "standardize", "standardscaler", "z-score",
    "minmax", "minmaxscaler", "min-max",
    "midrange", "mid-range",
    "maxabs", "maxabsscaler", "max-abs",
    "robust", "robustscaler", "robust-scaler",
    "lrn", "localresponsenorm", "local-response-norm",
    "sn", "spectralnorm", "spectral-norm", "spectralnormalization",
]  # fmt: skip
"""Every name, alias and preset of a norm; capitals make no difference when a program runs."""

FrameworkName = Literal[
    "annotated-transformer", "areal", "bert", "caffe", "dit", "equinox",
    "falcon-h1", "flax-linen", "flax-nnx", "flux", "gemma", "jax", "keras", "llama",
    "mamba2", "megatron", "mlx", "nnunet", "olmo2", "onnx", "onnx-18", "openvino", "openvino-2",
    "paper-ws", "pixel-norm", "qwen3", "qwen3-next", "revin",
    "scale-norm", "scipy", "sklearn", "stable-baselines3",
    "t5", "tensorflow", "tensorflow-moments", "timm", "torch", "trl", "verl",
]  # fmt: skip
"""The frameworks whose conventions are known."""

EpsModeName = Literal["inside", "outside"]
"""The places in the divisor in which a caller may put eps."""

GroupOrderName = Literal["contiguous", "interleaved"]
"""The orders of channels in groups."""

NanName = Literal["propagate", "omit", "raise"]
"""The effects of NaN, by name; see `NanRule`."""

FillName = Literal["pass", "zero", "nan", "normalize"]
"""The results for values that are masked or omitted; see `Fill`."""

GateActivationName = Literal["silu", "sigmoid", "gelu", "gelu-tanh", "relu", "tanh", "none"]
"""The activations of a gate."""

GateOrderName = Literal["after", "before"]
"""Whether a gate multiplies the norm's result or its tensor."""
