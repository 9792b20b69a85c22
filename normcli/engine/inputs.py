"""What a calculation is given beside the tensor: gamma, beta, known statistics, and which values count."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.engine.blocks import Spread
from normcli.norms.request import Fill
from normcli.numerics.rounding import store
from normcli.tensors.pieces import iterate_pieces

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from normcli.engine.geometry import Geometry, Slices
    from normcli.norms.plan import Plan
    from normcli.numerics.solution import Given

    Marks = NDArray[np.bool_]
    Places = tuple[NDArray[np.intp], ...]

COUNT = "count"
"""What is told of each group beside its statistics: how many of its values count."""


class Selection(NamedTuple):
    """Which values of a tensor count.

    Parameters
    ----------
    mask : ndarray of bool or None
        True where one counts, as `Plan.fit_mask` returns it; None if it does not matter where.
    omits_nan : bool
        Whether NaN does not count.
    fill : Fill
    """

    mask: NDArray[np.bool_] | None = None
    omits_nan: bool = False
    fill: Fill = Fill.PASS

    def mark(self, values: NDArray[Any], index: Sequence[NDArray[np.intp]]) -> Marks:
        """Return whether the values of a tensor at some positions count.

        Parameters
        ----------
        values : ndarray
            The tensor.
        index : sequence of integer arrays
            Positions along each axis, which broadcast against each other.
        """
        places = tuple(index)
        here = np.asarray(values[places])
        marks = np.ones(here.shape, np.bool_)
        if self.mask is not None:
            marks &= np.broadcast_to(self.mask, values.shape)[places]
        if self.omits_nan:
            marks &= ~np.isnan(here)
        return marks

    def count(self, values: NDArray[Any]) -> int:
        """Return how many values of a tensor count."""
        if not self.omits_nan:
            if self.mask is None or not self.mask.size:
                return values.size
            return int(np.count_nonzero(self.mask)) * (values.size // self.mask.size)
        marks = np.broadcast_to(True if self.mask is None else self.mask, values.shape)
        pieces = zip(iterate_pieces(values), iterate_pieces(marks), strict=True)
        return sum(int(np.count_nonzero(here & ~np.isnan(piece))) for piece, here in pieces)

    def find_spoilt(self, values: NDArray[Any], places: Places) -> Marks:
        """Return where a value that came out not finite is worth a word: not where that was asked for.

        Parameters
        ----------
        values : ndarray
            The tensor that went in.
        places : tuple of integer arrays
            Where what came out is not finite.
        """
        excused = ~self.mark(values, places)
        if self.fill is not Fill.NAN:
            excused &= ~np.isfinite(values[places])
        return ~excused


class Inputs(NamedTuple):
    """What a calculation is given beside the tensor, of the shapes that its plan has for it.

    Parameters
    ----------
    gamma, beta : ndarray or None
        Of `ParameterShapes.shape`.
    given : Given or None
        Known statistics, of `Grid.running_shape`, to normalize with instead of the groups' own.
    selection : Selection or None
        Which values count; None if all do.
    """

    gamma: NDArray[Any] | None = None
    beta: NDArray[Any] | None = None
    given: Given | None = None
    selection: Selection | None = None


NO_INPUTS = Inputs()


class Counting:
    """A selection, tile by tile."""

    def __init__(self, selection: Selection, plan: Plan, geometry: Geometry) -> None:
        self._selection = selection
        mask = None if selection.mask is None else plan.grid.view_mask(selection.mask)
        self._mask = None if mask is None else Spread(mask, plan.grid.view_shape, geometry)

    @property
    def omits_nan(self) -> bool:
        """Whether it takes the values to say which count."""
        return self._selection.omits_nan

    def mark(self, x: NDArray[Any], tile: Slices, order: tuple[int, ...]) -> Marks:
        """Return which values of a tile count, of its shape; its runs stand in an order."""
        if self._mask is None:
            return np.asarray(~np.isnan(x))
        marks = np.broadcast_to(self._mask.cut(tile, order), x.shape)
        return np.asarray(marks & ~np.isnan(x)) if self._selection.omits_nan else marks

    def fill(self, out: NDArray[Any], raw: NDArray[Any], marks: Marks) -> None:
        """Write what becomes of the values that do not count; all of one shape."""
        fill = self._selection.fill
        if fill is Fill.NORMALIZE or marks.all():
            return
        rest = ~marks
        if fill is Fill.PASS:
            kept = np.empty(raw.shape, out.dtype)
            store(kept, np.where(rest, raw, 0).astype(np.float64))
            np.copyto(out, kept, where=rest)
        else:
            np.copyto(out, out.dtype.type(0.0 if fill is Fill.ZERO else np.nan), where=rest)


def leave_counting(x: NDArray[Any], marks: Marks | None) -> NDArray[Any]:
    """Return values with 0 where they do not count: it adds nothing to a sum, whatever the value was."""
    return x if marks is None else np.where(marks, x, x.dtype.type(0))
