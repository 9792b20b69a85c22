"""Every norm as code of every framework, run and held against the calculation."""

from __future__ import annotations

import contextlib
import io
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from normcli import NORMS
from normcli.codegen.arrays import FRAMEWORKS
from normcli.codegen.model import write_model
from normcli.codegen.module import write_module
from normcli.codegen.task import NamedTensor, Task
from normcli.errors import UsageError
from normcli.norms.calls import CALLS
from normcli.norms.request import Request
from normcli.numerics.elements.activation import Activation
from normcli.numerics.statistics.solution import Given
from normcli.results.calculate import calculate
from normcli.results.given_inputs import fit_inputs
from normcli.results.surroundings import GateOrder
from normcli.tensors.random.generate import generate
from normcli.tensors.random.recipe import Recipe
from tests.conftest import plan_request, require_refusal

SHAPE = (2, 4, 3, 6)

VARIANTS = {
    "bn": [{}, {"layout": "NHWC"}, {"ddof": 1}, {"axes": (2, 3)}, {"eps_mode": "outside"}, {"eps": 0.0}],
    "ln": [{}, {"axes": (0, 1)}, {"ddof": 1, "dtype": "float16"}, {"feature_axes": (1,)}],
    "in": [{}, {"layout": "NHWC"}],
    "gn": [
        {"groups": 2, **more}
        for more in ({}, {"layout": "NHWC"}, {"group_order": "interleaved"}, {"like": "onnx-18"})
    ],
    "rms": [{}, {"axes": (1, 2)}, {"like": "gemma"}, {"dtype": "float16"}],
    "lp": [
        *({"p": p} for p in (2.0, 1.0, 3.0, 0.0, float("inf"), float("-inf"))),
        {"like": "tensorflow", "axes": (1,)},
        {"axes": (), "p": 0.5},
        {"p": float("-inf"), "dtype": "float16"},
    ],
    "wn": [{}, {"keep": (1,)}, {"like": "flax-nnx"}],
    "lrn": [{}, {"size": 4}, {"like": "torch", "size": 4}, {"size": 3, "layout": "NHWC"}],
    "robust": [{}, {"axes": ()}, {"quantiles": (10.0, 100.0)}, {"no_mean": True, "no_scale": True}],
    "zscore": [{}, {"like": "keras"}, {"like": "sklearn"}, {"no_mean": True}],
    "mvn": [{}, {"dtype": "float16"}],
    "minmax": [{}, {"range": (-1.0, 3.0), "dtype": "float32"}],
    "sn": [
        {},
        {"u": (1.0, -0.5), "iterations": 3},
        {"v": (1.0, *[-0.5] * 35), "rows": (1,), "iterations": 2},
        {"u": (1.0, 0.5, 2.0), "axes": (1, 2, 3), "rows": (2,)},
        {"u": (-1.0, -0.5, -2.0), "v": (1.0, *[0.25] * 47), "rows": (2,)},
        {"v": (1.0, 0.5, 2.0), "rows": (0, 1, 3), "iterations": 2},
    ],
}
"""Options that frameworks express, and that they do not."""


def make_task(norm, options=None, *, affine=True, evaluation=False, shape=SHAPE):
    """Return a task, and what the calculation makes of it."""
    recipe = Recipe(shape, dist="normal")
    x = generate(recipe).values
    plan = plan_request(Request(norm, **(options or {})), x)
    rng = np.random.default_rng(0)
    parameters = {name: rng.normal(size=plan.parameters.shape) for name in plan.norm.parameter_names if affine}
    lengths = plan.grid.running.stats_shape
    running = Given(rng.normal(size=lengths), rng.uniform(1, 2, size=lengths)) if evaluation else None
    inputs = fit_inputs(plan, x, parameters, running)
    others = (NamedTensor(name, values) for name, values in inputs.parameters.items())
    return Task(plan, inputs, [NamedTensor("x", x, recipe=recipe), *others]), calculate(
        plan, x, inputs
    ).normalized


