"""Degenerate groups: empty, constant or not finite. Each kind is found, named and counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.dtypes import is_float
from normcli.engine.inputs import NO_INPUTS, Inputs
from normcli.norms.grid import ONLY_GROUP
from normcli.norms.request import Fill
from normcli.norms.rules import Centre, ZeroRule
from normcli.printable import format_count
from normcli.tensors.pieces import find_places
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from normcli.dtypes import Floats
    from normcli.engine.inputs import Selection
    from normcli.norms.plan import Plan

    Test = Callable[..., NDArray[np.bool_]]
    Statistics = Mapping[str, Floats]
    GroupNumbers = NDArray[np.intp]


class Degeneracy(NamedTuple):
    """One kind of degenerate group, with the first group of the kind.

    Parameters
    ----------
    kind : str
        `empty`, `masked` (all values are masked), `single`, `constant`, `zero`, `nan`, `infinite`, `overflow`
        (of a statistic), `output` (normalized values that are not finite in the output's dtype) or `departure`
        (the framework's own result differs from its convention).
    first_group : str or None
        The name of the first group of the kind; None if the finding is about the whole tensor.
    group_count : int
        The number of groups of the kind.
    consequence : str
        The end of the warning, which follows the group's name: what is special about it, and the result.
    """

    kind: str
    first_group: str | None
    group_count: int
    consequence: str

    def __str__(self) -> str:
        if self.first_group is None:
            return self.consequence
        others = self.group_count - 1
        more = f" (and {format_count(others, 'more group')})" if others else ""
        name = "the only group" if self.first_group == ONLY_GROUP else f"group {self.first_group}"
        return f"{name}{more} {self.consequence}"


def find_degeneracies(
    plan: Plan,
    values: NDArray[Any],
    statistics: Statistics,
    normalized: NDArray[Any] | None,
    inputs: Inputs = NO_INPUTS,
    counts: Floats | None = None,
) -> tuple[Degeneracy, ...]:
    """Return the kinds of degenerate groups that a result has, in a fixed order.

    Parameters
    ----------
    plan : Plan
    values : ndarray
        The input.
    statistics : mapping of str to ndarray
        The statistics that were used, of `Grid.stats_shape`: each group's own, or the running ones.
    normalized : ndarray or None
        The output, which is searched for values that are not finite; None: it is not searched.
    inputs : Inputs
        The running statistics, if the tensor was normalized with them, and the selection of values that count.
    counts : ndarray or None
        The number of values of each group that count, of `Grid.stats_shape`; None if all do.

    Notes
    -----
    Most kinds follow from the statistics; the values are read only where the statistics leave a doubt.
    """
    search = _Search(plan, values, inputs.selection)
    with np.errstate(invalid="ignore"):  # a signalling NaN is one like any other
        if inputs.given is None:
            search.judge_own_statistics(statistics, counts, normalized)
        else:
            search.judge_running_statistics(statistics, normalized)
    return tuple(search.found)


_NO_GROUPS: GroupNumbers = np.zeros(0, dtype=np.intp)


class _Search:
    """A search for degenerate groups.

    Parameters
    ----------
    plan : Plan
    values : ndarray
        The input.
    selection : Selection or None
        The values that count; None for all.

    Attributes
    ----------
    found : list of Degeneracy
        The kinds that were found.
    known : ndarray of int
        The numbers of groups that are not reported again, in ascending order.
    """

    def __init__(self, plan: Plan, values: NDArray[Any], selection: Selection | None) -> None:
        self.plan, self.values, self.selection = plan, values, selection
        self.found: list[Degeneracy] = []
        self.known = _NO_GROUPS

    def judge_running_statistics(self, statistics: Statistics, normalized: NDArray[Any] | None) -> None:
        """Add the kinds of degenerate groups to `found`, for a tensor normalized with running statistics.

        Parameters
        ----------
        statistics : mapping of str to ndarray
            The running statistics: `mean`, `var` and `rstd`.
        normalized : ndarray or None
            The output; None: it is not searched.
        """
        if not self.values.size:
            shape = self.plan.grid.shape
            self._add("empty", None, 0, f"the tensor {shape} holds no values: nothing to normalize")
            return
        not_finite = _find_groups(_is_not_finite, statistics["mean"], statistics["var"])
        self._report("nan", not_finite, "has running statistics that are not finite")
        zero = _find_groups(np.isinf, statistics["rstd"])
        self._report(
            "zero", zero, "has the running variance 0 and no eps: its normalized values are infinite or NaN"
        )
        if is_float(self.values.dtype):
            holders = self._find_holders(self.values, _is_not_finite, self.selection)
            self._report("nan", holders, "holds NaN or an infinity, which stays what it is")
        self._judge_output(normalized)

    def judge_own_statistics(
        self, statistics: Statistics, counts: Floats | None, normalized: NDArray[Any] | None
    ) -> None:
        """Add the kinds of degenerate groups to `found`, for groups normalized with their own statistics.

        Parameters
        ----------
        statistics : mapping of str to ndarray
            The statistics of each group.
        counts : ndarray or None
            The number of values of each group that count; None without a mask.
        normalized : ndarray or None
            The output; None: it is not searched.
        """
        plan, grid, divisor = self.plan, self.plan.grid, self.plan.norm.divisor
        windowed = plan.groups_overlap
        flattens = divisor.divides and (plan.norm.centre is not Centre.NOTHING or plan.norm.is_partial)
        if grid.group_count == 0:
            self._add("empty", None, 0, f"the tensor {grid.shape} has no groups: nothing to normalize")
            return
        if grid.group_size == 0:
            self._add("empty", 0, grid.group_count, f"holds no values: {divisor.words_for_empty}")
            return
        suspect = _find_groups(_is_not_finite, *(statistics[name] for name in divisor.sizes))
        if counts is not None and not windowed:  # a window without values is no fault: its sum is 0
            masked = _find_groups(_is_zero, counts)
            if self._leaves_out(masked):
                self.known = _unite(self.known, masked)
            else:
                self._report("masked", masked, f"has no value that counts: {divisor.words_for_empty}")
            suspect = np.setdiff1d(suspect, masked, assume_unique=True)
        # Statistics may be finite beside values that are not: a count (p = 0), or quantiles.
        if is_float(self.values.dtype) and (suspect.size or plan.spec.p == 0 or divisor.resists_outliers):
            nan, infinite = (self._find_holders(self.values, test) for test in (np.isnan, np.isinf))
            if counts is not None:  # values that do not count may be anything
                nan, infinite = (np.intersect1d(held, suspect, assume_unique=True) for held in (nan, infinite))
            unlike = f", though {plan.spec.like} omits it" if plan.spec.omits_nan else ""
            self._report("nan", nan, f"holds NaN: its statistics and values are NaN{unlike}", once=False)
            self._report(
                "infinite", infinite, "holds an infinity: its statistics or values are infinite or NaN"
            )
            self.known = _unite(self.known, nan)
        few = max(1, plan.spec.ddof)
        if flattens and counts is not None:
            self._report("single", _find_groups(lambda n: n <= few, counts), self._describe_few(" that counts"))
        elif flattens and grid.group_size <= few:
            self._add("single", 0, grid.group_count, self._describe_few(""))
            return
        if divisor.spread is not None and divisor.divides:
            self._judge_flat_groups(_find_groups(_is_zero, statistics[divisor.spread]))
            self._judge_nearly_flat_groups(statistics, grid.group_size if counts is None else counts)
        elif windowed and self.known.size:
            return  # neighbouring windows hold the same value that is not finite
        self._report("overflow", suspect, "is beyond float64: its statistics are not finite")
        self._judge_output(normalized)

    def _leaves_out(self, masked: GroupNumbers) -> bool:
        """Whether groups without a value that counts are what a mask asks for, as of padded tokens.

        Not if NaN was omitted, if these groups are normalized nevertheless, or if no group has a value.
        """
        asked = self.selection
        leaves = asked is not None and not asked.omits_nan and asked.fill is not Fill.NORMALIZE
        return leaves and masked.size < self.plan.grid.group_count

    @property
    def _makes_nan(self) -> bool:
        """Whether a group whose divisor is 0 becomes NaN; False: it is divided by eps, or by 1."""
        return self.plan.spec.zero_rule is ZeroRule.NAN and not self.plan.spec.eps

    def _judge_flat_groups(self, flat: GroupNumbers) -> None:
        """Add groups whose deviation or length is 0 (`flat` has their numbers) to `found`, by kinds."""
        norm, spec, is_nan = self.plan.norm, self.plan.spec, self._makes_nan
        if spec.iteration is not None and flat.size:  # u and v may be orthogonal to the columns and rows of X
            there = self._find_holders(self.values, _is_not_zero, self.selection)
            values = "its normalized values are infinite or NaN" if is_nan else "it is divided by 1"
            missed = np.intersect1d(flat, there, assume_unique=True)
            self._report("zero", missed, f"is not all zeros, but its σ by these vectors is 0: {values}")
        size = norm.divisor.size
        if norm.divisor.resists_outliers or norm.is_partial:
            values = "NaN" if is_nan else norm.format_zero(spec.zero_rule)
            kind, consequence = "constant", f"has the {size} 0: its normalized values are {values}"
        elif norm.centre is not Centre.NOTHING:
            values = "NaN" if is_nan else "0"
            kind, consequence = "constant", f"is constant: its {size} is 0 and its normalized values {values}"
        elif spec.p is not None and spec.p < 0.0:
            divided = f"its values are divided by {'eps' if spec.eps else '1'}"
            holders = self._find_holders(self.values, _is_zero, self.selection)
            tiny = np.setdiff1d(flat, holders, assume_unique=True)
            self._report("zero", tiny, f"has a {size} too small for float64: {divided}")
            flat = np.intersect1d(flat, holders, assume_unique=True)
            kind, consequence = "zero", f"holds a 0: its {size} is 0 and {divided}"
        else:
            values = "its normalized values are NaN" if is_nan else "so are its normalized values"
            kind, consequence = "zero", f"is all zeros: {values}"
        self._report(kind, flat, consequence, once=False)

    def _judge_nearly_flat_groups(self, statistics: Statistics, counts: Any) -> None:
        """Add groups whose divisor counts as 0 by the framework's `flat_rule` to `found`; without a rule, none.

        `counts` is the number of values of a group: one number for all groups, or one for each.
        """
        norm, spec = self.plan.norm, self.plan.spec
        if spec.flat_rule is None:
            return
        from normcli.numerics.statistics.divisor import find_flat

        flat = np.flatnonzero(find_flat(self.plan, statistics, counts))
        result = "its normalized values are NaN" if spec.zero_rule is ZeroRule.NAN else "it is divided by 1"
        size = f"{norm.divisor.size} {spec.flat_rule.value}"
        self._report("constant", flat, f"has a {size}, which counts as 0: {result}", once=False)

    def _judge_output(self, normalized: NDArray[Any] | None) -> None:
        """Add groups with normalized values that are not finite to `found`; do nothing for None."""
        if normalized is not None:
            holders = self._find_holders(normalized, _is_not_finite, self.selection)
            self._report("output", holders, f"has normalized values that are not finite in {normalized.dtype}")

    def _describe_few(self, which: str) -> str:
        """Return words on groups of one value, or with a ddof on groups of at most ddof values.

        `which` is put after "value": "" or words such as " that counts".
        """
        ddof, size = self.plan.spec.ddof, self.plan.norm.divisor.size
        if not ddof:
            value = "NaN" if self._makes_nan else "0" if self.plan.norm.centre.statistic else "x"
            return f"holds a single value{which}: its {size} is 0 and its normalized value {value}"
        held = (
            "no more values that count than that" if which else format_count(self.plan.grid.group_size, "value")
        )
        return f"has {held} against ddof {ddof}: its variance is NaN"

    def _report(self, kind: str, groups: GroupNumbers, consequence: str, *, once: bool = True) -> None:
        """Add a kind of degenerate groups to `found`, without the groups in `known`.

        Nothing is added if no group is left.

        Parameters
        ----------
        kind : str
        groups : ndarray of int
            The numbers of the groups, ascending.
        consequence : str
            The end of the warning, which follows the group's name (see `Degeneracy`).
        once : bool
            True: the groups are added to `known`, so that no later kind names them again.
        """
        fresh = np.setdiff1d(groups, self.known, assume_unique=True)
        if fresh.size:
            self._add(kind, int(fresh[0]), fresh.size, consequence)
        if once:
            self.known = _unite(self.known, fresh)

    def _add(self, kind: str, first: int | None, count: int, consequence: str) -> None:
        """Add a kind to `found`.

        `first` is the number of its first group, None if the finding is about the whole tensor; `count` is the
        number of its groups.
        """
        name = None if first is None else self.plan.grid.group_name(first)
        self.found.append(Degeneracy(kind, name, count, consequence))

    def _find_holders(
        self, tested: NDArray[Any], test: Test, selection: Selection | None = None
    ) -> GroupNumbers:
        """Return the numbers of the groups that hold a value for which a test is True, in ascending order.

        `tested` has the tensor's shape. With a selection, a value that does not count is passed over if it is
        replaced by NaN or its input is not finite.
        """
        shape, found = self.plan.grid.shape or (1,), [_NO_GROUPS]
        for numbers in find_places(test, tested):
            if numbers.size:
                places = np.unravel_index(numbers, shape)
                if selection is not None:
                    reported = selection.find_reported(self.values.reshape(shape), places)
                    places = tuple(index[reported] for index in places)
                found.append(_unite(self.plan.grid.locate_groups(places)))
        return _unite(*found)


def _find_groups(test: Test, *statistics: Floats) -> GroupNumbers:
    """Return the numbers of the groups for whose statistics a test is True, in ascending order."""
    return np.concatenate([_NO_GROUPS, *find_places(test, *statistics)])


def _is_not_zero(values: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray(values != 0.0)


def _is_zero(values: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray(values == 0.0)


def _is_not_finite(*arrays: NDArray[Any]) -> NDArray[np.bool_]:
    """Return, for each index, whether one of the arrays is not finite there."""
    return np.asarray(~np.logical_and.reduce([np.isfinite(values) for values in arrays]))


def _unite(*numbers: GroupNumbers) -> GroupNumbers:
    """Return all numbers in ascending order, each once; `numpy.union1d` takes 8 ms to import masked arrays."""
    ordered: GroupNumbers = np.sort(np.concatenate(numbers))
    fresh = np.ones(ordered.shape, dtype=bool)
    fresh[1:] = ordered[1:] != ordered[:-1]
    unique: GroupNumbers = ordered[fresh]
    return unique
