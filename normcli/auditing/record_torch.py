"""The hooks of torch's modules: each call of a norm, with its input, output and settings, is written."""

from __future__ import annotations

import functools
import inspect
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.auditing.dump_file import RUNNING, LayerSettings
from normcli.auditing.layer import CALL
from normcli.auditing.modules import NO_GRADIENTS, describe_module, describe_second, find_parameters
from normcli.errors import NormError
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from normcli.auditing.dump_file import DumpWriter
    from normcli.norms.plan import Plan

_DTYPES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2", "int64": "I64", "int32": "I32", "int16": "I16", "int8": "I8", "uint8": "U8",
    "bool": "BOOL",
}  # fmt: skip
"""torch's names of dtypes → those of safetensors."""

_OF_TOKENS = 3
"""The axes of a tensor of batch, tokens and features."""


class _Sample(NamedTuple):
    """The indices along one axis of a large input that are recorded; all others are left out.

    Parameters
    ----------
    axis : int
        The axis of x.
    places : torch.Tensor of int
        The recorded indices, ascending.
    of_parameters : int or None
        The same axis of gamma and beta; None if they do not have it.
    """

    axis: int
    places: Any
    of_parameters: int | None


class _Call:
    """One call of a module, from its beginning on, with what is to be written at its end.

    Parameters
    ----------
    settings : LayerSettings
    x : torch.Tensor or None
        The input, which may be no tensor if it cannot be recorded; None if the module took none.
    state : mapping of str to torch.Tensor
        Running statistics before the call, and the gate, by role.
    """

    def __init__(self, settings: LayerSettings, x: Any, state: Mapping[str, Any]) -> None:
        self.settings, self.x, self.state = settings, x, state
        self.gradients: dict[str, Any] = {}
        self.replaced: dict[str, Any] = {}

    def take(self, role: str, gradient: Any) -> None:
        """Store the gradient of a role; gradients of later backward passes are ignored."""
        self.gradients.setdefault(role, gradient)


class Recorder:
    """Writes the calls of a model's norms to a dump.

    Parameters
    ----------
    torch : module
    writer : DumpWriter
    also : mapping
        A class, or its name → the norm that it is.
    most_bytes : int or None
        The size above which an input is recorded in part; None: all are recorded whole.
    rng : numpy.random.Generator
        Draws the groups of an input that is recorded in part.
    backward : bool
        Whether gradients are recorded.

    Attributes
    ----------
    graded : set of str
        The names of the calls whose gradients were recorded.
    """

    def __init__(
        self, torch: Any, writer: DumpWriter, also: Mapping[Any, str], most_bytes: int | None, rng: Any, *,
        backward: bool,
    ) -> None:  # fmt: skip
        self.torch, self.writer, self.also, self.most_bytes, self.rng = torch, writer, also, most_bytes, rng
        self.backward, self.graded = backward, set[str]()
        self._layers = list[LayerSettings]()
        self.is_closed = False
        self._names: set[str] = set()
        self._lock = threading.RLock()

    def add(self, settings: LayerSettings, tensors: Mapping[str, Any], sample: _Sample | None) -> str:
        """Write a call's tensors by role; return the name that the call has in the dump, `NAME` or `NAME#2` ….

        With a `sample`, a tensor that has the sampled axis is written with the sample's indices alone; other
        tensors are written whole. None stands for all indices.
        """
        with self._lock:
            name, number = settings.name, 1
            while name in self._names:
                number += 1
                name = f"{settings.name}{CALL}{number}"
            self._names.add(name)
            for role, tensor in tensors.items():
                some = sample if role in _OF_SHAPE else _move_to_parameters(sample)
                self.write(f"{name}.{role}", tensor, some)
            self._layers.append(settings._replace(name=name))
            return name

    def list_layers(self) -> list[LayerSettings]:
        """Return the settings of the layers; a note says which lack gradients, if these were asked for."""
        return [
            one.add_note(NO_GRADIENTS) if self.backward and one.name not in self.graded else one
            for one in self._layers
        ]

    def write(self, name: str, tensor: Any, sample: _Sample | None = None) -> None:
        """Write a tensor under a name such as `NAME.ROLE`: all of it, or with a sample the sample's indices."""
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
        """Return words on why a value cannot be recorded; None if it can."""
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


