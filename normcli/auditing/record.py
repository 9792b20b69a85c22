"""The norms of a model of PyTorch, Keras or Flax, recorded while it runs: their inputs, outputs and weights."""

from __future__ import annotations

import contextlib
import functools
import sys
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.auditing.dump_file import RUNNING, WEIGHTS, DumpWriter, LayerSettings
from normcli.auditing.modules import find_base, find_parameters, read_numbers, require_norms
from normcli.auditing.record_torch import Recorder
from normcli.errors import DataError, UsageError
from normcli.norms.layout import DEFAULT_LAYOUTS
from normcli.norms.rules import AxesRule
from normcli.norms.table import find_norm
from normcli.tensors.written_whole import open_whole, require_writable
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from normcli.norms.norm import Norm

    Watch = Callable[[DumpWriter], contextlib.AbstractContextManager[None]]
    """A function that takes the writer of a dump; calls are written in the block of its context manager."""


class _Framework(NamedTuple):
    """A framework whose layers are recorded.

    Parameters
    ----------
    like : str
        The framework's name in the table of conventions.
    read : callable
        Takes a layer and a role of `WEIGHTS`; returns the array that the layer has for it now, or None.
    give : callable
        Takes a tensor of the framework, and returns it as NumPy reads it.
    method : str
        The method that normalizes.
    arguments : tuple of str
        Its first arguments; the input is the first of all.
    """

    like: str
    read: Callable[[Any, str], Any]
    give: Callable[[Any], Any]
    method: str
    arguments: tuple[str, ...]

    def bind(self, args: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call of the method by name."""
        return {**dict(zip(self.arguments, args, strict=False)), **named}

    def looks_like_norm(self, layer: Any) -> bool:
        """Whether a layer's class or a base of it is a known norm, or has "norm" in its name, or an epsilon."""
        kind = type(layer)
        is_known = find_base(kind, None, self.like) is not None
        return is_known or "norm" in kind.__name__.lower() or hasattr(layer, "epsilon")

    def record(
        self,
        writer: DumpWriter,
        settings: LayerSettings,
        layer: Any,
        given: Mapping[str, Any],
        run: Callable[[], Any],
    ) -> Any:
        """Run a layer, write the call, and return its output.

        A layer of an unknown class is written as such, unless norms within it were.

        Parameters
        ----------
        writer : DumpWriter
        settings : LayerSettings
            The settings without class, norm and options; with a momentum, running statistics are updated.
        layer : object
        given : mapping
            The arguments by name; a `mask` among them is left out.
        run : callable
            Takes nothing, and returns the layer's output.
        """
        kind, problem, before = type(layer), "", {}
        x: Any = given.get(self.arguments[0])
        row, left_out = find_base(kind, self.method, self.like), "" if given.get("mask") is None else "mask"
        settings = settings._replace(kind=f"{kind.__module__}.{kind.__qualname__}", left_out=left_out)
        if row is None or getattr(layer, "rms_scaling", False):
            problem = f"{kind.__name__}{'(rms_scaling=True)' if row else ''} is no norm that is known"
        else:
            try:
                before = {"input": self.give(x), **{role: self.read(layer, role) for role in RUNNING}}
            except _NO_VALUES:
                problem = "its values are not known within jit, vmap, grad or remat: run the model outside"
        count, output = len(writer.layers), run()
        if row is None or problem:
            if len(writer.layers) == count:
                writer.add_call(settings._replace(problem=problem))
            return output
        own = {role: self.read(layer, role) for role in WEIGHTS[:2]}
        stored = RUNNING if settings.momentum is not None else ()
        after = {f"{role}_after": self.read(layer, role) for role in stored}
        norm = find_norm(row.norm)[0]
        options = {"like": self.like, **read_numbers(layer, norm), **_read_axes(layer, norm, np.shape(x))}
        settings = settings._replace(norm=norm.name, options=options)
        writer.add_layer(settings, {**before, "output": self.give(output), **own, **after})
        return output


_NO_VALUES = (TypeError, ValueError, NotImplementedError)
"""What the frameworks raise where the values of a tensor are asked for that has none yet."""


def _read_axes(layer: Any, norm: Norm, shape: Sequence[int]) -> dict[str, Any]:
    """Return the options of a layer by which values of an input of this shape are grouped."""
    axes, axis = getattr(layer, "reduction_axes", None), getattr(layer, "axis", None)
    features = getattr(layer, "feature_axes", axis if isinstance(axis, tuple) else None)
    if norm.axes is AxesRule.LAST:
        axes = axis if axes is None else axes
    elif axis is None:
        axis = features
    found: dict[str, Any] = {}
    if axes is not None:
        found["axes"] = _shorten(axes)
    elif axis == 1 and _OF_FEATURES < len(shape) <= max(DEFAULT_LAYOUTS):
        found["layout"] = DEFAULT_LAYOUTS[len(shape)]
    elif axis not in (None, -1) and norm.axes is AxesRule.ALL_BUT_CHANNEL:
        found["keep"] = _shorten(axis)
    if features not in (None, -1, (-1,), axes):  # where gamma and beta lie otherwise than by default
        found["feature_axes"] = _shorten(features)
    if getattr(layer, "group_size", None) is not None:
        found["groups"] = shape[-1] // layer.group_size
    return found


_OF_FEATURES = 2
"""The axes of a tensor of batch and features."""


def _shorten(axes: Any) -> Any:
    """Return axes as JSON holds them: an int, or a list of int."""
    return [*map(int, axes)] if isinstance(axes, list | tuple) else int(axes)


_MOVING = {"running_mean": "moving_mean", "running_var": "moving_variance"}
"""Role → the attribute of a Keras layer."""


def _read_keras(layer: Any, role: str) -> Any:
    values = getattr(layer, _MOVING.get(role) or find_parameters(layer).get(role, ""), None)
    return None if values is None else _give_keras(values)


def _give_keras(values: Any) -> Any:
    import keras

    return keras.ops.convert_to_numpy(values)


_KERAS = _Framework("keras", _read_keras, _give_keras, "call", ("inputs", "training", "mask"))
"""Keras 3.15."""

_OF_FLAX = {
    "weight": ("params", "scale"), "bias": ("params", "bias"),
    "running_mean": ("batch_stats", "mean"), "running_var": ("batch_stats", "var"),
}  # fmt: skip
"""Role → the collection and the name of a variable of a module of Flax."""


def _read_flax(layer: Any, role: str) -> Any:
    collection, name = _OF_FLAX[role]
    values = layer.variables.get(collection, {}).get(name)
    return None if values is None else np.asarray(values)


_FLAX = _Framework("flax-linen", _read_flax, np.asarray, "__call__", ("x", "use_running_average"))
"""Flax Linen 0.12."""


@contextlib.contextmanager
def _watch_keras(model: Any, writer: DumpWriter) -> Iterator[None]:
    """Return a context manager that wraps the `call` of each norm of a Keras model while its block runs.

    Each call is written; at the end, also after an error, the layers' own methods are restored.
    """
    from keras.src import backend

    def wrap(layer: Any) -> Any:
        call, name = layer.call, layer.path or layer.name

        @functools.wraps(call)
        def record_call(*args: Any, **options: Any) -> Any:
            run, given = functools.partial(call, *args, **options), _KERAS.bind(args, options)
            if backend.in_symbolic_scope():  # Keras calculates shapes alone
                return run()
            is_batch = hasattr(layer, "moving_mean")
            trains = is_batch and bool(given.get("training")) and layer.trainable
            momentum = float(layer.momentum) if trains else None
            settings = LayerSettings(name, evaluation=is_batch and not trains, momentum=momentum)
            return _KERAS.record(writer, settings, layer, given, run)

        return record_call

    with contextlib.ExitStack() as restored:
        for layer in model._flatten_layers():
            if _KERAS.looks_like_norm(layer):
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
def _watch_flax(writer: DumpWriter) -> Iterator[None]:
    """Return a context manager that intercepts calls of Flax Linen's norms outside of `jit` in its block.

    Each call is written.
    """
    from flax import linen

    def intercept(call: Any, args: Any, options: Any, context: Any) -> Any:
        layer, run = context.module, functools.partial(call, *args, **options)
        if not _FLAX.looks_like_norm(layer) or context.method_name != _FLAX.method:
            return run()
        given = _FLAX.bind(args, options)
        has_choice = hasattr(layer, "use_running_average")
        tracks = has_choice and _OF_FLAX[RUNNING[0]][1] in layer.variables.get("batch_stats", {})
        asked = given.get("use_running_average")
        evaluates = tracks and bool(linen.merge_param("use", layer.use_running_average, asked))
        trains = tracks and not evaluates and layer.is_mutable_collection("batch_stats")
        momentum = float(layer.momentum) if trains else None
        settings = LayerSettings("/".join(layer.path) or "model", evaluation=evaluates, momentum=momentum)
        return _FLAX.record(writer, settings, layer, given, run)

    with linen.intercept_methods(intercept):
        yield


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
        `normcli conventions` names. Layer norms, RMS norms, group norms and local response norms that a torch
        model calls as functions are recorded too, under the name of the module that calls them. Keras and Flax
        models run outside of `jit` and `predict`, with a forward pass alone; all options below are for PyTorch
        only.
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
    `activation`, otherwise silu. It multiplies the input if the module's `norm_before_gate` is False or,
    without that attribute, if `like` in `also` names such a convention; otherwise the result. Tensors that it
    calls `scale` and `shift`, or as gamma and beta above, are these, also with a row for each sample. Other
    further tensors are not recorded; `audit` says so where the output is not of the input.

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
    watch, recorder, layers = _find_watch(model), None, _FEW_LAYERS
    framework = type(model).__module__.partition(".")[0]
    if watch is None:
        recorder = Recorder(model, also, most_bytes, rng, backward=backward)
        watch, framework, layers = recorder.watch, recorder.framework, len(recorder.norms)
    with open_whole(target, seeks=True) as stream:
        writer = DumpWriter(stream, layers)
        with watch(writer):
            yield
        if not writer.layers:
            raise DataError(f"no norm of the model ran: {target} is not written")
        writer.finish(framework)
    if backward and recorder is not None and not recorder.graded:
        words = "no gradients were recorded: call backward() inside the block, where gradients are enabled"
        warnings.warn(words, stacklevel=3)


def _find_watch(model: Any) -> Watch | None:
    """Return a function that records a model of Keras or Flax; None for other models."""
    keras, flax = sys.modules.get("keras"), sys.modules.get("flax.linen")
    if keras is not None and isinstance(model, keras.Layer):
        return functools.partial(_watch_keras, model)
    return _watch_flax if flax is not None and isinstance(model, flax.Module) else None
