"""normcli beside the frameworks, live. Needs the [peers] extra; with NORMCLI_REQUIRE_PEERS=1 nothing is skipped."""

from __future__ import annotations

import os
from importlib import import_module

import numpy as np
import pytest

from normcli import normalize
from normcli.tensors.random.generate import generate
from normcli.tensors.random.recipe import Recipe
from normcli.tensors.random.torch_stream import TorchStream

pytestmark = [
    pytest.mark.peers,
    # What the frameworks themselves warn of when they are imported is theirs.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

SEEDS = (0, 1, 2, 3, 42)
X = np.random.default_rng(11).normal(2.0, 3.0, (4, 6, 5, 7))


def peer(name):
    if os.environ.get("NORMCLI_REQUIRE_PEERS"):
        return import_module(name)
    return pytest.importorskip(name)


@pytest.fixture(scope="module")
def torch():
    return peer("torch")


@pytest.fixture(scope="module")
def functional(torch):
    return torch.nn.functional


def test_torch_is_the_version_that_was_read(torch):
    assert torch.__version__.split("+")[0] == "2.13.0"


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_torch_stream_to_the_bit(seed, dtype, torch):
    stream, kind = TorchStream(seed), getattr(torch, dtype)
    torch.manual_seed(seed)
    for count in (3, 1, 7, 15, 2):
        draws = [
            (torch.randn(count, dtype=kind), stream.normal(count, dtype)),
            (torch.rand(count, dtype=kind), stream.uniform(0, 1, count, dtype)),
            (torch.empty(count, dtype=kind).uniform_(-1.3, 7.7), stream.uniform(-1.3, 7.7, count, dtype)),
            (
                torch.empty(count, dtype=kind).uniform_(1, 1 + 2**-22),
                stream.uniform(1, 1 + 2**-22, count, dtype),
            ),
            (torch.randint(-3, 9, (count,)), stream.integers(-3, 9, count)),
            (torch.randint(0, 2**28, (count,)), stream.integers(0, 2**28, count)),
        ]
        for expected, drawn in draws:
            np.testing.assert_array_equal(drawn, expected.numpy())


@pytest.fixture
def torch_with_avx2(torch):
    if torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"):
        pytest.skip("torch has other normal values on this CPU")
    return torch


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("count", [16, 17, 31, 32, 33, 1000, 16_385, 10**6])
def test_blocks_of_normal_values_to_the_bit(seed, count, torch_with_avx2):
    torch_with_avx2.manual_seed(seed)
    drawn, expected = TorchStream(seed).normal(count, None), torch_with_avx2.randn(count).numpy()
    np.testing.assert_array_equal(drawn.view(np.uint32), expected.view(np.uint32))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("count", [16, 17, 1000, 10**5])
def test_blocks_of_float64_within_2_ulp(seed, count, torch):
    torch.manual_seed(seed)
    expected = torch.randn(count, dtype=torch.float64).numpy()
    np.testing.assert_array_max_ulp(TorchStream(seed).normal(count, "float64"), expected, maxulp=2)


def test_skipped_normal_values_are_a_draw_of_torch(torch_with_avx2):
    torch_with_avx2.manual_seed(3)
    torch_with_avx2.randn(21)
    drawn = generate(Recipe((5, 7), dist="normal", rng="torch", seed=3, skip=21)).values
    np.testing.assert_array_equal(drawn, torch_with_avx2.randn(5, 7).numpy())


TORCH = {
    "bn": lambda F, x: F.batch_norm(x, None, None, training=True),
    "ln": lambda F, x: F.layer_norm(x, x.shape[-1:]),
    "in": lambda F, x: F.instance_norm(x),
    "gn": lambda F, x: F.group_norm(x, 3),
    "rms": lambda F, x: F.rms_norm(x, x.shape[-1:], eps=1e-5),
    "lp": lambda F, x: F.normalize(x, dim=-1),
    "l1": lambda F, x: F.normalize(x, p=1, dim=-1),
}


@pytest.mark.parametrize("norm", TORCH)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-13), ("float32", 2e-6)])
def test_torch_norms(norm, dtype, tolerance, torch, functional):
    x = X.astype(dtype)
    ours = normalize(x, norm, groups=3 if norm == "gn" else None).normalized
    np.testing.assert_allclose(ours, TORCH[norm](functional, torch.tensor(x)).numpy(), rtol=0, atol=tolerance)


