"""The backward pass over a tensor and the gradient of its normalized values, tile by tile.

Groups that lie within a tile are read once. Of larger ones a first walk adds up their exact sums, and a second
one writes dx. The sums of every thread are exact, so that they add up to the same in any order.
"""

from __future__ import annotations

import contextlib
import threading
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.dtypes import is_float
from normcli.engine.blocks import Spread, open_source
from normcli.engine.group_slopes import MOST_GROUPS, GroupSlopes
from normcli.engine.inputs import Inputs
from normcli.engine.parameter_sums import ParameterSums
from normcli.engine.passes import Run
from normcli.engine.run import measure, open_run, require_place
from normcli.norms.request import Fill
from normcli.norms.table import Centre
from normcli.numerics.exact_slopes import round_fractions, round_values, take_sum
from normcli.numerics.integers import widen_exactly
from normcli.numerics.pairs import Pair, pair_multiply
from normcli.numerics.slope_sums import Rows, Sums, find_deviations
from normcli.numerics.slopes import (
    Derivatives,
    differentiate,
    find_p,
    find_shares,
    round_known,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from normcli.dtypes import Floats, Integers, Selected
    from normcli.engine.blocks import Source
    from normcli.engine.geometry import Slices
    from normcli.engine.group_slopes import AllSolved, Solved
    from normcli.engine.walk import Effort
    from normcli.norms.plan import Plan
    from normcli.numerics.slopes import Slopes
    from normcli.numerics.workspace import Workspace

MOST_VALUES, MOST_WHOLE = 1 << 14, 1 << 16
"""Values in a tile, and in a group that is read only once: some forty float64 arrays are made of their size."""


class Derived(NamedTuple):
    """The derivatives of a loss by the tensor, by gamma and by beta; None of what the norm has not."""

    dx: NDArray[Any]
    dgamma: NDArray[Any] | None
    dbeta: NDArray[Any] | None


def run_backward(
    plan: Plan,
    values: NDArray[Any],
    dy: NDArray[Any],
    inputs: Inputs,
    out: NDArray[Any] | None,
    effort: Effort,
) -> Derived:
    """Return dx, and the derivatives by gamma and beta; each is the exact one, rounded once.

    Parameters
    ----------
    plan : Plan
        Of a norm that has a derivative.
    values, dy : ndarray
        The tensor, and the derivative of a loss by what it is normalized to: of one shape, maps of files too.
    inputs : Inputs
    out : ndarray or None
        Where dx goes, as in `run`.
    effort : Effort

    Raises
    ------
    UsageError
        If `out` is not what it has to be.
    """
    require_place(out, plan, values, dy)
    with open_run(plan, values, out) as (place, geometry, source, sink):
        with open_source(dy, plan, geometry) as gradients:
            kind = _BackwardRun if plan.spec.window is None else _import_windows()
            passes = kind(plan, geometry, source, sink, inputs, effort)
            if values.size:
                passes.differentiate(gradients, values)
        return Derived(place, *passes.find_parameters())


def _import_windows() -> Any:
    from normcli.engine.window_backward import WindowBackwardRun  # for one norm alone

    return WindowBackwardRun


class _Tile(NamedTuple):
    """A tile with one row for each group.

    Parameters
    ----------
    place : slices
        Where it lies.
    numbers : ndarray of int, shape (groups,)
        The numbers of its groups.
    rows : Rows
    dy : ndarray
        As it was given.
    gamma : ndarray or None
        One for each group, where it does not vary within groups.
    places : ndarray of int or None
        The number of the parameter of each value, or of each group, shape (groups, 1); None without parameters.
    used : ndarray of bool or None
        Which values have a part in normalized ones; None for all.
    """

    place: Slices
    numbers: Integers
    rows: Rows
    dy: Floats
    gamma: Floats | None
    places: Integers | None
    used: Selected | None

    def leave_used(self, found: Derivatives) -> Derivatives:
        """Return derivatives that are 0 of values that have no part in normalized ones."""
        if self.used is None:
            return found
        value = found.value.map(lambda a: np.where(self.used, a, 0.0))
        return Derivatives(value, np.where(self.used, found.error, 0.0), found.unclear & self.used)


class _BackwardRun(Run):
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
        self.solved: AllSolved | None = None  # of all groups, where they do not lie within tiles
        self.shift: Floats | None = None

    def differentiate(self, gradients: Source, values: NDArray[Any]) -> None:
        """Write dx, and add up what the derivatives by gamma and beta are made of."""
        self.dy = gradients
        with np.errstate(all="ignore"):
            self.group_slopes = GroupSlopes(self.plan, self.inputs, values, self.walk.effort)
            if self.inputs.given is not None:
                self._solve_given()
            elif not self.whole:
                self._solve_in_a_pass(values)
        self._walk(self._work_on)

    def _walk(self, work_on: Callable[[Slices, Workspace], None]) -> None:
        whole = self.whole and self.solved is None
        self.walk.expect(1)
        self.walk.each(work_on, whole=whole, line=0, most=MOST_VALUES)

    def _work_on(self, index: Slices, work: Workspace) -> None:
        tile = self._read_tile(index, work)
        solved = self._solve(tile)
        self._write_tile(tile, solved, work)
        if tile.places is None:
            return
        self.sums.add_gradients(tile.places, tile.rows.dy)
        if not self.by_groups:
            self.sums.add_shares(tile.places, tile.leave_used(find_shares(tile.rows, _stand(solved.slopes))))
        elif self.solved is None:
            self.sums.add_shares(tile.places[:, 0], _share_by_groups(solved.slopes))

    # -- tiles

    def _read_tile(self, index: Slices, work: Workspace) -> _Tile:
        """Return a tile; values that have no part in the normalized ones are 0, and so are their gradients."""
        order, numbers = self.rows_first, self.geometry.number_groups(index)
        raw = np.array(self.source.read(index, order, work))
        shape = (len(numbers), -1)
        x, low = (None if a is None else a.reshape(shape) for a in widen_exactly(raw))
        assert x is not None
        dy = np.array(self.dy.read(index, order, work), np.float64).reshape(shape)
        counted = self._select(raw, index, order)
        counted = None if counted is None else counted.reshape(shape)
        used = counted
        if self.fill is Fill.NORMALIZE and counted is not None:
            used = counted | ~np.isnan(x)

        def cut(values: Spread | None) -> NDArray[Any] | None:
            return (
                None if values is None else np.broadcast_to(values.cut(index, order), raw.shape).reshape(shape)
            )

        shift = self._find_shift(numbers, x, low, counted)
        deviations = find_deviations(x, low, None if shift is None else shift[:, None])
        rows = Rows(deviations, dy, cut(self.gamma), counted)
        places = cut(self.places)
        gamma = None
        if self.by_groups:
            gamma = None if rows.gamma is None else rows.gamma[:, 0]
            rows, places = rows._replace(gamma=None), None if places is None else places[:, :1]
        if used is not None:
            kept = deviations.map(lambda a: np.where(used, a, 0.0))
            rows = rows._replace(deviations=kept, dy=np.where(used, dy, 0.0))
        return _Tile(index, numbers, rows, dy, gamma, places, used)

    def _find_shift(self, numbers: Integers, x: Floats, low: Floats | None, counted: Selected | None) -> Any:
        """Return what is subtracted from values so that they are small; no result depends on it."""
        if self.shift is not None:
            return self.shift[numbers]
        if self.plan.norm.centre is not Centre.MEAN:
            return None
        if counted is None:
            means = np.add.reduce(x, axis=-1) / x.shape[-1]
        else:
            means = np.add.reduce(np.where(counted, x, 0.0), axis=-1) / np.add.reduce(counted, axis=-1)
        means = np.where(np.isfinite(means), means, 0.0)
        return means if low is None else np.rint(means)

    def _write_tile(self, tile: _Tile, solved: Solved, work: Workspace) -> None:
        """Write dx of a tile."""
        assert self.sink is not None
        place, rows, slopes = self.sink.open(tile.place, work), tile.rows, solved.slopes
        if self.inputs.given is not None:  # dx does not depend on x
            rows = rows._replace(deviations=rows.deviations.map(np.zeros_like))
        gamma = None if tile.gamma is None else _stand_array(tile.gamma)
        found = differentiate(rows, _stand(slopes), gamma, self.p)
        dx, undecided = round_known(found, place.dtype)
        for row in np.flatnonzero(undecided.any(axis=-1)).tolist():
            chosen = np.flatnonzero(undecided[row])
            by = Fraction(1) if tile.gamma is None else Fraction(float(tile.gamma[row]))
            exact = solved.recall(row).differentiate(_take(rows, row, chosen), by)
            dx[row, chosen] = round_fractions(exact, place.dtype)
        if rows.counted is not None and self.fill is not Fill.NORMALIZE:
            others = round_values(tile.dy if self.fill is Fill.PASS else np.zeros_like(tile.dy), dx.dtype)
            dx = np.where(rows.counted, dx, others)
        out = place.transpose(self.rows_first)
        out[...] = dx.reshape(out.shape)
        self.sink.put(tile.place, place, work)

    # -- what groups are differentiated with

    def _solve(self, tile: _Tile) -> Solved:
        """Return what a tile's groups are differentiated with."""
        if self.solved is not None:
            return self.solved.take(tile.numbers)
        sums = Sums(len(tile.numbers), self.p)
        sums.add(np.arange(len(tile.numbers)), tile.rows)
        return self.group_slopes.solve(sums, tile.numbers)

    def _solve_given(self) -> None:
        given = self.inputs.given
        assert given is not None
        mean, var = (self.plan.grid.spread_running(known).reshape(-1) for known in given)
        self.shift = mean
        self.solved = self.group_slopes.solve_given(given, var)

    def _solve_in_a_pass(self, values: NDArray[Any]) -> None:
        """Add up the sums of all groups, in a walk over them."""
        groups = self.plan.grid.group_count
        if self.plan.norm.centre is Centre.MEAN:
            inputs = Inputs(selection=self.inputs.selection)
            means = measure(self.plan, values, inputs, self.walk.effort)["mean"].reshape(-1)
            means = np.where(np.isfinite(means), means, 0.0)
            self.shift = np.rint(means) if values.dtype.kind in "iu" else means
        every: dict[int, Sums] = {}
        together = groups > MOST_GROUPS  # for each thread by itself they would take too much memory

        def gather(index: Slices, work: Workspace) -> None:
            tile = self._read_tile(index, work)
            with self._lock if together else contextlib.nullcontext():
                sums = every.setdefault(0 if together else threading.get_ident(), Sums(groups, self.p))
                sums.add(tile.numbers, tile.rows)

        self.walk.expect(1)
        self.walk.each(gather, whole=False, line=0, most=MOST_VALUES)
        first, *others = every.values()
        for other in others:
            first.merge(other)
        self.solved = self.group_slopes.solve_all(first)

    # -- gamma and beta

    def find_parameters(self) -> tuple[NDArray[Any] | None, NDArray[Any] | None]:
        """Return the derivatives by gamma and beta: Σ dy · x̂ and Σ dy over what each is broadcast along."""
        if not self.plan.norm.parameter_names:
            return None, None
        if self.by_groups and self.solved is not None:
            places = self._locate_groups()
            for start in range(0, len(places), MOST_GROUPS):
                numbers = np.arange(start, min(start + MOST_GROUPS, len(places)))
                self.sums.add_shares(places[numbers], _share_by_groups(self.solved.take(numbers).slopes))
        with np.errstate(all="ignore"):
            scales = self._round_parameters("gamma", self._add_exactly)
            shifts = self._round_parameters("beta", self._take_exactly) if self.plan.norm.takes_beta else None
        return scales, shifts

    def _round_parameters(
        self, name: str, add_exactly: Callable[[Integers], list[Fraction | None]]
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
            found[chosen] = round_fractions(add_exactly(chosen), found.dtype)
        return found.reshape(self.plan.parameters.shape)

    def _take_exactly(self, chosen: Integers) -> list[Fraction | None]:
        """Return the derivatives by some betas, which are sums of numbers."""
        return [take_sum(self.sums.beta, place) for place in chosen.tolist()]

    def _locate_groups(self) -> Integers:
        """Return the number of the parameter of each group."""
        grid, shape = self.plan.grid, self.plan.parameters.view_shape
        lengths = [1 if axis in grid.view_axes else n for axis, n in enumerate(grid.view_shape)]
        return np.broadcast_to(np.arange(self.count).reshape(shape), lengths).reshape(-1)

    def _add_exactly(self, chosen: Integers) -> list[Fraction | None]:
        """Return the derivatives by some gammas, with everything calculated in rationals."""
        totals: dict[int, Fraction | None] = dict.fromkeys(chosen.tolist(), Fraction(0))

        def add(number: int, share: Fraction | None) -> None:
            total = totals[number]
            totals[number] = None if total is None or share is None else total + share

        def add_tile(index: Slices, work: Workspace) -> None:
            tile = self._read_tile(index, work)
            assert tile.places is not None
            solved = self._solve(tile)
            wanted = np.isin(tile.places, chosen)
            if tile.used is not None and not self.by_groups:
                wanted &= tile.used
            for row in np.flatnonzero(wanted.any(axis=-1)).tolist():
                exact, columns = solved.recall(row), np.flatnonzero(wanted[row])
                shares = [exact.share] if self.by_groups else exact.find_shares(_take(tile.rows, row, columns))
                with self._lock:
                    for number, share in zip(tile.places[row, columns].tolist(), shares, strict=True):
                        add(number, share)

        if self.by_groups and self.solved is not None:
            places = self._locate_groups()
            wanted = np.flatnonzero(np.isin(places, chosen))
            recall = self.solved.take(wanted).recall
            for row, group in enumerate(wanted.tolist()):
                add(int(places[group]), recall(row).share)
        else:
            self._walk(add_tile)
        return [totals[number] for number in chosen.tolist()]


def _stand_array(values: Floats) -> Floats:
    return values[:, None]


def _stand(slopes: Slopes) -> Slopes:
    """Return what is one for each group as columns, to be broadcast against rows."""
    return slopes.map(_stand_array)


def _share_by_groups(slopes: Slopes) -> Derivatives:
    """Return Σ dy · x̂ of each group, of which dy is the gradient."""
    plain = slopes.share.hi * slopes.inverse.hi
    value = pair_multiply(slopes.share, slopes.inverse)
    finite = np.isfinite(slopes.inverse.hi)
    value = Pair(np.where(finite, value.hi, plain), np.where(finite, value.lo, 0.0))
    return Derivatives(value, np.zeros_like(plain), slopes.extreme)


def _take(rows: Rows, row: int, columns: Integers) -> Rows:
    """Return some values of one row."""
    return rows.map(lambda a: np.broadcast_to(a, rows.dy.shape)[row, columns])
