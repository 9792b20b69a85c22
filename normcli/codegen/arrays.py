"""Each framework's spelling of the array operations of a norm. Data, no arithmetic."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


IMPORT_ML_DTYPES = "import ml_dtypes  # with it, NumPy knows bfloat16"

NUMPY_READER = "safetensors.numpy"
"""The module that reads safetensors files as arrays of NumPy."""


class Arrays(NamedTuple):
    """The array operations of one framework, each as a template of code.

    Parameters
    ----------
    name : str
        The framework's name in `--emit`.
    title : str
        The framework's name in sentences.
    imports : tuple of str
        The lines that import the framework.
    reduce : mapping of str to str
        Reduction (`mean`, `sum`, `max`, `min`, `quantile`, `singular value`) → its template, for the array
        `{x}` over the axes `{axes}`, which stay as axes of length 1. `Writer.reduce` fills in, as far as a
        template has them: `{axis_list}`, the reduced axes as a list; `{count}`, their number; `{last}`, the
        numbers of as many axes at the end, such as (-2, -1); `{kept}`, the shape of the result; `{order}`, all
        axes with the reduced ones at the end; `{flat}`, the shape after that with the reduced axes as one;
        `{by_rows}` and `{matrices}`, an order and a shape in which rows and columns are the last two axes;
        `{q}`, the quantile from 0 to 1, which among the sorted values s is
        s[{low}] + {rest} · (s[{high}] − s[{low}]).
    call : mapping of str to str
        The templates of `sqrt`, `abs` and `sign`; `maximum` of an array and a number; `where` of a condition, a
        number and an array; `reshape`, `transpose`, `pad`; `turn`, which swaps the last two axes, for
        frameworks with loops; `slice` and `add` for a framework whose arrays have no `[a:b]`.
    cast : str
        The template of `{x}` in the dtype `{dtype}`.
    constant : str
        The template of the numbers `{x}` as an array of the dtype of the array `x`.
    make : str
        The template of a NumPy array `{x}` as an array of the framework.
    dtype : str
        The template of the framework's dtype, given its name `{dtype}`.
    bfloat16 : str
        The code of bfloat16, if it is from the package ml_dtypes; "" otherwise.
    setup : mapping of str to tuple of str
        dtype → the lines after the imports that arrays of this dtype need.
    helpers : mapping of str to str
        Function that templates call → its definition.
    activations : mapping of str to str
        Name of an `Activation` → the code of the activation of an array `gate`.
    reader : str
        The module whose `load_file` reads safetensors files: for PyTorch, which takes no bfloat16 of
        NumPy, its own.
    """

    name: str
    title: str
    imports: tuple[str, ...]
    reduce: Mapping[str, str]
    call: Mapping[str, str]
    cast: str
    constant: str
    make: str
    dtype: str
    bfloat16: str = ""
    setup: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    helpers: Mapping[str, str] = MappingProxyType({})
    activations: Mapping[str, str] = MappingProxyType({})
    reader: str = NUMPY_READER


def _name_activations(prefix: str, **others: str) -> dict[str, str]:
    names = {name: f"{prefix}.{name}(gate)" for name in ("silu", "sigmoid", "relu", "tanh")}
    names["gelu"], names["gelu-tanh"] = (
        f"{prefix}.gelu(gate, approximate={is_tanh})" for is_tanh in (False, True)
    )
    return {**names, "none": "gate"} | others


def _name_reductions(prefix: str, names: Mapping[str, str], axis: str, keepdims: str) -> dict[str, str]:
    return {kind: f"{prefix}.{name}({{x}}, {axis}={{axes}}, {keepdims}=True)" for kind, name in names.items()}


def _name_calls(prefix: str, **others: str) -> dict[str, str]:
    templates = {
        "sqrt": "sqrt({x})",
        "abs": "abs({x})",
        "sign": "sign({x})",
        "maximum": "maximum({x}, {y})",
        "where": "where({condition}, {y}, {x})",
        "reshape": "reshape({x}, {shape})",
        "transpose": "transpose({x}, {order})",
        "pad": "pad({x}, {widths})",
        "turn": "swapaxes({x}, -1, -2)",
    }
    return {name: f"{prefix}.{template}" for name, template in templates.items()} | others


def _share_with_numpy(prefix: str) -> dict[str, Any]:
    """Return the fields of `Arrays` that NumPy and JAX have alike, given the module's name."""
    reductions = {
        "quantile": _QUANTILE.format(prefix=prefix),
        "singular value": f"{prefix}.linalg.norm({_MATRICES}, 2, axis=(-2, -1)).reshape{{kept}}",
    }
    return {
        "reduce": _name_reductions(prefix, _PLAIN, "axis", "keepdims") | reductions,
        "call": _name_calls(prefix, reshape="{x}.reshape{shape}"),
        "cast": "{x}.astype({dtype})",
        "constant": f"{prefix}.array({{x}}, dtype=x.dtype)",
        "dtype": f"{prefix}.{{dtype}}",
    }