def test_torch_affine(torch, functional):
    gamma, beta = X[0, :, 0, 0], X[1, :, 0, 0]
    ours = normalize(X, "bn", gamma=gamma, beta=beta).normalized
    theirs = functional.batch_norm(
        torch.tensor(X), None, None, torch.tensor(gamma), torch.tensor(beta), training=True
    )
    np.testing.assert_allclose(ours, theirs.numpy(), rtol=0, atol=1e-12)


def test_torch_weight_norm(torch):
    gain = np.array([1.0, -2.0, 3.0, 0.5])
    theirs = torch._weight_norm(torch.tensor(X), torch.tensor(gain.reshape(4, 1, 1, 1)), 0)
    np.testing.assert_allclose(normalize(X, "wn", gamma=gain).normalized, theirs.numpy(), rtol=1e-13)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 13])
def test_torch_local_response(size, torch, functional):
    ours = normalize(X, "lrn", size=size, alpha=0.5, exponent=0.6, k=2.0, like="torch").normalized
    theirs = functional.local_response_norm(torch.tensor(X), size, alpha=0.5, beta=0.6, k=2.0)
    np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-13)


def onnx_run(operator, x, **attributes):
    helper = peer("onnx.helper")
    types = peer("onnx").TensorProto
    inputs = [helper.make_tensor_value_info("x", types.FLOAT, x.shape)]
    outputs = [helper.make_tensor_value_info("y", types.FLOAT, x.shape)]
    graph = helper.make_graph([helper.make_node(operator, ["x"], ["y"], **attributes)], "g", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    return peer("onnx.reference").ReferenceEvaluator(model).run(None, {"x": x})[0]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6])
def test_onnx_local_response(size):
    # ONNX's reference evaluator goes over as many channels as there are samples, against its own specification
    # (op_lrn.py, onnx 1.23): with as many samples as channels the two agree.
    x = np.concatenate([X, X[:2] + 1.0]).astype("f4")
    assert x.shape[0] == x.shape[1]
    theirs = onnx_run("LRN", x, size=size, alpha=0.5, beta=0.6, bias=2.0)
    for like in (None, "onnx"):
        ours = normalize(x, "lrn", size=size, alpha=0.5, exponent=0.6, k=2.0, like=like).normalized
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_onnx_mean_variance():
    x = X.astype("f4")
    theirs = onnx_run("MeanVarianceNormalization", x)
    np.testing.assert_allclose(normalize(x, "mvn").normalized, theirs, atol=2e-6)


def test_scikit_learn_standard_scaler():
    scaler = peer("sklearn.preprocessing").StandardScaler()
    x = X.reshape(24, 35).copy()
    x[:, 3] = 7.7
    result = normalize(x, "zscore")
    np.testing.assert_allclose(result.normalized, scaler.fit_transform(x), rtol=0, atol=1e-13)
    np.testing.assert_allclose(1 / result.rstd, scaler.scale_, rtol=1e-13)


def test_numpy_has_the_same_lengths():
    for p in (0, 0.5, 1, 2, 3, np.inf):
        ours = normalize(X, "lp", p=p).norm
        np.testing.assert_allclose(ours, np.linalg.norm(X, ord=p, axis=-1), rtol=1e-13)


