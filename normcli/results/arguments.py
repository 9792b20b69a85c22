"""A request as one record, for commands and functions; and the arguments of Python functions, read into it."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from normcli.dtypes import OUTPUT_DTYPES
from normcli.engine.inputs import NO_INPUTS, Inputs
from normcli.engine.walk import DEFAULT_EFFORT, Effort
from normcli.errors import UsageError
from normcli.norms.option_kinds import read_flag
from normcli.norms.options import NAMES
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.numerics.statistics.solution import Given
from normcli.results.arrays import Give, Taken, give_back_as_is, take
from normcli.results.calculate import calculate, require_threads
from normcli.results.given_inputs import SelectionRequest, fit_inputs
from normcli.tensors.residual import Addends, ResidualSum
from normcli.tensors.tables.column_choice import match_names
from normcli.tensors.tensor import Tensor
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import ArrayLike, DTypeLike, NDArray

    from normcli.norms.plan import Plan
    from normcli.results.result import Result
    from normcli.results.surroundings import Surroundings

Item = TypeVar("Item")

_PARAMETERS: tuple[str, ...] = ("gamma", "beta")

_ALIASES = {"weight": "gamma", "bias": "beta"}
"""The frameworks' names of parameters → the names here."""


GATE = ("gate", "gate_act", "gate_order")
"""The names of a gate's options."""

AROUND = ("clip", *GATE, "clip_output")
"""The names of the options for bounds and gates around a norm: see `Surroundings`."""


class Problem(NamedTuple):
    """A norm and the tensor that it is applied to: the parsed request of a command or a function.

    Parameters
    ----------
    plan : Plan
        The norm with its options, resolved against the tensor's shape and dtype.
    tensor : Tensor
        The tensor as it enters the norm: with its residual added, clipped, and multiplied by a gate before it.
    inputs : Inputs
        Gamma, beta, statistics, selection, gate and bounds, in the shapes that the plan needs.
    effort : Effort
        The threads to work with, and whether statistics are kept.
    give, give_other : callable
        Converts an array of the tensor's shape, or of another shape, to the type of the caller's tensor.
    dy : Tensor or None
        The derivative of a loss with respect to the normalized tensor; None without a backward pass.
    """

    plan: Plan
    tensor: Tensor
    inputs: Inputs = NO_INPUTS
    effort: Effort = DEFAULT_EFFORT
    give: Give = give_back_as_is
    give_other: Give = give_back_as_is
    dy: Tensor | None = None

    @property
    def values(self) -> NDArray[Any]:
        """The values of the tensor."""
        return self.tensor.values

    def calculate(
        self, effort: Effort | None = None, *, out: NDArray[Any] | None = None, statistics_alone: bool = False
    ) -> Result:
        """Apply the norm to the tensor.

        Parameters
        ----------
        effort : Effort or None
            Takes the place of the problem's own; None: the problem's own.
        out : ndarray or None
            The array into which the normalized values are written; None: a new one.
        statistics_alone : bool
            Whether only the statistics are calculated now, and the normalized values when they are first read.
        """
        values, inputs, effort = self.tensor.values, self.inputs, effort or self.effort
        return calculate(self.plan, values, inputs, out=out, effort=effort, statistics_alone=statistics_alone)


GivenInputs = tuple["Mapping[str, NDArray[Any] | None]", "Given | None", "SelectionRequest | None"]
"""The further arrays of a request as they were given: gamma and beta by name, running statistics, selection."""


