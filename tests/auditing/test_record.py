"""Models of PyTorch recorded while they run: every norm of theirs, as it was."""

from __future__ import annotations

import json

import numpy as np
import pytest

from normcli import audit, record
from normcli.auditing.modules import describe_module
from normcli.errors import DataError, UsageError
from normcli.norms.conventions import CONVENTIONS
from normcli.tensors.files import load
from normcli.tensors.formats.safetensors import read_metadata
from normcli.tensors.many import list_keys
from normcli.testing import assert_model_matches, assert_runs_match

torch = pytest.importorskip("torch")
nn = torch.nn
pytestmark = pytest.mark.peers


class Block(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.norm1, self.norm2, self.linear = nn.LayerNorm(width), nn.RMSNorm(width), nn.Linear(width, width)

    def forward(self, x):
        return x + self.norm2(self.linear(self.norm1(x)))


class MyNorm(nn.Module):
    eps = 1e-6

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps)


def make_images():
    torch.manual_seed(3)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.GroupNorm(2, 8),
        nn.InstanceNorm2d(8, affine=True, track_running_stats=True), nn.LocalResponseNorm(5),
    )  # fmt: skip


IMAGES = torch.from_numpy(np.random.default_rng(5).normal(size=(4, 3, 8, 8)).astype(np.float32))
TOKENS = torch.from_numpy(np.random.default_rng(6).normal(size=(2, 12, 16)).astype(np.float32))


def read_layers(path):
    return json.loads(read_metadata(str(path))["normcli"])["layers"]


def judge(model, run, tmp_path, **options):
    """Record what a run does with a model, and audit it."""
    with record(model, tmp_path / "dump.safetensors", **options):
        run(model)
    return audit(tmp_path / "dump.safetensors")


def test_each_norm_is_recorded_in_its_order_with_its_settings(tmp_path):
    told = judge(make_images(), lambda model: model(IMAGES), tmp_path)
    layers = read_layers(tmp_path / "dump.safetensors")
    names = [(one["name"], one["norm"]) for one in layers]
    assert names == [("1", "bn"), ("3", "gn"), ("4", "in"), ("5", "lrn")]
    assert (layers[0]["momentum"], layers[1]["options"]["groups"]) == (0.1, 2)
    assert told.ok, str(told)
    assert set(told.data()["layers"][0]["parts"]) == {"output", "running_mean_after", "running_var_after"}


def test_evaluation_is_recorded_as_such(tmp_path):
    model = make_images()
    model(IMAGES)
    assert_model_matches(model.eval(), IMAGES)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_dtypes(dtype):
    assert_model_matches(Block().to(getattr(torch, dtype)), TOKENS.to(getattr(torch, dtype)))


def test_gradients(tmp_path):
    model = nn.Sequential(Block(), Block(), nn.Flatten(1))
    told = judge(model, lambda model: weigh(model(TOKENS)).backward(), tmp_path, backward=True)
    assert told.ok, str(told)
    assert set(told.data()["layers"][1]["parts"]) == {"output", "grad_input", "grad_weight"}


def test_a_shared_module_has_a_name_for_each_call(tmp_path):
    norm = nn.LayerNorm(16)
    told = judge(nn.Sequential(norm, nn.Linear(16, 16), norm), lambda model: model(TOKENS), tmp_path)
    assert [one["name"] for one in told.data()["layers"]] == ["0", "0#2"]
    assert told.ok


@pytest.mark.slow
def test_a_compiled_model(tmp_path):
    eager, path = Block(), tmp_path / "eager.safetensors"
    compiled = torch.compile(eager, backend="eager")
    for model, name in ((eager, path), (compiled, tmp_path / "compiled.safetensors")):
        with record(model, name), torch.no_grad():
            model(TOKENS)
    assert [one["name"] for one in read_layers(tmp_path / "compiled.safetensors")] == ["norm1", "norm2"]
    assert_runs_match(path, tmp_path / "compiled.safetensors")


