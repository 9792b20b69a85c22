"""The hooks of torch's modules: each call of a norm, with its input, output and settings, is written."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.auditing.dump_file import PARAMETERS, RUNNING, WEIGHTS, LayerSettings
from normcli.auditing.modules import (
    NO_GRADIENTS,
    align,
    describe_further,
    describe_module,
    find_parameters,
    is_known,
    looks_like_norm,
)
from normcli.errors import NormError, UsageError
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from normcli.auditing.dump_file import DumpWriter
    from normcli.norms.plan import Plan

_COMPILED = "_orig_mod."
"""The prefix that `torch.compile` puts before the names of a model's modules."""

_DTYPES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2", "int64": "I64", "int32": "I32", "int16": "I16", "int8": "I8", "uint8": "U8",
    "bool": "BOOL",
}  # fmt: skip
"""torch's names of dtypes → those of safetensors."""

_OF_TOKENS = 3
"""The axes of a tensor of batch, tokens and features."""

_OF_SHAPE = ("input", "output", "grad_input", "grad_output", "gate", "grad_gate")
"""Roles of tensors that have the input's shape."""

_INPUTS = ("weight_v",)
"""The names that the `forward` of classes has for their input, where it is not the first tensor."""

_FUNCTIONS = {
    "layer_norm": "LayerNorm",
    "rms_norm": "RMSNorm",
    "group_norm": "GroupNorm",
    "local_response_norm": "LocalResponseNorm",
    "batch_norm": None,
    "instance_norm": None,
}
"""Function of `torch.nn.functional` → the class that calls it with its attributes; None: it is not recorded."""

_RANKS = {"InstanceNorm1d": 3, "InstanceNorm2d": 4, "InstanceNorm3d": 5}
"""Class → the number of axes of a batch; a single sample has one fewer."""


class _Sample(NamedTuple):
    """The indices along one axis of a large input that are recorded; all others are left out.

    Parameters
    ----------
    axis : int
        The axis of x.
    places : torch.Tensor of int
        The recorded indices, ascending.
    of_parameters : int or None
        The same axis of gamma, beta and running statistics; None if they do not have it.
    """

    axis: int
    places: Any
    of_parameters: int | None

    def take(self, role: str, tensor: Any) -> Any:
        """Return the recorded part of a role's tensor: all of it if it does not have the axis."""
        axis = self.axis if role in _OF_SHAPE else self.of_parameters
        return tensor if axis is None else tensor.detach().index_select(axis, self.places.to(tensor.device))

    def note(self, settings: LayerSettings, x: Any) -> LayerSettings:
        """Return the settings of a layer with a remark on the part that is recorded of its input."""
        part = f"{len(self.places):,} of {x.shape[self.axis]:,} indices of axis {self.axis} are recorded"
        settings = settings.add_note(part)
        # running statistics need all samples
        return settings._replace(momentum=None) if self.of_parameters is None else settings


class _Call:
    """One call of a module, from its beginning on, with what is to be written at its end.

    Parameters
    ----------
    settings : LayerSettings
    x : torch.Tensor or None
        The input, which may be no tensor if it cannot be recorded; None if the module took none.
    state : mapping of str to torch.Tensor
        Running statistics before the call, by role.
    size : int or None
        The features that a gated norm normalizes together; None: all of them.
    """

    def __init__(self, settings: LayerSettings, x: Any, state: Mapping[str, Any], size: int | None) -> None:
        self.settings, self.x, self.state, self.size = settings, x, state, size
        self.given: dict[str, Any] = {}
        self.gradients: dict[str, Any] = {}
        self.replaced: dict[str, Any] = {}
        self.is_single = False

    def shape(self, role: str, values: Any) -> Any:
        """Return a role's tensor in the shape in which it is written."""
        if self.is_single and role in _OF_SHAPE:
            return values.unsqueeze(0)
        return values if self.size is None else values.unflatten(-1, (-1, self.size))

    def take(self, role: str, gradient: Any) -> None:
        """Store the gradient of a role; gradients of later backward passes are ignored."""
        self.gradients.setdefault(role, gradient)