def make_problem(
    request: Request,
    tensor: Tensor,
    read_inputs: Callable[[Plan], GivenInputs],
    around: Surroundings | None = None,
    effort: Effort = DEFAULT_EFFORT,
    gives: tuple[Give, Give] = (give_back_as_is, give_back_as_is),
) -> Problem:
    """Plan a norm for a tensor, and fit gamma, beta, running statistics and selection to the plan.

    Parameters
    ----------
    request : Request
    tensor : Tensor
        The tensor with its residual added.
    read_inputs : callable
        Takes the plan, and returns the further arrays of the request; gamma and beta may then change the plan.
    around : Surroundings or None
        The bounds and the gate around the norm; None without any.
    effort : Effort
    gives : pair of callable
        The `give` and `give_other` of `Problem`.

    Raises
    ------
    UsageError
        If options contradict each other or do not fit the norm.
    DataError
        If an array does not fit the tensor.
    """
    request, given = request.adopt_dtype(tensor.output_dtype), tensor.values
    if around is not None:
        request, values = around.prepare(request, given)
        tensor = tensor._replace(values=values)
    plan = make_plan(request, tensor.values.shape, tensor.values.dtype, tensor.columns)
    parameters, running, selection = read_inputs(plan)
    if parameters:
        plan = plan.adopt_parameters(parameters)
    inputs = fit_inputs(plan, tensor.values, parameters, running, selection)
    if around is not None:
        inputs = around.surround(inputs, plan, given)
    return Problem(plan, tensor, inputs, effort, *gives)


def read_arguments(x: ArrayLike, norm: str, options: Mapping[str, Any]) -> Problem:
    """Read the arguments of `normalize`.

    Parameters
    ----------
    x, norm
        The first two arguments of `normalize`.
    options : mapping
        Its other arguments by name. Missing ones have their defaults; unknown ones are ignored.

    Raises
    ------
    NormError
        If an argument is not valid; for each case see `normalize`.
    """
    options = read_given(options) if options else {}
    given = options.get
    if "dtype" in options:
        options["dtype"] = read_dtype("dtype", given("dtype"))
    request = Request.collect(norm, options)
    taken = take(x, "x")
    gives = taken.give, taken.give_other
    if options.keys() <= NAMES:  # as of most small tensors, for which looking for arrays takes a while
        values = taken.values
        plan = make_plan(request.adopt_layout(taken.layout), values.shape, values.dtype, taken.columns)
        tensor = Tensor(values, "x", taken.columns)
        return Problem(plan, tensor, fit_inputs(plan, values), DEFAULT_EFFORT, *gives)
    addends = read_addends(taken, options)
    values = taken.values if addends is None else addends.add()
    tensor = Tensor(values, "x", taken.columns, addends=addends)

    def read_inputs(plan: Plan) -> GivenInputs:
        arrays = {name: _arrange(options[name], name, taken) for name in _PARAMETERS if name in options}
        running = pair_running(given("running_mean"), given("running_var"))
        return arrays, running, _read_selection(taken, options)

    around = _read_surroundings(taken, options)
    effort = _read_effort(given("threads"), given("statistics"))
    return make_problem(request.adopt_layout(taken.layout), tensor, read_inputs, around, effort, gives)


