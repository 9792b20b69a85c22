"""Batch normalization folded into the layer before it: one convolution or matrix does the work of both."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import get_eps, is_float
from normcli.errors import DataError
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.rules import EpsMode
from normcli.norms.table import NORMS
from normcli.numerics.elements.in_fractions import normalize
from normcli.numerics.elements.kernel import Parameters
from normcli.numerics.rounding import widen
from normcli.numerics.statistics.solution import Given, solve_given
from normcli.printable import agree, format_count
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.numerics.statistics.divisor import Solution


_NORM = NORMS["bn"]

_MOST_AXES = 5
_TORCH = (("out", "in", "…"), ("in", "out", "…"))
_KERAS = (("…", "in", "out"), ("…", "out", "in"))
_FLAX, _MLX = (_KERAS[0],) * 2, (("out", "…", "in"),) * 2
_KERNELS = {
    "keras": _KERAS, "tensorflow": _KERAS, "tensorflow-moments": _KERAS,
    "flax-linen": _FLAX, "flax-nnx": _FLAX, "mlx": _MLX,
}  # fmt: skip
"""Framework → the axes of the weight of a layer, and of a transposed layer: Keras 3 base_conv.py,
base_conv_transpose.py and dense.py; Flax linen/linear.py and nnx/nn/linear.py (transpose_kernel=False); MLX
nn/layers/convolution.py, convolution_transpose.py and linear.py. Other frameworks have torch's order."""


class Layer(NamedTuple):
    """A convolution or a linear layer.

    Parameters
    ----------
    weight : ndarray
        An array of the shape (out, in / groups, *kernel), as in torch's `Conv1d` to `Conv3d`; (out, in) for a
        linear layer; (in, out / groups, *kernel) if `transposed`.
    bias : ndarray or None
        An array of the shape (out).
    groups : int
    transposed : bool
    framework : str or None
        The framework that the layer is of, whose order of axes `given` has; None and unknown ones: torch.
    """

    weight: NDArray[Any]
    bias: NDArray[Any] | None = None
    groups: int = 1
    transposed: bool = False
    framework: str | None = None

    @property
    def channels(self) -> int:
        """The number of output channels."""
        first, second = self.weight.shape[:2]
        return int(second * self.groups if self.transposed else first)

    @property
    def order(self) -> tuple[str, ...]:
        """The framework's order of the weight's axes, such as ("out", "in", "…"); `…` are the kernel's axes."""
        return _KERNELS.get(self.framework or "", _TORCH)[self.transposed]

    @property
    def given(self) -> NDArray[Any]:
        """The weight with its axes in `order`."""
        return np.ascontiguousarray(self._move_axes(self.weight, back=True))

    def take_weight(self, weight: NDArray[Any]) -> Layer:
        """Return the layer with another weight, whose axes are in `order`."""
        return self._replace(weight=self._move_axes(weight))

    def _move_axes(self, weight: NDArray[Any], *, back: bool = False) -> NDArray[Any]:
        """Return a weight with its axes moved from `order` to torch's, or with `back` in reverse.

        A weight of fewer than 2 or more than 5 axes is returned as it is.
        """
        if not 2 <= weight.ndim <= _MOST_AXES:
            return weight
        order = self.order
        places = [order.index(name) for name in _TORCH[self.transposed][:2]]
        own = tuple(n if n < order.index("…") else n - len(order) for n in places)
        return np.moveaxis(weight, *((0, 1), own) if back else (own, (0, 1)))


class Affine(NamedTuple):
    """A batch normalization in evaluation: running statistics, eps, gamma and beta.

    Parameters
    ----------
    running : Given
        Mean and variance, of the shape (channels).
    eps : float
    gamma, beta : ndarray or None
        Arrays of the shape (channels).
    eps_mode : EpsMode
        `INSIDE` for the divisor √(var + eps), `OUTSIDE` for √var + eps.
    """

    running: Given
    eps: float
    gamma: NDArray[Any] | None = None
    beta: NDArray[Any] | None = None
    eps_mode: EpsMode = EpsMode.INSIDE

    def apply(self, y: Floats) -> Floats:
        """Return the normalized output of a layer, of the shape (samples, channels, *positions), in float64."""
        along = (1, -1, *(1,) * (y.ndim - 2))
        mean, _, _, beta = (array.reshape(along) for array in spread(self, y.shape[1]))
        return (y - mean) * divide(self, y.shape[1]).reshape(along) + beta


