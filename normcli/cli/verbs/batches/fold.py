"""`normcli fold`: batch norms folded into the layer before them, spectral norms into the weight they divide."""

from __future__ import annotations

from typing import TYPE_CHECKING

from click import argument, option

from normcli.cli.files.choose_destination import choose_values_file
from normcli.cli.files.destination import ARCHIVES, WholeFiles, print_document
from normcli.cli.files.sources import load_affine, load_optional, load_parameter
from normcli.cli.parameters import answer_options, options
from normcli.cli.parameters.types import Framework, NormName
from normcli.cli.problem import adopt_eps, load_running
from normcli.cli.verb_commands import Verb
from normcli.errors import DataError, UsageError, name_subject
from normcli.norms.options import find_option, list_own_options
from normcli.norms.request import Choices
from normcli.norms.table import NORMS, OF_MATRICES, find_norm
from normcli.tensors.written_whole import open_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from normcli.answers.batches.folding import CheckpointFolding, Folding, MatrixFolding
    from normcli.cli.parameters.settings import Settings
    from normcli.cli.problem import Running
    from normcli.norms.rules import EpsMode
    from normcli.running.average import State
    from normcli.running.fold import Layer

    Own = Mapping[str, Any]
    Fold = Callable[[Settings, Own], Folding | CheckpointFolding | MatrixFolding]
    """The own options of `fold` by name: of the layer that a norm is folded into, or of a state dict."""

_NORM = NORMS["bn"]
_MATRICES = NORMS[OF_MATRICES]

_SUFFIXES = (".json", *ARCHIVES)

_OF_NORM = ("--running-mean", "--running-var", "--state", "--gamma", "--beta")
"""The options that describe the batch normalization behind one layer."""

_OF_LAYER = {
    _NORM.name: ("--conv-bias", "--groups", *_OF_NORM),
    _MATRICES.name: (
        "--conv-bias", "--groups", "--like", "--transposed",
        *(f"--{name}" for name in list_own_options(_MATRICES) if name != "rows"),
    ),
}  # fmt: skip
"""Norm → the options that describe one layer, and nothing of a state dict."""

_LAYER = (
    option(
        "--conv-weight", metavar="FILE", help="The layer's weight: (out, in/groups, …), or as --like has it."
    ),
    option("--conv-bias", metavar="FILE", help="Its bias, one for each channel that comes out."),
    option("--groups", type=int, metavar="G", help="Of a grouped convolution. [default: 1]"),
    option(
        "--transposed",
        is_flag=False,
        flag_value="",
        metavar="[NAME,…]",
        help="Of a transposed convolution: (in, out/groups, …). Of bn with --checkpoint: the layers that are.",
    ),
)


