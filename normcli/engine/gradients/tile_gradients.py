"""The gradients of one tile: in doubles, or in pairs from exact sums, each value rounded once."""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import is_float
from normcli.engine.gradients.parameter_sums import DoubleSums, ParameterSums
from normcli.engine.gradients.tile_records import Band, ReadTile, Tile, TileValues, choose_shift
from normcli.engine.passes import Passes
from normcli.engine.tiling.blocks import Spread
from normcli.norms.request import Fill
from normcli.norms.rules import Centre
from normcli.numerics.deciding import U, multiply_bounded
from normcli.numerics.gradients.coefficients import find_p
from normcli.numerics.gradients.in_doubles import (
    KnownDoubles,
    add_rows,
    count_roundings,
    find_shares_in_doubles,
    shorten,
    solve_in_doubles,
    suits_doubles,
)
from normcli.numerics.gradients.in_fractions import round_exactly
from normcli.numerics.gradients.rows import GradientRows, find_deviations, multiply_gradient
from normcli.numerics.gradients.sums import GradientSums
from normcli.numerics.gradients.values import (
    KnownGradients,
    differentiate,
    find_shares,
    multiply_known,
    round_known,
)
from normcli.numerics.pairs import pair_multiply
from normcli.numerics.rounding import widen_exactly

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Integers
    from normcli.engine.gradients.coefficients import CoefficientSolver, SolvedGroups
    from normcli.engine.inputs import Inputs
    from normcli.engine.tiling.blocks import Source
    from normcli.engine.tiling.geometry import Slices
    from normcli.numerics.deciding import Bounded
    from normcli.numerics.elements.gate import Gated
    from normcli.numerics.gradients.coefficients import Coefficients
    from normcli.numerics.gradients.in_doubles import DoubleGroups
    from normcli.numerics.workspace import Workspace


MOST_WHOLE = 1 << 16
"""The most values in a group that is read only once."""