def fold(layer: Layer, norm: Affine) -> Layer:
    """Return one layer whose output is that of `layer` followed by the batch normalization `norm`.

    For each output channel the weight is weight · gamma / divisor, and the bias (bias − mean) · gamma / divisor
    + beta, with the divisor √(var + eps) or √var + eps: the exact values, rounded once to the dtype of the
    weight (float64 for a weight of integers). The folded layer always has a bias.

    Raises
    ------
    DataError
        If the weight is not of a layer's shape, the statistics are not one for each output channel, a number is
        not finite, a divisor is 0, or the folded layer is not finite in the dtype of the weight.

    Notes
    -----
    The same as torch 2.13's `fuse_conv_bn_eval` and `fuse_linear_bn_eval`; Ioffe & Szegedy 2015, section 3.1.
    """
    require_layer(layer)
    channels = layer.channels
    mean, var, gamma, beta = spread(norm, channels)
    bias = np.zeros(channels) if layer.bias is None else widen(layer.bias)
    dtype = layer.weight.dtype if is_float(layer.weight.dtype) else np.dtype(np.float64)
    given = {"running mean": mean, "gamma": gamma, "beta": beta, "bias": bias}
    for name, values in {**given, "running variance": np.where(np.isinf(var), 0.0, var)}.items():
        wrong = ~np.isfinite(values)
        _refuse(wrong, f"the {name} is {values[wrong][0] if wrong.any() else ''}")
    _refuse(_find_not_finite(layer), "the weight holds NaN or an infinity")
    solution = _solve(norm, channels)
    _refuse(solution.divisor.hi == 0.0, f"{format_divisor(norm)} is 0, by which nothing can be divided")
    folded_bias = normalize(bias, dtype, solution, Parameters(gamma, beta))
    folded = layer._replace(weight=_scale(layer, dtype, solution, gamma), bias=folded_bias)
    wider = "" if dtype == np.float64 else "; give the weight in a wider dtype"
    _refuse(_find_not_finite(folded), f"the folded weight is beyond {dtype.name}{wider}")
    _refuse(~np.isfinite(folded_bias), f"the folded bias is beyond {dtype.name}{wider}")
    return folded


def format_outgoing(channels: int) -> str:
    """Return words for the number of output channels: `3 channels come out`."""
    return f"{format_count(channels, 'channel')} {agree(channels, 'comes', 'come')} out"


def format_divisor(norm: Affine) -> str:
    """Return the formula of a norm's divisor: `√(var + eps)` or `√var + eps`."""
    return "√(var + eps)" if norm.eps_mode is EpsMode.INSIDE else "√var + eps"


def _refuse(wrong: Selected, reason: str) -> None:
    """Raise `DataError` with the first channel for which `wrong` is True, and the reason; none: do nothing."""
    if wrong.any():
        first, others = int(np.flatnonzero(wrong)[0]), int(wrong.sum()) - 1
        more = f" (and {others} more)" if others else ""
        raise DataError(f"channel {first}{more} cannot be folded: {reason}")


def _find_not_finite(layer: Layer) -> Selected:
    """Return, for each output channel of a layer, whether one of its weights is NaN or infinite."""
    wrong = ~np.isfinite(layer.weight)
    rows = wrong.reshape(layer.channels, -1)
    if layer.transposed:
        grouped = wrong.reshape(layer.groups, -1, wrong.shape[1], wrong[0, 0].size)
        rows = grouped.swapaxes(1, 2).reshape(layer.channels, -1)
    return np.asarray(rows.any(axis=1))


