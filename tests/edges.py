"""What the frameworks give where their conventions part: constant groups, half precision, nearly constant columns.

A function takes a tensor and the options of its case, as those of `tests/peers.py` do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import find_type
from tests import peers
from tests.peers import from_torch, keras_layer, linen_layer, nnx_layer, to_torch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

FLAT = [[5.0, 5.0, 5.0, 5.0], [0.0, 1.0, 2.0, 3.0]]
FLAT_COLUMN = [[5.0, 0.0], [5.0, 1.0], [5.0, 3.0]]
ZEROS = [[0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 2.0, 3.0]]
FAR = [[1000.0, 1000.125, 1000.25, 999.875], [0.0, 1.0, 2.0, 3.0]]
LARGE = [[3e4, 4e4, 5e4, 6e4], [300.0, 400.0, 0.0, 0.0]]
HUGE = [[1e20, 2e20, -1e20, 0.0], [1.0, 2.0, 3.0, 4.0]]
MINUTE = [[1e-25, 2e-25, -1e-25, 0.0], [1.0, 2.0, 3.0, 4.0]]
TINY = [[1e-17, 2e-17, 0.0], [1.0, 2.0, 3.0]]
TINY_COLUMN = [[1e-17, 1.0], [0.0, 2.0], [4e-17, 3.0]]
NEARLY_FLAT = [[1e6, 1.0], [1e6 + 1e-9, 2.0], [1e6 + 2e-10, 3.0], [1e6 + 1e-9, 4.0]]
NEARLY_FLAT_ROW = [[1e6], [1e6 + 1e-10], [1e6]]
NEARLY_FLAT_QUARTILES = [[1e8], [1e8], [1e8], [1e8 + 2.0**-26]]
FAR_COLUMN = [[1e8], [1e8 + 2.0**-26], [1e8 + 2.0**-25], [1e8 + 2.0**-26 * 3]]
INFINITE = [[1.0, 1.0], [np.inf, 2.0], [3.0, 3.0]]
HOLEY = [[1.0, 1.0], [np.nan, 2.0], [3.0, 3.0], [4.0, 7.0]]
"""Tensors by what is special about them."""


@dataclass(frozen=True)
class Edge:
    """A tensor on which a framework's convention shows.

    Parameters
    ----------
    norm, framework, module : str
    values : list
    dtype : str
    call : callable
    options : mapping
        Of normcli and of the function alike.
    """

    norm: str
    framework: str
    module: str
    values: list[Any]
    dtype: str
    call: Callable[..., Any]
    options: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        options = "".join(f" {name}={value}" for name, value in self.options.items())
        return f"{self.norm} {self.framework}{options} {self.dtype} {self.values}"

    def make(self) -> np.ndarray[Any, Any]:
        """Return the tensor."""
        return np.array(self.values).astype(find_type(self.dtype))

    def run(self) -> list[float] | None:
        """Return what the framework gives; None where it refuses."""
        try:
            found = self.call(self.make(), **self.options)
        except ValueError:
            return None
        return np.asarray(found).astype(float).ravel().tolist()


EDGES: list[Edge] = []


def edge(norm, framework, values, *dtypes, module=None, **options):
    """Add a function to the list, for each of some dtypes (float32)."""

    def add(call):
        kinds = dtypes or ("float32",)
        EDGES.extend(
            Edge(norm, framework, module or framework, values, dtype, call, options) for dtype in kinds
        )
        return call

    return add


# -- torch

edge("bn", "torch", [[1.0, 2.0, 3.0]])(peers.torch_batch_norm)
edge("bn", "torch", FLAT_COLUMN, eps=0.0)(peers.torch_batch_norm)
edge("bn", "torch", HUGE)(peers.torch_batch_norm)
edge("in", "torch", [[[1.0], [2.0]]])(peers.torch_instance_norm)
edge("in", "torch", [FLAT], eps=0.0)(peers.torch_instance_norm)
edge("gn", "torch", [[1.0, 2.0, 3.0]], groups=3)(peers.torch_group_norm)
edge("gn", "torch", FLAT, groups=1, eps=0.0)(peers.torch_group_norm)
edge("ln", "torch", FLAT, eps=0.0)(peers.torch_layer_norm)
edge("ln", "torch", HUGE)(peers.torch_layer_norm)
edge("rms", "torch", ZEROS, eps=0.0)(peers.torch_rms_norm)
edge("lp", "torch", ZEROS, "float16", "bfloat16", "float32")(peers.torch_normalize)
edge("lp", "torch", LARGE, "float16", "bfloat16")(peers.torch_normalize)
edge("lp", "torch", HUGE, "float32", "float64")(peers.torch_normalize)
edge("lp", "torch", MINUTE)(peers.torch_normalize)


@edge("wn", "torch", ZEROS)
@edge("wn", "torch", MINUTE)
@edge("wn", "torch", LARGE, "float16")
@edge("wn", "torch", FAR, keep=1)
def torch_weight_norm(x, keep=0):
    import torch

    ones = np.ones((1, x.shape[1]) if keep else (x.shape[0], 1), np.float32)
    return from_torch(torch._weight_norm(to_torch(x), to_torch(ones.astype(x.dtype)), keep))


edge("ln", "annotated-transformer", HUGE, module="torch")(peers.annotated_transformer_layer_norm)


# -- keras

edge("lp", "keras", ZEROS, "float16", "bfloat16", "float32")(keras_layer("UnitNormalization"))
edge("lp", "keras", LARGE, "float16", "bfloat16")(keras_layer("UnitNormalization"))


edge("bn", "keras", FLAT_COLUMN, eps=0.0)(keras_layer("BatchNormalization", training=True))
edge("ln", "keras", FLAT, eps=0.0)(keras_layer("LayerNormalization"))
edge("ln", "keras", HUGE)(keras_layer("LayerNormalization"))
edge("gn", "keras", FLAT, groups=1, eps=0.0)(keras_layer("GroupNormalization"))
edge("gn", "keras", [FLAT, FAR], groups=-1)(keras_layer("GroupNormalization"))
edge("gn", "keras", FAR, groups=1)(keras_layer("GroupNormalization"))
edge("rms", "keras", ZEROS, eps=0.0)(keras_layer("RMSNormalization"))


# -- flax and jax


edge("bn", "flax-linen", FLAT_COLUMN, module="flax", eps=0.0)(
    linen_layer("BatchNorm", use_running_average=False)
)
edge("ln", "flax-linen", FLAT, module="flax", eps=0.0)(linen_layer("LayerNorm"))
edge("ln", "flax-linen", FAR, module="flax")(linen_layer("LayerNorm"))
edge("in", "flax-linen", [FLAT_COLUMN], module="flax", eps=0.0)(linen_layer("InstanceNorm"))
edge("gn", "flax-linen", FLAT, module="flax", groups=1, eps=0.0)(linen_layer("GroupNorm"))
edge("rms", "flax-linen", ZEROS, module="flax", eps=0.0)(linen_layer("RMSNorm"))


edge("bn", "flax-nnx", FLAT_COLUMN, module="flax", eps=0.0)(nnx_layer("BatchNorm"))
edge("ln", "flax-nnx", FLAT, module="flax", eps=0.0)(nnx_layer("LayerNorm"))
edge("ln", "flax-nnx", FAR, module="flax")(nnx_layer("LayerNorm"))
edge("in", "flax-nnx", [FLAT_COLUMN], module="flax", eps=0.0)(nnx_layer("InstanceNorm"))
edge("gn", "flax-nnx", FLAT, module="flax", groups=1, eps=0.0)(nnx_layer("GroupNorm"))
edge("rms", "flax-nnx", ZEROS, module="flax", eps=0.0)(nnx_layer("RMSNorm"))
edge("rms", "flax-nnx", HUGE, module="flax")(nnx_layer("RMSNorm"))


@edge("wn", "flax-nnx", [[0.0, 1.0], [0.0, 2.0]], "float16", "bfloat16", "float32", module="flax")
@edge("wn", "flax-nnx", [[300.0, 1.0], [400.0, 2.0]], "float16", "bfloat16", module="flax")
def nnx_weight_norm(x):
    from flax import nnx

    kinds = {"dtype": x.dtype, "param_dtype": x.dtype}
    layer = nnx.Linear(*x.shape, use_bias=False, rngs=nnx.Rngs(0), **kinds)
    layer.kernel[...] = x
    return np.asarray(nnx.WeightNorm(layer, rngs=nnx.Rngs(0), **kinds)(np.eye(len(x), dtype=x.dtype)))


edge("ln", "jax", ZEROS, eps=0.0)(peers.jax_standardize)
edge("ln", "jax", FAR)(peers.jax_standardize)

# -- equinox

edge("ln", "equinox", FLAT, eps=0.0)(peers.equinox_layer_norm)
edge("gn", "equinox", FLAT, groups=1, eps=0.0)(peers.equinox_group_norm)
edge("rms", "equinox", ZEROS, eps=0.0)(peers.equinox_rms_norm)
edge("wn", "equinox", ZEROS)(peers.equinox_weight_norm)


# -- onnx

edge("ln", "onnx", FLAT, eps=0.0)(peers.onnx_layer_norm)
edge("in", "onnx", [FLAT], eps=0.0)(peers.onnx_instance_norm)
edge("gn", "onnx", [FLAT], groups=2, eps=0.0)(peers.onnx_group_norm)
edge("rms", "onnx", ZEROS, eps=0.0)(peers.onnx_rms_norm)
edge("lp", "onnx", ZEROS)(peers.onnx_lp_norm)
edge("mvn", "onnx", [[[FLAT]], [[FAR]]], axes=(2, 3))(peers.onnx_mean_variance)


# -- scikit-learn and scipy


def sklearn_scaler(name):
    """Return the function of a scaler."""

    def call(x):
        from sklearn import preprocessing

        return getattr(preprocessing, name)().fit_transform(x)

    return call


for _norm, _name in (
    ("zscore", "StandardScaler"),
    ("minmax", "MinMaxScaler"),
    ("maxabs", "MaxAbsScaler"),
    ("robust", "RobustScaler"),
):
    edge(_norm, "sklearn", HOLEY, "float64")(sklearn_scaler(_name))
    edge(_norm, "sklearn", INFINITE, "float64")(sklearn_scaler(_name))
    edge(_norm, "sklearn", FLAT_COLUMN, "float64")(sklearn_scaler(_name))
    edge(_norm, "sklearn", TINY_COLUMN, "float32", "float64")(sklearn_scaler(_name))
edge("zscore", "sklearn", NEARLY_FLAT, "float64")(sklearn_scaler("StandardScaler"))
edge("zscore", "sklearn", HUGE)(sklearn_scaler("StandardScaler"))
edge("lp", "sklearn", HUGE)(sklearn_scaler("Normalizer"))
edge("robust", "sklearn", NEARLY_FLAT_QUARTILES, "float64")(sklearn_scaler("RobustScaler"))
edge("minmax", "sklearn", FAR_COLUMN, "float64")(sklearn_scaler("MinMaxScaler"))
for _values in (TINY, INFINITE, HOLEY):
    edge("lp", "sklearn", _values, "float64")(sklearn_scaler("Normalizer"))

edge("zscore", "scipy", NEARLY_FLAT_ROW, "float64")(peers.scipy_zscore)
edge("zscore", "scipy", FLAT_COLUMN, "float64")(peers.scipy_zscore)
edge("zscore", "scipy", [[3.0, 4.0]], "float64")(peers.scipy_zscore)
edge("zscore", "scipy", HUGE)(peers.scipy_zscore)
