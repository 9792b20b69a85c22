"""The batch norms of an ONNX graph that stand behind a convolution or a matrix, as a state dict with pairs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from normcli.auditing.dump_file import WEIGHTS
from normcli.auditing.onnx_graph import EXTRA, Graph, find_norms, read_attributes
from normcli.errors import DataError, MissingExtraError
from normcli.running.norm_pairs import NormedLayer
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

    from normcli.auditing.onnx_graph import GraphNorm

_TRANSPOSED = {"Conv": False, "ConvTranspose": True, "Gemm": False}
"""Kinds of layers → whether their weight is (in, out, …)."""


class GraphPair(NamedTuple):
    """A layer of an ONNX graph and the batch norm that takes its output.

    Parameters
    ----------
    name : str
        The layer's name: its weight's without `.weight`; otherwise that of the node or its output.
    layer : onnx.NodeProto
    norm : GraphNorm
    """

    name: str
    layer: Any
    norm: GraphNorm

    @property
    def is_turned(self) -> bool:
        """Whether the layer's weight is a matrix (in, out), and not (out, in)."""
        return self.layer.op_type == "Gemm" and not read_attributes(self.layer).get("transB", 0)


class OpenModel(NamedTuple):
    """An ONNX model, with the pairs of layer and batch norm that can be folded.

    Parameters
    ----------
    model : onnx.ModelProto
    graph : Graph
    pairs : list of GraphPair
        Each batch norm that follows a layer and alone takes its output, with the layer.
    norms : list of str
        The names of all batch norms that use running statistics.
    """

    model: Any
    graph: Graph
    pairs: list[GraphPair]
    norms: list[str]

    @classmethod
    def read(cls, path: str) -> OpenModel:
        """Return the model in a file, with its pairs of layer and batch norm.

        Raises
        ------
        MissingExtraError
            If onnx is not installed.
        DataError
            If the model cannot be read, or has no batch norm after a layer.
        """
        try:
            import onnx
        except ImportError as error:
            raise MissingExtraError.of(path, EXTRA) from error
        if not Path(path).is_file():
            raise DataError("there is no such file")
        try:
            model = onnx.load(path)
            graph = Graph(model, str(Path(path).parent))
            norms = [one for one in find_norms(graph) if one.settings.evaluation]
            outputs = {one.name for one in model.graph.output}
            found = [(layer, norm) for norm in norms if (layer := _find_layer(graph, norm.tensors, outputs))]
        except Exception as error:  # protobuf and onnx raise exceptions of many kinds
            raise DataError("it is no readable ONNX model") from error
        if not found:
            raise DataError("its graph has no batch normalization of running statistics behind a layer")
        pairs = [GraphPair(_name_layer(layer), layer, norm) for layer, norm in found]
        return cls(model, graph, pairs, [norm.settings.name for norm in norms])

    def list_layers(self) -> tuple[dict[str, NDArray[Any]], list[NormedLayer]]:
        """Return the model's constants by name, as a state dict, and each pair as a layer to fold.

        The constants of a pair are renamed to `NAME.weight`, `NAME.bias`, `NAME.running_mean` …; they are there
        under their old names too if other nodes use them. A matrix of shape (in, out) is transposed to (out,
        in).
        """
        graph = self.graph
        arrays = {name: values for name in graph.constants if (values := graph.read(name)) is not None}
        state = dict(arrays)
        layers: list[NormedLayer] = []
        for pair in self.pairs:
            name, layer, norm = pair
            kept = [(f"{norm.settings.name}.{role}", norm.tensors[role]) for role in WEIGHTS]
            kept += [
                (f"{name}.{role}", own) for role, own in zip(WEIGHTS, layer.input[1:], strict=False) if own
            ]
            taken = {new: arrays[old] for new, old in kept}
            if pair.is_turned:
                taken[f"{name}.weight"] = taken[f"{name}.weight"].T
            for _, old in kept:
                if len(graph.takers[old]) == 1:  # nothing else has this constant
                    state.pop(old, None)
            state |= taken
            groups, eps = read_attributes(layer).get("group", 1), norm.settings.options["eps"]
            layers.append(
                NormedLayer(name, norm.settings.name, _TRANSPOSED[layer.op_type], eps=eps, groups=groups)
            )
        return state, layers

    def write(self, folded: Mapping[str, NDArray[Any]]) -> bytes:
        """Return the bytes of the model's file without the pairs' batch norms; `model` is changed in place.

        Parameters
        ----------
        folded : mapping of str to ndarray
            `NAME.weight` and `NAME.bias` of each pair.

        Raises
        ------
        DataError
            If the model has 2 GiB or more, the limit of this format.
        """
        from onnx import numpy_helper

        nodes, constants = self.model.graph.node, self.model.graph.initializer
        for pair in self.pairs:
            name, layer, norm = pair
            is_turned = pair.is_turned
            behind = next(node for node in nodes if norm.tensors["output"] in node.output)
            layer.output[0] = norm.tensors["output"]
            nodes.remove(behind)
            del layer.input[1:]
            for role in WEIGHTS[:2]:
                values = folded[f"{name}.{role}"]
                values = values.T if is_turned and role == WEIGHTS[0] else values
                layer.input.append(f"{name}.{role}/folded")
                constants.append(numpy_helper.from_array(values, layer.input[-1]))
        taken = {name for node in nodes for name in node.input}
        for one in [one for one in constants if one.name not in taken]:
            constants.remove(one)
        try:
            data: bytes = self.model.SerializeToString()
        except ValueError as error:
            raise DataError("the folded model has 2 GiB or more, which no ONNX file of its own has") from error
        return data


def _name_layer(layer: Any) -> str:
    """Return a layer's name: its weight's without `.weight`; otherwise that of the node or its output."""
    weight = layer.input[1]
    return str(weight.removesuffix(".weight") if weight.endswith(".weight") else layer.name or layer.output[0])


def _find_layer(graph: Graph, norm: Mapping[str, str], outputs: Collection[str]) -> Any:
    """Return the layer before a norm, if its weights are constant and only this norm takes its output; or None.

    Parameters
    ----------
    graph : Graph
    norm : mapping of str to str
        The norm's tensors: role → name.
    outputs : collection of str
        The names of the model's outputs.
    """
    x = norm["input"]
    node = graph.makers.get(x)
    if node is None or node.op_type not in _TRANSPOSED or len(graph.takers[x]) > 1 or x in outputs:
        return None
    own = [name for name in node.input[1:] if name]
    is_shared = len(graph.takers[node.input[1]]) > 1
    if is_shared or not all(name in graph.constants for name in (*own, *(norm[role] for role in WEIGHTS))):
        return None
    given = read_attributes(node)
    is_plain = not given.get("transA", 0) and given.get("alpha", 1.0) == given.get("beta", 1.0) == 1.0
    return node if is_plain and all(len(graph.constants[name].dims) == 1 for name in own[1:]) else None
