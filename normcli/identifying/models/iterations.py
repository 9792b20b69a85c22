"""Power iterations that may have estimated a singular value: what they start from, and what each gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from normcli.errors import UsageError
from normcli.norms.spec import Iteration
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from normcli.dtypes import Floats
    from normcli.norms.request import Request

MOST_TRIED = 100
"""Iterations: layers make 1 in a step and 15 at first."""

_CONVERGED = 2.0**-45
"""Estimates that differ by a smaller part are the last that is tried."""


class Start(NamedTuple):
    """What power iterations may have started from: one number for each row (u), or column (v)."""

    name: str
    vector: tuple[float, ...]

    def make_iteration(self, steps: int) -> Iteration:
        """Return so many of them."""
        return Iteration(steps, **({"u": None, "v": None} | {self.name: self.vector}))


def find_start(request: Request) -> Start | None:
    """Return what a request's power iterations start from; None where it has none.

    Raises
    ------
    UsageError
        If it has two.
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
