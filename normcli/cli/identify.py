"""`normcli identify`: which convention gives this tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from normcli.cli import options
from normcli.cli.sources import SourceOptions, load_input, load_parameter
from normcli.cli.verdict import show_verdict
from normcli.errors import UsageError
from normcli.norms.table import find_norm

if TYPE_CHECKING:
    from numpy.typing import NDArray


@click.command(name="identify")
@options.apply(
    [
        *options.SOURCE,
        *options.RECIPE,
        options.ACTUAL,
        click.option("--norm", metavar="NORM", help="Look for this norm alone."),
        options.LAYOUT,
        options.GAMMA,
        options.BETA,
        options.FORMAT,
        options.DIGITS,
        options.FULL,
        options.COLOUR,
        options.QUIET,
    ]
)
def command(actual: str | None, norm: str | None, **settings: Any) -> None:
    """Find what made a tensor: the norm, its axes, groups, eps, ddof and affine step.

    Exit code 0 if something reproduces it, 1 if nothing does. Without gamma and beta, ones that
    fit are looked for, channel by channel.

    \b
      normcli identify -i x.npy --actual y.npy
      normcli identify -i x.npy --actual y.npy --gamma g.npy --beta b.npy -f json
    """
    if actual is None:
        raise UsageError("identify needs --actual FILE: the tensor that somebody's norm made of the input")
    wanted = None if norm is None else find_norm(norm)[0].name
    from normcli.answers.identification import IdentificationAnswer
    from normcli.norms.layout import make_layout
    from normcli.tensors.files import load
    from normcli.verify.identify import identify
    from normcli.verify.sentence import Question, write_sentence

    source = load_input(SourceOptions.collect(settings))
    theirs = load(actual)
    parameters: dict[str, NDArray[Any] | None] = {
        name: None if settings[name] is None else load_parameter(name, settings[name])
        for name in ("gamma", "beta")
    }
    layout = make_layout(settings["layout"], source.values.ndim)
    channel = None if settings["layout"] is None else layout.channel
    found = identify(source.values, theirs.values, **parameters, norm=wanted, channel=channel)
    question = Question(source.values, theirs.values, **parameters, layout=settings["layout"])
    names = [layout.name(axis) for axis in range(source.values.ndim)]
    answer = IdentificationAnswer(found, write_sentence(question, found), source, theirs, names)
    show_verdict(answer, settings, ok=bool(found.matches))