def test_a_class_of_ones_own(tmp_path):
    model = nn.Sequential(MyNorm())
    with pytest.raises(UsageError, match=r"no module that is known for a norm; say what MyNorm is: also="):
        assert_model_matches(model, TOKENS)
    assert_model_matches(model, TOKENS, also={MyNorm: "rms"})
    assert_model_matches(model, TOKENS, also={"MyNorm": "rms:axes=-1"})


class NamedNorm(nn.Module):
    """A layer norm whose gamma and beta have names of their own."""

    def __init__(self, names, shape=(16,)):
        super().__init__()
        self.names = names
        for name, low in zip(names, (0.5, -0.5), strict=False):
            setattr(self, name, nn.Parameter(torch.linspace(low, low + 1.0, 16).reshape(shape)))

    def forward(self, x):
        gamma, beta = (getattr(self, name).reshape(16) for name in self.names[:2])
        return nn.functional.layer_norm(x, (16,), gamma, beta)


@pytest.mark.parametrize(
    "names", [("gamma", "beta"), ("scale", "shift"), ("a_2", "b_2"), ("g", "b"), ("weight", "bias")]
)
def test_gamma_and_beta_are_found_by_well_known_names(tmp_path, names):
    model = nn.Sequential(NamedNorm(names), nn.Tanh())
    told = judge(model, lambda m: m(TOKENS).sum().backward(), tmp_path, also={NamedNorm: "ln"}, backward=True)
    assert told.ok, str(told)
    assert {"output", "grad_weight", "grad_bias"} <= {*told.data()["layers"][0]["parts"]}


def test_a_gamma_with_axes_of_length_1_is_no_gamma_for_each_head():
    model = nn.Sequential(NamedNorm(("g", "b"), (1, 1, 16)))
    assert_model_matches(model, TOKENS, also={NamedNorm: "ln:axes=-1"})


def test_a_module_with_other_parameters_is_not_judged(tmp_path):
    model = nn.Sequential(NamedNorm(("gain", "offset")))
    told = judge(model, lambda model: model(TOKENS), tmp_path, also={NamedNorm: "ln"})
    assert "0.output" in list_keys(str(tmp_path / "dump.safetensors"))
    assert (told.ok, told.data()["layers"][0]["ok"]) == (False, None)
    assert "? NamedNorm has parameters that are not understood: gain, offset" in str(told)


def test_a_pruned_norm_has_its_own_gamma():
    from torch.nn.utils import prune

    norm = nn.LayerNorm(16)
    prune.random_unstructured(norm, "weight", 0.5)
    assert_model_matches(nn.Sequential(norm), TOKENS)


def test_a_wrong_norm_fails_with_the_report():
    model = Block()
    with torch.no_grad():
        model.norm1.weight.add_(torch.linspace(0.0, 1.0, 16))
    right = model.norm1.forward
    model.norm1.forward = lambda x: right(x) * model.norm1.weight
    with pytest.raises(AssertionError, match=r"1 of 2 layers differs   first bad layer: norm1") as raised:
        assert_model_matches(model, TOKENS)
    assert "gamma multiplies twice" in str(raised.value)


def test_large_tensors_are_sampled_by_whole_groups(tmp_path):
    told = judge(make_images(), lambda model: model(IMAGES), tmp_path, most_bytes=1500, seed=1)
    assert "of 8 indices of axis 1 are recorded" in read_layers(tmp_path / "dump.safetensors")[0]["note"]
    assert told.ok, str(told)
    assert told.data()["layers"][0]["shape"][1] < 8


def test_nothing_is_written_where_the_block_raises_or_no_norm_ran(tmp_path):
    path = tmp_path / "dump.safetensors"
    with pytest.raises(ValueError, match="stop"), record(Block(), path):
        raise ValueError("stop")
    with pytest.raises(DataError, match="no norm of the model ran"), record(Block(), path):
        pass
    assert not path.exists()


