"""The frameworks' own norms, one function for each row of the table of conventions, imported on use.

A function takes a tensor and, where the framework does, gamma and beta of its dtype, and leaves all else to the
framework's defaults. What could not be run anywhere is written down from its source, and says so.
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import find_type

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Array = np.ndarray[Any, np.dtype[Any]]

os.environ.setdefault("KERAS_BACKEND", "torch")

EXTRA = {"torch", "onnx", "keras", "sklearn", "scipy", "jax", "flax", "equinox", "numpy"}
"""What the extra [peers] brings; the rest runs where it is found."""

FIRST = ((4, 6), (2, 6, 3), (2, 6, 3, 2), (2, 6, 2, 3, 2))
LAST = ((4, 6), (2, 3, 6), (2, 3, 2, 6), (2, 2, 3, 2, 6))
"""Shapes with the channel first or last, 2-D to 5-D."""

SCALES = (1.0, 2.0**-8, 2.0**-20, 2.0**-44)
"""Of the values. The smallest ones make eps all there is of the divisor; those between show where it stands."""

BOTH = ("gamma", "beta")


@dataclass(frozen=True)
class Peer:
    """A framework's norm: how it is called, which module that needs, and on what."""

    norm: str
    framework: str
    module: str
    shapes: tuple[tuple[int, ...], ...]
    call: Callable[..., Any]
    affine: tuple[str, ...] = ()
    scales: tuple[float, ...] = SCALES
    options: Mapping[str, Any] = field(default_factory=dict)


PEERS: list[Peer] = []


def peer(norm, framework, module, shapes, affine=(), scales=SCALES, **options):
    """Add a function to the list, for the options given."""

    def add(call):
        PEERS.append(Peer(norm, framework, module, tuple(shapes), call, affine, scales, options))
        return call

    return add


def make_values(shape, scale=1.0, step=37, modulus=101, centre=45, unit=16):
    """Return values that any machine can make again: exact in float32, none far from zero."""
    numbers = np.arange(int(np.prod(shape))) * step % modulus - centre
    return (numbers.reshape(shape) / unit * scale).astype(np.float32)


def make_parameters(names, shape):
    """Return gamma and beta as far as they are named."""
    every = {
        "gamma": make_values(shape, 1.0, 29, 17, 5, 8),
        "beta": make_values(shape, 1.0, 31, 19, 9, 4),
    }
    return {name: every[name] for name in names}


def spell(options, **words):
    """Return options by the words that a framework has for them: epsilon, and others that are given."""
    return {{"eps": "epsilon", **words}.get(name, name): value for name, value in options.items()}


# -- torch


def to_torch(x):
    import torch

    wide = x if x.dtype.kind == "f" else x.astype(np.float32)
    return torch.from_numpy(wide.copy()).to(getattr(torch, x.dtype.name))


def from_torch(values):
    import torch

    kind = find_type(str(values.dtype).removeprefix("torch."))
    return (values.float() if values.dtype is torch.bfloat16 else values).numpy().astype(kind)


def run_torch(module, x, gamma=None, beta=None):
    import torch

    module = module.to(getattr(torch, x.dtype.name))
    with torch.no_grad():
        for name, value in (("weight", gamma), ("bias", beta)):
            if value is not None:
                getattr(module, name).copy_(to_torch(value))
        return from_torch(module(to_torch(x)))


def of_rank(module, kind, x):
    return getattr(module, f"{kind}{max(1, x.ndim - 2)}d")


@peer("bn", "torch", "torch", FIRST, BOTH)
def torch_batch_norm(x, gamma=None, beta=None, **options):
    import torch

    return run_torch(of_rank(torch.nn, "BatchNorm", x)(x.shape[1], **options), x, gamma, beta)


@peer("ln", "torch", "torch", LAST, BOTH)
@peer("ln", "torch", "torch", FIRST[2:3], BOTH, axes=(1, 2, 3))
@peer("ln", "torch", "torch", FIRST[2:3], BOTH, axes=(2, 3))
def torch_layer_norm(x, gamma=None, beta=None, axes=(-1,), **options):
    import torch

    return run_torch(torch.nn.LayerNorm([x.shape[axis] for axis in axes], **options), x, gamma, beta)


@peer("in", "torch", "torch", FIRST[1:], BOTH)
def torch_instance_norm(x, gamma=None, beta=None, **options):
    import torch

    module = of_rank(torch.nn, "InstanceNorm", x)(x.shape[1], affine=gamma is not None, **options)
    return run_torch(module, x, gamma, beta)


