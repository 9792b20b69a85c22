"""Recorded runs judged: each layer against its norm, the first bad one named, two runs side by side."""

from __future__ import annotations

import json
import os
import re

import numpy as np
import pytest

from normcli import audit, backward, normalize
from normcli.algorithms.row_computation import parse_computation
from normcli.algorithms.row_formula import RowFormula
from normcli.auditing.dump_file import SCHEMA
from normcli.engine.walk import Effort
from normcli.errors import DataError, UsageError
from normcli.fitting.workers import can_fork
from normcli.norms.plan import make_plan
from normcli.norms.request import Request

RNG = np.random.default_rng(11)
X = (RNG.normal(size=(6, 8, 16)) + 3.0).astype(np.float32)
GAMMA = RNG.normal(1.0, 0.3, 16).astype(np.float32)
BETA = RNG.normal(0.0, 0.3, 16).astype(np.float32)
LN = {"norm": "ln", "options": {"axes": [-1], "eps": 1e-5}}


def make_layer(x=X, eps=1e-5, gamma=GAMMA):
    y = normalize(x, "ln", axes=-1, eps=eps, gamma=gamma, beta=BETA).normalized
    return {"input": x, "output": y, "weight": GAMMA, "bias": BETA}


def write(folder, layers, settings=None):
    """Write a dump of layers by name; the settings are those of a layer norm unless others are given."""
    folder.mkdir()
    for name, tensors in layers.items():
        for role, values in tensors.items():
            np.save(folder / f"{name}.{role}.npy", values)
    every = [{"name": name, **LN, **(settings or {}).get(name, {})} for name in layers]
    (folder / "dump.json").write_text(json.dumps({"schema": SCHEMA, "layers": every}))
    return str(folder)


def find(judgement, name):
    return next(one for one in judgement.data()["layers"] if one["name"] == name)


@pytest.mark.slow
def test_the_first_bad_layer_is_named_with_its_cause(tmp_path):
    layers = {"z": make_layer(), "b": make_layer(eps=1e-2), "c": make_layer(gamma=np.roll(GAMMA, 1))}
    told = audit(write(tmp_path / "run", layers))
    assert told.data()["first"] == "b"
    assert (find(told, "b")["fault"], find(told, "c")["fault"]) == ("stats-eps-other", "affine-gamma-rolled")
    assert str(told).splitlines()[-1] == "✗ 2 of 3 layers differ   first bad layer: b"


@pytest.mark.slow
def test_layers_of_a_class_that_all_differ_alike_are_one_line_and_may_be_meant_so(tmp_path):
    layers = {f"layers.{number}.norm": make_layer(eps=1e-2) for number in range(3)}
    kinds = {name: {"kind": "model.MyNorm"} for name in layers}
    lines = str(audit(write(tmp_path / "run", layers, kinds))).splitlines()
    (line,) = (line for line in lines if line.startswith("layers.*.norm (3)"))
    assert line.endswith("✗ eps is 0.01, not 1e-05")
    assert lines[-1] == "  reproduce   record MyNorm as ln:eps=0.01, by also=, if every one is meant so"
    layers["layers.2.norm"] = make_layer()
    assert "also=" not in str(audit(write(tmp_path / "other", layers, kinds)))


def test_what_a_dump_lacks_is_said_and_the_rest_is_judged(tmp_path):
    broken = make_layer()
    del broken["output"]
    told = audit(write(tmp_path / "run", {"a": broken, "b": make_layer()}))
    assert (find(told, "a")["ok"], find(told, "a")["problem"]) == (None, "a.output is missing")
    assert find(told, "b")["ok"]
    assert not told.ok
    assert str(told).splitlines()[-1] == "✗ 1 layer agrees   1 could not be judged"


def test_running_statistics_that_enter_evaluation(tmp_path):
    mean, var = X.mean((0, 1)).astype(np.float32), X.var((0, 1)).astype(np.float32)
    options = {"axes": [0, 1], "eps": 1e-5}
    y = normalize(X, "bn", layout="NLC", running_mean=mean, running_var=var, gamma=GAMMA).normalized
    layer = {"input": X, "output": y, "weight": GAMMA, "running_mean": mean, "running_var": var}
    settings = {"a": {"norm": "bn", "options": {"layout": "NLC"} | options, "evaluation": True}}
    assert audit(write(tmp_path / "run", {"a": layer}, settings)).ok


