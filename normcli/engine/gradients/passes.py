"""The backward pass over a tensor and the gradient of its normalized values, tile by tile.

Groups that lie within a tile are read once. Larger ones are taken in bands, so that memory does not grow with
their number: of a band's groups a first walk adds up the means, a second one the exact sums, and a third one
writes dx. The sums of every thread are exact, so that they add up to the same in any order.
"""

from __future__ import annotations

import functools
import threading
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.engine.gradients.coefficients import CoefficientSolver
from normcli.engine.gradients.parameter_sums import ParameterSums
from normcli.engine.gradients.tile_gradients import GradientTiles, share_by_groups
from normcli.engine.gradients.tile_records import Band, choose_shift, keep_small
from normcli.norms.rules import Centre
from normcli.numerics.gradients.in_doubles import KnownDoubles, differentiate_in_doubles
from normcli.numerics.gradients.in_fractions import round_exactly
from normcli.numerics.gradients.rows import multiply_gradient
from normcli.numerics.gradients.sums import GradientSums

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Integers, Selected
    from normcli.engine.gradients.coefficients import SolvedGroups
    from normcli.engine.gradients.tile_records import Tile
    from normcli.engine.tiling.blocks import Source
    from normcli.engine.tiling.geometry import Slices
    from normcli.numerics.deciding import Bounded
    from normcli.numerics.workspace import Workspace

MOST_IN_TILE = 1 << 14
"""The most values in a tile: twenty to forty float64 arrays of its size are made."""

MOST_GROUPS = 1 << 12
"""The most groups in a band: some fifty float64 arrays of that many numbers are made."""


