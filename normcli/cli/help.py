"""`normcli help`: topics that belong to no single command, and any command's help."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

import click

from normcli.cli.verbs import Verb

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from normcli.cli.settings import Settings

_ABOUT_TENSORS = """\
What -o writes as .npy, .npz or .safetensors, -i reads back as the same tensor; .json, .csv and .tsv
keep the numbers and not the dtype. - is standard input, whose first bytes tell the format, or standard
output (.npy). The first row of a CSV or TSV file is a header if no cell of it is a number; empty cells
and NA are NaN. CSV and TSV files read back with two axes: a tensor of more has a line for each value,
behind its index. In JSON, NaN and infinities are the strings "nan", "inf" and "-inf". .safetensors and
bfloat16 need the extra: pip install 'normcli[safetensors]'.

A file is written whole or not at all, and input and output may be one path. What comes through a pipe, and
what does not fit into memory, waits in a temporary file without a name, in the folder of TMPDIR.
"""

_ABOUT_ANSWERS = """\
JSON is strict and complete, and its numbers read back to the same bits. Norms, explain and compare have
pages (html); draw and compare have pictures (svg, and png with the extra png). --print FIELD prints one
number a line and nothing else.
"""

_ABOUT_EXIT_CODES = """\
On an error standard output is empty, and standard error holds one line: what is wrong, and what would be
right.
"""

_ABOUT_LAYOUTS = """\
--layout takes one letter an axis, in any case: NCHW, NLC, bnd. The channel axis is C if the layout has it,
else the layout's last letter, else axis 1; the batch axis is N or B, else axis 0. --axes and --keep take
letters or numbers: under NCHW, --axes CHW, --axes 1,2,3 and --keep N are the same.

A tensor of any other rank has no letters: name its axes by number, or give a layout. A tensor of one axis
has no channel; one without axes is a single group.
"""


def _run(settings: Settings, words: tuple[str, ...]) -> None:
    """Explain file formats, exit codes or layouts; show the help of a command.

    \b
      normcli help formats     what -i and -o take, what -f prints
      normcli help exit-codes  what the shell gets
      normcli help layouts     letters of axes; the channel and the batch axis
      normcli help bn          the same as normcli bn --help
    """
    ctx = click.get_current_context()
    if len(words) == 1 and words[0] in TOPICS:
        formatter = ctx.make_formatter()
        TOPICS[words[0]](formatter)
        click.echo(formatter.getvalue().rstrip("\n"))
        return
    root = ctx.find_root()
    commands = cast("click.Group", root.command)
    if words and commands.get_command(root, words[0]) is None:
        known = ", ".join(TOPICS)
        raise click.UsageError(f"there is no topic, norm or command {words[0]!r}; the topics are {known}", ctx)
    with commands.make_context(root.info_name, [*words, "--help"]) as context:
        commands.invoke(context)


def _write_formats(formatter: click.HelpFormatter) -> None:
    from normcli.fitting.stats_file import SCHEMA as STATS_SCHEMA
    from normcli.printable import format_bytes
    from normcli.running.state_file import SCHEMA as STATE_SCHEMA
    from normcli.tensors.files import FORMATS, FileFormat
    from normcli.tensors.mapped import SMALLEST_MAPPED
    from normcli.writers import PICTURES, SUFFIXES, WRITERS

    def describe_file(form: FileFormat) -> str:
        facts = {
            "text": form.is_text,
            "several arrays, FILE:KEY picks one": form.has_keys,
            "no bfloat16": not form.has_bfloat16,
            f"from {format_bytes(SMALLEST_MAPPED)} on worked on where it lies": form.start is not None,
        }
        return "; ".join(fact for fact, holds in facts.items() if holds)

    def describe_writer(name: str, module: str, function: str) -> tuple[str, str]:
        suffixes = " ".join(suffix for suffix, writes in SUFFIXES.items() if writes == name)
        summary = (getattr(import_module(module), function).__doc__ or "").split("\n")[0]
        return f"{name}  {suffixes}", summary.removeprefix("Write ").rstrip(".")

    files = {suffix: describe_file(form) for suffix, form in FORMATS.items()}
    _write(formatter, "Tensors: -i reads them, -o writes them", files, _ABOUT_TENSORS)
    writers = dict(describe_writer(name, *place) for name, place in (WRITERS | PICTURES).items())
    _write(formatter, "Answers: -f on standard output, or the suffix of -o", writers, _ABOUT_ANSWERS)
    statistics = {
        STATE_SCHEMA: "--state: norm, mean, var, batches, eps, eps_mode",
        STATS_SCHEMA: "fit, merge: the statistics, what was asked for, and the exact sums that merging needs",
    }
    _write(formatter, "Statistics: .npz archives that numpy.load reads without pickle", statistics)


def _write_exit_codes(formatter: click.HelpFormatter) -> None:
    from normcli.errors import ExitCode

    _write(formatter, "Exit codes", {str(int(code)): code.meaning for code in ExitCode}, _ABOUT_EXIT_CODES)


def _write_layouts(formatter: click.HelpFormatter) -> None:
    from normcli.norms.layout import CHANNEL_LAST_LAYOUTS, DEFAULT_LAYOUTS

    layouts = {
        f"{rank} axes": f"{letters}; {CHANNEL_LAST_LAYOUTS[rank]} with a --like that has the channel last"
        for rank, letters in DEFAULT_LAYOUTS.items()
    }
    _write(formatter, "Layouts where --layout gives none", layouts, _ABOUT_LAYOUTS)


def _write(formatter: click.HelpFormatter, title: str, rows: Mapping[str, str], text: str = "") -> None:
    with formatter.section(title):
        formatter.write_dl(list(rows.items()))
    if text:
        formatter.write_paragraph()
        formatter.write_text(text)


TOPICS: Mapping[str, Callable[[click.HelpFormatter], None]] = {
    "formats": _write_formats,
    "exit-codes": _write_exit_codes,
    "layouts": _write_layouts,
}
"""Topic → what writes it, from the tables in force."""

HELP = Verb(
    "help",
    _run,
    options=(click.argument("words", nargs=-1, metavar="[TOPIC]"),),
)