@pytest.mark.parametrize(
    ("ddof", "ok", "cause"),
    [(1, True, None), (0, False, "running_var differs: the variance that enters is of another ddof: 0, not 1")],
    ids=["unbiased", "biased"],
)
def test_running_statistics_after_a_step(tmp_path, ddof, ok, cause):
    wide = X.astype(np.float64)
    y = normalize(X, "bn", layout="NLC").normalized
    stats = {"running_mean": np.zeros(16), "running_var": np.ones(16)}
    stats["running_mean_after"] = 0.1 * wide.mean((0, 1))
    stats["running_var_after"] = 0.9 + 0.1 * wide.var((0, 1), ddof=ddof)
    settings = {"a": {"norm": "bn", "options": {"layout": "NLC"}, "momentum": 0.1}}
    told = audit(write(tmp_path / "run", {"a": {"input": X, "output": y, **stats}}, settings))
    assert (told.ok, find(told, "a")["cause"]) == (ok, cause)


def test_gradients_are_judged_with_the_output(tmp_path):
    dy = RNG.normal(size=X.shape).astype(np.float32)
    exact = backward(X, dy, "ln", axes=-1, eps=1e-5, gamma=GAMMA, beta=BETA)
    right = make_layer() | {"grad_output": dy, "grad_input": exact.dx, "grad_weight": exact.dgamma}
    told = audit(write(tmp_path / "run", {"a": right, "b": right | {"grad_input": -exact.dx}}))
    assert find(told, "a")["ok"]
    assert set(find(told, "a")["parts"]) == {"output", "grad_input", "grad_weight"}
    assert find(told, "b")["fault"] == "dx-sign"


def test_a_further_call_has_the_weights_of_the_first(tmp_path):
    again = {name: values for name, values in make_layer(X[:2]).items() if name in ("input", "output")}
    settings = {"a#2": {"weights_of": "a"}}
    assert audit(write(tmp_path / "run", {"a": make_layer(), "a#2": again}, settings)).ok


def test_pairs_of_an_archive(tmp_path):
    layer = make_layer()
    for name, roles in (("acts", ("input", "output")), ("w", ("weight", "bias"))):
        np.savez(tmp_path / f"{name}.npz", **{f"h.{n}.{role}": layer[role] for n in "01" for role in roles})
    pairs = f"{tmp_path}/acts.npz:*.input=*.output"
    told = audit(pairs=pairs, weights=tmp_path / "w.npz", norm="ln:axes=-1:eps=1e-5")
    assert [(one["name"], one["ok"]) for one in told.data()["layers"]] == [("h.0", True), ("h.1", True)]
    np.savez(tmp_path / "other.npz", **{"h.0.gamma": layer["weight"], "h.0.beta": layer["bias"]})
    told = audit(pairs=pairs, weights=tmp_path / "other.npz", norm="ln:axes=-1:eps=1e-5", only=["h.0"])
    assert told.ok
    np.savez(tmp_path / "wrong.npz", **{"model.h.0.weight": layer["weight"]})
    with pytest.raises(DataError, match=r"has no h\.0\.weight, nor .*; its first are model\.h\.0\.weight"):
        audit(pairs=pairs, weights=tmp_path / "wrong.npz", norm="ln")


def test_a_norm_that_most_others_in_its_place_do_not_have_is_said(tmp_path):
    layers = {f"h.{n}.norm": make_layer(eps=0.1 if n == 2 else 1e-5) for n in range(4)}
    told = audit(write(tmp_path / "run", layers, {key: {"norm": None, "options": {}} for key in layers}))
    assert told.ok
    assert "another norm   h.2.norm, than most of h.*.norm: is it meant so?" in str(told)


# -- two runs


@pytest.mark.slow
def test_the_page_lists_layers_that_open_their_answers(normcli, tmp_path):
    path = write(tmp_path / "run", {"a": make_layer(), "<b>": make_layer(eps=0.1)})
    ran = normcli("audit", path, "-f", "html")
    assert (ran.code, ran.out.count("<details"), ran.out.count("<rect")) == (1, 2, 2)
    assert ("&lt;b&gt;" in ran.out, "<b>" in ran.out) == (True, False)
    assert "worst value of normalized" in ran.out
    assert normcli("audit", path, "--against", path, "-f", "html").out.count("<details") == 2