def _run(settings: Settings, norm: str, **source: Any) -> None:
    """Fold batch normalization, or spectral normalization, into a layer.

    The result is one layer that does the work of both after training, in the dtype of the weight. Both are run
    on a random batch, and the largest difference is printed.

    The weight is (out, in/groups, …) as torch's, under --like keras or flax-linen (…, in/groups, out), of
    Keras's transposed layers (…, out, in), of MLX (out, …, in). The result has the order of the weight.

    Of bn, the default NORM, it is the one behind the layer. Of sn the weight is divided by σ = uᵀXv of --u and
    --v as they were kept, or of --iterations from one of them; without them, by its largest singular value.
    Where σ is off, that value is not 1 afterwards. With --checkpoint it is every such weight of a state dict,
    and --rows is the axis of the rows of those whose shape leaves it open.

    Of bn, --checkpoint takes every norm of a state dict behind a layer that names tell: the module before it in
    a Sequential, or conv1 of bn1. If the file has no order of modules, conv1 is taken to be first only where
    channels show it, here or in other modules with such names. --dry-run lists these
    pairs and folds nothing; --pairs names others. Of an ONNX model (the extra onnx) the graph tells pairs and
    eps; -o FILE.onnx is the model without these norms, other files have its constants by name.

    \b
      normcli fold --conv-weight w.npy --running-mean m.npy --running-var v.npy -o folded.npz
      normcli fold --conv-weight hwio.npy --like keras --running-mean m.npy --running-var v.npy -o folded.npz
      normcli fold --conv-weight w.npy --conv-bias c.npy --gamma g.npy --beta b.npy --state bn.npz
      normcli fold --checkpoint resnet.safetensors --dry-run
      normcli fold --checkpoint resnet.onnx -o plain.onnx
      normcli fold --checkpoint net.npz --pairs '*.conv=*.norm' -o plain.npz
      normcli fold sn --conv-weight w.npy --u u.npy --v v.npy -o folded.npz
      normcli fold sn --checkpoint gan.safetensors -o plain.safetensors
    """
    row = find_norm(norm)[0]
    if row.name not in _FOLDS:
        raise UsageError(f"{row.name} is no norm that a layer takes up; {' and '.join(_FOLDS)} are")
    Choices(settings.request._replace(norm=row.name, groups=None, like=None))
    if row is _MATRICES:
        settings.refuse("is of bn, whose layer stands before it", "--pairs", "--dry-run")
        settings.refuse("is of bn; sn has none", *_OF_NORM)
    fold_layer, fold_state = _FOLDS[row.name]
    path, output = source["checkpoint"], settings.answer.output
    if path is None:
        settings.refuse("goes with --checkpoint", "--pairs", "--dry-run")
        if source["transposed"]:
            raise UsageError(f"--transposed {source['transposed']}: names of layers go with --checkpoint")
    else:
        settings.refuse("and --checkpoint are two sources of weights: give one", "--conv-weight")
        settings.refuse("goes with --conv-weight, not with --checkpoint", *_OF_LAYER[row.name])
    destination = choose_values_file(
        None if _is_model(path) and _is_model(output) else output,
        suffixes=_SUFFIXES if path is None else ARCHIVES,
    )
    document = (fold_layer if path is None else fold_state)(settings, source)
    if destination is not None:
        with WholeFiles() as files:
            destination.write_arrays(files, document.saved)
    print_document(document, settings.answer)


def _is_model(path: str | None) -> bool:
    """Whether a file is a model of ONNX, by its name."""
    return path is not None and path.lower().endswith(".onnx")


def _fold_batch(settings: Settings, source: Own) -> Folding:
    """Return a layer with the batch normalization after it folded in, and a proof of equality on random input.

    Raises `UsageError` without running statistics, and `DataError` for arrays that do not fit.
    """
    from normcli.answers.batches.folding import Folding
    from normcli.running.fold import Affine, fold, prove

    layer = _load_layer(settings, source)
    running = load_running(settings.running._replace(evaluation=True), _NORM.name)
    if running is None:
        raise UsageError("fold needs running statistics: --running-mean and --running-var, or --state FILE")
    if layer.weight.ndim > 1:
        _require_channels(layer, running)
    eps, eps_mode, eps_from = _choose_eps(settings, running.state)
    norm = Affine(running.statistics, eps, **load_affine(settings.parameters), eps_mode=eps_mode)
    folded = fold(layer, norm)
    proof = prove(layer, norm.apply, folded)
    return Folding(layer, norm, folded, proof, str(source["conv_weight"]), eps_from)


