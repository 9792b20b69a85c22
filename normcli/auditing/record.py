"""The norms of a model of PyTorch, Keras or Flax, recorded while it runs: their inputs, outputs and weights."""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.auditing.dump_file import DumpWriter, LayerSettings
from normcli.auditing.layer import CALL
from normcli.auditing.modules import describe_module, looks_like_norm, require_norms
from normcli.auditing.record_torch import ModuleWatch, Recorder
from normcli.errors import DataError, UsageError
from normcli.tensors.written_whole import open_whole, require_writable
from normcli.tuples import NamedTuple
from normcli.version import __version__

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping

    Watch = Callable[[Any, "Calls"], contextlib.AbstractContextManager[None]]


class _ClassRule(NamedTuple):
    """The rule to read a class of layers of Keras or Flax: its norm, options and tensors.

    Parameters
    ----------
    norm : str
    options : mapping
        Option → the attribute that holds it.
    keeps : bool
        Whether the attribute `axis` is the axis that is not reduced (the channel).
    weight : str
        The attribute of a Keras layer that holds gamma.
    """

    norm: str
    options: Mapping[str, str] = {"eps": "epsilon"}
    keeps: bool = False
    weight: str = "gamma"


_OF_GROUPS = {"eps": "epsilon", "groups": "num_groups"}

_KERAS: Mapping[str, _ClassRule] = {
    "LayerNormalization": _ClassRule("ln", {"eps": "epsilon", "axes": "axis"}),
    "BatchNormalization": _ClassRule("bn", keeps=True),
    "GroupNormalization": _ClassRule("gn", {"eps": "epsilon", "groups": "groups"}),
    "RMSNormalization": _ClassRule("rms", {"eps": "epsilon", "axes": "axis"}, weight="scale"),
}
"""Classes of Keras 3.15."""

_FLAX: Mapping[str, _ClassRule] = {
    "LayerNorm": _ClassRule("ln", {"eps": "epsilon", "axes": "reduction_axes"}),
    "BatchNorm": _ClassRule("bn", keeps=True),
    "GroupNorm": _ClassRule("gn", _OF_GROUPS),
    "RMSNorm": _ClassRule("rms", {"eps": "epsilon", "axes": "reduction_axes"}),
    "InstanceNorm": _ClassRule("in"),
}
"""Classes of Flax Linen 0.12."""


class Calls:
    """A writer of a layer's calls: `add` writes the tensors to a dump, and appends the settings to `layers`.

    Parameters
    ----------
    writer : DumpWriter
    """

    def __init__(self, writer: DumpWriter) -> None:
        self.layers: list[LayerSettings] = []
        self._writer, self._counts = writer, dict[str, int]()

    def add(self, name: str, settings: LayerSettings, tensors: Mapping[str, Any]) -> None:
        """Write a call of a layer: its settings, and its tensors by role; a tensor of None is left out."""
        count = self._counts[name] = self._counts.get(name, 0) + 1
        called = name if count == 1 else f"{name}{CALL}{count}"
        self.layers.append(settings._replace(name=called))
        for role, values in tensors.items():
            if values is not None:
                self._writer.add_array(f"{called}.{role}", np.asarray(values))


def find_watch(model: Any) -> Watch | None:
    """Return the function that records a model of Keras or Flax; None for other models.

    The function takes the model and `Calls`, and returns a context manager, in whose block calls are recorded.
    """
    keras, flax = sys.modules.get("keras"), sys.modules.get("flax.linen")
    if keras is not None and isinstance(model, keras.Layer):
        return _watch_keras
    return _watch_flax if flax is not None and isinstance(model, flax.Module) else None


