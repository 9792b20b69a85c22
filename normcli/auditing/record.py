"""The norms of a PyTorch model, recorded while it runs: what each took and gave, and its settings then."""

from __future__ import annotations

import contextlib
import functools
import importlib
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.auditing.dump_file import DumpWriter, LayerSettings
from normcli.auditing.layer import CALL
from normcli.auditing.modules import PARAMETERS, describe_module, looks_like_norm, require_norms
from normcli.auditing.record_others import Calls, find_watch
from normcli.errors import DataError, NormError, UsageError
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.tensors.written_whole import open_whole, require_writable
from normcli.tuples import NamedTuple
from normcli.version import __version__

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

    from normcli.norms.plan import Plan

_DTYPES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2", "int64": "I64", "int32": "I32", "int16": "I16", "int8": "I8", "uint8": "U8",
    "bool": "BOOL",
}  # fmt: skip
"""torch's names of dtypes → those of safetensors."""

_COMPILED = "_orig_mod."
"""The prefix that `torch.compile` puts before the names of a model's modules."""

_RUNNING = ("running_mean", "running_var")

_FEW_LAYERS = 64
"""For so many layers there is room in a header, where a model does not say how many it has."""

_OF_TOKENS = 3
"""The axes of a tensor of batch, tokens and features."""


@contextlib.contextmanager
def record(
    model: Any,
    path: str | os.PathLike[str],
    *,
    backward: bool = False,
    also: Mapping[type | str, str] | None = None,
    most_bytes: int | None = None,
    seed: int = 0,
) -> Iterator[None]:
    """Write to a file what each norm of a model takes and gives while the block runs.

    Parameters
    ----------
    model : torch.nn.Module, keras.Layer or flax.linen.Module
        Its norms are known by their classes: those of the framework, and of torch's modules those that
        `normcli conventions` names. Keras and Flax models run outside of `jit` and `predict`, with a forward
        pass alone; the options below are of torch's.
    path : path
        A safetensors file, which is written whole when the block ends, and not at all if it raises.
    backward : bool
        Whether gradients are recorded too; call `backward()` inside the block.
    also : mapping, optional
        A class, or its name → the norm that it is, as `{MyNorm: "rms"}` or `{"Norm2d": "ln:axes=1"}`.
    most_bytes : int, optional
        Of an input that is larger, whole groups of about this many bytes are recorded, chosen by the seed.
    seed : int

    Raises
    ------
    UsageError
        If no module is known for a norm, or `path` does not end in `.safetensors`.
    DataError
        If no norm ran in the block, or the file cannot be written.

    Notes
    -----
    A module that is called again has `NAME#2`, `NAME#3`, … Values are copied to the processor's memory as they
    are, one tensor at a time. The file is described by `normcli help dumps`; `normcli audit` judges it.

    Examples
    --------
    Of a model of PyTorch, and a batch for it:

    >>> with record(model, "dump.safetensors"):  # doctest: +SKIP
    ...     model(batch)
    """
    target = str(path)
    if "\0" in target or "\n" in target:
        raise UsageError("path is no name of a file")
    if not target.endswith(".safetensors"):
        raise UsageError(f"{target} is no .safetensors file, which a dump is")
    require_writable(target, "path")
    also = {} if also is None else also
    require_norms(also)
    if most_bytes is not None and (
        isinstance(most_bytes, bool) or not isinstance(most_bytes, int) or most_bytes < 1
    ):
        raise UsageError(f"most_bytes {most_bytes!r} is no number of bytes above 0")
    try:
        rng = np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        raise UsageError(f"seed {seed!r} is no integer ≥ 0") from error
    observe = find_watch(model)
    if observe is not None:
        with open_whole(target, seeks=True) as stream:
            writer = DumpWriter(stream, _FEW_LAYERS)
            calls = Calls(writer)
            with observe(model, calls):
                yield
            _finish(target, writer, calls.layers, type(model).__module__.partition(".")[0])
        return
    torch = importlib.import_module("torch")
    if not isinstance(model, torch.nn.Module):
        raise UsageError(f"{type(model).__name__} is no model of PyTorch, Keras or Flax Linen")
    named = ((name.replace(_COMPILED, ""), module) for name, module in model.named_modules())
    norms = [(name or "model", module) for name, module in named if looks_like_norm(module, also)]
    if not any(describe_module(name, module, also).norm for name, module in norms):
        kinds = sorted({type(module).__name__ for _, module in norms})
        hint = f"; say what {kinds[0]} is: also={{'{kinds[0]}': 'rms'}}" if kinds else ""
        raise UsageError(f"the model has no module that is known for a norm{hint}")
    with open_whole(target, seeks=True) as stream, contextlib.ExitStack() as hooks:
        recorder = _Recorder(torch, DumpWriter(stream, len(norms)), also, most_bytes, rng, backward=backward)
        for name, module in norms:
            watch = _Watch(recorder, name)
            begin, end = (torch.compiler.disable(hook) for hook in (watch.begin, watch.end))
            hooks.callback(module.register_forward_pre_hook(begin, with_kwargs=True).remove)
            hooks.callback(module.register_forward_hook(end, always_call=True).remove)
        hooks.callback(recorder.close)
        yield
        _finish(target, recorder.writer, recorder.layers, f"torch {torch.__version__}")


