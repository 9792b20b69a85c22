"""The backward pass over a tensor and the gradient of its normalized values, tile by tile.

Groups that lie within a tile are read once. Larger ones are taken in bands, so that memory does not grow with
their number: of a band's groups a first walk adds up the means, a second one the exact sums, and a third one
writes dx. The sums of every thread are exact, so that they add up to the same in any order.
"""

from __future__ import annotations

import threading
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import is_float
from normcli.engine.blocks import Spread
from normcli.engine.gradients.coefficients import CoefficientSolver
from normcli.engine.gradients.parameters import ParameterSums
from normcli.engine.gradients.tiles import Band, Tile, TileValues, choose_shift, keep_small
from normcli.engine.passes import Passes
from normcli.norms.request import Fill
from normcli.norms.rules import Centre
from normcli.numerics.gradients.coefficients import find_p
from normcli.numerics.gradients.in_fractions import round_exactly, round_values, take_sum
from normcli.numerics.gradients.sums import GradientRows, GradientSums, find_deviations
from normcli.numerics.gradients.values import KnownGradients, differentiate, find_shares, round_known
from normcli.numerics.integers import widen_exactly
from normcli.numerics.pairs import Pair, pair_multiply

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Integers
    from normcli.engine.blocks import Source
    from normcli.engine.geometry import Slices
    from normcli.engine.gradients.coefficients import SolvedGroups
    from normcli.engine.inputs import Inputs
    from normcli.numerics.deciding import Bounded
    from normcli.numerics.gradients.coefficients import Coefficients
    from normcli.numerics.workspace import Workspace

MOST_VALUES, MOST_WHOLE = 1 << 14, 1 << 16
"""Values in a tile, and in a group that is read only once: some forty float64 arrays are made of their size."""

MOST_GROUPS = 1 << 14
"""Groups in a band: some fifty float64 arrays are made of their number."""


