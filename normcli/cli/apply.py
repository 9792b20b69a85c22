"""`normcli apply`: files normalized with fitted statistics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from normcli.cli import options
from normcli.cli.use import OPTIONS, use_statistics

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.engine.walk import Effort
    from normcli.fitting.use import Use
    from normcli.norms.plan import Plan


@click.command(name="apply")
@click.argument("stats", required=False, metavar="STATS")
@click.argument("files", nargs=-1, metavar="FILE…")
@options.apply(OPTIONS)
def command(stats: str | None, files: tuple[str, ...], **settings: Any) -> None:
    """Normalize files with the statistics that normcli fit has kept.

    The files may have other lengths along the axes that were reduced. Where a group was constant and there
    is no eps, it is only centred, as scikit-learn does.

    \b
      normcli apply stats.npz x.npy -o y.npy
      normcli apply stats.npz 'test/*.npy' -o normalized/
    """

    def work(
        name: str, use: Use, plan: Plan, values: NDArray[Any], out: NDArray[Any] | None, effort: Effort
    ) -> NDArray[Any]:
        from normcli.fitting.use import apply_stats

        return apply_stats(use, plan, values, out, effort)

    use_statistics(stats, files, settings, work)