def _finish(target: str, writer: DumpWriter, layers: list[LayerSettings], framework: str) -> None:
    if not layers:
        raise DataError(f"no norm of the model ran: {target} is not written")
    writer.finish(layers, f"normcli {__version__}, {framework}")


class _Sample(NamedTuple):
    """The indices of one axis that are recorded; and that axis among those of gamma and beta, or None."""

    axis: int
    places: Any
    of_parameters: int | None


class _Call:
    """One call of a module, from its beginning on.

    Parameters
    ----------
    settings : LayerSettings
    x : torch.Tensor or None
        The input; None where it is nothing that can be recorded.
    state : mapping of str to torch.Tensor
        Running statistics before the call, by role.
    """

    def __init__(self, settings: LayerSettings, x: Any, state: Mapping[str, Any]) -> None:
        self.settings, self.x, self.state = settings, x, state
        self.gradients: dict[str, Any] = {}
        self.replaced: dict[str, Any] = {}

    def take(self, role: str, gradient: Any) -> None:
        """Keep a gradient of the first backward pass."""
        self.gradients.setdefault(role, gradient)


class _Recorder:
    """Takes calls of modules, and writes them.

    Parameters
    ----------
    torch : module
    writer : DumpWriter
    also : mapping
    most_bytes : int or None
    rng : numpy.random.Generator
    backward : bool
    """

    def __init__(
        self, torch: Any, writer: DumpWriter, also: Mapping[Any, str], most_bytes: int | None, rng: Any, *,
        backward: bool,
    ) -> None:  # fmt: skip
        self.torch, self.writer, self.also, self.most_bytes, self.rng = torch, writer, also, most_bytes, rng
        self.backward, self.layers = backward, list[LayerSettings]()
        self.is_closed = False
        self._names: set[str] = set()
        self._lock = threading.RLock()

    def add(self, settings: LayerSettings, tensors: Mapping[str, Any], sample: _Sample | None) -> str:
        """Write a call, under a name that no other has; return the name."""
        with self._lock:
            name, number = settings.name, 1
            while name in self._names:
                number += 1
                name = f"{settings.name}{CALL}{number}"
            self._names.add(name)
            for role, tensor in tensors.items():
                some = sample if role in _OF_SHAPE else _move_to_parameters(sample)
                self.write(f"{name}.{role}", tensor, some)
            self.layers.append(settings._replace(name=name))
            return name

    def write(self, name: str, tensor: Any, sample: _Sample | None = None) -> None:
        """Write a tensor, or some indices of it."""
        values = tensor.detach()
        if sample is not None:
            values = values.index_select(sample.axis, sample.places.to(values.device))
        dtype = _DTYPES[str(values.dtype).rpartition(".")[2]]
        raw = values.contiguous().cpu().reshape(-1).view(self.torch.uint8).numpy()
        with self._lock:
            self.writer.add(name, dtype, values.shape, raw)

    def close(self) -> None:
        """End the recording: a backward pass that comes later writes nothing."""
        self.is_closed = True

    def refuse(self, tensor: Any) -> str | None:
        """Return why a value cannot be recorded; None where it can."""
        if not isinstance(tensor, self.torch.Tensor):
            return f"a {type(tensor).__name__} cannot be recorded"
        dtype = str(tensor.dtype).rpartition(".")[2]
        if tensor.layout is not self.torch.strided or tensor.is_nested or tensor.is_meta:
            return "a tensor that is sparse, nested or without values cannot be recorded"
        if self.torch._C._functorch.is_functorch_wrapped_tensor(tensor):
            return "a tensor within vmap or grad cannot be recorded"
        return None if dtype in _DTYPES else f"{dtype} cannot be recorded"


