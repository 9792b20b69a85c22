"""Models of Keras and Flax recorded while they run."""

from __future__ import annotations

import os

import numpy as np
import pytest

from normcli import audit, record

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]

X = np.random.default_rng(4).normal(1.0, 2.0, (4, 6, 6, 8)).astype(np.float32)


@pytest.fixture
def keras():
    os.environ.setdefault("KERAS_BACKEND", "torch")
    return pytest.importorskip("keras")


def make_keras(keras):
    layers = keras.layers
    return keras.Sequential([
        layers.Input((6, 6, 8)), layers.BatchNormalization(name="bn"), layers.Conv2D(8, 3),
        layers.GroupNormalization(2, name="gn"), layers.LayerNormalization(name="ln"), layers.RMSNormalization(name="rms"),
    ])  # fmt: skip


@pytest.mark.parametrize("training", [False, True], ids=["evaluation", "training"])
def test_keras(keras, tmp_path, training):
    model, path = make_keras(keras), tmp_path / "dump.safetensors"
    with record(model, path):
        model(X, training=training)
    told = audit(path)
    assert told.ok, str(told)
    layers = told.data()["layers"]
    assert [one["norm"] for one in layers] == ["bn", "gn", "ln", "rms"]
    assert layers[0]["evaluation"] is not training
    assert ("running_mean_after" in layers[0]["parts"]) == training
    assert "call" not in model.layers[0].__dict__


def test_a_wrong_keras_layer(keras, tmp_path):
    model, path = make_keras(keras), tmp_path / "dump.safetensors"
    layer = model.get_layer("ln")
    with record(model, path):
        layer.epsilon, kept = 0.1, layer.epsilon
        model(X)
        layer.epsilon = kept
    assert audit(path).ok  # the settings are those of the call


@pytest.mark.parametrize("training", [False, True], ids=["evaluation", "training"])
def test_flax(tmp_path, training):
    linen = pytest.importorskip("flax.linen")
    import jax

    class Model(linen.Module):
        @linen.compact
        def __call__(self, x):
            x = linen.BatchNorm(use_running_average=not training)(x)
            x = linen.Dense(8)(linen.GroupNorm(num_groups=2)(x))
            return linen.RMSNorm()(linen.LayerNorm(use_fast_variance=False)(x))

    model, path = Model(), tmp_path / "dump.safetensors"
    variables = model.init(jax.random.key(0), X)
    with record(model, path):
        model.apply(variables, X, mutable=["batch_stats"] if training else False)
    told = audit(path)
    assert told.ok, str(told)
    layers = told.data()["layers"]
    assert [one["name"] for one in layers] == ["BatchNorm_0", "GroupNorm_0", "LayerNorm_0", "RMSNorm_0"]
    assert ("running_mean_after" in layers[0]["parts"]) == training


@pytest.mark.parametrize("training", [False, True], ids=["evaluation", "training"])
def test_keras_layers_with_channels_first(keras, tmp_path, training):
    layers, path = keras.layers, tmp_path / "dump.safetensors"
    norms = [layers.BatchNormalization(axis=1), layers.GroupNormalization(2, axis=1)]
    model = keras.Sequential([layers.Input((4, 6, 8)), *norms])
    for norm in norms:
        norm.gamma.assign([1.0, 2.0, 3.0, 4.0])
    with record(model, path):
        model(X[:, :4], training=training)
    assert audit(path).ok


def test_keras_layers_that_are_not_judged(keras, tmp_path):
    layers, path = keras.layers, tmp_path / "dump.safetensors"
    rms, norm = layers.LayerNormalization(), layers.BatchNormalization()
    rms.rms_scaling = True
    norms = layers.Normalization(), layers.UnitNormalization(), rms, layers.Masking(), norm
    model = keras.Sequential([layers.Input((6, 8)), *norms])
    with record(model, path):
        model(X[:, 0] * (X[:, 0, :, :1] > 0.0), training=True)
    assert [one["problem"] for one in audit(path).data()["layers"]] == [
        "Normalization is no norm that is known",
        None,
        "LayerNormalization(rms_scaling=True) is no norm that is known",
        "the module took mask too, which is not recorded",
    ]


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("GroupNorm", {"num_groups": None, "group_size": 4}),
        ("GroupNorm", {"num_groups": 2, "reduction_axes": (-1,)}),
        ("LayerNorm", {"reduction_axes": (-1,), "feature_axes": (1, -1)}),
        ("RMSNorm", {"feature_axes": (1,)}),
        ("InstanceNorm", {"feature_axes": 1}),
        ("BatchNorm", {"axis": (1, 3), "use_running_average": True}),
        ("BatchNorm", {"axis": 1, "use_running_average": True}),
    ],
    ids=str,
)
def test_layers_of_flax_with_axes_of_their_own(tmp_path, kind, options):
    linen = pytest.importorskip("flax.linen")
    import jax

    rng = np.random.default_rng(1)
    model, path = getattr(linen, kind)(**options), tmp_path / "dump.safetensors"
    made = model.init(jax.random.key(0), X[:, :5])
    variables = jax.tree.map(lambda leaf: leaf + rng.uniform(0.5, 1.0, leaf.shape).astype(np.float32), made)
    with record(model, path):
        model.apply(variables, X[:, :5])
    told = audit(path)
    assert told.ok, str(told)


def test_calls_of_flax_that_are_not_judged(tmp_path):
    linen = pytest.importorskip("flax.linen")
    import jax

    class Own(linen.LayerNorm):
        def __call__(self, x):
            return 2.0 * x

    class Model(linen.Module):
        @linen.compact
        def __call__(self, x):
            x = linen.WeightNorm(linen.Dense(8))(Own()(x))
            return linen.RMSNorm()(linen.remat(linen.RMSNorm)()(x), mask=X > 0.0)

    model, path = Model(), tmp_path / "dump.safetensors"
    variables = model.init(jax.random.key(0), X)
    with record(model, path):
        model.apply(variables, X)
    assert [one["problem"] for one in audit(path).data()["layers"]] == [
        "Own is no norm that is known",
        "WeightNorm is no norm that is known",
        "its values are not known within jit, vmap, grad or remat: run the model outside",
        "the module took mask too, which is not recorded",
    ]