_PLAIN = {"mean": "mean", "sum": "sum", "max": "max", "min": "min"}
_QUANTILE = "{prefix}.quantile({{x}}, {{q}}, axis={{axes}}, keepdims=True)"
_MATRICES = "{x}.transpose{by_rows}.reshape{matrices}"

_NUMPY_ERF = '''def erf(x):
    """Return the error function, which NumPy lacks."""
    import math

    return np.vectorize(math.erf)(x).astype(x.dtype)'''

_NUMPY = Arrays(
    "numpy",
    "NumPy",
    ("import numpy as np",),
    **_share_with_numpy("np"),
    make="{x}",
    bfloat16="ml_dtypes.bfloat16",
    helpers={"erf": _NUMPY_ERF},
    activations=_name_activations(
        "np",
        silu="gate / (1 + np.exp(-gate))",
        sigmoid="1 / (1 + np.exp(-gate))",
        gelu="gate * (1 + erf(gate / 2**0.5)) / 2",
        relu="np.maximum(gate, 0)",
    )
    | {"gelu-tanh": "gate * (1 + np.tanh((2 / np.pi) ** 0.5 * (gate + 0.044715 * gate**3))) / 2"},
)

_TORCH = Arrays(
    "torch",
    "torch",
    ("import torch",),
    _name_reductions("torch", _PLAIN | {"max": "amax", "min": "amin"}, "dim", "keepdim")
    | {
        "quantile": "torch.quantile({x}.movedim({axes}, {last}).flatten(-{count}), {q}, dim=-1)"
        ".reshape({kept})",
        "singular value": "torch.linalg.matrix_norm({x}.permute{by_rows}.reshape{matrices}, 2).reshape{kept}",
    },
    _name_calls(
        "torch",
        maximum="torch.clamp({x}, min={y})",
        reshape="{x}.reshape{shape}",
        transpose="{x}.permute{order}",
        pad="torch.nn.functional.pad({x}, {flat_widths})",
        turn="{x}.mT",
    ),
    cast="{x}.to({dtype})",
    constant="torch.tensor({x}, dtype=x.dtype)",
    make="torch.tensor({x}, dtype={dtype})",
    dtype="torch.{dtype}",
    activations=_name_activations(
        "torch.nn.functional",
        sigmoid="torch.sigmoid(gate)",
        tanh="torch.tanh(gate)",
        gelu="torch.nn.functional.gelu(gate)",
    )
    | {"gelu-tanh": 'torch.nn.functional.gelu(gate, approximate="tanh")'},
    reader="safetensors.torch",
)

_KERAS = Arrays(
    "keras",
    "Keras",
    ("import keras",),
    _name_reductions("keras.ops", _PLAIN, "axis", "keepdims")
    | {
        "quantile": _QUANTILE.format(prefix="keras.ops"),
        "singular value": "keras.ops.reshape(keras.ops.norm(keras.ops.reshape("
        "keras.ops.transpose({x}, {by_rows}), {matrices}), 2, axis=(-2, -1)), {kept})",
    },
    _name_calls("keras.ops"),
    cast="keras.ops.cast({x}, {dtype})",
    constant="keras.ops.convert_to_tensor({x}, dtype=x.dtype)",
    make="keras.ops.convert_to_tensor({x}, dtype={dtype})",
    dtype='"{dtype}"',
    setup={
        "float64": ("# Keras promotes with float32, and takes means of float64 in that: 7 digits are right.",)
    },
    activations=_name_activations("keras.ops"),
)

