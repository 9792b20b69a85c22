"""What frameworks do, against the frameworks."""

from __future__ import annotations

import os

import numpy as np
import pytest

import normcli
from normcli import NORMS
from normcli.algorithms.row_computation import Accumulation, Computation, parse_computation
from normcli.algorithms.row_formula import RowFormula
from normcli.algorithms.table import ALGORITHMS, CASTS, FORMS, KERNELS, PRACTICES, Held
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from tests.marks import slowly
from tests.peers import run_torch

EPS = 1e-5


def call_torch(norm, x, gamma, beta):
    import torch

    if norm == "gn":  # a group for each row
        groups = torch.nn.functional.group_norm(torch.from_numpy(x[None]), len(x), eps=EPS)
        return groups.numpy()[0]
    module = torch.nn.LayerNorm(x.shape[1], EPS) if norm == "ln" else torch.nn.RMSNorm(x.shape[1], EPS)
    return run_torch(module, x, gamma, beta if norm == "ln" else None)


def call_torch_batch(norm, x, gamma, beta):
    """A channel for each row, of four images."""
    import torch

    images = np.moveaxis(x.reshape(len(x), 4, -1, 2), 0, 1).copy()
    given = map(torch.from_numpy, (gamma, beta))
    y = torch.nn.functional.batch_norm(torch.from_numpy(images), None, None, *given, training=True, eps=EPS)
    return np.moveaxis(y.numpy(), 1, 0).reshape(x.shape)


def call_keras(norm, x, gamma, beta):
    os.environ.setdefault("KERAS_BACKEND", "torch")
    import keras

    layer = keras.layers.LayerNormalization(epsilon=EPS)
    layer.build(x.shape)
    layer.gamma.assign(gamma)
    layer.beta.assign(beta)
    return layer(x).detach().numpy()


def call_flax(norm, x, gamma, beta):
    import flax.linen as nn

    if norm == "bn":  # a channel for each row
        module = nn.BatchNorm(use_running_average=False, epsilon=EPS, use_bias=False, use_scale=False)
        return np.asarray(module.init_with_output({}, x.T)[0]).T
    return np.asarray(nn.LayerNorm(epsilon=EPS, use_bias=False, use_scale=False).apply({}, x))


def call_onnxruntime(norm, x, gamma, beta):
    onnxruntime = pytest.importorskip("onnxruntime")
    from onnx import TensorProto, helper

    def declare(name, values):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, list(values.shape))

    node = helper.make_node("LayerNormalization", ["x", "gamma"], ["y"], axis=-1, epsilon=EPS)
    graph = helper.make_graph([node], "norm", [declare("x", x), declare("gamma", gamma)], [declare("y", x)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x, "gamma": np.ones_like(gamma)})[0]


def call_numpy(norm, x, gamma, beta):
    if norm == "rms":
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(EPS)) * gamma
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + np.float32(EPS)) * gamma + beta


CALLS = {
    "torch (x86, AVX2)": call_torch,
    "torch (AVX2), images": call_torch_batch,
    "keras (torch)": call_keras,
    "flax": call_flax,
    "onnxruntime (CPU)": call_onnxruntime,
    "NumPy's mean and var": call_numpy,
}


def find_kernel(text):
    """Return a computation by the names of kernels and forms too."""
    name, dtype, *form = text.split(":")
    algorithm = next(row for row in (*ALGORITHMS.values(), *KERNELS) if row.name == name)
    cast = next(row for row in (*CASTS.values(), *FORMS) if row.name == (form or ["once"])[0])
    return Computation(Accumulation(algorithm, dtype), cast)


def of_rows(held):
    """Return cases: a row of the table and a norm of it; all but those of NumPy need a framework."""
    return [
        pytest.param(row, norm, id=f"{row.framework} {norm}", marks=() if "NumPy" in row.framework else pytest.mark.peers)
        for row in PRACTICES
        if row.held is held
        for norm in row.norms
    ]  # fmt: skip


@pytest.mark.parametrize(("row", "norm"), of_rows(Held.BITS))
def test_kernels_that_were_followed_give_every_bit(row, norm):
    if "torch" in row.framework:
        torch = pytest.importorskip("torch")
        if torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"):
            pytest.skip("torch adds otherwise here")
    kernel = find_kernel(row.kernel)
    for count in (5, 24, 100, 1003):
        rng = np.random.default_rng(count)
        x = rng.normal(2.0, 1.0, (20, 8 * count if norm == "bn" else count)).astype(np.float32)
        shape = (len(x), 1) if norm == "bn" else (1, count)
        gamma, beta = (rng.normal(*of, shape).astype(np.float32) for of in ((1.0, 0.3), (0.0, 0.5)))
        formula = RowFormula.of(make_plan(Request("rms" if norm == "rms" else "ln", eps=EPS), x.shape, x.dtype))
        none, both = (None, None), (np.broadcast_to(gamma, x.shape), np.broadcast_to(beta, x.shape))
        affine = {"gn": none, "rms": (both[0], None)}.get(norm, both)
        expected = CALLS[row.framework](norm, x, gamma.reshape(-1), beta.reshape(-1))
        np.testing.assert_array_equal(kernel.run(x, formula, x.dtype, affine), expected)


@pytest.mark.peers
@pytest.mark.parametrize(("dtype", "name"), [("bfloat16", "stored-sums"), ("float16", "stored")])
@pytest.mark.parametrize("norm", ["bn", "in"])
@pytest.mark.parametrize("names", [("gamma",), *slowly([(), ("gamma", "beta")])], ids=" and ".join)
def test_statistics_of_torchs_norms_of_half_precision_are_rounded_first(norm, names, dtype, name):
    torch = pytest.importorskip("torch")
    rng, half = np.random.default_rng(2), getattr(torch, dtype)
    x, *both = (torch.tensor(rng.normal(0.5, 1.0, of)).to(half) for of in ((4, 6, 13, 9), (6,), (6,)))
    given = dict(zip(("gamma", "beta"), both, strict=True))
    given = {each: given[each] for each in names}
    options = {"weight": given.get("gamma"), "bias": given.get("beta")}
    if norm == "in":
        y = torch.nn.functional.instance_norm(x, **options)
    else:
        y = torch.nn.functional.batch_norm(x, None, None, **options, training=True)
    given = {each: values.float().numpy() for each, values in given.items()}
    found = normcli.identify(y.float().numpy(), x.float().numpy(), **given).found
    assert found.matches[0].norm == norm
    assert name in [one.computation.cast.name for one in found.reproductions if one.equal == 1.0]


@pytest.mark.parametrize(("row", "norm"), of_rows(Held.VARIANCES))
def test_variances_far_from_zero_are_lost_and_kept_alike(row, norm):
    """Sums of these values are exact in any order: what differs is the formula alone."""
    x = np.array([[1.0, 2.0, 3.0, 4.0], [4097.0, 4098.0, 4099.0, 4100.0]], np.float32)
    found = CALLS[row.framework](norm, x, np.ones(4, np.float32), None)
    formula = RowFormula.of(make_plan(Request("ln", eps=EPS), x.shape, x.dtype))
    kept = parse_computation(row.computation).run(x, formula, x.dtype)
    np.testing.assert_allclose(found, kept, rtol=1e-6)


@pytest.mark.parametrize("row", PRACTICES, ids=lambda row: row.framework)
def test_rows_name_what_there_is(row):
    assert parse_computation(row.computation).accumulation.dtype == "float32"
    assert set(row.norms) <= set(NORMS)
    assert row.source
    assert bool(row.kernel) == (row.held is Held.BITS)
    assert not row.kernel or find_kernel(row.kernel)
