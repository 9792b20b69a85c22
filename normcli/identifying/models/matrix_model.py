"""The search for spectral normalization y = x / σ: the axis of the matrix's rows, and the estimate of σ."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import get_eps
from normcli.engine.run import run
from normcli.errors import UsageError
from normcli.identifying.models.error_bounds import bound_each
from normcli.identifying.models.weight import FittedPlan, measure_bits
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.table import OF_MATRICES
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from normcli.dtypes import Floats
    from normcli.norms.plan import Plan


_NEAR = 2.0**-40
"""The relative error of LAPACK's singular values."""

_ROUNDINGS = 16.0
"""The error of a kernel's σ from power iterations, in machine epsilons of y's dtype."""


_NAMED = 10.0
"""The bits of evidence that a given start vector adds; the choice of a number of iterations costs some."""


_BY_LUCK = 10.0
"""If y shows σ to this many bits more than a kernel's errors leave, exact numbers of iterations count."""


class Steps(NamedTuple):
    """The numbers of power iterations whose σ reproduces y.

    Parameters
    ----------
    start : str
        The name of the start vector: `u` or `v`.
    fewest : int
        The smallest number of iterations.
    most : int or None
        The largest number of iterations; None if every larger number reproduces y too.
    is_largest : bool
        Whether the largest singular value itself reproduces y too.
    """

    start: str
    fewest: int
    most: int | None
    is_largest: bool


def find_matrices(
    x: Floats, y: Floats, slack: Floats, dtype: np.dtype[Any], start: Start | None = None
) -> Iterator[FittedPlan]:
    """Yield each way to take x as a matrix with which x / σ is y within its slack.

    σ is the largest singular value, or with a start also its estimate by power iterations. For the largest
    singular value, matrices of rank 1 are left out: it is their ℓ2 length.

    Parameters
    ----------
    x, y, slack : ndarray
        Input, output, and the bound on the error of each y, of one shape.
    dtype : numpy.dtype
        The dtype to which y was rounded.
    start : Start or None
        The vector from which power iterations may have started; None without one.
    """
    near = _bound_factor(x, y, slack)
    of_largest = set()
    for axis in range(0 if start is None else x.ndim):
        assert start is not None
        found = _Iterated(x, y, axis, start).find(slack, dtype)
        if found is not None:
            yield found
            if found.steps is not None and found.steps.is_largest:
                of_largest.add(axis)
    if near is None or (of_largest and x.ndim == 2):  # a matrix and its transpose have one singular value
        return
    length = float(np.linalg.norm(x))
    for axis in sorted(set(range(x.ndim if x.ndim > 2 else 1)) - of_largest):
        sigma = float(np.linalg.norm(_lay(x, axis), 2))
        if not near.hold(1.0 / sigma) or math.isclose(sigma, length, rel_tol=_NEAR):
            continue
        plan = _plan(x, axis)
        exact = run(plan, x)[0]
        if np.all(np.abs(y - exact) <= slack):
            yield FittedPlan(plan, exact, near.bits)


class _Iterated(NamedTuple):
    """The input x as a matrix with rows along an axis, the output y, and the start of power iterations."""

    x: Floats
    y: Floats
    axis: int
    start: Start

    def find(self, slack: Floats, dtype: np.dtype[Any]) -> FittedPlan | None:
        """Return the matrix with the numbers of power iterations that may have led to y; None if none does.

        Two sets of numbers are compared. With the numbers in A, the exact x / σ is y within `slack`; for B, a
        kernel's σ may be off by 16 machine epsilons, so that B has more. A is returned if y shows σ so closely
        that its choice in B is no luck (10 bits more than the choice costs); otherwise B.
        """
        wide = slack + _ROUNDINGS * get_eps(dtype) * np.abs(self.y)
        loose, near = (_bound_factor(self.x, self.y, each) for each in (wide, slack))
        every = None if loose is None else self._find_within(loose, wide)
        exact = None if every is None or near is None else self._find_within(near, slack)
        if exact is None or loose is None or near is None or every is None:
            return every
        if near.bits - loose.bits - math.log2(MOST_TRIED) > _BY_LUCK:
            return exact
        return every._replace(exact=exact.exact)

    def _find_within(self, factors: _Factors, slack: Floats) -> FittedPlan | None:
        """Return the matrix with the numbers of iterations whose 1 / σ is in `factors` and leads to y; or None.

        `slack` bounds the error of each y.
        """
        matrix, last = _lay(self.x, self.axis), 0
        near = []
        for count, sigma in iterate(matrix, self.start):
            last = count
            if sigma and factors.hold(1.0 / sigma):
                near.append(count)
        fewest = next(self._fit(near, slack), None)
        if fewest is None:
            return None
        sigma = float(np.linalg.norm(matrix, 2))
        largest = next(self._fit([0], slack), None) if factors.hold(1.0 / sigma) else None
        most = None if largest else next(self._fit(reversed(near), slack))[0]
        steps = Steps(self.start.name, fewest[0], None if most == last else most, largest is not None)
        bits = factors.bits + _NAMED - math.log2(steps.fewest)
        return FittedPlan(_plan(self.x, self.axis), (largest or fewest)[1], bits, steps)

    def _fit(self, counts: Iterable[int], slack: Floats) -> Iterator[tuple[int, Floats]]:
        """Yield each number of iterations in `counts` that leads to y within `slack`, with its exact result.

        The number 0 stands for the largest singular value.
        """
        for count in counts:
            exact = run(_plan(self.x, self.axis, self.start, count), self.x)[0]
            if np.all(np.abs(self.y - exact) <= slack):
                yield count, exact