class Recorder:
    """Writes the calls of a PyTorch model's norms to a dump.

    Parameters
    ----------
    model : torch.nn.Module
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
    norms : list of (str, torch.nn.Module)
        The norms of the model with their names.
    graded : set of str
        The names of the calls whose gradients were recorded.

    Raises
    ------
    UsageError
        If it is no model of PyTorch, or has no known norm.
    """

    def __init__(
        self, model: Any, also: Mapping[Any, str], most_bytes: int | None, rng: Any, *, backward: bool
    ) -> None:
        self._torch: Any = importlib.import_module("torch")
        if not isinstance(model, self._torch.nn.Module):
            raise UsageError(f"{type(model).__name__} is no model of PyTorch, Keras or Flax Linen")
        named = ((name.replace(_COMPILED, ""), module) for name, module in model.named_modules())
        self.norms = [(name or "model", module) for name, module in named if looks_like_norm(module, also)]
        if self.norms and not any(is_known(module, also) for _, module in self.norms):
            kind = min(type(module).__name__ for _, module in self.norms)
            hint = f"say what {kind} is: also={{'{kind}': 'rms'}}, or another norm"
            raise UsageError(f"the model has no module that is known for a norm; {hint}")
        self._names = {id(module): name.replace(_COMPILED, "") for name, module in model.named_modules()}
        self._also, self._most_bytes, self._rng, self._backward = also, most_bytes, rng, backward
        self.framework, self.graded = f"torch {self._torch.__version__}", set[str]()
        self._open_calls = threading.local()  # a list for each module, by name, of calls that have not ended

    @contextlib.contextmanager
    def watch(self, writer: DumpWriter) -> Iterator[None]:
        """Return a context manager in whose block each call of the model's norms is written.

        A backward pass after it writes nothing. Notes say at the end which calls lack gradients, if these were
        asked for.
        """
        self._writer, self._closed = writer, threading.Event()
        disable = self._torch.compiler.disable
        with contextlib.ExitStack() as hooks:
            for name, module in self.norms:
                begin, end = (disable(functools.partial(hook, name)) for hook in (self._begin, self._end))
                hooks.callback(module.register_forward_pre_hook(begin, with_kwargs=True).remove)
                hooks.callback(module.register_forward_hook(end, always_call=True).remove)
            hooks.callback(self._closed.set)
            hooks.enter_context(self._catch_functions())
            yield
        if self._backward:
            writer.layers = [
                one if one.name in self.graded else one.add_note(NO_GRADIENTS) for one in writer.layers
            ]

    def _catch_functions(self) -> Any:
        """Return a context manager in which norms that the model calls as functions are written.

        Functions within a norm's module, and in code that is being compiled, are not.
        """

        def catch(_: Any, function: Any, types: Any, args: Any = (), named: Any = None) -> Any:
            is_other = getattr(function, "__name__", "") not in _FUNCTIONS or not inspect.isfunction(function)
            if self._torch.compiler.is_compiling() or is_other or any(vars(self._open_calls).values()):
                return function(*args, **(named or {}))
            return self._call(function, args, named or {})

        return type("Catcher", (self._torch.overrides.TorchFunctionMode,), {"__torch_function__": catch})()

    def _call(self, function: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Run a norm's function as a module with its arguments, which is written, and return its output."""
        kind, frame = _FUNCTIONS[function.__name__], inspect.currentframe()
        while frame is not None and id(frame.f_locals.get("self")) not in self._names:
            frame = frame.f_back
        if frame is None:
            return function(*args, **named)
        name = f"{self._names[id(frame.f_locals['self'])]}.{function.__name__}".removeprefix(".")
        if kind is None:
            problem = f"{function.__name__} is called as a function, and not recorded"
            self._writer.add_call(LayerSettings(name, problem=problem))
            return function(*args, **named)
        given = inspect.signature(function).bind(*args, **named)
        given.apply_defaults()
        module: Any = object.__new__(getattr(self._torch.nn, kind))
        self._torch.nn.Module.__init__(module)
        for attribute, value in given.arguments.items():
            (module._parameters if attribute in WEIGHTS else vars(module))[attribute] = value
        module.elementwise_affine = given.arguments.get("weight", kind) is not None
        x, output = vars(module).pop("input"), None
        args, _ = self._begin(name, module, (x,), {}) or ((x,), {})
        try:
            output = module.forward(*args)
        finally:
            self._end(name, module, args, output)
        return output

    def _refuse(self, tensor: Any) -> str | None:
        """Return words on why a value cannot be recorded; None if it can."""
        if not isinstance(tensor, self._torch.Tensor):
            return f"a {type(tensor).__name__} cannot be recorded"
        dtype = str(tensor.dtype).rpartition(".")[2]
        if tensor.layout is not self._torch.strided or tensor.is_nested or tensor.is_meta:
            return "a tensor that is sparse, nested or without values cannot be recorded"
        if self._torch._C._functorch.is_functorch_wrapped_tensor(tensor):
            return "a tensor within vmap or grad cannot be recorded"
        return None if dtype in _DTYPES else f"{dtype} cannot be recorded"

    def _write(self, name: str, tensors: Mapping[str, Any]) -> None:
        """Write the tensors of a call by role."""
        for role, tensor in tensors.items():
            dtype = _DTYPES[str(tensor.dtype).rpartition(".")[2]]
            raw = tensor.detach().contiguous().cpu().reshape(-1).view(self._torch.uint8).numpy()
            self._writer.add(f"{name}.{role}", dtype, tensor.shape, raw)

    def _begin(self, name: str, module: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Store the input and the module's state before the module runs.

        If gradients are recorded, return new arguments for the module, as (positional, named): its input is
        replaced by a view, whose gradient is of this call alone. Until `_end`, weight and bias of the module
        are replaced by views for the same reason. If gradients are not recorded, return None.
        """
        settings = describe_module(name, module, self._also)
        every: dict[Any, Any] = {**dict(enumerate(args)), **named}
        tensors = {key: value for key, value in every.items() if isinstance(value, self._torch.Tensor)}
        called = _find_names(module, args, named, tensors) if len(tensors) > 1 else {}
        place = next((key for key, one in called.items() if one in _INPUTS), next(iter(tensors), 0))
        x: Any = every.get(place)
        reason = self._refuse(x)
        if reason is not None and settings.norm is not None:
            settings = settings._replace(norm=None, problem=reason)
        wanted = RUNNING if settings.evaluation or settings.momentum is not None else ()
        state = {role: getattr(module, role).detach().clone() for role in wanted}
        roles = {place: "input"}
        if settings.norm is not None:
            shapes = {key: (called[key], (*one.shape,)) for key, one in tensors.items() if key != place}
            settings, further = describe_further(settings, module, shapes, (*x.shape,))
            roles |= {key: role for key, role in further.items() if self._refuse(tensors[key]) is None}
        size = _find_group_size(module, x) if settings.gate_act else None
        call = _Call(settings, x, state, size)
        for key, role in roles.items():
            if role in PARAMETERS:  # without the axes along which it does not vary
                axes = align((*tensors[key].shape,), (*x.shape,))
                tensors[key] = tensors[key].reshape([x.shape[axis] for axis in axes])
            if key != place:
                call.given[role] = tensors[key].detach()
        vars(self._open_calls).setdefault(name, []).append(call)
        if not self._backward or settings.norm is None:
            return None
        for key, role in roles.items():
            every[key] = self._watch_gradient(call, role, every[key])
        for role, held in find_parameters(module).items():
            if module._parameters.get(held) is not None:
                call.replaced[held] = module._parameters[held]
                module._parameters[held] = self._watch_gradient(call, role, call.replaced[held])
        return tuple(every[n] for n in range(len(args))), {key: every[key] for key in named}

    def _watch_gradient(self, call: _Call, role: str, tensor: Any) -> Any:
        """Return a view of a tensor, whose gradient is of this call alone; the tensor itself if it has none."""
        view = tensor.view_as(tensor) if tensor.requires_grad else tensor
        if view.requires_grad:
            view.register_hook(functools.partial(call.take, f"grad_{role}"))
        return view

    def _end(self, name: str, module: Any, args: tuple[Any, ...], output: Any) -> None:
        """Restore the module's own weight and bias, and write the call: settings, input, output and parameters.

        For a layer that cannot be judged, only the settings are written. Nothing is written if its output
        cannot be recorded; `output` is None if the module raised an exception.
        """
        call: _Call = vars(self._open_calls)[name].pop()
        module._parameters.update(call.replaced)
        y = output[0] if isinstance(output, tuple) and output else output
        settings, x, given = call.settings, call.x, call.given
        call.x, call.given = None, {}  # autograd keeps the call, which needs them no longer
        if settings.norm is None:
            if y is not None:
                self._writer.add_call(settings)
            return
        if y is None or self._refuse(y) is not None:
            return
        call.is_single = _RANKS.get(type(module).__name__) == x.ndim + 1
        held = {role: getattr(module, attribute) for role, attribute in find_parameters(module).items()}
        tensors = {role: values for role, values in held.items() if self._refuse(values) is None}
        tensors |= {"input": x.detach(), "output": y.detach(), **given}
        tensors = {role: call.shape(role, values) for role, values in tensors.items()}
        if call.size is not None:  # a norm for each group of features
            settings = settings.add_option("feature_axes", [-2, -1])
        plan = _make_plan(settings, tensors["input"])
        if plan is not None and plan.parameters.axes == plan.grid.axes == (_OF_TOKENS - 1,):
            settings = settings.add_option("layout", "NLC")
        sample = self._choose(plan, tensors["input"])
        if sample is not None:
            settings = sample.note(settings, tensors["input"])
        tensors |= call.state
        if settings.momentum is not None:
            tensors |= {f"{role}_after": getattr(module, role) for role in RUNNING}
        if sample is not None:
            tensors = {role: sample.take(role, values) for role, values in tensors.items()}
        called = self._writer.add_call(settings)
        self._write(called, tensors)
        if self._backward and y.requires_grad and sample is None:
            y.register_hook(functools.partial(self._write_gradients, called, call))

    def _write_gradients(self, name: str, call: _Call, dy: Any) -> None:
        """Store `dy`, and write all gradients of a call at the end of its first backward pass.

        Parameters
        ----------
        name : str
            The name of the call in the dump.
        call : _Call
        dy : torch.Tensor
            The gradient of the output.
        """
        if "grad_output" in call.gradients or self._closed.is_set():
            return
        call.gradients["grad_output"] = dy
        self.graded.add(name)

        def write_all() -> None:
            self._write(name, {role: call.shape(role, values) for role, values in call.gradients.items()})

        self._torch.autograd.Variable._execution_engine.queue_callback(write_all)

    def _choose(self, plan: Plan | None, x: Any) -> _Sample | None:
        """Return the indices of a large input that are recorded; None to record the input whole.

        They are drawn along the longest axis that is not reduced, so that each recorded group is complete. The
        input is recorded whole if it has at most `most_bytes` bytes, if `most_bytes` or `plan` is None, or if
        all axes are reduced.
        """
        most, size = self._most_bytes, x.numel() * x.element_size()
        if most is None or size <= most or plan is None:
            return None
        # The axes along which each index has groups of its own.
        whole = [axis for axis in range(x.ndim) if axis not in plan.grid.axes]
        if not whole:
            return None
        axis = max(whole, key=lambda axis: x.shape[axis])
        count = max(1, x.shape[axis] * most // size)
        places = self._torch.from_numpy(np.sort(self._rng.choice(x.shape[axis], count, replace=False)))
        axes = plan.parameters.axes
        return _Sample(axis, places, axes.index(axis) if axis in axes else None)


def _find_names(module: Any, args: Any, named: Any, tensors: Mapping[Any, Any]) -> dict[Any, str]:
    """Return the names that a module's `forward` has for tensors among its arguments, by their keys."""
    arguments = inspect.signature(module.forward).bind(*args, **named).arguments
    names = {id(value): name for name, value in arguments.items()}
    return {key: names.get(id(value), "a second tensor") for key, value in tensors.items()}


def _find_group_size(module: Any, x: Any) -> int | None:
    """Return the features that a gated norm normalizes together; None if these are all of them."""
    size: int = getattr(module, "group_size", x.shape[-1] // getattr(module, "n_groups", 1))
    return None if size == x.shape[-1] else size


def _make_plan(settings: LayerSettings, x: Any) -> Plan | None:
    """Return the plan of a layer for its input; None if the norm is unknown or does not fit the shape."""
    try:
        return make_plan(settings.read_request() or Request(""), tuple(x.shape), np.dtype(np.float32))
    except NormError:
        return None