@peer("gn", "torch", "torch", FIRST, BOTH, groups=2)
@peer("gn", "torch", "torch", FIRST[1:], BOTH, groups=6)
def torch_group_norm(x, gamma=None, beta=None, *, groups, **options):
    import torch

    return run_torch(torch.nn.GroupNorm(groups, x.shape[1], **options), x, gamma, beta)


@peer("rms", "torch", "torch", LAST, ("gamma",))
def torch_rms_norm(x, gamma=None, **options):
    import torch

    return run_torch(torch.nn.RMSNorm(x.shape[-1], **options), x, gamma)


@peer("lp", "torch", "torch", FIRST)
@peer("lp", "torch", "torch", FIRST, p=1.0)
@peer("lp", "torch", "torch", FIRST[:2], p=3.0, scales=SCALES[:2])
def torch_normalize(x, p=2.0):
    import torch

    return from_torch(torch.nn.functional.normalize(to_torch(x), p=p))


@peer("wn", "torch", "torch", FIRST[1:], ("gamma",))
def torch_weight_norm(x, gamma=None):
    import torch

    module = of_rank(torch.nn, "Conv", x)(x.shape[1], x.shape[0], x.shape[2:], bias=False)
    module.weight.data = to_torch(x)
    torch.nn.utils.parametrizations.weight_norm(module)
    gain = np.ones(x.shape[0], x.dtype) if gamma is None else gamma
    with torch.no_grad():
        parameter = module.parametrizations.weight.original0
        parameter.copy_(to_torch(gain.reshape(parameter.shape)))
        return from_torch(module.weight)


MANY = 100
"""Power iterations, after which a largest singular value of float32 moves no more."""


@peer("sn", "torch", "torch", FIRST, scales=SCALES[:3])
def torch_spectral_norm(x):
    import torch

    module = torch.nn.Module()
    module.weight = torch.nn.Parameter(to_torch(x))
    torch.nn.utils.parametrizations.spectral_norm(module, n_power_iterations=MANY)
    return from_torch(module.weight.detach())


@peer("lrn", "torch", "torch", FIRST[1:], size=3, alpha=1.0)
@peer("lrn", "torch", "torch", FIRST[1:], size=4)
@peer("lrn", "torch", "torch", FIRST[1:], size=9, alpha=0.5, exponent=0.6, k=2.0)
def torch_local_response(x, *, size, alpha=1e-4, exponent=0.75, k=1.0):
    import torch

    return from_torch(torch.nn.LocalResponseNorm(size, alpha, exponent, k)(to_torch(x)))


# -- models in torch


def transformers_layer(model, name, *further, **options):
    """Return the function of a layer of transformers, with what its config gives it besides the length."""

    def call(x, gamma=None):
        made = getattr(import_module(f"transformers.models.{model}.modeling_{model}"), name)
        return run_torch(made(x.shape[-1], *(x.shape[axis] for axis in further), **options), x, gamma)

    return call


for framework, layer in {
    "llama": transformers_layer("llama", "LlamaRMSNorm"),
    "gemma": transformers_layer("gemma", "GemmaRMSNorm"),
    "qwen3": transformers_layer("qwen3", "Qwen3RMSNorm"),
    "olmo2": transformers_layer("olmo2", "Olmo2RMSNorm", eps=1e-5),
    "mamba2": transformers_layer("mamba2", "MambaRMSNormGated", -1, eps=1e-5),  # of one group, without a gate
    "falcon-h1": transformers_layer("falcon_h1", "FalconH1RMSNormGated", eps=1e-5),
    "t5": transformers_layer("t5", "T5LayerNorm"),
}.items():
    peer("rms", framework, "transformers", LAST[:2], ("gamma",))(layer)
peer("ln", "bert", "torch", LAST[:2], BOTH)(functools.partial(torch_layer_norm, eps=1e-12))  # of BertConfig


@peer("ln", "annotated-transformer", "torch", LAST, BOTH)
def annotated_transformer_layer_norm(x, gamma=None, beta=None):
    """The one line of the_annotated_transformer.py, LayerNorm.forward."""
    t = to_torch(x)
    gamma, beta = map(to_torch, fill(x, x.shape[-1], gamma, beta))
    mean, std = t.mean(-1, keepdim=True), t.std(-1, keepdim=True)
    return from_torch(gamma * (t - mean) / (std + 1e-6) + beta)


@peer("ws", "paper-ws", "torch", FIRST[2:3])
def paper_weight_standardization(x):
    """The authors' Conv2d.forward up to the convolution."""
    weight = to_torch(x)
    mean = weight.mean(dim=1, keepdim=True).mean(dim=2, keepdim=True).mean(dim=3, keepdim=True)
    weight = weight - mean
    std = weight.view(weight.size(0), -1).std(dim=1).view(-1, 1, 1, 1) + 1e-5
    return from_torch(weight / std.expand_as(weight))


