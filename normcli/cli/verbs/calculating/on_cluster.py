"""`--scheduler` and `--workers`: norms, `fit`, `apply`, `invert` and `check` on a dask cluster."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from normcli.cli.files.choose_destination import choose_tensor_file
from normcli.cli.files.destination import STORE, WholeFiles
from normcli.cli.files.sources import load_affine
from normcli.cli.verb_commands import OF_ONE_TENSOR
from normcli.errors import UsageError
from normcli.identifying.question import Diagnosis
from normcli.tensors.tensor import STANDARD_STREAM, find_place, locate

if TYPE_CHECKING:
    import contextlib
    from collections.abc import Callable, Mapping, Sequence

    from normcli.checking.check import Checked
    from normcli.checking.ulp import Tolerance
    from normcli.cli.files.destination import Destination
    from normcli.cli.parameters.settings import Settings
    from normcli.cluster.blocks import BlockNorm, BlockUse
    from normcli.cluster.session import Session
    from normcli.fitting.fit import Fitted, Policy
    from normcli.fitting.statistics import Stats
    from normcli.fitting.use import Use
    from normcli.library.judgement import Judgement
    from normcli.norms.request import Request
    from normcli.tensors.formats.stored_array import Stored
    from normcli.tensors.held_files import Opened, StoreVersion
    from normcli.tensors.many import Named

    Pair = tuple[Named, Destination]
    UseOne = Callable[..., list[str]]

_NO_CLUSTER = "--scheduler and --workers"

_NOT_LOOKED_FOR = Diagnosis(
    "none",
    "what made the tensor is not looked for on a cluster",
    next_step="check on one machine, without --scheduler and --workers",
)


def _open_session(settings: Settings) -> contextlib.AbstractContextManager[Session]:
    """Return a context manager of the cluster that `--scheduler` names or `--workers` starts.

    Raises
    ------
    UsageError
        If both are given.
    """
    run = settings.run
    if run.scheduler is not None and run.workers is not None:
        raise UsageError("--scheduler is a cluster that runs, and --workers starts one; give one of them")
    from normcli.cluster.session import open_session

    return open_session(run.scheduler, run.workers)


def locate_files(paths: Sequence[str]) -> list[str]:
    """Return absolute paths, as workers have other working directories.

    Raises
    ------
    UsageError
        If a path is standard input (`-`).
    """
    if STANDARD_STREAM in paths:
        raise UsageError(f"standard input is of one machine; {_NO_CLUSTER} read files and stores")
    return [locate(path) for path in paths]


def fit_on_cluster(settings: Settings, named: Sequence[Named], policy: Policy) -> Fitted:
    """Fit a norm to stores (block by block) and files (one task each), and return the merged statistics.

    Raises
    ------
    UsageError
        If bad inputs are to be skipped and an input is a store (none of its blocks can be skipped), or both
        `--scheduler` and `--workers` are given.
    DataError
        If an input cannot be read, or does not fit the others.
    """
    from normcli.cluster.stores import fit_files, fit_store
    from normcli.fitting.fit import Fitted
    from normcli.fitting.statistics import merge_stats

    files = [one for one in named if find_place(one.name) is None]
    stores = [one.name for one in named if find_place(one.name) is not None]
    if policy.skips_bad and stores:
        raise UsageError(f"--skip-bad is of files where {_NO_CLUSTER} are given, and {stores[0]} is a store")
    with _open_session(settings) as session:
        fitted = fit_files(session, settings.request, files, policy) if files else None
        found = [] if fitted is None else [(files[0].name, fitted.stats)]
        found += [(name, fit_store(session, settings.request, name, policy.nan)) for name in stores]
    first, stats = found[0]
    for name, other in found[1:]:
        stats = merge_stats(stats, other, first, name)
    return Fitted(stats, (), ()) if fitted is None else fitted._replace(stats=stats)


def use_on_cluster(
    settings: Settings, use: Use, pairs: Sequence[Pair], use_one: UseOne, *, inverts: bool
) -> None:
    """Normalize inputs with fitted statistics on a cluster, and write the results.

    From a store to a store this is done block by block; every other pair is one task.

    Parameters
    ----------
    settings : Settings
    use : Use
        The statistics, with gamma, beta and options.
    pairs : sequence of (Named, Destination)
        Each input, under an absolute path, and the destination of its result.
    use_one : callable
        Writes the result of such a pair in a worker and returns warnings, which are reported here.
    inverts : bool
        Whether the inputs are normalized values, which are restored.

    Raises
    ------
    UsageError
        If a result goes to standard output, or both `--scheduler` and `--workers` are given.
    """
    if any(destination.path == STANDARD_STREAM for _, destination in pairs):
        raise UsageError(f"standard output is of one machine; {_NO_CLUSTER} write files and stores")
    from normcli.cluster.blocks import BlockUse
    from normcli.cluster.stores import open_source, run_each
    from normcli.fitting.subject import require_order

    stores = [pair for pair in pairs if find_place(pair[0].name) and pair[1].format_name == STORE]
    files = [
        (one, destination._replace(path=locate(str(destination.path))))
        for one, destination in pairs
        if (one, destination) not in stores
    ]
    with _open_session(settings) as session:
        for one, _ in stores:
            stored = open_source(one.name)
            require_order(use.stats.subject, stored.dimensions, one.name)
            BlockUse(use, tuple(stored.array.shape)).plan(stored.array.dtype)
        if len(files) > 1:  # before any is written
            run_each(session, functools.partial(_require_usable, use), [one for one, _ in files])
        work = functools.partial(_use_pair, use, use_one, inverts)
        results = zip(files, run_each(session, work, files), strict=True)
        notes = [(one.name, message) for (one, _), messages in results for message in messages]
        settings.run.warn_of_files("invert" if inverts else "apply", notes)
        for one, destination in stores:
            stored = open_source(one.name)
            block = BlockUse(use, tuple(stored.array.shape), inverts)
            _write(session, block, one.name, destination, stored)


def _require_usable(use: Use, one: Named) -> None:
    use.plan(one.name, one.load(use.wanted).values)


def _use_pair(use: Use, use_one: UseOne, inverts: bool, pair: Pair) -> list[str]:
    from normcli.cluster.blocks import ALONE

    return use_one(*pair, use, ALONE, inverts=inverts)


def normalize_on_cluster(settings: Settings) -> None:
    """Normalize an array into a store, block by block, or into a file, which one worker writes.

    Raises
    ------
    UsageError
        If the output is no file or store, or an option does not work on a cluster.
    DataError
        If the array cannot be read, has changed meanwhile, or the output cannot be written.
    """
    answer = settings.answer
    destination = choose_tensor_file(answer)
    given = ("--print", "--show", "--format", "--stats-output", "--state", "--strict")
    source = _find_source(settings, "take a tensor to a tensor", *given)
    if destination is None or destination.path == STANDARD_STREAM:
        raise UsageError(f"{_NO_CLUSTER} write stores and files: -i x.zarr:x -o y.zarr:y")
    from normcli.cluster.stores import open_source

    with _open_session(settings) as session:
        stored = open_source(source)  # before statistics are fitted, so that a change since is seen
        block = _choose_block(session, settings, source, stored)
        if destination.format_name == STORE:
            _write(session, block, source, destination, stored)
            return
        from normcli.cluster.stores import run_each

        there = destination._replace(path=locate(str(destination.path)))
        run_each(session, functools.partial(_write_file, block, there, stored.version), [locate(source)])


def check_on_cluster(
    settings: Settings, paths: Mapping[str, str], tolerate: Callable[..., Tolerance]
) -> Judgement[Checked]:
    """Compare an array of a store or file with the exact norm of another, block by block.

    Parameters
    ----------
    settings : Settings
    paths : mapping of str to str
        The array to check, under the name `normalized`.
    tolerate : callable
        Takes a dtype, and returns the tolerance for it.

    Raises
    ------
    UsageError
        If statistics are to be checked, or an option does not work on a cluster.
    DataError
        If an array cannot be read, or has changed meanwhile.
    """
    from normcli.checking.check import NORMALIZED

    actual = paths.get(NORMALIZED)
    given = (*(f"--actual-{name}" for name in paths if name != NORMALIZED), "--strict")
    source = _find_source(settings, "check a tensor against a tensor", *given)
    if actual is None:
        raise UsageError(f"{_NO_CLUSTER} check a tensor against a tensor: -i x.zarr:x --actual y.zarr:y")
    from normcli.answers.judging.check_verdict import Verdict
    from normcli.cluster.block_comparison import BlockCheck
    from normcli.cluster.blocks import make_hollow
    from normcli.cluster.stores import check_store, open_source
    from normcli.library.judgement import Judgement
    from normcli.norms.layout import find_layout
    from normcli.norms.plan import make_plan
    from normcli.tensors.tensor import Tensor

    with _open_session(settings) as session:
        stored = open_source(source)
        block = _choose_block(session, settings, source, stored)
        check = BlockCheck(block.count_in(settings.request.dtype), tolerate)
        found = check_store(session, check, source, actual)
    stored.version.require_unchanged()
    request = settings.request.adopt_layout(find_layout(stored.dimensions))
    plan = make_plan(request, tuple(stored.array.shape), stored.array.dtype)
    affine = load_affine(settings.parameters, None)
    parameters = {name: None if a is None else plan.fit_parameter(name, a) for name, a in affine.items()}
    tensor = Tensor(make_hollow(plan.grid.shape, plan.tensor_dtype), source)
    told = None if found.ok else _NOT_LOOKED_FOR
    answer = Verdict(plan, tensor, parameters, {NORMALIZED: actual}, found, diagnosis=told)
    return Judgement(found.ok, found, answer, told)


def _find_source(settings: Settings, what: str, *others: str) -> str:
    """Return the name of the one input.

    Parameters
    ----------
    settings : Settings
    what : str
        The work that clusters do, for the message about a refused option.
    *others : str
        Options that are refused, in addition to those that no verb has on a cluster.

    Raises
    ------
    UsageError
        If a refused option is given, or there is not exactly one input.
    """
    of_one = (*OF_ONE_TENSOR, "--eval", "--affine-seed", "--residual", "--residual-sum")
    settings.refuse(f"is of one machine; {_NO_CLUSTER} {what}", *others, *of_one)
    if len(settings.source.inputs) != 1:
        raise UsageError(f"{_NO_CLUSTER} take one -i STORE at a time")
    return settings.source.inputs[0]


def _choose_block(session: Session, settings: Settings, source: str, stored: Stored) -> BlockUse | BlockNorm:
    """Return the work to do for each block of a store.

    If groups extend over samples, statistics are fitted to the whole store first, and each block is normalized
    with them (`BlockUse`); otherwise each block is normalized alone (`BlockNorm`).
    """
    from normcli.cluster.blocks import choose_block
    from normcli.cluster.stores import fit_store
    from normcli.norms.layout import find_layout

    array, request = stored.array, settings.request.adopt_layout(find_layout(stored.dimensions))
    affine = {name: a for name, a in load_affine(settings.parameters, None).items() if a is not None}

    def fit(asked: Request, rule: str) -> Stats:
        return fit_store(session, asked, source, rule)

    return choose_block(request, tuple(array.shape), array.dtype, affine, settings.selection.nan, fit)


def _write_file(
    block: BlockNorm | BlockUse, destination: Destination, version: Opened | StoreVersion, source: str
) -> None:
    """Normalize an array, which is read whole into memory, into a file.

    Raises
    ------
    DataError
        If the array has changed since `version`.
    """
    from normcli.cluster.stores import open_source
    from normcli.tensors.formats.file_formats import Saved
    from normcli.tensors.tensor import Tensor
    from normcli.version import __version__

    stored = open_source(source)
    box = tuple(slice(0, length) for length in stored.array.shape)
    values = block.run(box, stored.read(box), __version__)
    with WholeFiles() as files:
        destination.write_tensor(files, Saved.like(Tensor(values, source, stored=stored), values))
        version.require_unchanged()


def _write(
    session: Session, use: BlockUse | BlockNorm, source: str, destination: Destination, stored: Stored
) -> None:
    """Write the results of a store's blocks into a new Zarr store, put at its destination at the end.

    Raises
    ------
    DataError
        If the input has changed meanwhile; the destination is then unchanged.
    """
    from normcli.cluster.stores import use_store
    from normcli.tensors.formats.stores import create_array
    from normcli.tensors.written_whole import open_folder

    place = find_place(str(destination.path))
    assert place is not None
    dtype = use.plan(stored.array.dtype).choose_output_dtype(stored.array.dtype)
    with open_folder(place.path, replaces=destination.overwrite) as folder:
        target = create_array(folder.absolute(), place.key, tuple(stored.array.shape), dtype, stored)
        use_store(session, use, source, target)
        stored.version.require_unchanged()
