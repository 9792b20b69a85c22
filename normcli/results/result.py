"""The result of a calculation, and the function that calculates it."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np

from normcli.engine.inputs import COUNT, NO_INPUTS, Inputs, Selection
from normcli.engine.run import measure, run
from normcli.engine.walk import DEFAULT_EFFORT, Effort
from normcli.errors import DegenerateError, MissingStatisticError, UsageError
from normcli.norms.request import Fill
from normcli.results.arguments import read_arguments, require_threads
from normcli.results.arrays import Give, find_lazy, keep
from normcli.results.departures import find_all_degeneracies
from normcli.results.promises import Check, check_promises

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Sequence

    from numpy.typing import ArrayLike, DTypeLike, NDArray

    from normcli.norms.layout import AxisSpec
    from normcli.norms.names import EpsModeName, FillName, FrameworkName, GroupOrderName, NanName, NormName
    from normcli.norms.plan import Plan
    from normcli.numerics.solution import Given
    from normcli.results.degenerate import Degeneracy

Item = TypeVar("Item")


class Statistic:
    """A statistic of each group, as an attribute of `Result`; of another norm's, `MissingStatisticError`."""

    def __init__(self, description: str) -> None:
        self.__doc__ = description

    def __set_name__(self, owner: type[Result], name: str) -> None:
        self._name = name

    @overload
    def __get__(self, result: None, owner: type[Result]) -> Statistic: ...

    @overload
    def __get__(self, result: Result, owner: type[Result]) -> NDArray[np.float64]: ...

    def __get__(self, result: Result | None, owner: type[Result]) -> Statistic | NDArray[np.float64]:
        if result is None:
            return self
        if self._name in result.statistics:
            return result.statistics[self._name]
        name, has = result.plan.norm.name, ", ".join(result.statistics)
        raise MissingStatisticError(f"{name} has no statistic {self._name}; it has {has}")


