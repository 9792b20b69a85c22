"""Batch normalization folded into the layer before it: one convolution or matrix does the work of both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.dtypes import is_float
from normcli.errors import DataError
from normcli.norms.table import EpsMode
from normcli.numerics.divisor import add_eps
from normcli.numerics.pairs import Pair, pair_add, pair_divide, pair_multiply, pair_root, two_diff

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.numerics.solution import Given


class Layer(NamedTuple):
    """A convolution or a linear layer.

    Parameters
    ----------
    weight : ndarray
        (out, in / groups, *kernel) as torch's `Conv1d` to `Conv3d` have it; (out, in) of a linear layer; where
        transposed, (in, out / groups, *kernel).
    bias : ndarray or None
        (out).
    groups : int
    transposed : bool
    """

    weight: NDArray[Any]
    bias: NDArray[Any] | None = None
    groups: int = 1
    transposed: bool = False

    @property
    def channels(self) -> int:
        """The number of output channels."""
        first, second = self.weight.shape[:2]
        return int(second * self.groups if self.transposed else first)


class Affine(NamedTuple):
    """What batch normalization does after training: statistics, eps, and the affine step.

    Parameters
    ----------
    running : Given
        Of the shape (channels).
    eps : float
    gamma, beta : ndarray or None
        Of the shape (channels).
    eps_mode : EpsMode
        √(var + eps) or √var + eps.
    """

    running: Given
    eps: float
    gamma: NDArray[Any] | None = None
    beta: NDArray[Any] | None = None
    eps_mode: EpsMode = EpsMode.INSIDE


def fold(layer: Layer, norm: Affine) -> Layer:
    """Return the layer that does what a layer and then the norm do.

    For each output channel the weight is weight · gamma / divisor, and the bias (bias − mean) · gamma / divisor
    + beta, with the divisor √(var + eps) or √var + eps: calculated in pairs of doubles and rounded once, to the
    dtype of the weight.

    Parameters
    ----------
    layer : Layer
    norm : Affine

    Returns
    -------
    Layer
        With a bias.

    Raises
    ------
    DataError
        If the weight is not of a layer's shape, the statistics are not one for each of its channels, or the
        folded layer is not finite in the dtype of the weight.

    Notes
    -----
    As torch 2.13's `fuse_conv_bn_eval` and `fuse_linear_bn_eval`, and Ioffe & Szegedy 2015, section 3.1.
    """
    _require_layer(layer)
    channels = layer.channels
    mean, var, gamma, beta = spread(norm, channels)
    zero = np.zeros(channels)
    bias = zero if layer.bias is None else layer.bias.astype(np.float64)
    dtype = layer.weight.dtype if is_float(layer.weight.dtype) else np.dtype(np.float64)
    with np.errstate(all="ignore"):
        divisor = add_eps(
            Pair(var, zero), pair_root(Pair(var, zero)), norm.eps, norm.eps_mode, None, exact=True
        )
        _require_finite(layer, norm, bias)
        _refuse(divisor.hi == 0.0, f"{format_divisor(norm)} is 0, by which nothing can be divided")
        # Without their exponents, products of pairs stay within float64 wherever the result does.
        gamma, exponent = np.frexp(gamma)
        factor = pair_divide(Pair(gamma, zero), divisor)
        endless = np.isinf(var)  # where the low parts of pairs are NaN
        factor = Pair(np.where(endless, 0.0, factor.hi), np.where(endless, 0.0, factor.lo))
        difference = two_diff(bias, mean)
        size = np.frexp(difference.hi)[1]
        shift = pair_multiply(difference.map(lambda a: np.ldexp(a, -size)), factor)
        shift = pair_add(shift.map(lambda a: np.ldexp(a, size + exponent)), Pair(beta, zero))
        weight = _scale(layer, factor, exponent).astype(dtype)
        folded_bias = np.asarray(shift.hi).astype(dtype)
        spoilt = ~np.isfinite(_by_channel(layer, weight)).all(axis=1)
        wider = "" if dtype == np.float64 else "; give the weight in a wider dtype"
        _refuse(spoilt, f"the folded weight is beyond {dtype.name}{wider}")
        _refuse(~np.isfinite(folded_bias), f"the folded bias is beyond {dtype.name}{wider}")
    return layer._replace(weight=weight, bias=folded_bias)


def format_divisor(norm: Affine) -> str:
    """Return what channels are divided by, as a formula."""
    return "√(var + eps)" if norm.eps_mode is EpsMode.INSIDE else "√var + eps"


def _require_finite(layer: Layer, norm: Affine, bias: Floats) -> None:
    """Raise `DataError` for what would make weights NaN or infinite; an infinite variance makes them 0."""
    mean, var, gamma, beta = spread(norm, layer.channels)
    finite_var = np.where(np.isinf(var), 0.0, var)
    names = ("running mean", "gamma", "beta", "bias", "running variance")
    for name, values in zip(names, (mean, gamma, beta, bias, finite_var), strict=True):
        spoilt = ~np.isfinite(values)
        _refuse(spoilt, f"the {name} is {values[spoilt][0] if spoilt.any() else ''}")
    spoilt = ~np.isfinite(_by_channel(layer, layer.weight)).all(axis=1)
    _refuse(spoilt, "the weight holds NaN or an infinity")


def _refuse(spoilt: NDArray[np.bool_], reason: str) -> None:
    """Raise `DataError` with a reason if any channel is spoilt."""
    if spoilt.any():
        first, others = int(np.flatnonzero(spoilt)[0]), int(spoilt.sum()) - 1
        more = f" (and {others} more)" if others else ""
        raise DataError(f"channel {first}{more} cannot be folded: {reason}")


def _by_channel(layer: Layer, weight: NDArray[Any]) -> NDArray[Any]:
    """Return a weight with one row for each output channel."""
    if not layer.transposed:
        return weight.reshape(layer.channels, -1)
    grouped = weight.reshape(layer.groups, -1, weight.shape[1], *weight.shape[2:])
    return grouped.swapaxes(1, 2).reshape(layer.channels, -1)


def spread(norm: Affine, channels: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Return mean, variance, gamma and beta in float64, one for each channel; single numbers serve all.

    Raises
    ------
    DataError
        If one is of another number of channels, or a variance is negative.
    """
    gamma = np.ones(()) if norm.gamma is None else norm.gamma
    beta = np.zeros(()) if norm.beta is None else norm.beta
    given = {"the running mean": norm.running.mean, "the running variance": norm.running.var}
    arrays = []
    for name, values in {**given, "gamma": gamma, "beta": beta}.items():
        if values.shape not in ((), (1,), (channels,)):
            raise DataError(f"{name} has the shape {values.shape}; {channels} channels come out of the layer")
        arrays.append(np.broadcast_to(values.astype(np.float64), (channels,)))
    mean, var, scale, shift = arrays
    if (var < 0.0).any():
        raise DataError(f"the running variance is negative: {var[var < 0.0][0]:g}")
    return mean, var, scale, shift


