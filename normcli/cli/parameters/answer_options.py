"""The options of answers and of runs, each written once: where an answer goes, its look, and who works."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import click
from click import option

from normcli.cli.parameters.types import Words
from normcli.tensors.tensor import STREAMED
from normcli.writers import FIELDS, FORMATS, WRITERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from normcli.cli.parameters.options import Option
    from normcli.norms.norm import Norm


def output(text: str, metavar: str = "FILE") -> Option:
    """Return the option `--output` with a help text of its own."""
    return option("-o", "--output", metavar=metavar, help=text)


OVERWRITE = option("--overwrite", is_flag=True, help="Replace the .zarr store that -o names.")

SAVE = (
    output(
        "Save the normalized tensor, or as .html a page, as .svg or .png a picture, in place of the answer; "
        "- is standard output."
    ),
    OVERWRITE,
    option(
        "--stats-output",
        metavar="FILE",
        help="Save the statistics, as .json or .npz, and the names of their columns. Each file is whole; a "
        "run that is killed at its end may leave this one new, and that of -o old.",
    ),
)

_OF_BOTH = (
    f"Of the answer; with -o -, of the tensor: {', '.join(STREAMED)}. [default: table; with -o - its own]"
)


def _declare_format(names: Iterable[str], text: str = "[default: table]") -> Option:
    return option("-f", "--format", "format_name", type=click.Choice([*dict.fromkeys(names)]), help=text)


FORMAT = _declare_format(FORMATS)
ANY_FORMAT = _declare_format(WRITERS)
ANY_OR_TENSOR_FORMAT = _declare_format((*WRITERS, *STREAMED), _OF_BOTH)
ANSWER_OR_TENSOR_FORMAT = _declare_format((*FORMATS, *STREAMED), _OF_BOTH)
TENSOR_FORMAT = _declare_format(STREAMED, "Of the tensor on standard output. [default: a table's own, or npy]")
ANSWER_FILE = output("Write the answer to a file, in the format that its name ends in.")


def print_fields(known: Sequence[str] = ()) -> Option:
    """Return the option `--print`; if `known` has fields, its help lists them, and all others are refused."""
    text = "Print a field, a number a line, in full precision; several are columns, with tabs between them."
    listed = f" Fields: {', '.join(known)}." if known else ""
    return option(
        "--print", "fields", type=Words(known), multiple=True, metavar="FIELD,…",
        help=f"{text}{listed}", callback=_join_words,
    )  # fmt: skip


def _join_words(
    ctx: click.Context, param: click.Parameter, given: tuple[tuple[str, ...], ...]
) -> tuple[str, ...]:
    return tuple(itertools.chain.from_iterable(given))


def print_of(norm: Norm) -> Option:
    """Return the option `--print` with the fields that the answer of a norm has."""
    running = ("running_mean", "running_var") if norm.tracks else ()
    return print_fields((*norm.all_statistics, *running, *norm.vector_names, *FIELDS))


EMITTED = ("numpy", "torch", "keras", "flax", "tensorflow", "onnx")

EMIT = option(
    "--emit", type=click.Choice(EMITTED),
    help="Instead of an answer, code that does this: a module, or with -o FILE.onnx a model.",
)  # fmt: skip

LOOK = (
    option(
        "--digits",
        type=click.IntRange(1, 17),
        help="Significant digits in tables. [default: 8; in a matrix 5 of its largest value]",
    ),
    option("--full", is_flag=True, help="Show every group and value, however many."),
    option(
        "--color",
        "colour",
        type=click.Choice(("auto", "always", "never")),
        default="auto",
        help="[default: auto]",
    ),
)
"""Options for the look of a table."""

COLOUR = LOOK[-1]

TABLE = (FORMAT, *LOOK)
"""The format and look of an answer that is always printed, never drawn or shown as a page."""

ANSWER = (ANSWER_FILE, ANY_FORMAT, *LOOK)
"""The format, look and file of an answer that may also be a page or a picture."""

THREADS = option("--threads", type=click.IntRange(min=1), help="At most so many. [default: all processors]")

CLUSTER = (
    option("--scheduler", metavar="ADDRESS", help="Work on the dask cluster there: tcp://host:8786."),
    option("--workers", type=click.IntRange(min=1), metavar="N", help="Work in N dask processes here."),
)
"""The options for dask workers in place of threads of this process."""

QUIET = option("-q", "--quiet", is_flag=True, help="No warnings, notes or progress bar on standard error.")

RUN = (
    THREADS,
    option(
        "--strict", is_flag=True, help="Fail (exit 4) on empty, constant, single-valued or non-finite groups."
    ),
    QUIET,
)


def show(parts: tuple[str, ...]) -> Option:
    """Return the option `--show`, which chooses the parts of a table."""
    return option("--show", type=Words(parts), metavar="PARTS", help=f"What a table shows: {','.join(parts)}.")