@pytest.mark.slow
def test_two_runs_part_where_the_input_agrees_and_the_output_does_not(tmp_path):
    first = {"a": make_layer(), "b": make_layer(X[:3]), "c": make_layer(X[:2])}
    told = compare(tmp_path, first, first | {"b": make_layer(X[:3], eps=1e-2), "c": make_layer(X[1:3])})
    data = told.data()
    assert (told.ok, data["first"]) == (False, "b")
    assert [one["nearer"] for one in data["layers"]] == [None, "first", None]
    assert "✗ both runs part at b" in str(told).splitlines()
    assert "eps is 0.01, not 1e-05" in str(told).splitlines()[-1]
    table = list(told.document.rows())
    assert (table[0][4], table[2][4]) == ("differences", "")
    assert (data["alone"], data["between"]) == ({"first": [], "second": []}, ["b", "c"])


def compare(tmp_path, first, second, **options):
    """Compare two runs of layers."""
    return audit(write(tmp_path / "one", first), against=write(tmp_path / "two", second), **options)


def test_runs_that_differ_before_any_norm(tmp_path):
    told = compare(tmp_path, {"a": make_layer()}, {"a": make_layer(X[::-1].copy())})
    assert (told.ok, told.data()["first"]) == (False, None)
    assert "✗ both runs differ, at no norm whose input agrees" in str(told)


def test_layers_of_one_run_alone_are_a_difference(tmp_path):
    told = compare(tmp_path, {"a": make_layer(), "b": make_layer()}, {"a": make_layer()})
    assert (told.ok, told.data()["alone"]) == (False, {"first": ["b"], "second": []})
    assert str(told).splitlines()[-1].split() == ["only", "in", "the", "first:", "b"]


# -- the command line


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        pytest.param([], 2, "audit takes a DUMP, or --pairs FILE:*.input=*.output; give one of them", id="nothing"),
        pytest.param(["a.onnx", "--weights", "w"], 2, "--weights are of a dump or of --pairs; an ONNX model has its own", id="weights"),
        pytest.param(["--pairs", "x.npz:a=b"], 2, "--pairs x.npz:a=b: that is no FILE:*.input=*.output, with one * in each name", id="stars"),
        pytest.param(["run", "--only", "z"], 2, "--only and --skip leave none of 1 layers; the first are a", id="none left"),
        pytest.param(["gone.safetensors"], 3, "gone.safetensors: there is no such file", id="no file"),
        pytest.param(["empty"], 3, "empty: no tensor is called NAME.input; --pairs says which tensors go together", id="empty"),
        pytest.param(["bad"], 3, "bad: the settings of its layers are not valid JSON", id="no JSON"),
        pytest.param(["old"], 3, "old: the settings of its layers are not of normcli-dump/1", id="other schema"),
        pytest.param(["twice"], 3, "twice: it lists the layer a twice", id="twice"),
        pytest.param(["kind"], 3, "kind: options of a is 3", id="kind of a member"),
        pytest.param(["run", "--norm", "nix"], 2, "there is no norm 'nix'", id="no norm"),
    ],
)  # fmt: skip
def test_refusals(normcli, tmp_path, monkeypatch, arguments, code, message):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "run", {"a": make_layer()})
    (tmp_path / "empty").mkdir()
    layers = {"twice": [{"name": "a"}] * 2, "kind": [{"name": "a", "options": 3}]}
    texts = {"bad": "{", "old": '{"schema": "other/1"}'}
    texts |= {name: json.dumps({"schema": SCHEMA, "layers": every}) for name, every in layers.items()}
    for name, text in texts.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "dump.json").write_text(text)
    ran = normcli("audit", *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.splitlines()[-1].startswith(f"normcli: {message}")


# -- dumps that are wrong in themselves

BN = {"norm": "bn", "options": {"layout": "NLC"}}
STATE = dict.fromkeys(("running_mean", "running_var", "running_mean_after", "running_var_after"), np.ones(16))


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("tensors", "settings", "problem"),
    [
        pytest.param({"running_mean_after": np.ones(3)}, {"momentum": 0.1}, "running_mean_after has", id="after"),
        pytest.param({"running_var": np.ones((2, 2))}, {"momentum": 0.1}, "running_var has", id="before"),
        pytest.param({"running_var": -np.ones(16)}, {"evaluation": True}, "running_var is negative", id="negative"),
        pytest.param({"running_mean": None}, {"evaluation": True}, "the running statistics of evaluation", id="none"),
        pytest.param({"weight": np.ones(3)}, {}, "gamma has the shape (3,)", id="weight"),
        pytest.param({"output": X[:2]}, {}, "the shape is (2, 8, 16)", id="output"),
        pytest.param({}, {"norm": "nix"}, "there is no norm 'nix'", id="no norm"),
        pytest.param({}, {"options": {"eps": "x"}}, "a: eps takes a number, not 'x'", id="eps"),
        pytest.param({}, {"options": {"eps": -1}}, "eps -1.0 is", id="eps below 0"),
        pytest.param({}, {"options": {"axes": [7]}}, "axes", id="no such axis"),
        pytest.param({"bias": np.ones((2, 3, 4, 5))}, {"norm": None, "options": {}}, "its weight or bias has", id="rank"),
        pytest.param({}, {"problem": "Gated is no norm"}, "Gated is no norm", id="said so"),
    ],
)  # fmt: skip
def test_a_layer_that_cannot_be_judged_says_why(tmp_path, tensors, settings, problem):
    y = normalize(X, "bn", layout="NLC").normalized
    layer = {"input": X, "output": y, **STATE, **tensors}
    layer = {role: values for role, values in layer.items() if values is not None}
    told = audit(write(tmp_path / "run", {"a": layer}, {"a": BN | settings}))
    assert find(told, "a")["ok"] is None
    assert find(told, "a")["problem"].startswith(problem)
    assert str(told).splitlines()[-1] == "✗ 1 could not be judged"


