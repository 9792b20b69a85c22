"""Small models of transformers, Keras and Flax with random weights, and a run of each."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable


class Zooed(NamedTuple):
    """A model and its batch.

    Parameters
    ----------
    model : torch.nn.Module, keras.Layer or flax.linen.Module
    batch : mapping or tuple
        Named arguments of a model of torch, else arguments.
    changes : dict
        Arguments that a planted fault changes.
    """

    model: Any
    batch: Any
    changes: dict[str, Any] = {}  # noqa: RUF012

    def run(self, **changes: Any) -> Any:
        """Run the model once, without gradients; `changes` stand in the place of arguments of the batch."""
        if not isinstance(self.batch, dict):
            return self.model(*self.batch)
        import torch

        with torch.no_grad():
            return self.model(**{**self.batch, **changes})


_SIZES = {
    "vocab_size": 99, "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 96,
}  # fmt: skip
_HEADS = {**_SIZES, "num_key_value_heads": 2, "max_position_embeddings": 64}

TORCH: dict[str, tuple[str, dict[str, Any], str]] = {
    "ResNet": ("ResNet", {"embedding_size": 16, "hidden_sizes": [32, 48, 64, 96], "depths": [1, 2, 2, 1]}, "image"),
    "ConvNeXt": ("ConvNext", {"hidden_sizes": [16, 32, 48, 64], "depths": [2, 2, 3, 2]}, "image"),
    "BERT": ("Bert", _SIZES, "text"),
    "Llama": ("Llama", _HEADS, "text"),
    "Gemma": ("Gemma", {**_HEADS, "head_dim": 16}, "text"),
    "Qwen3": ("Qwen3", {**_HEADS, "head_dim": 16}, "text"),
    "T5": ("T5", {"vocab_size": 99, "d_model": 64, "d_kv": 16, "d_ff": 96, "num_layers": 3, "num_heads": 4}, "both"),
    "Mamba2": (
        "Mamba2",
        {**{name: _SIZES[name] for name in ("vocab_size", "hidden_size")}, "num_hidden_layers": 3, "num_heads": 8,
         "head_dim": 16, "state_size": 16, "n_groups": 2, "chunk_size": 8},
        "tokens",
    ),
}  # fmt: skip
"""Name → the class of transformers without its `Model`, its configuration, and the kind of its batch."""


@functools.cache
def _make_batches() -> dict[str, dict[str, Any]]:
    import torch

    stream = torch.Generator().manual_seed(1)
    tokens = torch.randint(3, 90, (3, 11), generator=stream)
    mask = torch.ones(3, 11, dtype=torch.long)
    mask[0, 6:], mask[1, 9:] = 0, 0
    text = {"input_ids": tokens, "attention_mask": mask}
    return {
        "image": {"pixel_values": torch.randn(2, 3, 48, 48, generator=stream)},
        "tokens": {"input_ids": tokens},
        "text": text,
        "both": {**text, "decoder_input_ids": tokens[:, :5]},
    }


def make(name: str) -> Zooed:
    """Return a model in evaluation whose weights, gammas, betas and running statistics are drawn."""
    if name in TORCH:
        return _make_torch(*TORCH[name])
    return {"Keras": _make_keras, "Flax": _make_flax}[name]()


def _make_torch(kind: str, sizes: dict[str, Any], batch: str) -> Zooed:
    import torch
    import transformers

    torch.manual_seed(0)
    model = getattr(transformers, f"{kind}Model")(getattr(transformers, f"{kind}Config")(**sizes)).eval()
    for name, values in (*model.named_parameters(), *model.named_buffers()):
        if name.endswith("running_var"):
            values.copy_(0.5 + torch.rand(values.shape))
        elif values.ndim == 1 and values.is_floating_point() and not name.endswith("inv_freq"):
            values.data += 0.2 * torch.randn(values.shape)
    return Zooed(model, _make_batches()[batch], {})


def _make_keras() -> Zooed:
    import keras

    keras.utils.set_random_seed(0)
    layers = keras.layers
    inputs = keras.Input((8, 8, 3))
    x = inputs
    for number in range(3):
        x = layers.Conv2D(8, 3, padding="same", name=f"conv{number}")(x)
        x = layers.BatchNormalization(name=f"batch{number}")(x)
        x = layers.GroupNormalization(2, name=f"group{number}")(layers.Activation("gelu")(x))
    x = layers.Reshape((64, 8))(x)
    for number in range(3):
        x = x + layers.Dense(8)(layers.LayerNormalization(name=f"layer{number}")(x))
        x = x + layers.Dense(8)(layers.RMSNormalization(name=f"rms{number}")(x))
    model, rng = keras.Model(inputs, x), np.random.default_rng(0)
    for weight in model.weights:
        if weight.ndim == 1:
            weight.assign(keras.ops.convert_to_numpy(weight.value) + np.abs(rng.normal(0, 0.2, weight.shape)))
    return Zooed(model, (rng.normal(size=(2, 8, 8, 3)).astype(np.float32),))


def _make_flax() -> Zooed:
    import jax
    from flax import linen

    class Block(linen.Module):
        @linen.compact
        def __call__(self, x: Any) -> Any:
            x = linen.BatchNorm(use_running_average=True)(linen.Conv(8, (3, 3))(x))
            x = x + linen.Dense(8)(linen.LayerNorm()(x))
            return x + linen.Dense(8)(linen.GroupNorm(2)(linen.RMSNorm()(x)))

    class Network(linen.Module):
        @linen.compact
        def __call__(self, x: Any) -> Any:
            for _ in range(2):
                x = Block()(x)
            return x

    model, rng = Network(), np.random.default_rng(0)
    x = rng.normal(size=(2, 8, 8, 3)).astype(np.float32)
    drawn = jax.tree.map(
        lambda leaf: (
            leaf + np.abs(rng.normal(0, 0.2, leaf.shape)).astype(np.float32) if leaf.ndim == 1 else leaf
        ),
        model.init(jax.random.key(0), x),
    )
    return Zooed(_Bound(model, drawn), (x,))


class _Bound:
    """A model of Flax with its variables."""

    def __init__(self, model: Any, variables: Any) -> None:
        self.module, self._variables = model, variables

    def __call__(self, *batch: Any) -> Any:
        """Apply the model."""
        return self.module.apply(self._variables, *batch)


def record_run(zooed: Zooed, path: Any, call: Callable[[], Any] | None = None, **options: Any) -> None:
    """Record a run of a model."""
    from normcli import record

    with record(getattr(zooed.model, "module", zooed.model), path, **options):
        (zooed.run if call is None else call)()


NAMES = (*TORCH, "Keras", "Flax")
