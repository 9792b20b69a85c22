"""The table of norms: the centre, divisor and axes of each. Data, no arithmetic.

Nearly every norm is one sentence: over these axes, subtract this (or nothing), divide by that, then scale
and shift along those axes. A row of `NORMS` is that sentence. To add a norm of that kind, add a row.

Dynamic Tanh (`dyt`, Zhu et al. 2025) and global response normalization (`grn`, ConvNeXt V2) are left out:
neither has a mean and a divisor of groups, and each would need a second kind of row.
"""

from __future__ import annotations

import math
import reprlib
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from normcli.errors import UsageError
from normcli.norms.divisors import (
    DEVIATION,
    HALF_RANGE,
    LENGTH,
    QUARTILE_RANGE,
    RANGE,
    ROOT_MEAN_SQUARE,
    SINGULAR_VALUE,
    WINDOW_POWER,
)
from normcli.norms.norm import Norm
from normcli.norms.rules import AxesRule, Centre, EpsMode, ParameterRule, ZeroRule

if TYPE_CHECKING:
    from collections.abc import Mapping

_standardization = partial(Norm, centre=Centre.MEAN, divisor=DEVIATION, eps=1e-5, eps_mode=EpsMode.INSIDE)
"""Make a row for (x − mean) / √(var + eps); eps is 1e-5, PyTorch's default, unless the row has another."""

_scaling = partial(Norm, axes=AxesRule.FIRST)
"""Make a row for a scaler of columns: (x − centre) / divisor, without eps."""

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
        takes_groups=True,
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
        takes_groups=True,
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
    Norm(
        name="sn",
        title="spectral normalization",
        aliases=("spectralnorm", "spectral-norm", "spectralnormalization"),
        summary="a matrix of weights divided by its largest singular value",
        axes=AxesRule.ALL,
        rows=AxesRule.FIRST,
        divisor=SINGULAR_VALUE,
        source="Miyato et al. 2018, arXiv:1802.05957",
        use="weights of discriminators: no input grows by more than 1",
    ),
)

NORMS: Mapping[str, Norm] = MappingProxyType({row.name: row for row in _ROWS})
"""The table: short name → row, in the order in which the norms are listed everywhere."""

DIVISORS = tuple(dict.fromkeys(row.divisor for row in _ROWS))
"""The divisors of all norms, each once."""

OF_MATRICES = next(row.name for row in _ROWS if row.rows is not None)
"""The name of the norm whose groups are matrices: `sn`."""

BY_ANY_NAME: Mapping[str, Norm] = MappingProxyType({name: row for row in _ROWS for name in row.names})
"""Every name, alias and preset, in lower case → its row."""


def require_name(name: str) -> None:
    """Raise `UsageError` if a norm's name is no string, but an array, say."""
    if not isinstance(name, str):
        raise UsageError(f"norm {reprlib.repr(name)} is not a name")


def find_norm(name: str) -> tuple[Norm, Mapping[str, float]]:
    """Return the norm called `name`, and the options that this name fixes.

    Parameters
    ----------
    name : str
        A short name, an alias or a preset, in any case.

    Returns
    -------
    tuple of (Norm, mapping)
        The norm, and a mapping that is empty except for presets: `{"p": 1.0}` for `l1`.

    Raises
    ------
    UsageError
        If no norm has that name, or the name is no string.

    Examples
    --------
    >>> find_norm("LayerNorm")[0].name
    'ln'
    >>> dict(find_norm("l1")[1])
    {'p': 1.0}
    """
    require_name(name)
    key = name.lower()
    row = BY_ANY_NAME.get(key)
    if row is None:
        raise UsageError(f"there is no norm {name!r}; the norms are {', '.join(NORMS)}")
    presets = dict(row.presets)
    return row, {"p": presets[key]} if key in presets else {}
