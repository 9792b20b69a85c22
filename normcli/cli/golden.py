"""`normcli golden NORM`: a folder of exact results for another project's tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from normcli.cli import options
from normcli.cli.problem import list_options, load_problem
from normcli.cli.progress import show_progress
from normcli.cli.sources import SourceOptions, make_recipe
from normcli.cli.verbs import NormVerb
from normcli.cli.verdict import show_verdict, tell_warnings
from normcli.errors import UsageError
from normcli.norms.table import find_norm

if TYPE_CHECKING:
    from collections.abc import Mapping

_OUTPUT = options.make("-o", "--output", metavar="DIR", help="The folder: a new or an empty one.")


def make_command(name: str) -> click.Command:
    """Return the command that writes golden files of the norm of that name, alias or preset."""
    norm, preset = find_norm(name)
    groups = " --groups 2" if "groups" in norm.options else ""
    files = ", ".join(
        f"{part}.npy" for part in ("input", *norm.parameter_names, "normalized", *norm.statistics)
    )

    @click.command(
        name=name,
        short_help=norm.summary,
        help=f"Write golden files of {norm.title}: {files} and manifest.json.\n\n\b\n"
        f"  normcli golden {name}{groups} --shape 2,4,8,8 --dist normal -o golden\n"
        f"  normcli golden {name}{groups} -i x.npy -o golden && normcli check golden",
    )
    @options.apply([_OUTPUT, *list_options(norm, preset), options.THREADS, *options.RUN])
    def command(**settings: Any) -> None:
        _write(name, settings)

    return command


@click.group(cls=NormVerb, make_command=make_command)
def command() -> None:
    """Write golden files: input, parameters and exact results for another project's tests.

    The folder has them as .npy, and a manifest.json that says how they came: norm, options, seed, shapes,
    dtypes, SHA-256 sums, version. normcli check DIR verifies it: exit code 0 or 1.

    \b
      normcli golden ln --shape 4,16 --dist normal --dtype float32 -o golden-ln
      normcli golden gn --groups 4 -i x.npy --affine-seed 1 -o golden-gn
      normcli check golden-gn

    normcli golden NORM --help lists the options.
    """


def _write(name: str, settings: dict[str, Any]) -> None:
    if settings["output"] is None:
        raise UsageError("golden needs a folder: -o DIR")
    from normcli.engine.walk import Effort
    from normcli.tensors.whole import open_folder, require_new_folder
    from normcli.verify.golden import write_golden

    require_new_folder(settings["output"], "--output")
    problem = load_problem(name, settings)
    with open_folder(settings["output"]) as folder, show_progress(quiet=settings["quiet"]) as observer:
        effort = Effort(settings["threads"], observer)
        recipe = _describe_recipe(settings)
        result = write_golden(folder, problem.plan, problem.tensor, problem.inputs, recipe, effort)
        if settings["strict"]:
            result.require_sound()
        warnings = () if settings["quiet"] else result.warnings
    for warning in warnings:
        click.echo(f"normcli: {result.plan.norm.name}: {warning}", err=True)


def _describe_recipe(settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return how the input and the parameters are generated, or None where they are not."""
    source = SourceOptions.collect(dict(settings))
    recipe: dict[str, Any] = {}
    if source.shape is not None:
        made = make_recipe(source)
        low, high = made.bounds
        recipe = {**made._asdict(), "low": low, "high": high}
    if source.affine_seed is not None:
        recipe |= {"rng": recipe.get("rng", source.rng), "affine_seed": source.affine_seed}
    return recipe or None


def make_verification(folder: str) -> click.Command:
    """Return the command that verifies a folder of golden files."""

    @click.command(name=folder)
    @options.apply(
        [options.FORMAT, options.DIGITS, options.FULL, options.COLOUR, options.THREADS, *options.RUN]
    )
    def command(**settings: Any) -> None:
        """Verify a folder of golden files.

        Its files must be those that were written, and what is calculated anew from them the same. Exit code: 0
        if so, 1 if a value differs, 3 if a file is missing or damaged.

        \b
          normcli check golden
          normcli check golden -f json
        """
        _verify(folder, settings)

    return command


def _verify(folder: str, settings: dict[str, Any]) -> None:
    from pathlib import Path

    from normcli.answers.verdict import Verdict
    from normcli.documents.plans import name_inputs
    from normcli.engine.walk import Effort
    from normcli.verify.golden import verify_golden

    with show_progress(quiet=settings["quiet"]) as observer:
        golden = verify_golden(Path(folder), Effort(settings["threads"], observer))
    plan, tensor, inputs, checked = golden
    warnings = tell_warnings(plan, tensor, checked, settings)
    sources = {name: str(Path(folder, f"{name}.npy")) for name in checked.comparisons}
    verdict = Verdict(plan, tensor, name_inputs(inputs), sources, checked, warnings)
    show_verdict(verdict, settings, ok=checked.ok)