_OF_SHAPE = ("input", "output", "grad_input", "grad_output", "gate")
"""Roles of tensors that have the input's shape."""


class _Watch:
    """The hooks of one module.

    Parameters
    ----------
    recorder : _Recorder
    name : str
    """

    def __init__(self, recorder: _Recorder, name: str) -> None:
        self._recorder, self._name = recorder, name
        self._calls = threading.local()

    def begin(self, module: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Keep the input and the module's state, before it runs; watch gradients of what it takes."""
        recorder = self._recorder
        settings = describe_module(self._name, module, recorder.also)
        every: dict[Any, Any] = {**dict(enumerate(args)), **named}
        place = next((key for key, value in every.items() if isinstance(value, recorder.torch.Tensor)), None)
        x: Any = every.get(0 if place is None else place)
        reason = recorder.refuse(x)
        if reason is not None and settings.norm is not None:
            settings = settings._replace(norm=None, problem=reason)
        wanted = _RUNNING if settings.evaluation or settings.momentum is not None else ()
        state = {role: getattr(module, role).detach().clone() for role in wanted}
        given = [value for value in every.values() if isinstance(value, recorder.torch.Tensor)]
        if not settings.gate_act or given[1:] == []:
            settings = settings._replace(gate_act="", gates_input=False)
        elif recorder.refuse(given[1]) is None:
            state["gate"] = given[1]
        call = _Call(settings, x, state)
        vars(self._calls).setdefault("open", []).append(call)
        if not recorder.backward or settings.norm is None or settings.gate_act:
            return None
        if x.requires_grad and recorder.torch.is_grad_enabled():
            every[place] = x.view_as(x)  # whose gradient is through this call alone
            every[place].register_hook(functools.partial(call.take, "grad_input"))
        for role, parameter in list(module._parameters.items()):
            if role in ("weight", "bias") and parameter is not None and parameter.requires_grad:
                call.replaced[role] = parameter
                module._parameters[role] = parameter.view_as(parameter)
                if module._parameters[role].requires_grad:
                    module._parameters[role].register_hook(functools.partial(call.take, f"grad_{role}"))
        return tuple(every[n] for n in range(len(args))), {key: every[key] for key in named}

    def end(self, module: Any, args: tuple[Any, ...], output: Any) -> None:
        """Write the call, if the module has come to its end."""
        recorder, call = self._recorder, self._calls.open.pop()
        module._parameters.update(call.replaced)
        y = output[0] if isinstance(output, tuple) and output else output
        settings, x, call.x = call.settings, call.x, None  # the graph keeps the call, which need not keep x
        if settings.norm is None:
            if y is not None:
                recorder.add(settings, {}, None)
            return
        if y is None or recorder.refuse(y) is not None:
            return
        tensors = {"input": x.detach(), "output": y.detach()}
        if _lacks_batch(module, x):
            tensors = {role: values.unsqueeze(0) for role, values in tensors.items()}
        if "gate" in call.state:
            tensors["gate"] = call.state.pop("gate").detach()
        parameters = self._find_parameters(module)
        size = getattr(module, "group_size", None) if settings.gate_act else None
        if size is not None and size != tensors["input"].shape[-1]:  # a norm for each group of features
            tensors = {role: values.unflatten(-1, (-1, size)) for role, values in tensors.items()}
            parameters = {role: values.unflatten(-1, (-1, size)) for role, values in parameters.items()}
            settings = settings._replace(options={**settings.options, "feature_axes": [-2, -1]})
        plan = _make_plan(settings, tensors["input"])
        if plan is not None and plan.parameters.axes == plan.grid.axes == (_OF_TOKENS - 1,):
            settings = settings._replace(options={**settings.options, "layout": "NLC"})
        sample = self._choose(plan, tensors["input"])
        if sample is not None:
            length = tensors["input"].shape[sample.axis]
            part = f"{len(sample.places):,} of {length:,} indices of axis {sample.axis} are recorded"
            settings = settings._replace(note="; ".join(filter(None, (settings.note, part))))
            if sample.of_parameters is None:  # averages over samples, of which some are left out
                settings = settings._replace(momentum=None)
        tensors |= parameters
        tensors |= call.state
        if settings.momentum is not None:
            tensors |= {f"{role}_after": getattr(module, role) for role in _RUNNING}
        name = recorder.add(settings, tensors, sample)
        if recorder.backward and y.requires_grad and sample is None and not settings.gate_act:
            write = functools.partial(self._write_gradients, name, call, _lacks_batch(module, x))
            y.register_hook(write)

    def _find_parameters(self, module: Any) -> dict[str, Any]:
        """Return the gamma and beta of a module, by role."""
        parameters: dict[str, Any] = {}
        for role, names in PARAMETERS.items():
            found = (value for name in names if (value := getattr(module, name, None)) is not None)
            parameter = next((value for value in found if self._recorder.refuse(value) is None), None)
            parameters |= {} if parameter is None else {role: parameter}
        return parameters

    def _write_gradients(self, name: str, call: _Call, is_single: bool, dy: Any) -> None:
        """Write the gradients of the first backward pass through a call, at the end of that pass."""
        recorder = self._recorder
        if "grad_output" in call.gradients or recorder.is_closed:
            return
        call.gradients["grad_output"] = dy

        def write_all() -> None:
            for role, values in call.gradients.items():
                alone = is_single and role in _OF_SHAPE
                recorder.write(f"{name}.{role}", values.unsqueeze(0) if alone else values)

        self._recorder.torch.autograd.Variable._execution_engine.queue_callback(write_all)

    def _choose(self, plan: Plan | None, x: Any) -> _Sample | None:
        """Return the groups of a large input that are recorded: whole samples, rows or channels."""
        most, recorder = self._recorder.most_bytes, self._recorder
        size = x.numel() * x.element_size()
        if most is None or size <= most or plan is None:
            return None
        whole = [
            axis for axis in range(x.ndim) if axis not in plan.grid.axes
        ]  # whose indices have groups alone
        if not whole:
            return None
        axis = max(whole, key=lambda axis: x.shape[axis])
        count = max(1, x.shape[axis] * most // size)
        places = recorder.torch.from_numpy(np.sort(recorder.rng.choice(x.shape[axis], count, replace=False)))
        axes = plan.parameters.axes
        return _Sample(axis, places, axes.index(axis) if axis in axes else None)


def _lacks_batch(module: Any, x: Any) -> bool:
    """Whether an input of torch's instance norms is a single sample, without an axis of batch."""
    rank = _RANKS.get(type(module).__name__)
    return rank is not None and x.ndim == rank - 1


_RANKS = {"InstanceNorm1d": 3, "InstanceNorm2d": 4, "InstanceNorm3d": 5}
"""The axes of a batch; one fewer are taken too."""


def _make_plan(settings: LayerSettings, x: Any) -> Plan | None:
    """Return the plan of a layer on its input; None where it is none that can be planned."""
    try:
        return make_plan(settings.read_request() or Request(""), tuple(x.shape), np.dtype(np.float32))
    except NormError:
        return None


def _move_to_parameters(sample: _Sample | None) -> _Sample | None:
    """Return the sample of gamma, beta and running statistics: None where these are recorded whole."""
    if sample is None or sample.of_parameters is None:
        return None
    return sample._replace(axis=sample.of_parameters)