def test_a_header_that_outgrows_its_room(monkeypatch):
    monkeypatch.setattr("normcli.auditing.dump_file._ROOM", 8)
    monkeypatch.setattr("normcli.auditing.dump_file._ROOM_OF_LAYER", 0)
    monkeypatch.setattr("normcli.auditing.dump_file._PIECE", 1000)
    assert_model_matches(Block(), TOKENS)


def test_classes_are_known_by_the_table():
    others = "keras", "flax-linen"
    names = [(row.framework in others and row.framework, name) for row in CONVENTIONS for name in row.modules]
    assert len(names) == len(set(names))
    frozen = type("DetrFrozenBatchNorm2d", (nn.BatchNorm2d,), {})(3)
    assert describe_module("a", frozen, {}).evaluation
    found = describe_module("a", type("NewRMSNorm", (nn.Module,), {"variance_epsilon": 1e-6})(), {})
    assert (found.norm, found.options["like"]) == ("rms", "llama")
    assert found.note == "NewRMSNorm is taken for rms as in Llama"
    assert describe_module("a", nn.LayerNorm(4), {}).options["axes"] == (-1,)
    first = type("LayerNorm2d", (nn.LayerNorm,), {})(4)
    assert "axes" not in describe_module("a", first, {}).options


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_tensors_of_eight_bits_are_read(tmp_path, dtype):
    x = TOKENS.to(getattr(torch, dtype))
    pytest.importorskip("safetensors.torch").save_file({"x": x}, tmp_path / "x.safetensors")
    values = load(str(tmp_path / "x.safetensors")).values
    np.testing.assert_array_equal(values, x.float().numpy(), strict=True)


# -- what a run may do that no plain forward pass does


class ByName(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(16)

    def forward(self, x):
        return self.norm(input=x)


def test_inputs_by_name():
    assert_model_matches(ByName(), TOKENS)


def test_an_inplace_step_behind_the_norm(tmp_path):
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True))
    told = judge(model, lambda m: m(IMAGES).square().sum().backward(), tmp_path, backward=True)
    assert told.ok, str(told)
    assert {"grad_input", "grad_weight", "grad_bias"} <= set(told.data()["layers"][0]["parts"])
    assert isinstance(model[1].weight, nn.Parameter)


def weigh(y):
    return (y * torch.linspace(-1.0, 1.0, y[0].numel()).reshape(y.shape[1:])).sum()


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(lambda m: (weigh(m(TOKENS)).backward(), weigh(m(TOKENS[:1])).backward()), id="batches"),
        pytest.param(lambda m: weigh(m(m(TOKENS))).backward(), id="shared"),
        pytest.param(lambda m: (weigh(m(TOKENS)) + m.weight.square().sum()).backward(), id="a penalty"),
        pytest.param(lambda m: [weigh(m(TOKENS)), m(TOKENS + 1.0)][0].backward(), id="a call without a loss"),
        pytest.param(lambda m: [y := weigh(m(TOKENS)), y.backward(retain_graph=True), y.backward()], id="twice"),
        pytest.param(lambda m: [one.backward() for one in [weigh(m(TOKENS)), weigh(m(TOKENS[:1]))]], id="losses"),
    ],
)  # fmt: skip
def test_gradients_are_those_of_each_call(tmp_path, run):
    norm = nn.LayerNorm(16)
    weigh(norm(TOKENS)).backward()  # whose gradient is there before
    told = judge(norm, run, tmp_path, backward=True)
    assert told.ok, str(told)
    assert "grad_weight" in told.data()["layers"][0]["parts"]
    assert isinstance(norm.weight, nn.Parameter)


