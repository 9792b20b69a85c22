"""The inputs of a calculation other than the tensor: gamma, beta, known statistics, the values that count."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import is_short_float
from normcli.engine.tiling.blocks import open_full
from normcli.norms.request import Fill
from normcli.numerics.elements.in_pairs import round_to_odd
from normcli.numerics.rounding import store, widen_exactly
from normcli.tensors.pieces import iterate_pieces
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Selected
    from normcli.engine.tiling.geometry import Geometry, Slices
    from normcli.norms.plan import Plan
    from normcli.numerics.elements.gate import Gated
    from normcli.numerics.statistics.divisor import Solution
    from normcli.numerics.statistics.solution import Given, Measured

    Places = tuple[NDArray[np.intp], ...]

COUNT = "count"
"""The key, in a dict of statistics, of the number of values of each group that count."""


class Selection(NamedTuple):
    """A selection of a tensor's values: those that count towards statistics.

    Parameters
    ----------
    mask : ndarray of bool or None
        True where a value counts, of the tensor's rank (`Grid.fit_mask`); None if there is no mask.
    omits_nan : bool
        Whether NaN does not count.
    fill : Fill
        The numbers that are written as results of values that do not count.
    """

    mask: NDArray[np.bool_] | None = None
    omits_nan: bool = False
    fill: Fill = Fill.PASS

    def select(self, values: NDArray[Any], index: Sequence[NDArray[np.intp]]) -> Selected:
        """Return an array that is True where one of a tensor's values, at some indices, counts.

        Parameters
        ----------
        values : ndarray
            The tensor.
        index : sequence of integer arrays
            Indices along each axis, which broadcast against each other.
        """
        places = tuple(index)
        here = np.asarray(values[places])
        selected = np.ones(here.shape, np.bool_)
        if self.mask is not None:
            selected &= np.broadcast_to(self.mask, values.shape, subok=True)[places]
        if self.omits_nan:
            selected &= ~np.isnan(here)
        return selected

    def count(self, values: NDArray[Any]) -> int:
        """Return the number of values of a tensor that count."""
        if not self.omits_nan:
            if self.mask is None or not self.mask.size:
                return values.size
            return int(np.count_nonzero(self.mask)) * (values.size // self.mask.size)
        mask = np.broadcast_to(True if self.mask is None else self.mask, values.shape, subok=True)
        pieces = zip(iterate_pieces(values), iterate_pieces(mask), strict=True)
        return sum(int(np.count_nonzero(part & ~np.isnan(piece))) for piece, part in pieces)

    def find_reported(self, values: NDArray[Any], places: Places) -> Selected:
        """Return True for results that are not finite and call for a warning.

        A result calls for none if its input does not count and that explains the result: NaN was written for
        the input, or the input is not finite itself.

        Parameters
        ----------
        values : ndarray
            The input.
        places : tuple of integer arrays
            The index of the results that are not finite, one array for each axis.

        Returns
        -------
        ndarray of bool
            An array of the shape of each of `places`.
        """
        excused = ~self.select(values, places)
        if self.fill is not Fill.NAN:
            excused &= ~np.isfinite(values[places])
        return ~excused


class Inputs(NamedTuple):
    """The inputs of a calculation in addition to the tensor, in the shapes of its plan.

    Parameters
    ----------
    gamma, beta : ndarray or None
        Scale and shift, of `ParameterShapes.shape`; None for 1 and 0.
    given : Given or None
        Known mean and variance, one for each group of `Grid.running`, to normalize with instead of the groups'
        own.
    selection : Selection or None
        Which values count; None if all do.
    measured : Moments, Lengths, Extremes, Quantiles, Solution or None
        Measurements of the groups that were made elsewhere (of many files), or their solution, to normalize
        with instead of the groups' own statistics.
    gate : Gated or None
        A gate, of the tensor's rank, that multiplies the result before it is rounded.
    clip : tuple of float or None
        The lower and the upper bound that the rounded result is clipped to.
    gated_input : Gated or None
        The gate that was multiplied into the tensor before the norm, where the product was rounded; its
        `times` is the tensor before that product.
    """

    gamma: NDArray[Any] | None = None
    beta: NDArray[Any] | None = None
    given: Given | None = None
    selection: Selection | None = None
    measured: Measured | Solution | None = None
    gate: Gated | None = None
    clip: tuple[float, float] | None = None
    gated_input: Gated | None = None

    @property
    def parameters(self) -> dict[str, NDArray[Any]]:
        """Gamma and beta by name; one that is None is left out."""
        both = {"gamma": self.gamma, "beta": self.beta}
        return {name: array for name, array in both.items() if array is not None}

    @property
    def steps(self) -> tuple[str, ...]:
        """The names of the inputs that act on a norm's result and are given: gamma, beta, gate, clip."""
        around = {"gate": self.gate, "clip": self.clip}
        return (*self.parameters, *(name for name, given in around.items() if given is not None))

    @property
    def scales(self) -> bool:
        """Whether gamma, beta, a gate or bounds (`clip`) are given."""
        return bool(self.steps)


