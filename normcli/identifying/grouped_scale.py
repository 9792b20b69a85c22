"""Tables whose groups were centred and scaled otherwise: by one divisor, or with means of the other rows."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import numpy as np

from normcli.errors import NormError
from normcli.fitting.by_column import number_groups_of
from normcli.fitting.statistics import round_stats
from normcli.identifying.question import Diagnosis, Kind
from normcli.norms.rules import Centre
from normcli.tensors.mapped import fetch

if TYPE_CHECKING:
    from normcli.identifying.grouped_check import GroupedCheck

_MOST_ROWS, _NEAR = 1 << 20, 1e-6
"""The most rows in which one divisor for all groups is looked for, and the relative difference up to which two
divisors count as equal."""


@np.errstate(all="ignore")
def find_common_divisor(found: GroupedCheck) -> Diagnosis | None:
    """Return the diagnosis of y = (x − mean of the group) / one divisor for all groups; None if y is not so.

    None also with gamma or beta, if the divisor is 1, and if fewer than two groups have values that differ.
    """
    plan, table, some = found.plan, found.table, found.places[:_MOST_ROWS]
    if not (_is_open(found) and plan.norm.divisor.divides):
        return None
    x, y = (fetch(part[: len(some)]).astype(np.float64) for part in (table.tensor.values, table.actual.values))
    means = round_stats(found.stats).fields["mean"].reshape(-1, x.shape[1])
    centred = np.subtract(x, means[some])
    if len(np.unique(some[(centred != 0.0).any(1)])) < 2:
        return None
    divisors = (centred**2).sum(0) / (centred * y).sum(0)
    if np.allclose(divisors, 1.0, _NEAR) or not table.agrees(y, centred / divisors):  # or they are left so
        return None
    about = np.sqrt((centred**2).mean(0))
    known = {
        "it is the standard deviation of all rows": x.std(0),
        "it is the standard deviation of all rows, with ddof 1": x.std(0, ddof=1),
        "it is the standard deviation of all rows about the means of their groups": about,
    }
    shown = tuple(words for words, values in known.items() if np.allclose(values, divisors, _NEAR))
    cause = f"{plan.norm.name} differs: one divisor serves all groups, {divisors[0]:.6g}"
    return Diagnosis(Kind.FAULT, cause, shown, remedy="divide each group by its own", fault="stats-constant")


@np.errstate(all="ignore")
def find_mean_of_others(found: GroupedCheck) -> Diagnosis | None:
    """Return the diagnosis of y = (x − mean of the group's other rows) / divisor, in every group; or None.

    It is n / (n − 1) times the exact result, in a group of n rows; tried with both choices of ddof.
    """
    plan, table, values = found.plan, found.table, found.table.actual.values
    if len(values) > _MOST_ROWS or not _is_open(found):
        return None
    numbers = number_groups_of(found.places, values.shape[1])
    count = found.stats.sums.count.reshape(-1)[numbers].reshape(values.shape)
    y = np.where(count > 1, fetch(values) * ((count - 1.0) / count), table.normalize(found.stats))
    scaled = table._replace(actual=table.actual._replace(values=y.astype(values.dtype)))
    ddof, shown = plan.spec.ddof or 0, ["in every group, y is n / (n − 1) times the exact result"]
    for other in (ddof, 1 - ddof):
        with contextlib.suppress(NormError):
            if (count > 1).any() and scaled.compare(found.request._replace(ddof=other)).checked.ok:
                cause = f"{plan.norm.name} differs: the mean leaves out the row itself, as RLOO"
                shown += [f"ddof is {other}, not {ddof}"] if other != ddof else []
                remedy = "take the mean over all rows of the group"
                return Diagnosis(Kind.FAULT, cause, tuple(shown), remedy=remedy, fault="affine-constant")
    return None


def _is_open(found: GroupedCheck) -> bool:
    """Whether y is (x − mean) / divisor alone: a norm with a mean, without gamma and beta."""
    return found.plan.norm.centre is Centre.MEAN and all(p is None for p in found.table.affine.values())
