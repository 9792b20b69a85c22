"""The derivative with respect to a gate that is broadcast: for each of its numbers, a sum over many values."""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine.gradients.coefficients import CoefficientSolver
from normcli.engine.gradients.parameter_sums import ParameterSums
from normcli.engine.gradients.passes import GroupBackwardPasses
from normcli.engine.gradients.tile_gradients import stand
from normcli.engine.tiling.blocks import open_full
from normcli.numerics.deciding import multiply_bounded
from normcli.numerics.elements.activation import Activation
from normcli.numerics.elements.gate import Gated
from normcli.numerics.gradients.values import KnownGradients, find_shares, multiply_known

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.engine.gradients.coefficients import SolvedGroups
    from normcli.engine.gradients.tile_records import ReadTile, Tile
    from normcli.engine.tiling.blocks import Source
    from normcli.numerics.deciding import Bounded


class GateSumPasses(GroupBackwardPasses):
    """The passes that add up the derivative with respect to a gate z that is broadcast over many values.

    For a gate behind the norm, a value contributes dy · act'(z) · (gamma · x̂ + beta). For a gate before the
    norm, it contributes the derivative with respect to the norm's input x · act(z), times x · act'(z); this
    last factor is `downstream`. The sums take the place of gamma's in the base class, which are not needed
    here.
    """

    def add_up(self, gradients: Source, values: NDArray[Any], slope: Gated) -> NDArray[Any]:
        """Return the derivative with respect to the gate, in the shape of `slope.values`.

        Its dtype is that of the plan's output. Whether the gate multiplies the norm's result or its input
        follows from the inputs with which these passes were made: in the first case their `gate` is `slope`, in
        the second None.

        Parameters
        ----------
        gradients : Source
            The source of dy.
        values : ndarray
            The norm's input.
        slope : Gated
            The gate z, of the tensor's rank, with `is_slope` set. Its `times` is dy for a gate behind the norm;
            for one before it, the tensor that the gate multiplied.
        """
        plan, shape = self.plan, slope.values.shape
        if self.gates is None:
            self.downstream = slope.map(functools.partial(open_full, plan, self.geometry))
        self.count, self.by_groups = slope.values.size, False
        self.places = open_full(plan, self.geometry, np.arange(self.count).reshape(shape))
        self.sums, self.exact_sums = None, ParameterSums(self.count)
        self.dy = gradients
        with np.errstate(all="ignore"):
            self.solver = CoefficientSolver(plan, self.inputs, values, self.walk.effort, varies=True)
            self.work_on_all(self.add_tile)
            exactly = functools.partial(self.add_exactly, "gamma")
            return self.round_parameters("gamma", exactly).reshape(shape)

    def choose_dtype(self, name: str) -> np.dtype[Any]:
        """Return the dtype of the derivative with respect to the gate: the dtype of the plan's output."""
        return np.dtype(self.plan.choose_output_dtype(self.source.dtype))

    def prepare(self, read: ReadTile) -> Tile:
        """Return a tile for exact sums, with beta for a gate behind the norm.

        For a gate before the norm, `used` of the tile is None: values that do not count contribute their dx,
        too.
        """
        tile, raw = super().prepare(read), read.values.raw
        if self.downstream is not None:
            return tile._replace(used=None)
        if self.beta is None:
            return tile
        beta = np.broadcast_to(self.beta.cut(read.place, self.rows_first), raw.shape)
        return tile._replace(beta=beta.reshape(read.dy.shape))

    def add_parameters(self, tile: Tile, solved: SolvedGroups) -> None:
        """Add the contributions of a tile's values to the derivative."""
        assert tile.places is not None
        for found in self._list_terms(tile, solved):
            self.exact_sums.add_shares(tile.places, found.keep(tile.used))

    def _list_terms(self, tile: Tile, solved: SolvedGroups) -> list[KnownGradients]:
        if tile.downstream is not None:
            return [self.find_dx(tile, solved)]
        rows, shares = tile.rows, find_shares(tile.rows, stand(solved.coefficients))
        if rows.gamma is not None:
            shares = multiply_known(shares, Gated(rows.gamma, Activation.NONE))
        if tile.beta is None:
            return [shares]
        plain = rows._replace(gamma=None)
        known = KnownGradients(plain.gated, plain.error, np.zeros(rows.dy.shape, np.bool_) | plain.beyond)
        return [shares, multiply_known(known, Gated(tile.beta, Activation.NONE))]

    def list_shares(
        self, name: str, tile: Tile, solved: SolvedGroups, row: int, columns: Any, bits: int
    ) -> list[Bounded]:
        """Return the contributions of some values of one row to the derivative with respect to the gate.

        Each contribution has a bound of its error; None stands for NaN. `name` is not used; `row` and `columns`
        are indices in the tile, and activations and roots are calculated to `bits` bits.
        """
        if tile.downstream is not None:
            return self.find_dx_exactly(tile, solved, row, columns, bits)
        values, known = tile.rows.take(row, columns), solved.recall(row, bits)
        gamma = np.ones(len(columns)) if values.gamma is None else values.gamma
        beta = np.zeros(len(columns)) if tile.beta is None else tile.beta[row, columns]
        found: list[Bounded] = []
        exact = values._replace(gamma=None).take_exactly(bits)
        shares = known.find_shares(values, bits)
        for share, one, *by in zip(shares, exact, gamma.tolist(), beta.tolist(), strict=True):
            if share is None:
                found.append(None)
                continue
            scale, shift = ((Fraction(factor), Fraction(0)) for factor in by)
            parts = multiply_bounded(share, scale), multiply_bounded((one.gradient, one.error), shift)
            found.append((parts[0][0] + parts[1][0], parts[0][1] + parts[1][1]))
        return found
