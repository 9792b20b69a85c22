"""The norms of an ONNX graph: nodes that are one, and chains of nodes that spell one out, as exporters do."""

from __future__ import annotations

import functools
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.auditing.dump_file import RUNNING, WEIGHTS, LayerSettings
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray


EXTRA = "onnx"
"""The extra with the packages that read and run such graphs."""

CHAIN = "chain of nodes"
"""The kind of a norm that several nodes spell out; of others it is the kind of the node."""


class GraphNorm(NamedTuple):
    """A norm found in an ONNX graph.

    Parameters
    ----------
    settings : LayerSettings
    tensors : mapping of str to str
        The tensors' names in the graph by role, such as `input` and `weight`.
    """

    settings: LayerSettings
    tensors: Mapping[str, str]

    @classmethod
    def of(
        cls, node: Any, norm: str, options: dict[str, Any], tensors: Mapping[str, str], **more: Any
    ) -> GraphNorm:
        """Return a norm with the name of a node, or of its output; `more` are further settings of the layer."""
        return cls(LayerSettings(node.name or node.output[0], norm, options, **more), tensors)

    def name_module(self) -> GraphNorm:
        """Return this norm under the path of the module of PyTorch that it comes from, if a name tells it.

        It is `a.0.norm` of a weight `a.0.norm.weight`, or of a node `/a/a.0/norm/LayerNormalization`.
        """
        name, weight = self.settings.name, self.tensors.get("weight", "")
        if weight.endswith(".weight"):
            name = weight.removesuffix(".weight")
        elif name.startswith("/") and self.settings.kind != CHAIN:
            path = name.split("/")[1:-1]
            own = [one for one, below in pairwise([*path, ""]) if not below.startswith(f"{one}.")]
            name = ".".join(own) or name
        return self._replace(settings=self.settings._replace(name=name))


class Graph:
    """An ONNX graph, indexed by its tensors: the node that makes each, the nodes that take each, the constants.

    Parameters
    ----------
    model : onnx.ModelProto
    folder : str
        The folder of files that hold constants of the model.

    Raises
    ------
    ValueError
        If a name is no UTF-8: protobuf gives it as bytes.
    """

    def __init__(self, model: Any, folder: str) -> None:
        from onnx import numpy_helper

        self.nodes = list(model.graph.node)
        names = [one.name for one in (*self.nodes, *model.graph.input, *model.graph.initializer)]
        names += [name for node in self.nodes for name in (node.op_type, *node.input, *node.output)]
        if not all(isinstance(name, str) for name in names):
            raise ValueError("a name is no UTF-8")
        self.makers = {name: node for node in self.nodes for name in node.output if name}
        self.takers: dict[str, list[Any]] = {}
        for node in self.nodes:
            for name in node.input:
                self.takers.setdefault(name, []).append(node)
        self.constants = {one.name: one for one in model.graph.initializer}
        for node in self.nodes:
            if node.op_type == "Constant" and node.attribute[0].name == "value":
                self.constants[node.output[0]] = node.attribute[0].t
            elif node.op_type == "Identity" and node.input[0] in self.constants:
                self.constants[node.output[0]] = self.constants[node.input[0]]
        self._read = functools.partial(numpy_helper.to_array, base_dir=folder)

    def read(self, name: str) -> NDArray[Any] | None:
        """Return the array of a constant; None for a tensor that the graph calculates."""
        return self._read(self.constants[name]) if name in self.constants else None

    def read_number(self, name: str) -> float | None:
        """Return the value of a constant that has one element; None for other tensors."""
        values = self.read(name)
        return float(values.flat[0]) if values is not None and values.size == 1 else None

    def find_maker(self, name: str, *kinds: str) -> Any:
        """Return the node that makes a tensor, casts passed over; None if it is not of one of `kinds`."""
        node = self.makers.get(name)
        while node is not None and node.op_type == "Cast":
            node = self.makers.get(node.input[0])
        return node if node is not None and node.op_type in kinds else None

    def find_taker(self, name: str, *kinds: str) -> Any:
        """Return the only node that takes a tensor, casts passed over; None if it is not of one of `kinds`."""
        takers = self.takers.get(name, [])
        while len(takers) == 1 and takers[0].op_type == "Cast":
            takers = self.takers.get(takers[0].output[0], [])
        return takers[0] if len(takers) == 1 and takers[0].op_type in kinds else None


def find_norms(graph: Graph) -> Iterator[GraphNorm]:
    """Yield the norms of a graph in the order of its nodes."""
    for node in graph.nodes:
        if node.op_type in _NODES:
            yield _read_node(node)
        elif node.op_type in _CHAINS and (chain := _CHAINS[node.op_type](graph, node)) is not None:
            yield chain


