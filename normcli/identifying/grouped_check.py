"""Checks of tables whose rows are normalized group by group, and the diagnosis of one that differs."""

from __future__ import annotations

import contextlib
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from normcli.checking.check import NORMALIZED, Checked, check
from normcli.checking.half_precision import find_common_half
from normcli.checking.tally import Comparison, GroupTally
from normcli.checking.ulp import choose_counting_dtype
from normcli.errors import DataError, NormError
from normcli.fitting.by_column import RowGroups, find_groups, number_groups_of
from normcli.fitting.fit import Policy, fit
from normcli.fitting.statistics import find_few, find_varying, round_stats, warn
from normcli.fitting.use import Use, use_stats
from normcli.identifying.faults.open_case import AskedNorm
from normcli.identifying.models.evidence import COMMON_EPS
from normcli.identifying.question import Diagnosis, Kind
from normcli.identifying.words.request_phrasing import diagnose_actual
from normcli.norms.conventions import list_frameworks
from normcli.norms.plan import make_plan
from normcli.norms.rules import Centre, EpsMode
from normcli.printable import format_count
from normcli.results.given_inputs import SelectionRequest, fit_inputs
from normcli.tensors.many import Named
from normcli.tensors.mapped import fetch
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from normcli.checking.ulp import Tolerance
    from normcli.engine.walk import Effort
    from normcli.fitting.statistics import Stats
    from normcli.norms.plan import Plan
    from normcli.norms.request import Request
    from normcli.tensors.tensor import Tensor


class GroupedCheck(NamedTuple):
    """The result of a check of grouped rows.

    Parameters
    ----------
    stats : Stats
        The exact statistics of each group and column.
    groups : RowGroups
        The labels of the groups, and the group of each row.
    checked : Checked
        The comparison of all values but those of groups that are not judged, since they have no more rows than
        ddof; its groups are counted row group by row group, with the columns of each in turn.
    warnings : tuple of str
        Warnings on degenerate groups, and on groups that are not judged.
    unjudged : tuple of int
        The number of groups that are not judged, and of their values.
    """

    stats: Stats
    groups: RowGroups
    checked: Checked
    warnings: tuple[str, ...]
    unjudged: tuple[int, int]


_MOST_TRIED = 8
"""The most groups that another request has to explain before the whole table is compared with it."""


_MOST_ROWS, _NEAR = 1 << 20, 1e-6
"""Rows in which one divisor of all groups is looked for, and how near a known one is to it, as a part of it."""


def _list_other_requests(plan: Plan, request: Request) -> Iterator[tuple[str, Request]]:
    """Yield the requests that a table may be of instead, the likeliest first, each with its options."""
    ddof, eps, mode = plan.spec.ddof or 0, plan.spec.eps or 0.0, plan.spec.eps_mode or EpsMode.INSIDE
    yield f"--ddof {1 - ddof}", request._replace(ddof=1 - ddof)
    for like in list_frameworks(plan.norm.name):
        yield f"--like {like}", request._replace(like=like, eps=None, ddof=None)
    modes = EpsMode.INSIDE, EpsMode.OUTSIDE
    for other_ddof, other_eps, other_mode in itertools.product((ddof, 1 - ddof), (0.0, *COMMON_EPS), modes):
        changed = {
            f"--eps {other_eps:g}": other_eps != eps,
            f"--eps-mode {other_mode}": other_eps > 0.0 and other_mode is not mode,
            f"--ddof {other_ddof}": other_ddof != ddof,
        }
        options = " ".join(option for option, is_other in changed.items() if is_other)
        yield options, request._replace(eps=other_eps, eps_mode=other_mode, ddof=other_ddof)


