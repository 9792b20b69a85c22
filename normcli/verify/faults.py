"""How gradients are wrong: the faults of backward passes, each as an expression that is tried on the data.

With g = dy · gamma, A = mean(g), w = x − mean and B as in `normcli.numerics.slopes`, dx is (g − A − w · B) / D.
A fault leaves out a term, takes it twice, or sums over other values. Everything is in float64: what tells
faults apart is far larger than its rounding.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.norms.rules import Centre, EpsMode
from normcli.numerics.divisor import find_freedom
from normcli.numerics.slopes import find_p
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.norms.plan import Plan
    from normcli.results.backward import Gradients

_MOST_VALUES = 1 << 22
"""In larger tensors no fault is looked for: some dozen float64 arrays are made of their size."""

_CLEARLY = 8.0
"""A fault explains what is so many times nearer to it than to the exact gradient, and to the others."""

_SAME = 1e-9
"""Expressions that differ by less, as part of either, are the same on the data."""


class Terms(NamedTuple):
    """What gradients are made of, at the view's rank, to be broadcast against each other.

    Parameters
    ----------
    dy, gamma : ndarray
    g : ndarray
        dy · gamma.
    w : ndarray
        x − mean.
    divisor : ndarray
        D.
    slope : ndarray
        w · B / Σ g · w: what the sum is multiplied by.
    size : int
        Values in a group.
    axes : tuple of int
        The reduced axes.
    centres : bool
        Whether a mean is subtracted.
    """

    dy: Floats
    gamma: Floats
    g: Floats
    w: Floats
    divisor: Floats
    slope: Floats
    size: int
    axes: tuple[int, ...]
    centres: bool

    @property
    def excess(self) -> float:
        """What a mean is too large by that is divided by n − 1."""
        return self.size / max(1, self.size - 1)

    def differentiate(
        self,
        a: float = 1.0,
        b: float | Floats = 1.0,
        g: Floats | None = None,
        axes: tuple[int, ...] | None = None,
    ) -> Floats:
        """Return dx with so many of either term, of another g, or of means over other axes."""
        g, axes = self.g if g is None else g, self.axes if axes is None else axes
        share = self.size / math.prod(g.shape[axis] for axis in axes)
        mean = g.mean(axes, keepdims=True) if self.centres else 0.0
        pull = (g * self.w / self.divisor).sum(axes, keepdims=True) * share  # other axes have other divisors
        result: Floats = (g - a * mean - b * self.slope * self.divisor * pull) / self.divisor
        return result


Fault = tuple[str, "Callable[[Terms], Any]"]

_PULL = "the x̂ · mean(dy · gamma · x̂) term"

_DX: tuple[Fault, ...] = (
    (f"{_PULL} is missing", lambda t: t.differentiate(b=0.0)),
    (f"{_PULL} is subtracted twice", lambda t: t.differentiate(b=2.0)),
    (f"{_PULL} is added, not subtracted", lambda t: t.differentiate(b=-1.0)),
    ("the statistics are taken as constants: it is dy · gamma / divisor", lambda t: t.g / t.divisor),
    ("the mean of the x̂ term is divided by n − 1, not n", lambda t: t.differentiate(b=t.excess)),
    ("the mean of the x̂ term is a sum: it is not divided by n", lambda t: t.differentiate(b=t.size)),
    ("it is not divided by the divisor", lambda t: t.differentiate() * t.divisor),
    ("it is divided by the divisor twice", lambda t: t.differentiate() / t.divisor),
    ("it is divided by n besides", lambda t: t.differentiate() / t.size),
)
"""How a dx may be wrong."""

_DX_OF_CENTRE: tuple[Fault, ...] = (
    ("the mean(dy · gamma) term is missing", lambda t: t.differentiate(a=0.0)),
    ("mean(dy · gamma) is subtracted twice", lambda t: t.differentiate(a=2.0)),
    ("mean(dy · gamma) is added, not subtracted", lambda t: t.differentiate(a=-1.0)),
    ("both means are added, not subtracted", lambda t: t.differentiate(a=-1.0, b=-1.0)),
    ("both means are divided by n − 1, not n", lambda t: t.differentiate(a=t.excess, b=t.excess)),
    ("both means are sums: they are not divided by n", lambda t: t.differentiate(a=t.size, b=t.size)),
)
"""How a dx may be wrong where a mean is subtracted: without one, dx has no mean(dy · gamma)."""

_DX_OF_GAMMA: tuple[Fault, ...] = (
    ("gamma is left out", lambda t: t.differentiate(g=t.dy)),
    (
        "gamma multiplies dx at the end, not dy before it is averaged",
        lambda t: t.gamma * t.differentiate(g=t.dy),
    ),
    ("gamma multiplies twice", lambda t: t.differentiate(g=t.g * t.gamma)),
    (f"gamma multiplies {_PULL} once more", lambda t: t.differentiate(b=t.gamma)),
    (
        "gamma is left out of dy itself, though not of what is averaged",
        lambda t: t.differentiate() + (t.dy - t.g) / t.divisor,
    ),
)
"""How a dx may be wrong where there is a gamma."""


def find_fault(exact: Gradients, name: str, actual: NDArray[Any]) -> str | None:
    """Return how somebody's gradient is wrong, in a sentence; None where no one fault explains it.

    Parameters
    ----------
    exact : Gradients
        In float64.
    name : {"dx", "dgamma", "dbeta"}
    actual : ndarray
        Of the shape of the exact one.
    """
    right = exact.field(name)
    if right is None or exact.input.size > _MOST_VALUES:
        return None
    if not actual.any():
        return f"{name}: every value is 0: it is not calculated, or not written."
    wide, all_count = actual.astype(np.float64), exact.inputs.selection is None
    with np.errstate(all="ignore"):
        found = _choose(wide, right, _list_faults(exact, name, right)) if all_count else None
        found = found or _choose(wide, right, _scale(wide, right))
    return None if found is None else f"{name}: {found}."


def _choose(actual: Floats, right: Floats, faults: Iterator[tuple[str, Any]]) -> str | None:
    """Return the words of the fault that is much nearer than what is right, and of one that is the same."""
    size = np.linalg.norm(right)
    off = float(np.linalg.norm(actual - right))
    near: list[tuple[float, str, Floats]] = []
    for words, wrong in faults:
        wrong = np.broadcast_to(wrong, right.shape)
        distance = float(np.linalg.norm(actual - wrong))
        clear = distance * _CLEARLY < min(off, float(np.linalg.norm(wrong)))
        if clear and np.linalg.norm(wrong - right) > _SAME * size:
            near.append((distance, words, wrong))
    if not near:
        return None
    best, _, nearest = min(near, key=lambda entry: entry[0])
    same = [words for _, words, wrong in near if np.linalg.norm(wrong - nearest) <= _SAME * size]
    if sum(distance <= _CLEARLY * best for distance, _, _ in near) > len(same):
        return None
    return ", or on these data the same: ".join(same[:2])


def _scale(actual: Floats, right: Floats) -> Iterator[tuple[str, Any]]:
    """Yield the multiple of what is right that comes nearest, and its words."""
    usable = np.isfinite(actual) & np.isfinite(right)
    factor = float(np.vdot(actual[usable], right[usable]) / np.vdot(right[usable], right[usable]))
    words = f"every value is {factor:.3g} times what it should be"
    yield words, np.where(usable, factor * right, actual)


def _list_faults(exact: Gradients, name: str, right: Floats) -> Iterator[tuple[str, Any]]:
    """Yield the words of each fault, and what it would give."""
    yield "its sign is turned", -right
    if name == "dx":
        terms = make_terms(exact)
        if terms is None:
            return
        shape = right.shape
        own = (_DX_OF_CENTRE if terms.centres else ()), (() if exact.inputs.gamma is None else _DX_OF_GAMMA)
        for words, make in itertools.chain(*own, _DX):
            yield words, make(terms).reshape(shape)
        if exact.inputs.given is not None:
            trained = make_terms(replace(exact, inputs=exact.inputs._replace(given=None)))
            assert trained is not None
            yield (
                "the statistics are those of the batch, as in training",
                trained.differentiate().reshape(shape),
            )
        if exact.plan.grid.split is None:
            names = exact.plan.grid.layout.names
            for axes in _list_axes(len(shape), terms.axes):
                over = "×".join(names[axis] for axis in axes)
                means = f"its means are over {over}" if terms.centres else f"its mean is over {over}"
                yield f"{means}, not over the axes of the norm", terms.differentiate(axes=axes)
                if set(axes) > set(terms.axes):
                    more = math.prod(shape[axis] for axis in axes) / terms.size
                    yield (
                        f"its sums are over {over}, and divided by the number of values in a group",
                        terms.differentiate(a=more, b=more, axes=axes),
                    )
        return
    yield from _list_parameter_faults(exact, name, right)


def _list_axes(rank: int, own: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield every choice of axes but one."""
    for count in range(1, rank + 1):
        yield from (axes for axes in itertools.combinations(range(rank), count) if axes != tuple(sorted(own)))