def read_given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that are not None, with aliases replaced: `weight` becomes `gamma`, `bias` `beta`.

    Raises
    ------
    UsageError
        If an option is given by both of its names.
    """
    found = {name: value for name, value in options.items() if value is not None}  # most options are None
    for alias, name in _ALIASES.items():
        if alias in found:
            if name in found:
                raise UsageError(f"{alias} is another name of {name}; give one of them")
            found[name] = found.pop(alias)
    return found


def _read_effort(threads: Any, statistics: Any) -> Effort:
    """Return the effort for the arguments `threads` and `statistics`; the default one if both are None.

    Raises `UsageError` if `threads` is no integer of at least 1, or `statistics` no truth value.
    """
    if threads is None and statistics is None:
        return DEFAULT_EFFORT
    count = _convert("threads", threads, operator.index, "is not an integer")
    keeps = _convert("statistics", statistics, read_flag, "is not yes or no") is not False
    effort = Effort(threads=count, keeps_statistics=keeps)
    require_threads(effort)
    return effort


def _read_selection(taken: Taken, options: Mapping[str, Any]) -> SelectionRequest | None:
    """Return the selection of values that the options describe; None if none of its options is given."""
    if options.keys().isdisjoint(SelectionRequest._fields):
        return None
    mask, lengths, nan, fill = map(options.get, SelectionRequest._fields)
    padded = _convert("lengths", lengths, lambda counts: tuple(map(operator.index, counts)), "are no integers")
    return SelectionRequest(None if mask is None else _arrange(mask, "mask", taken), padded, nan, fill)


def read_addends(taken: Taken, options: Mapping[str, Any]) -> Addends | None:
    """Return x and the residual to add to it; None without a residual."""
    residual, kind = options.get("residual"), options.get("residual_sum")
    if kind is not None and kind not in tuple(ResidualSum):
        raise UsageError(f"residual_sum {kind!r} is none of {', '.join(ResidualSum)}")
    if residual is None:
        if kind is not None:
            raise UsageError("residual_sum says how residual is added; give that too")
        return None
    return Addends(taken.values, _arrange(residual, "residual", taken), ResidualSum(kind or "rounded"))


def _read_surroundings(taken: Taken, options: Mapping[str, Any]) -> Surroundings | None:
    """Return the bounds and the gate around the norm; None if none of them is given."""
    if options.keys().isdisjoint(AROUND):
        return None
    given = {name: options[name] for name in AROUND if name in options}
    from normcli.results.surroundings import Surroundings, read_bounds  # few calls have any

    for name in given.keys() & {"clip", "clip_output"}:
        given[name] = read_bounds(name, given[name], takes_percent=name == "clip")
    if "gate" in given:
        given["gate"] = _arrange(given["gate"], "gate", taken)
    return Surroundings(**given)


def pair_running(mean: ArrayLike | None, var: ArrayLike | None) -> Given | None:
    """Return running mean and variance; None if both are None. Raise `UsageError` if only one is given."""
    if (mean is None) != (var is None):
        raise UsageError("running_mean and running_var go together")
    if mean is None or var is None:
        return None
    return Given(read_numbers(mean, "running_mean"), read_numbers(var, "running_var"))


def _convert(name: str, value: Any, convert: Callable[[Any], Item], fault: str) -> Item | None:
    """Return `convert(value)`, or None for a value of None.

    Raises
    ------
    UsageError
        If `convert` raises `TypeError` or `ValueError`; the message is the name, the value and the words
        `fault`.
    """
    try:
        return None if value is None else convert(value)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{name} {value!r} {fault}") from error


def read_dtype(name: str, dtype: DTypeLike | None) -> str | None:
    """Return the name of a dtype argument, such as `float32`; None if `dtype` is None.

    Raises
    ------
    UsageError
        If NumPy knows no such dtype.
    """
    return _convert(name, dtype, name_output_dtype, f"is none of {', '.join(OUTPUT_DTYPES)}")


def name_output_dtype(dtype: DTypeLike) -> str:
    """Return the name of a dtype; `bfloat16` may be given as text though NumPy has no such dtype."""
    return dtype if isinstance(dtype, str) and dtype in OUTPUT_DTYPES else np.dtype(dtype).name


def read_numbers(x: ArrayLike, name: str) -> NDArray[Any]:
    """Return an argument as an array of real numbers.

    Raises
    ------
    DataError
        If it is no array of real numbers; `name` is its name in the message.
    """
    return take(x, name).values


def _arrange(x: ArrayLike, name: str, whole: Taken) -> NDArray[Any]:
    """Return an argument as an array, a table's columns in the order of the table `whole`.

    Raises
    ------
    DataError
        If it holds no real numbers, or the names of its columns are not those of `whole`.
    """
    taken = take(x, name)
    if taken.columns is None or whole.columns is None or taken.columns == whole.columns:
        return taken.values
    return taken.values[..., match_names(taken.columns, whole.columns, name)]
