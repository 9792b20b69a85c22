"""Groups whose statistics mean little: found, named and counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.norms import Centre
from normcli.plan import ONLY_GROUP

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from normcli.plan import Plan


class Degeneracy(NamedTuple):
    """One kind of degenerate group, with the first group of the kind.

    Parameters
    ----------
    kind : str
        `empty`, `single`, `constant`, `zero`, `nan` or `infinite`.
    first_group : str or None
        The name of the first such group; None where there is no group to name.
    count : int
        How many groups are of the kind.
    consequence : str
        What comes out for them.
    """

    kind: str
    first_group: str | None
    group_count: int
    consequence: str

    def __str__(self) -> str:
        if self.first_group is None:
            return self.consequence
        others = self.group_count - 1
        more = "" if not others else f" (and {others} more group{'s' if others > 1 else ''})"
        name = "the only group" if self.first_group == ONLY_GROUP else f"group {self.first_group}"
        return f"{name}{more} {self.consequence}"


def find_degeneracies(
    plan: Plan, values: NDArray[Any], statistics: Mapping[str, NDArray[np.float64]]
) -> tuple[Degeneracy, ...]:
    """Return the degenerate kinds of groups, each once, in a fixed order.

    Parameters
    ----------
    plan : Plan
    values : ndarray
        The input.
    statistics : mapping of str to ndarray
        Of `plan.stats_shape`.
    """
    return tuple(_search(plan, values, statistics))


def _search(
    plan: Plan, values: NDArray[Any], statistics: Mapping[str, NDArray[np.float64]]
) -> Iterator[Degeneracy]:
    if plan.group_count == 0:
        yield Degeneracy("empty", None, 0, f"the tensor {plan.shape} has no groups: nothing to normalize")
        return
    if plan.group_size == 0:
        yield _describe(plan, "empty", range(plan.group_count), "holds no values: its statistics are NaN")
        return
    not_finite = np.zeros(plan.group_count, dtype=bool)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        nan, infinite = _locate_groups_of(plan, np.isnan(values)), _locate_groups_of(plan, np.isinf(values))
        if nan.any():
            yield _describe(plan, "nan", np.flatnonzero(nan), "holds NaN: its statistics and values are NaN")
        if infinite.any():
            numbers = np.flatnonzero(infinite)
            yield _describe(plan, "infinite", numbers, "holds an infinity: its statistics are not finite")
        not_finite = nan | infinite
    if plan.window is not None:
        return
    freedom = plan.group_size - plan.ddof
    centred = plan.norm.centre is Centre.MEAN
    if centred and freedom <= 0:
        consequence = f"has {plan.group_size} value(s) against ddof {plan.ddof}: its variance is NaN"
        yield _describe(plan, "single", range(plan.group_count), consequence)
    elif centred and plan.group_size == 1:
        consequence = "holds a single value: its variance is 0 and its normalized value 0"
        yield _describe(plan, "single", range(plan.group_count), consequence)
    else:
        spread = statistics[plan.norm.statistics[1] if centred else plan.norm.statistics[0]].reshape(-1)
        flat = np.flatnonzero((spread == 0.0) & ~not_finite)
        if flat.size and centred:
            yield _describe(
                plan, "constant", flat, "is constant: its variance is 0 and its normalized values 0"
            )
        elif flat.size:
            yield _describe(plan, "zero", flat, "is all zeros: so are its normalized values")


def _locate_groups_of(plan: Plan, marks: NDArray[np.bool_]) -> NDArray[np.bool_]:
    if plan.window is not None:
        return marks.reshape(-1)
    return np.asarray(np.logical_or.reduce(marks.reshape(plan.view_shape), axis=plan.view_axes)).reshape(-1)


def _describe(plan: Plan, kind: str, numbers: range | NDArray[np.intp], consequence: str) -> Degeneracy:
    return Degeneracy(kind, plan.group_name(int(numbers[0])), len(numbers), consequence)
