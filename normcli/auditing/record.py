"""The norms of a PyTorch model, recorded while it runs: what each took and gave, and its settings then."""

from __future__ import annotations

import contextlib
import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.auditing.dump_file import DumpWriter, LayerSettings
from normcli.auditing.modules import describe_module, looks_like_norm, require_norms
from normcli.auditing.record_others import Calls, find_watch
from normcli.auditing.record_torch import ModuleWatch, Recorder
from normcli.errors import DataError, UsageError
from normcli.tensors.written_whole import open_whole, require_writable
from normcli.version import __version__

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping


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
    """Write to a file what each norm of a model takes and gives while the block runs.

    Parameters
    ----------
    model : torch.nn.Module, keras.Layer or flax.linen.Module
        Its norms are known by their classes: those of the framework, and of torch's modules those that
        `normcli conventions` names. Keras and Flax models run outside of `jit` and `predict`, with a forward
        pass alone; all options below are for PyTorch only.
    path : path
        A safetensors file, which is written whole when the block ends, and not at all if it raises.
    backward : bool
        Whether gradients are recorded too; call `backward()` inside the block.
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
        _finish(target, recorder.writer, recorder.layers, f"torch {torch.__version__}")


def _finish(target: str, writer: DumpWriter, layers: list[LayerSettings], framework: str) -> None:
    if not layers:
        raise DataError(f"no norm of the model ran: {target} is not written")
    writer.finish(layers, f"normcli {__version__}, {framework}")