def _describe(
    rule: _ClassRule, layer: Any, like: str, momentum: float | None, *, evaluation: bool
) -> LayerSettings:
    """Return the settings of a layer of Keras or Flax as its attributes are now, without a name.

    Parameters
    ----------
    rule : _ClassRule
        How the layer's class is read.
    layer : object
    like : str
        The framework's name in the table of conventions.
    momentum : float or None
        The momentum of running statistics that this call updates; None if it updates none.
    evaluation : bool
        Whether the layer normalizes with running statistics.
    """
    options: dict[str, Any] = {"like": like}
    for option, attribute in rule.options.items():
        value = getattr(layer, attribute, None)
        if value is not None:
            options[option] = _shorten(value)
    if rule.keeps and (axis := getattr(layer, "axis", -1)) != -1:
        options["keep"] = _shorten(axis)
    kind = f"{type(layer).__module__}.{type(layer).__qualname__}"
    return LayerSettings("", rule.norm, options, evaluation=evaluation, momentum=momentum, kind=kind)


def _shorten(value: Any) -> Any:
    """Return an attribute as JSON holds it: a float, an int, or a list of int."""
    if isinstance(value, float):
        return value
    return list(map(int, value)) if isinstance(value, list | tuple) else int(value)


@contextlib.contextmanager
def _watch_keras(model: Any, calls: Calls) -> Iterator[None]:
    """Return a context manager that wraps the `call` of each norm of a Keras model while its block runs.

    Each call is added to `calls`; at the end, also after an error, the layers' own methods are restored.
    """
    import keras

    give = keras.ops.convert_to_numpy
    layers = [layer for layer in model._flatten_layers() if type(layer).__name__ in _KERAS]
    names = {id(layer): layer.path if layer.path else layer.name for layer in layers}

    def read(layer: Any, name: str) -> Any:
        values = getattr(layer, name, None)
        return None if values is None else give(values)

    def wrap(layer: Any) -> Any:
        call = layer.call

        @functools.wraps(call)
        def record(inputs: Any, *args: Any, **options: Any) -> Any:
            rule, is_batch = _KERAS[type(layer).__name__], hasattr(layer, "moving_mean")
            trains = is_batch and bool(options.get("training")) and layer.trainable
            before = (read(layer, "moving_mean"), read(layer, "moving_variance")) if is_batch else (None, None)
            output = call(inputs, *args, **options)
            after = (read(layer, "moving_mean"), read(layer, "moving_variance")) if trains else (None, None)
            momentum = float(layer.momentum) if trains else None
            settings = _describe(rule, layer, "keras", momentum, evaluation=is_batch and not trains)
            calls.add(names[id(layer)], settings, {
                "input": give(inputs), "output": give(output),
                "weight": read(layer, rule.weight), "bias": read(layer, "beta"),
                "running_mean": before[0], "running_var": before[1],
                "running_mean_after": after[0], "running_var_after": after[1],
            })  # fmt: skip
            return output

        return record

    with contextlib.ExitStack() as restored:
        for layer in layers:
            own = layer.__dict__.get("call")
            object.__setattr__(layer, "call", wrap(layer))
            restored.callback(_restore, layer, own)
        yield


def _restore(layer: Any, own: Any) -> None:
    """Undo the wrapping of a layer's `call`; `own` is the layer's own attribute before, or None."""
    if own is None:
        object.__delattr__(layer, "call")
    else:
        object.__setattr__(layer, "call", own)


@contextlib.contextmanager
def _watch_flax(model: Any, calls: Calls) -> Iterator[None]:
    """Return a context manager that intercepts calls of Flax Linen's norms outside of `jit` in its block.

    Each call is added to `calls`.
    """
    from flax import linen

    def intercept(call: Any, args: Any, options: Any, context: Any) -> Any:
        layer, rule = context.module, _FLAX.get(type(context.module).__name__)
        if rule is None or context.method_name != "__call__":
            return call(*args, **options)
        stats = _read_collection(layer, "batch_stats")
        asked = options.get("use_running_average")
        uses = bool(stats) and linen.merge_param("use", layer.use_running_average, asked)
        output = call(*args, **options)
        after = _read_collection(layer, "batch_stats") if stats and not uses else {}
        is_updated = bool(after) and layer.is_mutable_collection("batch_stats")
        params = _read_collection(layer, "params")
        momentum = float(layer.momentum) if is_updated else None
        settings = _describe(rule, layer, "flax-linen", momentum, evaluation=bool(uses))
        calls.add("/".join(layer.path) or "model", settings, {
            "input": args[0], "output": output, "weight": params.get("scale"), "bias": params.get("bias"),
            "running_mean": stats.get("mean"), "running_var": stats.get("var"),
            "running_mean_after": after.get("mean") if is_updated else None,
            "running_var_after": after.get("var") if is_updated else None,
        })  # fmt: skip
        return output

    with linen.intercept_methods(intercept):
        yield


