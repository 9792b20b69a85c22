"""`normcli compare`: norms side by side on one tensor."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from normcli.cli.files.choose_destination import choose_document_file
from normcli.cli.files.sources import load_input
from normcli.cli.parameters import answer_options, options
from normcli.cli.parameters.settings import RunningOptions
from normcli.cli.parameters.types import NormName
from normcli.cli.problem import plan_tensor
from normcli.cli.verb_commands import Verb
from normcli.errors import DegenerateError, UsageError, name_subject
from normcli.norms.options import NAMES, OPTIONS
from normcli.norms.request import parse_norm_spec
from normcli.norms.table import BY_ANY_NAME, NORMS
from normcli.tensors.tensor import STANDARD_STREAM
from normcli.writers import PICTURES, WRITERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from normcli.cli.files.destination import Destination
    from normcli.cli.parameters.settings import Settings
    from normcli.norms.request import NormSpec, Request
    from normcli.results.arguments import Problem
    from normcli.tensors.tensor import Tensor

_PARTS = ("facts", "equalities", "y", "groups")

_SOME = tuple(row.name for row in OPTIONS if row.is_of is not None or row.name == "like")
"""The options that are passed only to norms that take them."""


def _run(settings: Settings, words: tuple[str, ...]) -> None:
    """Set norms side by side on one tensor; say which are equal, and why.

    What does each reduce, need and give? Which are equal on this tensor, and why?

    \b
      normcli compare bn ln --shape 2,3,4 --layout NLC
      normcli compare bn ln in gn --groups 2 --shape 2,4,4,4
      normcli compare ln ln:axes=CHW gn:groups=1 --shape 2,4,4,4
      normcli compare bn bn:eval --shape 2,3,4,4
      normcli compare bn:like=keras bn:like=torch -i x.npy --layout NHWC -f json
      normcli compare ln -i x.npy --residual r.npy

    One norm with --residual is set in two places: post-norm, behind the addition, norm(x + r), and pre-norm,
    before the sublayer, whose input r passes on as it is: r + f(norm(r)).

    An option goes to every norm that has it: gamma and beta where one shape fits all, --eval and its running
    statistics too, beside which the others measure their own. A norm's own stand
    behind its name, as KEY=VALUE after colons, and come first: axes, keep, layout, like, and those that normcli
    NORM --help lists for it. bn:eval alone is evaluated: with the running statistics that are given, or as they
    begin, mean 0 and variance 1.
    """
    destination = choose_document_file(settings, (*WRITERS, *PICTURES))
    norms, files = _tell_files(words)
    settings = settings._replace(source=settings.source._replace(inputs=(*files, *settings.source.inputs)))
    if len(norms) == 1 and settings.source.residual is not None:
        _compare_places(parse_norm_spec(norms[0]), settings, destination)
        return
    if len(norms) < 2:
        given = f"{norms[0]} alone" if norms else "none"
        raise UsageError(f"compare takes two norms or more, not {given}; the norms are {', '.join(NORMS)}")
    specs = [parse_norm_spec(text) for text in norms]
    requests = _share(specs, settings)
    from normcli.answers.teaching.norm_comparison import ComparisonAnswer
    from normcli.teach.side_by_side import compare

    tensor = load_input(settings)
    if settings.running != RunningOptions() and not any(spec.norm.tracks for spec in specs):
        raise UsageError(f"none of {', '.join(norms)} has running statistics; leave out --eval")
    if any(spec.evaluates for spec in specs):
        settings = settings._replace(running=settings.running._replace(evaluation=False))
    elif settings.running._replace(evaluation=False) != RunningOptions() and not settings.running.evaluation:
        raise UsageError("running statistics are what --eval normalizes with; add it")
    else:
        specs = [spec._replace(evaluates=settings.running.evaluation) for spec in specs]
    entries = [_prepare(spec, request, settings, tensor) for spec, request in zip(specs, requests, strict=True)]
    with settings.run.open_effort() as effort:
        comparison = compare(entries, effort, settings.request.layout)
    found = [(column.name, warning) for column in comparison.columns for warning in column.result.warnings]
    if settings.run.strict and found:
        raise DegenerateError("; ".join(f"{name}: {warning}" for name, warning in found))
    for name, warning in found:
        settings.run.warn(name, warning)
    destination.write(ComparisonAnswer(comparison, tensor), settings.answer.view())


def _compare_places(spec: NormSpec, settings: Settings, destination: Destination) -> None:
    """Compare a norm at two places of a residual block: after the addition, and before the sublayer."""
    from normcli.answers.teaching.residual_placement import PlacementAnswer

    settings = settings._replace(request=_share([spec], settings)[0])
    total = load_input(settings)
    assert total.addends is not None
    residual = total._replace(values=total.addends.residual, source="--residual", addends=None)
    with name_subject(spec.text), settings.run.open_effort() as effort:
        post, pre = (plan_tensor(settings, tensor).calculate(effort) for tensor in (total, residual))
    answer = PlacementAnswer(post, pre, total, residual)
    found = [f"{place}: {warning}" for place, made, _ in answer.columns for warning in made.warnings]
    settings.run.warn_of_groups(spec.text, found)
    destination.write(answer, settings.answer.view())


def _tell_files(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words of a command line as two lists: those that name norms, and those that are files.

    A word is a file if it is no norm's name, and is `-` or a path that exists.
    """
    files = [
        word
        for word in words
        if word.partition(":")[0].lower() not in BY_ANY_NAME
        and (word == STANDARD_STREAM or any(map(os.path.exists, (word, word.rpartition(":")[0]))))
    ]
    return [word for word in words if word not in files], files


