"""ONNX models run by ONNX Runtime: each norm of their graph, as a node or as a chain of nodes."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import audit, record
from normcli.auditing import onnx_run
from normcli.errors import NormError
from normcli.tensors import spool
from normcli.tensors.mapped import Mapped
from normcli.tensors.spool import make_scratch

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.peers

RNG = np.random.default_rng(2)
C = 6
G, B = RNG.normal(1.0, 0.3, C).astype(np.float32), RNG.normal(0.0, 0.3, C).astype(np.float32)
MEAN, VAR = RNG.normal(0.0, 0.3, C).astype(np.float32), RNG.uniform(0.5, 2.0, C).astype(np.float32)
IMAGES, TOKENS = (2, C, 4, 4), (2, 5, C)


def write_model(path, nodes, shape, constants=(), opset=18):
    """Write a model of x to y; constants are arrays by name."""
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    types = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name in "xy"]
    held = [numpy_helper.from_array(array, name) for name, array in dict(constants).items()]
    graph = helper.make_graph(nodes, "g", types[:1], types[1:], held)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)
    return str(path)


def node(kind, inputs, outputs="y", name=None, **attributes):
    name = name or f"{outputs.split()[0]}/{kind}"
    return onnx.helper.make_node(kind, inputs.split(), outputs.split(), name=name, **attributes)


def write_rms(path, eps=1e-6):
    """Write a model of a chain of nodes that is an rms norm."""
    nodes, constants = list_rms(eps)
    return write_model(path, nodes, TOKENS, constants, 13)


def list_rms(eps=1e-6):
    constants = {"two": np.float32(2), "eps": np.float32(eps), "g": G}
    return [
        node("Pow", "x two", "s"), node("ReduceMean", "s", "m", axes=[-1]), node("Add", "m eps", "v"),
        node("Sqrt", "v", "r"), node("Reciprocal", "r", "i"), node("Mul", "x i", "n"), node("Mul", "g n", "y"),
    ], constants  # fmt: skip


LN_CHAIN = [
    node("ReduceMean", "x", "m", axes=[-1]), node("Sub", "x m", "d"), node("Mul", "d d", "s"),
    node("ReduceMean", "s", "w", axes=[-1]), node("Add", "w eps", "v"), node("Sqrt", "v", "r"),
    node("Div", "d r", "n"), node("Mul", "n g", "t"), node("Add", "t b", "y"),
]  # fmt: skip


def list_lp(floor, length):
    """As torch's F.normalize is exported."""
    return [
        node(length, "x", "l", axes=[-1], keepdims=1), node(floor, "l eps", "f"), node("Shape", "x", "shape"),
        node("Expand", "f shape", "e"), node("Div", "x e", "y"),
    ]  # fmt: skip


@pytest.mark.all_tried
@pytest.mark.parametrize(
    ("norm", "nodes", "shape", "opset"),
    [
        pytest.param("ln", [node("LayerNormalization", "x g b", axis=-1, epsilon=1e-3)], TOKENS, 17, id="ln"),
        pytest.param("ln", [node("LayerNormalization", "x h", axis=1)], TOKENS, 17, id="ln of two axes"),
        pytest.param("bn", [node("BatchNormalization", "x g b mean var", epsilon=1e-3)], IMAGES, 15, id="bn"),
        pytest.param("in", [node("InstanceNormalization", "x g b")], IMAGES, 18, id="in"),
        pytest.param("gn", [node("GroupNormalization", "x g b", num_groups=3)], IMAGES, 21, id="gn"),
        pytest.param("lp", [node("LpNormalization", "x", axis=-1, p=1)], TOKENS, 18, id="lp"),
        pytest.param("mvn", [node("MeanVarianceNormalization", "x")], IMAGES, 13, id="mvn"),
        pytest.param("lrn", [node("LRN", "x", size=3, alpha=0.01)], IMAGES, 18, id="lrn"),
        pytest.param(
            "rms", [node("SimplifiedLayerNormalization", "x g", axis=-1)], TOKENS, 17, id="simplified"
        ),
        pytest.param("rms", list_rms()[0], TOKENS, 13, id="chain of rms"),
        pytest.param("ln", LN_CHAIN, TOKENS, 13, id="chain of ln"),
        pytest.param("lp", list_lp("Clip", "ReduceL2"), TOKENS, 17, id="chain of l2"),
        pytest.param("lp", list_lp("Max", "ReduceL1"), TOKENS, 17, id="chain of l1"),
    ],
)
def test_a_norm_of_a_graph(tmp_path, norm, nodes, shape, opset):
    constants = {"g": G, "b": B, "mean": MEAN, "var": VAR, "h": np.ones((5, C), np.float32)} | list_rms()[1]
    used = {name for one in nodes for name in one.input}
    held = {name: array for name, array in constants.items() if name in used}
    told = audit(write_model(tmp_path / "m.onnx", nodes, shape, held, opset))
    assert told.ok, str(told)
    assert [one["norm"] for one in told.data()["layers"]] == [norm]


def test_the_sum_that_a_fused_node_normalizes(tmp_path):
    fused = node("SkipLayerNormalization", "x s g b", domain="com.microsoft")
    nodes = [node("Neg", "x", "r"), node("Abs", "r", "s"), fused]
    told = audit(write_model(tmp_path / "m.onnx", nodes, TOKENS, {"g": G, "b": B}, 17))
    assert told.ok, str(told)
    assert told.data()["layers"][0]["kind"] == "SkipLayerNormalization"


def test_a_chain_that_is_wrong_is_judged_by_its_own_numbers(tmp_path):
    one, two = write_rms(tmp_path / "one.onnx"), write_rms(tmp_path / "two.onnx", eps=1e-2)
    told = audit(one, against=two, seed=4)
    assert (told.ok, told.data()["first"]) == (False, "n/Mul")