@pytest.mark.all_quick
@pytest.mark.parametrize(
    "member",
    [
        {"momentum": np.nan}, {"momentum": 5}, {"momentum": True}, {"momentum": "x"}, {"batches": -1},
        {"options": {"axes": [np.nan]}}, {"name": ""}, {"evaluation": 1},
    ],
    ids=str,
)  # fmt: skip
def test_settings_that_are_refused(tmp_path, member):
    with pytest.raises(DataError):
        audit(write(tmp_path / "run", {"a": make_layer()}, {"a": member}))


def test_what_is_no_file_is_not_waited_for(tmp_path):
    run = tmp_path / "run"
    write(run, {"a": make_layer()})
    os.mkfifo(run / "b.input.npy")
    os.mkfifo(tmp_path / "x.safetensors")
    assert audit(run).ok
    (run / "dump.json").unlink()
    os.mkfifo(run / "dump.json")
    for path in (tmp_path / "x.safetensors", run):
        with pytest.raises(DataError):
            audit(path)


def test_a_dump_that_is_cut_short_is_refused_whole(tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    path = tmp_path / "d.safetensors"
    safetensors.save_file({f"a.{role}": values for role, values in make_layer().items()}, path)
    assert audit(path, norm="ln:axes=-1").ok
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError):
        audit(path)


@pytest.mark.slow
def test_names_of_pairs_are_no_patterns_but_for_the_star(tmp_path):
    layer = make_layer()
    np.savez(tmp_path / "a.npz", **{f"[l]0.{role}": layer[role] for role in ("input", "output")})
    told = audit(pairs=f"{tmp_path}/a.npz:[l]*.input=[l]*.output")
    assert [one["name"] for one in told.data()["layers"]] == ["0"]
    with pytest.raises(DataError, match=r"has no 0\.weight, nor one of another layer"):
        audit(pairs=f"{tmp_path}/a.npz:[l]*.input=[l]*.output", weights=tmp_path / "a.npz")


@pytest.mark.slow
def test_runs_of_two_dtypes_are_compared_in_the_shorter(tmp_path):
    half = {role: values.astype(np.float16) for role, values in make_layer().items()}
    for number, runs in enumerate((({"a": make_layer()}, {"a": half}), ({"a": half}, {"a": make_layer()}))):
        (tmp_path / str(number)).mkdir()
        assert compare(tmp_path / str(number), *runs).data()["layers"][0]["output"]["ok"]


def test_runs_without_a_name_in_common_are_paired_in_their_order(tmp_path, normcli):
    def write_run(name, *layers, norm="ln"):
        settings = {layer: {"norm": norm, "options": {"eps": 1e-5}} for layer in layers}
        return write(tmp_path / name, {layer: make_layer() for layer in layers}, settings)

    one, two = write_run("one", "a", "b"), write_run("two", "m.a", "m.b")
    ran = normcli("audit", one, "--against", two)
    assert (ran.code, ran.lines[3]) == (0, "paired  in their order, as no name is in both")
    assert audit(one, against=two).data()["by_order"]
    for other, place in (
        (write_run("three", "c"), "b (ln) and nothing"),
        (write_run("four", "c", "d", norm="rms"), "a (ln) and c (rms)"),
    ):
        with pytest.raises(DataError, match=f"in their order {re.escape(place)} are no pair: leave out"):
            audit(one, against=other)


