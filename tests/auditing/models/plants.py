"""Faults planted into one norm of a model, or into its run, and what `audit` must say of each."""

from __future__ import annotations

import contextlib
import functools
import re
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli import audit
from normcli.auditing.layer import open_dump
from normcli.norms.plan import make_plan
from normcli.norms.rules import Centre
from normcli.tensors.formats.safetensors import read_metadata
from tests.auditing.models.zoo import make, record_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from normcli.auditing.layer import RecordedLayer


class Kernel(NamedTuple):
    """A norm's arguments, as a wrong kernel gets them; `running` are mean and variance of evaluation, or None."""

    x: Any
    gamma: Any
    beta: Any
    axes: tuple[int, ...]
    eps: float
    centres: bool = True
    ddof: int = 0
    outside: bool = False
    running: tuple[Any, Any] | None = None

    def calculate(self) -> Any:
        """Return y, in float64."""
        x = np.asarray(self.x, np.float64)
        if self.running is not None:
            mean, var = self.running
        else:
            mean = x.mean(self.axes, keepdims=True) if self.centres else 0.0
            count = np.prod([x.shape[axis] for axis in self.axes])
            var = np.square(x - mean).sum(self.axes, keepdims=True) / (count - self.ddof)
        divisor = np.sqrt(var) + self.eps if self.outside else np.sqrt(var + self.eps)
        return (x - mean) / divisor * self.gamma + self.beta


class Plant(NamedTuple):
    """A fault of one norm's kernel.

    Parameters
    ----------
    change : callable
        From the right arguments of a kernel to what it gives instead.
    says : str
        A pattern that the cause must hold.
    of : callable
        Whether a norm can have this fault.
    """

    change: Callable[[Kernel], Any]
    says: str
    of: Callable[[Kernel], bool] = lambda kernel: True


def _halve(kernel: Kernel) -> Any:
    halves = {"x": np.float16(kernel.x), "gamma": np.float16(kernel.gamma), "beta": np.float16(kernel.beta)}
    return np.float32(np.float16(kernel._replace(**halves).calculate()))


def _has_own(kernel: Kernel) -> bool:
    return kernel.running is None


