"""A norm in plain NumPy whose parts can be replaced one by one, on data that show which part it was."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from normcli.dtypes import find_type
from normcli.norms.plan import Plan, make_plan
from normcli.norms.request import Request
from normcli.norms.rules import Centre
from normcli.numerics.statistics.solution import Given
from normcli.results.given_inputs import make_length_mask

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Layer:
    """A norm as it should be, and the shape that it is called on.

    Parameters
    ----------
    norm : str
    shape : tuple of int
    options : mapping
        Of its `Request`.
    names : tuple of str
        Which of gamma and beta it has.
    evaluates : bool
        Whether it takes running statistics in place of its own.
    gamma : float
        What the values of gamma lie about.
    lengths : tuple of int
        How many positions of each sample count; empty where all do.
    """

    norm: str
    shape: tuple[int, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    names: tuple[str, ...] = ("gamma", "beta")
    evaluates: bool = False
    gamma: float = 1.0
    lengths: tuple[int, ...] = ()

    def ask(self, **changes: Any) -> Request:
        """Return the request, with some options changed."""
        return Request(**{"norm": self.norm, **self.options, **changes})

    def __str__(self) -> str:
        options = "".join(f" {name}={value}" for name, value in self.options.items())
        return f"{self.norm}{' evaluated' * self.evaluates}{options} of {'×'.join(map(str, self.shape))}"


LN = Layer("ln", (8, 16, 100))
LN_ROWS = Layer("ln", (24, 72))
LN_SQUARE = Layer("ln", (12, 12, 40))
LN_ALIKE = Layer("ln", (24, 24))
LN_BARE = Layer("ln", (6, 10, 64), names=())
LN_SIGNED = Layer("ln", (8, 16, 100), gamma=0.0)
LN_FEW = Layer("ln", (30, 12))
LN_TINY = Layer("ln", (24, 72), {"eps": 1e-8})
LN_SLICE = Layer("ln", (24, 72), {"over": (0, 40)})
RMS_SLICE = Layer("rms", (20, 72), {"over": (8, 40)}, ("gamma",))
ADALN = Layer("ln", (4, 16, 64), {"feature_axes": (0, 2)})
RMS = Layer("rms", (4, 12, 96), {"eps": 1e-6}, ("gamma",))
RMS_ROWS = Layer("rms", (20, 72), names=("gamma",))
QK = Layer("rms", (2, 10, 4, 32), {"feature_axes": (2, 3), "eps": 1e-6}, ("gamma",))
BN = Layer("bn", (8, 6, 5, 5))
BN_ROWS = Layer("bn", (32, 12))
BN_SIGNED = Layer("bn", (32, 12), gamma=0.0)
BN_SQUARE = Layer("bn", (4, 6, 9, 9))
BN_LAST = Layer("bn", (8, 5, 5, 6), {"layout": "NHWC", "eps": 1e-3})
IN = Layer("in", (4, 6, 7, 7))
GN = Layer("gn", (4, 12, 5, 5), {"groups": 4})
ZSCORE = Layer("zscore", (40, 6), names=())
EVALUATED = Layer("bn", (8, 6, 5, 5), evaluates=True)
EVALUATED_ROWS = Layer("bn", (32, 12), evaluates=True)
BN_LENGTHS = Layer("bn", (6, 9, 8), {"layout": "NLC"}, lengths=(9, 4, 7, 2, 5, 8))
IN_LENGTHS = Layer("in", (4, 6, 40), lengths=(40, 23, 31, 12))
GN_LENGTHS = Layer("gn", (4, 8, 20), {"groups": 4}, lengths=(20, 11, 16, 7))
LN_LENGTHS = Layer(
    "ln", (8, 16, 40), {"axes": "LC", "layout": "NLC", "feature_axes": 2}, lengths=(16, 9, 12, 5, 14, 7, 16, 11)
)
RMS_LENGTHS = Layer(
    "rms",
    (8, 16, 40),
    {"axes": "LC", "layout": "NLC", "feature_axes": 2},
    ("gamma",),
    lengths=(16, 9, 12, 5, 14, 7, 16, 11),
)
ZSCORE_LENGTHS = Layer("zscore", (4, 30, 6), {"axes": "NL", "layout": "NLC"}, (), lengths=(30, 17, 22, 9))
MASKED = BN_LENGTHS, IN_LENGTHS, GN_LENGTHS, LN_LENGTHS, RMS_LENGTHS, ZSCORE_LENGTHS


class Way(NamedTuple):
    """In which dtype a kernel runs, and how many spreads the mean of its data is from 0."""

    dtype: str
    offset: float


COARSE = (
    *(Way("float32", 0), Way("float32", 3), Way("bfloat16", 3), Way("float64", 30)),
    *(Way("float32", 30), Way("float16", 0), Way("float64", 0), Way("bfloat16", 0)),
)
"""For faults that half precision shows too."""

FINE = (Way("float32", 0), Way("float64", 3), Way("float32", 3), Way("float64", 30))


@dataclass(frozen=True)
class Kernel:
    """What a kernel is called with, in the dtype that it calculates in: float64, or float32 for shorter ones.

    Statistics, gamma and beta are of the rank of the view, so that they broadcast.

    Parameters
    ----------
    plan : Plan
        What it should do.
    tensor : ndarray
    parameters : mapping of str to ndarray
        Gamma and beta, those that are given.
    given : Given or None
        Running statistics.
    other : ndarray
        A residual, which the tensor is the sum of, or a gate.
    rng : Generator
    addend : ndarray
        The tensor without the residual, or without the gate before the norm.
    gates : bool
        Whether silu of `other` should multiply the result.
    lengths : tuple of int
        How many positions of each sample count; empty where all do.
    """

    plan: Plan
    tensor: Array
    parameters: Mapping[str, Array]
    given: Given | None
    other: Array
    rng: np.random.Generator
    addend: Array
    gates: bool = False
    lengths: tuple[int, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """The tensor's."""
        return self.tensor.shape

    @functools.cached_property
    def work(self) -> type[np.floating[Any]]:
        """The dtype that it calculates in."""
        return np.float64 if self.tensor.dtype == np.float64 else np.float32

    @functools.cached_property
    def x(self) -> Array:
        """The view: channels in groups stand in two axes."""
        return self.tensor.astype(self.work).reshape(self.plan.grid.view_shape)

    @property
    def axes(self) -> tuple[int, ...]:
        """The reduced axes of the view."""
        return self.plan.grid.view_axes

    @functools.cached_property
    def mask(self) -> Array:
        """True for the values of the view that count."""
        mask = make_length_mask(self.plan, self.lengths) if self.lengths else np.True_
        return np.broadcast_to(mask, self.shape).reshape(self.plan.grid.view_shape)

    @property
    def n(self) -> Any:
        """How many values a statistic is of: those of a group, of its slice, or in each group that count."""
        if self.lengths:
            return self.mask.sum(self.axes, keepdims=True).astype(self.work)
        first, last = self.plan.request.over or (0, self.plan.grid.group_size)
        return last - first

    @property
    def lanes(self) -> int:
        """The next power of two."""
        return int(2 ** math.ceil(math.log2(self.n)))

    @property
    def eps(self) -> float:
        """The one that it should have."""
        return self.plan.spec.eps or 0.0

    def _read(self, name: str, default: float) -> Any:
        if name not in self.parameters:
            return default
        return self.parameters[name].astype(self.work).reshape(self.plan.parameters.view_shape)

    @functools.cached_property
    def gamma(self) -> Any:
        """Gamma, or 1."""
        return self._read("gamma", 1.0)

    @functools.cached_property
    def beta(self) -> Any:
        """Beta, or 0."""
        return self._read("beta", 0.0)

    def average(self, values: Array) -> Array:
        """Return the mean of each group, or of its slice."""
        if self.lengths:
            return np.where(self.mask, values, 0.0).sum(self.axes, keepdims=True, dtype=self.work) / self.n
        over = self.plan.request.over
        return (values if over is None else values[..., slice(*over)]).mean(self.axes, keepdims=True)

    def square_about(self, centre: Any) -> Array:
        """Return the mean square of each group about a centre."""
        return self.average((self.x - centre) ** 2)

    @functools.cached_property
    def batch_mean(self) -> Array:
        """The mean of each group."""
        return self.average(self.x)

    @functools.cached_property
    def batch_square(self) -> Array:
        """The variance of each group."""
        return self.square_about(self.batch_mean)

    @functools.cached_property
    def mean(self) -> Any:
        """What should be subtracted."""
        if self.given is not None:
            return self.given.mean.astype(self.work).reshape(self.batch_mean.shape)
        return self.batch_mean if self.plan.norm.centre is Centre.MEAN else self.work(0.0)

    @functools.cached_property
    def square(self) -> Array:
        """The square of what should divide, less eps."""
        if self.given is not None:
            return self.given.var.astype(self.work).reshape(self.batch_mean.shape)
        return self.square_about(self.mean)

    def finish(
        self,
        mean: Any = None,
        square: Any = None,
        divisor: Any = None,
        gamma: Any = None,
        beta: Any = None,
        x: Array | None = None,
    ) -> Array:
        """Return y of the tensor's shape, with these parts in place of the right ones."""
        mean = self.mean if mean is None else mean
        if divisor is None:
            divisor = np.sqrt((self.square if square is None else square) + self.eps)
        standardized = ((self.x if x is None else x) - mean) / divisor
        y = standardized * (self.gamma if gamma is None else gamma) + (self.beta if beta is None else beta)
        return np.where(self.mask, y, self.x).reshape(self.shape)

    @property
    def divisor(self) -> Array:
        """What should divide."""
        return np.sqrt(self.square + self.eps)

    @property
    def bare(self) -> Array:
        """The values of the view before gamma and beta."""
        return (self.x - self.mean) / self.divisor

    @property
    def y(self) -> Array:
        """The right result, of the tensor's shape; a new array each time."""
        gate = self.other.astype(self.work)
        return self.finish() * gate / (1 + np.exp(-gate)) if self.gates else self.finish()

    def normalize(self, x: Array) -> Array:
        """Return what the norm alone makes of another tensor, with statistics of its own."""
        return replace(self, tensor=x, gates=False).y


