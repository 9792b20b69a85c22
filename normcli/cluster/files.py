"""Files, fitted by the workers of a cluster: each in a task of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dask.delayed import delayed

from normcli.cluster.blocks import ALONE, require_version
from normcli.fitting.fit import fit
from normcli.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

    from normcli.cluster.session import Session
    from normcli.fitting.fit import Policy
    from normcli.fitting.statistics import Stats
    from normcli.norms.request import Request
    from normcli.tensors.many import Named


def fit_files(
    session: Session, request: Request, named: Sequence[Named], policy: Policy
) -> list[tuple[str, Stats]]:
    """Return the statistics of each file, with its name; workers read it under that name.

    Raises
    ------
    NormError
        As `normcli.fitting.fit.fit`; if the cluster fails.
    """
    task = delayed(_fit)
    found = session.run([task(request, one, policy, __version__) for one in named]) if named else []
    return [(one.name, stats) for one, stats in zip(named, found, strict=True)]


def _fit(request: Request, one: Named, policy: Policy, version: str) -> Stats:
    require_version(version)
    return fit(request, [one], policy, ALONE).stats