def read_attributes(node: Any) -> dict[str, Any]:
    """Return the attributes of a node by name."""
    from onnx import helper

    return {one.name: helper.get_attribute_value(one) for one in node.attribute}


class _NodeRule(NamedTuple):
    """The rule to read a kind of ONNX node: its norm, inputs and attributes.

    Parameters
    ----------
    norm : str
    roles : tuple of str
        The roles of the node's inputs, in order; empty for an input without a role.
    options : mapping
        Attribute → option.
    defaults : mapping
        Option → its value where the node has no such attribute.
    like : str or None
        The framework in the table of conventions; None if its row has options that such a node never has.
    """

    norm: str
    roles: tuple[str, ...] = ("input", "weight", "bias")
    options: Mapping[str, str] = {"epsilon": "eps"}
    defaults: Mapping[str, Any] = {"eps": 1e-5}
    like: str | None = "onnx"


_ATTRIBUTES = {"epsilon": "eps", "axis": "first_axis"}
"""The attributes of a node that reduces from an axis to the last one."""

_OF_LAST = {"eps": 1e-5, "first_axis": -1}
_OF_SUM = {"eps": 1e-12, "first_axis": -1}

_NODES: Mapping[str, _NodeRule] = {
    "LayerNormalization": _NodeRule("ln", options=_ATTRIBUTES, defaults=_OF_LAST),
    "BatchNormalization": _NodeRule("bn", ("input", *WEIGHTS)),
    "InstanceNormalization": _NodeRule("in"),
    "GroupNormalization": _NodeRule("gn", options={"epsilon": "eps", "num_groups": "groups"}),
    "RMSNormalization": _NodeRule("rms", ("input", "weight"), _ATTRIBUTES, _OF_LAST),
    "SimplifiedLayerNormalization": _NodeRule("rms", ("input", "weight"), _ATTRIBUTES, _OF_LAST),
    "SkipLayerNormalization": _NodeRule("ln", ("", "", "weight", "bias"), defaults=_OF_SUM),
    "SkipSimplifiedLayerNormalization": _NodeRule("rms", ("", "", "weight"), defaults=_OF_SUM),
    "LpNormalization": _NodeRule("lp", ("input",), {"p": "p", "axis": "axes"}, {"p": 2, "axes": -1}, like=None),
    "MeanVarianceNormalization": _NodeRule("mvn", ("input",), {"axes": "axes"}, {"axes": (0, 2, 3)}),
    "LRN": _NodeRule(
        "lrn", ("input",), {"size": "size", "alpha": "alpha", "beta": "exponent", "bias": "k"},
        {"alpha": 1e-4, "exponent": 0.75, "k": 1.0},
    ),
}  # fmt: skip
"""Kinds of nodes (ONNX 1.23, opset 24; `Simplified…`, `Skip…` of ONNX Runtime 1.23) → the rule to read them."""

_SUM_OF_SKIP = 3
"""The number of the output of `Skip…` nodes that has the sum they normalize."""


def _read_node(node: Any) -> GraphNorm:
    """Return the norm that a node of one of the kinds in `_NODES` stands for.

    An axis that counts from the left becomes the option `first_axis`, as its node may not show the rank.
    """
    rule, given = _NODES[node.op_type], read_attributes(node)
    options = {option: given[name] for name, option in rule.options.items() if name in given}
    options = {name: _shorten(value) for name, value in {**rule.defaults, **options}.items()}
    if isinstance(options.get("axes"), int):
        options["axes"] = (options["axes"],)
    if rule.like is not None:
        options["like"] = rule.like
    pairs = zip(rule.roles, node.input, strict=False)
    tensors = {role: name for role, name in pairs if role and name}
    tensors["output"] = node.output[0]
    if node.op_type.startswith("Skip"):
        tensors["input"] = node.output[_SUM_OF_SKIP] if len(node.output) > _SUM_OF_SKIP else ""
    evaluates = RUNNING[0] in tensors and not given.get("training_mode", 0)
    return GraphNorm.of(node, rule.norm, options, tensors, evaluation=evaluates, kind=node.op_type)


def _shorten(value: Any) -> Any:
    """Return an attribute as an option: a 32-bit float as its shortest decimal, a list as a tuple of int."""
    if isinstance(value, float):
        return float(str(np.float32(value)))
    return tuple(map(int, value)) if isinstance(value, list | tuple) else value


# -- chains: Sqrt(Add(ReduceMean(square), eps)) with what is divided by it


