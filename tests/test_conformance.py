"""Every row of the table of conventions beside its framework: what it gave once, and live where it is installed.

`python tests/data/record_conventions.py` records again what the frameworks that it finds give.
"""

from __future__ import annotations

import json
import os
from importlib import import_module

import numpy as np
import pytest

from normcli import normalize
from normcli.dtypes import find_type
from normcli.norms.conventions import CONVENTIONS, find_convention
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from tests.conftest import DATA
from tests.peers import EXTRA, PEERS, make_parameters, make_values, run_onnx

RECORDED = json.loads((DATA / "conventions.json").read_text())

TOLERANCE = 5e-6
"""Of the largest value: the frameworks calculate in float32, some with fast approximations of a root."""


def live(test):
    """Mark a test that runs a framework; what that warns of is its own."""
    return pytest.mark.peers(pytest.mark.filterwarnings("ignore")(test))


def describe(peer):
    options = "".join(f" {option}={value}" for option, value in peer.options.items())
    return f"{peer.norm} {peer.framework}{options}"


def hold(theirs, ours):
    assert theirs.shape == ours.shape
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=TOLERANCE * np.abs(theirs).max())


def load(module):
    if os.environ.get("NORMCLI_REQUIRE_PEERS") and module.split(".")[0] in EXTRA:
        return import_module(module)
    return pytest.importorskip(module, exc_type=ImportError)


def draw(peer, shape, scale, affine):
    x = make_values(shape, scale)
    plan = make_plan(Request(peer.norm, like=peer.framework, **peer.options), shape, np.dtype("f8"))
    return x, make_parameters(peer.affine if affine else (), plan.parameters.shape)


def test_every_row_has_a_peer():
    assert {(peer.norm, peer.framework) for peer in PEERS} == {(row.norm, row.framework) for row in CONVENTIONS}


def test_every_row_is_recorded():
    recorded = {(case["norm"], case["framework"]) for case in RECORDED["cases"]}
    assert recorded == {(row.norm, row.framework) for row in CONVENTIONS}


def replay(case, **overriding):
    """Return what was recorded, and what normcli makes of the same tensor."""
    shape, options = tuple(case["shape"]), {name: freeze(value) for name, value in case["options"].items()}
    plan = make_plan(Request(case["norm"], like=case["framework"], **options), shape, np.dtype("f8"))
    parameters = make_parameters(case["affine"], plan.parameters.shape)
    asked = options | overriding
    x, rest = make_values(shape, case["scale"]), {"dtype": "float64", **asked, **parameters}
    ours = normalize(x, case["norm"], like=case["framework"], **rest)
    return np.array(case["normalized"]).reshape(shape), ours.normalized


def freeze(value):
    return tuple(value) if isinstance(value, list) else value


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=f"{case['norm']} {case['framework']}") for case in RECORDED["cases"]]
)
def test_what_was_recorded(case):
    hold(*replay(case))


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=f"{row.norm} {row.framework}") for row in CONVENTIONS if row.eps]
)
def test_what_was_recorded_tells_another_eps(row):
    cases = [c for c in RECORDED["cases"] if (c["norm"], c["framework"]) == (row.norm, row.framework)]
    assert cases
    assert any(differs(*replay(case, eps=1.5 * find_eps(case))) for case in cases)


def find_eps(case):
    request = Request(
        case["norm"], like=case["framework"], **{k: freeze(v) for k, v in case["options"].items()}
    )
    return make_plan(request, tuple(case["shape"]), np.dtype("float32")).spec.eps


def differs(theirs, ours):
    return not np.allclose(ours, theirs, rtol=0, atol=TOLERANCE * np.abs(theirs).max())


@live
@pytest.mark.parametrize(
    ("peer", "affine"),
    [pytest.param(peer, False, id=f"{describe(peer)} plain") for peer in PEERS]
    + [pytest.param(peer, True, id=f"{describe(peer)} affine") for peer in PEERS if peer.affine],
)
def test_live(peer, affine):
    load(peer.module)
    for shape in peer.shapes:
        for scale in peer.scales:
            x, parameters = draw(peer, shape, scale, affine)
            ours = normalize(x, peer.norm, like=peer.framework, **peer.options, **parameters)
            hold(np.asarray(peer.call(x, **parameters, **peer.options), dtype=float), ours.normalized)


# -- running statistics: after one batch, from mean 0 and variance 1


