"""Each framework's spelling of the array operations of a norm. Data, no arithmetic."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from normcli.dtypes import is_bfloat16
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np


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
    templates : mapping of str to str
        Operation → its template; an operation without one is not known to the framework.

        * Reductions of the array `{x}` over the axes `{axes}`, which stay as axes of length 1: `mean`, `sum`,
          `max`, `min`, `quantile`, `singular value`. `Writer.reduce` fills in, as far as a template has them:
          `{axis_list}`, the reduced axes as a list; `{count}`, their number; `{last}`, the numbers of as many
          axes at the end, such as (-2, -1); `{kept}`, the shape of the result; `{order}`, all axes with the
          reduced ones at the end; `{flat}`, the shape after that with the reduced axes as one; `{by_rows}` and
          `{matrices}`, an order and a shape in which rows and columns are the last two axes; `{q}`, the
          quantile from 0 to 1, which among the sorted values s is s[{low}] + {rest} · (s[{high}] − s[{low}]).
        * `sqrt`, `abs` and `sign`; `maximum` of an array and a number; `where` of a condition, a number and an
          array; `reshape`, `transpose`, `pad`; `turn`, which swaps the last two axes, for frameworks with
          loops; `slice` and `add` for a framework whose arrays have no `[a:b]`.
        * `cast`, `{x}` in the dtype `{dtype}`; `constant`, the numbers `{x}` as an array of the dtype of the
          array `x`; `make`, a NumPy array `{x}` as an array of the framework; `dtype`, the framework's dtype,
          given its name `{dtype}`.
        * The name of an `Activation`: that of an array `gate`.
    bfloat16 : str
        The code of bfloat16, if it is from the package ml_dtypes; "" otherwise.
    setup : mapping of str to tuple of str
        dtype → the lines after the imports that arrays of this dtype need.
    helpers : mapping of str to str
        Function that templates call → its definition.
    reader : str
        The module whose `load_file` reads safetensors files: for PyTorch, which takes no bfloat16 of
        NumPy, its own.
    """

    name: str
    title: str
    imports: tuple[str, ...]
    templates: Mapping[str, str]
    bfloat16: str = ""
    setup: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    helpers: Mapping[str, str] = MappingProxyType({})
    reader: str = NUMPY_READER

    @property
    def takes_numpy(self) -> bool:
        """Whether an array of NumPy is one of the framework as it is."""
        return self.templates["make"] == "{x}"

    def write(self, operation: str, **parts: object) -> str:
        """Return the code of an operation."""
        return self.templates[operation].format(**parts)

    def name_dtype(self, dtype: np.dtype[np.generic]) -> str:
        """Return the code of a dtype."""
        is_other = self.bfloat16 and is_bfloat16(dtype)
        return self.bfloat16 if is_other else self.write("dtype", dtype=dtype.name)


def _reduce(template: str, **names: str) -> dict[str, str]:
    """Return the templates of reductions; `{name}` stands for a reduction's name, or that in `names`."""
    return {kind: template.replace("{name}", names.get(kind, kind)) for kind in ("mean", "sum", "max", "min")}


_COMMON = {
    **_reduce("{np}.{name}({x}, axis={axes}, keepdims=True)"),
    "quantile": "{np}.quantile({x}, {q}, axis={axes}, keepdims=True)",
    "singular value": "{np}.linalg.norm({x}.transpose{by_rows}.reshape{matrices}, 2, axis=(-2, -1))"
    ".reshape{kept}",
    "sqrt": "{np}.sqrt({x})",
    "abs": "{np}.abs({x})",
    "sign": "{np}.sign({x})",
    "maximum": "{np}.maximum({x}, {y})",
    "where": "{np}.where({condition}, {y}, {x})",
    "reshape": "{np}.reshape({x}, {shape})",
    "transpose": "{np}.transpose({x}, {order})",
    "pad": "{np}.pad({x}, {widths})",
    "turn": "{np}.swapaxes({x}, -1, -2)",
    "constant": "{np}.array({x}, dtype=x.dtype)",
    "cast": "{x}.astype({dtype})",
    "dtype": "{np}.{dtype}",
    "silu": "{nn}.silu(gate)",
    "sigmoid": "{nn}.sigmoid(gate)",
    "relu": "{nn}.relu(gate)",
    "tanh": "{nn}.tanh(gate)",
    "gelu": "{nn}.gelu(gate, approximate=False)",
    "gelu-tanh": "{nn}.gelu(gate, approximate=True)",
    "none": "gate",
}
"""Operation → its usual template, with functions of the module `{np}` and activations of the module `{nn}`."""


def _adopt(arrays: str, activations: str, others: Mapping[str, str]) -> dict[str, str]:
    """Return the common templates for the modules of a framework, and other ones in their place."""
    common = {
        name: template.replace("{np}", arrays).replace("{nn}", activations)
        for name, template in _COMMON.items()
    }
    return common | dict(others)


_NUMPY_ERF = '''def erf(x):
    """Return the error function, which NumPy lacks."""
    import math

    return np.vectorize(math.erf)(x).astype(x.dtype)'''