def _lay(x: Floats, axis: int) -> Floats:
    return np.moveaxis(x, axis, 0).reshape(x.shape[axis], -1)


def _plan(x: Floats, axis: int, start: Start | None = None, steps: int = 0) -> Plan:
    """Return the plan of x / σ, where σ is the largest singular value of x as a matrix with rows along an axis.

    With a start vector and `steps` above 0, σ is the estimate after this number of power iterations.
    """
    request = Request(OF_MATRICES, rows=(axis,), dtype="float64")
    if start is not None and steps:
        u, v = (start.vector if start.name == name else None for name in ("u", "v"))
        request = request._replace(iterations=steps, u=u, v=v)
    return make_plan(request, x.shape, x.dtype)


class _Factors(NamedTuple):
    """A lower and an upper bound of the positive factor by which y = factor · x, for one tensor.

    The factor is 1 / σ if spectral norm made y: σ is the largest singular value, or an estimate of it.
    """

    low: float
    high: float

    def hold(self, factor: float) -> bool:
        """Whether a factor, with the error of LAPACK's singular values, may lie between the bounds."""
        return self.low * (1.0 - _NEAR) <= factor <= self.high * (1.0 + _NEAR)

    @property
    def bits(self) -> float:
        """The bits to which the bounds show the factor, of their relative width."""
        return float(measure_bits(1.0, (self.high - self.low) / self.high))


def _bound_factor(x: Floats, y: Floats, slack: Floats) -> _Factors | None:
    """Return the bounds of the positive factor with |y − factor · x| ≤ slack; None without such a factor.

    None also if x or y is not finite.
    """
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return None
    low, high = (float(bound[0]) for bound in bound_each(*(z.reshape(1, -1) for z in (x, y, slack))))
    return _Factors(low, high) if 0.0 < low <= high < math.inf else None


MOST_TRIED = 100
"""The most power iterations that are tried: layers make 1 in a step, and 15 at first."""

_CONVERGED = 2.0**-45
"""Iterations stop when the relative change of σ is at most this."""


class Start(NamedTuple):
    """A vector from which power iterations start.

    Parameters
    ----------
    name : str
        `u` for a vector with a number for each row of the matrix, `v` for each column.
    vector : tuple of float
    """

    name: str
    vector: tuple[float, ...]


def find_start(request: Request) -> Start | None:
    """Return the vector from which a request's power iterations start; None if the request has none.

    Raises
    ------
    UsageError
        If the request has both u and v.
    """
    given = {name: getattr(request, name) for name in ("u", "v") if getattr(request, name) is not None}
    if len(given) > 1:
        raise UsageError("power iterations start from one of u and v; give the one that was kept before them")
    return next((Start(name, vector) for name, vector in given.items()), None)


def iterate(matrix: Floats, start: Start) -> Iterator[tuple[int, float]]:
    """Yield each number of power iterations and σ after them, in float64, until σ no longer changes.

    At most 100 are made. Nothing if the start vector u (or v) has not a number for each row (or column).
    """
    turns = (matrix.T, matrix) if start.name == "u" else (matrix, matrix.T)
    vector, last = np.array(start.vector), 0.0
    if len(vector) != turns[0].shape[1]:
        return
    for steps in range(1, MOST_TRIED + 1):
        for turned in turns:
            vector = turned @ (vector / np.linalg.norm(vector))
        sigma = float(np.linalg.norm(vector))
        yield steps, sigma
        if not abs(sigma - last) > _CONVERGED * sigma:
            return
        last = sigma
