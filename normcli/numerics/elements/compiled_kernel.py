"""The compiled kernel on arrays: whole groups, leaves, or rows of solved groups, in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.compiled import find_kernel
from normcli.dtypes import is_bfloat16
from normcli.norms.rules import EpsMode, ZeroRule
from normcli.numerics.elements.in_pairs import SOLVED, Elements
from normcli.numerics.elements.kernel import calculate_again
from normcli.numerics.pairs import Pair, Triple, pair_root
from normcli.numerics.statistics.divisor import find_freedom
from normcli.numerics.sums.leaf_records import Leaves, count_values
from normcli.numerics.sums.row_sums import measure_leaves
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.compiled import Kernel
    from normcli.dtypes import Floats, Integers, Selected
    from normcli.norms.plan import Plan
    from normcli.numerics.statistics.divisor import Solution
    from normcli.numerics.workspace import Workspace

    Statistics = tuple[Floats | None, ...]

_MODES = (EpsMode.INSIDE, EpsMode.OUTSIDE, EpsMode.FLOOR)
"""The modes in the order of `enum eps_mode` of kernel.h; every other mode is passed as a floor."""

_OF_ZERO = {ZeroRule.ZERO: np.inf, ZeroRule.ONE: 1.0, ZeroRule.NAN: np.nan}
"""The inverse of a divisor that is 0; the kernel leaves such groups where it is NaN."""

_RESULTS = 7
"""Arrays that the kernel writes at most: four statistics, or the doubles of two sums."""

_LONGEST = 1 << 26
"""Groups that the kernel takes have fewer values: products of their counts are then exact in doubles."""


class RowParameter(NamedTuple):
    """Gamma or beta of groups that are rows: `values[starts[g] + i // span]` is that of value i of row g.

    Parameters
    ----------
    values : ndarray, shape (values,)
        The parameter's numbers, flat.
    starts : ndarray of int, shape (groups,)
        The index, in `values`, of the number of each row's first value.
    span : int
        The number of neighbours in a row that share one number.
    """

    values: Floats
    starts: Integers
    span: int

    def spread(self, groups: Integers, count: int) -> Floats:
        """Return the parameter of each value of some groups of `count` values; shape (groups, count)."""
        places: Floats = self.values[self.starts[groups, None] + np.arange(count) // self.span]
        return places


def is_served(dtype: np.dtype[Any]) -> bool:
    """Whether the kernel reads and writes a dtype."""
    return is_bfloat16(dtype) or (dtype.isnative and dtype.kind == "f" and dtype.itemsize <= 8)


def is_plan_served(plan: Plan, count: int) -> bool:
    """Whether the kernel solves a plan's groups of `count` values each."""
    plain = plan.spec.flat_rule is None and not plan.norm.is_partial
    return plan.follows_from_sums and plain and 0 < count < _LONGEST and find_freedom(plan, count) > 0


class Rule(NamedTuple):
    """The rule by which the kernel makes divisors: the fields of the C `struct rule` in kernel.h, in order."""

    freedom: float
    eps: float
    eps_rest: float
    of_zero: float
    eps_mode: int
    centred: bool
    exact: bool


def make_rule(plan: Plan, count: int, *, exact: bool) -> Rule:
    """Return the rule for measuring groups of `count` values each.

    Parameters
    ----------
    plan : Plan
    count : int
    exact : bool
        Whether results have more than 24 bits.
    """
    spec, eps, mode = plan.spec, Pair(plan.spec.eps or 0.0, 0.0), plan.spec.eps_mode
    if mode is EpsMode.SQUARE_FLOOR:
        eps = pair_root(eps)
    # An eps of 0 is a floor of 0: nothing is added.
    number = _MODES.index(mode) if mode in _MODES and spec.eps else _MODES.index(EpsMode.FLOOR)
    centred, of_zero = plan.norm.divisor.about_mean, _OF_ZERO[spec.zero_rule]
    freedom, hi, lo = find_freedom(plan, count), float(eps.hi), float(eps.lo)
    return Rule(freedom, hi, lo, of_zero, number, centred, exact)


class Groups(NamedTuple):
    """Groups of values, the array that their results are written to, and the parameters gamma and beta.

    Parameters
    ----------
    x : ndarray, shape (outer, inner, parts, values)
        The first two axes count groups, the last two the values of a group; of any strides.
    out : ndarray or None
        The array, of the shape of x, that results are written to; None if nothing is to be written.
    gamma, beta : RowParameter or None
        None for 1 and 0.
    """

    x: NDArray[Any]
    out: NDArray[Any] | None
    gamma: RowParameter | None = None
    beta: RowParameter | None = None