@pytest.mark.parametrize(
    ("eps", "options", "told"),
    [
        pytest.param(
            1e-5, {}, (None, "y has a gamma or beta that is not recorded: give --weights"), id="right"
        ),
        pytest.param(
            1e-2, {}, (False, "ln differs: eps is 0.01, not 1e-05; y has a fitted gamma and beta"), id="eps"
        ),
        pytest.param(1e-5, {"weights": "w.npz"}, (True, None), id="with weights"),
    ],
)
def test_a_run_without_weights_shows_no_gamma_to_be_wrong(tmp_path, monkeypatch, eps, options, told):
    monkeypatch.chdir(tmp_path)
    layer = make_layer(eps=eps)
    np.savez("w.npz", **{f"a.{role}": layer.pop(role) for role in ("weight", "bias")})
    found = find(audit(write(tmp_path / "run", {"a": layer}), **options), "a")
    assert (found["ok"], found["cause"] or found["problem"]) == told


def test_a_run_without_weights_is_judged_with_those_of_the_other(tmp_path):
    full, bare = ({"a": make_layer(), "b": make_layer(eps=eps)} for eps in (1e-5, 1e-2))
    for layer in bare.values():
        del layer["weight"], layer["bias"]
    told = audit(write(tmp_path / "full", full), against=write(tmp_path / "bare", bare))
    assert (told.data()["without_weights"], told.data()["first"]) == (["second"], "b")
    lines = str(told).splitlines()
    assert lines[3] == "weights  the second run has none, and is judged with the other's"
    assert lines[-2:] == ["✗ both runs part at b", "  the second   eps is 0.01, not 1e-05"]


FULL = {
    "norm": "ln",
    "options": {"axes": [-1], "eps": 1e-5, "like": "torch", "layout": "NLC"},
    "kind": "LayerNorm",
}


@pytest.mark.parametrize(
    ("settings", "differs"),
    [
        pytest.param(None, [], id="unset"),
        pytest.param({"norm": "ln", "options": {}}, [], id="implied"),
        pytest.param({"norm": "layernorm", "options": {"axes": 2, "eps": "1e-5", "ddof": 0}}, [], id="spelled"),
        pytest.param({"norm": "ln", "options": {"eps": 1e-6}}, ["eps"], id="eps"),
        pytest.param({"norm": "ln", "options": {"axes": [1, 2]}}, ["axes"], id="axes"),
        pytest.param({"norm": "rms", "options": {"eps": 1e-5}}, ["norm"], id="norm"),
        pytest.param({"norm": "ln", "options": {"axes": 7}}, ["norm"], id="no such axis"),
    ],
)
def test_settings_of_two_runs_are_compared_as_they_are_resolved(tmp_path, settings, differs):
    full = write(tmp_path / "full", {"a": make_layer()}, {"a": FULL})
    other = write(tmp_path / "other", {"a": make_layer()}, settings and {"a": settings})
    if settings is None:
        (tmp_path / "other" / "dump.json").unlink()
    for runs in ((full, other), (other, full)):
        told = audit(runs[0], against=runs[1])
        assert [words.split()[0] for words in told.data()["layers"][0]["differences"]][:1] == differs
        assert told.ok is (not differs)


def test_layers_that_differ_in_shape_are_told(tmp_path):
    wide = make_layer(np.concatenate([X, X]))
    told = compare(tmp_path, {"a": make_layer()}, {"a": wide})
    assert f"a   its input is {wide['input'].shape}, not {X.shape}; its output is" in str(told)


class Watcher:
    """An observer that keeps what it is told."""

    def __init__(self):
        self.expected, self.done = [], []

    def expect(self, byte_count):
        self.expected.append(byte_count)

    def advance(self, byte_count):
        self.done.append(byte_count)


