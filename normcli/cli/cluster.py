"""`--scheduler` and `--workers`: the verbs that a cluster of dask can do, block by block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from normcli.cli.destination import STORE, choose_tensor_file
from normcli.cli.sources import load_affine
from normcli.errors import DataError, UsageError
from normcli.tensors.places import find_place, locate
from normcli.tensors.tensor import STANDARD_STREAM

if TYPE_CHECKING:
    import contextlib
    from collections.abc import Callable, Mapping, Sequence

    from normcli.answers.verdict import Verdict
    from normcli.cli.destination import Destination
    from normcli.cli.settings import Settings
    from normcli.cluster.blocks import BlockNorm, BlockUse
    from normcli.cluster.session import Session
    from normcli.fitting.fit import Fitted, Policy
    from normcli.fitting.statistics import Stats
    from normcli.fitting.use import Use
    from normcli.norms.request import Request
    from normcli.tensors.many import Named
    from normcli.verify.ulp import Tolerance

_NO_CLUSTER = "--scheduler and --workers"

_NOT_LOOKED_FOR = (
    "What made the tensor is not looked for on a cluster: check on one machine, without --scheduler and "
    "--workers, looks for it."
)


def _open_session(settings: Settings) -> contextlib.AbstractContextManager[Session]:
    run = settings.run
    if run.scheduler is not None and run.workers is not None:
        raise UsageError("--scheduler is a cluster that runs, and --workers starts one; give one of them")
    from normcli.cluster.session import open_session

    return open_session(run.scheduler, run.workers)


def locate_files(paths: Sequence[str]) -> list[str]:
    """Return paths as workers find them, whose working directories are others."""
    if STANDARD_STREAM in paths:
        raise UsageError(f"standard input is of one machine; {_NO_CLUSTER} read files and stores")
    return [locate(path) for path in paths]


def fit_on_cluster(settings: Settings, named: Sequence[Named], policy: Policy) -> Fitted:
    """Fit a norm to stores, block by block, and to files, each in a task of its own."""
    from normcli.cluster.files import fit_files
    from normcli.cluster.stores import fit_store
    from normcli.fitting.fit import Fitted
    from normcli.fitting.stats_file import merge_stats

    if policy.skips_bad:
        raise UsageError("--skip-bad is of one machine")
    with _open_session(settings) as session:
        stores = [one for one in named if find_place(one.name) is not None]
        files = [one for one in named if find_place(one.name) is None]
        found = [(one.name, fit_store(session, settings.request, one.name, policy.nan)) for one in stores]
        found += fit_files(session, settings.request, files, policy)
    first, stats = found[0]
    for name, other in found[1:]:
        stats = merge_stats(stats, other, first, name)
    return Fitted(stats, (), ())


def use_stores(
    settings: Settings, use: Use, sources: Sequence[str], destinations: Sequence[Destination], *, inverts: bool
) -> None:
    """Apply statistics to stores, or undo that."""
    for source, destination in zip(sources, destinations, strict=True):
        _require_stores(source, destination)
    from normcli.cluster.blocks import BlockUse
    from normcli.cluster.stores import open_source
    from normcli.fitting.subject import require_order

    with _open_session(settings) as session:
        for source, destination in zip(sources, destinations, strict=True):
            stored = open_source(source)
            shape = tuple(stored.array.shape)
            require_order(use.stats.subject, stored.dimensions, source)
            _write(session, BlockUse(use, shape, inverts), source, destination)


def normalize_stores(settings: Settings) -> None:
    """Normalize an array of a store into another."""
    answer = settings.answer
    destination = choose_tensor_file(answer)
    given = {
        "--print": answer.fields, "--show": answer.show, "--format": answer.format_name,
        "--stats-output": answer.stats_output, "--state": settings.running.state,
        "--strict": settings.run.strict,
    }  # fmt: skip
    source = _find_source(settings, given, "take it from a store to a store")
    _require_stores(source, destination)
    assert destination is not None
    with _open_session(settings) as session:
        _write(session, _choose_block(session, settings, source), source, destination)


def check_stores(settings: Settings, paths: Mapping[str, str], tolerate: Callable[..., Tolerance]) -> Verdict:
    """Hold an array of a store against the exact norm of another.

    Parameters
    ----------
    settings : Settings
    paths : mapping of str to str
        The arrays to check, by what they hold.
    tolerate : callable
        As of `normcli.verify.check.check`.
    """
    from normcli.verify.check import NORMALIZED

    actual = paths.get(NORMALIZED)
    given = {
        **{f"--actual-{name}": path for name, path in paths.items() if name != NORMALIZED},
        "--strict": settings.run.strict,
    }
    source = _find_source(settings, given, "check a store against a store")
    if actual is None or any(find_place(name) is None for name in (source, actual)):
        raise UsageError(f"{_NO_CLUSTER} check a store against a store: -i x.zarr:x --actual y.zarr:y")
    from normcli.answers.verdict import Verdict
    from normcli.cluster.blocks import make_hollow
    from normcli.cluster.checks import BlockCheck
    from normcli.cluster.stores import check_store
    from normcli.tensors.tensor import Tensor

    with _open_session(settings) as session:
        block = _choose_block(session, settings, source)
        check = BlockCheck(block.count_in(settings.request.dtype), tolerate)
        plan, found = check_store(session, check, source, actual)
    affine = load_affine(settings.parameters, None)
    parameters = {name: None if a is None else plan.fit_parameter(name, a) for name, a in affine.items()}
    tensor = Tensor(make_hollow(plan.grid.shape, plan.tensor_dtype), source)
    sentence = None if found.ok else _NOT_LOOKED_FOR
    return Verdict(plan, tensor, parameters, {NORMALIZED: actual}, found, sentence=sentence)


def _find_source(settings: Settings, given: Mapping[str, Any], what: str) -> str:
    """Return the one input, or raise `UsageError` if something is given that workers do not do."""
    given = {
        **given,
        "--mask": settings.selection.mask, "--lengths": settings.selection.lengths,
        "--fill": settings.selection.fill, "--eval": settings.running.evaluation,
        "--affine-seed": settings.parameters.affine_seed is not None, "--residual": settings.source.residual,
        "--residual-sum": settings.source.residual_sum,
    }  # fmt: skip
    refused = next((name for name, value in given.items() if value), None)
    if refused is not None:
        raise UsageError(f"{refused} is of one machine; {_NO_CLUSTER} {what}")
    if len(settings.source.inputs) != 1:
        raise UsageError(f"{_NO_CLUSTER} take one -i STORE at a time")
    return settings.source.inputs[0]


def _choose_block(session: Session, settings: Settings, source: str) -> BlockUse | BlockNorm:
    """Return what normalizes the blocks of a store; statistics that are needed are fitted now."""
    from normcli.cluster.blocks import choose_block
    from normcli.cluster.stores import fit_store, open_source
    from normcli.norms.layout import find_layout

    stored = open_source(source)
    array, request = stored.array, settings.request.adopt_layout(find_layout(stored.dimensions))
    affine = {name: a for name, a in load_affine(settings.parameters, None).items() if a is not None}

    def fit(asked: Request, rule: str) -> Stats:
        return fit_store(session, asked, source, rule)

    return choose_block(request, tuple(array.shape), array.dtype, affine, settings.selection.nan, fit)


def _require_stores(source: str, destination: Destination | None) -> None:
    place = find_place(source)
    if place is None or destination is None or destination.format_name != STORE:
        raise UsageError(f"{_NO_CLUSTER} normalize a store into a store: -i x.zarr:x -o y.zarr:y")


def _write(session: Session, use: BlockUse | BlockNorm, source: str, destination: Destination) -> None:
    from normcli.cluster.stores import open_source, use_store
    from normcli.tensors.stores import create_array
    from normcli.tensors.whole import open_folder

    place = find_place(str(destination.path))
    assert place is not None
    stored = open_source(source)
    dtype = use.plan(stored.array.dtype).choose_output_dtype(stored.array.dtype)
    with open_folder(place.path, replaces=destination.overwrite) as folder:
        target = create_array(folder.absolute(), place.key, tuple(stored.array.shape), dtype, stored)
        use_store(session, use, source, target)
        if target.nchunks_initialized < 1 and stored.array.size:
            raise DataError(
                f"{destination.path}: the workers wrote nothing there: do they share this file system?"
            )