class _Later(Mapping[str, "NDArray[np.float64]"]):
    """Statistics that are measured when one of them is first asked for."""

    def __init__(self, names: Sequence[str], measure: Callable[[], Mapping[str, NDArray[np.float64]]]) -> None:
        self._names, self._measure = names, measure

    @functools.cached_property
    def _found(self) -> Mapping[str, NDArray[np.float64]]:
        return self._measure()

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@dataclass(frozen=True, repr=False, eq=False)
class Result:
    """What `normalize` returns. Arrays are as they were computed; nothing is rounded for display.

    Parameters
    ----------
    plan : Plan
        Every choice that was made: axes, groups, eps and the rest.
    input : ndarray
        The tensor that was normalized: the caller's own array where it was one. `check` and `warnings` read it.
    statistics : mapping of str to ndarray of float64
        By the names of `Norm.statistics`: of the shape `Grid.stats_shape`, in the unit of the input, its square
        (`var`, `ms`) or its inverse (`rstd`).
    inputs : Inputs
        Gamma, beta, running statistics and which values count.
    effort : Effort
        Threads and progress of what is calculated later: the normalized tensor, and the check.
    counts : ndarray of float64 or None
        How many values of each group count, of `Grid.stats_shape`; None where all do, or nothing was measured.
    give : callable
        Makes of an array what the caller's own was: a tensor of another library, a table.
    """

    plan: Plan
    input: NDArray[Any]
    statistics: Mapping[str, NDArray[np.float64]]
    inputs: Inputs = NO_INPUTS
    effort: Effort = DEFAULT_EFFORT
    counts: NDArray[np.float64] | None = None
    give: Give = keep

    @property
    def normalized(self) -> Any:
        """The normalized tensor, of the input's shape, after gamma and beta if they are given.

        A NumPy array, or what `x` was: a tensor of PyTorch or JAX, a table with the same index and columns.
        """
        return self.give(self._y)

    @property
    def standardized(self) -> Any:
        """x̂ in the output's dtype: the normalized tensor without gamma and beta; as `normalized` otherwise."""
        return self.give(self._x_hat)

    @property
    def is_normalized(self) -> bool:
        """Whether the normalized tensor was calculated already, and is kept."""
        return "_y" in vars(self)

    @functools.cached_property
    def _y(self) -> NDArray[Any]:
        return run(self.plan, self.input, self.inputs, effort=self.effort)[0]

    @functools.cached_property
    def _x_hat(self) -> NDArray[Any]:
        if not self.inputs.scales:
            return self._y
        bare = self.inputs._replace(gamma=None, beta=None)
        return run(self.plan, self.input, bare, effort=self.effort)[0]

    @property
    def gamma(self) -> NDArray[Any] | None:
        """The scale, of the shape `ParameterShapes.shape`; None without one."""
        return self.inputs.gamma

    @property
    def beta(self) -> NDArray[Any] | None:
        """The shift, likewise."""
        return self.inputs.beta

    @property
    def running(self) -> Given | None:
        """The running statistics that it was normalized with; None where each group has its own."""
        return self.inputs.given

    @property
    def selection(self) -> Selection | None:
        """Which values count; None if all do."""
        return self.inputs.selection

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of `normalized`."""
        return self.plan.choose_output_dtype(self.input.dtype)

    def __repr__(self) -> str:
        groups = f"{self.group_count} × {self.group_size}"
        return f"<Result: {self.plan.norm.name} of {self.plan.grid.shape}, groups {groups}, {self.dtype}>"

    mean = Statistic("The mean of each group.")
    var = Statistic("The variance of each group, with the divisor n − ddof.")
    std = Statistic("The square root of `var`.")
    rstd = Statistic("One over the divisor, eps included.")
    ms = Statistic("The mean square of each group, for norms that do not centre.")
    rms = Statistic("The square root of `ms`.")
    norm = Statistic("The ℓp length of each group.")
    min = Statistic("The least value of each group.")
    max = Statistic("The largest value of each group.")
    range = Statistic("`max` − `min`.")
    middle = Statistic("Halfway between `min` and `max`.")
    half_range = Statistic("Half of `max` − `min`.")
    median = Statistic("The median of each group: of an even count, halfway between the middle two values.")
    q1 = Statistic("The first quartile of each group, interpolated linearly as `numpy.percentile` does.")
    q3 = Statistic("The third quartile of each group, likewise.")
    iqr = Statistic("The interquartile range, `q3` − `q1`.")
    q_low = Statistic("The lower quantile of each group, where others than quartiles were chosen; likewise.")
    q_high = Statistic("The upper quantile of each group, likewise.")
    q_range = Statistic("Their range, `q_high` − `q_low`.")

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes that were reduced."""
        return self.plan.grid.axes

    @property
    def kept(self) -> tuple[int, ...]:
        """The axes over which there is one statistic each."""
        return self.plan.grid.kept

    @property
    def group_count(self) -> int:
        """The number of groups."""
        return self.plan.grid.group_count

    @property
    def group_size(self) -> int:
        """The number of values in each group."""
        return self.plan.grid.group_size

    @functools.cached_property
    def degeneracies(self) -> tuple[Degeneracy, ...]:
        """The degenerate kinds of groups in the input, each once."""
        bounded = self.running is None and not self.inputs.scales and self.plan.norm.divisor.bounded
        output = None if bounded and not self._carries_others else self._y
        return find_all_degeneracies(self.plan, self.input, self.statistics, output, self.inputs, self.counts)

    @property
    def _carries_others(self) -> bool:
        """Whether values that do not count, of which nothing is promised, may not fit the output's dtype."""
        if self.selection is None or self.selection.fill in (Fill.ZERO, Fill.NAN):
            return False
        return self.selection.fill is Fill.NORMALIZE or not np.can_cast(self.input.dtype, self.dtype)

    @property
    def warnings(self) -> tuple[str, ...]:
        """One line for each kind of degenerate group."""
        return tuple(str(degeneracy) for degeneracy in self.degeneracies)

    @functools.cached_property
    def check(self) -> tuple[Check, ...]:
        """The normalized values measured again, and held against what the norm promises.

        Empty for norms that promise nothing of the kind (a sliding window), for tensors without values, and for
        running statistics.
        """
        if self.running is not None:
            return ()
        if self.selection is None:
            return check_promises(self.plan, self.statistics, self._x_hat, self.effort, None)
        inputs, selection = Inputs(selection=self.selection._replace(fill=Fill.NAN)), Selection(omits_nan=True)
        values = run(self.plan, self.input, inputs, effort=self.effort)[0]
        return check_promises(self.plan, self.statistics, values, self.effort, selection)

    def settle(self, *, check: bool) -> None:
        """Find the warnings (and the check) now, before the files that they are read from are moved.

        Parameters
        ----------
        check : bool
            Whether the check will be asked for.
        """
        _ = self.degeneracies
        if check:
            _ = self.check

    def require_sound(self) -> None:
        """Raise `DegenerateError` if any group is degenerate."""
        if self.degeneracies:
            raise DegenerateError(f"{self.plan.norm.name}: {'; '.join(self.warnings)}")