@pytest.mark.parametrize("norm", ["bn", "in"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_evaluation_as_torch_does_it(norm, dtype, torch, functional):
    x = torch.tensor(X, dtype=getattr(torch, dtype))
    rng = np.random.default_rng(5)
    mean, var, gamma, beta = (torch.tensor(rng.uniform(0.5, 2.0, 6), dtype=x.dtype) for _ in range(4))
    expected = {
        "bn": lambda: functional.batch_norm(x, mean, var, gamma, beta, training=False),
        "in": lambda: functional.instance_norm(x, mean, var, gamma, beta, use_input_stats=False),
    }[norm]()
    result = normalize(x.numpy(), norm, gamma=gamma, beta=beta, running_mean=mean, running_var=var)
    tolerance = {"float32": 2e-6, "float64": 2e-14}[dtype]
    np.testing.assert_allclose(result.normalized, expected.numpy(), rtol=tolerance, atol=tolerance)


def _bring_together(layer, torch):
    from normcli.running.fold import Layer

    weight, bias = (None if a is None else a.detach().numpy() for a in (layer.weight, layer.bias))
    return Layer(
        weight, bias, getattr(layer, "groups", 1), isinstance(layer, torch.nn.modules.conv._ConvTransposeNd)
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["Linear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d"])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("bias", [False, True])
def test_a_folded_layer_does_what_torch_s_two_do(name, groups, bias, dtype, torch):
    from normcli.numerics.statistics.solution import Given
    from normcli.running.fold import Affine, fold

    torch.manual_seed(3)
    kind = {"dtype": getattr(torch, dtype), "bias": bias}
    dimensions = 0 if name == "Linear" else int(name[-2])
    make = getattr(torch.nn, name)
    layer = (
        make(4, 6, **kind) if name == "Linear" else make(4, 6, 3, padding=1, stride=2, groups=groups, **kind)
    )
    norm = getattr(torch.nn, f"BatchNorm{max(1, dimensions)}d")(6, dtype=kind["dtype"]).eval()
    for values in (norm.running_mean, norm.weight.data, norm.bias.data):
        values.normal_()
    norm.running_var.uniform_(0.5, 2.0)
    affine = Affine(
        Given(norm.running_mean.numpy(), norm.running_var.numpy()),
        norm.eps,
        norm.weight.data.numpy(),
        norm.bias.data.numpy(),
    )
    folded = fold(_bring_together(layer, torch), affine)
    x = torch.randn(3, 4, *[7] * dimensions, dtype=kind["dtype"])
    expected = norm(layer(x)).detach()
    one = (
        make(4, 6, dtype=kind["dtype"])
        if name == "Linear"
        else make(4, 6, 3, padding=1, stride=2, groups=groups, dtype=kind["dtype"])
    )
    one.weight.data, one.bias.data = torch.from_numpy(folded.weight), torch.from_numpy(folded.bias)
    tolerance = {"float32": 2e-5, "float64": 1e-13}[dtype]
    np.testing.assert_allclose(one(x).detach().numpy(), expected.numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("norm", "momentum"), [("bn", 0.1), ("bn", 0.3), ("bn", None), ("in", 0.1), ("in", 0.3)]
)  # torch's instance norm does not count batches, so it has no cumulative average
def test_a_hundred_batches_as_torch_tracks_them(norm, momentum, torch):
    from normcli.running.average import begin, choose_rule, update

    kind = {"bn": torch.nn.BatchNorm2d, "in": torch.nn.InstanceNorm2d}[norm]
    module = kind(3, momentum=momentum, track_running_stats=True, dtype=torch.float64)
    rule, state = choose_rule(norm, "torch", "none" if momentum is None else momentum, None, None), None
    rng = np.random.default_rng(1)
    for number in range(100):
        x = rng.normal(number / 10, 1 + number / 50, (4, 3, 5, 2))
        module(torch.from_numpy(x))
        result = normalize(x, norm, like="torch")
        state = update(state or begin(result.plan), result, rule).after
    assert state.batches == 100
    np.testing.assert_allclose(state.statistics.mean, module.running_mean.numpy(), rtol=1e-12)
    np.testing.assert_allclose(state.statistics.var, module.running_var.numpy(), rtol=1e-12)


def test_a_hundred_batches_as_keras_tracks_them():
    keras = peer("keras")
    from normcli.running.average import begin, choose_rule, update

    layer, rule, state = keras.layers.BatchNormalization(), choose_rule("bn", "keras", None, None, None), None
    rng = np.random.default_rng(2)
    for number in range(100):
        x = rng.normal(number / 10, 1 + number / 50, (4, 5, 2, 3)).astype(np.float32)
        layer(x, training=True)
        result = normalize(x, "bn", like="keras")
        state = update(state or begin(result.plan), result, rule).after
    np.testing.assert_allclose(state.statistics.mean, np.asarray(layer.moving_mean), rtol=1e-4)
    np.testing.assert_allclose(state.statistics.var, np.asarray(layer.moving_variance), rtol=1e-4)


def test_a_hundred_batches_as_onnx_tracks_them():
    onnx = peer("onnx")
    reference = import_module("onnx.reference")
    from normcli.running.average import begin, choose_rule, update

    helper, number = onnx.helper, onnx.TensorProto.DOUBLE
    names = ["x", "scale", "bias", "mean", "var"]
    node = helper.make_node("BatchNormalization", names, ["y", "m", "v"], training_mode=1)
    shape = (4, 3, 5)
    inputs = [helper.make_tensor_value_info(name, number, shape if name == "x" else (3,)) for name in names]
    outputs = [helper.make_tensor_value_info(name, number, shape if name == "y" else (3,)) for name in "ymv"]
    graph = helper.make_graph([node], "bn", inputs, outputs)
    session = reference.ReferenceEvaluator(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)])
    )
    rule, state, rng = choose_rule("bn", "onnx", None, None, None), None, np.random.default_rng(4)
    mean, var = np.zeros(3), np.ones(3)
    for count in range(100):
        x = rng.normal(count / 10, 1 + count / 50, shape)
        _, mean, var = session.run(
            None, {"x": x, "scale": np.ones(3), "bias": np.zeros(3), "mean": mean, "var": var}
        )
        result = normalize(x, "bn", like="onnx")
        state = update(state or begin(result.plan), result, rule).after
    # the momentum is an attribute of float32 there
    np.testing.assert_allclose(state.statistics.mean, mean, rtol=1e-6)
    np.testing.assert_allclose(state.statistics.var, var, rtol=1e-6)


