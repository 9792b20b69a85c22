"""`normcli generate`: the seeded tensor alone."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from normcli.cli import options
from normcli.cli.sources import SourceOptions, make_recipe
from normcli.errors import UsageError
from normcli.tensors.tensor import STANDARD_STREAM


@click.command(name="generate")
@options.apply(
    [
        *options.RECIPE,
        options.DTYPE,
        click.option("-o", "--output", metavar="FILE", help="Where to; - is .npy on standard output."),
    ]
)
def command(output: str | None, **settings: Any) -> None:
    """Write a seeded tensor and nothing else.

    Without -o it goes to standard output as JSON, which -i - reads.

    \b
      normcli generate --shape 2,3,4,4
      normcli generate --shape 3,4 --dist normal --rng torch --seed 0 -o x.npy
    """
    source = SourceOptions.collect(settings)
    if source.shape is None:
        raise UsageError("generate needs --shape N,N,…")
    from normcli.norms.layout import make_layout
    from normcli.tensors.files import Saved, require_holdable, require_saveable, save
    from normcli.tensors.generate import generate

    if output not in (None, STANDARD_STREAM):
        require_saveable(output, "--output")
    values = generate(make_recipe(source)).values
    if output is None:
        from normcli.tensors.nested import to_lists

        sys.stdout.write(json.dumps(to_lists(values), allow_nan=False) + "\n")
        return
    require_holdable(output, "--output", values.dtype)
    layout = make_layout(None, values.ndim)
    save(output, Saved(values, key="x", axis_names=[layout.name(axis) for axis in range(values.ndim)]))
