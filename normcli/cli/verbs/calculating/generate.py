"""`normcli generate`: a seeded tensor, not normalized."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from normcli.cli.files.choose_destination import choose_tensor_file
from normcli.cli.files.destination import WholeFiles
from normcli.cli.files.sources import make_recipe
from normcli.cli.parameters import answer_options, options
from normcli.cli.verb_commands import Verb
from normcli.errors import UsageError
from normcli.tensors.tensor import STANDARD_STREAM

if TYPE_CHECKING:
    from normcli.cli.files.destination import Destination
    from normcli.cli.parameters.settings import Settings


def _run(settings: Settings) -> None:
    """Write a seeded tensor and nothing else.

    Without -o FILE it goes to standard output, as JSON or as -f says; -i - reads all of them.

    \b
      normcli generate --shape 2,3,4,4
      normcli generate --shape 3,4 --dist normal --rng torch --seed 0 -o x.npy
    """
    if settings.source.shape is None:
        raise UsageError("generate needs --shape N,N,…")
    answer = settings.answer
    if answer.output in (None, STANDARD_STREAM):
        answer = answer._replace(output=STANDARD_STREAM, format_name=answer.format_name or "json")
    elif answer.format_name is not None:
        raise UsageError("--format is of standard output: -o -; a file's name says its format")
    destination = cast("Destination", choose_tensor_file(answer))
    from normcli.tensors.formats.file_formats import Saved
    from normcli.tensors.random.generate import generate

    with settings.run.show_progress():
        values = generate(make_recipe(settings.source)).values
    with WholeFiles() as files:
        destination.write_tensor(files, Saved(values, key="x"))


GENERATE = Verb(
    "generate",
    _run,
    options=(
        *options.RECIPE,
        options.DTYPE,
        answer_options.output("Where to; - is standard output. [default: - as JSON]"),
        answer_options.OVERWRITE,
        answer_options.TENSOR_FORMAT,
    ),
)
