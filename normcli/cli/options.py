"""The shared options, each written once, in the groups in which commands use them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from normcli.cli.types import NUMBER, SHAPE, Framework, Parts
from normcli.dtypes import OUTPUT_DTYPES
from normcli.norms import EpsMode, GroupOrder
from normcli.render import WRITERS
from normcli.tensors.recipe import DISTRIBUTIONS, RNGS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from normcli.norms import Norm

    Function = Callable[..., Any]
    Option = Callable[[Function], Function]

COLOURS = ("auto", "always", "never")


def apply(options: Sequence[Option]) -> Option:
    """Return a decorator that adds options to a command, the first one first in its help."""

    def decorate(function: Function) -> Function:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def _option(*names: str, **settings: Any) -> Option:
    return click.option(*names, **settings)


SOURCE = (
    _option(
        "-i", "--input", "input_", metavar="FILE",
        help=".npy, .npz, .json, .csv, .tsv, .safetensors; FILE:KEY picks an array; - is standard input.",
    ),
    _option("--data", metavar="JSON", help="The tensor, typed in place: '[[1,2],[3,4]]'."),
)  # fmt: skip

ACTUAL = _option("--actual", metavar="FILE", help="The tensor that is judged, in any format of --input.")

RECIPE = (
    _option("--shape", type=SHAPE, metavar="N,N,…", help="Generate a tensor of this shape instead."),
    _option("--dist", type=click.Choice(DISTRIBUTIONS), help="Its distribution. [default: randint]"),
    _option("--low", type=NUMBER, help="Lowest value of randint and uniform, start of arange. [default: 0]"),
    _option("--high", type=NUMBER, help="Bound above, not included. [default: 10 for randint, 1 for uniform]"),
    _option("--seed", type=int, help="[default: 42]"),
    _option("--rng", type=click.Choice(RNGS), help="The random stream. [default: numpy-legacy]"),
    _option("--skip", type=click.IntRange(min=0), metavar="N", help="Pass over N values of the stream first."),
)

LAYOUT = _option("--layout", metavar="LETTERS", help="One letter an axis: NCHW, NLC, bnd. [default: by rank]")

AXES = (
    LAYOUT,
    _option("--axes", metavar="AXES", help="The axes to reduce, by letter or number: CHW, 1,2,3 or -1."),
    _option("--keep", metavar="AXES", help="The axes to keep; all others are reduced."),
)

NUMERIC = {
    "groups": _option("--groups", type=int, metavar="G", help="The number of channel groups."),
    "group_order": _option(
        "--group-order", type=click.Choice([order.value for order in GroupOrder]),
        help="A group's channels: neighbours, or every G-th. [default: contiguous]",
    ),
    "ddof": _option("--ddof", type=int, help="The variance's divisor is n − ddof. [default: 0]"),
    "p": _option("--p", type=float, help="The exponent of the length, ≥ 0 or inf. [default: 2]"),
    "size": _option("--size", type=int, help="Channels in a window. [default: 5]"),
    "alpha": _option("--alpha", type=float, help="Factor of the mean square. [default: 0.0001]"),
    "exponent": _option("--exponent", type=float, help="Power of the divisor. [default: 0.75]"),
    "k": _option("--k", type=float, help="Summand of the divisor. [default: 1]"),
}  # fmt: skip
"""The options that only some norms have, by the names that the table of norms gives them (eps aside)."""

DTYPE = _option("--dtype", type=click.Choice(OUTPUT_DTYPES), help="Of the output (and of a generated tensor).")

GAMMA = _option(
    "--gamma", "--weight", "gamma", metavar="VALUE", help="The scale: a file, JSON in place or one number."
)
BETA = _option("--beta", "--bias", "beta", metavar="VALUE", help="The shift, likewise.")
AFFINE_SEED = _option(
    "--affine-seed",
    type=int,
    metavar="SEED",
    help="Draw gamma, then beta, standard normal from the --rng stream.",
)

SAVE = (
    _option("-o", "--output", metavar="FILE", help="Save the normalized tensor; - is .npy on standard output."),
    _option("--stats-output", metavar="FILE", help="Save the statistics, as .json or .npz."),
)

FORMAT = _option("-f", "--format", "format_", type=click.Choice(tuple(WRITERS)), help="[default: table]")
PRINT = _option(
    "--print", "print_", metavar="FIELD", help="Print one field, a number a line, in full precision."
)

DIGITS = _option("--digits", type=click.IntRange(1, 17), help="Significant digits in tables.")
FULL = _option("--full", is_flag=True, help="Show every group and value, however many.")
COLOUR = _option("--color", "colour", type=click.Choice(COLOURS), default="auto", help="[default: auto]")

THREADS = _option("--threads", type=click.IntRange(min=1), help="At most so many. [default: all processors]")

QUIET = _option("-q", "--quiet", is_flag=True, help="No warnings, notes or progress bar on standard error.")

RUN = (
    _option(
        "--strict", is_flag=True, help="Fail (exit 4) on empty, constant, single-valued or non-finite groups."
    ),
    QUIET,
)


def show(parts: tuple[str, ...]) -> Option:
    """Return the option that chooses the parts of a table."""
    return _option("--show", type=Parts(parts), metavar="PARTS", help=f"What a table shows: {','.join(parts)}.")


def like(norm: Norm) -> Option:
    """Return the option that follows a framework's convention for a norm."""
    return _option("--like", type=Framework(norm.name), help="Follow a framework; other options override it.")


def parameters(norm: Norm) -> Sequence[Option]:
    """Return the options of the affine step, for norms that have one."""
    if not norm.parameter_names:
        return ()
    return (GAMMA, BETA, AFFINE_SEED) if norm.takes_beta else (GAMMA, AFFINE_SEED)


def numeric(norm: Norm, fixed: Mapping[str, float]) -> Sequence[Option]:
    """Return the numeric options that mean something for a norm and are not fixed by its preset."""
    eps = _option("--eps", type=float, help=f"Keeps the divisor from 0. [default: {norm.eps or 0:g}]")
    modes = click.Choice((EpsMode.INSIDE.value, EpsMode.OUTSIDE.value))
    eps_mode = _option("--eps-mode", type=modes, help=f"√(var + eps) or √var + eps. [default: {norm.eps_mode}]")
    every = {"eps": eps, "eps_mode": eps_mode, **NUMERIC}
    return [option for name, option in every.items() if name in norm.options and name not in fixed]
