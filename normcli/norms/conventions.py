"""The table of conventions: what each framework does where a norm leaves a choice. Data alone.

Every row was read in the source that it names, and most were run beside a formula in float64. To follow another
framework, add a row.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, NamedTuple

from normcli.errors import UsageError
from normcli.norms.table import AxesRule, EpsMode, EpsRule, ExtraNeighbour, GroupOrder, ParameterRule, ZeroRule


class Running(NamedTuple):
    """How statistics are kept from batch to batch.

    Parameters
    ----------
    momentum : float
    weight_of : {"new", "old"}
        What the momentum is the weight of: the new batch's statistics, or those kept so far.
    ddof : int
        Of the variance that is kept, whatever that of the output.
    """

    momentum: float
    weight_of: Literal["new", "old"]
    ddof: int

    def __str__(self) -> str:
        return f"{self.momentum:g} of the {self.weight_of}, ddof {self.ddof}"


class Convention(NamedTuple):
    """What one framework does where a norm leaves a choice; None means the norm's own.

    Parameters
    ----------
    framework, norm : str
        The names that `--like` and the command line use.
    version, source : str
        What was read, and where in it.
    eps : float, EpsRule or None
    eps_mode : EpsMode or None
    ddof : int or None
        Of the variance in the output.
    axes : AxesRule or None
        The axes reduced by default.
    channel : {"first", "last"} or None
        Where the channel axis is, from which the default layout follows.
    parameters : ParameterRule or None
        The shape of gamma and beta; `NONE` where the framework's norm has none.
    group_order : GroupOrder or None
    gamma_offset : int
        Added to gamma before it multiplies.
    rounds_before_gamma : bool
        Whether x̂ is rounded to the output's dtype before gamma multiplies it.
    zero_rule : ZeroRule or None
        What becomes of a group whose divisor is 0.
    size, alpha, exponent, k : optional
        The defaults of a window.
    extra_neighbour : ExtraNeighbour or None
        The side of the longer half of an even window.
    divides_alpha : bool
        Whether α is divided by the size of the window.
    running : Running or None
    precision : str
        What half precision is calculated in.
    note : str
        What else differs: defaults of options that normcli does not have, limits, defects.
    """

    framework: str
    version: str
    norm: str
    source: str
    eps: float | EpsRule | None = None
    eps_mode: EpsMode | None = None
    ddof: int | None = None
    axes: AxesRule | None = None
    channel: Literal["first", "last"] | None = None
    parameters: ParameterRule | None = None
    group_order: GroupOrder | None = None
    gamma_offset: int = 0
    rounds_before_gamma: bool = False
    zero_rule: ZeroRule | None = None
    size: int | None = None
    alpha: float | None = None
    exponent: float | None = None
    k: float | None = None
    extra_neighbour: ExtraNeighbour | None = None
    divides_alpha: bool = True
    running: Running | None = None
    precision: str = "that of the input"
    note: str = ""

    @property
    def channel_last(self) -> bool | None:
        """Whether default layouts end in the channel."""
        return None if self.channel is None else self.channel == "last"


_ONCE = "float32, rounded once"
_BEFORE_GAMMA = "float32, rounded before gamma"
_UNSPECIFIED = "unspecified"

_FAST_VARIANCE = "The variance is E[x²] − E[x]² by default (use_fast_variance), wrong far from zero."

_torch = partial(Convention, "torch", "torch 2.13.0")
_keras = partial(Convention, "keras", "keras 3.15.1", channel="last", precision=_ONCE)
_linen = partial(Convention, "flax-linen", "flax 0.12.8", channel="last", precision=_ONCE)
_nnx = partial(Convention, "flax-nnx", "flax 0.12.8", channel="last", precision=_ONCE)
_equinox = partial(Convention, "equinox", "equinox 0.13.8", precision=_ONCE)
_mlx = partial(Convention, "mlx", "mlx 0.32.4", channel="last")
_openvino = partial(Convention, "openvino", "openvino 2026.4.1")
_tensorflow = partial(Convention, "tensorflow", "tensorflow 2.21.0", channel="last")
_caffe = partial(Convention, "caffe", "BVLC/caffe@9b891540", channel="first", parameters=ParameterRule.NONE)
_sklearn = partial(Convention, "sklearn", "scikit-learn 1.9.1")
_timm = partial(Convention, "timm", "timm 1.0.31")


def _onnx(opset: int, norm: str, *, framework: str = "onnx", **choices: Any) -> Convention:
    version = f"onnx 1.23.2, opset {opset}"
    return Convention(framework, version, norm, **choices)


_BATCH = (
    _torch(
        "bn", eps=1e-5, eps_mode=EpsMode.INSIDE, ddof=0, channel="first", running=Running(0.1, "new", 1),
        precision="float32 sums; a result may be off by one rounding",
        note="momentum=None averages over all batches alike. Training refuses one value a channel.",
        source="torch/nn/modules/batchnorm.py:174; torch/nn/functional.py:2859",
    ),
    _keras(
        "bn", eps=1e-3, eps_mode=EpsMode.INSIDE, ddof=0, running=Running(0.99, "old", 0),
        note="`axis` is the axis kept, of LayerNormalization the one reduced. Far from zero the torch and NumPy"
        " backends give nan: E[x²] − E[x]² unclipped. Keras 2 kept an unbiased moving variance of 4-D input.",
        source="keras/src/layers/normalization/batch_normalization.py",
    ),
    _linen(
        "bn", eps=1e-5, eps_mode=EpsMode.INSIDE, ddof=0, running=Running(0.99, "old", 0), note=_FAST_VARIANCE,
        source="flax/linen/normalization.py:247, :60, :154",
    ),
    _nnx(
        "bn", eps=1e-5, eps_mode=EpsMode.INSIDE, ddof=0, running=Running(0.99, "old", 0), note=_FAST_VARIANCE,
        source="flax/nnx/nn/normalization.py:201, :50",
    ),
    _equinox(
        "bn", eps=1e-5, eps_mode=EpsMode.INSIDE, ddof=0, channel="first", running=Running(0.99, "old", 0),
        precision="that of the input; the result is float32",
        note="Of mode=\"batch\". The default mode, \"ema\", normalizes with the running values in training too."
        " The docstring says that inference has the unbiased variance, the code has the biased one; and the"
        " variance kept starts at 1, which inference does not take out again (about var + 99 after one batch).",
        source="equinox/nn/_batch_norm.py:17, :210",
    ),
    _mlx(
        "bn", eps=1e-5, eps_mode=EpsMode.INSIDE, ddof=0, running=Running(0.1, "new", 1),
        note="Up to 4 axes. The running variance was biased before July 2026 (ml-explore/mlx#3817).",
        source="mlx/nn/layers/normalization.py:279",
    ),
    _onnx(
        15, "bn", eps=1e-5, eps_mode=EpsMode.INSIDE, ddof=0, channel="first", running=Running(0.9, "old", 0),
        precision="float32 statistics",
        note="Of training_mode=1, which is not the default. torch keeps the unbiased variance, ONNX the biased"
        " one: no exporter can carry that over. Before opset 14 the number of outputs chose training.",
        source="BatchNormalization-15, function body",
    ),
    _tensorflow(
        "bn", eps=1e-3, eps_mode=EpsMode.INSIDE, ddof=0, running=Running(1.0, "new", 1), precision=_ONCE,
        note="fused_batch_norm, for 4 and 5 axes: the variance it returns is unbiased, the one it divides by is"
        " not. The raw operator's eps is 1e-4.",
        source="tensorflow/python/ops/nn_impl.py:1502",
    ),
    Convention(
        "tensorflow-moments", "tensorflow 2.21.0", "bn", channel="last", axes=AxesRule.GIVEN, eps=EpsRule.GIVEN,
        eps_mode=EpsMode.INSIDE, ddof=0, precision="the variance of float16 overflows at 65,520",
        note="tf.nn.moments, whose axes must be given, and tf.nn.batch_normalization, whose eps must be.",
        source="tensorflow/python/ops/nn_impl.py:1226, :1431",
    ),
    _caffe(
        "bn", eps=1e-5, eps_mode=EpsMode.INSIDE, ddof=0, running=Running(0.999, "old", 1),
        note="What is kept are sums, and the sum of their weights in a third blob. Gamma and beta are of a"
        " layer of their own, Scale.",
        source="src/caffe/layers/batch_norm_layer.cpp, Forward_cpu; caffe.proto:526",
    ),
)  # fmt: skip

_LAYER = (
    _torch(
        "ln", eps=1e-5, eps_mode=EpsMode.INSIDE, ddof=0, precision=_ONCE,
        note="normalized_shape names trailing axes; no others can be reduced.",
        source="torch/nn/modules/normalization.py:105; aten/src/ATen/native/layer_norm.cpp",
    ),
    _keras(
        "ln", eps=1e-3, eps_mode=EpsMode.INSIDE, ddof=0,
        note="`axis` is the axis reduced, of BatchNormalization the one kept. keras.ops.layer_normalization has"
        " eps 1e-7. The torch backend cannot reduce axes that are not the last ones.",
        source="keras/src/layers/normalization/layer_normalization.py; keras/src/ops/nn.py:3137",
    ),
    _linen(
        "ln", eps=1e-6, eps_mode=EpsMode.INSIDE, ddof=0, parameters=ParameterRule.LAST,
        note=f"Gamma stays on the last axis whatever reduction_axes says. {_FAST_VARIANCE}",
        source="flax/linen/normalization.py:424, :60, :154",
    ),
    _nnx(
        "ln", eps=1e-6, eps_mode=EpsMode.INSIDE, ddof=0, parameters=ParameterRule.LAST, note=_FAST_VARIANCE,
        source="flax/nnx/nn/normalization.py:437, :50",
    ),
    Convention(
        "jax", "jax 0.10.2", "ln", eps=1e-5, eps_mode=EpsMode.INSIDE, ddof=0, parameters=ParameterRule.NONE,
        note="jax.nn.standardize. Its default algorithm, \"fast\", is E[x²] − E[x]², wrong far from zero.",
        source="jax/_src/nn/functions.py:649",
    ),
    _equinox(
        "ln", eps=1e-5, eps_mode=EpsMode.INSIDE, ddof=0, axes=AxesRule.ALL_BUT_BATCH,
        note="The whole of one sample, as LayerNorm(x.shape[1:]) under vmap.",
        source="equinox/nn/_normalisation.py:17",
    ),
    _mlx(
        "ln", eps=1e-5, eps_mode=EpsMode.INSIDE, ddof=0, rounds_before_gamma=True, precision=_BEFORE_GAMMA,
        source="mlx/nn/layers/normalization.py:86; mlx/fast.cpp, layer_norm",
    ),
    _onnx(
        17, "ln", eps=1e-5, eps_mode=EpsMode.INSIDE, ddof=0, rounds_before_gamma=True, precision=_BEFORE_GAMMA,
        note="`axis` is the first of the axes reduced. ONNX Runtime rounds once; the reference evaluator stays"
        " in the input's dtype.",
        source="LayerNormalization-17, function body (stash_type 1)",
    ),
    Convention(
        "bert", "google-research/bert@eedf5716, transformers 5.23.0", "ln", eps=1e-12, eps_mode=EpsMode.INSIDE,
        ddof=0, note="Beside any ordinary variance in float32, 1e-12 is nothing.",
        source="modeling.py:362 over tf.contrib.layers.layer_norm; configuration_bert.py:55",
    ),
    Convention(
        "annotated-transformer", "harvardnlp/annotated-transformer@debc9fd7", "ln", eps=1e-6,
        eps_mode=EpsMode.OUTSIDE, ddof=1, note="torch.std is unbiased: a last axis of one value gives nan.",
        source="the_annotated_transformer.py:315",
    ),
    _timm(
        "ln", eps=1e-6, eps_mode=EpsMode.INSIDE, ddof=0, axes=AxesRule.CHANNEL, channel="first",
        parameters=ParameterRule.CHANNEL, precision=_ONCE,
        note="LayerNorm2d, as ConvNeXt has it: over the channels of each position, not over the sample.",
        source="timm/layers/norm.py:113; facebookresearch/ConvNeXt models/convnext.py:119@048efcea",
    ),
)  # fmt: skip

_INSTANCE = (
    _torch(
        "in", eps=1e-5, eps_mode=EpsMode.INSIDE, ddof=0, channel="first", running=Running(0.1, "new", 1),
        precision="float32 sums; a result may be off by one rounding",
        note="No gamma, no beta and nothing kept by default. What is kept is the average of the samples'"
        " unbiased variances. One position a channel is refused.",
        source="torch/nn/modules/instancenorm.py:21; torch/nn/functional.py:2922",
    ),
    _keras(
        "in", eps=1e-3, eps_mode=EpsMode.INSIDE, ddof=0, note="GroupNormalization(groups=-1).",
        source="keras/src/layers/normalization/group_normalization.py",
    ),
    _linen(
        "in", eps=1e-6, eps_mode=EpsMode.INSIDE, ddof=0, note=_FAST_VARIANCE,
        source="flax/linen/normalization.py:822, :60, :154",
    ),
    _nnx(
        "in", eps=1e-6, eps_mode=EpsMode.INSIDE, ddof=0, note=_FAST_VARIANCE,
        source="flax/nnx/nn/normalization.py:1080, :50",
    ),
    _mlx(
        "in", eps=1e-5, eps_mode=EpsMode.INSIDE, ddof=0, rounds_before_gamma=True, precision=_BEFORE_GAMMA,
        note="No gamma and no beta by default.",
        source="mlx/nn/layers/normalization.py:9",
    ),
    _onnx(
        22, "in", eps=1e-5, eps_mode=EpsMode.INSIDE, ddof=0, channel="first", precision=_UNSPECIFIED,
        note="The same since opset 1.",
        source="InstanceNormalization-22",
    ),
)  # fmt: skip

_GROUP = (
    _torch(
        "gn", eps=1e-5, eps_mode=EpsMode.INSIDE, ddof=0, channel="first", precision=_ONCE,
        note="Refused where one value would be all there is.",
        source="torch/nn/modules/normalization.py:239; torch/nn/functional.py:3009",
    ),
    _keras(
        "gn", eps=1e-3, eps_mode=EpsMode.INSIDE, ddof=0,
        note="32 groups by default. Far from zero the torch backend gives nan: E[x²] − E[x]² unclipped.",
        source="keras/src/layers/normalization/group_normalization.py",
    ),
    _linen(
        "gn", eps=1e-6, eps_mode=EpsMode.INSIDE, ddof=0, note=f"32 groups by default. {_FAST_VARIANCE}",
        source="flax/linen/normalization.py:642, :60, :154",
    ),
    _nnx(
        "gn", eps=1e-6, eps_mode=EpsMode.INSIDE, ddof=0,
        note=f"32 groups by default. With other reduction_axes the result is wrong: the statistics are repeated"
        f" along axis 1 instead of the last. {_FAST_VARIANCE}",
        source="flax/nnx/nn/normalization.py:722, :50",
    ),
    _equinox(
        "gn", eps=1e-5, eps_mode=EpsMode.INSIDE, ddof=0, channel="first",
        note="The docstring has gamma of the shape (channels/groups,), the code (channels,).",
        source="equinox/nn/_normalisation.py:164",
    ),
    _mlx(
        "gn", eps=1e-5, eps_mode=EpsMode.INSIDE, ddof=0, group_order=GroupOrder.INTERLEAVED,
        note="Group g holds the channels g, g + G, g + 2G and so on; pytorch_compatible=True makes them"
        " neighbours, and float32 the arithmetic.",
        source="mlx/nn/layers/normalization.py:169",
    ),
    _onnx(
        21, "gn", eps=1e-5, eps_mode=EpsMode.INSIDE, ddof=0, channel="first", rounds_before_gamma=True,
        precision=_BEFORE_GAMMA,
        source="GroupNormalization-21, function body (stash_type 1)",
    ),
    _onnx(
        18, "gn", framework="onnx-18", eps=1e-5, eps_mode=EpsMode.INSIDE, ddof=0, channel="first",
        parameters=ParameterRule.GROUP, precision=_UNSPECIFIED,
        note="Deprecated: a gamma and beta for each group, so that torch's do not fit (onnx/onnx#5466).",
        source="GroupNormalization-18, function body",
    ),
    _openvino(
        "gn", eps=EpsRule.GIVEN, eps_mode=EpsMode.INSIDE, ddof=0, channel="first", precision=_UNSPECIFIED,
        note="Since opset 12.",
        source="openvino/opset12/ops.py:94",
    ),
)  # fmt: skip

_ROOT_MEAN_SQUARE = (
    _torch(
        "rms", eps=EpsRule.MACHINE, eps_mode=EpsMode.INSIDE, precision=_ONCE,
        note="eps=None is the machine epsilon of the dtype that is calculated in: 2⁻²³ for half precision too."
        " No bias.",
        source="torch/nn/modules/normalization.py:343; torch/_decomp/decompositions.py:1947",
    ),
    _keras(
        "rms", eps=1e-6, eps_mode=EpsMode.INSIDE,
        note="keras.ops.rms_normalization has eps 1e-7. Several axes fail. No bias.",
        source="keras/src/layers/normalization/rms_normalization.py; keras/src/ops/nn.py:3021",
    ),
    _linen(
        "rms", eps=1e-6, eps_mode=EpsMode.INSIDE, parameters=ParameterRule.LAST, note="No bias.",
        source="flax/linen/normalization.py:541",
    ),
    _nnx(
        "rms", eps=1e-6, eps_mode=EpsMode.INSIDE, parameters=ParameterRule.LAST, note="No bias.",
        source="flax/nnx/nn/normalization.py:588",
    ),
    _equinox(
        "rms", eps=1e-5, eps_mode=EpsMode.INSIDE, axes=AxesRule.ALL_BUT_BATCH,
        note="The whole of one sample, as RMSNorm(x.shape[1:]) under vmap. It has a bias by default.",
        source="equinox/nn/_normalisation.py:286",
    ),
    _mlx(
        "rms", eps=1e-5, eps_mode=EpsMode.INSIDE, rounds_before_gamma=True, precision=_BEFORE_GAMMA,
        note="No bias.",
        source="mlx/nn/layers/normalization.py:133; mlx/fast.cpp, rms_norm",
    ),
    _onnx(
        23, "rms", eps=1e-5, eps_mode=EpsMode.INSIDE, rounds_before_gamma=True, precision=_BEFORE_GAMMA,
        note="ONNX Runtime rounds once; the reference evaluator squares in the input's dtype, and float16"
        " overflows. No bias.",
        source="RMSNormalization-23, function body (stash_type 1)",
    ),
    Convention(
        "llama", "transformers 5.23.0, meta-llama/llama@689c7f26", "rms", eps=1e-6, eps_mode=EpsMode.INSIDE,
        rounds_before_gamma=True, precision=_BEFORE_GAMMA,
        note="Meta's Llama 2 has eps 1e-5; a checkpoint's config says which.",
        source="modeling_llama.py, LlamaRMSNorm; llama/model.py, RMSNorm",
    ),
    Convention(
        "gemma", "transformers 5.23.0, google/gemma_pytorch@014acb7a", "rms", eps=1e-6, eps_mode=EpsMode.INSIDE,
        gamma_offset=1, precision=_ONCE, note="The weights are stored as gamma − 1. Gemma 2 alike.",
        source="modeling_gemma.py, GemmaRMSNorm; gemma/model.py:166",
    ),
    Convention(
        "t5", "transformers 5.23.0, tensorflow/mesh@da907937", "rms", eps=1e-6, eps_mode=EpsMode.INSIDE,
        rounds_before_gamma=True, precision=_BEFORE_GAMMA,
        note="Called layer norm there, without a mean and a bias. With float32 weights the result is float32.",
        source="modeling_t5.py, T5LayerNorm; mesh_tensorflow/transformer/transformer.py:493",
    ),
)  # fmt: skip

_LENGTH = (
    _torch(
        "lp", eps=1e-12, eps_mode=EpsMode.FLOOR, axes=AxesRule.SECOND,
        precision="that of the input: of float16, 1e-12 is 0 and a zero vector nan",
        note="dim=1, whatever the rank.",
        source="torch/nn/functional.py:6070",
    ),
    _keras(
        "lp", eps=1e-12, eps_mode=EpsMode.FLOOR, precision="that of the input",
        note="UnitNormalization. Keras 2 had max(Σx², 1e-12) under the root; keras.ops.normalize has eps 1e-7.",
        source="keras/src/layers/normalization/unit_normalization.py; keras/src/ops/nn.py:2712",
    ),
    _onnx(
        22, "lp", eps=0.0, eps_mode=EpsMode.FLOOR, precision=_UNSPECIFIED,
        note="p is 1 or 2. With p=1 the reference evaluator of 1.23.2 sums without absolute values"
        " (onnx/onnx#8427).",
        source="LpNormalization-22",
    ),
    _openvino(
        "lp", eps=EpsRule.GIVEN, eps_mode=EpsMode.SQUARE_FLOOR, axes=AxesRule.GIVEN, precision=_UNSPECIFIED,
        note="NormalizeL2 with eps_mode \"max\". opset1.normalize_l2 of the Python API drops that word, and"
        " adds eps under the root instead.",
        source="normalize-l2-1.rst@60f2208b; openvino/opset1/ops.py:1744",
    ),
    _tensorflow(
        "lp", eps=1e-12, eps_mode=EpsMode.SQUARE_FLOOR, channel=None, axes=AxesRule.GIVEN,
        precision="that of the input: of float16, 1e-12 is 0 and a zero vector nan",
        note="tf.nn.l2_normalize, whose axis must be given. eps is under the root: the length's floor is 1e-6.",
        source="tensorflow/python/ops/nn_impl.py:545",
    ),
    _sklearn(
        "lp", eps=0.0, eps_mode=EpsMode.FLOOR,
        note="Rows of a matrix. A length below 10 machine epsilons counts as 1: the row is left as it is.",
        source="sklearn/preprocessing/_data.py, normalize and _handle_zeros_in_scale",
    ),
)  # fmt: skip

_WEIGHT = (
    _torch(
        "wn", zero_rule=ZeroRule.NAN,
        note="g starts as ‖v‖. The first axis of a transposed convolution's weight is its input.",
        source="torch/nn/utils/parametrizations.py:316",
    ),
    _linen(
        "wn", eps=1e-12, eps_mode=EpsMode.INSIDE, axes=AxesRule.ALL_BUT_LAST, parameters=ParameterRule.LAST,
        precision="that of the input",
        note="g starts as 1, so that wrapping a layer changes it.",
        source="flax/linen/normalization.py:1184, :229",
    ),
    _nnx(
        "wn", eps=1e-12, eps_mode=EpsMode.INSIDE, axes=AxesRule.ALL_BUT_LAST, parameters=ParameterRule.LAST,
        precision="that of the input",
        note="Each call overwrites the layer's kernel with the normalized one.",
        source="flax/nnx/nn/normalization.py:937",
    ),
    _equinox(
        "wn", zero_rule=ZeroRule.NAN, precision="that of the input",
        note="g starts as ‖v‖; the docstring says the sum of squares.",
        source="equinox/nn/_weight_norm.py",
    ),
    _timm(
        "ws", eps=1e-6, eps_mode=EpsMode.INSIDE, ddof=0, parameters=ParameterRule.NONE,
        precision="float32 sums; a result may be off by one rounding",
        note="StdConv2d. ScaledStdConv2d multiplies by a gain and by gamma/√(fan-in) besides.",
        source="timm/layers/std_conv.py:29",
    ),
    Convention(
        "paper-ws", "joe-siyuan-qiao/WeightStandardization@d81e50d0", "ws", eps=1e-5, eps_mode=EpsMode.OUTSIDE,
        ddof=1, parameters=ParameterRule.NONE,
        note="The authors' PyTorch code; their TensorFlow code has the biased deviation (ddof 0).",
        source="README.md:63, :72",
    ),
)  # fmt: skip

_STANDARDIZED = (
    _onnx(
        13, "mvn", eps=1e-9, eps_mode=EpsMode.OUTSIDE, ddof=0, channel="first",
        note="axes=[0, 2, 3] whatever the rank. The operator's text has no eps, its function body 1e-9, and"
        " ONNX Runtime none. The body's variance is E[x²] − E[x]², unclipped: nan far from zero.",
        source="MeanVarianceNormalization-13, function body",
    ),
    _openvino(
        "mvn", eps=EpsRule.GIVEN, eps_mode=EpsMode.INSIDE, ddof=0, axes=AxesRule.GIVEN, precision=_ONCE,
        note="eps_mode must be given too; this is inside_sqrt. The documentation's variance is a plain sum, the"
        " code's a mean.",
        source="mvn-6.rst@473faca3; core/reference/include/openvino/reference/mvn.hpp@0bfff824",
    ),
    Convention(
        "openvino-2", "openvino 2026.4.1, opset 2", "mvn", eps=1e-9, eps_mode=EpsMode.INSIDE, ddof=0,
        axes=AxesRule.ALL_BUT_BATCH_AND_CHANNEL, channel="first", precision=_ONCE,
        note="Of normalize_variance=True, which is not the default in Python. across_channels reduces those"
        " too.",
        source="mvn-1.rst@7a0f542b; openvino/opset2/ops.py:83",
    ),
    _caffe(
        "mvn", eps=1e-9, eps_mode=EpsMode.OUTSIDE, ddof=0, axes=AxesRule.ALL_BUT_BATCH_AND_CHANNEL,
        note="across_channels reduces those too.",
        source="src/caffe/layers/mvn_layer.cpp, Forward_cpu; caffe.proto:904",
    ),
    _keras(
        "zscore", eps=1e-7, eps_mode=EpsMode.FLOOR, ddof=0, axes=AxesRule.ALL_BUT_CHANNEL,
        note="Normalization after adapt.",
        source="keras/src/layers/preprocessing/normalization.py",
    ),
    _tensorflow(
        "zscore", eps=EpsRule.ROOT_COUNT, eps_mode=EpsMode.FLOOR, ddof=0, axes=AxesRule.LAST_THREE,
        precision=_ONCE, note="tf.image.per_image_standardization.",
        source="tensorflow/python/ops/image_ops_impl.py",
    ),
    _sklearn(
        "zscore", ddof=0, zero_rule=ZeroRule.ONE, precision="float64 sums",
        note="StandardScaler. Columns that are constant but for rounding count as constant; NaN is passed"
        " over.",
        source="sklearn/preprocessing/_data.py:83, :101; sklearn/utils/extmath.py",
    ),
    Convention(
        "scipy", "scipy 1.17.1", "zscore", ddof=0, zero_rule=ZeroRule.NAN,
        note="nan where the deviation is up to a machine epsilon of the mean.",
        source="scipy/stats/_stats_py.py, zscore",
    ),
)  # fmt: skip

_SCALED = (
    _sklearn(
        "minmax", precision="that of the input",
        note="MinMaxScaler. It multiplies by 1 / range and adds −min / range, which cancels far from zero; a"
        " range below 10 machine epsilons counts as 1. feature_range is gamma and beta. NaN is passed over.",
        source="sklearn/preprocessing/_data.py:476, :547, :101",
    ),
    _sklearn(
        "maxabs", precision="that of the input",
        note="MaxAbsScaler. A maximum below 10 machine epsilons counts as 1. NaN is passed over.",
        source="sklearn/preprocessing/_data.py:1317, :1366, :101",
    ),
    _sklearn(
        "robust", precision="that of the input",
        note="RobustScaler. A range below 10 machine epsilons counts as 1; unit_variance multiplies by 1.349"
        " besides. NaN is passed over.",
        source="sklearn/preprocessing/_data.py:1685, :1752, :101",
    ),
)  # fmt: skip

_LOCAL_RESPONSE = (
    _torch(
        "lrn", channel="first", alpha=1e-4, exponent=0.75, k=1.0, extra_neighbour=ExtraNeighbour.BEFORE,
        note="size must be given. The docstring's sum has size + 1 terms for an even size, the code size.",
        source="torch/nn/functional.py:3047",
    ),
    _onnx(
        13, "lrn", channel="first", alpha=1e-4, exponent=0.75, k=1.0, extra_neighbour=ExtraNeighbour.AFTER,
        precision=_UNSPECIFIED,
        note="size must be given; ONNX Runtime refuses even ones. The reference evaluator of 1.23.2 goes over"
        " as many channels as there are samples (onnx/onnx#7805).",
        source="LRN-13: channels c − ⌊(size−1)/2⌋ … c + ⌈(size−1)/2⌉",
    ),
    _openvino(
        "lrn", axes=AxesRule.GIVEN, size=5, alpha=1.0, exponent=0.5, k=1.0,
        extra_neighbour=ExtraNeighbour.NEITHER, precision=_UNSPECIFIED,
        note="An even window has size − 1 values, divided by size all the same; the documentation's would have"
        " size + 1.",
        source="openvino/opset1/ops.py:1440; core/reference/include/openvino/reference/lrn.hpp@079483b2",
    ),
    _tensorflow(
        "lrn", size=11, alpha=1.0, exponent=0.5, k=1.0, divides_alpha=False,
        note="size is 2 · depth_radius + 1; alpha multiplies the sum, not the mean.",
        source="tensorflow/python/ops/gen_nn_ops.py:5815; tensorflow/core/kernels/lrn_op.cc@0405ff2f",
    ),
    _caffe(
        "lrn", size=5, alpha=1.0, exponent=0.75, k=1.0,
        note="Even sizes are refused. WITHIN_CHANNEL, over positions instead, is another norm.",
        source="src/caffe/layers/lrn_layer.cpp:9, :120; caffe.proto:879",
    ),
)  # fmt: skip

CONVENTIONS: tuple[Convention, ...] = (
    *_BATCH, *_LAYER, *_INSTANCE, *_GROUP, *_ROOT_MEAN_SQUARE, *_LENGTH, *_WEIGHT, *_STANDARDIZED,
    *_SCALED, *_LOCAL_RESPONSE,
)  # fmt: skip
"""Every row, in the order of the norms."""


def list_frameworks(norm: str) -> tuple[str, ...]:
    """Return the frameworks that have a row for the norm of that short name.

    Examples
    --------
    >>> list_frameworks("wn")
    ('torch', 'flax-linen', 'flax-nnx', 'equinox')
    """
    return tuple(row.framework for row in CONVENTIONS if row.norm == norm)


def find_convention(framework: str, norm: str) -> Convention:
    """Return the row of a framework for a norm.

    Raises
    ------
    UsageError
        If the table has no such row.
    """
    name = framework.lower()
    for row in CONVENTIONS:
        if (row.framework, row.norm) == (name, norm):
            return row
    known = list_frameworks(norm)
    near = _find_near(name, known)
    hint = f"did you mean {' or '.join(near)}?" if near else f"{norm} knows {', '.join(known)}"
    raise UsageError(f"like={framework!r}: {hint}")


def _find_near(name: str, known: tuple[str, ...]) -> list[str]:
    from difflib import get_close_matches

    begun = [other for other in known if name and (other.startswith(name) or name.startswith(other))]
    return begun or get_close_matches(name, known, n=2)