NO_INPUTS = Inputs()


class TileSelection:
    """A `Selection` that can be applied to single tiles.

    Parameters
    ----------
    selection : Selection
    plan : Plan
    geometry : Geometry
        The geometry of the plan's view.
    """

    def __init__(self, selection: Selection, plan: Plan, geometry: Geometry) -> None:
        self.omits_nan, self._fill = selection.omits_nan, selection.fill  # as in `Selection`
        self._mask = None if selection.mask is None else open_full(plan, geometry, selection.mask)

    @property
    def hides(self) -> bool:
        """Whether results of values that do not count are overwritten, by the input, 0 or NaN."""
        return self._fill is not Fill.NORMALIZE

    def select(self, x: NDArray[Any], tile: Slices, order: tuple[int, ...]) -> Selected:
        """Return an array, of the shape of `x`, that is True where a value counts.

        Parameters
        ----------
        x : ndarray
            The values of a tile, transposed so that its runs (axes that are walked over as one) are in `order`.
        tile : slices
            The part of the tensor that the tile is.
        order : tuple of int
            The numbers of the geometry's runs.
        """
        if self._mask is None:
            return np.asarray(~np.isnan(x))
        selected = np.broadcast_to(self._mask.cut(tile, order), x.shape)
        return np.asarray(selected & ~np.isnan(x)) if self.omits_nan else selected

    def fill(self, out: NDArray[Any], raw: NDArray[Any], selected: Selected) -> None:
        """Write to `out`, where a value does not count, the input, 0 or NaN, as the selection's `fill` says.

        Nothing is written if the selection normalizes such values like the others. All arrays have one shape.

        Parameters
        ----------
        out : ndarray
            The results.
        raw : ndarray
            The input.
        selected : ndarray of bool
            True where a value counts.
        """
        if not self.hides or selected.all():
            return
        rest = ~selected
        if self._fill is not Fill.PASS:
            kept = np.array(0.0 if self._fill is Fill.ZERO else np.nan, out.dtype)
        elif raw.dtype == out.dtype:
            kept = raw
        else:
            kept = np.empty(raw.shape, out.dtype)
            high, low = widen_exactly(zero_unselected(raw, rest))
            store(kept, high if low is None or not is_short_float(out.dtype) else round_to_odd(high, low))
        bits = _view_bits(out)
        bits += (_view_bits(kept) - bits) * rest  # as `copyto`, which looks at each value

    def fill_gradients(self, out: NDArray[Any], dy: Floats, selected: Selected) -> None:
        """Write dx where a value does not count: dy if the input was passed on, else 0."""
        others = np.empty(out.shape, out.dtype)
        store(others, dy if self._fill is Fill.PASS else np.zeros_like(dy))
        np.copyto(out, others, where=~selected)


def zero_unselected(x: NDArray[Any], selected: Selected | None) -> NDArray[Any]:
    """Return values with 0 in place of those that do not count, so that they add nothing to a sum.

    If `selected` is None, all count, and `x` itself is returned.
    """
    if selected is None:
        return x
    bits: NDArray[Any] = np.multiply(_view_bits(x), selected)  # as `where`, which looks at each value
    return bits.view(x.dtype)


def _view_bits(values: NDArray[Any]) -> NDArray[Any]:
    """Return the bits of numbers as integers, which wrap around."""
    return values.view(f"i{values.itemsize}")