@pytest.mark.parametrize("is_compared", [False, True], ids=["one run", "two runs"])
def test_progress_goes_layer_by_layer(tmp_path, is_compared):
    run, watcher = write(tmp_path / "run", {name: make_layer() for name in "abc"}), Watcher()
    audit(run, against=run if is_compared else None, effort=Effort(observer=watcher))
    assert len(watcher.done) == 3
    assert watcher.expected == [sum(watcher.done)]


@pytest.mark.slow
@pytest.mark.skipif(not can_fork(), reason="processes are forked")
@pytest.mark.parametrize("is_compared", [False, True], ids=["one run", "two runs"])
def test_two_processes_say_what_one_says(tmp_path, monkeypatch, is_compared):
    layers = {name: make_layer(eps=1e-2 if name == "c" else 1e-5) for name in "abc"}
    path = write(tmp_path / "run", layers, {"b": {"norm": None, "options": {}}})
    other = write(tmp_path / "other", dict.fromkeys("abc", make_layer())) if is_compared else None
    alone = audit(path, against=other, effort=Effort(threads=1))
    monkeypatch.setattr("normcli.auditing.audit.MUCH", 1)
    shared = audit(path, against=other, effort=Effort(threads=2))
    assert (str(shared), shared.data()) == (str(alone), alone.data())


def compute(computation):
    formula = RowFormula.of(make_plan(Request("ln", axes=-1), X.shape, X.dtype))
    y = parse_computation(computation).run(X.reshape(-1, 16), formula, X.dtype)
    return {"input": X, "output": y.reshape(X.shape)}


@pytest.mark.slow
def test_where_runs_part_the_computation_of_each_is_named(tmp_path):
    runs = ({"a": compute(name)} for name in ("pairwise:float32", "one-pass:float32"))
    told = compare(tmp_path, *runs, max_ulp=1)
    names = told.data()["layers"][0]["algorithms"]
    assert names[1] == "one-pass:float32" != names[0]
    assert "the second   one-pass:float32 gives every bit" in str(told)
    assert "the variance is E[x²] − E[x]²" in str(told)


def test_runs_that_are_off_alike_are_both_blamed(tmp_path):
    """Both lost gamma; one of them rounds it otherwise."""
    wrong = {**make_layer(), "output": normalize(X, "ln", axes=-1).normalized}
    other = {**wrong, "output": np.nextafter(wrong["output"], np.float32(9))}
    told = compare(tmp_path, {"a": wrong}, {"a": other}, max_ulp=0.5)
    assert told.data()["layers"][0]["nearer"] is None
    assert "the first and the second   gamma and beta are not applied" in str(told)


def test_an_output_of_another_shape_is_the_difference(tmp_path):
    told = compare(tmp_path, {"a": make_layer()}, {"a": {**make_layer(), "output": X[:2]}})
    assert told.data()["first"] == "a"
    assert "the second   its output is (2, 8, 16), not (6, 8, 16)" in str(told)


@pytest.mark.parametrize("options", [{"axes": "-1", "eps": "1e-2"}, {"axes": [-1], "eps": 1e-2, "ddof": 0.0}])
def test_options_are_read_as_the_command_line_has_them(tmp_path, options):
    settings = {"a": {"norm": "ln", "options": options}}
    assert audit(write(tmp_path / "run", {"a": make_layer(eps=1e-2)}, settings)).ok


def test_a_norm_for_layers_that_have_their_own_is_refused(tmp_path):
    layers = {"a": make_layer(), "b": make_layer()}
    with pytest.raises(UsageError, match=r"--norm is of layers without settings; those of .* have their own"):
        audit(write(tmp_path / "run", layers), norm="rms")
    assert audit(write(tmp_path / "other", layers, {"b": {"norm": None, "options": {}}}), norm="ln").ok


def test_python_objects_are_no_tensor(tmp_path):
    np.savez(tmp_path / "x.npz", **{"a.input": np.array([{}], dtype=object), "a.output": np.zeros(3)})
    assert "holds Python objects" in find(audit(tmp_path / "x.npz"), "a")["problem"]


GATE = RNG.normal(size=X.shape).astype(np.float32)


@pytest.mark.parametrize("norm", [None, "rms:eps=1e-6:like=mamba2"])
def test_a_gate_is_taken_without_settings_too(tmp_path, norm):
    y = normalize(X, "rms", eps=1e-6, gamma=GAMMA, gate=GATE, gate_order="before").normalized
    run = write(tmp_path / "run", {"a": {"input": X, "output": y, "weight": GAMMA, "gate": GATE}})
    os.remove(f"{run}/dump.json")
    assert audit(run, norm=norm).ok


