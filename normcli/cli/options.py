"""The shared options, each written once, in the groups in which commands use them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from normcli.cli.types import LENGTHS, NUMBER, SHAPE, Framework, Momentum, Parts
from normcli.norms.options import NUMERIC_TYPES, OPTIONS, OptionKind, find_option, list_own_options
from normcli.norms.request import Fill, NanRule
from normcli.tensors.recipe import DISTRIBUTIONS, RNGS
from normcli.writers import FORMATS, WRITERS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from normcli.norms import options as norms
    from normcli.norms.table import Norm

    Function = Callable[..., Any]
    Option = Callable[[Function], Function]

COLOURS = ("auto", "always", "never")


def make(*names: str, **settings: Any) -> Option:
    """Return an option, for a command to be given."""
    return click.option(*names, **settings)


def _require_one(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse several inputs; click itself would take the last without a word."""
    if len(given) > 1:
        raise click.UsageError(f"--input is given {len(given)} times; one tensor is taken", ctx)
    return given


SOURCE = (
    make(
        "-i", "--input", "inputs", metavar="FILE", multiple=True, callback=_require_one,
        help=".npy, .npz, .json, .csv, .tsv, .safetensors; FILE:KEY picks an array; - is standard input.",
    ),
    make("--data", metavar="JSON", help="The tensor, typed in place: '[[1,2],[3,4]]'."),
)  # fmt: skip

SOURCES = (
    make(
        "-i", "--input", "inputs", metavar="FILE", multiple=True,
        help=".npy, .npz, .json, .csv, .tsv, .safetensors; FILE:KEY picks an array; - is standard input. "
        "With --state, several are one batch each.",
    ),
    SOURCE[1],
)  # fmt: skip

ACTUAL = make("--actual", metavar="FILE", help="The tensor that is judged, in any format of --input.")

RECIPE = (
    make("--shape", type=SHAPE, metavar="N,N,…", help="Generate a tensor of this shape instead."),
    make("--dist", type=click.Choice(DISTRIBUTIONS), help="Its distribution. [default: randint]"),
    make("--low", type=NUMBER, help="Lowest value of randint and uniform, start of arange. [default: 0]"),
    make("--high", type=NUMBER, help="Bound above, not included. [default: 10 for randint, 1 for uniform]"),
    make("--seed", type=int, help="[default: 42]"),
    make("--rng", type=click.Choice(RNGS), help="The random stream. [default: numpy-legacy]"),
    make("--skip", type=click.IntRange(min=0), metavar="N", help="Pass over N values of the stream first."),
)


def declare(option: norms.Option, norm: Norm | None = None) -> Option:
    """Return a row of the table of options as an option of a command of a norm, or of any norm."""
    default = option.default if norm is None else option.find_default(norm)
    if norm is None and option.name in ("eps", "eps_mode"):
        default = "each norm's"
    kind: Any = NUMERIC_TYPES.get(option.kind)
    metavar = option.metavar
    if option.choices:
        kind = click.Choice(option.choices)
    elif option.kind is OptionKind.FRAMEWORK and norm is not None:
        kind, metavar = Framework(norm.name), None
    told = option.help if default is None else f"{option.help} [default: {option.format(default)}]"
    return make(f"--{option.word}", type=kind, metavar=metavar, help=told)


LAYOUT, *_ = AXES = tuple(declare(find_option(name)) for name in ("layout", "axes", "keep"))

NUMERIC = {option.name: declare(option) for option in OPTIONS if option.is_of is not None}
"""The options that only some norms have, for a command of several norms."""

DTYPE = declare(find_option("dtype"))

GAMMA = make(
    "--gamma", "--weight", "gamma", metavar="VALUE", help="The scale: a file, JSON in place or one number."
)
BETA = make("--beta", "--bias", "beta", metavar="VALUE", help="The shift, likewise.")
AFFINE_SEED = make(
    "--affine-seed",
    type=int,
    metavar="SEED",
    help="Draw gamma, then beta, standard normal from the --rng stream.",
)