class GradientTiles(Passes):
    """A base class that calculates the gradients of one tile at a time.

    Groups lie within tiles; larger ones belong to the current band (`self.band`), whose coefficients are known
    before its tiles are differentiated.
    """

    dy: Source
    solver: CoefficientSolver
    downstream: Gated | None = None  # of Spread: what dx is multiplied with

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        inputs: Inputs = arguments[4]
        grid, parameters = self.plan.grid, self.plan.parameters
        self.inputs, self.p = inputs, find_p(self.plan)
        self.whole = self.whole and self.geometry.count <= MOST_WHOLE
        self.rows_first = self.geometry.kept_first
        self.count = int(np.prod(parameters.view_shape)) if self.plan.norm.parameter_names else 0
        numbers = np.arange(self.count).reshape(parameters.view_shape) if self.count else None
        self.places = None if numbers is None else Spread(numbers, grid.view_shape, self.geometry)
        varies = any(parameters.view_shape[axis] > 1 for axis in grid.view_axes)
        self.by_groups = inputs.given is None and not varies
        self.fill = None if inputs.selection is None else inputs.selection.fill
        self.sums: DoubleSums | None = None  # None where exact ones are needed
        self.exact_sums = ParameterSums(self.count)
        dtypes = map(self.choose_dtype, ("", "gamma", "beta"))
        if self.selection is None and all(suits_doubles(self.plan, self.p, dtype) for dtype in dtypes):
            self.sums = DoubleSums(self.count)
        self.band: Band | None = None  # the one that is worked on, where groups do not lie within tiles

    def choose_dtype(self, name: str) -> np.dtype[Any]:
        """Return the dtype of the derivative with respect to `gamma` or `beta`: the parameter's own dtype.

        It is the dtype of the plan's output if the parameter is not given, or is not of floats.
        """
        given = self.inputs.parameters.get(name)
        if given is not None and is_float(given.dtype):
            return given.dtype
        return np.dtype(self.plan.choose_output_dtype(self.source.dtype))

    # -- in doubles

    def solve_in_doubles(self, read: ReadTile) -> DoubleGroups | None:
        """Return the groups of a tile in doubles; None where exact sums are needed, or x is not in doubles."""
        values, g = read.values, read.dy
        if self.sums is None or values.low is not None:
            return None
        if read.gamma is not None and not self.by_groups:
            g = g * read.gamma
        off: Any = 0.0
        if read.off is not None:
            sizes = read.off if read.gamma is None or self.by_groups else read.off * np.abs(read.gamma)
            off = np.maximum.reduce(sizes, axis=-1, keepdims=True, initial=0.0)
        if self.band is None:
            return solve_in_doubles(self.plan, values.x, g, off)
        shift = self.find_shift(read.numbers, values)
        known = self.band.take(read.numbers).coefficients
        return shorten(known, values.x, None if shift is None else shift[:, None], g, off)

    def add_in_doubles(self, read: ReadTile, groups: DoubleGroups) -> None:
        """Add a tile's contributions to the derivatives with respect to gamma and beta, in doubles."""
        sums = self.sums
        if sums is None or self.places is None or read.places is None:
            return
        unusual = np.flatnonzero(~groups.usual)
        if unusual.size:
            sums.doubt(read.places[unusual])
        if self.by_groups and self.band is None:
            sums.add("gamma", read.places[:, 0], groups.share)
            sums.add("beta", read.places[:, 0], groups.total)
            return
        numbers, shape = self.places.cut(read.place, self.rows_first), read.values.raw.shape
        order = sorted(range(len(shape)), key=lambda axis: numbers.shape[axis] == 1)  # those of one number last

        def add(name: str, value: Floats, error: Floats) -> None:
            laid = (a.reshape(shape).transpose(order).reshape(numbers.size, -1) for a in (value, error))
            sums.add(name, numbers.transpose(order).reshape(-1), KnownDoubles(*map(add_rows, laid)))

        steps, off = count_roundings(read.dy.size), np.zeros(()) if read.off is None else read.off
        add("beta", read.dy, np.abs(read.dy) * (steps * U) + off)
        if not self.by_groups:
            add("gamma", *find_shares_in_doubles(groups, read.dy, steps, off))

    # -- tiles

    def read_values(self, index: Slices, work: Workspace) -> TileValues:
        """Return the values of a tile, one row for each group."""
        raw = np.array(self.source.read(index, self.rows_first, work))
        counted = self.select(raw, index, self.rows_first)
        shape = (len(self.geometry.number_groups(index)), -1)
        x, low = widen_exactly(raw)
        low = None if low is None else low.reshape(shape)
        return TileValues(raw, x.reshape(shape), low, None if counted is None else counted.reshape(shape))

    def read_tile(self, index: Slices, work: Workspace) -> ReadTile:
        """Return a tile with dy (times the gate behind the norm), gamma, and the index of each gamma."""
        order, values = self.rows_first, self.read_values(index, work)
        dy, off = np.array(self.dy.read(index, order, work), np.float64).reshape(values.x.shape), None

        def cut(parameter: Spread) -> NDArray[Any]:
            return np.broadcast_to(parameter.cut(index, order), values.raw.shape).reshape(dy.shape)

        gates = [None if gate is None else gate.map(cut) for gate in (self.gates, self.downstream)]
        if gates[0] is not None:
            dy, off = gates[0].estimate()
        numbers = self.geometry.number_groups(index)
        gamma, places = (None if each is None else cut(each) for each in (self.gamma, self.places))
        return ReadTile(index, numbers, values, dy, gamma, places, off, *gates)

    def prepare(self, read: ReadTile) -> Tile:
        """Return a tile for exact sums, in which values that are not normalized are 0, and so is their dy."""
        _, numbers, values, dy, gamma, places, _, gate, downstream = read
        _, x, low, counted = values
        used = filled = upstream = None
        if counted is not None and self.fill is Fill.NORMALIZE:
            used = counted | ~np.isnan(x)
        elif counted is not None:
            given = dy if gate is None else gate.times
            used, filled = counted, given if self.fill is Fill.PASS else np.zeros_like(given)
        if gate is not None:
            dy, upstream = multiply_gradient(gate)
        shift = self.find_shift(numbers, values)
        deviations = find_deviations(x, low, None if shift is None else shift[:, None])
        rows, by = GradientRows(deviations, dy, gamma, counted, upstream), None
        if self.by_groups:
            by = None if gamma is None else gamma[:, 0]
            rows, places = rows._replace(gamma=None), None if places is None else places[:, :1]
        if used is not None:
            kept = deviations.map(lambda a: np.where(used, a, 0.0))
            rows = rows._replace(deviations=kept).leave_gradients_out(~used)
        return Tile(numbers, rows, filled, by, places, used, downstream)

    def find_shift(self, numbers: Integers, values: TileValues) -> Floats | None:
        """Return the number that is subtracted from each group's values to make them small; None for 0.

        It is about the mean of a group, and changes no result.
        """
        if self.band is not None:
            return None if self.band.shift is None else self.band.shift[self.band.locate(numbers)]
        if self.plan.norm.centre is not Centre.MEAN:
            return None
        return choose_shift(*values.add_up(), values.raw.dtype)

    def differentiate_tile(self, tile: Tile, solved: SolvedGroups, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return dx of a tile in a dtype, each value rounded once; one row for each group."""
        dx, undecided = round_known(self.find_dx(tile, solved), dtype)
        for row in np.flatnonzero(undecided.any(axis=-1)).tolist():
            chosen = np.flatnonzero(undecided[row])
            evaluate = functools.partial(self.find_dx_exactly, tile, solved, row)
            dx[row, chosen] = round_exactly(evaluate, chosen, dtype)
        return dx

    def find_dx(self, tile: Tile, solved: SolvedGroups) -> KnownGradients:
        """Return dx of a tile before it is rounded, one row for each group."""
        rows = self._take_rows(tile)
        gamma = None if tile.gamma is None else _stand_array(tile.gamma)
        found = differentiate(rows, stand(solved.coefficients), gamma, self.p)
        if tile.filled is not None:
            found = found.keep(rows.counted, tile.filled)
        return found if tile.downstream is None else multiply_known(found, tile.downstream)

    def find_dx_exactly(
        self, tile: Tile, solved: SolvedGroups, row: int, columns: Any, bits: int
    ) -> list[Bounded]:
        """Return dx of some values of a row in rationals, each with a bound of its error; None in place of NaN.

        Parameters
        ----------
        tile : Tile
        solved : SolvedGroups
            The coefficients of the tile's groups.
        row : int
            The row in the tile.
        columns : sequence of int
            The indices of the values in the row.
        bits : int
            Bits to which roots, powers and activations are calculated.
        """
        by = Fraction(1) if tile.gamma is None else Fraction(float(tile.gamma[row]))
        values = self._take_rows(tile).take(row, columns)
        exact = solved.recall(row, bits).differentiate(values, by, bits)
        if tile.filled is not None and values.counted is not None:
            others = zip(exact, tile.filled[row, columns].tolist(), values.counted.tolist(), strict=True)
            exact = [one if counts else (Fraction(other), Fraction(0)) for one, other, counts in others]
        if tile.downstream is None:
            return exact
        factors = tile.downstream.map(lambda a: np.asarray(a[row, columns])).list_exactly(bits)
        return [dx and multiply_bounded(dx, factor) for dx, factor in zip(exact, factors, strict=True)]

    def _take_rows(self, tile: Tile) -> GradientRows:
        """Return the rows of a tile; with 0 for x if statistics are given, as dx does not depend on x then."""
        rows = tile.rows
        if self.inputs.given is None:
            return rows
        return rows._replace(deviations=rows.deviations.map(np.zeros_like))

    def add_parameters(self, tile: Tile, solved: SolvedGroups) -> None:
        """Add a tile's contributions to the derivatives with respect to gamma and beta, exactly."""
        if tile.places is None:
            return
        sums = self.exact_sums
        sums.add_gradients(tile.places, tile.rows.dy, tile.rows.upstream)
        if not self.by_groups:
            shares = find_shares(tile.rows, stand(solved.coefficients)).keep(tile.used)
            sums.add_shares(tile.places, shares)
        elif self.band is None:
            sums.add_shares(tile.places[:, 0], share_by_groups(solved.coefficients))

    def solve(self, tile: Tile) -> SolvedGroups:
        """Return the coefficients of a tile's groups."""
        if self.band is not None:
            return self.band.take(tile.numbers)
        sums = GradientSums(len(tile.numbers), self.p)
        sums.add(np.arange(len(tile.numbers)), tile.rows)
        return self.solver.solve(sums, tile.numbers)


def _stand_array(values: Floats) -> Floats:
    return values[:, None]


def stand(coefficients: Coefficients) -> Coefficients:
    """Return coefficients with arrays of shape (groups, 1), to be broadcast against rows."""
    return coefficients.map(_stand_array)


def share_by_groups(coefficients: Coefficients) -> KnownGradients:
    """Return Σ dy · x̂ of each group, the derivative with respect to a gamma that the whole group shares.

    The coefficients must be those of g = dy, without gamma.
    """
    plain = coefficients.share.hi * coefficients.inverse.hi
    value = pair_multiply(coefficients.share, coefficients.inverse)
    is_finite = np.isfinite(coefficients.inverse.hi)
    value = value.keep(is_finite, plain)
    error = coefficients.share_error * np.abs(np.where(is_finite, coefficients.inverse.hi, 0.0))
    return KnownGradients(value, error, coefficients.extreme)
