"""The backward pass: the derivatives of a loss with respect to x, gamma and beta, from dy."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import is_float
from normcli.engine.inputs import NO_INPUTS
from normcli.errors import DataError, UsageError
from normcli.norms.request import Fill
from normcli.results.arguments import read_arguments, read_numbers
from normcli.results.arrays import take_place
from normcli.results.calculate import require_threads
from normcli.tensors.random.generate import generate
from normcli.tensors.random.recipe import Recipe
from normcli.tensors.tensor import Tensor

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from normcli.engine.inputs import Inputs
    from normcli.norms.plan import Plan
    from normcli.results.arguments import Problem


@dataclass(frozen=True, repr=False, eq=False)
class Gradients:
    """The derivatives that `backward` returns. Every number is the exact one, rounded once.

    Parameters
    ----------
    plan : Plan
        Every choice that was made.
    input, dy : ndarray
        The tensor x, and the derivative of the loss with respect to the normalized tensor y.
    dx : ndarray
        The derivative with respect to x, of the shape of x and the dtype of y; its unit is dy's unit / x's
        unit.
    dgamma, dbeta : ndarray or None
        The derivatives with respect to gamma and beta, of the shape `ParameterShapes.shape`, in the unit of dy;
        in the dtypes of gamma and beta if these are floats, otherwise in the dtype of dx. None if the norm has
        no such parameter.
    inputs : Inputs
        Gamma, beta, running statistics, the selection of values, and a gate.
    dgate : ndarray or None
        The derivative with respect to the gate, of the gate's shape, in its dtype if that is a float, otherwise
        in that of y; None without a gate.
    """

    plan: Plan
    input: NDArray[Any]
    dy: NDArray[Any]
    dx: NDArray[Any]
    dgamma: NDArray[Any] | None
    dbeta: NDArray[Any] | None
    inputs: Inputs = NO_INPUTS
    dgate: NDArray[Any] | None = None

    def field(self, name: str) -> NDArray[Any] | None:
        """Return the gradient called `dx`, `dgamma`, `dbeta` or `dgate`; None if there is no such gradient."""
        values: NDArray[Any] | None = getattr(self, name)
        return values

    def collect(self) -> dict[str, NDArray[Any]]:
        """Return all gradients that are not None by name, as `{"dx": …, "dgamma": …}`."""
        found = {name: self.field(name) for name in (*self.plan.norm.gradient_names, "dgate")}
        return {name: values for name, values in found.items() if values is not None}

    def __repr__(self) -> str:
        return f"<Gradients: {self.plan.norm.name} of {self.plan.grid.shape}, {self.dx.dtype}>"


def backward(
    x: ArrayLike, dy: ArrayLike, norm: str = "bn", *, out: NDArray[Any] | None = None, **options: Any
) -> Gradients:
    """Return the derivatives of a loss with respect to x, gamma, beta and a gate, from dy.

    For a group of `bn`: dx = γ · (dy − mean(dy) − x̂ · mean(dy · x̂)) / √(var + eps), dγ = Σ dy · x̂, dβ = Σ dy.
    The derivatives of other norms and options follow by the chain rule (`normcli.numerics.gradients`).

    Parameters
    ----------
    x : array_like
        The tensor that was normalized. dx is of the same type: a tensor of PyTorch or JAX, or a table. So are
        dgamma and dbeta, except that they are NumPy arrays if `x` is a table.
    dy : array_like
        The derivative of the loss with respect to the normalized tensor y, of the shape of `x`; taken as
        float64.
    norm : str
        A name of the table `normcli.NORMS`, or an alias of one.
    out : ndarray, optional
        The array into which dx is written: C-contiguous, of the shape of `x` and the dtype of the output;
        neither `x` nor `dy`. It may be a tensor of PyTorch.
    **options
        The options of `normcli.normalize`, by the same names and with the same defaults.

    Returns
    -------
    Gradients

    Raises
    ------
    UsageError
        If the norm has no derivative, because its statistics are single values of the tensor (`minmax`,
        `midrange`, `maxabs`, `robust`), or an option is not valid.
    DataError
        If `dy` is not of the shape of `x`, or an array does not fit.

    Notes
    -----
    With a gate z after the norm, dy · act(z) takes the place of dy, and dgate is dy · norm(x) · act′(z). With
    a gate before the norm, dx and dgate are act(z) and x · act′(z) times the derivative with respect to the
    product x · act(z), whose rounding is ignored. The derivative of relu is 0 at 0. For a gate that is
    broadcast, dgate is the sum over the values that each of its numbers multiplies, rounded once; a gate after
    the norm does not multiply masked values, and a masked NaN adds 0.

    Running statistics are constants: with them, dx is γ · dy / √(running_var + eps). Masked values have dx = dy
    where they are passed through, and 0 where they are replaced; where they are normalized with the statistics
    of the other values, they change dx of those too. The rounding of x̂ before gamma is ignored.

    For `sn`, dx = (dy − ⟨dy, y⟩ · u vᵀ) / σ with the singular vectors u and v, to as many bits as the rounding
    needs, at most 600; vectors of power iterations are constants, as in frameworks. A matrix whose two largest
    singular values are equal, or differ by less than some 2⁻³⁷ of the larger, has no derivative: its dx is NaN.

    Roots are known to 300 bits: a sum that cancels to less than 2⁻²⁴⁰ of its largest term has an error of at
    most 2⁻³⁰⁰ of that term.

    A group with a value that is not finite, or with a divisor of 0, has no derivative: its dx is NaN, except
    for a constant group that is divided by 1. Where only one-sided derivatives exist, the convention is
    torch's: the derivatives of √var, |x| and |x|ᵖ are 0 at 0; a floor that is reached exactly has no effect; in
    the ℓ∞ length, values that are equally large have equal shares. The derivative of ℓ0 is 0.

    References
    ----------
    Ioffe & Szegedy 2015, arXiv:1502.03167, section 3, for `bn`.

    Examples
    --------
    >>> found = backward([[1.0, 2.0, 3.0]], [[1.0, 0.0, 0.0]], "ln", eps=0.0)
    >>> found.dx.round(4)
    array([[ 0.2041, -0.4082,  0.2041]])
    >>> found.dgamma.round(4), found.dbeta
    (array([-1.2247,  0.    ,  0.    ]), array([1., 0., 0.]))
    """
    from normcli.results.normalize import require_options

    require_options("backward", options, takes_gate=True)
    asked = read_arguments(x, norm, options)._replace(dy=Tensor(read_numbers(dy, "dy"), "dy"))
    found = calculate_backward(asked, out=take_place(out))
    dgamma, dbeta = (None if a is None else asked.give_other(a) for a in (found.dgamma, found.dbeta))
    dgate = None if found.dgate is None else asked.give(found.dgate)
    return dataclasses.replace(found, dx=asked.give(found.dx), dgamma=dgamma, dbeta=dbeta, dgate=dgate)


def calculate_backward(problem: Problem, *, out: NDArray[Any] | None = None) -> Gradients:
    """Return the gradients of a backward pass as NumPy arrays.

    Parameters
    ----------
    problem : Problem
        The problem, with dy.
    out : ndarray or None
        The array into which dx is written, and which is the result's `dx`; None: a new one.

    Raises
    ------
    NormError
        If the norm has no derivative, or an array does not fit.
    """
    from normcli.engine.backward import run_backward  # on use: few calls need gradients

    plan, values, inputs, effort = problem.plan, problem.values, problem.inputs, problem.effort
    require_threads(effort)
    dy, before = require_gradients(problem), inputs.gated_input
    derived = run_backward(plan, values, dy, inputs, out, effort, before and before._replace(times=None))
    return Gradients(plan, values, dy, *derived, inputs, _differentiate_gate(problem, dy))


def _differentiate_gate(problem: Problem, dy: NDArray[Any]) -> NDArray[Any] | None:
    """Return the derivative with respect to the gate, of the gate's own shape; None without a gate.

    Each value is the exact one, rounded once: to the gate's dtype if that is a float, otherwise to that of y.
    """
    from normcli.engine.backward import run_backward, sum_gate
    from normcli.engine.run import run

    plan, values, inputs, effort = problem.plan, problem.values, problem.inputs, problem.effort
    gate, selection = inputs.gate or inputs.gated_input, inputs.selection
    if gate is None:
        return None
    dtype = gate.values.dtype if is_float(gate.values.dtype) else plan.choose_output_dtype(values.dtype)
    plan = plan.change_spec(dtype=dtype.name, rounds_before_gamma=False)
    left_out = np.isnan(values) if selection is not None and selection.omits_nan else None
    slope = gate._replace(is_slope=True)
    if inputs.gate is not None:  # norm(x), times dy · act'(z)
        slope = slope._replace(times=dy)
        inputs = inputs._replace(gate=slope, clip=None)
        if selection is not None and selection.fill is not Fill.NORMALIZE:  # masked values have no gate
            inputs = inputs._replace(selection=selection._replace(fill=Fill.ZERO))
    elif left_out is not None:
        slope = slope._replace(times=np.where(left_out, 0.0, slope.times))
    if not values.size:
        found = np.zeros(gate.values.shape, dtype)
    elif gate.values.shape != values.shape:
        found = sum_gate(plan, values, dy, inputs, slope, effort)
    elif inputs.gate is None:
        found = run_backward(plan, values, dy, inputs, None, effort, slope).dx
    else:
        found = run(plan, values, inputs, effort=effort)[0]
        found = found if left_out is None else np.where(left_out, found.dtype.type(0), found)
    return found.reshape(found.shape[found.ndim - gate.given_axes :])


def require_gradients(problem: Problem) -> NDArray[Any]:
    """Return the values of a problem's dy; raise an error unless its gradients are defined.

    Raises
    ------
    UsageError
        If the norm has no derivative, gamma and beta have different shapes, or there is a gate and the norm
        has sliding windows.
    DataError
        If dy does not have the shape of the tensor.
    """
    plan, inputs = problem.plan, problem.inputs
    assert problem.dy is not None
    dy = problem.dy.values
    require_derivative(plan)
    if not plan.parameters.alike:
        raise UsageError(
            "gamma and beta of different shapes: leave out beta for dx and dgamma, gamma for dbeta"
        )
    if dy.shape != plan.grid.shape:
        raise DataError(f"dy has the shape {dy.shape}; it takes that of the input, {plan.grid.shape}")
    if (inputs.gate or inputs.gated_input) is not None and not plan.has_groups:
        raise UsageError(f"{plan.norm.name} has no backward pass with a gate")
    return dy


def require_derivative(plan: Plan) -> None:
    """Raise `UsageError` if a plan's norm has no derivative.

    It has none if its statistics are single values of the tensor (such as a maximum or a median), or if
    `no_mean` or `no_scale` leaves out one of its steps.
    """
    norm = plan.norm
    if norm.is_by_order:
        raise UsageError(
            f"{norm.name} has no backward pass: its statistics are single values of the input, and which ones "
            "they are changes in jumps; it is fitted to data before training, not differentiated"
        )
    if norm.is_partial:
        raise UsageError(
            f"{norm.name} has no backward pass without one of its steps; leave out no_mean, no_scale"
        )


def draw_gradient(plan: Plan, seed: int) -> Tensor:
    """Return a random dy for a plan's tensor: standard normal, in the shape and dtype of the plan's output.

    If dy were 1 everywhere, or proportional to x̂, terms of dx would cancel and hide errors.

    Parameters
    ----------
    plan : Plan
    seed : int
        The seed for NumPy's `default_rng`; it should differ from the tensor's own.
    """
    dtype = plan.choose_output_dtype(plan.tensor_dtype).name
    return generate(Recipe(plan.grid.shape, "normal", seed=seed, rng="numpy", dtype=dtype))
