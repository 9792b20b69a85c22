"""`--scheduler` and `--workers`: the verbs that a cluster of dask can do, block by block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from normcli.cli.destination import STORE, choose_tensor_file
from normcli.cli.sources import load_affine
from normcli.errors import DataError, UsageError
from normcli.tensors.places import find_place

if TYPE_CHECKING:
    import contextlib
    from collections.abc import Sequence

    from normcli.cli.destination import Destination
    from normcli.cli.settings import Settings
    from normcli.cluster.blocks import BlockNorm, BlockUse
    from normcli.cluster.session import Session
    from normcli.fitting.fit import Fitted, Policy
    from normcli.fitting.use import Use
    from normcli.tensors.many import Named

_NO_CLUSTER = "--scheduler and --workers"


def _open_session(settings: Settings) -> contextlib.AbstractContextManager[Session]:
    run = settings.run
    if run.scheduler is not None and run.workers is not None:
        raise UsageError("--scheduler is a cluster that runs, and --workers starts one; give one of them")
    from normcli.cluster.session import open_session

    return open_session(run.scheduler, run.workers)


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

    with _open_session(settings) as session:
        for source, destination in zip(sources, destinations, strict=True):
            shape = tuple(open_source(source).array.shape)
            _write(session, BlockUse(use, shape, inverts), source, destination)


def normalize_stores(settings: Settings) -> None:
    """Normalize an array of a store into another."""
    answer, sources = settings.answer, settings.source.inputs
    destination = choose_tensor_file(answer)
    given = {
        "--print": answer.fields, "--show": answer.show, "--format": answer.format_name,
        "--stats-output": answer.stats_output, "--mask": settings.selection.mask,
        "--lengths": settings.selection.lengths, "--fill": settings.selection.fill,
        "--eval": settings.running.evaluation, "--state": settings.running.state,
        "--strict": settings.run.strict,
    }  # fmt: skip
    refused = next((name for name, value in given.items() if value), None)
    if refused is not None:
        raise UsageError(f"{refused} is of one machine; {_NO_CLUSTER} take it from a store to a store")
    if len(sources) != 1:
        raise UsageError(f"{_NO_CLUSTER} take one -i STORE at a time")
    source = sources[0]
    _require_stores(source, destination)
    assert destination is not None
    from normcli.cluster.blocks import choose_block
    from normcli.cluster.stores import fit_store, open_source

    array = open_source(source).array
    affine = {name: a for name, a in load_affine(settings.parameters, None).items() if a is not None}
    nan = settings.selection.nan
    with _open_session(settings) as session:

        def fit(request: Any, rule: str) -> Any:
            return fit_store(session, request, source, rule)

        block = choose_block(settings.request, tuple(array.shape), array.dtype, affine, nan, fit)
        _write(session, block, source, destination)


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