def test_norms_have_the_names_of_the_modules_of_torch_and_are_compared_with_a_dump_of_them(tmp_path):
    torch = pytest.importorskip("torch")
    nodes = [
        node("LayerNormalization", "x a.norm.weight a.norm.bias", "s", "node_layer_norm"),
        node("LayerNormalization", "s b b", "t", "/b/b.0/norm/LayerNormalization"),
        node("LayerNormalization", "t a.norm.weight a.norm.bias", "y", "/a/norm_1/LayerNormalization"),
    ]
    weights = {"a.norm.weight": G, "a.norm.bias": B, "b": B}
    path, x = (
        write_model(tmp_path / "m.onnx", nodes, TOKENS, weights),
        RNG.normal(size=TOKENS).astype(np.float32),
    )
    np.savez(tmp_path / "x.npz", x=x)
    model = torch.nn.ModuleDict({"a": torch.nn.ModuleDict({"norm": torch.nn.LayerNorm(C)})})
    model["b"] = torch.nn.Sequential(torch.nn.ModuleDict({"norm": torch.nn.LayerNorm(C)}))
    a, b = model["a"]["norm"], model["b"][0]["norm"]
    for module, (gamma, beta) in ((a, (G, B)), (b, (B, B))):
        module.load_state_dict({"weight": torch.tensor(gamma), "bias": torch.tensor(beta)})

    def compare():
        with record(model, tmp_path / "t.safetensors"), torch.no_grad():
            a(b(a(torch.tensor(x))))
        return audit(path, inputs=tmp_path / "x.npz", against=tmp_path / "t.safetensors")

    told = compare()
    assert told.ok, str(told)
    assert [one["name"] for one in told.data()["layers"]] == ["a.norm", "b.0.norm", "a.norm#2"]
    b.eps = 1e-3
    assert compare().data()["layers"][1]["differences"] == ["eps is 0.001, not 1e-05"]


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        pytest.param("gone.onnx", 3, "gone.onnx: there is no such file", id="gone"),
        pytest.param("bad.onnx", 3, "bad.onnx is no readable ONNX model", id="damaged"),
        pytest.param("none.onnx", 3, "none.onnx holds no norm that is known", id="no norm"),
        pytest.param("m.onnx -i y.npz", 2, "y.npz has no x; the model takes x", id="no such input"),
        pytest.param("m.onnx -i wide.npz", 3, "m.onnx cannot be run: ", id="other rank"),
        pytest.param(
            "huge.onnx", 3, "huge.onnx: its input x of the shape (1099511627776, 3) needs 2.46", id="huge"
        ),
        pytest.param("run -i y.npz", 2, "--inputs are of an ONNX model; a dump has its own", id="no model"),
    ],
)
def test_refusals(normcli, tmp_path, monkeypatch, line, code, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.onnx").write_bytes(b"no model")
    write_model("none.onnx", [node("Neg", "x")], TOKENS)
    write_rms("m.onnx")
    write_model("huge.onnx", [node("LayerNormalization", "x g b")], (2**40, 3), {"g": G, "b": B}, 17)
    np.savez("y.npz", y=np.ones(3))
    np.savez("wide.npz", x=np.ones((2, 2), np.float32))
    ran = normcli("audit", *line.split())
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (code, "", 1)
    assert ran.err.startswith(f"normcli: {message}")


@pytest.mark.parametrize("verb", ["audit", "fold --checkpoint"])
@pytest.mark.parametrize("name", [b"y/Mul", b"\n\x01s"])
def test_a_name_that_is_no_text_is_damage(verb, name, normcli, tmp_path):
    """Cases 3000550, 3003373 and 3005328 of the fuzzer: names of nodes and tensors with a byte changed."""
    path = tmp_path / "m.onnx"
    write_rms(path)
    assert name in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(name, name[:-1] + b"\xb2"))
    ran = normcli(*verb.split(), path)
    assert (ran.code, ran.out, ran.err.count("\n")) == (3, "", 1)
    assert "is no readable ONNX model" in ran.err


def test_an_input_of_no_dtype_that_onnx_has(tmp_path):
    """Case 3018073 of the fuzzer."""
    model = onnx.load(write_rms(tmp_path / "m.onnx"))
    model.graph.input[0].type.tensor_type.elem_type = 65
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(NormError, match="the input x is of object, which is not drawn; give --inputs"):
        audit(tmp_path / "m.onnx")


def test_weights_in_files_of_their_own(tmp_path, monkeypatch):
    model = onnx.load(write_rms(tmp_path / "m.onnx"))
    monkeypatch.chdir(tmp_path)
    onnx.save_model(model, "m.onnx", save_as_external_data=True, location="weights", size_threshold=0)
    assert (tmp_path / "weights").exists()
    assert audit("m.onnx").ok


def test_large_outputs_lie_in_files(tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr(onnx_run, "make_scratch", lambda *of: made.append(make_scratch(*of)) or made[-1])
    monkeypatch.setattr(spool, "SMALLEST_SCRATCH", 0)
    assert audit(write_rms(tmp_path / "m.onnx")).ok
    assert [(one.shape, type(one)) for one in made] == [(TOKENS, Mapped)]


def test_an_output_whose_shape_nobody_knows_before(tmp_path):
    nodes = [node("Compress", "x m", "s", axis=0), node("LayerNormalization", "s g b")]
    held = {"m": np.array([True, False]), "g": G, "b": B}
    told = audit(write_model(tmp_path / "m.onnx", nodes, TOKENS, held, 17))
    assert (told.ok, told.data()["layers"][0]["shape"]) == (True, [1, 5, C])
