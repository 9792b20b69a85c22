"""The names that functions take, as types, so that an editor and mypy know them.

A type checker needs them spelled out; `tests/norms/test_type_names.py` compares them with the tables.
"""

from __future__ import annotations

from typing import Literal

NormName = Literal[
    "bn",
    "batchnorm",
    "batch-norm",
    "batchnorm1d",
    "batchnorm2d",
    "batchnorm3d",
    "batchnormalization",
    "ln",
    "layernorm",
    "layer-norm",
    "layernormalization",
    "in",
    "instancenorm",
    "instance-norm",
    "instancenorm1d",
    "instancenorm2d",
    "instancenorm3d",
    "instancenormalization",
    "gn",
    "groupnorm",
    "group-norm",
    "groupnormalization",
    "rms",
    "rmsnorm",
    "rms-norm",
    "rmsnormalization",
    "lp",
    "lpnorm",
    "lp-norm",
    "lpnormalization",
    "l1",
    "l2",
    "wn",
    "weightnorm",
    "weight-norm",
    "ws",
    "weightstandardization",
    "weight-standardization",
    "mvn",
    "meanvariancenormalization",
    "mean-variance",
    "zscore",
    "standardize",
    "standardscaler",
    "z-score",
    "minmax",
    "minmaxscaler",
    "min-max",
    "midrange",
    "mid-range",
    "maxabs",
    "maxabsscaler",
    "max-abs",
    "robust",
    "robustscaler",
    "robust-scaler",
    "lrn",
    "localresponsenorm",
    "local-response-norm",
    "sn",
    "spectralnorm",
    "spectral-norm",
    "spectralnormalization",
]
"""Every name, alias and preset of a norm; capitals make no difference when a program runs."""

FrameworkName = Literal[
    "annotated-transformer",
    "areal",
    "bert",
    "caffe",
    "dit",
    "equinox",
    "falcon-h1",
    "flax-linen",
    "flax-nnx",
    "flux",
    "gemma",
    "jax",
    "keras",
    "llama",
    "mamba2",
    "megatron",
    "mlx",
    "nnunet",
    "olmo2",
    "onnx",
    "onnx-18",
    "openvino",
    "openvino-2",
    "paper-ws",
    "pixel-norm",
    "qwen3",
    "qwen3-next",
    "revin",
    "scale-norm",
    "scipy",
    "sklearn",
    "stable-baselines3",
    "t5",
    "tensorflow",
    "tensorflow-moments",
    "timm",
    "torch",
    "trl",
    "verl",
]
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