def divide(norm: Affine, channels: int) -> Floats:
    """Return what each channel is multiplied by, in float64: gamma over the divisor."""
    _, var, gamma, _ = spread(norm, channels)
    root = np.sqrt(var + norm.eps) if norm.eps_mode is EpsMode.INSIDE else np.sqrt(var) + norm.eps
    factor: Floats = gamma / root
    return factor


def _scale(layer: Layer, factor: Pair, exponent: NDArray[Any]) -> Floats:
    """Return the weight, each output channel times its factor · 2^exponent, rounded once."""
    values = np.asarray(layer.weight, dtype=np.float64)
    kernel = (1,) * (values.ndim - 2)
    if layer.transposed:
        grouped = values.reshape(layer.groups, -1, *values.shape[1:])
        along = (layer.groups, 1, values.shape[1], *kernel)
    else:
        grouped, along = values, (-1, 1, *kernel)
    mantissas, size = np.frexp(grouped)
    scale = factor.map(lambda a: a.reshape(along))
    product = pair_multiply(Pair(mantissas, np.zeros_like(mantissas)), scale)
    scaled: Floats = np.ldexp(product.hi, size + exponent.reshape(along)).reshape(values.shape)
    return scaled


def _require_layer(layer: Layer) -> None:
    shape = layer.weight.shape
    if len(shape) < 2 or len(shape) > 5:
        raise DataError(
            f"the weight has the shape {shape}: a linear layer's has 2 axes, a convolution's 3 to 5"
        )
    if not layer.weight.size:
        raise DataError(f"the weight has the shape {shape}: it holds no values")
    if layer.groups < 1 or shape[0] % layer.groups:
        raise DataError(
            f"{layer.groups} groups do not divide the {shape[0]} channels of the weight's first axis"
        )
    if layer.bias is not None and layer.bias.shape != (layer.channels,):
        raise DataError(f"the bias has the shape {layer.bias.shape}; {layer.channels} channels come out")


def apply(layer: Layer, x: Floats) -> Floats:
    """Return a layer's output for a batch, in float64, by its definition: for small tensors.

    Parameters
    ----------
    layer : Layer
    x : ndarray
        (samples, in, *positions); stride 1, no padding.
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
    kernel = weight.shape[2:]
    positions = tuple(range(2, x.ndim))
    if not kernel:
        return np.asarray(x @ weight.T)
    windows = np.lib.stride_tricks.sliding_window_view(x, kernel, axis=positions)
    inner = (1, *range(x.ndim, x.ndim + len(kernel)))
    return np.moveaxis(np.tensordot(windows, weight, axes=(inner, (1, *range(2, weight.ndim)))), -1, 1)


def prove(layer: Layer, norm: Affine, folded: Layer, seed: int = 0) -> tuple[float, float]:
    """Run a random batch through layer and norm, and through what they were folded into.

    Returns
    -------
    tuple of float
        The largest difference, and the largest magnitude of the output; NaN or infinite where that is beyond
        float64.
    """
    weight = layer.weight
    channels = weight.shape[0] if layer.transposed else weight.shape[1] * layer.groups
    shape = (4, channels, *(n + 3 for n in weight.shape[2:]))
    x = np.random.default_rng(seed).standard_normal(shape)
    with np.errstate(all="ignore"):
        y = apply(layer, x)
        along = (1, -1, *(1,) * (y.ndim - 2))
        mean, _, _, beta = (array.reshape(along) for array in spread(norm, layer.channels))
        expected = (y - mean) * divide(norm, layer.channels).reshape(along) + beta
        return float(np.abs(apply(folded, x) - expected).max()), float(np.abs(expected).max())