RUNNING = (
    make("--eval", "evaluation", is_flag=True, help="Normalize with running statistics, as after training."),
    make("--running-mean", metavar="VALUE", help="The running mean: a file, JSON in place or one number."),
    make("--running-var", metavar="VALUE", help="The running variance, likewise."),
)

TRACKING = (
    make(
        "--momentum", type=Momentum(), metavar="WEIGHT|none",
        help="Weight of a batch in the running statistics; none: 1/n of the nth. [default: 0.1]",
    ),
    make("--momentum-of", type=click.Choice(("new", "old")), help="What it is the weight of. [default: new]"),
    make("--running-ddof", type=int, metavar="DDOF", help="Of the running variance. [default: 1]"),
)  # fmt: skip

COUNTING = (
    make("--mask", metavar="VALUE", help="1 or true where a value counts: a file or JSON; it broadcasts."),
    make("--lengths", type=LENGTHS, metavar="N,N,…", help="Of each sample, how many positions along L count."),
    make(
        "--nan", type=click.Choice([rule.value for rule in NanRule]),
        help="What NaN does to its group. [default: propagate]",
    ),
    make(
        "--fill", type=click.Choice([fill.value for fill in Fill]),
        help="What becomes of what does not count. [default: pass]",
    ),
)  # fmt: skip

STATE = make("--state", metavar="FILE.npz", help="Where running statistics are kept between calls.")

SAVE = (
    make(
        "-o",
        "--output",
        metavar="FILE",
        help="Save the normalized tensor, or as .html a page; - is .npy on standard output.",
    ),
    make("--stats-output", metavar="FILE", help="Save the statistics, as .json or .npz."),
)

FORMAT = make("-f", "--format", "format_name", type=click.Choice(FORMATS), help="[default: table]")
ANY_FORMAT = make("-f", "--format", "format_name", type=click.Choice(tuple(WRITERS)), help="[default: table]")
ANSWER_FILE = make(
    "-o", "--output", metavar="FILE", help="Write the answer to a file, in the format that its name ends in."
)
PRINT = make("--print", "field", metavar="FIELD", help="Print one field, a number a line, in full precision.")

LOOK = (
    make("--digits", type=click.IntRange(1, 17), help="Significant digits in tables."),
    make("--full", is_flag=True, help="Show every group and value, however many."),
    make("--color", "colour", type=click.Choice(COLOURS), default="auto", help="[default: auto]"),
)
"""What a table looks like."""

COLOUR = LOOK[-1]

THREADS = make("--threads", type=click.IntRange(min=1), help="At most so many. [default: all processors]")

QUIET = make("-q", "--quiet", is_flag=True, help="No warnings, notes or progress bar on standard error.")

RUN = (
    THREADS,
    make(
        "--strict", is_flag=True, help="Fail (exit 4) on empty, constant, single-valued or non-finite groups."
    ),
    QUIET,
)


def show(parts: tuple[str, ...]) -> Option:
    """Return the option that chooses the parts of a table."""
    return make("--show", type=Parts(parts), metavar="PARTS", help=f"What a table shows: {','.join(parts)}.")


def like(norm: Norm) -> Option:
    """Return the option that follows a framework's convention for a norm."""
    return declare(find_option("like"), norm)


def parameters(norm: Norm) -> Sequence[Option]:
    """Return the options of the affine step, for norms that have one."""
    if not norm.parameter_names:
        return ()
    return (GAMMA, BETA, AFFINE_SEED) if norm.takes_beta else (GAMMA, AFFINE_SEED)


def running(norm: Norm) -> Sequence[Option]:
    """Return the options of evaluation, for norms of which training keeps statistics."""
    return (*RUNNING, STATE) if norm.tracks else ()


def tracking(norm: Norm) -> Sequence[Option]:
    """Return the options of training, for norms of which it keeps statistics."""
    return TRACKING if norm.tracks else ()


def numeric(norm: Norm, fixed: Mapping[str, float]) -> Sequence[Option]:
    """Return the options that not every norm has and this one does, but for those that its preset fixes."""
    return [declare(find_option(name), norm) for name in list_own_options(norm) if name not in fixed]