def spread(norm: Affine, channels: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Return mean, variance, gamma and beta in float64, each of the shape (channels).

    Single numbers are repeated; gamma is 1 and beta 0 if there is none.

    Raises
    ------
    DataError
        If an array has another number of channels, or a variance is negative.
    """
    gamma = np.ones(()) if norm.gamma is None else norm.gamma
    beta = np.zeros(()) if norm.beta is None else norm.beta
    given = {"the running mean": norm.running.mean, "the running variance": norm.running.var}
    arrays = []
    for name, values in {**given, "gamma": gamma, "beta": beta}.items():
        if values.shape not in ((), (1,), (channels,)):
            raise DataError(f"{name} has the shape {values.shape}; {format_outgoing(channels)} of the layer")
        arrays.append(np.broadcast_to(widen(values), (channels,)))
    mean, var, scale, shift = arrays
    if (var < 0.0).any():
        raise DataError(f"the running variance is negative: {var[var < 0.0][0]:g}")
    return mean, var, scale, shift


def divide(norm: Affine, channels: int) -> Floats:
    """Return gamma over the divisor of each channel, in float64."""
    gamma = spread(norm, channels)[2]
    solution = _solve(norm, channels)
    solution.centred = False
    return normalize(np.ones(channels), np.dtype(np.float64), solution, Parameters(gamma))


def _solve(norm: Affine, channels: int) -> Solution:
    """Return the mean and the divisor √(var + eps) of each channel, in pairs of doubles, as a `Solution`.

    The shape is (channels,). For eps outside the root the divisor is √var + eps.
    """
    request = Request(_NORM.name, axes=0, eps=norm.eps, eps_mode=str(norm.eps_mode))
    plan = make_plan(request, (1, channels), np.dtype(np.float64))
    mean, var, _, _ = spread(norm, channels)
    with np.errstate(all="ignore"):
        return solve_given(plan, Given(mean, var)).reshape((channels,))


def _scale(layer: Layer, dtype: np.dtype[Any], solution: Solution, gamma: Floats) -> NDArray[Any]:
    """Return the weight of a layer times gamma / divisor of its output channel, rounded once to `dtype`.

    `gamma`, and the mean and divisor in `solution`, have the shape (output channels).
    """
    weight = layer.weight
    along = (-1, *(1,) * (weight.ndim - 1))
    if layer.transposed:
        along = (layer.groups, 1, weight.shape[1], *(1,) * (weight.ndim - 2))
        weight = weight.reshape(layer.groups, -1, *weight.shape[1:])
    solution = solution.take(lambda a: a.reshape(along))
    solution.centred = False
    return normalize(weight, dtype, solution, Parameters(gamma.reshape(along))).reshape(layer.weight.shape)


def require_layer(layer: Layer) -> None:
    """Raise `DataError` unless a layer's weight, groups and bias have shapes that fit each other."""
    shape = layer.weight.shape
    if not 2 <= len(shape) <= _MOST_AXES:
        raise DataError(
            f"the weight has the shape {shape}: a linear layer's has 2 axes, a convolution's 3 to 5"
        )
    if not layer.weight.size:
        raise DataError(f"the weight has the shape {shape}: it holds no values")
    if layer.groups < 1 or shape[0] % layer.groups:
        raise DataError(f"{layer.groups} groups do not divide the {shape[0]} channels of the weight")
    if layer.bias is not None and layer.bias.shape != (layer.channels,):
        raise DataError(f"the bias has the shape {layer.bias.shape}; {format_outgoing(layer.channels)}")


def apply(layer: Layer, x: Floats) -> Floats:
    """Return a layer's output for a batch in float64, with stride 1 and no padding; slow for large tensors.

    Parameters
    ----------
    layer : Layer
    x : ndarray
        The batch, of the shape (samples, in, *positions).
    """
    weight = np.asarray(layer.weight, dtype=np.float64)
    kernel, groups = weight.shape[2:], layer.groups
    parts = np.split(x, groups, axis=1)
    if layer.transposed:  # a convolution of the padded input with the reversed kernel
        widths = [(0, 0), (0, 0), *((n - 1, n - 1) for n in kernel)]
        parts = [np.pad(part, widths) for part in parts]
        turned = np.flip(weight, tuple(range(2, weight.ndim)))
        weights = [part.swapaxes(0, 1) for part in np.split(turned, groups, axis=0)]
    else:
        weights = np.split(weight, groups, axis=0)
    y = np.concatenate([_correlate(a, b) for a, b in zip(parts, weights, strict=True)], axis=1)
    return (
        y if layer.bias is None else y + np.asarray(layer.bias, np.float64).reshape(1, -1, *(1,) * len(kernel))
    )


def _correlate(x: Floats, weight: Floats) -> Floats:
    """Return the correlation of x (samples, in, *positions) with a weight (out, in, *kernel).

    Products are added in a fixed order, so that results are the same on all machines, unlike a matrix
    product's.
    """
    kernel = weight.shape[2:]
    positions = tuple(range(2, x.ndim))
    if kernel:
        x = np.lib.stride_tricks.sliding_window_view(x, kernel, axis=positions)
    channels, lengths = len(weight), x.shape[2 : 2 + len(kernel)]
    lines = np.ascontiguousarray(weight.reshape(channels, -1).T)
    y = np.zeros((len(x), *lengths, channels))
    product = np.empty_like(y)
    for place, line in zip(np.ndindex(weight.shape[1:]), lines, strict=True):
        values = x[(slice(None), place[0], *(slice(None),) * len(kernel), *place[1:])]
        y += np.multiply(values[..., None], line, out=product)
    return np.moveaxis(y, -1, 1)


def draw_batch(layer: Layer, seed: int = 0) -> Floats:
    """Return a random float64 input of a layer: 4 samples, each axis 3 positions longer than the kernel's."""
    weight = layer.weight
    channels = weight.shape[0] if layer.transposed else weight.shape[1] * layer.groups
    shape = (4, channels, *(n + 3 for n in weight.shape[2:]))
    return np.random.default_rng(seed).standard_normal(shape)


_ROUNDINGS = 64.0
"""The largest difference that counts as rounding, in roundings of the largest value times √(summands)."""


class Proof(NamedTuple):
    """The outputs of a layer with its norm and of the folded layer, compared on a random batch.

    Parameters
    ----------
    max_abs, largest : float
        The largest |difference| of the two outputs, and the largest magnitude of that of layer and norm; NaN or
        infinite if a value is beyond float64.
    ok : bool or None
        Whether the difference is rounding; None if a value is beyond float64.
    """

    max_abs: float
    largest: float
    ok: bool | None


def prove(layer: Layer, norm: Callable[[Floats], Floats], folded: Layer, seed: int = 0) -> Proof:
    """Compare a layer and a norm, which takes the layer's output, with the folded layer on a random batch."""
    x = draw_batch(layer, seed)
    with np.errstate(all="ignore"):
        expected = norm(apply(layer, x))
        largest, size = (float(np.abs(y).max()) for y in (apply(folded, x) - expected, expected))
    if not (math.isfinite(largest) and math.isfinite(size)):
        return Proof(largest, size, None)
    summands = folded.weight.size / max(1, folded.channels)
    rounding = get_eps(folded.weight.dtype) * max(size, 1.0) * math.sqrt(max(1.0, summands))
    return Proof(largest, size, largest <= _ROUNDINGS * rounding)
