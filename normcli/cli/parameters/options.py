"""The shared options, each written once, in the groups in which commands use them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import click
from click import option

from normcli.cli.parameters.types import (
    Framework,
    LikeOption,
    OptionValue,
    parse_lengths,
    parse_momentum,
    parse_number,
    parse_shape,
)
from normcli.norms.option_kinds import NUMERIC_TYPES, OptionKind
from normcli.norms.options import OPTIONS, find_option
from normcli.norms.request import Fill, NanRule
from normcli.norms.rules import AxesRule, GateActivationName, GateOrderName
from normcli.quantizing.formats import FORMATS as FORMATS_OF_CODES
from normcli.quantizing.formats import ScaleRounding
from normcli.tensors.held_files import StoreRules, Stores
from normcli.tensors.random.recipe import DISTRIBUTIONS, RNGS
from normcli.tensors.tables.line_records import find_delimiter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from normcli.cli.verb_commands import NamedNorm
    from normcli.norms import option_kinds as norms
    from normcli.norms.norm import Norm

    Function = Callable[..., Any]
    Option = Callable[[Function], Function]


def declare_inputs(text: str, metavar: str = "[FILE]") -> tuple[Option, Option]:
    """Return an argument and an option `-i` that both name input files; the argument's files come first.

    `text` is the help of `-i`, `metavar` the argument's placeholder in help texts.
    """
    return (
        click.argument("files", nargs=-1, metavar=metavar),
        option("-i", "--input", "inputs", metavar="FILE", multiple=True, help=text),
    )


def _declare_source(*, several: bool = False) -> tuple[Option, ...]:
    """Return the options that name the tensor and its residual.

    `several` adds to the help that several files are one batch each.
    """
    text = (
        "Or FILE alone: .npy, .npz, .json, .jsonl, .csv, .tsv, .safetensors, .parquet; FILE:KEY picks an "
        "array, or a column of a table; - is standard input."
    )
    return (
        *declare_inputs(f"{text} With --state, several are one batch each." if several else text),
        option(
            "--data",
            metavar="JSON",
            help="The tensor, typed in place: '[[1,2],[3,4]]', 1,2,3, or as NumPy and PyTorch print it.",
        ),
        option(
            "--residual", metavar="VALUE", help="Is added to the tensor first, in its dtype: a file or JSON."
        ),
        option(
            "--residual-sum",
            type=click.Choice(("rounded", "exact")),
            help="Round the sum to its dtype, as frameworks do, or nothing before the norm. [default: rounded]",
        ),
    )


def _declare_bound(name: str, text: str) -> Option:
    return option(name, type=parse_number, metavar="NUMBER", help=text)


def _choose_rule(name: str) -> Callable[[click.Context, click.Parameter, bool], None]:
    """Return a callback for click that sets the field `name` of `Stores.rules` to an option's value.

    When the command ends, all rules are set back to their defaults.
    """

    def choose(ctx: click.Context, param: click.Parameter, chosen: bool) -> None:
        Stores.rules = Stores.rules._replace(**{name: chosen})
        ctx.call_on_close(lambda: setattr(Stores, "rules", StoreRules()))

    return choose


def _read_header(ctx: click.Context, param: click.Parameter, word: str | None) -> bool | None:
    return None if word is None else word == "yes"


TABLE_INPUT: tuple[Option, ...] = (
    option(
        "--columns", metavar="NAME,…",
        help="Of a table: the columns to work on, by name or number from 0 (0-3). The others pass through.",
    ),
    option("--exclude", metavar="NAME,…", help="Of a table: the columns to leave out; they pass through."),
    option(
        "--delimiter", type=find_delimiter, metavar="NAME",
        help="Between the cells of a table: comma, semicolon, tab, bar or any character. [default: guessed]",
    ),
    option("--decimal", type=click.Choice((".", ",")), help="The decimal point of a table. [default: .]"),
    option(
        "--thousands", type=click.Choice((",", ".", "'", "space")),
        help="What stands between the thousands of a table's numbers. [default: guessed]",
    ),
    option(
        "--header", type=click.Choice(("yes", "no")), callback=_read_header,
        help="Whether a table's first row is names. [default: if no cell is a number, nor all missing]",
    ),
    option(
        "--follow-links", is_flag=True, expose_value=False, callback=_choose_rule("follows_links"),
        help="Of a Zarr store or an HDF5 file: read what it links to elsewhere, too.",
    ),
    option(
        "--fill-missing", is_flag=True, expose_value=False, callback=_choose_rule("fills_missing"),
        help="Of such a store that holds next to no chunk of a large array: read the others as its fill value.",
    ),
)  # fmt: skip
"""The options for reading tables (CSV, TSV, JSON records, JSON Lines, Parquet) and stores."""

RECIPE = (
    option("--shape", type=parse_shape, metavar="N,N,…", help="Generate a tensor of this shape instead."),
    option("--dist", type=click.Choice(DISTRIBUTIONS), help="Its distribution. [default: randint]"),
    _declare_bound("--low", "Lowest value of randint and uniform, start of arange. [default: 0]"),
    _declare_bound("--high", "Bound above, not included. [default: 10 for randint, 1 for uniform]"),
    option("--seed", type=int, help="[default: 42]"),
    option(
        "--rng",
        type=click.Choice(RNGS),
        help="The random stream; torch's is that of its CPU builds, on x86 with AVX2. [default: numpy-legacy]",
    ),
    option("--skip", type=click.IntRange(min=0), metavar="N", help="Pass over N values of the stream first."),
)

TENSOR: tuple[Option, ...] = (*_declare_source(), *TABLE_INPUT, *RECIPE)
"""Options for the source of the one tensor that a verb works on."""


def declare(row: norms.Option, norm: Norm | None = None) -> Option:
    """Return the click option for a row of the table of options.

    Its help names the default value: the norm's, or without a norm the row's ("each norm's" for eps and its
    mode). No default is named for axes, whose default is a rule, and for options without one.
    """
    default = row.default if norm is None else row.find_default(norm)
    if norm is None and row.name in ("eps", "eps_mode"):
        default = "each norm's"
    kind: Any = (
        OptionValue(row)
        if row.kind in (OptionKind.PAIR, OptionKind.VECTOR, OptionKind.SLICE)
        else NUMERIC_TYPES.get(row.kind)
    )
    says_it = default is None or row.kind is OptionKind.AXES  # whose default is a rule
    text = row.help if says_it else f"{row.help} [default: {row.format(default)}]"
    if row.choices:
        kind = click.Choice(row.choices)
    elif row.kind is OptionKind.FRAMEWORK and norm is not None:
        return option(
            f"--{row.word}", type=Framework(norm.name), cls=LikeOption, metavar=row.metavar, help=text
        )
    elif row.kind is OptionKind.FLAG:
        return option(f"--{row.word}", is_flag=True, help=text)
    return option(f"--{row.word}", type=kind, metavar=row.metavar, help=text)


STARTS = tuple(
    option(f"--{name}", type=OptionValue(find_option(name)), metavar="VALUE", help=text)
    for name, text in (
        ("u", "What power iterations of sn may have started from, one number a row: a file or JSON."),
        ("v", "Likewise, one a column."),
    )
)

LAYOUT, DTYPE, RANGE = (declare(find_option(name)) for name in ("layout", "dtype", "range"))

_AFFINE = {
    "gamma": ("--weight", "The scale: a file, JSON in place or one number."),
    "beta": ("--bias", "The shift, likewise."),
}
"""Parameter → the option by the name that layers use, and its help."""


def declare_affine(names: Iterable[str] = tuple(_AFFINE), *, with_synonyms: bool = True) -> list[Option]:
    """Return the options `--gamma` and `--beta`; with synonyms, `--weight` and `--bias` name them too."""
    return [
        option(f"--{name}", *([synonym] if with_synonyms else []), name, metavar="VALUE", help=text)
        for name, (synonym, text) in _AFFINE.items()
        if name in names
    ]


AFFINE_SEED = option(
    "--affine-seed",
    type=int,
    metavar="SEED",
    help="Draw gamma, and beta if something is subtracted, standard normal from the --rng stream.",
)

RUNNING = (
    option("--eval", "evaluation", is_flag=True, help="Normalize with running statistics, as after training."),
    option("--running-mean", metavar="VALUE", help="The running mean: a file, JSON in place or one number."),
    option("--running-var", metavar="VALUE", help="The running variance, likewise."),
)

TRACKING = (
    option(
        "--momentum", type=parse_momentum, metavar="WEIGHT|none",
        help="Weight of a batch in the running statistics; none: 1/n of the nth. [default: 0.1]",
    ),
    option("--momentum-of", type=click.Choice(("new", "old")), help="What it is the weight of. [default: new]"),
    option("--running-ddof", type=int, metavar="DDOF", help="Of the running variance. [default: 1]"),
    option(
        "--lock-timeout", type=click.FloatRange(min=0), metavar="SECONDS",
        help="How long to wait for a --state that another process holds. [default: for ever]",
    ),
)  # fmt: skip

NAN = option(
    "--nan",
    type=click.Choice([rule.value for rule in NanRule]),
    help="What NaN does to its group: it spreads, does not count, or is an error. [default: propagate]",
)

COUNTING = (
    option("--mask", metavar="VALUE", help="1 or true where a value counts: a file or JSON; it broadcasts."),
    option(
        "--lengths", type=parse_lengths, metavar="N,N,…",
        help="Of each sample, how many positions along L count.",
    ),
    NAN,
    option(
        "--fill", type=click.Choice([fill.value for fill in Fill]),
        help="What becomes of what does not count. [default: pass]",
    ),
)  # fmt: skip

AROUND = {
    "clip": option(
        "--clip", metavar="LOW,HIGH",
        help="Bring the tensor between two numbers first, or percentiles of its values: 0.5%,99.5%.",
    ),
    "gate": option(
        "--gate", metavar="VALUE",
        help="z, of a shape that broadcasts: norm(x) · act(z), rounded once; a file or JSON.",
    ),
    "gate_act": option(
        "--gate-act", type=click.Choice(get_args(GateActivationName)),
        help="What --gate goes through. [default: silu]",
    ),
    "gate_order": option(
        "--gate-order", type=click.Choice(get_args(GateOrderName)),
        help="before: norm(x · act(z)), the product rounded to float32, or float64 where one of both is. "
        "[default: as --like, or after]",
    ),
    "clip_output": option(
        "--clip-output", metavar="LOW,HIGH", help="Bring the result between two numbers last."
    ),
}  # fmt: skip
"""Bounds and a gate around the norm."""

GATE = tuple(one for name, one in AROUND.items() if name.startswith("gate"))
"""The gate alone."""

QUANTIZING = (
    option(
        "--quantize", type=click.Choice(tuple(FORMATS_OF_CODES)),
        help="Round the exact result to codes of few bits, and print scales, codes and what is lost; "
        "-o saves them as .npz, .safetensors or .json.",
    ),
    option(
        "--per", metavar="GROUP",
        help="What shares a scale: tensor, token (the last axis), channel or block:N. "
        "[default: token; of mxfp8 and mxfp4 block:32, of nvfp4 block:16]",
    ),
    option(
        "--scale-rounding", type=click.Choice([rule.value for rule in ScaleRounding]),
        help="Of mxfp8 and mxfp4: which power of two a scale becomes. [default: floor]",
    ),
)  # fmt: skip
"""A norm whose result is stored in few bits."""

STATE = option("--state", metavar="FILE.npz", help="Where running statistics are kept between calls.")


def of_norm(named: NamedNorm, *, but: str = "") -> list[Option]:
    """Return the click options of a norm, without those that its name fixes (p of `l1`) and without `but`."""
    left_out = {but, *named.fixed}
    rows = (row for row in OPTIONS if row.belongs_to(named.norm) and row.name not in left_out)
    return [declare(row, named.norm) for row in rows]


def of_columns(norm: Norm) -> tuple[Option, ...]:
    """Return the option `--by` for a norm that reduces the first axis; an empty tuple for others."""
    text = (
        "Of a table: each value of this column, or of several (shop,month), by name or number, has statistics "
        "of its own, which its rows are normalized with."
    )
    return (option("--by", metavar="COLUMNS", help=text),) if norm.axes is AxesRule.FIRST else ()


def of_problem(named: NamedNorm, *, but: str = "", several: bool = False) -> list[Option]:
    """Return the options of the tensor, the norm (as `of_norm`), gamma and beta, and running statistics.

    Parameters
    ----------
    named : NamedNorm
    but : str
        The option of the norm that is left out; "" for none.
    several : bool
        Whether the help of the input says that several files are one batch each.
    """
    affine = declare_affine(named.norm.parameter_names)
    return [
        *_declare_source(several=several),
        *TABLE_INPUT,
        *RECIPE,
        *of_norm(named, but=but),
        *((*affine, AFFINE_SEED) if affine else ()),
        *((*RUNNING, STATE) if named.norm.tracks else ()),
    ]
