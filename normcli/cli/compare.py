"""`normcli compare`: norms side by side on one tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from normcli.cli import options
from normcli.cli.norm_spec import parse_norm_spec
from normcli.cli.problem import tell_note
from normcli.cli.progress import show_progress
from normcli.cli.sources import SourceOptions, load_input, load_parameters
from normcli.errors import NormError, UsageError
from normcli.norms.options import NAMES, find_option
from normcli.norms.table import NORMS
from normcli.writers import PICTURES, WRITERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from normcli.cli.norm_spec import NormSpec
    from normcli.norms.request import Request
    from normcli.teach.comparison import Comparison, Entry

_PARTS = ("facts", "equalities", "normalized", "groups")

_SOME = ("like", *options.NUMERIC)
"""The shared options that go to those norms alone that take them."""

_SHARED = (
    *options.NUMERIC.values(),
    options.DTYPE,
    options.declare(find_option("like")),
    options.AFFINE_SEED,
)


@click.command(name="compare")
@click.argument("norms", nargs=-1, metavar="NORM NORM …")
@options.apply(
    [
        *options.SOURCE,
        *options.RECIPE,
        *options.AXES,
        *_SHARED,
        options.ANSWER_FILE,
        options.ANY_FORMAT,
        options.show(_PARTS),
        options.DIGITS,
        options.FULL,
        options.COLOUR,
        options.THREADS,
        *options.RUN,
    ]
)
def command(norms: tuple[str, ...], **settings: Any) -> None:
    """Set norms side by side on one tensor.

    What does each reduce, need and give? Which are equal on this tensor, and why?

    \b
      normcli compare bn ln --shape 2,3,4 --layout NLC
      normcli compare bn ln in gn --groups 2 --shape 2,4,4,4
      normcli compare ln ln:axes=CHW gn:groups=1 --shape 2,4,4,4
      normcli compare bn:like=keras bn:like=torch -i x.npy --layout NHWC -f json

    An option goes to every norm that has it. A norm's own stand behind its name, as KEY=VALUE after colons, and
    come first: axes, keep, layout, like, and those that normcli NORM --help lists for it.
    """
    from normcli.cli.output import choose_destination

    output, format_name = settings["output"], settings["format_"]
    destination = choose_destination(output, format_name, (*WRITERS, *PICTURES))
    if len(norms) < 2:
        given = f"{norms[0]} alone" if norms else "none"
        told = f"compare takes two norms or more, not {given}; the norms are {', '.join(NORMS)}"
        raise UsageError(told)
    specs = [parse_norm_spec(text) for text in norms]
    requests = _share(specs, settings)
    from normcli.answers.comparison import ComparisonAnswer
    from normcli.cli.view import make_view

    source = SourceOptions.collect(dict(settings))
    tensor = load_input(source)
    tell_note(tensor, settings)
    entries = [
        _prepare(spec, request, source, tensor.values) for spec, request in zip(specs, requests, strict=True)
    ]
    comparison = _compare(entries, tensor.values, settings)
    view = make_view(settings["colour"], settings["digits"], full=settings["full"], show=settings["show"])
    destination.write(ComparisonAnswer(comparison, tensor), view)


def _share(specs: Sequence[NormSpec], settings: Mapping[str, Any]) -> list[Request]:
    """Return a request for each norm: the shared options that it has, and its own, which come first.

    Raises
    ------
    UsageError
        If no norm has an option that is shared.
    """
    from normcli.norms.request import Request

    for option in (*_SOME, "affine_seed"):
        if settings[option] is not None and not any(_takes(spec, option, settings) for spec in specs):
            value = f" {settings[option]}" if option == "like" else ""
            names = ", ".join(spec.text for spec in specs)
            raise UsageError(f"none of {names} has --{option.replace('_', '-')}{value}")
    requests = []
    for spec in specs:
        shared = {name: settings[name] for name in NAMES if name not in _SOME or _takes(spec, name, settings)}
        if spec.own.keys() & {"axes", "keep"}:
            shared["axes"] = shared["keep"] = None
        requests.append(Request.collect(spec.name, {**shared, **spec.own}))
    return requests


def _takes(spec: NormSpec, option: str, settings: Mapping[str, Any]) -> bool:
    if option == "affine_seed":
        return bool(spec.norm.parameter_names)
    if option == "like" and settings["like"] is not None:
        from normcli.norms.conventions import list_frameworks

        return str(settings["like"]).lower() in list_frameworks(spec.norm.name)
    if option == "eps":
        return "eps" in spec.norm.options
    return option in spec.open_options


def _prepare(spec: NormSpec, request: Request, source: SourceOptions, values: NDArray[Any]) -> Entry:
    from normcli.norms.plan import make_plan
    from normcli.results.inputs import fit_inputs
    from normcli.teach.comparison import Entry

    try:
        plan = make_plan(request, values.shape, values.dtype)
    except NormError as error:
        told = str(error)
        raise type(error)(told if told.startswith(spec.text) else f"{spec.text}: {told}") from error
    if source.affine_seed is None or not spec.norm.parameter_names:
        return Entry(spec.text, plan)
    return Entry(spec.text, plan, fit_inputs(plan, values, load_parameters(plan, source, None, None)))


def _compare(entries: Sequence[Entry], values: NDArray[Any], settings: Mapping[str, Any]) -> Comparison:
    from normcli.engine.walk import Effort
    from normcli.errors import DegenerateError
    from normcli.teach.comparison import compare

    with show_progress(quiet=settings["quiet"]) as observer:
        effort = Effort(settings["threads"], observer)
        comparison = compare(entries, values, effort, settings["layout"])
    warnings = list(_list_warnings(comparison))
    if warnings and settings["strict"]:
        raise DegenerateError("; ".join(warnings))
    if not settings["quiet"]:
        for warning in warnings:
            click.echo(f"normcli: {warning}", err=True)
    return comparison


def _list_warnings(comparison: Comparison) -> Iterator[str]:
    for column in comparison.columns:
        for warning in column.result.warnings:
            yield f"{column.name}: {warning}"