def make_kernel(
    layer: Layer, way: Way, scale: float, rng: np.random.Generator, other: str | None = None
) -> Kernel:
    """Return a kernel on data whose mean and spread differ along every axis."""
    type_ = find_type(way.dtype)
    plan = make_plan(layer.ask(), layer.shape, np.dtype(type_))
    x = _draw(layer.shape, plan.grid.axes, way.offset, rng) * scale
    x = addend = x.astype(type_)
    drawn = {
        "gamma": rng.normal(layer.gamma, 0.3, plan.parameters.shape),
        "beta": rng.normal(0.0, 0.5, plan.parameters.shape),
    }
    parameters = {name: drawn[name].astype(type_) for name in layer.names}
    given = _draw_running(plan, x.astype(np.float64), way, rng) if layer.evaluates else None
    beside = rng.normal(0.3, 1.2, layer.shape).astype(type_)
    if other == "residual":
        x = (addend.astype(np.float64) + beside.astype(np.float64)).astype(type_)
    if other == "gate before":
        factor = beside.astype(np.float64) / (1 + np.exp(-beside.astype(np.float64)))
        x = (addend.astype(np.float64) * factor).astype(np.float64 if way.dtype == "float64" else np.float32)
    return Kernel(plan, x, parameters, given, beside, rng, addend, other == "gate", layer.lengths)


def _draw(shape: tuple[int, ...], axes: tuple[int, ...], offset: float, rng: np.random.Generator) -> Array:
    """Return values whose groups have means about an offset, in their own spreads, which are about 1."""
    values, spread = rng.normal(size=shape), np.ones(shape)
    for axis, length in enumerate(shape):
        along = [length if other == axis else 1 for other in range(len(shape))]
        factors, mean = rng.lognormal(0.0, 0.35, along), rng.normal(0.0, 0.5, along)
        values = values * factors + mean if axis in axes else values + mean
        spread = spread if axis in axes else spread * factors
    return spread * (values + offset)


def _draw_running(plan: Plan, x: Array, way: Way, rng: np.random.Generator) -> Given:
    """Return running statistics not far from the batch's own, in the dtype of the parameters."""
    axes, shape = plan.grid.axes, plan.grid.running.stats_shape
    mean = x.mean(axes) + 0.4 * x.std(axes) * rng.normal(size=shape)
    var = x.var(axes) * rng.lognormal(0.0, 0.4, shape)
    kept = np.float64 if way.dtype == "float64" else np.float32
    return Given(*(values.astype(kept).astype(np.float64) for values in (mean, var)))