def run_torch_batches(x):
    import torch

    module = torch.nn.BatchNorm1d(x.shape[-1])
    module(torch.from_numpy(x))
    return module.running_mean.numpy(), module.running_var.numpy()


def run_keras_batches(x):
    import keras

    layer = keras.layers.BatchNormalization()
    layer(x, training=True)
    return tuple(map(keras.ops.convert_to_numpy, (layer.moving_mean, layer.moving_variance)))


def run_linen_batches(x):
    import jax
    from flax import linen

    module = linen.BatchNorm(use_running_average=False)
    variables = module.init(jax.random.key(0), x)
    kept = module.apply(variables, x, mutable=["batch_stats"])[1]["batch_stats"]
    return kept["mean"], kept["var"]


def run_nnx_batches(x):
    from flax import nnx

    module = nnx.BatchNorm(x.shape[-1], rngs=nnx.Rngs(0))
    module(x)
    return module.mean[...], module.var[...]


def run_mlx_batches(x):
    import mlx.core
    import mlx.nn

    module = mlx.nn.BatchNorm(x.shape[-1])
    module(mlx.core.array(x))
    return np.array(module.running_mean), np.array(module.running_var)


def run_onnx_batches(x):
    zero, one = np.zeros(x.shape[-1], x.dtype), np.ones(x.shape[-1], x.dtype)
    arguments = ("BatchNormalization", 15, x, one, zero, zero, one)
    return run_onnx(*arguments, outputs=3, training_mode=1)[1:]


def run_tensorflow_batches(x):
    import tensorflow

    zero, one = np.zeros(x.shape[-1], x.dtype), np.ones(x.shape[-1], x.dtype)
    return tensorflow.compat.v1.nn.fused_batch_norm(x[None, None], one, zero)[1:]


RUNNING = {
    "torch": ("torch", run_torch_batches),
    "keras": ("keras", run_keras_batches),
    "flax-linen": ("flax", run_linen_batches),
    "flax-nnx": ("flax", run_nnx_batches),
    "mlx": ("mlx.core", run_mlx_batches),
    "onnx": ("onnx", run_onnx_batches),
    "tensorflow": ("tensorflow", run_tensorflow_batches),
}


@live
@pytest.mark.parametrize("framework", RUNNING)
def test_running_statistics(framework):
    module, run = RUNNING[framework]
    load(module)
    running = find_convention(framework, "bn").running
    assert running is not None
    x = make_values((5, 3))
    new = running.momentum if running.weight_of == "new" else 1.0 - running.momentum
    mean, variance = run(x)
    np.testing.assert_allclose(np.asarray(mean), new * x.mean(0, dtype=float), rtol=1e-5)
    expected = (1.0 - new) + new * x.var(0, dtype=float, ddof=running.ddof)
    np.testing.assert_allclose(np.asarray(variance), expected, rtol=1e-5)


# -- half precision, and groups whose divisor is 0


@live
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_the_eps_of_torch_rms_norm_is_of_the_arithmetic(dtype):
    torch = load("torch")
    x = torch.from_numpy(make_values((3, 8), 2.0**-13)).to(getattr(torch, dtype))
    theirs = torch.nn.functional.rms_norm(x, (8,)).float().numpy()
    x = x.float().numpy().astype(find_type(dtype))
    followed, without = (
        normalize(x, "rms", **how).normalized.astype(float) for how in ({"like": "torch"}, {"eps": 0})
    )
    np.testing.assert_allclose(followed, theirs, rtol=2.0**-7)
    assert not np.allclose(without, theirs, rtol=0.5)  # eps is as large as the mean square


@live
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_llama_rounds_before_gamma(dtype):
    torch, llama = load("torch"), load("transformers.models.llama.modeling_llama")
    kind = getattr(torch, dtype)
    x, gamma = make_values((64, 32), 1.0, 7919, 1999, 999, 256), make_values((32,), 1.0, 29, 17, 5, 9)
    x, gamma = torch.from_numpy(x).to(kind), torch.from_numpy(gamma).to(kind)
    module = llama.LlamaRMSNorm(32).to(kind)
    module.weight.data = gamma
    theirs = module(x).detach().float().numpy()
    ours = [
        normalize(x.float().numpy().astype(find_type(dtype)), "rms", gamma=gamma.float().numpy(), **how)
        for how in ({"like": "llama"}, {"eps": 1e-6})
    ]
    followed, once = ((result.normalized.astype("float32") != theirs).mean() for result in ours)
    assert followed < 0.005 < 0.05 < once


# -- what the rows note of defects
