"""Spectral normalization, looked for: which axis is that of the rows of its matrix, and how σ was estimated."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import get_eps, is_half
from normcli.engine.run import run
from normcli.errors import UsageError
from normcli.identifying.models.error_bounds import bound_each
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.table import OF_MATRICES
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from normcli.dtypes import Floats


_NEAR = 2.0**-40
"""The relative error of LAPACK's singular values."""

_MOST_BITS = 60.0


_ROUNDINGS = 16.0
"""Of its dtype, that a kernel's σ may be off where it is looked for by iterations."""


_NAMED = 10.0
"""Bits that a start is worth: of some thousand hypotheses it leaves the number of iterations."""


_BY_LUCK = 10.0
"""Bits of σ beyond a careless kernel's precision that are no accident."""


class Steps(NamedTuple):
    """The numbers of power iterations that give y.

    Parameters
    ----------
    start : str
        The vector of the start: `u` or `v`.
    fewest : int
    most : int or None
        None if every larger number gives y too.
    is_largest : bool
        Whether the largest singular value gives y too.
    """

    start: str
    fewest: int
    most: int | None
    is_largest: bool


class FittedMatrix(NamedTuple):
    """A matrix that gives y within its slack: its rows, the exact result, the evidence, what estimates σ."""

    rows: tuple[int, ...]
    exact: Floats
    bits: float
    steps: Steps | None = None


def find_matrices(
    x: Floats, y: Floats, slack: Floats, dtype: np.dtype[Any], start: Start | None = None
) -> Iterator[FittedMatrix]:
    """Yield each axis of rows whose matrix, the whole of x, gives y within its slack.

    That is over its largest singular value, or over what power iterations from a start make of it: all
    numbers of them that a kernel may have made, and the largest singular value where it is as good. Rounding
    leaves an interval for the one factor that makes y of x. A matrix of rank 1 is left to lengths: its singular
    value is one.
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
        exact = _divide(x, axis)
        if np.all(np.abs(y - exact) <= slack):
            yield FittedMatrix((axis,), exact, near.bits)


class _Iterated(NamedTuple):
    """A matrix with rows along an axis of x, its power iterations from a start, and the σ that y shows."""

    x: Floats
    y: Floats
    axis: int
    start: Start

    def find(self, slack: Floats, dtype: np.dtype[Any]) -> FittedMatrix | None:
        """Return all numbers of iterations that a kernel of y's dtype may have made.

        Its σ is off by some roundings, as much as further iterations may change it: a number that gives y
        itself is the one where no kernel's σ lies so near, or only by a rare accident.
        """
        wide = slack + _ROUNDINGS * get_eps(dtype) * np.abs(self.y)
        loose, near = (_bound_factor(self.x, self.y, each) for each in (wide, slack))
        every = None if loose is None else self._find_within(loose, wide)
        exact = None if every is None or near is None else self._find_within(near, slack)
        if exact is None or loose is None or near is None or every is None:
            return every
        if near.bits - loose.bits - math.log2(MOST_TRIED) > _BY_LUCK or not near.hold_any(dtype):
            return exact
        return every._replace(exact=exact.exact)

    def _find_within(self, factors: _Factors, slack: Floats) -> FittedMatrix | None:
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
        return FittedMatrix((self.axis,), (largest or fewest)[1], bits, steps)

    def _fit(self, counts: Iterable[int], slack: Floats) -> Iterator[tuple[int, Floats]]:
        """Yield the numbers of iterations that give y within its slack, with the exact result; 0: of all."""
        for count in counts:
            exact = _divide(self.x, self.axis, self.start, count)
            if np.all(np.abs(self.y - exact) <= slack):
                yield count, exact


def _lay(x: Floats, axis: int) -> Floats:
    return np.moveaxis(x, axis, 0).reshape(x.shape[axis], -1)


def _divide(x: Floats, axis: int, start: Start | None = None, steps: int = 0) -> Floats:
    """Return x over the largest singular value of the matrix with rows along an axis, or over its estimate."""
    request = Request(OF_MATRICES, rows=(axis,), dtype="float64")
    if start is not None and steps:
        u, v = (start.vector if start.name == name else None for name in ("u", "v"))
        request = request._replace(iterations=steps, u=u, v=v)
    return run(make_plan(request, x.shape, x.dtype), x)[0]


class _Factors(NamedTuple):
    """Between which positive numbers a factor lies."""

    low: float
    high: float

    def hold(self, factor: float) -> bool:
        """Whether one of LAPACK's may lie between them."""
        return self.low * (1.0 - _NEAR) <= factor <= self.high * (1.0 + _NEAR)

    def hold_any(self, dtype: np.dtype[Any]) -> bool:
        """Whether a factor or a divisor that a kernel of a dtype may have lies between them."""
        own = np.dtype("float32") if is_half(dtype) else dtype
        ends = (self.low, self.high), (1.0 / self.high, 1.0 / self.low)
        return any(_round_up(low, own) <= high for low, high in ends)

    @property
    def bits(self) -> float:
        """The bits of a factor that they show."""
        return -math.log2(max((self.high - self.low) / self.high, 2.0**-_MOST_BITS))


def _round_up(value: float, dtype: np.dtype[Any]) -> float:
    """Return the least number of a dtype that is no smaller."""
    near = dtype.type(value)
    return float(near if near >= value else np.nextafter(near, dtype.type(np.inf)))


def _bound_factor(x: Floats, y: Floats, slack: Floats) -> _Factors | None:
    """Return between which positive factors the one lies that makes y of x; None if there is none."""
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        return None
    low, high = (float(bound[0]) for bound in bound_each(*(z.reshape(1, -1) for z in (x, y, slack))))
    return _Factors(low, high) if 0.0 < low <= high < math.inf else None


MOST_TRIED = 100
"""Iterations: layers make 1 in a step and 15 at first."""

_CONVERGED = 2.0**-45
"""Estimates that differ by a smaller part are the last that is tried."""


class Start(NamedTuple):
    """A possible start of power iterations: one number for each row (u) or column (v)."""

    name: str
    vector: tuple[float, ...]


def find_start(request: Request) -> Start | None:
    """Return the vector from which a request's power iterations start; None if it gives none.

    Raises
    ------
    UsageError
        If it gives both u and v.
    """
    given = {name: getattr(request, name) for name in ("u", "v") if getattr(request, name) is not None}
    if len(given) > 1:
        raise UsageError("power iterations start from one of u and v; give the one that was kept before them")
    return next((Start(name, vector) for name, vector in given.items()), None)


def iterate(matrix: Floats, start: Start) -> Iterator[tuple[int, float]]:
    """Yield how many iterations were made, and σ in doubles, until it stays as it is."""
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