def test_masked_batch_normalization_as_keras_does_it():
    keras = peer("keras")
    rng = np.random.default_rng(8)
    x, mask = rng.normal(2.0, 3.0, (4, 6, 5)).astype(np.float32), rng.random((4, 6)) < 0.6
    expected = keras.layers.BatchNormalization(epsilon=1e-3)(x, training=True, mask=mask)
    result = normalize(x, "bn", layout="NLC", eps=1e-3, mask=mask[..., None], fill="normalize")
    np.testing.assert_allclose(result.normalized, keras.ops.convert_to_numpy(expected), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("norm", ["bn", "ln", "in", "gn", "rms"])
def test_masked_norms_as_flax_does_them(norm):
    linen = peer("flax.linen")
    jax = peer("jax")
    rng = np.random.default_rng(9)
    x, mask = rng.normal(2.0, 3.0, (4, 6, 8)).astype(np.float32), rng.random((4, 6, 8)) < 0.7
    module, options = {
        "bn": (linen.BatchNorm(use_running_average=False, epsilon=1e-5), {"layout": "NLC"}),
        "ln": (linen.LayerNorm(epsilon=1e-5), {}),
        "in": (linen.InstanceNorm(epsilon=1e-5), {"layout": "NLC"}),
        "gn": (linen.GroupNorm(num_groups=2, epsilon=1e-5), {"layout": "NLC", "groups": 2}),
        "rms": (linen.RMSNorm(epsilon=1e-5), {}),
    }[norm]
    variables = module.init(jax.random.key(0), x)
    made = module.apply(variables, x, mask=mask, mutable=["batch_stats"] if norm == "bn" else False)
    expected = made[0] if norm == "bn" else made
    result = normalize(x, norm, eps=1e-5, mask=mask, fill="normalize", **options)
    np.testing.assert_allclose(result.normalized, np.asarray(expected), rtol=2e-4, atol=2e-5)