def _list_parameter_faults(exact: Gradients, name: str, right: Floats) -> Iterator[tuple[str, Any]]:
    """Yield how the derivative by gamma or beta may be wrong."""
    other = "dbeta" if name == "dgamma" else "dgamma"
    exchanged = exact.field(other)
    if exchanged is not None:
        yield f"it is {other}: the two are exchanged", exchanged
    terms = make_terms(exact)
    if terms is None:
        return
    plan = exact.plan
    along = tuple(axis for axis, n in enumerate(plan.parameters.view_shape) if n == 1)
    shares = terms.dy * terms.w / terms.divisor if name == "dgamma" else terms.dy
    number = math.prod(shares.shape[axis] for axis in along)
    yield "it is a mean, not a sum", right / number
    if exact.inputs.gamma is not None:
        yield "gamma multiplies it", right * np.broadcast_to(exact.inputs.gamma, right.shape)
    if name == "dgamma":
        beta = _spread(plan, exact.inputs.beta, 0.0)
        y = terms.w / terms.divisor * terms.gamma + beta
        yield "it is summed with y, not x̂", (terms.dy * y).sum(along).reshape(right.shape)
        yield (
            "it is summed with x, not x̂",
            (terms.dy * _view(exact, exact.input)).sum(along).reshape(right.shape),
        )
        yield "it is summed with x − mean, not divided", (terms.dy * terms.w).sum(along).reshape(right.shape)
    for axis in along:
        length = shares.shape[axis]
        word = plan.grid.layout.names[axis] if plan.grid.split is None else f"axis {axis}"
        others = tuple(other for other in along if other != axis)
        parts = np.moveaxis(shares.sum(others, keepdims=True), axis, 0)
        sums = np.cumsum(parts, axis=0)
        for stop in range(1, length):
            some = f"{word}={stop - 1}" if stop > 1 else ""
            last = length - 1
            yield (
                f"it is summed over {word}=0{f' … {some}' if some else ''} alone",
                sums[stop - 1].reshape(right.shape),
            )
            first = f"{word}={stop}" if stop == last else f"{word}={stop} … {word}={last}"
            yield f"it is summed over {first} alone", (sums[-1] - sums[stop - 1]).reshape(right.shape)


