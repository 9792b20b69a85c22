"""A norm as an ONNX model: its own operator, or several by hand; gamma and beta are initializers."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.codegen.arrays import ONNX
from normcli.codegen.module import describe_call, write_body
from normcli.dtypes import is_half
from normcli.errors import UsageError
from normcli.norms.calls import CALLS
from normcli.version import __version__

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.codegen.task import Task

OPSET = 23
"""The first operator set with RMSNormalization."""

_IR_VERSION = 11
"""The IR version of ONNX 1.18, the release that brought this opset."""

_OPERATORS = {ast.Add: "Add", ast.Sub: "Sub", ast.Mult: "Mul", ast.Div: "Div", ast.Pow: "Pow"}

_OUTPUTS = {"TopK": 2}
"""Operator → the number of its outputs, where that is not 1; the first output is used."""


def write_model(task: Task) -> bytes:
    """Return the bytes of an ONNX model with the inputs `x` and, with a gate, `gate`, and the output `y`.

    Gamma, beta and running statistics are constants of the model.

    Raises
    ------
    UsageError
        If not every value counts, the package onnx is missing, or ONNX lacks an operation.
    """
    task.require_whole()
    try:
        import onnx
    except ImportError as error:
        raise UsageError("--emit onnx needs the package onnx: pip install 'normcli[onnx]'") from error
    plan = task.plan
    call = CALLS.get((ONNX.name, plan.norm.name))
    obstacles = task.list_obstacles(call)
    own = None if obstacles else call
    # Half precision is calculated in float32 by hand, and numbers have to be of the dtype of what they meet.
    single = own is None and is_half(task.dtype)
    graph = _Graph(task, np.dtype(np.float32) if single else task.dtype)
    lines = (f"{' ' * line.depth}{line.code}" for line in write_body(task, ONNX, own))
    graph.add(ast.parse("\n".join(lines)).body)
    kind = onnx.helper.np_dtype_to_tensor_dtype(task.dtype)
    gates = [(source.name, source.values.shape) for source in task.sources if source.name == "gate"]
    *first, last = (
        onnx.helper.make_tensor_value_info(name, kind, shape)
        for name, shape in (("x", plan.grid.shape), *gates, (graph.finish(), plan.grid.shape))
    )
    title = plan.norm.title.replace(" ", "_")
    made = onnx.helper.make_graph(graph.nodes, title, first, [last], list(graph.initializers.values()))
    model = onnx.helper.make_model(
        made,
        producer_name="normcli",
        producer_version=__version__,
        doc_string=describe_call(plan, ONNX, call, obstacles),
        ir_version=_IR_VERSION,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
    )
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString())


class _Graph:
    """The nodes of an ONNX graph, made from Python statements that assign to names.

    After a second assignment to a name, the name stands for the new tensor.
    """

    def __init__(self, task: Task, dtype: np.dtype[np.generic]) -> None:
        self._dtype = dtype
        self._tensors = {"x": "x", "gate": "gate"}
        self._count = 0
        self.nodes: list[Any] = []
        self.initializers: dict[str, Any] = {}
        parameters, given = task.inputs.parameters, task.inputs.given
        self._given = set(parameters)
        shape = task.plan.parameters.shape
        defaults = {"gamma": np.ones(shape), "beta": np.zeros(shape)}
        parameters = {name: values.astype(task.dtype) for name, values in (defaults | dict(parameters)).items()}
        self._known: dict[str, NDArray[Any]] = parameters
        if given is not None:
            self._known |= {"RUNNING_MEAN": given.mean.astype(dtype), "RUNNING_VAR": given.var.astype(dtype)}

    def add(self, statements: list[ast.stmt]) -> None:
        """Add the nodes of assignments; of an `if gamma is not None:` only if the parameter was given."""
        for statement in statements:
            match statement:
                case ast.Assign([ast.Name(name)], value):
                    self._tensors[name] = self._make(value)
                case ast.If(ast.Compare(ast.Name(name)), body) if name in self._given:
                    self.add(body)

    def finish(self) -> str:
        """Give the last tensor that was assigned to `y` the name `y` in the graph; return that name."""
        made = self._tensors["y"]
        if not self.nodes or self.nodes[-1].output[0] != made:
            self._add_node("Identity", [made])
        self.nodes[-1].output[0] = "y"
        return "y"

    def _make(self, value: ast.expr) -> str:
        """Add the nodes of a Python expression to the graph, and return the name of its tensor."""
        match value:
            case ast.Name(name):
                return self._tensors.get(name) or self._keep(name, self._known[name])
            case ast.Constant() | ast.UnaryOp():
                return self._keep("number", np.asarray(ast.literal_eval(value), dtype=self._dtype))
            case ast.List() | ast.Tuple():
                return self._keep("integers", np.asarray(ast.literal_eval(value), dtype=np.int64))
            case ast.Compare(left, [ast.Eq()], [right]):
                return self._add_node("Equal", [self._make(left), self._make(right)])
            case ast.BinOp(left, operator, right):
                return self._add_node(_OPERATORS[type(operator)], [self._make(left), self._make(right)])
            case ast.Call(ast.Name(name), arguments, keywords):
                attributes = {str(each.arg): self._read_attribute(each.value) for each in keywords}
                return self._add_node(name, [self._make(each) for each in arguments], attributes)
        raise NotImplementedError(ast.unparse(value))

    def _read_attribute(self, value: ast.expr) -> Any:
        import onnx

        if isinstance(value, ast.Name):
            return onnx.helper.np_dtype_to_tensor_dtype(np.dtype(value.id))
        attribute = ast.literal_eval(value)
        return int(attribute) if isinstance(attribute, bool) else attribute

    def _add_node(self, operator: str, inputs: list[str], attributes: dict[str, Any] | None = None) -> str:
        import onnx

        name = self._name(operator.lower())
        others = [f"{name}_{i}" for i in range(1, _OUTPUTS.get(operator, 1))]
        self.nodes.append(onnx.helper.make_node(operator, inputs, [name, *others], **(attributes or {})))
        return name

    def _keep(self, name: str, values: NDArray[Any]) -> str:
        """Add a constant of the model (an initializer), and return its name.

        A parameter such as gamma has the name `name`; any other constant gets a new name that begins with it.
        """
        import onnx

        if name in self._known:
            self._tensors[name] = name
        else:
            name = self._name(name)
        self.initializers[name] = onnx.numpy_helper.from_array(np.ascontiguousarray(values), name)
        return name

    def _name(self, name: str) -> str:
        self._count += 1
        return f"{name}_{self._count}"