def normalize(
    x: Any,
    norm: NormName = "bn",
    *,
    axes: AxisSpec | None = None,
    keep: AxisSpec | None = None,
    layout: str | None = None,
    feature_axes: AxisSpec | None = None,
    groups: int | None = None,
    group_order: GroupOrderName | None = None,
    eps: float | None = None,
    eps_mode: EpsModeName | None = None,
    ddof: int | None = None,
    dtype: DTypeLike | None = None,
    gamma: ArrayLike | None = None,
    beta: ArrayLike | None = None,
    p: float | None = None,
    size: int | None = None,
    alpha: float | None = None,
    exponent: float | None = None,
    k: float | None = None,
    range: tuple[float, float] | None = None,
    quantiles: tuple[float, float] | None = None,
    no_mean: bool | None = None,
    no_scale: bool | None = None,
    like: FrameworkName | None = None,
    residual: ArrayLike | None = None,
    running_mean: ArrayLike | None = None,
    running_var: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    lengths: Sequence[int] | None = None,
    nan: NanName | None = None,
    fill: FillName | None = None,
    out: NDArray[Any] | None = None,
    threads: int | None = None,
    statistics: bool = True,
) -> Result:
    """Normalize a tensor.

    Parameters
    ----------
    x : array_like
        Real numbers: integers are what they are, booleans count as 0 and 1. Also a tensor of PyTorch, JAX or
        another library of the array API, a DataFrame or Series of pandas or polars, a DataArray of xarray.
    norm : str
        A name of the table `normcli.NORMS`, or an alias of one.
    axes, keep : str, int or sequence of both, optional
        The axes to reduce, or those to keep, by number or by letter of the layout. The default is the norm's.
    layout : str, optional
        One letter per axis, or words: `time,lat,lon`. Default: NC, NCL, NCHW, NCDHW by rank; of xarray its
        dimensions.
    feature_axes : str, int or sequence of both, optional
        The axes that gamma and beta lie along, instead of the norm's.
    groups : int, optional
        The number of channel groups (`gn`); −1 for one for each channel.
    group_order : {"contiguous", "interleaved"}, optional
        Group g holds neighbouring channels, or g, g + groups, g + 2·groups and so on.
    eps : float, optional
    eps_mode : {"inside", "outside"}, optional
        √(var + eps) or √var + eps.
    ddof : int, optional
        The divisor of the variance is n − ddof; 0 by default.
    dtype : {"float16", "bfloat16", "float32", "float64"}, optional
        Of the output. Default: the input's, or float64 for integers.
    gamma, beta : array_like, optional
        y = gamma · x̂ + beta, of the shape that the table of norms names, or one that broadcasts to it.
    p : float, optional
        Of `lp`: any number, ∞ and −∞ too; 2 by default.
    size, alpha, exponent, k : optional
        Of `lrn`: x / (k + alpha/size · Σx²)^exponent.
    range : tuple of float, optional
        Of `minmax`: from where to where values come to lie; (0, 1) by default.
    quantiles : tuple of float, optional
        Of `robust`: the range between which values are divided by, in per cent; (25, 75) by default.
    no_mean, no_scale : bool, optional
        Of `zscore` and `robust`: leave out the subtraction, or the division.
    like : str, optional
        The framework whose convention is followed where no option says otherwise: `normcli conventions` lists
        them.
    residual : array_like, optional
        Of the shape of `x`: x + residual is normalized, rounded to its dtype first as in frameworks.
    running_mean, running_var : array_like, optional
        Both or neither: normalize with these, as evaluation does, instead of its own statistics. They are of
        the shape (C), of `bn` and `in` alike.
    mask : array_like of bool, optional
        True, or 1, where a value counts; of a shape that broadcasts to that of `x`. The statistics are of what
        counts alone.
    lengths : sequence of int, optional
        For each sample, how many positions along the layout's L, T or S count; the rest is padding.
    nan : {"propagate", "omit", "raise"}, optional
        Whether NaN makes its group's statistics NaN (the default), does not count, or is an error.
    fill : {"pass", "zero", "nan", "normalize"}, optional
        What becomes of values that do not count: they are passed through (the default), replaced, or normalized
        with the statistics of the others, as Keras and Flax do.
    out : ndarray, optional
        Where the normalized tensor goes: C-contiguous, of the shape of `x` and the dtype of the output.
    threads : int, optional
        At most so many; all processors by default. The result is the same to the bit for any.
    statistics : bool, optional
        False if they are not to be kept, but measured again from `x` when they are asked for. Of short groups
        (rows of 4), the memory for them takes longer than the arithmetic.

    Returns
    -------
    Result

    Raises
    ------
    UsageError
        If an option is unknown to the norm, out of range or contradicts another.
    DataError
        If `x`, gamma, beta or running statistics hold no real numbers or do not fit; if a variance is negative.

    Notes
    -----
    Statistics are the exact values, rounded once to float64. Every normalized value is within 0.51 ulp of the
    exact one in the output's dtype (`normcli.numerics`).

    Examples
    --------
    >>> result = normalize([[1, 2, 3, 4], [2, 4, 6, 8]], "ln", eps=0)
    >>> result.mean
    array([2.5, 5. ])
    >>> result.normalized.round(2)
    array([[-1.34, -0.45,  0.45,  1.34],
           [-1.34, -0.45,  0.45,  1.34]])
    """
    options = locals()  # nothing else is bound yet: the arguments by their names
    lazy = find_lazy(x)
    if lazy is not None:
        result: Result = lazy.work.normalize_array(**(options | {"x": lazy.taken}))
        return result
    asked = read_arguments(x, norm, options)
    return calculate(asked.plan, asked.values, asked.inputs, out=out, effort=asked.effort, give=asked.give)