def test_a_backward_pass_behind_the_block_writes_nothing_and_is_undisturbed(tmp_path):
    norm, losses = nn.LayerNorm(16), []
    with pytest.warns(UserWarning, match=r"no gradients were recorded: call backward\(\) inside the block"):
        told = judge(norm, lambda norm: losses.append(weigh(norm(TOKENS))), tmp_path, backward=True)
    written = (tmp_path / "dump.safetensors").read_bytes()
    losses[0].backward()
    assert norm.weight.grad is not None
    assert (tmp_path / "dump.safetensors").read_bytes() == written
    assert told.ok
    assert "✓ gradients were asked for, and none were recorded" in str(told)


def test_a_layer_whose_gradients_alone_are_missing_has_a_note(tmp_path):
    def run(model):
        with torch.no_grad():
            model[0](TOKENS)
        weigh(model[1](TOKENS)).backward()

    told = judge(nn.ModuleList([nn.LayerNorm(16), nn.LayerNorm(16)]), run, tmp_path, backward=True)
    notes = [one["note"] for one in told.data()["layers"]]
    assert notes == ["gradients were asked for, and none were recorded", None]


def test_a_batch_of_nan_is_judged_but_for_its_running_statistics(tmp_path):
    images = IMAGES.clone()
    images[0, 0, 0, 0] = torch.nan
    told = judge(nn.BatchNorm2d(3), lambda model: (model(images), model(IMAGES)), tmp_path)
    assert told.ok
    assert [{*one["parts"]} for one in told.data()["layers"]] == [{"output"}, {"output"}]
    assert str(told).count("✓ running statistics are not judged: they or the batch hold NaN or infinity") == 2


def test_weights_are_those_of_each_call(tmp_path):
    def run(norm):
        for factor in (1.0, 3.0, 5.0):
            norm.weight.data = torch.full((16,), factor)
            norm(TOKENS)

    assert judge(nn.LayerNorm(16), run, tmp_path).ok


def test_evaluation_called_twice(tmp_path):
    norm = nn.BatchNorm2d(3)
    norm(IMAGES)
    assert judge(norm.eval(), lambda m: (m(IMAGES), m(IMAGES + 1.0)), tmp_path).ok


def make_untracked():
    norm = nn.BatchNorm2d(3)
    norm.track_running_stats = False
    return norm


@pytest.mark.parametrize(
    ("norm", "x"),
    [
        pytest.param(nn.InstanceNorm1d(12, affine=True), TOKENS, id="1d"),
        pytest.param(nn.InstanceNorm2d(3, affine=True), IMAGES[0], id="a single sample"),
        pytest.param(nn.InstanceNorm2d(3, track_running_stats=True, momentum=None), IMAGES, id="no momentum"),
        pytest.param(make_untracked(), IMAGES, id="no longer tracked"),
        pytest.param(nn.Sequential(nn.LazyBatchNorm2d()), IMAGES, id="lazy"),
        pytest.param(nn.utils.parametrizations.weight_norm(nn.Conv2d(3, 2, 3)), IMAGES, id="weight norm"),
        pytest.param(nn.utils.parametrizations.weight_norm(nn.Linear(8, 2), dim=1), IMAGES, id="by input"),
    ],
)
def test_instance_norms_and_statistics_that_are_not_tracked(tmp_path, norm, x):
    told = judge(norm, lambda m: m(x), tmp_path)
    assert told.ok, str(told)


class Activated(nn.BatchNorm2d):
    def forward(self, x):
        return super().forward(x).relu()


class PixelRMSNorm(nn.Module):
    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(1, keepdim=True) + 1e-6)


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(3, 1, 1)), 1e-6

    def forward(self, x):
        return self.weight * x / (x.square().mean(1, keepdim=True) + self.eps).sqrt()


class OwnLayerNorm(nn.LayerNorm):
    def forward(self, x):
        return super().forward(x)


