"""A run of an ONNX model by ONNX Runtime, written as a dump: what each norm of its graph took and gave."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.auditing.dump_file import DumpWriter
from normcli.auditing.onnx_graph import Graph, find_norms
from normcli.errors import DataError, MissingExtraError, UsageError
from normcli.tensors.many import load_all
from normcli.tensors.random.recipe import check_memory
from normcli.tensors.written_whole import open_whole
from normcli.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from normcli.auditing.onnx_graph import GraphNorm

SUFFIX = ".onnx"

_EXTRA = "onnx"

_OPEN_LENGTH = 2
"""The length of an axis of which the graph names no number."""

_TYPES = {
    "tensor(float)": "float32", "tensor(float16)": "float16", "tensor(double)": "float64",
    "tensor(int64)": "int64", "tensor(int32)": "int32", "tensor(bool)": "bool", "tensor(uint8)": "uint8",
}  # fmt: skip
"""ONNX Runtime's names of types → NumPy's."""


def record_onnx(path: str, dump: str, inputs: str | None = None, seed: int = 0) -> None:
    """Run a model once, with what its norms take and give as further outputs, and write a dump of them.

    Parameters
    ----------
    path : str
        The model.
    dump : str
        The safetensors file to write.
    inputs : str or None
        An npz or safetensors file with the model's inputs by name; without it they are drawn: standard normal
        floats, integers of 0 and 1, and 2 for lengths that the graph leaves open.
    seed : int
        Of inputs that are drawn.

    Raises
    ------
    MissingExtraError
        Without onnx and onnxruntime.
    UsageError
        If an input of the model is not among those given.
    DataError
        If the model cannot be read or run, or holds no norm.
    """
    try:
        import onnx
        import onnxruntime
    except ImportError as error:
        raise MissingExtraError.of(path, _EXTRA) from error
    if not Path(path).is_file():
        raise DataError(f"{path}: there is no such file")
    try:
        model = onnx.load(path)
        graph = Graph(model)
        norms = list(find_norms(graph))
    except Exception as error:  # of protobuf and onnx, many kinds
        raise DataError(f"{path} is no readable ONNX model") from error
    if not norms:
        raise DataError(f"{path} holds no norm that is known; exporters fold batch norms into convolutions")
    norms = [_name_sum(graph, norm) for norm in norms]
    wanted = dict.fromkeys(
        name for norm in norms for name in norm.tensors.values() if name not in graph.constants
    )
    _expose(model, [*wanted])
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
        feeds = _draw(session, path, seed) if inputs is None else _choose(session, load_all(inputs), inputs)
        made = dict(zip(wanted, session.run([*wanted], feeds), strict=True))
    except (DataError, UsageError):
        raise
    except Exception as error:  # ONNX Runtime's kinds have no common base
        raise DataError(f"{path} cannot be run: {str(error).splitlines()[0]}") from error
    with open_whole(dump, seeks=True) as stream:
        writer = DumpWriter(stream, len(norms))
        for norm in norms:
            for role, name in norm.tensors.items():
                values = graph.read(name)
                writer.add_array(f"{norm.settings.name}.{role}", made[name] if values is None else values)
        layers = [_settle(norm, made) for norm in norms]
        writer.finish(layers, f"normcli {__version__}, onnxruntime {onnxruntime.__version__}")


def _name_sum(graph: Graph, norm: GraphNorm) -> GraphNorm:
    """Return a norm whose sum of x and a residual has a name in the graph, where the node names none."""
    if norm.tensors["input"]:
        return norm
    node = graph.makers[norm.tensors["output"]]
    node.output.extend([""] * (4 - len(node.output)))
    node.output[3] = f"{node.output[0]}_sum"
    return norm._replace(tensors={**norm.tensors, "input": node.output[3]})


def _settle(norm: GraphNorm, made: Mapping[str, NDArray[Any]]) -> Any:
    """Return a norm's settings with its axes, which the number of axes of its input tells."""
    options = dict(norm.settings.options)
    first = options.pop("first_axis", None)
    if first is not None:
        ndim = made[norm.tensors["input"]].ndim if norm.tensors["input"] in made else 0
        options["axes"] = tuple(range(first, 0)) if first < 0 else tuple(range(first, ndim))
    return norm.settings._replace(
        options={k: list(v) if isinstance(v, tuple) else v for k, v in options.items()}
    )


def _expose(model: Any, names: list[str]) -> None:
    """Make tensors outputs of a model, whose types ONNX Runtime finds itself."""
    from onnx import helper

    there = {one.name for one in model.graph.output}
    model.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in names if name not in there)


def _choose(session: Any, given: Mapping[str, NDArray[Any]], path: str) -> dict[str, Any]:
    wanted = [one.name for one in session.get_inputs()]
    missing = [name for name in wanted if name not in given]
    if missing:
        raise UsageError(f"{path} has no {missing[0]}; the model takes {', '.join(wanted)}")
    return {name: given[name] for name in wanted}


def _draw(session: Any, path: str, seed: int) -> dict[str, Any]:
    rng, feeds = np.random.default_rng(seed), {}
    for one in session.get_inputs():
        shape = [length if isinstance(length, int) else _OPEN_LENGTH for length in one.shape]
        if one.type not in _TYPES:
            raise DataError(f"the input {one.name} is a {one.type}, which is not drawn; give --inputs")
        dtype = np.dtype(_TYPES[one.type])
        size = math.prod(shape)
        check_memory(size, f"{path}: its input {one.name} of the shape {tuple(shape)}")
        drawn = rng.normal(size=size) if dtype.kind == "f" else rng.integers(0, 2, size)
        feeds[one.name] = drawn.astype(dtype).reshape(shape)
    return feeds