def _read_chain(graph: Graph, root: Any) -> GraphNorm | None:
    """Return the norm spelled out by the nodes around a square root, `root`; None if they are no norm.

    It is `ln` if a mean is subtracted before the squares are taken, otherwise `rms`.
    """
    added = graph.find_maker(root.input[0], "Add")
    if added is None:
        return None
    numbers = map(graph.read_number, added.input)
    eps = next((number for number in numbers if number is not None), None)
    mean = next(
        (node for name in added.input if (node := graph.find_maker(name, "ReduceMean")) is not None), None
    )
    square = None if mean is None else graph.find_maker(mean.input[0], "Pow", "Mul")
    if eps is None or square is None or (square.op_type == "Mul" and square.input[0] != square.input[1]):
        return None
    divided = square.input[0]
    quotient = _find_quotient(graph, root.output[0])
    axes = _read_axes(graph, mean)
    if quotient is None or axes is None:
        return None
    difference = graph.find_maker(divided, "Sub")
    centre = None if difference is None else graph.find_maker(difference.input[1], "ReduceMean")
    norm, x = ("rms", divided) if centre is None else ("ln", difference.input[0])
    tensors = {"input": x, **_follow(graph, quotient)}
    options = {"axes": axes, "eps": _shorten(eps)}
    return GraphNorm.of(quotient, norm, options, tensors, kind=CHAIN)


_EXPONENTS = {"ReduceL1": 1.0, "ReduceL2": 2.0}
"""Kinds of nodes that make a length → its p."""


def _read_length(graph: Graph, reduced: Any) -> GraphNorm | None:
    """Return the norm `lp` if x is divided by max(its length, eps), as in torch's `F.normalize`; else None.

    `reduced` is the node that makes the length.
    """
    x, axes = reduced.input[0], _read_axes(graph, reduced)
    floor = graph.find_taker(reduced.output[0], "Clip", "Max")
    if axes is None or floor is None:
        return None
    given = [number for name in floor.input if (number := graph.read_number(name)) is not None]
    eps = read_attributes(floor).get("min", given[0] if given else None)
    spread = graph.find_taker(floor.output[0], "Expand") or floor
    quotient = graph.find_taker(spread.output[0], "Div")
    if eps is None or quotient is None or quotient.input[0] != x:
        return None
    options = {"axes": axes, "eps": _shorten(float(eps)), "p": _EXPONENTS[reduced.op_type]}
    return GraphNorm.of(quotient, "lp", options, {"input": x, "output": quotient.output[0]}, kind=CHAIN)


_CHAINS: Mapping[str, Callable[[Graph, Any], GraphNorm | None]] = {
    "Sqrt": _read_chain, **dict.fromkeys(_EXPONENTS, _read_length)
}  # fmt: skip
"""Kinds of nodes by which a chain is found → the function that reads the chain around one."""


def _find_quotient(graph: Graph, root: str) -> Any:
    """Return the node that divides by a root, or multiplies by its reciprocal; None if there is none."""
    node = graph.find_taker(root, "Div", "Reciprocal")
    if node is None or node.op_type == "Reciprocal":
        return None if node is None else graph.find_taker(node.output[0], "Mul")
    if graph.read_number(node.input[0]) is not None:  # 1 / √…
        return graph.find_taker(node.output[0], "Mul")
    return node


def _read_axes(graph: Graph, mean: Any) -> tuple[int, ...] | None:
    """Return the axes of a reducing node, from its attribute or its constant input; None without any."""
    given = read_attributes(mean).get("axes")
    if given is None and len(mean.input) > 1:
        given = graph.read(mean.input[1])
    return None if given is None else tuple(int(axis) for axis in np.asarray(given).reshape(-1))


KINDS = frozenset({*_NODES, CHAIN})
"""The kinds of norms of ONNX models."""


def _follow(graph: Graph, node: Any) -> dict[str, str]:
    """Return the names of a norm's output, gamma and beta by role, from the nodes after its division, `node`.

    Gamma is a constant by which the quotient is multiplied, beta one that is added to the product; a norm
    without gamma is taken to have no beta.
    """
    found = {}
    for role, kind in (("weight", "Mul"), ("bias", "Add")):
        taker = graph.find_taker(node.output[0], kind)
        constant = None if taker is None else next((n for n in taker.input if n in graph.constants), None)
        if taker is None or constant is None:
            break
        found[role], node = constant, taker
    cast = graph.takers.get(node.output[0], [])
    is_cast = len(cast) == 1 and cast[0].op_type == "Cast"
    return {**found, "output": cast[0].output[0] if is_cast else node.output[0]}