def make_terms(exact: Gradients) -> Terms | None:
    """Return what gradients of variances, mean squares and ℓ2 lengths are made of; None for other norms."""
    plan, given = exact.plan, exact.inputs.given
    if plan.spec.window is not None or find_p(plan) != 2.0:
        return None
    x, dy = (_view(exact, array) for array in (exact.input, exact.dy))
    axes, centres = plan.grid.view_axes, plan.norm.centre is Centre.MEAN
    count = math.prod(x.shape[axis] for axis in axes)
    gamma = _spread(plan, exact.inputs.gamma, 1.0)
    if exact.inputs.gamma is not None:
        gamma = gamma + plan.spec.gamma_offset
    mean = x.mean(axes, keepdims=True) if centres else 0.0
    freedom = find_freedom(plan, count)
    if given is not None:
        mean, var = (_stand(plan, plan.grid.spread_running(known)) for known in given)
    w = x - mean
    if given is None:
        var = (w * w).sum(axes, keepdims=True) / freedom
    root, eps = np.sqrt(var), plan.spec.eps or 0.0
    divisor = {
        EpsMode.INSIDE: np.sqrt(var + eps),
        EpsMode.OUTSIDE: root + eps,
        EpsMode.SQUARE_FLOOR: np.sqrt(np.maximum(var, eps)),
    }.get(plan.spec.eps_mode or EpsMode.FLOOR, np.maximum(root, eps))
    beside = root if plan.spec.eps_mode is EpsMode.OUTSIDE else divisor
    follows = (root >= divisor) | (plan.spec.eps_mode in (EpsMode.INSIDE, EpsMode.OUTSIDE))
    slope = np.where(follows, w / (freedom * divisor * beside), 0.0)
    return Terms(dy, gamma, dy * gamma, w, divisor, slope, count, axes, centres)


def _view(exact: Gradients, array: NDArray[Any]) -> Floats:
    return np.asarray(array, dtype=np.float64).reshape(exact.plan.grid.view_shape)


def _stand(plan: Plan, values: Floats) -> Floats:
    """Return one number for each group, at the view's rank."""
    axes = plan.grid.view_axes
    return values.reshape([1 if axis in axes else n for axis, n in enumerate(plan.grid.view_shape)])


def _spread(plan: Plan, parameter: NDArray[Any] | None, otherwise: float) -> Floats:
    """Return gamma or beta at the view's rank."""
    if parameter is None:
        return np.full((1,) * len(plan.grid.view_shape), otherwise)
    return np.asarray(parameter, dtype=np.float64).reshape(plan.parameters.view_shape)