class GroupBackwardPasses(Passes):
    """The passes of a norm of groups."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        inputs: Inputs = arguments[4]
        grid, parameters = self.plan.grid, self.plan.parameters
        self.inputs, self.p = inputs, find_p(self.plan)
        self.whole = self.whole and self.geometry.count <= MOST_WHOLE
        self.rows_first = self.geometry.kept_runs + self.geometry.reduced_runs
        self.count = int(np.prod(parameters.view_shape)) if self.plan.norm.parameter_names else 0
        numbers = np.arange(self.count).reshape(parameters.view_shape) if self.count else None
        self.places = None if numbers is None else Spread(numbers, grid.view_shape, self.geometry)
        varies = any(parameters.view_shape[axis] > 1 for axis in grid.view_axes)
        self.by_groups = inputs.given is None and not varies
        self.fill = None if inputs.selection is None else inputs.selection.fill
        self.sums = ParameterSums(self.count)
        self.band: Band | None = None  # the one that is worked on, where groups do not lie within tiles

    def differentiate(self, gradients: Source, values: NDArray[Any]) -> None:
        """Write dx, and add up what the derivatives by gamma and beta are made of."""
        self.dy = gradients
        with np.errstate(all="ignore"):
            self.solver = CoefficientSolver(self.plan, self.inputs, values, self.walk.effort)
            for band in self._open_bands():
                if band is not None and self.by_groups and self.count:
                    shares = _share_by_groups(band.take(band.numbers).coefficients)
                    self.sums.add_shares(self._locate_groups(band), shares)
                self._walk(self._work_on)

    def _walk(self, work_on: Callable[[Slices, Workspace], None]) -> None:
        """Work on the tiles of the band, or on all where groups lie within them."""
        within = None if self.band is None else self.band.within
        self.walk.each(work_on, whole=self.band is None, line=0, most=MOST_VALUES, within=within)

    def _work_on(self, index: Slices, work: Workspace) -> None:
        tile = self._read_tile(index, work)
        solved = self._solve(tile)
        self._write_tile(tile, solved, work)
        if tile.places is None:
            return
        self.sums.add_gradients(tile.places, tile.rows.dy)
        if not self.by_groups:
            self.sums.add_shares(
                tile.places, tile.leave_used(find_shares(tile.rows, _stand(solved.coefficients)))
            )
        elif self.band is None:
            self.sums.add_shares(tile.places[:, 0], _share_by_groups(solved.coefficients))

    # -- tiles

    def _read_values(self, index: Slices, work: Workspace) -> TileValues:
        raw = np.array(self.source.read(index, self.rows_first, work))
        counted = self.select(raw, index, self.rows_first)
        shape = (len(self.geometry.number_groups(index)), -1)
        x, low = widen_exactly(raw)
        low = None if low is None else low.reshape(shape)
        return TileValues(raw, x.reshape(shape), low, None if counted is None else counted.reshape(shape))

    def _read_tile(self, index: Slices, work: Workspace) -> Tile:
        """Return a tile; values that have no part in the normalized ones are 0, and so are their gradients."""
        order, numbers = self.rows_first, self.geometry.number_groups(index)
        values = self._read_values(index, work)
        raw, x, low, counted = values
        dy = np.array(self.dy.read(index, order, work), np.float64).reshape(x.shape)
        used = counted
        if self.fill is Fill.NORMALIZE and counted is not None:
            used = counted | ~np.isnan(x)

        def cut(values: Spread | None) -> NDArray[Any] | None:
            if values is None:
                return None
            return np.broadcast_to(values.cut(index, order), raw.shape).reshape(x.shape)

        shift = self._find_shift(numbers, values)
        deviations = find_deviations(x, low, None if shift is None else shift[:, None])
        rows = GradientRows(deviations, dy, cut(self.gamma), counted)
        places = cut(self.places)
        gamma = None
        if self.by_groups:
            gamma = None if rows.gamma is None else rows.gamma[:, 0]
            rows, places = rows._replace(gamma=None), None if places is None else places[:, :1]
        if used is not None:
            kept = deviations.map(lambda a: np.where(used, a, 0.0))
            rows = rows._replace(deviations=kept, dy=np.where(used, dy, 0.0))
        return Tile(index, numbers, rows, dy, gamma, places, used)

    def _find_shift(self, numbers: Integers, values: TileValues) -> Floats | None:
        """Return what is subtracted from values so that they are small; no result depends on it."""
        if self.band is not None:
            return None if self.band.shift is None else self.band.shift[self.band.locate(numbers)]
        if self.plan.norm.centre is not Centre.MEAN:
            return None
        return choose_shift(*values.add_up(), values.raw.dtype)

    def _write_tile(self, tile: Tile, solved: SolvedGroups, work: Workspace) -> None:
        """Write dx of a tile."""
        assert self.sink is not None
        place, rows, coefficients = self.sink.open(tile.place, work), tile.rows, solved.coefficients
        if self.inputs.given is not None:  # dx does not depend on x
            rows = rows._replace(deviations=rows.deviations.map(np.zeros_like))
        gamma = None if tile.gamma is None else _stand_array(tile.gamma)
        found = differentiate(rows, _stand(coefficients), gamma, self.p)
        dx, undecided = round_known(found, place.dtype)
        for row in np.flatnonzero(undecided.any(axis=-1)).tolist():
            chosen = np.flatnonzero(undecided[row])
            by = Fraction(1) if tile.gamma is None else Fraction(float(tile.gamma[row]))

            def evaluate(columns: list[int], bits: int, row: int = row, by: Fraction = by) -> list[Bounded]:
                return solved.recall(row, bits).differentiate(_take(rows, row, columns), by)

            dx[row, chosen] = round_exactly(evaluate, chosen, place.dtype)
        if rows.counted is not None and self.fill is not Fill.NORMALIZE:
            others = round_values(tile.dy if self.fill is Fill.PASS else np.zeros_like(tile.dy), dx.dtype)
            dx = np.where(rows.counted, dx, others)
        out = place.transpose(self.rows_first)
        out[...] = dx.reshape(out.shape)
        self.sink.put(tile.place, place, work)

    # -- what groups are differentiated with

    def _solve(self, tile: Tile) -> SolvedGroups:
        """Return what a tile's groups are differentiated with."""
        if self.band is not None:
            return self.band.take(tile.numbers)
        sums = GradientSums(len(tile.numbers), self.p)
        sums.add(np.arange(len(tile.numbers)), tile.rows)
        return self.solver.solve(sums, tile.numbers)

    def _open_bands(self) -> Iterator[Band | None]:
        """Open one band after the other; None, once, where groups lie within tiles."""
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
        """Make it the band that is worked on, and find what its groups are differentiated with."""
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
        """Return about the mean of each group of a band."""
        totals, counts = np.zeros((2, len(band.numbers)))

        def add(index: Slices, work: Workspace) -> None:
            total, count = self._read_values(index, work).add_up()
            places = band.locate(self.geometry.number_groups(index))
            with self._lock:
                totals[places] += total
                counts[places] += count

        self._walk(add)
        return choose_shift(totals, counts, self.source.dtype)

    def _add_sums(self, band: Band) -> GradientSums:
        """Return the exact sums of the groups of a band."""
        every: dict[int, GradientSums] = {}

        def add(index: Slices, work: Workspace) -> None:
            tile = self._read_tile(index, work)
            sums = every.setdefault(threading.get_ident(), GradientSums(len(band.numbers), self.p))
            sums.add(band.locate(tile.numbers), tile.rows)

        self._walk(add)
        first, *others = every.values()
        for other in others:
            first.merge(other)
        return first

    # -- gamma and beta

    def find_parameters(self) -> tuple[NDArray[Any] | None, NDArray[Any] | None]:
        """Return the derivatives by gamma and beta: Σ dy · x̂ and Σ dy over what each is broadcast along."""
        if not self.plan.norm.parameter_names:
            return None, None
        with np.errstate(all="ignore"):
            scales = self._round_parameters("gamma", self._add_exactly)
            shifts = self._round_parameters("beta", self._take_exactly) if self.plan.norm.takes_beta else None
        return scales, shifts

    def _round_parameters(
        self, name: str, add_exactly: Callable[[list[int], int], list[Bounded]]
    ) -> NDArray[Any]:
        given = self.inputs.parameters.get(name)
        dtype = (
            given.dtype
            if given is not None and is_float(given.dtype)
            else self.plan.choose_output_dtype(self.source.dtype)
        )
        found, undecided = self.sums.round(name, np.dtype(dtype))
        chosen = np.flatnonzero(undecided)
        if chosen.size:
            found[chosen] = round_exactly(add_exactly, chosen, found.dtype)
        return found.reshape(self.plan.parameters.shape)

    def _take_exactly(self, chosen: list[int], bits: int) -> list[Bounded]:
        """Return the derivatives by some betas, which are sums of numbers: no bits of roots."""
        return [(take_sum(self.sums.beta, place), Fraction(0)) for place in chosen]

    def _locate_groups(self, band: Band) -> Integers:
        """Return the number of the parameter of each group of a band."""
        grid, shape = self.plan.grid, self.plan.parameters.view_shape
        lengths = [1 if axis in grid.view_axes else n for axis, n in enumerate(grid.view_shape)]
        return np.broadcast_to(np.arange(self.count).reshape(shape), lengths).reshape(-1)[band.numbers]

    def _add_exactly(self, chosen: list[int], bits: int) -> list[Bounded]:
        """Return the derivatives by some gammas, with everything calculated in rationals."""
        totals: dict[int, Bounded] = dict.fromkeys(chosen, (Fraction(0), Fraction(0)))

        def add(number: int, share: Bounded) -> None:
            total = totals[number]
            totals[number] = None
            if total is not None and share is not None:
                totals[number] = total[0] + share[0], total[1] + share[1]

        def add_tile(index: Slices, work: Workspace) -> None:
            tile = self._read_tile(index, work)
            assert tile.places is not None
            solved = self._solve(tile)
            wanted = np.isin(tile.places, chosen)
            if tile.used is not None and not self.by_groups:
                wanted &= tile.used
            for row in np.flatnonzero(wanted.any(axis=-1)).tolist():
                exact, columns = solved.recall(row, bits), np.flatnonzero(wanted[row])
                shares = [exact.share] if self.by_groups else exact.find_shares(_take(tile.rows, row, columns))
                with self._lock:
                    for number, share in zip(tile.places[row, columns].tolist(), shares, strict=True):
                        add(number, share)

        for band in self._open_bands():
            if band is None or not self.by_groups:
                self._walk(add_tile)
                continue
            places = self._locate_groups(band)
            wanted = np.flatnonzero(np.isin(places, chosen))
            recall = band.take(band.numbers[wanted]).recall
            for row, number in enumerate(places[wanted].tolist()):
                add(number, recall(row, bits).share)
        return [totals[number] for number in chosen]


def _stand_array(values: Floats) -> Floats:
    return values[:, None]


def _stand(coefficients: Coefficients) -> Coefficients:
    """Return what is one for each group as columns, to be broadcast against rows."""
    return coefficients.map(_stand_array)


def _share_by_groups(coefficients: Coefficients) -> KnownGradients:
    """Return Σ dy · x̂ of each group, of which dy is the gradient."""
    plain = coefficients.share.hi * coefficients.inverse.hi
    value = pair_multiply(coefficients.share, coefficients.inverse)
    finite = np.isfinite(coefficients.inverse.hi)
    value = Pair(np.where(finite, value.hi, plain), np.where(finite, value.lo, 0.0))
    return KnownGradients(value, np.zeros_like(plain), coefficients.extreme)


def _take(rows: GradientRows, row: int, columns: Any) -> GradientRows:
    """Return some values of one row."""
    return rows.map(lambda a: np.broadcast_to(a, rows.dy.shape)[row, columns])