def make_cases():
    for norm in NORMS:
        for options in VARIANTS.get(norm, [{}]):
            name = "-".join([norm, *(f"{key}={value!s:.20}" for key, value in options.items())])
            yield pytest.param(norm, options, False, id=name)
    for norm in (norm for norm, row in NORMS.items() if row.tracks):
        yield pytest.param(norm, {}, True, id=f"{norm}-eval")


CASES = list(make_cases())


def run_module(text):
    """Return what a module prints, when it is run as a program."""
    assert "print(normalize(" in text
    namespace = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(text.replace("print(normalize(", "print(printed := normalize("), namespace)
    if "jax_enable_x64" in text:  # which would stay on for the tests behind
        namespace["jax"].config.update("jax_enable_x64", val=False)
    return namespace["printed"]


@pytest.fixture
def run_with(monkeypatch):
    """Return a function that runs a module of a framework, which is skipped where that is not installed."""
    monkeypatch.setenv("KERAS_BACKEND", "torch")

    def run(framework, text):
        made = run_module(text)
        return pytest.importorskip("keras").ops.convert_to_numpy(made) if framework == "keras" else made

    return run


def assert_near(made, expected, tolerance):
    made = np.asarray(made)
    assert (made.dtype, made.shape) == (expected.dtype, expected.shape)
    tolerance = 0.02 if expected.dtype.itemsize == 2 else tolerance
    np.testing.assert_allclose(made.astype(float), expected.astype(float), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("norm", "options", "evaluation"), CASES)
def test_numpy_by_hand(norm, options, evaluation):
    for affine in (False, True):
        task, expected = make_task(norm, options, affine=affine, evaluation=evaluation)
        assert_near(run_module(write_module(task, "numpy")), expected, 1e-12)


TOLERANCES = {"torch": 1e-11, "keras": 1e-4, "flax": 1e-11, "tensorflow": 1e-11}
"""Keras takes means of float64 in float32, and powers multiply what they lose."""


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("norm", "options", "evaluation"), CASES)
@pytest.mark.parametrize("framework", [name for name in FRAMEWORKS if name != "numpy"])
def test_frameworks(framework, norm, options, evaluation, run_with):
    pytest.importorskip(framework)
    task, expected = make_task(norm, options, evaluation=evaluation)
    assert_near(run_with(framework, write_module(task, framework)), expected, TOLERANCES[framework])


@pytest.mark.peers
@pytest.mark.parametrize(
    ("norm", "options", "evaluation"),
    # which torch's CPU kernel does not take
    [*(case for case in CASES if case.values[0] != "sn"), pytest.param("lrn", {"dtype": "float16"}, False, id="lrn-float16")],
)  # fmt: skip
def test_models(norm, options, evaluation):
    onnx = pytest.importorskip("onnx")
    from onnx.reference import ReferenceEvaluator

    if options.get("p") == 1.0:
        pytest.skip("the reference evaluator sums without absolute values (onnx/onnx#8427)")
    # As many samples as channels, wherever these are: its windows take one for the other (onnx/onnx#7805).
    task, expected = make_task(norm, options, evaluation=evaluation, shape=(6, 6, 3, 6))
    model = onnx.load_from_string(write_model(task))
    x = task.sources[0].values.astype(expected.dtype)
    assert_near(ReferenceEvaluator(model).run(None, {"x": x})[0], expected, 1e-6)  # attributes are float32


@pytest.mark.peers
def test_no_model_of_singular_values():
    pytest.importorskip("onnx")
    with pytest.raises(UsageError, match="ONNX has no operator for power iterations"):
        write_model(make_task("sn", {"u": (1.0, 2.0)})[0])
    with pytest.raises(UsageError, match="ONNX has no operator for the singular values of a matrix"):
        write_model(make_task("sn", {})[0])