def _share(specs: Sequence[NormSpec], settings: Settings) -> list[Request]:
    """Return a request for each norm, with its own options and the shared options that it takes.

    Its own options, which stand behind its name, replace shared ones.

    Raises
    ------
    UsageError
        If a shared option is given that no norm takes.
    """
    from normcli.norms.request import Request

    asked = {**settings.request._asdict(), **settings.parameters._asdict()}
    for option in (*_SOME, *settings.parameters._fields):
        if asked[option] is not None and not any(_takes(spec, option, settings) for spec in specs):
            value = f" {asked[option]}" if option == "like" else ""
            names = ", ".join(spec.text for spec in specs)
            raise UsageError(f"none of {names} has --{option.replace('_', '-')}{value}")
    requests = []
    for spec in specs:
        shared = {name: asked[name] for name in NAMES if name not in _SOME or _takes(spec, name, settings)}
        if spec.own.keys() & {"axes", "keep"}:
            shared["axes"] = shared["keep"] = None
        requests.append(Request.collect(spec.name, {**shared, **spec.own}))
    return requests


def _takes(spec: NormSpec, option: str, settings: Settings) -> bool:
    """Whether a norm takes an option; for `like`, whether it has a convention of the given framework."""
    if option in settings.parameters._fields:
        return option in (*spec.norm.parameter_names, *(("affine_seed",) if spec.norm.parameter_names else ()))
    if option == "like" and settings.request.like is not None:
        from normcli.norms.conventions import list_frameworks

        return settings.request.like.lower() in list_frameworks(spec.norm.name)
    return option in spec.open_options


def _prepare(spec: NormSpec, request: Request, settings: Settings, tensor: Tensor) -> tuple[str, Problem]:
    """Return a norm's name, and its problem with the gamma, beta and running statistics that it takes."""
    import numpy as np

    from normcli.cli.problem import Running
    from normcli.numerics.statistics.solution import Given

    parameters, running, begun = settings.parameters, RunningOptions(), None
    if spec.evaluates and spec.norm.tracks:
        running = settings.running._replace(evaluation=True)
        if settings.running == RunningOptions():
            begun = Running(Given(np.zeros(()), np.ones(())), ("running mean", "running variance"))
    left_out = [name for name in parameters._fields if not _takes(spec, name, settings)]
    own = settings._replace(
        request=request,
        parameters=parameters._replace(**dict.fromkeys(left_out)),
        running=running,
    )
    with name_subject(spec.text):
        return spec.text, plan_tensor(own, tensor, begun)


COMPARE = Verb(
    "compare",
    _run,
    options=(
        click.argument("words", nargs=-1, metavar="NORM NORM … [FILE]", type=NormName(files=True)),
        *options.TENSOR[1:],
        *map(options.declare, OPTIONS),
        *options.declare_affine(),
        options.AFFINE_SEED,
        *options.RUNNING,
        options.STATE,
        *options.COUNTING,
        *answer_options.ANSWER,
        answer_options.show(_PARTS),
        *answer_options.RUN,
    ),
)