def _fold_norms(settings: Settings, source: Own) -> CheckpointFolding:
    """Fold every batch normalization of a state dict or ONNX model into the layer before it.

    From a model to `-o FILE.onnx`, the new model is written here. Raises `UsageError` for options that do not
    fit, and `DataError` for bad files.
    """
    from normcli.answers.batches.folding import CheckpointFolding
    from normcli.auditing.onnx_fold import OpenModel
    from normcli.running.checkpoint_fold import fold_checkpoint
    from normcli.running.norm_pairs import describe_pairs, has_order, pair_norms, turn_pairs
    from normcli.tensors.many import load_all

    path, output = str(source["checkpoint"]), settings.answer.output
    if source["dry_run"] and output is not None:
        raise UsageError("--dry-run writes nothing: leave --output out")
    is_graph = _is_model(path)
    eps, eps_mode, eps_from = _choose_eps(settings, None)
    if is_graph:
        settings.refuse(f"is what {path} says itself: leave it out", "--transposed")
        if eps_from is not None or source["pairs"] is not None:
            raise UsageError(f"{path} has its pairs and eps itself: leave --pairs, --eps and --like out")
    if source["transposed"] == "":
        raise UsageError("--transposed with --checkpoint: give the names of the layers, NAME,…")
    with name_subject(f"--checkpoint {path}"):
        model = OpenModel.read(path) if is_graph else None
        if model is None:
            arrays = load_all(path)
            pairs, names = pair_norms(
                arrays, source["pairs"], is_ordered=path.endswith(".npz") and has_order(arrays)
            )
        else:
            (arrays, pairs), names = model.list_layers(), model.norms
        if source["transposed"]:
            pairs = turn_pairs(pairs, source["transposed"].split(","))
        proofs, saved = ({}, {}) if source["dry_run"] else fold_checkpoint(arrays, pairs, eps, eps_mode)
    left = [name for name in names if name not in {pair.norm for pair in pairs}]
    is_given = is_graph or source["pairs"] is not None
    for note in describe_pairs(pairs, left, is_given=is_given):
        settings.run.note(path, note)
    if eps_from is None and not is_graph:
        settings.run.note(path, f"it keeps no eps: {eps:g} is taken, and --eps says another")
    shapes = {pair.layer: arrays[f"{pair.layer}.weight"].shape for pair in pairs}
    origin = "" if eps_from is None else f" ({eps_from})"
    said = "eps of each norm" if is_graph else f"eps {eps:g}{origin}"
    if model is not None and output is not None and _is_model(output):
        with open_whole(output) as stream:
            stream.write(model.write(saved))
    return CheckpointFolding(pairs, proofs, shapes, left, saved, path, said, is_given=is_given)


def _fold_weight(settings: Settings, source: Own) -> MatrixFolding:
    """Fold spectral normalization into one weight, and return it with the layer's bias."""
    from normcli.answers.batches.folding import MatrixFolding
    from normcli.running.matrix_fold import fold_matrix

    layer = _load_layer(settings, source)
    name = str(source["conv_weight"])
    with name_subject(f"--conv-weight {name}"):
        folded = fold_matrix(layer, settings.request, name)
    bias = {} if layer.bias is None else {"bias": layer.bias}
    return MatrixFolding((folded,), {"weight": folded.weight, **bias}, name, settings.request.like)


def _fold_checkpoint(settings: Settings, source: Own) -> MatrixFolding:
    """Fold spectral normalization into every weight of a state dict that has it.

    Raises `UsageError` if `--rows` is given and no weight needs it, and `DataError` for a bad file.
    """
    from normcli.answers.batches.folding import MatrixFolding
    from normcli.running.matrix_fold import describe_state, fold_state
    from normcli.tensors.many import load_all

    rows = settings.request.rows
    if rows not in (None, "0", "1"):
        raise UsageError("--rows is 0 or 1 with --checkpoint: the axis of the rows where it is open")
    path = str(source["checkpoint"])
    with name_subject(f"--checkpoint {path}"):
        folded, saved = fold_state(load_all(path), int(rows or 0))
    has_open = [each.name for each in folded if each.has_open_rows]
    if rows is not None and not has_open:
        raise UsageError(
            "--rows is for weights whose rows could be either axis; of this checkpoint none are open"
        )
    for note in describe_state(folded, saved, has_open if rows is None else []):
        settings.run.note(path, note)
    return MatrixFolding(folded, saved, path)


