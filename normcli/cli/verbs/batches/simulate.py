"""`normcli simulate`: the effect of randomly drawn batches on a norm's output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from click import option

from normcli.cli.files.choose_destination import choose_document_file
from normcli.cli.files.sources import load_input
from normcli.cli.parameters import answer_options, options
from normcli.cli.parameters.types import parse_momentum
from normcli.cli.verb_commands import EVALUATION, SELECTION, Verb
from normcli.errors import UsageError, name_subject
from normcli.norms.request import parse_norm_spec
from normcli.writers import PICTURES, WRITERS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from normcli.cli.parameters.settings import Settings, SourceOptions
    from normcli.norms.request import Request
    from normcli.tensors.tensor import Tensor

_POPULATION = (1024, 8, 4, 4)
"""The shape of the population that is generated without an input."""

_GROUPS = 2
"""The number of channel groups of a norm that needs one and is named without it."""


def _parse_sizes(text: str) -> tuple[int, ...]:
    try:
        return tuple(map(int, text.split(",")))
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is no list such as 1,2,4") from error


_OF_BATCH_SIZE = (
    option(
        "--norms", metavar="NORM,…",
        help="The norms, as of compare: gn:groups=4 (by default 2). [default: bn,ln,gn]",
    ),
    option(
        "--batches", type=_parse_sizes, metavar="N,…",
        help="Samples in a batch, the watched one among them. [default: 1,2,4,8,32,128]",
    ),
    option("--draws", type=click.IntRange(min=1), metavar="N",
           help="Batches of each size; ten million in all at most. [default: 100]"),
)  # fmt: skip

_OF_TRAINING = (
    option("--norm", metavar="NORM", help="The one norm that is trained. [default: bn]"),
    option("--batch", type=click.IntRange(min=1), metavar="N", help="Samples in a batch. [default: 8]"),
    option("--steps", type=click.IntRange(min=1), metavar="N", help="Batches in a run. [default: 60]"),
    option("--runs", type=click.IntRange(min=1), metavar="N", help="Runs, with other batches. [default: 20]"),
    option(
        "--momentum", type=parse_momentum, metavar="WEIGHT|none",
        help="Of the batch in the running statistics. [default: 0.1]",
    ),
    option(
        "--since", type=click.IntRange(min=1), metavar="STEP",
        help="From which step on --shift and --scale hold. [default: behind the first half]",
    ),
)  # fmt: skip

_OF_BOTH = (
    option("--sample", type=click.IntRange(min=0), metavar="N", help="The sample to watch. [default: 0]"),
    option("--shift", type=float, metavar="NUMBER", help="What is added to the others' values. [default: 0]"),
    option("--scale", type=float, metavar="NUMBER", help="What they are multiplied by before. [default: 1]"),
    option("--batch-seed", "seed_of_batches", type=click.IntRange(min=0), metavar="SEED",
           help="Of the batches that are drawn. [default: 0]"),
)  # fmt: skip


def _run(settings: Settings, what: str, **own: Any) -> None:
    """Draw batches around one sample, and see how far it moves: small batches, evaluation, data that shift.

    The samples of a population lie along N. One of them is watched, in batches of others that are drawn by
    chance. batch-size: how far its statistics and its output are from those of the whole population, for each
    size of a batch (figure 1 of Wu & He 2018, Group Normalization, tells what comes of it). Norms whose groups
    lie within one sample do not move. training: step after step, its output with the statistics of the batch,
    and with the running ones, as evaluation has it.

    With --shift and --scale the batches come from elsewhere: in batch-size the other samples of a batch do, in
    training all, from a step on. -o FILE.svg draws it for a slide. Without an input, the population is 1024
    samples of 8×4×4.

    \b
      normcli simulate batch-size --norms bn,ln,gn --batches 1,2,4,8,32,128
      normcli simulate batch-size -i images.npy --norms bn,gn:groups=8 -o batches.svg
      normcli simulate batch-size --shift 1 --scale 2
      normcli simulate training --batch 4 --shift 1 -o training.svg
    """
    destination = choose_document_file(settings, (*WRITERS, *PICTURES))
    own["momentum"] = settings.training.momentum  # an option that other verbs have too
    own = {name.replace("seed_of_batches", "seed"): value for name, value in own.items() if value is not None}
    wrong = _OTHERS[what] & own.keys()
    if wrong:
        other = next(name for name in _OTHERS if name != what)
        raise UsageError(f"--{min(wrong)} is of normcli simulate {other}")
    tensor = load_input(settings._replace(source=_choose_source(settings.source)))
    with settings.run.open_effort(shows_bytes=False) as effort:
        document = _SIMULATIONS[what](settings, tensor, effort=effort, **own)
    if not document.found.is_finite:
        settings.run.note("simulate", "the input holds NaN or infinities, and so distances are NaN")
    destination.write(document, settings.answer.view())


def _choose_source(source: SourceOptions) -> SourceOptions:
    """Return the options for the population's source; without an input, with the shape `_POPULATION`."""
    is_named = source.inputs or source.data is not None or source.shape is not None
    return source if is_named else source._replace(shape=_POPULATION)


def _simulate_batch_size(settings: Settings, tensor: Tensor, norms: str = "bn,ln,gn", **own: Any) -> Any:
    from normcli.answers.batches.simulations import BatchSizeAnswer
    from normcli.simulate.batch_size import BATCHES, simulate_batch_size

    requests = dict(_read_norm(text.strip(), settings) for text in norms.split(","))
    found = simulate_batch_size(tensor.values, requests, **own)
    if "batches" not in own and (held := found.population.sample_count) < BATCHES[-1]:
        settings.run.note("simulate", f"the largest batch is {held:,}, all samples, not {BATCHES[-1]}")
    return BatchSizeAnswer(found, tensor)


def _simulate_training(settings: Settings, tensor: Tensor, norm: str = "bn", **own: Any) -> Any:
    from normcli.answers.batches.simulations import TrainingAnswer
    from normcli.simulate.training import simulate_training

    _, request = _read_norm(norm, settings)
    return TrainingAnswer(simulate_training(tensor.values, request, **own), tensor)


def _read_norm(text: str, settings: Settings) -> tuple[str, Request]:
    """Return the request for a norm with its options as text, `gn:groups=2`; before it, the text itself.

    A norm that needs groups and names none gets two.
    """
    from normcli.norms.request import Request

    spec = parse_norm_spec(text)
    own: Mapping[str, Any] = spec.own
    if spec.norm.needs_groups and "groups" not in own:
        own = {**own, "groups": _GROUPS}
    with name_subject(text):
        return text, Request.collect(spec.name, {"layout": settings.request.layout, **own})


_SIMULATIONS = {"batch-size": _simulate_batch_size, "training": _simulate_training}

_OTHERS = {
    "batch-size": {"norm", "batch", "steps", "runs", "momentum", "since"},
    "training": {"norms", "batches", "draws"},
}
"""Simulation → the options that only the other simulation takes."""

SIMULATE = Verb(
    "simulate",
    _run,
    options=(
        click.argument("what", metavar="WHAT", type=click.Choice(tuple(_SIMULATIONS))),
        *options.TENSOR[1:],
        options.LAYOUT,
        *_OF_BATCH_SIZE,
        *_OF_TRAINING,
        *_OF_BOTH,
        *answer_options.ANSWER,
        *answer_options.RUN,
    ),
    refused={
        SELECTION: "batches are drawn of whole samples",
        EVALUATION: "what batches measure is what is watched",
    },
)