class ModuleWatch:
    """The hooks of one module: `begin` runs before each of its calls, and `end` after it.

    Parameters
    ----------
    recorder : Recorder
    name : str
        The module's name in the model.
    """

    def __init__(self, recorder: Recorder, name: str) -> None:
        self._recorder, self._name = recorder, name
        self._calls = threading.local()

    def begin(self, module: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Store the input and the module's state before the module runs.

        If gradients are recorded, return new arguments for the module, as (positional, named): its input is
        replaced by a view, whose gradient is of this call alone. Until `end`, weight and bias of the module are
        replaced by views for the same reason. If gradients are not recorded, return None.
        """
        recorder = self._recorder
        settings = describe_module(self._name, module, recorder.also)
        every: dict[Any, Any] = {**dict(enumerate(args)), **named}
        place = next((key for key, value in every.items() if isinstance(value, recorder.torch.Tensor)), None)
        x: Any = every.get(0 if place is None else place)
        reason = recorder.refuse(x)
        if reason is not None and settings.norm is not None:
            settings = settings._replace(norm=None, problem=reason)
        wanted = RUNNING if settings.evaluation or settings.momentum is not None else ()
        state = {role: getattr(module, role).detach().clone() for role in wanted}
        given = [value for value in every.values() if isinstance(value, recorder.torch.Tensor)]
        if given[1:] == []:
            settings = settings._replace(gate_act="", gates_input=False)
        elif settings.norm is not None and not settings.gate_act:
            called = _find_name(module, args, named, given[1])
            settings = describe_second(settings, module, called, has_same_shape=given[1].shape == x.shape)
        if settings.gate_act and recorder.refuse(given[1]) is None:
            state["gate"] = given[1]
        call = _Call(settings, x, state)
        vars(self._calls).setdefault("open", []).append(call)
        if not recorder.backward or settings.norm is None or settings.gate_act:
            return None
        if x.requires_grad and recorder.torch.is_grad_enabled():
            every[place] = x.view_as(x)  # a view, whose gradient is of this call alone
            every[place].register_hook(functools.partial(call.take, "grad_input"))
        for role, held in find_parameters(module).items():
            parameter = module._parameters.get(held)
            if parameter is not None and parameter.requires_grad:
                call.replaced[held] = parameter
                module._parameters[held] = parameter.view_as(parameter)
                if module._parameters[held].requires_grad:
                    module._parameters[held].register_hook(functools.partial(call.take, f"grad_{role}"))
        return tuple(every[n] for n in range(len(args))), {key: every[key] for key in named}

    def end(self, module: Any, args: tuple[Any, ...], output: Any) -> None:
        """Restore the module's own weight and bias, and write the call: settings, input, output and parameters.

        For a layer that cannot be judged, only the settings are written. Nothing is written if its output
        cannot be recorded; `output` is None if the module raised an exception.
        """
        recorder, call = self._recorder, self._calls.open.pop()
        module._parameters.update(call.replaced)
        y = output[0] if isinstance(output, tuple) and output else output
        settings, x, call.x = call.settings, call.x, None  # autograd keeps the call, which needs x no longer
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
            settings = settings.add_note(part)
            if sample.of_parameters is None:  # running statistics need all samples
                settings = settings._replace(momentum=None)
        tensors |= parameters
        tensors |= call.state
        if settings.momentum is not None:
            tensors |= {f"{role}_after": getattr(module, role) for role in RUNNING}
        name = recorder.add(settings, tensors, sample)
        if recorder.backward and y.requires_grad and sample is None and not settings.gate_act:
            write = functools.partial(self._write_gradients, name, call, _lacks_batch(module, x))
            y.register_hook(write)

    def _find_parameters(self, module: Any) -> dict[str, Any]:
        """Return the gamma and beta of a module, by role."""
        held = {role: getattr(module, name) for role, name in find_parameters(module).items()}
        return {role: values for role, values in held.items() if self._recorder.refuse(values) is None}

    def _write_gradients(self, name: str, call: _Call, is_single: bool, dy: Any) -> None:
        """Store `dy`, and write all gradients of a call at the end of its first backward pass.

        Parameters
        ----------
        name : str
            The name of the call in the dump.
        call : _Call
        is_single : bool
            Whether the input is a single sample, to which a batch axis is added.
        dy : torch.Tensor
            The gradient of the output.
        """
        recorder = self._recorder
        if "grad_output" in call.gradients or recorder.is_closed:
            return
        call.gradients["grad_output"] = dy
        recorder.graded.add(name)

        def write_all() -> None:
            for role, values in call.gradients.items():
                alone = is_single and role in _OF_SHAPE
                recorder.write(f"{name}.{role}", values.unsqueeze(0) if alone else values)

        self._recorder.torch.autograd.Variable._execution_engine.queue_callback(write_all)

    def _choose(self, plan: Plan | None, x: Any) -> _Sample | None:
        """Return the indices of a large input that are recorded; None to record the input whole.

        They are drawn along the longest axis that is not reduced, so that each recorded group is complete. The
        input is recorded whole if it has at most `most_bytes` bytes, if `most_bytes` or `plan` is None, or if
        all axes are reduced.
        """
        most, recorder = self._recorder.most_bytes, self._recorder
        size = x.numel() * x.element_size()
        if most is None or size <= most or plan is None:
            return None
        # The axes along which each index has groups of its own.
        whole = [axis for axis in range(x.ndim) if axis not in plan.grid.axes]
        if not whole:
            return None
        axis = max(whole, key=lambda axis: x.shape[axis])
        count = max(1, x.shape[axis] * most // size)
        places = recorder.torch.from_numpy(np.sort(recorder.rng.choice(x.shape[axis], count, replace=False)))
        axes = plan.parameters.axes
        return _Sample(axis, places, axes.index(axis) if axis in axes else None)


def _find_name(module: Any, args: tuple[Any, ...], named: dict[str, Any], value: Any) -> str:
    """Return the name that a module's `forward` has for an argument."""
    arguments = inspect.signature(module.forward).bind(*args, **named).arguments
    return next((name for name, one in arguments.items() if one is value), "a second tensor")


def _lacks_batch(module: Any, x: Any) -> bool:
    """Whether an input of torch's instance norms is a single sample, without an axis of batch."""
    rank = _RANKS.get(type(module).__name__)
    return rank is not None and x.ndim == rank - 1


_RANKS = {"InstanceNorm1d": 3, "InstanceNorm2d": 4, "InstanceNorm3d": 5}
"""Class → the number of axes of a batch; a single sample has one fewer."""


def _make_plan(settings: LayerSettings, x: Any) -> Plan | None:
    """Return the plan of a layer for its input; None if the norm is unknown or does not fit the shape."""
    try:
        return make_plan(settings.read_request() or Request(""), tuple(x.shape), np.dtype(np.float32))
    except NormError:
        return None


def _move_to_parameters(sample: _Sample | None) -> _Sample | None:
    """Return the sample for gamma, beta and running statistics; None if these are recorded whole."""
    if sample is None or sample.of_parameters is None:
        return None
    return sample._replace(axis=sample.of_parameters)
