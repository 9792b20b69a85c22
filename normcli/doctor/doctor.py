"""The test of whether a norm can be calculated in low precision on a tensor: every algorithm is tried."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.algorithms.moment_formulas import RowMoments
from normcli.algorithms.row_computation import Computation, list_accumulations, list_casts
from normcli.algorithms.row_formula import RowElements, RowFormula
from normcli.algorithms.summation_orders import add_up
from normcli.checking.check import calculate_rows
from normcli.checking.ulp import choose_tolerance, measure_distance
from normcli.doctor.examination import CONDITIONS, Distances, Distribution, Examination, Finding, Overflow
from normcli.engine.passes import Passes
from normcli.engine.tiling.blocks import open_source
from normcli.engine.tiling.geometry import find_geometry
from normcli.errors import UsageError
from normcli.norms.divisors import Measurement
from normcli.norms.plan import make_plan
from normcli.norms.rules import Centre

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from normcli.algorithms.row_computation import Accumulation
    from normcli.algorithms.summation_orders import Values
    from normcli.checking.ulp import Tolerance
    from normcli.dtypes import Floats, Integers, Selected
    from normcli.engine.inputs import Inputs
    from normcli.engine.tiling.blocks import Source
    from normcli.engine.tiling.geometry import Slices
    from normcli.engine.walk import Effort
    from normcli.norms.plan import Plan
    from normcli.numerics.workspace import Workspace
    from normcli.results.arguments import Problem

    Affine = tuple[Values | None, Values | None]

PIECE = 1 << 16
"""The number of values compared at once, so that the dozen arrays for the comparison stay in the cache."""

TOGETHER, MOST_VALUES = 64, 1 << 22
"""The most groups and the most values in a tile of long groups, whose sums are added up side by side."""


def require_summed_statistics(plan: Plan) -> None:
    """Raise `UsageError` unless a norm's statistics are sums of values or of squares over whole groups.

    It is raised for norms by minimum, maximum or quantiles, norms without centring or division (`no_mean`,
    `no_scale`), norms of matrices or sliding windows, and ℓp norms with p other than 2.
    """
    norm, spec = plan.norm, plan.spec
    if norm.is_by_order:
        raise UsageError(f"{norm.name} adds nothing: its statistics are single values, exact in any precision")
    if norm.is_partial:
        raise UsageError(f"doctor examines whole norms; leave out no_mean and no_scale of {norm.name}")
    if norm.rows is not None:
        raise UsageError(
            f"doctor examines means and sums of squares of groups; {norm.name} takes a {norm.divisor.size}"
        )
    if norm.divisor.measurement is Measurement.WINDOW or spec.p not in (None, 2.0):
        raise UsageError(
            f"doctor examines means and sums of squares of groups; {norm.name} "
            + ("takes those of windows" if spec.window is not None else f"with p {spec.p:g} has others")
        )


def examine(problem: Problem, max_ulp: float | None = None) -> Examination:
    """Calculate a norm by every algorithm and order of casts, and compare each result with the exact one.

    Parameters
    ----------
    problem : Problem
        The norm and the tensor. Kernels read and write the plan's dtype (`choose_output_dtype`): values are
        rounded to this dtype first, and the exact result is calculated from the rounded values. With a
        selection, a group is examined as if it held only its selected values.
    max_ulp : float or None
        The largest error in ulp that counts as safe; None for the tolerance of torch's `assert_close`.

    Raises
    ------
    UsageError
        If the norm's statistics are no sums, or `max_ulp` is not a finite number ≥ 0.

    Notes
    -----
    Tiles hold whole groups. Groups with values that are not finite in the dtype are left out.

    Examples
    --------
    >>> from normcli.results.arguments import read_arguments
    >>> found = examine(read_arguments(np.float16([[300.0, 301.0, 302.0, 303.0]]), "ln", {}))
    >>> found.cheapest.computation.name, len(found.findings) > 20
    ('shifted:float16', True)
    """
    plan, values = problem.plan, problem.values
    require_summed_statistics(plan)
    dtype = plan.choose_output_dtype(values.dtype)
    plan = make_plan(plan.request._replace(dtype=dtype.name), plan.grid.shape, dtype, plan.grid.columns)
    geometry = find_geometry(plan)
    tolerance = choose_tolerance(dtype, max_ulp=max_ulp)
    with open_source(values, plan, geometry) as source:
        ward = _Ward(plan, source, problem.inputs, tolerance, problem.effort)
        if values.size:
            ward.walk.expect(1)
            most = max(PIECE, min(MOST_VALUES, TOGETHER * geometry.count))
            ward.walk.each(ward.examine_tile, whole=True, most=most)
    return ward.total


class _Ward(Passes):
    """The work of `doctor` on a tensor, tile by tile, in threads; `total` has the findings so far."""

    def __init__(
        self, plan: Plan, source: Source, inputs: Inputs, tolerance: Tolerance, effort: Effort
    ) -> None:
        super().__init__(plan, find_geometry(plan), source, None, inputs, effort)
        self.tolerance, self.formula = tolerance, RowFormula.of(plan)
        self.accumulations = list(list_accumulations(self.formula))
        findings = [
            Finding(Computation(accumulation, cast))
            for accumulation in self.accumulations
            for cast in list_casts(accumulation, tolerance.dtype, has_gamma=self.gamma is not None)
        ]
        names = CONDITIONS if plan.norm.centre is Centre.MEAN else CONDITIONS[1:]
        self.total = Examination(plan, tolerance, findings, {name: Distribution() for name in names})

    def examine_tile(self, tile: Slices, work: Workspace) -> None:
        """Add the errors of all algorithms in a tile (a block of whole groups of the tensor) to `total`."""
        order = self.order
        numbers = self.geometry.number_groups(tile)
        read = np.ascontiguousarray(self.source.read(tile, order, work))
        raw = read.reshape(len(numbers), -1)
        affine = self._cut_affine(tile, order, raw.shape)
        found = self.select(read, tile, order)
        if found is None:
            self._examine_values(numbers, raw, affine)
            return
        selected = found.reshape(raw.shape)
        counts = np.count_nonzero(selected, axis=1)
        for count in np.unique(counts[counts > 0]).tolist():  # groups of as many values are tried together
            these = counts == count

            def pack(values: NDArray[Any] | None, these: Selected = these) -> Any:
                return None if values is None else values[these][selected[these]].reshape(these.sum(), -1)

            self._examine_values(numbers[these], pack(raw), (pack(affine[0]), pack(affine[1])))

    def _examine_values(self, numbers: Integers, raw: NDArray[Any], affine: Affine) -> None:
        """Add the errors of all computations in some groups to `total`.

        Row i of `raw` is group `numbers[i]`. Rows with values that are not finite in the examined dtype are
        left out.
        """
        with np.errstate(all="ignore"):
            rows = raw.astype(self.tolerance.dtype)
            usable = np.isfinite(rows).all(axis=1)
            with self._lock:
                self.total.beyond += int(np.count_nonzero(np.isfinite(raw) & ~np.isfinite(rows)))
            if not usable.all():
                numbers, rows = numbers[usable], rows[usable]
                gamma, beta = (None if p is None else p[usable] for p in affine)
                affine = (gamma, beta)
            if len(rows):
                self._examine_rows(numbers, rows, affine)

    def _cut_affine(self, tile: Slices, order: tuple[int, ...], shape: tuple[int, ...]) -> Affine:
        lengths = [tile[run].stop - tile[run].start for run in order]
        cut = (None if p is None else p.cut(tile, order) for p in (self.gamma, self.beta))
        gamma, beta = (None if p is None else np.broadcast_to(p, lengths).reshape(shape) for p in cut)
        return gamma, beta

    def _examine_rows(self, numbers: Integers, rows: Values, affine: Affine) -> None:
        """Try all algorithms on finite rows: add their lost variances and overflows, then their errors.

        Row i of `rows` is the group with index `numbers[i]`.
        """
        differs = (rows != rows[:, :1]).any(axis=1) if self.formula.centres else (rows != 0).any(axis=1)
        measured = []
        for accumulation in self.accumulations:
            values = accumulation.widen(rows)
            moments = accumulation.measure(values, self.formula)
            measured.append(moments)
            negative, zero = find_lost(moments, differs)
            overflow = None
            for row in np.flatnonzero(~(np.isfinite(moments.mean) & np.isfinite(moments.square)))[:1]:
                place = locate_overflow(accumulation, values[row : row + 1], self.formula)
                overflow = Overflow(int(numbers[row]), place)
            with self._lock:
                for finding in self.total.list_of(accumulation):
                    finding.lose(numbers[negative], numbers[zero], overflow)
        step = max(1, PIECE // rows.shape[1])
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            gamma, beta = (None if p is None else p[part] for p in affine)
            moments_here = [RowMoments(*(statistic[part] for statistic in moments)) for moments in measured]
            self._compare_rows(numbers[part], rows[part], moments_here, (gamma, beta))

    def _compare_rows(
        self, numbers: Integers, rows: Values, measured: Sequence[RowMoments], affine: Affine
    ) -> None:
        """Compare the results of all algorithms for some rows with the exact ones, and add the errors.

        Parameters
        ----------
        numbers : ndarray of int
            The index of the group that each row holds.
        rows : ndarray, shape (groups, values)
        measured : sequence of RowMoments
            The moments of the rows, one for each of `self.accumulations`, as that algorithm computes them.
        affine : tuple of ndarray or None
            Gamma and beta, of the shape of the rows.
        """
        expected, statistics = calculate_rows(self.plan, rows, affine)
        with self._lock:
            self._measure_conditions(numbers, rows.astype(np.float64), statistics)
        seen: dict[bytes, Distances] = {}  # kernels with enough bits give the same
        for accumulation, moments in zip(self.accumulations, measured, strict=True):
            values, dtype = accumulation.widen(rows), self.tolerance.dtype
            given = RowElements.of(values, moments, self.formula, affine, dtype)
            for finding in self.total.list_of(accumulation):
                actual = finding.computation.write(given)
                bits = actual.tobytes()
                if bits not in seen:
                    seen[bits] = compare_rows(actual, expected, numbers, self.tolerance)
                with self._lock:
                    finding.distances.merge(seen[bits])

    def _measure_conditions(self, numbers: Integers, wide: Floats, statistics: dict[str, Floats]) -> None:
        found = self.total
        found.judged += len(numbers)
        square = statistics.get(self.plan.norm.divisor.square)
        measured = {"max |x|": np.abs(wide).max(axis=1), "Σx²": np.einsum("ij,ij->i", wide, wide)}
        if self.formula.centres and square is not None:
            ratio = statistics["mean"] ** 2 / square
            measured["mean²/var"] = np.where(np.isnan(ratio), 0.0, ratio)
        for name, numbers_found in measured.items():
            found.conditions[name].add(np.ascontiguousarray(numbers_found), numbers)
        if square is not None and self.formula.eps:
            found.faint += int(np.count_nonzero(square <= self.formula.eps))


def find_lost(moments: RowMoments, differs: Selected) -> tuple[Selected, Selected]:
    """Return which rows have a negative calculated variance, and which one of 0 though their values differ.

    For norms without mean, the mean square takes the variance's place.

    Parameters
    ----------
    moments : RowMoments
        The calculated moments of some groups.
    differs : ndarray of bool
        True where the values of a group differ; for norms without mean, where one of them is not 0.
    """
    return moments.square < 0, (moments.square == 0) & differs


def compare_rows(actual: Values, expected: Floats, numbers: Integers, limits: Tolerance) -> Distances:
    """Return the distances of calculated rows from the exact rows, in ulp and in multiples of a tolerance.

    `numbers` has the index of the group that each row holds, and `limits` is the tolerance.
    """
    error, ulp = measure_distance(actual.astype(np.float64), expected, limits.dtype)
    excess = limits.measure_excess(error, ulp, expected)
    found = Distances(mismatches=int(np.count_nonzero(excess > 1.0)))
    places = np.broadcast_to(numbers[:, None], ulp.shape)
    found.ulp.add(ulp, places)
    found.excess.add(excess, places)
    return found


def locate_overflow(accumulation: Accumulation, row: Values, formula: RowFormula) -> int | None:
    """Return the index in a row of the value at which an algorithm's sum becomes infinite or NaN.

    Parameters
    ----------
    accumulation : Accumulation
    row : ndarray, shape (1, values)
        The row, in the dtype of the sums.
    formula : RowFormula

    Returns
    -------
    int or None
        For algorithms that add one value after the other, the index at which the sum overflows; for others,
        that of the first term that is not finite itself. None if only the sum of all terms overflows, or
        nothing does.
    """
    found: list[int | None] = []

    def watch(terms: Values) -> Values:
        total = accumulation.algorithm.add(terms)
        if not np.isfinite(total).all():
            sums = add_up(terms) if accumulation.algorithm.in_turn else terms
            bad = np.flatnonzero(~np.isfinite(sums[0]))
            found.append(int(bad[0]) if bad.size else None)
        return total

    watched = accumulation._replace(algorithm=accumulation.algorithm._replace(add=watch))
    watched.measure(row, formula)
    return found[0] if found else None