_NUMPY = Arrays(
    "numpy",
    "NumPy",
    ("import numpy as np",),
    _adopt("np", "np", {
        "reshape": "{x}.reshape{shape}",
        "make": "{x}",
        "silu": "gate / (1 + np.exp(-gate))",
        "sigmoid": "1 / (1 + np.exp(-gate))",
        "gelu": "gate * (1 + erf(gate / 2**0.5)) / 2",
        "gelu-tanh": "gate * (1 + np.tanh((2 / np.pi) ** 0.5 * (gate + 0.044715 * gate**3))) / 2",
        "relu": "np.maximum(gate, 0)",
    }),
    bfloat16="ml_dtypes.bfloat16",
    helpers={"erf": _NUMPY_ERF},
)  # fmt: skip

_TORCH = Arrays(
    "torch",
    "torch",
    ("import torch",),
    _adopt("torch", "torch.nn.functional", {
        **_reduce("torch.{name}({x}, dim={axes}, keepdim=True)", max="amax", min="amin"),
        "quantile": "torch.quantile({x}.movedim({axes}, {last}).flatten(-{count}), {q}, dim=-1)"
        ".reshape({kept})",
        "singular value": "torch.linalg.matrix_norm({x}.permute{by_rows}.reshape{matrices}, 2).reshape{kept}",
        "maximum": "torch.clamp({x}, min={y})",
        "reshape": "{x}.reshape{shape}",
        "transpose": "{x}.permute{order}",
        "pad": "torch.nn.functional.pad({x}, {flat_widths})",
        "turn": "{x}.mT",
        "constant": "torch.tensor({x}, dtype=x.dtype)",
        "cast": "{x}.to({dtype})",
        "make": "torch.tensor({x}, dtype={dtype})",
        "sigmoid": "torch.sigmoid(gate)",
        "tanh": "torch.tanh(gate)",
        "gelu": "torch.nn.functional.gelu(gate)",
        "gelu-tanh": 'torch.nn.functional.gelu(gate, approximate="tanh")',
    }),
    reader="safetensors.torch",
)  # fmt: skip

_KERAS = Arrays(
    "keras",
    "Keras",
    ("import keras",),
    _adopt("keras.ops", "keras.ops", {
        "singular value": "keras.ops.reshape(keras.ops.norm(keras.ops.reshape("
        "keras.ops.transpose({x}, {by_rows}), {matrices}), 2, axis=(-2, -1)), {kept})",
        "constant": "keras.ops.convert_to_tensor({x}, dtype=x.dtype)",
        "cast": "keras.ops.cast({x}, {dtype})",
        "make": "keras.ops.convert_to_tensor({x}, dtype={dtype})",
        "dtype": '"{dtype}"',
    }),
    setup={
        "float64": ("# Keras promotes with float32, and takes means of float64 in that: 7 digits are right.",)
    },
)  # fmt: skip

_FLAX = Arrays(
    "flax",
    "Flax",
    ("import jax", "import jax.numpy as jnp", "from flax import nnx"),
    _adopt(
        "jnp",
        "jax.nn",
        {"reshape": "{x}.reshape{shape}", "make": "jnp.asarray({x}, dtype={dtype})"},
    ),
    setup={"float64": ('jax.config.update("jax_enable_x64", True)',)},
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
    _adopt("tf", "tf.nn", {
        **_reduce("tf.reduce_{name}({x}, axis={axes}, keepdims=True)"),
        "quantile": "take_quantile({x}, {axis_list}, {q})",
        "singular value": "tf.reshape(tf.linalg.svd(tf.reshape(tf.transpose({x}, {by_rows}), {matrices}),"
        " compute_uv=False)[..., 0], {kept})",
        "turn": "tf.linalg.matrix_transpose({x})",
        "constant": "tf.constant({x}, dtype=x.dtype)",
        "cast": "tf.cast({x}, {dtype})",
        "make": "tf.constant({x}, dtype={dtype})",
    }),
    helpers={"take_quantile": _TENSORFLOW_QUANTILE},
)  # fmt: skip

_SORTED = "TopK(Reshape(Transpose({x}, perm={order}), {flat}), [{size}], axis=-1, largest=0)"

ONNX = Arrays(
    "onnx",
    "ONNX",
    (),
    {
        **_reduce("Reduce{name}({x}, {axis_list})", mean="Mean", sum="Sum", max="Max", min="Min"),
        "quantile": f"Reshape(Gather({_SORTED}, [{{low}}], axis=-1) * (1.0 - {{rest}})"
        f" + Gather({_SORTED}, [{{high}}], axis=-1) * {{rest}}, {{kept}})",
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
        "constant": "{x}",
        "cast": "Cast({x}, to={dtype})",
        "make": "{x}",
        "dtype": "{dtype}",
        "silu": "gate * Sigmoid(gate)",
        "sigmoid": "Sigmoid(gate)",
        "relu": "Relu(gate)",
        "tanh": "Tanh(gate)",
        "gelu": "Gelu(gate)",
        "gelu-tanh": 'Gelu(gate, approximate="tanh")',
        "none": "gate",
    },
)
"""The operators of ONNX, written like functions of Python: attributes by name, tensors by position."""

FRAMEWORKS: Mapping[str, Arrays] = MappingProxyType(
    {row.name: row for row in (_NUMPY, _TORCH, _KERAS, _FLAX, _TENSORFLOW)}
)
"""Name of a framework → its arrays; ONNX is not among them."""