def _read_collection(layer: Any, name: str) -> dict[str, Any]:
    """Return the variables of a module's collection by name; empty if it has no such collection."""
    return dict(layer.variables.get(name, {}))


_COMPILED = "_orig_mod."
"""The prefix that `torch.compile` puts before the names of a model's modules."""

_FEW_LAYERS = 64
"""The number of layers for which a header has room if the number of norms is not known before."""


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
    """Return a context manager that writes each norm's inputs and outputs to a file while its block runs.

    Parameters
    ----------
    model : torch.nn.Module, keras.Layer or flax.linen.Module
        Its norms are known by their classes: those of the framework, and of torch's modules those that
        `normcli conventions` names. Keras and Flax models run outside of `jit` and `predict`, with a forward
        pass alone; all options below are for PyTorch only.
    path : path
        A safetensors file, which is written whole when the block ends, and not at all if it raises.
    backward : bool
        Whether gradients are recorded too; call `backward()` inside the block. If none come, a `UserWarning`
        says so.
    also : mapping, optional
        A class, or its name → the norm that it is, as `{MyNorm: "rms"}` or `{"Norm2d": "ln:axes=1"}`.
    most_bytes : int, optional
        The size above which an input is recorded in part: whole groups of about this many bytes, drawn with
        `seed`. By default all are recorded whole.
    seed : int
        The seed of that draw, at least 0.

    Raises
    ------
    UsageError
        If no module is a known norm, `path` does not end in `.safetensors`, or an option has no valid value.
    DataError
        If no norm ran in the block, or the file cannot be written.

    Notes
    -----
    Gamma is a PyTorch module's `weight`, `gamma`, `scale`, `a_2` or `g`, and beta its `bias`, `beta`, `shift`,
    `b_2` or `b`. A module with other parameters is recorded, and `audit` says that it cannot judge it.

    A second tensor that a module's `forward` calls `gate` or `z` is recorded as a gate: with the module's
    `activation`, otherwise silu; it multiplies the input if the module's `norm_before_gate` is False, otherwise
    the result. Other further tensors are not recorded; `audit` says so where the output is not of the input.

    A module that is called again has `NAME#2`, `NAME#3`, … Values are copied to the processor's memory as they
    are, one tensor at a time. The file is described by `normcli help dumps`; `normcli audit` judges it.

    Examples
    --------
    With a model of PyTorch and a batch for it:

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
        recorder = Recorder(torch, DumpWriter(stream, len(norms)), also, most_bytes, rng, backward=backward)
        for name, module in norms:
            watch = ModuleWatch(recorder, name)
            begin, end = (torch.compiler.disable(hook) for hook in (watch.begin, watch.end))
            hooks.callback(module.register_forward_pre_hook(begin, with_kwargs=True).remove)
            hooks.callback(module.register_forward_hook(end, always_call=True).remove)
        hooks.callback(recorder.close)
        yield
        _finish(target, recorder.writer, recorder.list_layers(), f"torch {torch.__version__}")
    if backward and not recorder.graded:
        words = "no gradients were recorded: call backward() inside the block, where gradients are enabled"
        warnings.warn(words, stacklevel=3)


def _finish(target: str, writer: DumpWriter, layers: list[LayerSettings], framework: str) -> None:
    """Write the header of a dump, `target`; raise `DataError` if no layer was recorded."""
    if not layers:
        raise DataError(f"no norm of the model ran: {target} is not written")
    writer.finish(layers, f"normcli {__version__}, {framework}")
