"""Real models with random weights: right ones agree at every norm, and of wrong ones layer and cause are named."""

from __future__ import annotations

import json

import pytest

from normcli import audit
from normcli.tensors.formats.safetensors import read_metadata

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]  # the frameworks warn of their own

from tests.auditing.models.plants import judge_model, judge_recorded  # noqa: E402
from tests.auditing.models.zoo import NAMES, TORCH, make, record_run  # noqa: E402


@pytest.fixture(autouse=True)
def _calm(monkeypatch):
    monkeypatch.setenv("TRANSFORMERS_VERBOSITY", "error")
    monkeypatch.setenv("KERAS_BACKEND", "torch")


def judge(zooed, tmp_path, *call, **options):
    """Record a run, and require that every norm of it agrees."""
    record_run(zooed, tmp_path / "run.safetensors", *call, **options)
    told = audit(tmp_path / "run.safetensors")
    assert told.ok, str(told)
    return told.data()["layers"]


@pytest.mark.parametrize("name", NAMES)
def test_every_norm_of_a_right_model_agrees(name, tmp_path):
    if name in ("Keras", "Flax"):
        pytest.importorskip(name.lower())
    judge(make(name), tmp_path)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ["BERT", "Gemma", "T5"])
def test_half_precision_raises_no_alarm(name, dtype, tmp_path):
    zooed = make(name)
    zooed.model.to(dtype)
    judge(zooed, tmp_path)


@pytest.mark.parametrize("name", ["ConvNeXt", "Llama", "T5"])
def test_autocast_raises_no_alarm(name, tmp_path):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        judge(make(name), tmp_path)


@pytest.mark.parametrize("name", ["BERT", "Gemma"])
def test_a_training_step_has_right_gradients(name, tmp_path):
    zooed = make(name)
    zooed.model.train()
    layers = judge(zooed, tmp_path, lambda: step(zooed), backward=True)
    assert all("grad_input" in layer["parts"] for layer in layers[1:])


def step(zooed):
    y = zooed.model(**zooed.batch)[0]
    (y * torch.linspace(-1.0, 1.0, y.numel()).reshape(y.shape)).sum().backward()


@pytest.mark.parametrize(
    ("name", "judge", "count"),
    [("BERT", judge_model, 10), ("Keras", judge_recorded, 8), ("Flax", judge_recorded, 8)],
    ids=["BERT", "Keras", "Flax"],
)
def test_planted_faults_are_named(name, judge, count, tmp_path):
    """Of all models, `python -m tests.bench planted` counts."""
    if name != "BERT":
        pytest.importorskip(name.lower())
    found = list(judge(name, tmp_path))
    missed = [one for one in found if not one.ok]
    assert len(found) >= count
    assert len(missed) <= 0.1 * len(found), missed


@pytest.mark.parametrize(("name", "count"), [("BERT", 9), ("T5", 7), ("ConvNeXt", 13), ("ResNet", 23)])
def test_exports_agree_in_onnx_runtime(name, count, tmp_path):
    """Nodes of layer norms, chains of nodes of T5's norms, and batch norms that nothing has folded."""
    pytest.importorskip("onnxruntime")
    zooed = make(name)
    batch = {"input_ids": zooed.batch["input_ids"]} if "input_ids" in zooed.batch else zooed.batch
    model = zooed.model.encoder if name == "T5" else zooed.model
    torch.onnx.export(
        First(model), tuple(batch.values()), tmp_path / "m.onnx", dynamo=False, opset_version=17,
        training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False,
    )  # fmt: skip
    told = audit(tmp_path / "m.onnx")
    assert told.ok, str(told)
    assert len(told.found.layers) == count


class First(torch.nn.Module):
    """The first of a model's outputs."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, *batch):
        return self.model(*batch)[0]


def test_every_norm_of_the_models_is_known(tmp_path):
    """None is guessed by the end of its class's name."""
    for name in TORCH:
        record_run(make(name), tmp_path / "run.safetensors")
        layers = json.loads(read_metadata(str(tmp_path / "run.safetensors"))["normcli"])["layers"]
        assert not [one["kind"] for one in layers if "norm" not in one or one.get("is_guess")]