@pytest.mark.peers
@pytest.mark.parametrize(
    ("norm", "options", "shape", "operator", "reason"),
    [
        pytest.param("bn", {}, SHAPE, "BatchNormalization", "cannot express training", id="bn"),
        pytest.param("in", {"axes": (), "layout": "NC"}, (3, 5), "InstanceNormalization", "2 axes", id="in"),
        pytest.param("lrn", {"size": 3}, (2, 5), "LRN", "2 axes", id="lrn-rank"),
        pytest.param("lrn", {"size": 4}, SHAPE, "LRN", "windows are odd", id="lrn"),
        pytest.param("mvn", {"dtype": "float32"}, SHAPE, "MeanVariance", "gives nan", id="mvn"),
    ],
)
def test_models_leave_operators_that_the_runtime_has_otherwise(norm, options, shape, operator, reason):
    onnx = pytest.importorskip("onnx")
    model = onnx.load_from_string(write_model(make_task(norm, options, shape=shape)[0]))
    assert not any(node.op_type.startswith(operator) for node in model.graph.node)
    assert reason in model.doc_string


@pytest.mark.peers
def test_models_say_that_they_have_no_operator():
    onnx = pytest.importorskip("onnx")
    model = onnx.load_from_string(write_model(make_task("ws")[0]))
    assert model.doc_string == "By hand: ONNX has no call for weight standardization."


def assert_formatted(folder):
    """Require that ruff would leave the modules of a folder as they are."""
    ruff = shutil.which("ruff") or pytest.skip("ruff is of the extra [lint]")
    done = subprocess.run(
        [ruff, "format", "--diff", "--isolated", "--line-length=100", folder], capture_output=True
    )
    assert done.returncode == 0, done.stdout.decode()[:2000]


def test_emitted_code_is_formatted(tmp_path):
    for case in CASES[::3]:
        norm, options, evaluation = case.values
        task, _ = make_task(norm, options, evaluation=evaluation)
        for framework in FRAMEWORKS:
            (tmp_path / f"{framework}_{case.id}.py").write_text(write_module(task, framework))
    assert_formatted(tmp_path)


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("framework", "norm", "options", "expected"),
    [
        pytest.param("torch", "bn", {}, "Calls torch.nn.functional.batch_norm", id="own call"),
        pytest.param("torch", "bn", {"ddof": 1}, "cannot express ddof 1: it has 0", id="ddof"),
        pytest.param("flax", "ws", {}, "Flax has no call for weight standardization", id="no call"),
        pytest.param("tensorflow", "lrn", {"layout": "NHWC"}, "cannot express float64", id="dtype"),
        pytest.param(
            "torch", "lrn", {"size": 3}, "Calls torch.nn.functional.local_response_norm", id="own window"
        ),
        pytest.param("torch", "lrn", {"size": 4}, "1 channels before and 2 after", id="window"),
    ],
)
def test_modules_say_what_is_called_or_why_not(framework, norm, options, expected):
    text = " ".join(write_module(make_task(norm, options)[0], framework).split())
    assert expected in text


def test_modules_say_what_a_range_and_0_by_0_are():
    minmax = make_task("minmax", {"range": (-1.0, 1.0)}, affine=False)[0]
    assert "x_hat is brought into the range -1 to 1" in " ".join(write_module(minmax, "numpy").split())
    assert "gamma" not in write_module(minmax, "flax")
    assert "for 0/0" in " ".join(write_module(make_task("rms", {"eps": 0.0})[0], "torch").split())
    assert "0/0" not in write_module(make_task("rms", {})[0], "torch")


def test_every_call_follows_a_convention():
    assert {framework for framework, _ in CALLS} == {*FRAMEWORKS, "onnx"} - {"numpy"}
    for (_, norm), call in CALLS.items():
        assert call.convention.version
        assert call.source
        assert norm in NORMS