def test_a_layer_that_nothing_explains_has_no_distance(tmp_path):
    run = write(tmp_path / "run", {"a": {"input": X, "output": GATE}}, {"a": {"norm": None, "options": {}}})
    assert find(audit(run), "a")["max_ulp"] is None


def test_the_distance_of_a_layer_is_of_the_tensor_that_is_blamed(tmp_path):
    found = backward(X, GATE, "ln", axes=-1, eps=1e-5, gamma=GAMMA, beta=BETA)
    dgamma = np.float32(2) * found.dgamma
    layer = make_layer() | {"grad_output": GATE, "grad_input": found.dx, "grad_weight": dgamma}
    told = find(audit(write(tmp_path / "run", {"a": layer})), "a")
    assert told["max_ulp"] == told["parts"]["grad_weight"]["max_ulp"] > 1e6


UNKNOWN = {"norm": None, "options": {}, "problem": "Odd is no norm that is known"}


def test_a_layer_that_could_not_be_compared_is_no_difference(tmp_path):
    second = write(tmp_path / "b", {"a": make_layer(), "b": make_layer()})
    first = write(tmp_path / "a", {"a": make_layer(), "b": {}}, {"b": UNKNOWN})
    told = audit(first, against=second)
    assert (told.ok, told.data()["layers"][1]["ok"], told.data()["layers"][1]["differences"]) == (
        False,
        None,
        [],
    )
    assert str(told).splitlines()[-2:] == [
        "✗ 1 layer agrees   in both runs   1 could not be compared",
        "  b   Odd is no norm that is known",
    ]


@pytest.mark.parametrize("is_clear", [True, False])
def test_a_layer_that_was_not_compared_may_be_the_cause_unless_what_follows_agrees(tmp_path, is_clear):
    layers = {
        "a": make_layer(),
        "b": make_layer(),
        **({"c": make_layer()} if is_clear else {}),
        "d": make_layer(X + 1),
    }
    second = write(tmp_path / "b", layers)
    first = write(tmp_path / "a", layers | {"b": {}, "d": make_layer()}, {"b": UNKNOWN})
    told = audit(first, against=second)
    assert told.data()["between"] == ["c" if is_clear else "a", "d"]
    assert ("may be the cause" in str(told)) is not is_clear


def test_layers_of_other_options_have_a_line_of_their_own(tmp_path):
    rolled = np.roll(GAMMA, 1)
    layers = {name: make_layer(gamma=rolled) for name in ("a.norm", "b.norm")}
    layers["final"] = make_layer(eps=1e-3, gamma=rolled)
    settings = {"final": {"options": {"axes": [-1], "eps": 1e-3}}}
    lines = str(audit(write(tmp_path / "run", layers, settings))).splitlines()[5:7]
    assert [line.split()[0] for line in lines] == ["*.norm", "final"]


def test_one_of_several_is_told_in_chinese_without_an_english_ending(tmp_path, normcli):
    run = write(tmp_path / "run", {"a": make_layer(), "b": make_layer(eps=1e-2)})
    last = normcli("--lang", "zh", "audit", run).out.splitlines()[-1]
    assert last == "✗ 2 层中有 1 个不同   第一个出错的层：b"


OTHER = np.roll(GAMMA[::-1], 3) + np.float32(0.5)


@pytest.mark.parametrize(
    ("lent", "words"),
    [
        pytest.param({"gamma": OTHER}, "the gamma of b is used", id="gamma"),
        pytest.param({"beta": -OTHER}, "the beta of b is used", id="beta"),
        pytest.param({"gamma": OTHER, "beta": -OTHER}, "the gamma and beta of b are used", id="both"),
        pytest.param(
            {"gamma": OTHER - 0.125}, "another gamma is used at all 16 indices", id="gamma of no layer"
        ),
    ],
)
def test_another_layer_whose_gamma_is_used_is_named(tmp_path, lent, words):
    b = {"input": X, "output": GATE, "weight": OTHER, "bias": -OTHER}
    y = normalize(X, "ln", axes=-1, eps=1e-5, **{"gamma": GAMMA, "beta": BETA, **lent}).normalized
    told = find(audit(write(tmp_path / "run", {"b": b, "a": make_layer() | {"output": y}})), "a")
    assert (told["cause"], told["fault"]) == (f"ln differs: {words}", "affine-unknown-gamma")