class Counts(NamedTuple):
    """The number of values of each group, and the divisor of their sums of squares.

    Parameters
    ----------
    values : ndarray, shape (groups,)
    freedom : ndarray, shape (groups,), or int
    selected : ndarray of bool, shape (groups, values)
        True where a value counts.
    """

    values: Floats
    freedom: Any
    selected: Selected


def normalize_groups(
    kernel: Kernel, rule: Rule, groups: Groups, statistics: Statistics, counts: Counts | None = None
) -> Integers:
    """Measure groups, and write their results and statistics; return the indices of undecided groups.

    Parameters
    ----------
    kernel : Kernel
    rule : Rule
    groups : Groups
        Results are written to its `out`.
    statistics : tuple of (ndarray or None)
        The arrays, of shape (groups,), that are written to: the mean, the variance or mean square, its root
        and the divisor's inverse of each group; None for those that are not wanted.
    counts : Counts or None
        Which values count, if not all do; the others have to be 0. None if all count.

    Returns
    -------
    ndarray of int
        Flat indices of the groups that the kernel has not decided: they have to be normalized in another way.
        With `counts`, groups without degrees of freedom are among them.
    """
    if counts is None:
        return _call(kernel, rule, groups, statistics)
    some = (counts.values > 0) & (counts.freedom > 0)
    each = np.concatenate([np.where(some, a, 1.0) for a in (counts.values, counts.freedom)])
    left = _call(kernel, rule, groups, statistics, counts=each, selected=counts.selected)
    return np.union1d(left, np.flatnonzero(~some))


def name_statistics(plan: Plan) -> tuple[str, ...]:
    """Return the names of the kernel's four numbers of a group; "" for one that is no statistic of the norm."""
    row = plan.norm.divisor
    names = ("mean", row.square, row.spread, "rstd")
    return tuple([name if name in row.statistics else "" for name in names])


def apply_to_rows(
    kernel: Kernel,
    rows: Groups,
    solution: Solution,
    numbers: Integers,
    selected: Selected | None = None,
    *,
    exact: bool,
) -> Integers:
    """Normalize rows by the solution of their groups, and write the results to `rows.out`.

    Parameters
    ----------
    kernel : Kernel
    rows : Groups
    solution : Solution
    numbers : ndarray of int, shape (rows,)
        The group of each row, as a flat index (in C order) into the solution's arrays.
    selected : ndarray of bool or None
        True for each value, of all rows in C order, whose result is used; None if all are.
    exact : bool
        Whether results have more than 24 bits.

    Returns
    -------
    ndarray of int
        The indices of the rows that the kernel has not decided: they have to be normalized in another way.
    """
    each = np.concatenate([a.reshape(-1)[numbers] for a in (*solution.mean, *solution.divisor)])
    rule = Rule(1.0, 0.0, 0.0, 0.0, 0, solution.centred, exact)
    error = solution.error.reshape(-1)[numbers] if np.ndim(solution.error) else solution.error
    return _call(kernel, rule, rows, (), each, error, selected=selected)


_ABSENT, _NOTHING = (None, None, 0), (None,) * _RESULTS