def _load_layer(settings: Settings, source: Own) -> Layer:
    """Return the layer of `--conv-weight`.

    Raises
    ------
    UsageError
        If there is no `--conv-weight`.
    DataError
        If the weight is a single number.
    """
    from normcli.running.fold import Layer

    if source["conv_weight"] is None:
        raise UsageError("fold needs --conv-weight FILE")
    weight = load_parameter("conv-weight", source["conv_weight"])
    bias = load_optional("conv-bias", source["conv_bias"])
    if weight.ndim < 1:
        raise DataError("--conv-weight holds a single number; a layer's weight has 2 axes or more")
    groups, like = settings.request.groups, settings.request.like
    layer = Layer(weight, bias, 1 if groups is None else groups, source["transposed"] is not None, like)
    return layer.take_weight(weight)  # from the framework's order of axes to torch's


def _require_channels(layer: Layer, running: Running) -> None:
    """Raise `DataError` unless the running statistics have one value for each output channel of a layer.

    A single value for all channels is accepted too, unless it is from a state file.
    """
    from normcli.running.fold import format_outgoing

    found, count = running.statistics.mean.shape, layer.channels
    if found == (count,) or (running.state is None and found in ((), (1,))):
        return
    theirs = layer._replace(framework="keras").order
    advice = f" of a weight ({', '.join(layer.order)})"
    if layer.order[0] != "…" and found == layer.given.shape[theirs.index("out") - 3 :][:1]:
        advice += f"; --like keras takes ({', '.join(theirs)})"
    raise DataError(f"{running.names[0]} has the shape {found}; {format_outgoing(count)}{advice}")


def _choose_eps(settings: Settings, state: State | None) -> tuple[float, EpsMode, str | None]:
    """Return eps, its mode, and words on the source of eps, such as `--eps`; None for the norm's default.

    The sources are the option, the framework (`like keras`) and the state file, in this order.
    """
    import numpy as np

    from normcli.norms.plan import make_plan
    from normcli.norms.request import Request
    from normcli.norms.rules import EpsMode

    like, eps = settings.request.like, settings.request.eps
    sources = {"--eps": eps, f"like {like}": like, f"of {settings.running.state}": state}
    request = adopt_eps(Request(_NORM.name, axes=0, eps=eps, like=like), state)
    spec = make_plan(request, (1, 1), np.dtype(np.float64)).spec
    source = next((name for name, given in sources.items() if given is not None), None)
    return spec.eps or 0.0, spec.eps_mode or EpsMode.INSIDE, source


_FOLDS: Mapping[str, tuple[Fold, Fold]] = {
    _NORM.name: (_fold_batch, _fold_norms),
    _MATRICES.name: (_fold_weight, _fold_checkpoint),
}
"""Norm → the functions that fold it into one layer, and into every layer of a state dict."""

FOLD = Verb(
    "fold",
    _run,
    options=(
        argument("norm", required=False, default=_NORM.name, metavar="[NORM]", type=NormName()),
        *_LAYER,
        *options.RUNNING[1:],
        options.STATE,
        *options.declare_affine(("gamma", "beta"), with_synonyms=False),
        option("--eps", type=float, help=f"As in training. [default: the state's, or {_NORM.eps:g}]"),
        *(options.declare(find_option(name)) for name in list_own_options(_MATRICES)),
        option(
            "--checkpoint",
            metavar="FILE",
            help="A state dict of torch's as .npz or .safetensors, or an .onnx model.",
        ),
        option("--pairs", metavar="LAYER=NORM,…", help="Of bn, with --checkpoint: the layer of each norm."),
        option("--dry-run", is_flag=True, help="With --checkpoint: list the pairs, and fold nothing."),
        option("--like", type=Framework(_NORM.name), help="Take a framework's eps, rows and order of axes."),
        answer_options.output("Save weight and bias, or the whole state dict: .npz, .safetensors, or .json."),
        *answer_options.TABLE,
        answer_options.QUIET,
    ),
)