def test_code_runs_as_a_program(normcli, tmp_path):
    out = tmp_path / "normalize.py"
    assert normcli("bn", "--shape", "2,3,4,4", "--emit", "numpy", "-o", out).out == ""
    ran = subprocess.run([sys.executable, out], capture_output=True, check=True)
    y = normcli("bn", "--shape", "2,3,4,4", "--print", "y").lines
    first = ran.stdout.replace(b"[", b" ").split()[0]
    assert float(first) == pytest.approx(float(y[0]), abs=1e-7)


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("suffix", "load"),
    [
        ("npy", 'np.load("x.npy")'),
        ("npz:x", 'np.load("x.npz")["x"]'),
        ("csv", 'np.genfromtxt("x.csv"'),
        ("tsv", "np.array(X)"),  # a point that NumPy does not take for one
    ],
)
def test_files_are_loaded(suffix, load, normcli, tmp_path, monkeypatch, rng):
    monkeypatch.chdir(tmp_path)
    x = rng.normal(size=(4, 3))
    np.save("x.npy", x)
    np.savez("x.npz", x=x)
    np.savetxt("x.csv", x, delimiter=",", fmt="%.17g")
    Path("x.tsv").write_text("\n".join("\t".join(f"{v:.17g}".replace(".", ",") for v in row) for row in x))
    table = ["--decimal", ","] if suffix == "tsv" else []
    text = normcli("zscore", f"x.{suffix}", *table, "--emit", "numpy", "-q").out
    assert load in text
    made = run_module(text)
    np.testing.assert_allclose(made, (x - x.mean(0)) / x.std(0), rtol=1e-12)


def test_parameters_are_constants(normcli):
    asked = ("ln", "--data", "[[1, 2, 4]]", "--gamma", "2", "--beta", "1,2,3")
    made = run_module(normcli(*asked, "--emit", "numpy").out)
    np.testing.assert_allclose(made, [[*map(float, normcli(*asked, "--print", "y").lines)]], rtol=1e-12)


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bn", "--shape", "2,3", "--emit", "numpy", "--print", "mean"], "leave out --print"),
        (["bn", "--shape", "2,3", "--emit", "numpy", "-o", "x.txt"], ".py is known"),
        (["bn", "--shape", "2,3", "--emit", "onnx"], "-o FILE.onnx"),
        (["ln", "--data", "[[1, 2]]", "--residual", "[[3, 5]]", "--emit", "numpy"], "--residual"),
        (["ln", "--shape", "20,300", "--rng", "torch", "--emit", "numpy"], "6,000 numbers"),
        (
            ["zscore", "--data", "[[1],[2]]", "--mask", "[[1],[0]]", "--emit", "torch"],
            "some of these are left out",
        ),
    ],
)
def test_what_has_no_code_is_refused(arguments, message, normcli):
    require_refusal(normcli(*arguments), 2, message)


GATES = [
    pytest.param(norm, act, order, dtype, id=f"{norm}-{act}-{order}-{dtype}")
    for act in Activation
    for order in GateOrder
    for norm, dtype in (("rms", "float64"), ("ln", "float32"), ("rms", "float16"), ("gn", "float64"))
]


@pytest.fixture
def emit_gated(normcli, tmp_path, monkeypatch):
    """Return a function that emits the code of a gated norm, or saves its model, with x, z and the exact result."""
    monkeypatch.chdir(tmp_path)

    def emit(target, norm, act, order, dtype, *more):
        x, z = np.random.default_rng(7).normal(size=(2, 4, 6)).astype(dtype)
        np.save("x.npy", x)
        np.save("z.npy", z)
        asked = [norm, "-i", "x.npy", "--gate", "z.npy", "--gate-act", act.value, "--gate-order", order.value]
        asked += ["--gamma", "1.5", *(["--groups", "2"] if norm == "gn" else [])]
        ran = normcli(*asked, "--emit", target, *more)
        assert (ran.code, ran.err) == (0, "")
        assert normcli(*asked, "-o", "y.npy", "-q").code == 0
        return ran.out, x, z, np.load("y.npy")

    return emit


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize(("norm", "act", "order", "dtype"), GATES)
def test_a_gate_by_hand(norm, act, order, dtype, emit_gated):
    text, *_, expected = emit_gated("numpy", norm, act, order, dtype)
    factor = "gate" if act is Activation.NONE else f"{act}(gate)"
    said = " ".join(text.split('"""')[1].split()).replace("- ", "-")
    assert f"; {'x' if order is GateOrder.BEFORE else 'y'} is multiplied by {factor}." in said
    assert_near(run_module(text), expected, 1e-12 if dtype == "float64" else 1e-5)