@peer("rms", "flux", "torch", LAST[:2], ("gamma",))
def flux_rms_norm(x, gamma=None):
    """The lines of RMSNorm.forward."""
    t = to_torch(x)
    gamma = to_torch(fill(x, x.shape[-1], gamma, None)[0])
    wide = t.float()
    return from_torch((wide / (wide.square().mean(-1, keepdim=True) + 1e-6).sqrt()).to(t.dtype) * gamma)


@peer("rms", "qwen3-next", "transformers", LAST[:2], ("gamma",))
def qwen3_next_rms_norm(x, gamma=None):
    """With a gate of 64, whose silu is 64 in float32, divided out again."""
    from transformers.models.qwen3_next.modeling_qwen3_next import Qwen3NextRMSNormGated

    class WithoutGate(Qwen3NextRMSNormGated):
        def forward(self, x):
            return super().forward(x, x.new_full(x.shape, 64.0)) / 64.0

    return run_torch(WithoutGate(x.shape[-1]), x, gamma)


@peer("rms", "pixel-norm", "torch", FIRST)
def pixel_norm(x):
    """The line of pixel_norm, in torch."""
    t = to_torch(x)
    return from_torch(t * (t.square().mean(1, keepdim=True) + 1e-8).rsqrt())


@peer("lp", "scale-norm", "torch", LAST)
def scale_norm(x):
    """The lines of ScaleNorm.forward with a scale of 1."""
    t = to_torch(x)
    return from_torch(t / t.norm(dim=-1, keepdim=True).clamp(min=1e-5))


@peer("in", "revin", "torch", LAST[1:], BOTH)
def revin(x, gamma=None, beta=None):
    """The lines of RevIN._get_statistics and _normalize."""
    t = to_torch(x)
    gamma, beta = map(to_torch, fill(x, x.shape[-1], gamma, beta))
    along = tuple(range(1, t.ndim - 1))
    deviation = (t.var(along, keepdim=True, unbiased=False) + 1e-5).sqrt()
    return from_torch((t - t.mean(along, keepdim=True)) / deviation * gamma + beta)


@peer("ln", "dit", "torch", LAST[:2], BOTH)
@peer("ln", "flux", "torch", LAST[:2], BOTH)
def dit_layer_norm(x, gamma=None, beta=None, eps=1e-6):
    """LayerNorm without parameters, then modulate."""
    import torch

    t = torch.nn.functional.layer_norm(to_torch(x), x.shape[-1:], eps=eps)
    scale, shift = (0.0 if values is None else to_torch(values) for values in (gamma, beta))
    return from_torch(t * (1 + scale) + shift)


@peer("ln", "megatron", "torch", LAST[:2], BOTH)
def megatron_layer_norm(x, gamma=None, beta=None):
    """FusedLayerNorm.forward with a zero-centered gamma, by torch's kernel in the place of Apex's."""
    return dit_layer_norm(x, gamma, beta, eps=1e-5)


@peer("ln", "timm", "timm", FIRST[2:3], BOTH)
def timm_layer_norm(x, gamma=None, beta=None):
    from timm.layers import LayerNorm2d

    return run_torch(LayerNorm2d(x.shape[1]), x, gamma, beta)


@peer("ws", "timm", "timm", FIRST[2:3])
def timm_weight_standardization(x):
    """The weight that StdConv2d convolves with, read off by one impulse for each of its values."""
    import torch
    from timm.layers import StdConv2d

    size = int(np.prod(x.shape[1:]))
    module = StdConv2d(x.shape[1], x.shape[0], x.shape[2:], padding=0)
    module.weight.data = torch.from_numpy(x.copy())
    impulses = torch.eye(size).reshape(size, *x.shape[1:])
    return module(impulses).detach().numpy().reshape(size, x.shape[0]).T.reshape(x.shape)


# -- keras


def run_keras(layer, x, gamma=None, beta=None, gain="gamma", **arguments):
    import keras

    layer.dtype_policy = x.dtype.name
    if not layer.built:
        layer.build(x.shape)
    for name, value in ((gain, gamma), ("beta", beta)):
        if value is not None:
            getattr(layer, name).assign(to_torch(value))
    made = layer(to_torch(x), **arguments)
    return keras.ops.convert_to_numpy(keras.ops.cast(made, "float64")).astype(
        find_type(str(keras.backend.standardize_dtype(made.dtype)))
    )


def keras_layer(name, **how):
    """Return the function of a layer."""

    def call(x, gamma=None, beta=None, **options):
        import keras

        return run_keras(getattr(keras.layers, name)(**spell(options)), x, gamma, beta, **how)

    return call