@pytest.mark.parametrize(
    ("norm", "problem"),
    [
        pytest.param(nn.CrossMapLRN2d(3), "CrossMapLRN2d is no norm that is known", id="lrn"),
        pytest.param(Scale(), "Scale is no norm that is known", id="by its eps"),
        pytest.param(Activated(3), "Activated is no norm that is known", id="activated"),
        pytest.param(
            PixelRMSNorm(), "PixelRMSNorm is taken for rms as in Llama, which it is not", id="guessed"
        ),
        pytest.param(type("OddNorm", (MyNorm,), {})(), "OddNorm is no norm that is known", id="by its name"),
        pytest.param(OwnLayerNorm(8), "also={'OwnLayerNorm': 'ln'}", id="by its base"),
    ],
)
def test_classes_that_are_not_known_are_said_and_not_judged(tmp_path, norm, problem):
    told = judge(nn.Sequential(norm, nn.GroupNorm(1, 3)), lambda m: m(IMAGES), tmp_path)
    first, second = told.data()["layers"]
    known = problem if "LRN" in problem or "also" in problem else f"{problem}: name it "
    assert (first["ok"], known in first["problem"]) == (None, True)
    assert (second["ok"], told.ok) == (True, False)


class Gated(MyNorm):
    def forward(self, x, gate):
        return super().forward(x) * nn.functional.silu(gate)


class Added(MyNorm):
    def forward(self, x, residual):
        return super().forward(x + residual)


@pytest.mark.parametrize(
    ("norm", "gate", "problem"),
    [
        pytest.param(Gated(), -TOKENS, None, id="a gate"),
        pytest.param(Gated(), -TOKENS[:1], "the module took gate too, which is not recorded", id="a part"),
        pytest.param(
            Added(), TOKENS.flip(1), "the module took residual too, which is not recorded", id="other"
        ),
    ],
)
def test_a_second_tensor_is_a_gate_or_left_out_and_said(tmp_path, norm, gate, problem):
    also = {Gated: "rms", Added: "rms"}
    told = judge(norm, lambda model: model(TOKENS, gate), tmp_path, also=also).data()["layers"][0]
    assert (told["ok"], told["problem"]) == (None if problem else True, problem)


class Adaptive(nn.Module):
    def forward(self, x, scale, shift):
        return nn.functional.layer_norm(x, (16,)) * (1.0 + scale[:, None]) + shift[:, None]


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ("ln:gamma-offset=1", None),
        ("ln", "scale is taken for gamma (1 + gamma is gamma-offset=1), which it is not: name it with also="),
    ],
)
def test_a_scale_and_shift_for_each_sample_are_gamma_and_beta(tmp_path, spec, problem):
    def run(model):
        weigh(model(TOKENS, *TOKENS[:, :2].clone().requires_grad_().unbind(1))).backward()

    told = judge(Adaptive(), run, tmp_path, also={Adaptive: spec}, backward=True).data()["layers"][0]
    assert (told["ok"], told["problem"]) == (None if problem else True, problem)
    assert problem or {*told["parts"]} == {"output", "grad_weight", "grad_bias"}


class Functions(Block):
    def forward(self, x):
        functional, shape = nn.functional, x.shape[-1:]
        x = functional.batch_norm(functional.group_norm(super().forward(x), 3), None, None, training=True)
        return functional.rms_norm(functional.layer_norm(x, shape), shape, self.norm1.weight, eps=1e-6)


def test_norms_that_are_functions_are_recorded_or_said(tmp_path):
    model = nn.Sequential(Functions(), nn.Flatten())
    told = judge(model, lambda model: weigh(model(TOKENS)).backward(), tmp_path, backward=True)
    found = {one["name"]: one["problem"] or one["note"] or [*one["parts"]] for one in told.data()["layers"][2:]}
    assert found == {
        "0.group_norm": "it has no gamma and beta, and a scale and shift behind it are not judged",
        "0.batch_norm": "batch_norm is called as a function, and not recorded",
        "0.layer_norm": "it has no gamma and beta, and a scale and shift behind it are not judged",
        "0.rms_norm": ["output", "grad_input", "grad_weight"],
    }, str(told)


