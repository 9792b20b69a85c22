"""Files, each worked on by a worker of a cluster in a task of its own."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

from dask.delayed import delayed

from normcli.cluster.blocks import ALONE, require_sums, require_version
from normcli.fitting.fit import fit
from normcli.tensors.held_files import Stores
from normcli.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from normcli.cluster.session import Session
    from normcli.fitting.fit import Fitted, Policy, Survey, Surveyed
    from normcli.norms.request import Request
    from normcli.tensors.held_files import StoreRules
    from normcli.tensors.many import Named

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


def run_each(session: Session, work: Callable[[Item], Outcome], items: Sequence[Item]) -> list[Outcome]:
    """Return the outcome of a function for each item, each in a task of its own.

    Parameters
    ----------
    session : Session
    work : callable
        A function of a module, or `functools.partial` of one: workers find it by its name.
    items : sequence
        Values that can be pickled.

    Raises
    ------
    NormError
        If a task raises one, or the cluster fails.
    """
    task, shared = delayed(_run_one, pure=False), delayed(work)
    return session.run([task(shared, item, __version__, Stores.rules) for item in items]) if items else []


def _run_one(work: Callable[[Item], Outcome], item: Item, version: str, rules: StoreRules) -> Outcome:
    require_version(version)
    Stores.rules = rules
    return work(item)


def fit_files(session: Session, request: Request, named: Sequence[Named], policy: Policy) -> Fitted:
    """Return the statistics over files, which workers read by their names.

    The first file is opened by this process too, for the dtype and the axes that all have in common.

    Raises
    ------
    NormError
        If a file cannot be read or does not fit the others, or the cluster fails.
    UsageError
        If the statistics are quantiles, which do not follow from sums.
    """

    def survey_all(survey: Survey, sources: Sequence[Named]) -> list[Surveyed | str]:
        require_sums(survey.subject)
        return run_each(session, partial(_survey, survey), sources)

    return fit(request, named, policy, ALONE, survey_all)


def _survey(survey: Survey, source: Named) -> Surveyed | str:
    return survey.survey(source, ALONE)