peer("bn", "keras", "keras", LAST, BOTH)(keras_layer("BatchNormalization", training=True))
peer("ln", "keras", "keras", LAST, BOTH)(keras_layer("LayerNormalization"))
peer("in", "keras", "keras", LAST[1:], BOTH)(functools.partial(keras_layer("GroupNormalization"), groups=-1))
peer("gn", "keras", "keras", LAST, BOTH, groups=2)(keras_layer("GroupNormalization"))
peer("rms", "keras", "keras", LAST, ("gamma",))(keras_layer("RMSNormalization", gain="scale"))
peer("lp", "keras", "keras", LAST)(keras_layer("UnitNormalization"))


@peer("sn", "keras", "keras", LAST[:1], scales=SCALES[:3])
def keras_spectral_norm(x):
    import keras

    layer = keras.layers.Dense(x.shape[1], use_bias=False)
    module = keras.layers.SpectralNormalization(layer, power_iterations=MANY)
    module.build((1, x.shape[0]))
    layer.kernel.assign(x)
    module(np.eye(x.shape[0], dtype=x.dtype), training=True)
    return np.asarray(layer.kernel.value.detach())


@peer("zscore", "keras", "keras", LAST)
def keras_normalization(x):
    import keras

    layer = keras.layers.Normalization()
    layer.adapt(x)
    return keras.ops.convert_to_numpy(layer(x))


# -- flax and jax


def run_linen(module, x, gamma=None, beta=None):
    import jax

    if x.dtype.itemsize < 4:
        module = module.clone(dtype=x.dtype)
    variables = module.init(jax.random.key(0), x)
    params = dict(variables.get("params", {}))
    params |= {name: value for name, value in (("scale", gamma), ("bias", beta)) if value is not None}
    return np.asarray(module.apply({**variables, "params": params}, x, mutable=["batch_stats"])[0])


def linen_layer(name, **settings):
    """Return the function of a module of linen."""

    def call(x, gamma=None, beta=None, **options):
        from flax import linen

        words = spell(options, groups="num_groups", axes="reduction_axes")
        return run_linen(getattr(linen, name)(**words, **settings), x, gamma, beta)

    return call


peer("bn", "flax-linen", "flax", LAST, BOTH)(linen_layer("BatchNorm", use_running_average=False))
peer("ln", "flax-linen", "flax", LAST, BOTH)(linen_layer("LayerNorm"))
peer("ln", "flax-linen", "flax", LAST[1:2], BOTH, axes=(1, 2))(linen_layer("LayerNorm"))
peer("in", "flax-linen", "flax", LAST[1:], BOTH)(linen_layer("InstanceNorm"))
peer("gn", "flax-linen", "flax", LAST, BOTH, groups=2)(linen_layer("GroupNorm"))
peer("rms", "flax-linen", "flax", LAST, ("gamma",))(linen_layer("RMSNorm"))


@peer("sn", "flax-linen", "flax", LAST[:1], scales=SCALES[:2])
def linen_spectral_norm(x):
    import jax
    from flax import linen

    module = linen.SpectralNorm(linen.Dense(x.shape[1], use_bias=False), n_steps=MANY)
    unit = np.eye(x.shape[0], dtype=x.dtype)
    variables = module.init(jax.random.key(0), unit, update_stats=False)
    params = jax.tree.map(lambda _: x, variables["params"])
    return np.asarray(module.apply({**variables, "params": params}, unit, update_stats=False))


@peer("wn", "flax-linen", "flax", LAST[:1], ("gamma",))
def linen_weight_norm(x, gamma=None):
    import jax
    from flax import linen

    module = linen.WeightNorm(linen.Dense(x.shape[1], use_bias=False))
    unit = np.eye(x.shape[0], dtype=x.dtype)
    variables = module.init(jax.random.key(0), unit)
    params = dict(variables["params"])
    params["layer_instance"] = {"kernel": x}
    name = next(name for name in params if name != "layer_instance")
    if gamma is not None:
        params[name] = jax.tree.map(lambda _: gamma, params[name])
    return np.asarray(module.apply({"params": params}, unit))


def run_nnx(module, x, gamma=None, beta=None):
    for name, value in (("scale", gamma), ("bias", beta)):
        if value is not None:
            getattr(module, name)[...] = value
    if x.dtype.itemsize < 4:
        module.dtype = x.dtype
    return np.asarray(module(x))


def nnx_layer(name):
    """Return the function of a module of nnx."""

    def call(x, gamma=None, beta=None, **options):
        from flax import nnx

        words = spell(options, groups="num_groups")
        return run_nnx(getattr(nnx, name)(x.shape[-1], rngs=nnx.Rngs(0), **words), x, gamma, beta)

    return call


