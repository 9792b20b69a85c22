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