def _call(
    kernel: Kernel,
    rule: Rule,
    groups: Groups,
    statistics: Statistics,
    known: Floats | None = None,
    error: Any = SOLVED,
    counts: Floats | None = None,
    selected: Selected | None = None,
) -> Integers:
    """Call the kernel, which writes to `groups.out`, and return the flat indices of the undecided groups.

    Single values that the kernel does not decide are calculated again in pairs of doubles; their group is
    undecided only if that leaves a value undecided too. Flat indices count the first two axes of `groups.x`.

    Parameters
    ----------
    kernel, rule, groups
    statistics : tuple of (ndarray or None)
        The arrays that the kernel writes its measurements of groups to, one number for each group.
    known : ndarray or None
        Three doubles of each mean, then two of each divisor; None if the kernel measures the groups.
    error : float or ndarray
        An upper bound of the relative errors of the divisors: one for all groups, or one for each.
    counts : ndarray or None
        The number of values of each group that count, then the degrees of freedom of each group; None if all
        values count, and the rule has the degrees of freedom.
    selected : ndarray of bool or None
        True for values that count, or whose results are used; None for all.
    """
    x, out, gamma, beta = groups
    left = np.empty(x.shape[0] * x.shape[1], np.bool_)
    missed = None if out is None else np.empty((x.size // 64 + 64, 7))
    (scales, of_scales, scale_span), (shifts, of_shifts, shift_span) = gamma or _ABSENT, beta or _ABSENT
    chosen = None if selected is None else np.ascontiguousarray(selected)
    shown = None if out is None else _expose(out)
    given = _expose(x), shown, left, missed, known, counts, chosen
    rest = _NOTHING[len(statistics) :]
    arrays = (*given, scales, shifts, of_scales, of_shifts, *statistics, *rest)
    found = kernel.module.normalize(kernel.variant, rule, (scale_span, shift_span), arrays)
    numbers: Integers = left.nonzero()[0]
    if out is None or missed is None or not found:
        return numbers
    number, values, *means, hi, lo = missed[:found].T
    group, place = np.divmod(number.astype(np.int64), x.shape[2] * x.shape[3])
    scale, shift = (None if p is None else p.values[p.starts[group] + place // p.span] for p in (gamma, beta))
    mean = Triple(*means) if rule.centred else None
    off = error[group] if np.ndim(error) else error
    elements = Elements(values, mean, Pair(hi, lo), scale, shift, None, off)
    results = np.empty(number.shape, out.dtype)
    with np.errstate(all="ignore"):
        undecided = calculate_again(elements, results, np.arange(len(number)))
    out[(*np.unravel_index(group, x.shape[:2]), *np.unravel_index(place, x.shape[2:]))] = results
    return numbers if undecided is None else np.union1d(numbers, group[undecided])


def measure_parts(kernel: Kernel, rows: NDArray[Any], *, need_sum: bool) -> Leaves:
    """Return the sums of leaves (the short rows that groups are cut into), as records of shape (outer, inner).

    `extreme` of a record is True where the kernel does not decide the sums: such a leaf has to be measured in
    another way.

    Parameters
    ----------
    kernel : Kernel
    rows : ndarray, shape (outer, inner, parts, values)
        There is one leaf for each index of the first two axes.
    need_sum : bool
        Whether the sum of values is needed; False for norms that do not subtract a mean.
    """
    shape = rows.shape[:2]
    numbers = np.empty((7, *shape))
    rule = Rule(1.0, 0.0, 0.0, 0.0, 0, need_sum, exact=False)
    left = _call(kernel, rule, Groups(rows, None), tuple(numbers.reshape(7, -1)))
    extreme, count = np.zeros(shape, np.bool_), np.full(shape, float(rows.shape[2] * rows.shape[3]))
    extreme.reshape(-1)[left] = True
    return Leaves(*[*numbers, *np.zeros((2, *shape)), extreme, count])


def measure_rows(
    rows: NDArray[Any], work: Workspace, selected: Selected | None = None, *, need_sum: bool
) -> Leaves:
    """Return the exact sums of each row: from the compiled kernel where it decides them, else from NumPy.

    Parameters
    ----------
    rows : ndarray, shape (leaves, n)
    work : Workspace
    selected : ndarray of bool or None
        True for values that count, of the shape of rows; the others have to be 0. None if all count.
    need_sum : bool
        True if the sum of values is needed; False for norms that do not subtract a mean.
    """
    kernel = find_kernel()
    if kernel is None or not is_served(rows.dtype):
        return measure_leaves(rows, work, selected, need_sum=need_sum)
    leaves = measure_parts(kernel, rows[None, :, None, :], need_sum=need_sum).reshape(rows.shape[:1])
    if selected is not None:
        leaves.count = count_values(rows, selected)
    again = leaves.extreme.copy()
    if again.any():
        part = None if selected is None else selected[again]
        leaves.put(again, measure_leaves(rows[again], work, part, need_sum=need_sum))
    return leaves


def _expose(values: NDArray[Any]) -> NDArray[Any]:
    """Return a view whose buffer format is one letter: bfloat16 as uint16, and no byte order that is named."""
    dtype = values.dtype
    if dtype.kind == "f" and dtype.byteorder == "=":
        return values
    return values.view(np.uint16 if is_bfloat16(dtype) else dtype.newbyteorder("="))
