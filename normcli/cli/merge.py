"""`normcli merge`: the statistics of several stats files as one."""

from __future__ import annotations

from typing import Any

import click

from normcli.cli import options
from normcli.cli.statistics import ANSWER, require_answer, show_statistics
from normcli.errors import UsageError


@click.command(name="merge")
@click.argument("files", nargs=-1, metavar="STATS…")
@options.apply([*ANSWER, options.QUIET])
def command(files: tuple[str, ...], **settings: Any) -> None:
    """Merge stats files: as one fit over all their files, to the bit, in any order.

    Of a single stats file it prints what that holds.

    \b
      normcli merge a.npz b.npz -o all.npz
      normcli merge stats.npz --emit torchvision
    """
    if not files:
        raise UsageError("merge needs stats files: normcli merge a.npz b.npz -o all.npz")
    require_answer(settings)
    from normcli.fitting.stats_file import merge_stats, read_stats

    merged = read_stats(files[0])
    for name in files[1:]:
        merged = merge_stats(merged, read_stats(name), files[0], name)
    show_statistics(merged, settings)
