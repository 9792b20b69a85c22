"""`normcli golden NORM`: a folder of exact results for another project's tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from normcli.cli import options
from normcli.cli.destination import choose_new_folder
from normcli.cli.problem import list_options, load_problem
from normcli.cli.sources import make_recipe
from normcli.cli.verbs import EVALUATION, SELECTION, NamedNorm, Refusal, Verb
from normcli.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from normcli.cli.settings import Settings


def _list_options(named: NamedNorm) -> Sequence[options.Option]:
    return [
        options.make("-o", "--output", metavar="DIR", help="The folder: a new or an empty one."),
        *list_options(named),
        *options.RUN,
    ]


def _write_help(named: NamedNorm, example: str) -> str:
    parts = ("input", *named.norm.parameter_names, "normalized", *named.norm.statistics)
    return (
        f"Write golden files of {named.norm.title}: {', '.join(f'{part}.npy' for part in parts)} and "
        "manifest.json.\n\n\b\n"
        f"  {example} --shape 2,4,8,8 --dist normal -o golden\n"
        f"  {example} -i x.npy -o golden && normcli check golden"
    )


def _run(settings: Settings) -> None:
    """Write input, parameters and exact results for another project's tests.

    The folder has them as .npy, and a manifest.json that says how they came: norm, options, seed, shapes,
    dtypes, SHA-256 sums, version. normcli check DIR verifies it: exit code 0 or 1.

    \b
      normcli golden ln --shape 4,16 --dist normal --dtype float32 -o golden-ln
      normcli golden gn --groups 4 -i x.npy --affine-seed 1 -o golden-gn
      normcli check golden-gn
    """
    if settings.answer.output is None:
        raise UsageError("golden needs a folder: -o DIR")
    destination = choose_new_folder(settings.answer.output)
    from normcli.verify.golden import write_golden

    problem = load_problem(settings)
    with destination.open_folder() as folder, settings.run.open_effort() as effort:
        recipe = _describe_recipe(settings)
        result = write_golden(folder, problem.plan, problem.tensor, problem.inputs, recipe, effort)
        if settings.run.strict:
            result.require_sound()
        warnings = () if settings.run.quiet else result.warnings  # while the input's file is where it was
    settings.run.warn(result.plan.norm.name, *warnings)


def _describe_recipe(settings: Settings) -> dict[str, Any] | None:
    """Return how the input and the parameters are generated, or None where they are not."""
    source, seed = settings.source, settings.parameters.affine_seed
    recipe: dict[str, Any] = {}
    if source.shape is not None:
        made = make_recipe(source)
        low, high = made.bounds
        recipe = {**made._asdict(), "low": low, "high": high}
    if seed is not None:
        recipe |= {"rng": recipe.get("rng", source.rng), "affine_seed": seed}
    return recipe or None


GOLDEN = Verb(
    "golden",
    _run,
    options=_list_options,
    norm_help=_write_help,
    refused=(
        Refusal(SELECTION, "a manifest does not say which values count"),
        Refusal(EVALUATION, "a manifest names no running statistics"),
    ),
)