PLANTS: dict[str, Plant] = {
    "another eps": Plant(lambda k: k._replace(eps=1e-2).calculate(), r"eps is 0\.01"),
    "in float16": Plant(_halve, "float16"),
    "1 added to gamma, or lost": Plant(lambda k: k._replace(gamma=k.gamma - 1.0).calculate(), "gamma"),
    "gamma rolled": Plant(lambda k: k._replace(gamma=np.roll(k.gamma, 1)).calculate(), "gamma is (rolled|shifted)"),
    "gamma transposed": Plant(
        lambda k: k._replace(gamma=k.gamma.reshape(-1, 4, k.gamma.size // 4).swapaxes(1, 2).reshape(k.gamma.shape)).calculate(),
        "gamma", lambda k: np.asarray(k.gamma).size % 16 == 0,
    ),
    "gamma left out": Plant(lambda k: k._replace(gamma=1.0).calculate(), "gamma"),
    "beta left out": Plant(lambda k: k._replace(beta=0.0).calculate(), "beta", lambda k: np.any(k.beta)),
    "the norm skipped": Plant(lambda k: k.x, "is the input"),
    "the mean kept": Plant(
        lambda k: k._replace(centres=False).calculate(), "root mean square|mean is not", lambda k: _has_own(k) and k.centres
    ),
    "the mean subtracted": Plant(
        lambda k: k._replace(centres=True).calculate(), "layer normalization|mean", lambda k: _has_own(k) and not k.centres
    ),
    "an unbiased variance": Plant(lambda k: k._replace(ddof=1).calculate(), r"ddof is 1|divided by \d+, not", _has_own),
    "eps outside the root": Plant(
        lambda k: k._replace(outside=True, eps=1e-2).calculate(), "outside"
    ),
    "training for evaluation": Plant(
        lambda k: k._replace(running=None).calculate(), "batch", lambda k: not _has_own(k)
    ),
}  # fmt: skip


def read_torch(module: Any, x: Any) -> Kernel:
    """Return what a kernel of a module of torch gets."""
    name, x = type(module).__name__, x.detach().numpy()
    is_first = hasattr(module, "running_mean") or getattr(module, "data_format", "") == "channels_first"
    shape = (-1, *(1,) * (x.ndim - 2)) if is_first else (-1,)
    gamma, beta = (
        None if value is None else value.detach().numpy().astype(np.float64).reshape(shape)
        for value in (getattr(module, "weight", None), getattr(module, "bias", None))
    )
    gamma = gamma + 1.0 if name.startswith("Gemma") else gamma
    eps = next(getattr(module, key) for key in ("eps", "variance_epsilon") if hasattr(module, key))
    running = None
    if hasattr(module, "running_mean"):
        running = tuple(getattr(module, f"running_{key}").numpy().reshape(shape) for key in ("mean", "var"))
    axes = (0, 2, 3) if running else ((1,) if is_first else (-1,))
    centres = "RMS" not in name and not name.startswith("T5")
    return Kernel(x, gamma, 0.0 if beta is None else beta, axes, eps, centres, running=running)


@contextlib.contextmanager
def plant_torch(model: Any, name: str, plant: Plant) -> Iterator[None]:
    """Have one module of a model calculate wrongly."""
    import torch

    module = model.get_submodule(name)
    module.forward = lambda x: torch.tensor(np.float32(plant.change(read_torch(module, x))))
    try:
        yield
    finally:
        del module.forward


class Planted(NamedTuple):
    """A fault that was planted, and what was said of it.

    Parameters
    ----------
    model, fault, place : str
        The place is a layer, or two layers between which the runs part.
    named : str or None
        The layer that is said to be the first bad one, or the two.
    said : str
    ok : bool
        Whether place and cause are named.
    """

    model: str
    fault: str
    place: str
    named: str | None
    said: str
    ok: bool


def _judge(folder: Path, place: str, says: str, model: str, fault: str) -> Planted:
    """Audit the run of a wrong kernel at a place, and return what is said of it."""
    told = audit(folder / "wrong.safetensors").data()
    said = next((one["cause"] for one in told["layers"] if one["name"] == told["first"]), None) or ""
    ok = told["first"] == place and re.search(says, said) is not None
    return Planted(model, fault, place, told["first"], said, ok)


def _draw(places: list[str], name: str, fault: str) -> str:
    """Return the place of a fault in a model, which is the same in every run."""
    return places[zlib.crc32(f"{name} {fault}".encode()) % len(places)]


def judge_model(name: str, folder: Path) -> Iterator[Planted]:
    """Plant every fault into a model of transformers, one at a time, and yield what is said of it."""
    import torch

    zooed, right = make(name), folder / "right.safetensors"
    record_run(zooed, right)
    layers = {layer.name: layer for layer in open_dump(str(right))}
    kernels = {
        layer.name: read_torch(zooed.model.get_submodule(layer.name), torch.tensor(layer.load("input").values))
        for layer in layers.values()
        if "gate" not in layer.tensors
    }
    for fault, plant in PLANTS.items():
        places = [place for place, kernel in kernels.items() if plant.of(kernel)]
        if places:
            place = _draw(places, name, fault)
            with plant_torch(zooed.model, place, plant):
                record_run(zooed, folder / "wrong.safetensors")
            yield _judge(folder, place, plant.says, name, fault)
    for fault, (change, says) in RUN_PLANTS.items():
        zooed = make(name)
        names = [layer for layer in layers if layer in dict(zooed.model.named_modules())]
        place = change(zooed, names)
        if place is not None:
            record_run(zooed, folder / "wrong.safetensors", functools.partial(zooed.run, **zooed.changes))
            told = audit(right, against=folder / "wrong.safetensors").data()
            named = told["first"] or " | ".join(map(str, told["between"] or ()))
            pairs = [one for one in told["layers"] if one["name"] == told["first"]]
            said = "; ".join(text for one in pairs for text in one["differences"])
            alone = " ".join(told["alone"]["first"])
            ok = (named.startswith(place) or place in alone) and re.search(says, said) is not None
            yield Planted(name, fault, place, named, said or alone, ok)


def read_recorded(layer: RecordedLayer) -> Kernel | None:
    """Return what the kernel of a recorded layer got; None of norms in groups of channels."""
    tensors = {role: layer.load(role) for role in ("input", "weight", "bias", "running_mean", "running_var")}
    x, gamma, beta, mean, var = (one if one is None else np.asarray(one.values) for one in tensors.values())
    plan = make_plan(layer.settings.read_request(), x.shape, x.dtype)
    if plan.grid.split is not None:
        return None
    shape = plan.parameters.full_shape
    gamma, beta = (
        otherwise if values is None else values.astype(np.float64).reshape(shape)
        for values, otherwise in ((gamma, 1.0), (beta, 0.0))
    )
    running = (mean.reshape(shape), var.reshape(shape)) if layer.settings.evaluation else None
    return Kernel(
        x, gamma, beta, plan.grid.axes, plan.spec.eps, plan.norm.centre is Centre.MEAN, running=running
    )


def judge_recorded(name: str, folder: Path) -> Iterator[Planted]:
    """Put the output of a wrong kernel into the recorded run of a model, one at a time, and yield what is said."""
    from safetensors.numpy import load_file, save_file

    right = folder / "right.safetensors"
    record_run(make(name), right)
    kernels = {layer.name: read_recorded(layer) for layer in open_dump(str(right))}
    for fault, plant in PLANTS.items():
        places = [place for place, kernel in kernels.items() if kernel is not None and plant.of(kernel)]
        if places:
            place = _draw(places, name, fault)
            changed = {f"{place}.output": np.float32(plant.change(kernels[place]))}
            metadata = read_metadata(str(right))
            save_file(load_file(right) | changed, folder / "wrong.safetensors", metadata=metadata)
            yield _judge(folder, place, plant.says, name, fault)


def _set_eps(zooed: Any, names: list[str]) -> str:
    place = names[len(names) // 2]
    module = zooed.model.get_submodule(place)
    key = next(key for key in ("eps", "variance_epsilon") if hasattr(module, key))
    setattr(module, key, 1e-2)
    return place


def _exchange_gammas(zooed: Any, names: list[str]) -> str | None:
    """Give a layer the gamma of the next one that has its shape."""
    gammas = [zooed.model.get_submodule(name).weight for name in names]
    for number in range(1, len(names)):
        other = next((one for one in gammas[number + 1 :] if one.shape == gammas[number].shape), None)
        if other is not None:
            gammas[number].data = other.data.clone()
            return names[number]
    return None


def _train(zooed: Any, names: list[str]) -> str | None:
    module = zooed.model.get_submodule(names[0])
    if not hasattr(module, "running_mean"):
        return None
    zooed.model.train()
    return names[0]


def _leave_mask_out(zooed: Any, names: list[str]) -> str | None:
    """Leave the mask of attention out: the runs part behind the first norm before it."""
    if "attention_mask" not in zooed.batch:
        return None
    zooed.changes["attention_mask"] = None
    return re.sub(r"\.0\..*", ".0.", names[0])  # a norm of queries stands before the mask too


def _skip_block(zooed: Any, names: list[str]) -> str | None:
    """Skip an even block, whose norms then do not run."""
    for place in ("layers.2", "encoder.layer.2", "encoder.stages.2.layers.2"):
        with contextlib.suppress(AttributeError):
            zooed.model.get_submodule(place).forward = lambda x, *rest, **named: x
            return next((name for name in names if name.startswith(f"{place}.")), None)
    return None


RUN_PLANTS: dict[str, tuple[Callable[[Any, list[str]], str | None], str]] = {
    "eps set": (_set_eps, r"eps is 0\.01"),
    "gamma of another layer": (_exchange_gammas, "weight is that of"),
    "the model in training": (_train, "batch's statistics"),
    "a mask left out": (_leave_mask_out, ""),
    "an even layer skipped": (_skip_block, ""),
}
"""Faults of a run, as it differs from a right one: what plants one and returns its place, and what must be said."""