class GroupBackwardPasses(GradientTiles):
    """The backward passes of a norm of groups: they write dx, and add up the gradients of gamma and beta."""

    def differentiate(self, gradients: Source, values: NDArray[Any]) -> None:
        """Write dx of every value, and add up the derivatives with respect to gamma and beta.

        Parameters
        ----------
        gradients : Source
            The source of dy.
        values : ndarray
            The tensor.
        """
        with np.errstate(all="ignore"):
            self.dy, varies = gradients, not self.by_groups
            self.solver = CoefficientSolver(self.plan, self.inputs, values, self.walk.effort, varies=varies)
            self.work_on_all(self._work_on)

    def work_on_all(self, work_on: Callable[[Slices, Workspace], None]) -> None:
        """Call `work_on` with the index of each tile and a workspace, in threads.

        Tiles are walked over once or, if groups are larger than tiles, band by band: a band is a number of such
        groups. If each group has one gamma, Σ dy · x̂ of each band's groups is also added to the derivative
        with respect to their gammas.
        """
        for band in self._open_bands():
            if band is not None and self.by_groups and self.count:
                shares = share_by_groups(band.take(band.numbers).coefficients)
                self.exact_sums.add_shares(self._locate_groups(band), shares)
            self._walk(work_on)

    def _walk(self, work_on: Callable[[Slices, Workspace], None]) -> None:
        """Work on the tiles of the current band, or on all tiles if groups lie within them."""
        within = None if self.band is None else self.band.within
        self.walk.each(work_on, whole=self.band is None, most=MOST_IN_TILE, within=within)

    def _work_on(self, index: Slices, work: Workspace) -> None:
        """Write dx of a tile, and add what it contributes to the derivatives with respect to gamma and beta."""
        assert self.sink is not None
        place, read = self.sink.open(index, work), self.read_tile(index, work)
        groups = self.solve_in_doubles(read)
        if groups is None:
            tile = self.prepare(read)
            solved = self.solve(tile)
            dx = self.differentiate_tile(tile, solved, place.dtype)
            self.add_parameters(tile, solved)
        else:
            gamma = read.gamma[:, :1] if self.by_groups and read.gamma is not None else None
            gate = None if read.downstream is None else KnownDoubles(*read.downstream.estimate())
            dx, undecided = differentiate_in_doubles(groups, gamma, place.dtype, gate)
            rows = np.flatnonzero(undecided.any(axis=-1))
            if rows.size:
                tile = self.prepare(read.take(rows))
                dx[rows] = self.differentiate_tile(tile, self.solve(tile), place.dtype)
            self.add_in_doubles(read, groups)
        out = place.transpose(self.rows_first)
        out[...] = dx.reshape(out.shape)
        self.sink.put(index, place, work)

    # -- what groups are differentiated with

    def _open_bands(self) -> Iterator[Band | None]:
        """Yield each band (some groups larger than tiles) in turn, with its coefficients known.

        If groups lie within tiles, None is yielded, once.
        """
        if self.whole and self.inputs.given is None:
            self.walk.expect(1)
            yield None
            return
        self.walk.expect(3 if self.inputs.given is None else 1)
        for within in self.geometry.tiles(whole=True, block=MOST_GROUPS * self.geometry.count):
            if self.band is None or self.band.within != within:
                self._solve_band(Band(within, self.geometry.number_groups(within)))
            yield self.band

    def _solve_band(self, band: Band) -> None:
        """Make a band (groups larger than tiles) the current one, `self.band`, and find its coefficients."""
        self.band = band
        if self.inputs.given is not None:
            mean, var = (
                self.plan.grid.spread_running(known).reshape(-1)[band.numbers] for known in self.inputs.given
            )
            shift = keep_small(mean)
            self.band = band._replace(shift=shift, solved=self.solver.solve_given(var, mean - shift))
            return
        if self.plan.norm.centre is Centre.MEAN:
            self.band = band._replace(shift=self._find_means(band))
        solved = self.solver.solve(self._add_sums(band), band.numbers)
        self.band = self.band._replace(solved=solved)

    def _find_means(self, band: Band) -> Floats:
        """Return a number near the mean of each group of a band, to subtract from its values."""
        totals, counts = np.zeros((2, len(band.numbers)))

        def add(index: Slices, work: Workspace) -> None:
            total, count = self.read_values(index, work).add_up()
            places = band.locate(self.geometry.number_groups(index))
            with self._lock:
                totals[places] += total
                counts[places] += count

        self._walk(add)
        return choose_shift(totals, counts, self.source.dtype)

    def _add_sums(self, band: Band) -> GradientSums:
        """Return the exact sums of the groups of a band, which are larger than tiles."""
        every: dict[int, GradientSums] = {}

        def add(index: Slices, work: Workspace) -> None:
            tile = self.prepare(self.read_tile(index, work))
            sums = every.setdefault(threading.get_ident(), GradientSums(len(band.numbers), self.p))
            sums.add(band.locate(tile.numbers), tile.rows)

        self._walk(add)
        first, *others = every.values()
        for other in others:
            first.merge(other)
        return first

    # -- gamma and beta

    def find_parameters(self) -> tuple[NDArray[Any] | None, NDArray[Any] | None]:
        """Return the derivatives with respect to gamma (Σ dy · x̂) and beta (Σ dy), in their shape.

        The sums are over the values that one gamma or beta applies to. None for a parameter that the norm
        lacks.
        """
        if not self.plan.norm.parameter_names:
            return None, None
        with np.errstate(all="ignore"):
            scales = self.round_parameters("gamma", functools.partial(self.add_exactly, "gamma"))
            plainly = self._take_exactly
            exactly = plainly if self.gates is None else functools.partial(self.add_exactly, "beta")
            shifts = self.round_parameters("beta", exactly) if self.plan.norm.takes_beta else None
        shape = self.plan.parameters.shape
        return scales.reshape(shape), None if shifts is None else shifts.reshape(shape)

    def round_parameters(
        self, name: str, add_exactly: Callable[[list[int], int], list[Bounded]]
    ) -> NDArray[Any]:
        """Return the derivatives with respect to `gamma` or `beta` as a flat array, each rounded once.

        `add_exactly` takes the indices of those whose rounding is not decided, and a number of bits; it returns
        each in rationals with a bound of its error, or None for NaN.
        """
        dtype = self.choose_dtype(name)
        known_in_pairs = name == "gamma" and self.by_groups and self.band is not None
        doubles = None if known_in_pairs else self.sums
        found, undecided = (doubles or self.exact_sums).round(name, dtype)
        if doubles is not None and undecided.any():
            if name == "gamma":
                self.sums, self.exact_sums = None, ParameterSums(self.count)
                self.work_on_all(self.add_tile)
                found, undecided = self.exact_sums.round(name, dtype)
            else:  # sums of short floats often lie in the middle between two
                self._add_betas(undecided)
                exact, left = self.exact_sums.round(name, dtype)
                found, undecided = np.where(undecided, exact, found), undecided & left
        chosen = np.flatnonzero(undecided)
        if chosen.size:
            found[chosen] = round_exactly(add_exactly, chosen, found.dtype)
        return found

    def _add_betas(self, wanted: Selected) -> None:
        """Add up dy exactly for the betas whose entry in `wanted` is True, over the values that use them."""
        assert self.places is not None
        places = self.places

        def add(index: Slices, work: Workspace) -> None:
            dy = self.dy.read(index, self.rows_first, work)
            numbers = np.broadcast_to(places.cut(index, self.rows_first), dy.shape)
            chosen = wanted[numbers]
            if not chosen.any():
                return
            if self.gates is None:
                self.exact_sums.add_gradients(numbers[chosen], dy[chosen].astype(np.float64))
            else:
                gate = self.gates.map(
                    lambda a: np.broadcast_to(a.cut(index, self.rows_first), dy.shape)[chosen]
                )
                self.exact_sums.add_gradients(numbers[chosen], *multiply_gradient(gate))

        self.walk.expect(1)
        self.walk.each(add, whole=self.band is None, most=MOST_IN_TILE)

    def add_tile(self, index: Slices, work: Workspace) -> None:
        """Add a tile's contributions to the derivatives with respect to gamma and beta, exactly."""
        tile = self.prepare(self.read_tile(index, work))
        self.add_parameters(tile, self.solve(tile))

    def _take_exactly(self, chosen: list[int], bits: int) -> list[Bounded]:
        """Return the derivatives with respect to some betas, from their exact sums; `bits` is not used."""
        return [(self.exact_sums.beta.recall(place), Fraction(0)) for place in chosen]

    def _locate_groups(self, band: Band) -> Integers:
        """Return the index of the gamma of each group of a band."""
        grid, shape = self.plan.grid, self.plan.parameters.view_shape
        lengths = [1 if axis in grid.view_axes else n for axis, n in enumerate(grid.view_shape)]
        return np.broadcast_to(np.arange(self.count).reshape(shape), lengths).reshape(-1)[band.numbers]

    def add_exactly(self, name: str, chosen: list[int], bits: int) -> list[Bounded]:
        """Return the derivatives with respect to some gammas or betas, calculated in rationals.

        Each comes with a bound of its error; None in place of NaN.
        """
        by_groups = self.by_groups and name == "gamma"
        totals: dict[int, Bounded] = dict.fromkeys(chosen, (Fraction(0), Fraction(0)))

        def add(number: int, share: Bounded) -> None:
            total = totals[number]
            totals[number] = None
            if total is not None and share is not None:
                totals[number] = total[0] + share[0], total[1] + share[1]

        def add_tile(index: Slices, work: Workspace) -> None:
            tile = self.prepare(self.read_tile(index, work))
            assert tile.places is not None
            solved = self.solve(tile)
            places = tile.places if by_groups else np.broadcast_to(tile.places, tile.rows.dy.shape)
            wanted = np.isin(places, chosen)
            if tile.used is not None and not by_groups:
                wanted &= tile.used
            for row in np.flatnonzero(wanted.any(axis=-1)).tolist():
                columns = np.flatnonzero(wanted[row])
                if by_groups:
                    shares = [solved.recall(row, bits).share]
                else:
                    shares = self.list_shares(name, tile, solved, row, columns, bits)
                with self._lock:
                    for number, share in zip(places[row, columns].tolist(), shares, strict=True):
                        add(number, share)

        for band in self._open_bands():
            if band is None or not by_groups:
                self._walk(add_tile)
                continue
            places = self._locate_groups(band)
            wanted = np.flatnonzero(np.isin(places, chosen))
            recall = band.take(band.numbers[wanted]).recall
            for row, number in enumerate(places[wanted].tolist()):
                add(number, recall(row, bits).share)
        return [totals[number] for number in chosen]

    def list_shares(
        self, name: str, tile: Tile, solved: SolvedGroups, row: int, columns: Any, bits: int
    ) -> list[Bounded]:
        """Return the contributions of some values of one row to the derivative with respect to gamma or beta.

        Each contribution is a rational with a bound of its error; None in place of NaN.

        Parameters
        ----------
        name : str
            `gamma` or `beta`.
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
        values = tile.rows.take(row, columns)
        if name == "gamma":
            return solved.recall(row, bits).find_shares(values, bits)
        return [(one.gradient, one.error) for one in values._replace(gamma=None).take_exactly(bits)]
