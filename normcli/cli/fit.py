"""`normcli fit NORM`: exact statistics over any number of files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from normcli.cli import options
from normcli.cli.progress import show_progress
from normcli.cli.statistics import ANSWER, require_answer, show_statistics
from normcli.cli.verbs import NormVerb
from normcli.errors import DataError, UsageError
from normcli.norms.table import find_norm

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from normcli.fitting.fit import Source

FILES_FROM = options.make(
    "--files-from",
    metavar="FILE",
    help="Also what FILE lists, one file a line (or NUL between); - is stdin.",
)


def make_command(name: str) -> click.Command:
    """Return the command that fits the norm of that name, alias or preset."""
    norm, preset = find_norm(name)

    @click.command(
        name=name,
        short_help=norm.summary,
        help=f"Fit {norm.title} to files: {norm.summary}.\n\n\b\n"
        f"  normcli fit {name} 'train/*.npy' -o stats.npz\n"
        f"  normcli fit {name} a.npy b.npz:x more/ --print {norm.statistics[0]}\n\n"
        "FILE… are files, FILE:KEY, quoted patterns and folders; of an .npz all arrays are taken. They are "
        "joined "
        "along the batch axis: their other axes and dtypes must agree. Where samples have statistics "
        "of their own "
        "there is nothing to fit; --axes and --keep choose others.",
    )
    @click.argument("files", nargs=-1, metavar="FILE…")
    @options.apply(
        [
            FILES_FROM,
            *options.AXES,
            *options.numeric(norm, preset),
            options.like(norm),
            options.make(
                "--nan", type=click.Choice(("propagate", "omit", "raise")), default="propagate",
                help="NaN spreads, does not count, or is an error. [default: propagate]",
            ),
            options.make("--skip-bad", is_flag=True, help="Leave out bad files, list them at the end, exit 3."),
            *ANSWER,
            options.THREADS,
            options.QUIET,
        ]
    )  # fmt: skip
    def command(**settings: Any) -> None:
        _fit(name, settings)

    return command


@click.group(cls=NormVerb, make_command=make_command)
def command() -> None:
    """Fit a norm to files: exact statistics over all of them, read once.

    The stats file keeps exact sums: files fitted apart and merged, in any order, give the same bits.

    \b
      normcli fit bn 'train/*.npy' -o stats.npz
      normcli fit zscore iris.csv --emit sklearn
      find data -name '*.npy' | normcli fit bn --files-from - --print mean

    normcli fit NORM --help lists the options; normcli merge, apply and invert use the stats file.
    """


def _fit(name: str, settings: dict[str, Any]) -> None:
    require_answer(settings)
    if not settings["files"] and settings["files_from"] is None:
        raise UsageError("fit needs files: FILE…, or --files-from FILE")
    from normcli.engine.walk import Effort
    from normcli.fitting.fit import Policy, fit
    from normcli.norms.request import Request

    request = Request.collect(name, settings)
    policy = Policy(settings["nan"], skips_bad=settings["skip_bad"])
    with show_progress(quiet=settings["quiet"]) as observer:
        sources = _list_sources(settings["files"], settings["files_from"])
        fitted = fit(request, sources, policy, Effort(settings["threads"], observer))
    show_statistics(fitted.stats, settings)
    if fitted.bad:
        for told in fitted.bad:
            click.echo(f"normcli: left out: {told}", err=True)
        count = len(fitted.bad)
        raise DataError(
            f"{count} file{'s were' if count > 1 else ' was'} left out; the statistics are of the others"
        )


def _list_sources(files: Sequence[str], files_from: str | None) -> Iterator[Source]:
    from normcli.fitting.fit import Source
    from normcli.tensors.many import expand, name_tensors, read_list

    listed = [] if files_from is None else read_list(files_from)
    for named in name_tensors([*expand(files), *listed]):
        yield Source(*named)
