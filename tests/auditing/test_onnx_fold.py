"""Batch norms of ONNX graphs, folded into the layers before them: the folded layer gives what both gave."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.peers

RNG = np.random.default_rng(3)
SHAPE = (2, 4, 6, 6)


ROLES = ("weight", "bias", "running_mean", "running_var")


def make_norm(name, channels):
    drawn = RNG.uniform(0.5, 1.5, (4, channels)).astype(np.float32)
    return {f"{name}.{role}": row for role, row in zip(ROLES, drawn, strict=True)}


def node(kind, inputs, output, **attributes):
    return onnx.helper.make_node(kind, inputs.split(), [output], name=f"{output}/{kind}", **attributes)


def norm(name, x, output, eps):
    roles = " ".join(f"{name}.{role}" for role in ROLES)
    return node("BatchNormalization", f"{x} {roles}", output, epsilon=eps)


def write(path, nodes, arrays, outputs):
    helper = onnx.helper
    declared = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, SHAPE)]
    made = [helper.make_empty_tensor_value_info(name) for name in outputs]
    held = [onnx.numpy_helper.from_array(values, name) for name, values in arrays.items()]
    graph = helper.make_graph(nodes, "g", declared, made, held)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10), path)


def run(path):
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": np.random.default_rng(4).normal(size=SHAPE).astype(np.float32)})[0]


ARRAYS = {
    "a.weight": RNG.normal(size=(8, 2, 3, 3)).astype(np.float32),
    "onnx::ConvTranspose_7": RNG.normal(size=(8, 3, 2, 2)).astype(np.float32),
    "m": RNG.normal(size=(6 * 5 * 5, 5)).astype(np.float32),
    "c": RNG.normal(size=5).astype(np.float32),
    **make_norm("n1", 8), **make_norm("n2", 6), **make_norm("n3", 5), **make_norm("n4", 5),
}  # fmt: skip

NODES = [
    node("Conv", "x a.weight", "a", group=2), norm("n1", "a", "b", 1e-3), node("Relu", "b", "r"),
    node("ConvTranspose", "r onnx::ConvTranspose_7", "d", group=2), norm("n2", "d", "e", 1e-2),
    node("Flatten", "e", "f"), node("Gemm", "f m c", "g"),
    norm("n3", "g", "h", 1e-5), norm("n4", "h", "y", 1e-5),
]  # fmt: skip
"""Convolutions in groups, a matrix (in, out), and a norm behind no layer."""


@pytest.fixture
def model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("m.onnx", NODES, ARRAYS, ["y"])


@pytest.mark.usefixtures("model")
def test_the_graph_tells_the_pairs(normcli):
    listed = normcli("fold", "--checkpoint", "m.onnx", "--dry-run", "-f", "json")
    pairs = listed.json["pairs"]
    assert [one["layer"] for one in pairs] == ["a", "d/ConvTranspose", "g/Gemm"]
    assert [one["norm"] for one in pairs] == [f"{output}/BatchNormalization" for output in "beh"]
    assert [one["transposed"] for one in pairs] == [False, True, False]
    assert listed.json["left"] == ["y/BatchNormalization"]
    assert "keeps no eps" not in listed.err


@pytest.mark.usefixtures("model")
def test_the_folded_layers_give_what_both_gave(normcli):
    assert normcli("fold", "--checkpoint", "m.onnx", "-o", "plain.npz", "-q").code == 0
    before, kept = run("m.onnx"), dict(np.load("plain.npz"))
    nodes = [
        node("Conv", "x a.weight a.bias", "b", group=2), node("Relu", "b", "r"),
        node("ConvTranspose", "r d/ConvTranspose.weight d/ConvTranspose.bias", "e", group=2),
        node("Flatten", "e", "f"), node("Gemm", "f g/Gemm.weight g/Gemm.bias", "h", transB=1),
        norm("n4", "h", "y", 1e-5),
    ]  # fmt: skip
    write("plain.onnx", nodes, kept, ["y"])
    np.testing.assert_allclose(run("plain.onnx"), before, rtol=1e-3, atol=1e-3)


@pytest.mark.usefixtures("model")
def test_a_layer_that_others_take_too_is_left(normcli):
    write("m.onnx", NODES, ARRAYS, ["y", "a"])
    listed = normcli("fold", "--checkpoint", "m.onnx", "--dry-run", "-f", "json")
    assert "a" not in [one["layer"] for one in listed.json["pairs"]]
    assert "b/BatchNormalization" in listed.json["left"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["gone.onnx"], 3, "--checkpoint gone.onnx: there is no such file"),
        (["bad.onnx"], 3, "--checkpoint bad.onnx: it is no readable ONNX model"),
        (["none.onnx"], 3, "--checkpoint none.onnx: its graph has no batch normalization"),
        (["m.onnx", "--eps", "1"], 2, "m.onnx has its pairs and eps itself"),
        (["m.onnx", "--pairs", "a=b"], 2, "m.onnx has its pairs and eps itself"),
        (["m.onnx", "--transposed", "a"], 2, "--transposed is what m.onnx says itself: leave it out"),
    ],
)
@pytest.mark.usefixtures("model")
def test_refusals(normcli, tmp_path, arguments, code, message):
    (tmp_path / "bad.onnx").write_bytes(b"no model")
    write("none.onnx", [node("Neg", "x", "y")], {}, ["y"])
    ran = normcli("fold", "--checkpoint", *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.startswith(f"normcli: {message}")


@pytest.mark.usefixtures("model")
def test_the_folded_model_gives_what_the_model_gave(normcli):
    assert normcli("fold", "--checkpoint", "m.onnx", "-o", "plain.onnx", "-q").code == 0
    np.testing.assert_allclose(run("plain.onnx"), run("m.onnx"), rtol=1e-3, atol=1e-3)
    graph = onnx.load("plain.onnx").graph
    kinds = [node.op_type for node in graph.node]
    assert kinds == ["Conv", "Relu", "ConvTranspose", "Flatten", "Gemm", "BatchNormalization"]
    assert not [one.name for one in graph.initializer if one.name.startswith(("n1.", "n2.", "n3."))]


@pytest.mark.usefixtures("model")
def test_a_state_dict_is_saved_as_no_model(normcli):
    np.savez("m.npz", **ARRAYS)
    ran = normcli("fold", "--checkpoint", "m.npz", "-o", "plain.onnx")
    assert (ran.code, ran.out) == (2, "")


def test_a_parameter_behind_an_identity_is_a_constant(normcli, tmp_path, monkeypatch):
    """As PyTorch's exporter writes parameters that equal another layer's."""
    monkeypatch.chdir(tmp_path)
    same = node("Identity", "n1.weight", "same")
    behind = node("BatchNormalization", "a same n1.bias n1.running_mean n1.running_var", "y", epsilon=1e-5)
    write("m.onnx", [same, node("Conv", "x a.weight", "a", group=2), behind], ARRAYS, ["y"])
    ran = normcli("fold", "--checkpoint", "m.onnx", "-o", "folded.onnx")
    assert (ran.code, "left" in ran.err) == (0, False)
    kinds = [made.op_type for made in onnx.load("folded.onnx").graph.node]
    assert [kind for kind in kinds if kind != "Identity"] == ["Conv"]
    np.testing.assert_allclose(run("folded.onnx"), run("m.onnx"), rtol=1e-4, atol=1e-5)
