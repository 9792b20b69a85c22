"""`normcli golden NORM`: a folder of exact results for another project's tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from normcli.cli.files.sources import make_recipe, require_one_stream
from normcli.cli.parameters import answer_options, options
from normcli.cli.problem import load_problem
from normcli.cli.verb_commands import AROUND, Verb
from normcli.cli.verbs.calculating.backward import ask_for_backward, choose_seed, load_gradient
from normcli.errors import UsageError
from normcli.tensors.random.recipe import DEFAULT_RNG

if TYPE_CHECKING:
    from normcli.cli.parameters.settings import Settings


def _run(settings: Settings, backward: bool, dy: str | None, dy_seed: int | None) -> None:
    """Write input, parameters and exact results for another project's tests.

    The folder has them as .npy (input, gamma, beta, running statistics, mask, normalized, each statistic; with
    --backward dy, dx, dgamma and dbeta too), and a manifest.json that says how they came: norm, options, seed,
    shapes, dtypes, SHA-256 sums, version; and its own sum, of what it says as JSON with sorted keys, no spaces
    and without that sum. normcli check DIR verifies it: exit code 0; 1 if a value differs, 3 if a file is
    missing or not what was written.

    \b
      normcli golden ln --shape 4,16 --dist normal --dtype float32 -o golden-ln
      normcli golden gn --groups 4 -i x.npy --affine-seed 1 -o golden-gn
      normcli golden rms --shape 4,16 --dist normal --affine-seed 1 --backward -o golden-rms
      normcli check golden-gn
    """
    if settings.answer.output is None:
        raise UsageError("golden needs a folder: -o DIR")
    require_one_stream(settings, dy)
    from normcli.golden.golden import write_golden
    from normcli.tensors.written_whole import open_folder, require_new_folder

    require_new_folder(settings.answer.output, "--output")
    problem, recipe = load_problem(settings), _describe_recipe(settings)
    if backward or dy is not None or dy_seed is not None:
        problem = load_gradient(settings, problem, dy, dy_seed)
        if dy is None:
            recipe["dy_seed"] = choose_seed(settings, dy_seed)
    with open_folder(settings.answer.output) as folder, settings.run.open_effort() as effort:
        result = write_golden(folder, problem._replace(effort=effort), recipe or None)
        if settings.run.strict:
            result.require_sound()
        warnings = () if settings.run.quiet else result.warnings  # while the input's file is where it was
    settings.run.warn(result.plan.norm.name, *warnings)


def _describe_recipe(settings: Settings) -> dict[str, Any]:
    """Return, by name, how a generated input, and drawn gamma and beta, were made; empty if neither was."""
    source, seed = settings.source, settings.parameters.affine_seed
    recipe: dict[str, Any] = {}
    if source.shape is not None and source.residual is None:  # a sum is no draw
        made = make_recipe(source)
        low, high = made.bounds
        recipe = {**made._asdict(), "low": low, "high": high}
    if seed is not None:
        recipe |= {"rng": recipe.get("rng", source.rng or DEFAULT_RNG), "affine_seed": seed}
    return recipe


GOLDEN = Verb(
    "golden",
    _run,
    options=lambda named: [
        answer_options.output("The folder: a new or an empty one.", "DIR"),
        *ask_for_backward("Also dy, and the derivatives by the input, gamma and beta that follow from it."),
        *options.of_problem(named),
        *options.COUNTING,
        *answer_options.RUN,
    ],
    examples=(
        "{tensor} --dist normal -o golden",
        "-i x.npy -o golden && normcli check golden",
    ),
    refused={
        (*AROUND, "--quantize"): (
            "these folders hold the result of the norm alone; normcli NORM … -o FILE writes the exact gated, "
            "clipped or quantized one, and normcli check NORM … --actual compares a kernel's with it"
        )
    },
)
