"""The compiled kernel on arrays: whole groups in one call, or leaves, or rows of which all is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.compiled import find_kernel
from normcli.dtypes import is_bfloat16
from normcli.norms.divisors import Measurement
from normcli.norms.table import Centre, EpsMode, ZeroRule
from normcli.numerics.pairs import distill
from normcli.numerics.records import Leaves, count_values
from normcli.numerics.solution import find_freedom

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from normcli.compiled import Kernel
    from normcli.dtypes import Floats, Integers, Selected
    from normcli.norms.plan import Plan
    from normcli.numerics.divisor import Solution
    from normcli.numerics.workspace import Workspace

_MODES = (None, EpsMode.INSIDE, EpsMode.OUTSIDE, EpsMode.FLOOR, EpsMode.SQUARE_FLOOR)
_ZERO_RULES = (ZeroRule.ZERO, ZeroRule.ONE, ZeroRule.NAN)
"""In the order of `enum eps_mode` and `enum zero_rule` of kernel.h."""

_LONGEST = 1 << 26
"""Groups of fewer values have counts whose products are doubles."""


class RowParameter(NamedTuple):
    """Gamma or beta of groups that are rows: of value i of group g, values[starts[g] + i // span].

    Parameters
    ----------
    values : ndarray, shape (values,)
    starts : ndarray of int, shape (groups,)
    span : int
    """

    values: Floats
    starts: Integers
    span: int

    def spread(self, groups: Integers, count: int) -> Floats:
        """Return what some groups of so many values each are multiplied by, or what is added to them."""
        places: Floats = self.values[self.starts[groups, None] + np.arange(count) // self.span]
        return places


def is_served(dtype: np.dtype[Any]) -> bool:
    """Whether the kernel reads and writes a dtype."""
    return is_bfloat16(dtype) or (dtype.isnative and dtype.kind == "f" and dtype.itemsize <= 8)


def is_plan_served(plan: Plan, count: int) -> bool:
    """Whether the kernel solves groups of a plan, of so many values each."""
    spec, row = plan.spec, plan.norm.divisor
    by_squares = row.measurement is Measurement.MOMENTS or (
        row.measurement is Measurement.LENGTH and spec.p in (None, 2.0)
    )
    plain = spec.window is None and spec.flat_rule is None
    return by_squares and plain and 0 < count < _LONGEST and find_freedom(plan, count) > 0


def normalize_groups(
    kernel: Kernel,
    plan: Plan,
    x: NDArray[Any],
    out: NDArray[Any] | None,
    parameters: tuple[RowParameter | None, RowParameter | None],
    work: Workspace,
    *,
    exact: bool,
    exact_output: bool,
) -> tuple[dict[str, Floats], Integers]:
    """Normalize groups by what is measured of them.

    Parameters
    ----------
    kernel : Kernel
    plan : Plan
    x : ndarray, shape (outer, inner, parts, values)
        Two axes of groups, and two of their values, of any strides.
    out : ndarray or None
        Of the shape of x; None if nothing is to be written.
    parameters : tuple of RowParameter or None
        Gamma and beta.
    work : Workspace
        Whose memory the statistics take.
    exact, exact_output : bool
        Whether more than 24 bits of the divisors are kept, and whether results have more.

    Returns
    -------
    tuple of (dict, ndarray of int)
        The statistics, and the numbers of the groups that the kernel has not decided: they have to be
        normalized in another way.
    """
    spec, row = plan.spec, plan.norm.divisor
    rule = (
        find_freedom(plan, x.shape[2] * x.shape[3]),
        spec.eps or 0.0,
        _MODES.index(spec.eps_mode),
        _ZERO_RULES.index(spec.zero_rule),
        plan.norm.centre is Centre.MEAN,
        exact,
        exact_output,
    )
    numbers = work.get("numbers", (4, x.shape[0] * x.shape[1]))
    left = kernel.normalize(_expose(x), None if out is None else _expose(out), None, numbers, *parameters, rule)
    names = ("mean", row.square, row.spread, "rstd")
    statistics = {name: values for name, values in zip(names, numbers, strict=True) if name in row.statistics}
    return statistics, np.frombuffer(left, np.int64)


def apply_to_rows(
    kernel: Kernel,
    x: NDArray[Any],
    out: NDArray[Any],
    solution: Solution,
    parameters: tuple[RowParameter | None, RowParameter | None],
    *,
    exact: bool,
) -> Integers:
    """Normalize rows by what is known of them, as `kernel.apply`; return the numbers of those that are left.

    Parameters
    ----------
    kernel : Kernel
    x, out : ndarray, shape (outer, inner, parts, values)
    solution : Solution
        Without a scale, with one number for each row.
    parameters : tuple of RowParameter or None
        Gamma and beta.
    exact : bool
        Full float64 results; otherwise enough for 24 bits.
    """
    table = np.array([*solution.mean, *solution.divisor])
    rule = (1, 0.0, 0, 0, solution.centred, exact, exact)
    left = kernel.normalize(_expose(x), _expose(out), table, None, *parameters, rule)
    return np.frombuffer(left, np.int64)


def measure_parts(kernel: Kernel, rows: NDArray[Any], *, need_sum: bool) -> Leaves:
    """Measure leaves, as `measure_leaves`; they are extreme where other ways have to be tried.

    Parameters
    ----------
    kernel : Kernel
    rows : ndarray, shape (outer, inner, parts, values)
        Leaves are of one number for each place along the first two axes.
    need_sum : bool
    """
    shape = rows.shape[:2]
    numbers, extreme = np.empty((7, *shape)), np.empty(shape, np.bool_)
    kernel.measure(_expose(rows), numbers.reshape(-1), extreme.reshape(-1), need_sum)
    leaves = Leaves.empty(shape)
    leaves.sum_0, leaves.sum_1, leaves.sum_2 = distill([*numbers[:3]], 3).terms
    leaves.square_0, leaves.square_1, leaves.square_2, leaves.square_3 = distill([*numbers[3:]], 4).terms
    leaves.extreme, leaves.count = extreme, np.full(shape, float(rows.shape[2] * rows.shape[3]))
    return leaves


def measure_rows(
    plain: Callable[..., Leaves],
    rows: NDArray[Any],
    work: Workspace,
    selected: Selected | None = None,
    *,
    need_sum: bool,
) -> Leaves:
    """Measure leaves by whichever kernel is chosen.

    Parameters
    ----------
    plain : callable
        Measures them by NumPy, with the parameters that follow.
    rows : ndarray, shape (leaves, n)
    work : Workspace
    selected : ndarray of bool or None
        Which values count, of the shape of rows; the others have to be 0. None if all count.
    need_sum : bool
        False for norms that do not centre.
    """
    kernel = find_kernel()
    if kernel is None or not is_served(rows.dtype):
        return plain(rows, work, selected, need_sum=need_sum)
    leaves = measure_parts(kernel, rows[None, :, None, :], need_sum=need_sum).reshape(rows.shape[:1])
    leaves.count = count_values(rows, selected)
    again = leaves.extreme.copy()
    if again.any():
        part = None if selected is None else selected[again]
        leaves.put(again, plain(rows[again], work, part, need_sum=need_sum))
    return leaves


def _expose(values: NDArray[Any]) -> NDArray[Any]:
    """Return an array whose format is one letter: bfloat16 has none, a byte order that is named is another."""
    if is_bfloat16(values.dtype):
        return values.view(np.uint16)
    return values if values.dtype.byteorder == "=" else values.view(values.dtype.newbyteorder("="))