@pytest.mark.peers
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("norm", "act", "order", "dtype"), GATES)
@pytest.mark.parametrize("framework", [name for name in FRAMEWORKS if name != "numpy"])
def test_a_gate_of_frameworks(framework, norm, act, order, dtype, emit_gated, run_with):
    pytest.importorskip(framework)
    text, *_, expected = emit_gated(framework, norm, act, order, dtype)
    assert_near(run_with(framework, text), expected, TOLERANCES[framework] if dtype == "float64" else 1e-4)


@pytest.mark.peers
@pytest.mark.parametrize(("norm", "act", "order", "dtype"), GATES)
def test_a_gate_of_models_is_their_second_input(norm, act, order, dtype, emit_gated):
    onnx = pytest.importorskip("onnx")
    from onnx.reference import ReferenceEvaluator

    _, x, z, expected = emit_gated("onnx", norm, act, order, dtype, "-o", "m.onnx")
    model = onnx.load("m.onnx")
    assert_near(ReferenceEvaluator(model).run(None, {"x": x, "gate": z})[0], expected, 1e-5)


def test_the_code_of_a_gate_is_formatted(emit_gated, tmp_path):
    for case in GATES[::3]:
        for framework in FRAMEWORKS:
            (tmp_path / f"{framework}_{case.id}.py").write_text(emit_gated(framework, *case.values)[0])
    assert_formatted(tmp_path)


@pytest.mark.parametrize("order", GateOrder)
@pytest.mark.parametrize(("kinds", "framework"), [
    pytest.param(kinds, framework, id="-".join((*kinds, framework)), marks=() if framework == "numpy" else pytest.mark.peers)
    for kinds in (("bfloat16", "bfloat16"), ("float32", "bfloat16"), ("bfloat16", "float64"))
    for framework in ("numpy", "torch", "keras", "flax")
])  # fmt: skip
def test_bfloat16_is_read_from_safetensors(order, kinds, framework, normcli, tmp_path, rng, monkeypatch):
    """Run in a new process, in which nothing but the code itself has made NumPy know bfloat16."""
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    pytest.importorskip(framework)
    pytest.importorskip("ml_dtypes")
    numpy = pytest.importorskip("safetensors.numpy")
    x, z = (rng.normal(size=(4, 6)).astype(kind) for kind in kinds)
    file = tmp_path / "s.safetensors"
    numpy.save_file({"x": x, "z": z, "g": np.array([1.5], kinds[1])}, file)
    asked = f"rms -i {file}:x --gate {file}:z --gate-order {order.value} --gamma {file}:g".split()
    out = tmp_path / "code.py"
    assert normcli(*asked, "--emit", framework, "-o", out).err == ""
    assert normcli(*asked, "-o", tmp_path / "y.npy", "--dtype", "float64", "-q").code == 0
    with out.open("a") as code:
        code.write(
            "    y = normalize(x, gate=gate, gamma=gamma)\n"
            "    y = y.detach().float() if hasattr(y, 'detach') else y.astype(np.float32)\n"
            f"    np.save({str(tmp_path / 'made.npy')!r}, y)\n"
        )
    ran = subprocess.run([sys.executable, out], capture_output=True, text=True)
    assert (ran.returncode, "Warning" in ran.stderr) == (0, False), ran.stderr
    tolerance = 0.02 if kinds[0] == "bfloat16" else 1e-4
    np.testing.assert_allclose(
        np.load(tmp_path / "made.npy"), np.load(tmp_path / "y.npy"), tolerance, tolerance
    )
