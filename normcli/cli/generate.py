"""`normcli generate`: the seeded tensor alone."""

from __future__ import annotations

import contextlib
import json
import sys
from typing import TYPE_CHECKING

from normcli.cli import options
from normcli.cli.destination import choose_values_file
from normcli.cli.sources import make_recipe
from normcli.cli.verbs import Verb
from normcli.errors import UsageError

if TYPE_CHECKING:
    from normcli.cli.settings import Settings


def _run(settings: Settings) -> None:
    """Write a seeded tensor and nothing else.

    Without -o it goes to standard output as JSON, which -i - reads.

    \b
      normcli generate --shape 2,3,4,4
      normcli generate --shape 3,4 --dist normal --rng torch --seed 0 -o x.npy
    """
    if settings.source.shape is None:
        raise UsageError("generate needs --shape N,N,…")
    destination = choose_values_file(settings.answer.output)
    from normcli.norms.layout import make_layout
    from normcli.tensors.files import Saved
    from normcli.tensors.generate import generate
    from normcli.tensors.nested import to_lists

    values = generate(make_recipe(settings.source)).values
    if destination is None:
        sys.stdout.write(json.dumps(to_lists(values), allow_nan=False) + "\n")
        return
    saved = Saved(values, key="x", axis_names=make_layout(None, values.ndim).names)
    with contextlib.ExitStack() as files:
        destination.write_tensor(files, saved)


GENERATE = Verb(
    "generate",
    _run,
    options=(
        *options.RECIPE,
        options.DTYPE,
        options.output("Where to; - is .npy on standard output."),
    ),
)
