"""The result of a calculation: its statistics, and properties that are calculated on first use."""

from __future__ import annotations

import functools
from dataclasses import FrozenInstanceError
from typing import TYPE_CHECKING, Any, ClassVar, overload

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
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from normcli.norms.plan import Plan
    from normcli.numerics.statistics.solution import Given
    from normcli.results.degenerate_groups import Degeneracy


class Statistic:
    """A statistic of each group, by name, which is read as an attribute of `Result` (a descriptor).

    Reading it raises `MissingStatisticError` if the norm has no such statistic.
    """

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


class Result:
    """The result of `normalize`. Arrays are not rounded for display.

    Parameters
    ----------
    plan : Plan
        Every choice that was made: axes, groups, eps and the rest.
    input : ndarray
        The tensor that was normalized, not a copy if the caller gave an array. `check` and `warnings` read it.
    statistics : mapping of str to ndarray of float64
        The statistics by the names in `Norm.statistics`, each of the shape `Grid.stats_shape`, in the unit of
        the input, its square (`var`, `ms`) or its inverse (`rstd`).
    inputs : Inputs
        Gamma, beta, running statistics and the selection of values.
    effort : Effort
        The threads and the observer of progress for what is calculated on first use: the normalized tensor, the
        check.
    counts : ndarray of float64 or None
        The number of values of each group that count, of `Grid.stats_shape`; None if all count, or no
        statistics were measured.
    give : callable
        Converts a NumPy array to the type of the caller's tensor: a tensor of another library, a table.
    is_finite : bool
        Whether all normalized values are known to be finite; if False, `warnings` may have to read them.
    y : ndarray or None
        The normalized tensor; None to calculate it on first use.
    """

    plan: Plan
    input: NDArray[Any]
    statistics: Mapping[str, NDArray[np.float64]]
    inputs: Inputs
    effort: Effort
    counts: NDArray[np.float64] | None
    give: Give
    is_finite: bool

    def __init__(
        self,
        plan: Plan,
        input: NDArray[Any],
        statistics: Mapping[str, NDArray[np.float64]],
        inputs: Inputs = NO_INPUTS,
        effort: Effort = DEFAULT_EFFORT,
        counts: NDArray[np.float64] | None = None,
        give: Give = give_back_as_is,
        *,
        is_finite: bool = False,
        y: NDArray[Any] | None = None,
    ) -> None:
        held = self.__dict__  # as `__setattr__` refuses; a frozen dataclass takes twice as long
        held["plan"], held["input"], held["statistics"], held["inputs"] = plan, input, statistics, inputs
        held["effort"], held["counts"], held["give"], held["is_finite"] = effort, counts, give, is_finite
        if y is not None:
            held["_y"] = y  # where the cached property keeps it

    def __setattr__(self, name: str, value: Any) -> None:
        """Raise `FrozenInstanceError`: results do not change."""
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    @property
    def normalized(self) -> Any:
        """The normalized tensor, of the input's shape, after gamma and beta if they are given.

        A NumPy array, or of the type of `x`: a tensor of PyTorch or JAX, a table with the same columns.
        """
        return self.give(self._y)

    @property
    def standardized(self) -> Any:
        """x̂, the normalized tensor without gamma, beta, gate and bounds, in the type of `normalized`.

        It is calculated on first use, from the array `input`, which must still hold the same values then.
        """
        return self.give(self._x_hat)

    @property
    def is_normalized(self) -> bool:
        """Whether the normalized tensor is calculated already; otherwise it is calculated on first use."""
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
        """The shift, of the shape `ParameterShapes.shape`; None without one."""
        return self.inputs.beta

    @property
    def running(self) -> Given | None:
        """The running statistics with which x was normalized; None if each group has its own statistics."""
        return self.inputs.given

    @property
    def selection(self) -> Selection | None:
        """The selection of values from which statistics are taken; None for all values."""
        return self.inputs.selection

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of `normalized`."""
        return self.plan.choose_output_dtype(self.input.dtype)

    def __repr__(self) -> str:
        groups = f"{self.group_count} × {self.group_size}"
        return f"<Result: {self.plan.norm.name} of {self.plan.grid.shape}, groups {groups}, {self.dtype}>"

    show_html: ClassVar[Callable[[Result], str] | None] = None
    """Returns the tables of a result as HTML; set by `normcli.library`, which knows the writers."""

    def _repr_html_(self) -> str | None:
        show = type(self).show_html
        return None if show is None else show(self)

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
        """For `sn`: the vector u in σ = uᵀXv, of length 1 and shape (…, rows), rounded once.

        It is the left singular vector, or with power iterations the last u of them; if u and v were both given,
        it is the given u. The signs of singular vectors are chosen so that the number of largest magnitude in v
        is positive. NaN for a matrix of zeros, one that is not finite, and one with two equal largest singular
        values.

        Raises `MissingStatisticError` for other norms.
        """
        return self._vectors[0]

    @property
    def v(self) -> NDArray[np.float64]:
        """For `sn`: the vector v in σ = uᵀXv, of length 1 and shape (…, columns); NaN where `u` is.

        Raises `MissingStatisticError` for other norms.
        """
        return self._vectors[1]

    @functools.cached_property
    def _vectors(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        self._require_matrices("singular vectors")
        from normcli.engine.sn.passes import find_vectors  # few results are of matrices

        return find_vectors(self.plan, self.input, self.inputs)

    @functools.cached_property
    def largest(self) -> NDArray[np.float64]:
        """For `sn`: the largest singular value, rounded once; `sigma` may be an estimate of it.

        Raises `MissingStatisticError` for other norms.
        """
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
        """The axes that were not reduced: each index along them has statistics of its own."""
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
        """The kinds of degenerate groups, each with its first group and their number; empty if there are none.

        For a norm with `like`, this includes cases in which that framework's own result differs.
        """
        bounded = self.running is None and not self.inputs.scales and self.plan.norm.divisor.bounded
        output = None if self.is_finite or (bounded and not self._carries_others) else self._y
        return find_all_degeneracies(self.plan, self.input, self.statistics, output, self.inputs, self.counts)

    @property
    def _carries_others(self) -> bool:
        """Whether the output has values that do not count and may be too large for its dtype."""
        if self.selection is None or self.selection.fill in (Fill.ZERO, Fill.NAN):
            return False
        return self.selection.fill is Fill.NORMALIZE or not np.can_cast(self.input.dtype, self.dtype)

    @property
    def warnings(self) -> tuple[str, ...]:
        """One line for each kind of degenerate group; empty if no group is degenerate."""
        return tuple(str(degeneracy) for degeneracy in self.degeneracies)

    @functools.cached_property
    def check(self) -> tuple[Check, ...]:
        """Each statistic that the norm fixes (mean 0, variance 1), measured on the normalized values.

        Empty for running statistics, for norms that fix none (sliding windows), for `lp` with p < 1, and for
        tensors without values.
        """
        if self.running is not None:
            return ()
        if self.selection is None:
            return check_promises(self.plan, self.statistics, self._x_hat, self.effort, None)
        inputs, selection = Inputs(selection=self.selection._replace(fill=Fill.NAN)), Selection(omits_nan=True)
        values = run(self.plan, self.input, inputs, effort=self.effort)[0]
        return check_promises(self.plan, self.statistics, values, self.effort, selection)

    def settle(self, *, check: bool) -> None:
        """Calculate the warnings now, with `check` True also the check; the tensors' files may move later."""
        _ = self.degeneracies
        if check:
            _ = self.check

    def require_sound(self) -> None:
        """Raise `DegenerateError` if any group is degenerate."""
        if self.degeneracies:
            raise DegenerateError(f"{self.plan.norm.name}: {'; '.join(self.warnings)}")