peer("bn", "flax-nnx", "flax", LAST, BOTH)(nnx_layer("BatchNorm"))
peer("ln", "flax-nnx", "flax", LAST, BOTH)(nnx_layer("LayerNorm"))
peer("in", "flax-nnx", "flax", LAST[1:], BOTH)(nnx_layer("InstanceNorm"))
peer("gn", "flax-nnx", "flax", LAST, BOTH, groups=2)(nnx_layer("GroupNorm"))
peer("rms", "flax-nnx", "flax", LAST, ("gamma",))(nnx_layer("RMSNorm"))


@peer("wn", "flax-nnx", "flax", LAST[:1])
def nnx_weight_norm(x):
    from flax import nnx

    layer = nnx.Linear(*x.shape, use_bias=False, rngs=nnx.Rngs(0))
    layer.kernel[...] = x
    return np.asarray(nnx.WeightNorm(layer, rngs=nnx.Rngs(0))(np.eye(x.shape[0], dtype=x.dtype)))


@peer("sn", "flax-nnx", "flax", LAST[:1], scales=SCALES[:2])
def nnx_spectral_norm(x):
    from flax import nnx

    layer = nnx.Linear(*x.shape, use_bias=False, rngs=nnx.Rngs(0))
    layer.kernel[...] = x
    module = nnx.SpectralNorm(layer, n_steps=MANY, rngs=nnx.Rngs(0))
    return np.asarray(module(np.eye(x.shape[0], dtype=x.dtype), update_stats=True))


@peer("ln", "jax", "jax", LAST)
def jax_standardize(x, **options):
    import jax

    return np.asarray(jax.nn.standardize(x, **spell(options)))


# -- equinox


def run_equinox(module, x, gamma=None, beta=None):
    import equinox
    import jax

    for name, value in (("weight", gamma), ("bias", beta)):
        if value is not None:
            module = equinox.tree_at(lambda m, name=name: getattr(m, name), module, jax.numpy.asarray(value))
    return np.asarray(jax.vmap(module)(x))


@peer("bn", "equinox", "equinox", FIRST, BOTH)
def equinox_batch_norm(x, gamma=None, beta=None):
    import equinox
    import jax

    module, state = equinox.nn.make_with_state(equinox.nn.BatchNorm)(
        x.shape[1], axis_name="batch", mode="batch"
    )
    for name, value in (("weight", gamma), ("bias", beta)):
        if value is not None:
            module = equinox.tree_at(lambda m, name=name: getattr(m, name), module, jax.numpy.asarray(value))
    mapped = jax.vmap(module, axis_name="batch", in_axes=(0, None), out_axes=(0, None))
    return np.asarray(mapped(x, state)[0])


@peer("ln", "equinox", "equinox", FIRST, BOTH)
def equinox_layer_norm(x, gamma=None, beta=None, **options):
    import equinox

    return run_equinox(equinox.nn.LayerNorm(x.shape[1:], **options), x, gamma, beta)


@peer("gn", "equinox", "equinox", FIRST, BOTH, groups=2)
def equinox_group_norm(x, gamma=None, beta=None, *, groups, **options):
    import equinox

    return run_equinox(equinox.nn.GroupNorm(groups, x.shape[1], **options), x, gamma, beta)


@peer("rms", "equinox", "equinox", FIRST, BOTH)
def equinox_rms_norm(x, gamma=None, beta=None, **options):
    import equinox

    return run_equinox(equinox.nn.RMSNorm(x.shape[1:], **options), x, gamma, beta)


@peer("sn", "equinox", "equinox", FIRST[:1], scales=SCALES[:3])
def equinox_spectral_norm(x):
    import equinox
    import jax

    rows, columns = x.shape
    layer = equinox.nn.Linear(columns, rows, use_bias=False, key=jax.random.key(0))
    layer = equinox.tree_at(lambda m: m.weight, layer, jax.numpy.asarray(x))
    make = equinox.nn.make_with_state(equinox.nn.SpectralNorm)
    module, state = make(layer, "weight", num_power_iterations=MANY, key=jax.random.key(1))
    run = jax.vmap(lambda each: module(each, state)[0])
    return np.asarray(run(np.eye(columns, dtype=x.dtype))).T


@peer("wn", "equinox", "equinox", FIRST[:1], ("gamma",))
def equinox_weight_norm(x, gamma=None):
    import equinox
    import jax

    rows, columns = x.shape
    layer = equinox.nn.Linear(columns, rows, use_bias=False, key=jax.random.key(0))
    module = equinox.nn.WeightNorm(equinox.tree_at(lambda m: m.weight, layer, jax.numpy.asarray(x)))
    gain = np.ones(rows, x.dtype) if gamma is None else gamma
    module = equinox.tree_at(lambda m: m.g, module, jax.numpy.asarray(gain.reshape(rows, 1)))
    return np.asarray(jax.vmap(module)(np.eye(columns, dtype=x.dtype))).T


