"""`normcli invert`: normalized files turned back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from normcli.cli import options
from normcli.cli.use import OPTIONS, tell, use_statistics

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.engine.invert import Loss
    from normcli.engine.walk import Effort
    from normcli.fitting.use import Use
    from normcli.norms.plan import Plan


@click.command(name="invert")
@click.argument("stats", required=False, metavar="STATS")
@click.argument("files", nargs=-1, metavar="FILE…")
@options.apply(OPTIONS)
def command(stats: str | None, files: tuple[str, ...], **settings: Any) -> None:
    """Undo normcli apply: x = (y - beta) / gamma * divisor + mean.

    Each result is the exact one of its y, rounded once. What y lost when it was itself rounded stays lost: up
    to 0.5 ulp(y) * divisor (float64: 2 ulp). Values where that may be more than half a ulp of x are counted
    on standard error; all others come back to 1 ulp.

    \b
      normcli invert stats.npz y.npy -o x.npy
      normcli invert stats.npz 'normalized/*.npy' -o restored/ --dtype float64
    """

    def work(
        name: str, use: Use, plan: Plan, values: NDArray[Any], out: NDArray[Any] | None, effort: Effort
    ) -> NDArray[Any]:
        from normcli.fitting.use import invert_stats

        result, loss = invert_stats(use, plan, values, out, effort)
        for message in _describe(loss, values.size):
            tell(name, message, settings)
        return result

    use_statistics(stats, files, settings, work)


def _describe(loss: Loss, size: int) -> list[str]:
    """Return what may be lost, in words."""
    messages = []
    if loss.count:
        messages.append(
            f"{loss.count} of {size} values may be more than 1 ulp from what they were: rounding y took up to "
            f"{loss.bound:.2g} of each"
        )
    if loss.overflows:
        messages.append(f"{loss.overflows} values overflow the dtype; --dtype chooses a wider one")
    return messages
