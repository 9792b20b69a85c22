"""The batch norms of an ONNX graph that stand behind a convolution or a matrix, as a state dict with pairs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from normcli.auditing.onnx_graph import Graph, find_norms, read_attributes
from normcli.errors import DataError, MissingExtraError
from normcli.running.checkpoint_fold import NormedLayer

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

SUFFIX, EXTRA = ".onnx", "onnx"

_TRANSPOSED = {"Conv": False, "ConvTranspose": True, "Gemm": False}
"""Kinds of layers → whether their weight is (in, out, …)."""

_ROLES = ("weight", "bias", "running_mean", "running_var")


def read_onnx(path: str) -> tuple[dict[str, NDArray[Any]], list[NormedLayer], list[str]]:
    """Return the constants of a model by name, the pairs that its graph tells, and its batch norms' names.

    A pair's constants are `NAME.weight`, `NAME.bias` …, of a matrix (out, in).

    Raises
    ------
    MissingExtraError
        Without onnx.
    DataError
        If the model cannot be read, or has no batch norm behind a layer.
    """
    try:
        import onnx
    except ImportError as error:
        raise MissingExtraError.of(path, EXTRA) from error
    if not Path(path).is_file():
        raise DataError("there is no such file")
    try:
        model = onnx.load(path, load_external_data=False)
        graph = Graph(model, str(Path(path).parent))
        arrays = {name: values for name in graph.constants if (values := graph.read(name)) is not None}
        norms = [one for one in find_norms(graph) if one.settings.evaluation]
        outputs = {one.name for one in model.graph.output}
        found = [(layer, norm) for norm in norms if (layer := _find_layer(graph, norm.tensors, outputs))]
    except Exception as error:  # of protobuf and onnx, many kinds
        raise DataError("it is no readable ONNX model") from error
    if not found:
        raise DataError("its graph has no batch normalization of running statistics behind a layer")
    state = dict(arrays)
    pairs: list[NormedLayer] = []
    for layer, norm in found:
        kept = [(f"{norm.settings.name}.{role}", norm.tensors[role]) for role in _ROLES]
        name = layer.input[1].removesuffix(".weight") if layer.input[1].endswith(".weight") else layer.name
        name = name or layer.output[0]
        kept += [(f"{name}.{role}", own) for role, own in zip(_ROLES, layer.input[1:], strict=False) if own]
        given = read_attributes(layer)
        taken = {new: arrays[old] for new, old in kept}
        if layer.op_type == "Gemm" and not given.get("transB", 0):
            taken[f"{name}.weight"] = taken[f"{name}.weight"].T
        for _, old in kept:
            if len(graph.takers[old]) == 1:  # nothing else has this constant
                state.pop(old, None)
        state |= taken
        pairs.append(
            NormedLayer(
                name, norm.settings.name, _TRANSPOSED[layer.op_type],
                eps=norm.settings.options["eps"], groups=given.get("group", 1),
            )
        )  # fmt: skip
    return state, pairs, [norm.settings.name for norm in norms]


def _find_layer(graph: Graph, norm: Mapping[str, str], outputs: Collection[str]) -> Any:
    """Return the node of constant weights whose result a norm alone takes; None where there is none."""
    x = norm["input"]
    node = graph.makers.get(x)
    if node is None or node.op_type not in _TRANSPOSED or len(graph.takers[x]) > 1 or x in outputs:
        return None
    own = [name for name in node.input[1:] if name]
    is_shared = len(graph.takers[node.input[1]]) > 1
    if is_shared or not all(name in graph.constants for name in (*own, *(norm[role] for role in _ROLES))):
        return None
    given = read_attributes(node)
    is_plain = not given.get("transA", 0) and given.get("alpha", 1.0) == given.get("beta", 1.0) == 1.0
    return node if is_plain and all(len(graph.constants[name].dims) == 1 for name in own[1:]) else None
