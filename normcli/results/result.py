"""The result of a calculation: its statistics, and properties that are calculated on first use."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from normcli.engine.inputs import NO_INPUTS, Inputs, Selection
from normcli.engine.run import run
from normcli.engine.walk import DEFAULT_EFFORT, Effort
from normcli.errors import DegenerateError, MissingStatisticError
from normcli.norms.request import Fill
from normcli.results.arrays import Give, give_back_as_is
from normcli.results.framework_departures import find_all_degeneracies
from normcli.results.promises import Check, check_promises

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from normcli.norms.plan import Plan
    from normcli.numerics.statistics.solution import Given
    from normcli.results.degenerate_groups import Degeneracy


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


@dataclass(frozen=True, repr=False, eq=False)
class Result:
    """The result of `normalize`. Arrays are not rounded for display.

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
    is_finite : bool
        Whether all normalized values are known to be finite; False where they are to be looked at.
    """

    plan: Plan
    input: NDArray[Any]
    statistics: Mapping[str, NDArray[np.float64]]
    inputs: Inputs = NO_INPUTS
    effort: Effort = DEFAULT_EFFORT
    counts: NDArray[np.float64] | None = None
    give: Give = give_back_as_is
    is_finite: bool = False

    @property
    def normalized(self) -> Any:
        """The normalized tensor, of the input's shape, after gamma and beta if they are given.

        A NumPy array, or what `x` was: a tensor of PyTorch or JAX, a table with the same index and columns.
        """
        return self.give(self._y)

    @property
    def standardized(self) -> Any:
        """x̂ in the output's dtype: the normalized tensor without gamma and beta; as `normalized` otherwise.

        It is calculated when it is first asked for, from the array that was given: read it before that changes.
        """
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
        bare = self.inputs._replace(gamma=None, beta=None, gate=None, clip=None)
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
        """The values that count towards statistics; None if all do."""
        return self.inputs.selection

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of `normalized`."""
        return self.plan.choose_output_dtype(self.input.dtype)

    def __repr__(self) -> str:
        groups = f"{self.group_count} × {self.group_size}"
        return f"<Result: {self.plan.norm.name} of {self.plan.grid.shape}, groups {groups}, {self.dtype}>"

    def _repr_html_(self) -> str:
        from importlib import import_module  # of a floor above, which makes answers of results

        html: str = import_module("normcli.library.notebook").show_result(self)
        return html

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
    sigma = Statistic("The largest singular value of each matrix.")

    @property
    def u(self) -> NDArray[np.float64]:
        """For `sn`: the vector u of σ = uᵀXv, of length 1, shape (…, rows): singular, or an estimate.

        Rounded once. The largest number of a singular v is positive. As it was given, where u and v both were.
        NaN of a matrix of zeros, one that is not finite, and one with two largest singular values.
        """
        return self._vectors[0]

    @property
    def v(self) -> NDArray[np.float64]:
        """For `sn`: the vector v of σ = uᵀXv, of length 1, shape (…, columns)."""
        return self._vectors[1]

    @functools.cached_property
    def _vectors(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        self._require_matrices("singular vectors")
        from normcli.engine.sn.passes import find_vectors  # few results are of matrices

        return find_vectors(self.plan, self.input, self.inputs)

    @functools.cached_property
    def largest(self) -> NDArray[np.float64]:
        """For `sn`: the largest singular value, rounded once, also where `sigma` is an estimate."""
        self._require_matrices("largest singular value")
        if self.plan.spec.iteration is None:
            return self.sigma
        from normcli.engine.sn.passes import find_largest

        return find_largest(self.plan, self.input, self.inputs)

    def _require_matrices(self, what: str) -> None:
        if self.plan.spec.rows is None:
            raise MissingStatisticError(f"{self.plan.norm.name} has no {what}")

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
        output = None if self.is_finite or (bounded and not self._carries_others) else self._y
        return find_all_degeneracies(self.plan, self.input, self.statistics, output, self.inputs, self.counts)

    @property
    def _carries_others(self) -> bool:
        """Whether masked values may exceed the output's dtype."""
        if self.selection is None or self.selection.fill in (Fill.ZERO, Fill.NAN):
            return False
        return self.selection.fill is Fill.NORMALIZE or not np.can_cast(self.input.dtype, self.dtype)

    @property
    def warnings(self) -> tuple[str, ...]:
        """One line for each kind of degenerate group."""
        return tuple(str(degeneracy) for degeneracy in self.degeneracies)

    @functools.cached_property
    def check(self) -> tuple[Check, ...]:
        """The normalized values measured again, beside the mean and variance that the norm promises.

        Empty for norms that promise neither (a sliding window), for tensors without values, and for running
        statistics.
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
