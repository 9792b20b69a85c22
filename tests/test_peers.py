"""normcli beside the frameworks, live. Needs the [peers] extra; with NORMCLI_REQUIRE_PEERS=1 nothing is skipped."""

from __future__ import annotations

import os
from importlib import import_module

import numpy as np
import pytest

from normcli import normalize
from normcli.tensors.torch_stream import TorchStream

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
            (torch.randint(-3, 9, (count,)), stream.integers(-3, 9, count)),
            (torch.randint(0, 2**28, (count,)), stream.integers(0, 2**28, count)),
        ]
        for expected, drawn in draws:
            np.testing.assert_array_equal(drawn, expected.numpy())


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("count", [16, 17, 37, 100, 1000])
def test_blocks_of_normal_values_within_2_ulp(seed, count, torch):
    torch.manual_seed(seed)
    np.testing.assert_array_max_ulp(TorchStream(seed).normal(count, None), torch.randn(count).numpy(), maxulp=2)


def test_a_million_normal_values_within_3_ulp(torch):
    torch.manual_seed(5)
    drawn, expected = TorchStream(5).normal(10**6, None), torch.randn(10**6).numpy()
    ulp = np.abs(drawn.astype(float) - expected) / np.spacing(np.abs(expected))
    assert ulp.max() <= 3
    assert (ulp > 2).mean() < 1e-4


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