# -- mlx


def run_mlx(module, x, gamma=None, beta=None):
    import mlx.core as mx

    for name, value in (("weight", gamma), ("bias", beta)):
        if value is not None:
            setattr(module, name, mx.array(value))
    return np.array(module(mx.array(x)))


def mlx_layer(name):
    """Return the function of a module of mlx that is made with the number of channels alone."""
    return lambda x, **parameters: run_mlx(getattr(import_module("mlx.nn"), name)(x.shape[-1]), x, **parameters)


peer("bn", "mlx", "mlx.core", LAST[:3], BOTH)(mlx_layer("BatchNorm"))
peer("ln", "mlx", "mlx.core", LAST, BOTH)(mlx_layer("LayerNorm"))
peer("rms", "mlx", "mlx.core", LAST, ("gamma",))(mlx_layer("RMSNorm"))


@peer("in", "mlx", "mlx.core", LAST[1:], BOTH)
def mlx_instance_norm(x, gamma=None, beta=None):
    import mlx.nn

    return run_mlx(mlx.nn.InstanceNorm(x.shape[-1], affine=gamma is not None), x, gamma, beta)


@peer("gn", "mlx", "mlx.core", LAST, BOTH, groups=2)
@peer("gn", "mlx", "mlx.core", LAST, BOTH, groups=3)
@peer("gn", "mlx", "mlx.core", LAST[1:], BOTH, groups=3, group_order="contiguous")
def mlx_group_norm(x, gamma=None, beta=None, *, groups, group_order="interleaved"):
    import mlx.nn

    compatible = group_order == "contiguous"
    return run_mlx(mlx.nn.GroupNorm(groups, x.shape[-1], pytorch_compatible=compatible), x, gamma, beta)


# -- onnx, by its reference evaluator