class GroupedTable(NamedTuple):
    """A table, and the actual table to check, normalized group by group.

    Parameters
    ----------
    tensor : Tensor
        The input, with the columns that group its rows.
    actual : Tensor
        The actual table, of the input's shape, with the columns that group its rows if it has them.
    affine : mapping of str to ndarray or None
        Gamma and beta, as given.
    nan : {"propagate", "omit", "raise"}
    tolerate : callable
        Returns the tolerance for values of a dtype.
    effort : Effort
        Threads and memory; the result does not depend on it.
    """

    tensor: Tensor
    actual: Tensor
    affine: Mapping[str, NDArray[Any] | None]
    nan: str
    tolerate: Callable[[np.dtype[Any]], Tolerance]
    effort: Effort

    def compare(self, request: Request) -> GroupedCheck:
        """Compare the actual table with the exact one, whose rows are normalized by their group's statistics.

        Raises
        ------
        NormError
            If `fit` cannot make statistics of the table, `tolerate` refuses a dtype, or no group can be judged.
        """
        tensor, values, width = self.tensor, self.tensor.values, self.tensor.values.shape[1]
        stats = fit(request, [Named(tensor.source, lambda _: tensor)], Policy(self.nan), self.effort).stats
        use = Use(stats, self.affine.get("gamma"), self.affine.get("beta"), dtype="float64")
        plan = use.plan(tensor.source, values)
        expected, _ = use_stats(use, plan, tensor, None, self.effort, inverts=False)
        saved = None if request.dtype is not None else find_common_half((values,), self.actual.values)
        counted = np.dtype(saved or request.dtype or self.actual.values.dtype)
        groups = find_groups(tensor, stats.subject)
        found = Comparison(self.tolerate(choose_counting_dtype(counted)))
        found.groups = tally = GroupTally((len(groups.labels) * width,))
        few, warnings, left_out = find_few(stats), warn(stats), 0
        with np.errstate(all="ignore"):
            for rows, places in groups.iterate_rows(expected):
                theirs, exact = (fetch(part[rows]).reshape(-1) for part in (self.actual.values, expected))
                numbers = number_groups_of(places, width)
                judged = np.flatnonzero(~(few[numbers] & np.isnan(exact)))
                here = Comparison(found.tolerance)
                tally.add_each(numbers[judged], here.compare(theirs[judged], exact[judged], 0))
                if here.worst is not None:
                    place = rows.start * width + int(judged[here.worst.place])
                    here.worst = here.worst._replace(place=place)
                found.merge(here)
                left_out += exact.size - judged.size
        if left_out and not found.compared:
            raise DataError(f"{tensor.source}: no group has more values than ddof: nothing can be judged")
        count = int(few.sum()) if left_out else 0
        if count:
            warnings += (f"not judged: {format_count(count, 'group')} of no more values than ddof",)
        checked = Checked({NORMALIZED: found}, {}, saved=saved)
        return GroupedCheck(stats, groups, checked, warnings, (count, left_out))

    def diagnose(self, request: Request, found: GroupedCheck) -> Diagnosis | None:
        """Return the diagnosis of a table that differs; None without findings.

        Tried are rows in another order, no groups, another ddof or framework, and the faults of a single group.
        """
        norm = found.stats.subject.request.norm
        order = self._find_other_order(found)
        if order is not None:
            cause = f"{norm} differs: rows are in another order"
            return Diagnosis(Kind.NORM, cause, (order,), remedy="put the rows into the order of the input")
        if self._judge(request)[-1].ok:
            cause = f"{norm} differs: the rows of all groups were normalized together"
            remedy = "normalize the rows of each group by its own statistics"
            return Diagnosis(Kind.NORM, cause, remedy=remedy)
        tally = found.checked.comparisons[NORMALIZED].groups
        assert tally is not None
        differing = [each.group for each in tally.find_worst(tally.count())]
        varies = find_varying(found.stats.sums) & ~find_few(found.stats)
        places, width = found.groups.places[fetch(found.groups.met)], self.tensor.values.shape[1]
        tried = [places == group // width for group in differing[:_MOST_TRIED]]
        for option, other in _list_other_requests(found.stats.subject.plan(1), request):
            with contextlib.suppress(NormError):
                if all(self._judge(other, some)[-1].ok for some in tried) and self.compare(other).checked.ok:
                    cause = f"{norm} differs: it is that of {option}"
                    evidence = ("every group agrees with that",)
                    return Diagnosis(Kind.NORM, cause, evidence, remedy=f"normcli {norm} … {option}")
        common = self._find_common_divisor(found)
        if common is not None:
            return common
        worst = next((group for group in differing if varies[group]), differing[0])
        told = diagnose_actual(*self._judge(request, places == worst // width))
        name, count = found.stats.subject.name_group(worst), len(differing)
        rows = f"of the rows of {name}, counted by themselves"
        if told is None or count >= np.count_nonzero(varies):
            return None if told is None else told._replace(evidence=(rows, *told.evidence))
        where = f"in group {name} alone"
        if count > 1:
            where = f"in group {name}, one of {count} of {varies.size} that differ"
        cause = f"{told.cause}; {where}"
        return told._replace(cause=cause, evidence=(rows, *told.evidence), remedy=None, next_step=None)

    @np.errstate(all="ignore")
    def _find_common_divisor(self, found: GroupedCheck) -> Diagnosis | None:
        """Return the diagnosis of rows less their group's mean over one divisor of all rows, or None."""
        norm, plan = found.stats.subject.request.norm, found.stats.subject.plan(1)
        is_open = all(values is None for values in self.affine.values())
        if not (is_open and plan.norm.divisor.divides and plan.norm.centre is Centre.MEAN):
            return None
        some = fetch(found.groups.met)[:_MOST_ROWS]
        x, y = (
            fetch(part[: len(some)]).astype(np.float64) for part in (self.tensor.values, self.actual.values)
        )
        means = round_stats(found.stats).fields["mean"].reshape(-1, x.shape[1])
        centred = x - means[found.groups.places[some]]
        divisors = (centred**2).sum(0) / (centred * y).sum(0)
        compared = Comparison(self.tolerate(choose_counting_dtype(self.actual.values.dtype)))
        compared.compare(y.reshape(-1), (centred / divisors).reshape(-1), 0)
        if not compared.ok or np.allclose(divisors, 1.0, _NEAR):  # they are left as they are
            return None
        known = {
            "it is the standard deviation of all rows": x.std(0),
            "it is the standard deviation of all rows, with ddof 1": x.std(0, ddof=1),
            "it is the standard deviation of all rows about the means of their groups": np.sqrt(
                (centred**2).mean(0)
            ),
        }
        shown = tuple(words for words, values in known.items() if np.allclose(values, divisors, _NEAR))
        cause = f"{norm} differs: one divisor serves all groups, {divisors[0]:.6g}"
        return Diagnosis(
            Kind.FAULT, cause, shown, remedy="divide each group by its own", fault="stats-constant"
        )

    def _find_other_order(self, found: GroupedCheck) -> str | None:
        """Return a sentence on the first row whose group differs in the actual table.

        None if no row's group differs, if the group sizes differ, or if the actual table has no group columns.
        """
        if self.actual.by is None:
            return None
        mine, theirs = found.groups, find_groups(self.actual)
        if mine.labels != theirs.labels:
            return None
        here, there = (groups.places[fetch(groups.met)] for groups in (mine, theirs))
        if (here == there).all() or (np.bincount(here) != np.bincount(there)).any():
            return None
        row = int((here != there).argmax())
        cells = (self.actual.by.names, *(mine.labels[places[row]] for places in (here, there)))
        names, own, other = (", ".join(cell or "" for cell in each) for each in cells)
        return f"row {row + 1} is of {names} {other} in --actual, of {own} in --input"

    def _judge(
        self, request: Request, some: NDArray[np.bool_] | None = None
    ) -> tuple[AskedNorm, NDArray[Any], NDArray[Any], Checked]:
        """Return a check of some rows, or all, as a table without groups: norm, input, actual, comparison."""
        both = self.tensor.values, self.actual.values
        x, theirs = both if some is None else (fetch(part[some]) for part in both)
        plan = make_plan(request, x.shape, x.dtype, self.tensor.columns)
        inputs = fit_inputs(plan, x, self.affine, None, SelectionRequest(nan=self.nan))
        return (
            AskedNorm(plan, inputs),
            x,
            theirs,
            check(plan, x, {NORMALIZED: theirs}, inputs, self.tolerate, self.effort),
        )