@pytest.mark.parametrize("name", ["Own", "OwnRMSNormGated"])
@pytest.mark.parametrize(
    ("spec", "norm_first"),
    [
        pytest.param("rms", False, id="by its attribute"),
        pytest.param("rms:like=falcon-h1", False, id="by its attribute, not by like"),
        pytest.param("rms:like=mamba2", None, id="by like"),
    ],
)
def test_what_a_gate_multiplies_is_known_of_classes_of_any_name(tmp_path, name, spec, norm_first):
    class GatesInput(MyNorm):
        def forward(self, x, gate):
            return super().forward(x * nn.functional.silu(gate))

    def run(model):
        weigh(model(TOKENS.clone().requires_grad_(), (-TOKENS).requires_grad_())).backward()

    norm = type(name, (GatesInput,), {"norm_before_gate": norm_first})()
    told = judge(norm, run, tmp_path, also={name: spec}, backward=True)
    assert told.ok, str(told)
    assert {*told.data()["layers"][0]["parts"]} == {"output", "grad_input", "grad_gate"}


@pytest.mark.parametrize("norm_first", [True, False])
def test_a_gated_class_of_an_unknown_name_is_guessed_and_no_fault_if_it_is_another(tmp_path, norm_first):
    norm = type("OwnRMSNormGated", (Gated,), {"norm_before_gate": norm_first})()
    told = judge(norm, lambda model: model(TOKENS, -TOKENS), tmp_path).data()["layers"][0]
    assert told["ok"] is (True if norm_first else None)


def test_a_norm_that_calls_itself_has_a_name_for_each_call(tmp_path):
    class Again(nn.LayerNorm):
        data_format = "channels_last"

        def forward(self, x, depth=1):
            return super().forward(self(x, depth - 1) if depth else x)

    told = judge(Again(16), lambda m: m(TOKENS), tmp_path)
    assert [one["name"] for one in told.data()["layers"]] == ["model", "model#2"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": -1}, "seed -1 is no integer ≥ 0"),
        ({"most_bytes": 0}, "most_bytes 0 is no number of bytes above 0"),
        ({"most_bytes": "x"}, "most_bytes 'x' is no number of bytes above 0"),
        ({"also": {"X": 5}}, "also: 'X': 5 is no class and its norm, as MyNorm: 'rms'"),
        ({"also": {"X": "nix"}}, "there is no norm 'nix'"),
        ({"also": ["x"]}, "also ['x'] is no mapping of a class to its norm"),
        ({"model": 5}, "int is no model of PyTorch"),
    ],
)
def test_arguments_that_are_refused(tmp_path, options, message):
    with pytest.raises(UsageError) as raised:
        record(**{"model": Block(), "path": tmp_path / "dump.safetensors"} | options).__enter__()
    assert str(raised.value).startswith(message)


# -- two runs


@pytest.mark.parametrize(
    ("change", "difference"),
    [
        pytest.param(lambda m: setattr(m[1], "eps", 0.1), "eps is 0.1, not 1e-05", id="eps"),
        pytest.param(lambda m: m[1].weight.data.mul_(2.0), "weight is another", id="weight"),
        pytest.param(lambda m: setattr(m[1], "bias", None), "it has no bias", id="bias"),
        pytest.param(lambda m: setattr(m[1], "momentum", 0.9), "momentum is 0.9, not 0.1", id="momentum"),
        pytest.param(lambda m: m[1].eval(), "it normalizes with running statistics", id="evaluation"),
        pytest.param(lambda m: m[1].running_var.fill_(3.0), "running_var is another", id="statistics"),
    ],
)
def test_settings_and_weights_of_two_runs(tmp_path, change, difference):
    for name, prepare in (("one", id), ("two", change)):
        model = make_images()
        prepare(model)
        with record(model, tmp_path / f"{name}.safetensors"):
            model(IMAGES)
    told = audit(tmp_path / "one.safetensors", against=tmp_path / "two.safetensors")
    assert (told.ok, told.data()["first"]) == (False, "1")
    assert difference in told.data()["layers"][0]["differences"]
    assert difference in str(told)