def run_onnx(operator, opset, *inputs, outputs=1, **attributes):
    from onnx import helper, reference

    names, results = [f"i{i}" for i in range(len(inputs))], [f"o{i}" for i in range(outputs)]
    kinds = [helper.np_dtype_to_tensor_dtype(value.dtype) for value in inputs]
    graph = helper.make_graph(
        [helper.make_node(operator, names, results, **attributes)],
        "graph",
        [
            helper.make_tensor_value_info(*of)
            for of in zip(names, kinds, (v.shape for v in inputs), strict=True)
        ],
        [helper.make_tensor_value_info(name, kinds[0], None) for name in results],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    return reference.ReferenceEvaluator(model).run(None, dict(zip(names, inputs, strict=True)))


def fill(x, length, gamma, beta):
    """Return gamma and beta, which ONNX and OpenVINO require."""
    gamma = np.ones(length, x.dtype) if gamma is None else gamma
    return gamma, np.zeros(length, x.dtype) if beta is None else beta


@peer("bn", "onnx", "onnx", FIRST, BOTH)
def onnx_batch_norm(x, gamma=None, beta=None):
    gamma, beta = fill(x, x.shape[1], gamma, beta)
    zero, one = np.zeros_like(gamma), np.ones_like(gamma)
    return run_onnx("BatchNormalization", 15, x, gamma, beta, zero, one, outputs=3, training_mode=1)[0]


@peer("ln", "onnx", "onnx", LAST, BOTH)
def onnx_layer_norm(x, gamma=None, beta=None, **options):
    return run_onnx("LayerNormalization", 17, x, *fill(x, x.shape[-1], gamma, beta), **spell(options))[0]


@peer("in", "onnx", "onnx", FIRST[1:], BOTH)
def onnx_instance_norm(x, gamma=None, beta=None, **options):
    return run_onnx("InstanceNormalization", 22, x, *fill(x, x.shape[1], gamma, beta), **spell(options))[0]


@peer("gn", "onnx", "onnx", FIRST[1:], BOTH, groups=2)
def onnx_group_norm(x, gamma=None, beta=None, **options):
    words = spell(options, groups="num_groups")
    return run_onnx("GroupNormalization", 21, x, *fill(x, x.shape[1], gamma, beta), **words)[0]


@peer("gn", "onnx-18", "onnx", FIRST[1:], BOTH, groups=2)
def onnx_18_group_norm(x, gamma=None, beta=None, *, groups):
    return run_onnx("GroupNormalization", 18, x, *fill(x, groups, gamma, beta), num_groups=groups)[0]


@peer("rms", "onnx", "onnx", LAST, ("gamma",))
def onnx_rms_norm(x, gamma=None, **options):
    return run_onnx("RMSNormalization", 23, x, fill(x, x.shape[-1], gamma, None)[0], **spell(options))[0]


@peer("lp", "onnx", "onnx", LAST)
def onnx_lp_norm(x):
    return run_onnx("LpNormalization", 22, x)[0]


@peer("mvn", "onnx", "onnx", FIRST[2:3])
def onnx_mean_variance(x, **options):
    return run_onnx("MeanVarianceNormalization", 13, x, **options)[0]


@peer("lrn", "onnx", "onnx", FIRST[2:3], size=3, alpha=1.0)
@peer("lrn", "onnx", "onnx", FIRST[2:3], size=4)
@peer("lrn", "onnx", "onnx", FIRST[2:3], size=4, alpha=0.5, exponent=0.6, k=2.0)
def onnx_local_response(x, *, size, alpha=1e-4, exponent=0.75, k=1.0):
    """The evaluator goes over as many channels as there are samples, so it is given as many (onnx/onnx#7805)."""
    many = np.concatenate([x] * x.shape[1])[: x.shape[1]]
    return run_onnx("LRN", 13, many, size=size, alpha=alpha, beta=exponent, bias=k)[0][: len(x)]


# -- openvino


def run_openvino(build, x):
    import openvino

    parameter = openvino.opset1.parameter(x.shape, x.dtype)
    model = openvino.Model([build(parameter)], [parameter])
    return openvino.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(x)[0]


def openvino_constant(values):
    import openvino

    return openvino.opset1.constant(np.asarray(values))


@peer("gn", "openvino", "openvino", FIRST[1:], BOTH, groups=2, eps=1e-3)
def openvino_group_norm(x, gamma=None, beta=None, *, groups, eps):
    from openvino import opset12

    gamma, beta = map(openvino_constant, fill(x, x.shape[1], gamma, beta))
    return run_openvino(lambda p: opset12.group_normalization(p, gamma, beta, groups, eps), x)


@peer("mvn", "openvino", "openvino", FIRST[1:], axes=(1, 2), eps=1e-3)
@peer("mvn", "openvino", "openvino", FIRST[1:], axes=(1, 2), eps=1e-3, eps_mode="outside")
def openvino_mean_variance(x, *, axes, eps, eps_mode="inside"):
    from openvino import opset6

    reduced = openvino_constant(np.array(axes, np.int64))
    place = {"inside": "inside_sqrt", "outside": "outside_sqrt"}[eps_mode]
    return run_openvino(lambda p: opset6.mvn(p, reduced, True, eps, place), x)  # noqa: FBT003


@peer("mvn", "openvino-2", "openvino", FIRST[1:])
def openvino_2_mean_variance(x):
    from openvino import opset2

    return run_openvino(lambda p: opset2.mvn(p, across_channels=False, normalize_variance=True), x)


@peer("lp", "openvino", "openvino", FIRST, axes=1, eps=4.0)
@peer("lp", "openvino", "openvino", FIRST, axes=1, eps=1e-3)
def openvino_length(x, *, axes, eps):
    """By way of NodeFactory: opset1.normalize_l2 passes eps_mode under a name that nobody reads."""
    from openvino.utils.node_factory import NodeFactory

    reduced = openvino_constant(np.array([axes], np.int64)).output(0)
    attributes = {"eps": eps, "eps_mode": "max"}
    make = NodeFactory("opset1").create
    return run_openvino(lambda p: make("NormalizeL2", [p.output(0), reduced], attributes), x)


@peer("lrn", "openvino", "openvino", FIRST[2:3], axes=1, size=4)
@peer("lrn", "openvino", "openvino", FIRST[2:3], axes=1, size=5)
def openvino_local_response(x, *, axes, size):
    from openvino import opset1

    reduced = openvino_constant(np.array([axes], np.int64))
    return run_openvino(lambda p: opset1.lrn(p, reduced, size=size), x)


# -- tensorflow


@peer("bn", "tensorflow", "tensorflow", LAST[2:], BOTH)
def tensorflow_batch_norm(x, gamma=None, beta=None):
    import tensorflow

    kind = {"data_format": "NDHWC"} if x.ndim == 5 else {}
    return tensorflow.compat.v1.nn.fused_batch_norm(x, *fill(x, x.shape[-1], gamma, beta), **kind)[0].numpy()


@peer("bn", "tensorflow-moments", "tensorflow", LAST, BOTH, axes=0, eps=1e-3)
def tensorflow_moments(x, gamma=None, beta=None, *, axes, eps):
    import tensorflow

    mean, variance = tensorflow.nn.moments(x, [axes])
    return tensorflow.nn.batch_normalization(x, mean, variance, beta, gamma, eps).numpy()


@peer("lp", "tensorflow", "tensorflow", LAST, axes=-1)
def tensorflow_length(x, *, axes):
    import tensorflow

    return tensorflow.nn.l2_normalize(x, axis=axes).numpy()


@peer("lrn", "tensorflow", "tensorflow", LAST[2:3])
@peer("lrn", "tensorflow", "tensorflow", LAST[2:3], size=3)
def tensorflow_local_response(x, size=11):
    import tensorflow

    return tensorflow.nn.local_response_normalization(x, depth_radius=size // 2).numpy()


@peer("zscore", "tensorflow", "tensorflow", LAST[1:3])
def tensorflow_standardization(x):
    import tensorflow

    return tensorflow.image.per_image_standardization(x).numpy()


# -- scikit-learn and scipy


@peer("zscore", "sklearn", "sklearn", FIRST[:1])
def sklearn_standard_scaler(x):
    from sklearn.preprocessing import StandardScaler

    return StandardScaler().fit_transform(x)


@peer("lp", "sklearn", "sklearn", FIRST[:1], scales=SCALES[:2])
@peer("lp", "sklearn", "sklearn", FIRST[:1], scales=SCALES[:2], p=1.0)
def sklearn_normalizer(x, p=2.0):
    from sklearn.preprocessing import Normalizer

    return Normalizer(f"l{p:g}").fit_transform(x)


@peer("zscore", "scipy", "scipy", FIRST)
def scipy_zscore(x):
    from scipy import stats

    return stats.zscore(x)


# -- advantages, images and observations: lines of programs that no test installs


def advantages(eps):
    """Return the lines of GRPOTrainer, compute_grpo_outcome_advantage and Normalization, of one group."""

    def call(x):
        t = to_torch(x)
        return from_torch((t - t.mean(0)) / (t.std(0) + eps))

    return call


for framework, eps in (("trl", 1e-4), ("verl", 1e-6), ("areal", 1e-5)):
    peer("zscore", framework, "torch", FIRST[:1])(advantages(eps))


@peer("zscore", "nnunet", "numpy", FIRST[:1])
def nnunet_zscore(x):
    """The lines of ZScoreNormalization.run, without a mask."""
    return (x - x.mean()) / max(x.std(), 1e-8)


@peer("zscore", "stable-baselines3", "numpy", FIRST[:1])
def vec_normalize(x):
    """The lines of VecNormalize._normalize_obs, without bounds, once all observations were counted."""
    wide = x.astype(np.float64)
    return ((wide - wide.mean(0)) / np.sqrt(wide.var(0) + 1e-8)).astype(np.float32)


@peer("minmax", "sklearn", "sklearn", FIRST[:1], scales=SCALES[:2])
def sklearn_min_max_scaler(x):
    from sklearn.preprocessing import MinMaxScaler

    return MinMaxScaler().fit_transform(x)


@peer("maxabs", "sklearn", "sklearn", FIRST[:1], scales=SCALES[:2])
def sklearn_max_abs_scaler(x):
    from sklearn.preprocessing import MaxAbsScaler

    return MaxAbsScaler().fit_transform(x)


@peer("robust", "sklearn", "sklearn", FIRST[:1], scales=SCALES[:2])
def sklearn_robust_scaler(x):
    from sklearn.preprocessing import RobustScaler

    return RobustScaler().fit_transform(x)


# -- caffe, written down from its source: it was not run


@peer("bn", "caffe", "numpy", FIRST[2:3])
def caffe_batch_norm(x):
    """batch_norm_layer.cpp, Forward_cpu: mean, x − mean, E[(x − mean)²] + eps, square root, divide."""
    centred = x.astype(float) - x.mean((0, 2, 3), dtype=float, keepdims=True)
    return centred / np.sqrt((centred**2).mean((0, 2, 3), keepdims=True) + 1e-5)


@peer("mvn", "caffe", "numpy", FIRST[2:3])
def caffe_mean_variance(x):
    """mvn_layer.cpp, Forward_cpu: x − mean, then divided by √E[(x − mean)²] + eps."""
    centred = x.astype(float) - x.mean((2, 3), dtype=float, keepdims=True)
    return centred / (np.sqrt((centred**2).mean((2, 3), keepdims=True)) + 1e-9)


@peer("lrn", "caffe", "numpy", FIRST[2:3])
def caffe_local_response(x):
    """lrn_layer.cpp, CrossChannelForward_cpu: scale = k + α/n · Σx² of a padded window, y = x · scale^−β."""
    squares = np.pad(x.astype(float) ** 2, ((0, 0), (2, 2), (0, 0), (0, 0)))
    total = functools.reduce(np.add, (squares[:, i : i + x.shape[1]] for i in range(5)))
    return x * (1.0 + 1.0 / 5 * total) ** -0.75
