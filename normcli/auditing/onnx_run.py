"""A run of an ONNX model by ONNX Runtime, written as a dump: what each norm of its graph took and gave."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.auditing.dump_file import DumpWriter
from normcli.auditing.onnx_graph import EXTRA, Graph, find_norms
from normcli.errors import DataError, MissingExtraError, UsageError
from normcli.tensors.many import load_all
from normcli.tensors.random.recipe import check_memory
from normcli.tensors.spool import make_scratch
from normcli.tensors.written_whole import open_whole

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.auditing.onnx_graph import GraphNorm

SUFFIX = ".onnx"

_OPEN_LENGTH = 2
"""The length drawn for an axis whose length the graph leaves open."""

_FOLDER = "session.model_external_initializers_file_folder_path"
"""The option for the folder of weights that a model keeps in files of their own."""

_TYPES = {
    "tensor(float)": "float32", "tensor(float16)": "float16", "tensor(double)": "float64",
    "tensor(int64)": "int64", "tensor(int32)": "int32", "tensor(bool)": "bool", "tensor(uint8)": "uint8",
}  # fmt: skip
"""ONNX Runtime's names of types → NumPy's, for inputs that are drawn and outputs in arrays made here."""


def record_onnx(path: str, dump: str, inputs: str | None = None, seed: int = 0) -> None:
    """Run an ONNX model once, and write a dump of the inputs, outputs and weights of its norms.

    Parameters
    ----------
    path : str
        The model.
    dump : str
        The safetensors file to write.
    inputs : str or None
        An npz or safetensors file with the model's inputs by name. None: they are drawn, standard normal floats
        and integers of 0 and 1; axes whose length the graph leaves open get the length 2.
    seed : int
        The seed of inputs that are drawn.

    Raises
    ------
    MissingExtraError
        If onnx or onnxruntime is not installed.
    UsageError
        If the file `inputs` lacks an input of the model.
    DataError
        If the model cannot be read or run, holds no norm, or has an input that cannot be drawn.
    """
    try:
        import onnx
        import onnxruntime
    except ImportError as error:
        raise MissingExtraError.of(path, EXTRA) from error
    if not Path(path).is_file():
        raise DataError(f"{path}: there is no such file")
    if not Path(path).stat().st_size:
        raise DataError(f"{path} is empty")
    try:
        model = onnx.load(path, load_external_data=False)  # ONNX Runtime reads it, too
        graph = Graph(model, str(Path(path).parent))
        norms = [norm.name_module() for norm in find_norms(graph)]
    except Exception as error:  # protobuf and onnx raise exceptions of many kinds
        raise DataError(f"{path} is no readable ONNX model") from error
    if not norms:
        raise DataError(f"{path} holds no norm that is known; exporters fold batch norms into convolutions")
    norms = [_name_sum(graph, norm) for norm in norms]
    taken = [one for one in model.graph.input if one.name not in graph.constants]
    feeds = _draw(taken, path, seed) if inputs is None else _choose(taken, load_all(inputs), inputs)
    for one in taken:
        _fix_shape(one, feeds[one.name].shape)
    known = {*graph.constants, *feeds}
    wanted = {name for norm in norms for name in norm.tensors.values()} - known
    _expose(model, sorted(wanted))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.add_session_config_entry(_FOLDER, str(Path(path).parent.resolve()))
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
        made = {**feeds, **_run(session, feeds, wanted)}
    except DataError:
        raise
    except Exception as error:  # ONNX Runtime's kinds have no common base
        raise DataError(f"{path} cannot be run: {str(error).splitlines()[0]}") from error
    with open_whole(dump, seeks=True) as stream:
        writer = DumpWriter(stream, len(norms))
        for norm in norms:
            arrays = {role: (graph.read(name), made.get(name)) for role, name in norm.tensors.items()}
            writer.add_layer(
                _settle(norm, made),
                {role: run if held is None else held for role, (held, run) in arrays.items()},
            )
        writer.finish(f"onnxruntime {onnxruntime.__version__}")


def _name_sum(graph: Graph, norm: GraphNorm) -> GraphNorm:
    """Return a norm whose input has a name; the graph is changed in place if the input has none.

    That is the case only for the sum that a `Skip…` node computes and normalizes itself: it becomes the fourth
    output of the node, under a new name. Every other norm is returned unchanged.
    """
    if norm.tensors["input"]:
        return norm
    node = graph.makers[norm.tensors["output"]]
    node.output.extend([""] * (4 - len(node.output)))
    node.output[3] = f"{node.output[0]}_sum"
    return norm._replace(tensors={**norm.tensors, "input": node.output[3]})


def _settle(norm: GraphNorm, made: Mapping[str, NDArray[Any]]) -> Any:
    """Return a norm's settings with the option `axes` in place of `first_axis`, and lists in place of tuples.

    `first_axis` is the first of the reduced axes, which reach to the last one: 1 becomes `axes` [1, 2] for an
    input with 3 axes; -1 becomes [-1]. `made` has the tensors that the model computed, by name.
    """
    options = dict(norm.settings.options)
    first = options.pop("first_axis", None)
    if first is not None:
        ndim = made[norm.tensors["input"]].ndim if norm.tensors["input"] in made else 0
        options["axes"] = tuple(range(first, 0)) if first < 0 else tuple(range(first, ndim))
    return norm.settings._replace(
        options={k: list(v) if isinstance(v, tuple) else v for k, v in options.items()}
    )


def _expose(model: Any, names: Iterable[str]) -> None:
    """Replace the outputs of a model by tensors of these names; ONNX Runtime finds their types and shapes."""
    from onnx import helper

    del model.graph.output[:], model.graph.value_info[:]
    model.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in names)


def _fix_shape(declared: Any, shape: tuple[int, ...]) -> None:
    """Set the open lengths of a declared input to those of a shape, in place: later shapes follow from them."""
    for dim, length in zip(declared.type.tensor_type.shape.dim, shape, strict=False):
        if not dim.HasField("dim_value"):
            dim.dim_value = length


def _run(session: Any, feeds: Mapping[str, NDArray[Any]], wanted: Container[str]) -> dict[str, NDArray[Any]]:
    """Run a model, and return the wanted outputs by name; large ones of known shapes lie in temporary files."""
    binding = session.io_binding()
    made: dict[str, NDArray[Any]] = {}
    for name, values in feeds.items():
        binding.bind_cpu_input(name, values)
    # ONNX Runtime has an empty shape for an unknown one
    asked = [one for one in session.get_outputs() if one.name in wanted]
    for one in asked:
        if one.type in _TYPES and one.shape and all(isinstance(length, int) for length in one.shape):
            values = made[one.name] = make_scratch(tuple(one.shape), np.dtype(_TYPES[one.type]))
            binding.bind_output(one.name, "cpu", 0, values.dtype.type, values.shape, values.ctypes.data)
        else:
            binding.bind_output(one.name, "cpu")
    session.run_with_iobinding(binding)
    outputs = zip(asked, binding.get_outputs(), strict=True)
    return {one.name: made[one.name] if one.name in made else out.numpy() for one, out in outputs}


def _choose(taken: Sequence[Any], given: Mapping[str, NDArray[Any]], path: str) -> dict[str, Any]:
    """Return the model's inputs by name from the arrays of a file; raise `UsageError` if one is missing."""
    wanted = [one.name for one in taken]
    missing = [name for name in wanted if name not in given]
    if missing:
        raise UsageError(f"{path} has no {missing[0]}; the model takes {', '.join(wanted)}")
    return {name: np.ascontiguousarray(given[name]).reshape(given[name].shape) for name in wanted}


def _draw(taken: Sequence[Any], path: str, seed: int) -> dict[str, Any]:
    """Return random inputs of a model by name; raise `DataError` for a type that is not drawn."""
    from onnx import helper

    rng, feeds = np.random.default_rng(seed), {}
    for one in taken:
        declared = one.type.tensor_type
        shape = [dim.dim_value if dim.HasField("dim_value") else _OPEN_LENGTH for dim in declared.shape.dim]
        is_known = declared.elem_type in helper.get_all_tensor_dtypes()
        dtype = helper.tensor_dtype_to_np_dtype(declared.elem_type) if is_known else np.dtype(object)
        if dtype.name not in _TYPES.values():
            raise DataError(f"the input {one.name} is of {dtype.name}, which is not drawn; give --inputs")
        size = math.prod(shape)
        check_memory(size, f"{path}: its input {one.name} of the shape {tuple(shape)}")
        drawn = rng.normal(size=size) if dtype.kind == "f" else rng.integers(0, 2, size)
        feeds[one.name] = drawn.astype(dtype).reshape(shape)
    return feeds