_FLAX = Arrays(
    "flax",
    "Flax",
    ("import jax", "import jax.numpy as jnp", "from flax import nnx"),
    **_share_with_numpy("jnp"),
    make="jnp.asarray({x}, dtype={dtype})",
    setup={"float64": ('jax.config.update("jax_enable_x64", True)',)},
    activations=_name_activations("jax.nn"),
)

_TENSORFLOW_QUANTILE = '''def take_quantile(x, axes, part):
    """Return a quantile, between the two nearest values, over axes that stay as axes of length 1."""
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    lengths = [x.shape[axis] for axis in kept]
    values = tf.sort(tf.reshape(tf.transpose(x, [*kept, *axes]), [*lengths, -1]))
    place = part * (values.shape[-1] - 1)
    below, above = values[..., int(place)], values[..., int(-(-place // 1))]
    shape = [1 if axis in axes else length for axis, length in enumerate(x.shape)]
    return tf.reshape(below + (above - below) * (place % 1), shape)'''

_TENSORFLOW = Arrays(
    "tensorflow",
    "TensorFlow",
    ("import tensorflow as tf",),
    _name_reductions("tf", {kind: f"reduce_{name}" for kind, name in _PLAIN.items()}, "axis", "keepdims")
    | {
        "quantile": "take_quantile({x}, {axis_list}, {q})",
        "singular value": "tf.reshape(tf.linalg.svd(tf.reshape(tf.transpose({x}, {by_rows}), {matrices}),"
        " compute_uv=False)[..., 0], {kept})",
    },
    _name_calls("tf", turn="tf.linalg.matrix_transpose({x})"),
    cast="tf.cast({x}, {dtype})",
    constant="tf.constant({x}, dtype=x.dtype)",
    make="tf.constant({x}, dtype={dtype})",
    dtype="tf.{dtype}",
    helpers={"take_quantile": _TENSORFLOW_QUANTILE},
    activations=_name_activations("tf.nn"),
)

_SORTED = "TopK(Reshape(Transpose({x}, perm={order}), {flat}), [{size}], axis=-1, largest=0)"

ONNX = Arrays(
    "onnx",
    "ONNX",
    (),
    {kind: f"Reduce{name.capitalize()}({{x}}, {{axis_list}})" for kind, name in _PLAIN.items()}
    | {
        "quantile": f"Reshape(Gather({_SORTED}, [{{low}}], axis=-1) * (1.0 - {{rest}})"
        f" + Gather({_SORTED}, [{{high}}], axis=-1) * {{rest}}, {{kept}})"
    },
    {
        "sqrt": "Sqrt({x})",
        "abs": "Abs({x})",
        "sign": "Sign({x})",
        "maximum": "Max({x}, {y})",
        "where": "Where({condition}, {y}, {x})",
        "reshape": "Reshape({x}, {shape})",
        "transpose": "Transpose({x}, perm={order})",
        "pad": "Pad({x}, {pads})",
        "slice": "Slice({x}, [{start}], [{stop}], [{axis}])",
        "add": "Sum({terms})",
    },
    cast="Cast({x}, to={dtype})",
    constant="{x}",
    make="{x}",
    dtype="{dtype}",
    activations={
        "silu": "gate * Sigmoid(gate)",
        "sigmoid": "Sigmoid(gate)",
        "gelu": "Gelu(gate)",
        "gelu-tanh": 'Gelu(gate, approximate="tanh")',
        "relu": "Relu(gate)",
        "tanh": "Tanh(gate)",
        "none": "gate",
    },
)
"""The operators of ONNX, written like functions of Python: attributes by name, tensors by position."""

FRAMEWORKS: Mapping[str, Arrays] = MappingProxyType(
    {row.name: row for row in (_NUMPY, _TORCH, _KERAS, _FLAX, _TENSORFLOW)}
)
"""Name of a framework → its arrays; ONNX is not among them."""