def require_options(function: str, options: Iterable[str], but: Container[str] = ()) -> None:
    """Raise `UsageError` if another function is given an option that is none of `normalize`'s."""
    known = normalize.__kwdefaults__ or {}
    unknown = [name for name in options if name not in known or name in but]
    if unknown:
        raise UsageError(f"{function} has no option {unknown[0]!r}")


def calculate(
    plan: Plan,
    values: NDArray[Any],
    inputs: Inputs = NO_INPUTS,
    *,
    out: NDArray[Any] | None = None,
    effort: Effort = DEFAULT_EFFORT,
    statistics_alone: bool = False,
    give: Give = keep,
) -> Result:
    """Normalize an array by a plan.

    Parameters
    ----------
    plan : Plan
        Made for the shape and dtype of `values`.
    values : ndarray
        Of an integer, boolean or float dtype.
    inputs : Inputs
        Gamma, beta, running statistics and which values count, as `fit_inputs` returns them.
    out
        As in `normalize`.
    effort : Effort
        Threads, and who watches.
    statistics_alone : bool
        Leave the normalized tensor until it is asked for.
    give : callable
        As of `Result`.

    Raises
    ------
    NormError
        As `normalize`.
    """
    require_threads(effort)
    kept = {}
    again = effort._replace(keeps_statistics=True)
    if statistics_alone or inputs.selection is not None:
        effort = again
    if statistics_alone:
        statistics = measure(plan, values, inputs, effort)
    else:
        kept["_y"], statistics = run(plan, values, inputs, out, effort)
    counts = statistics.pop(COUNT, None)
    shown: Mapping[str, NDArray[np.float64]] = statistics
    if not effort.keeps_statistics:
        shown = _Later(plan.norm.statistics, functools.partial(measure, plan, values, inputs, again))
    result = Result(plan, values, shown, inputs, again, counts, give)
    result.__dict__.update(kept)  # where the cached property keeps it
    return result
