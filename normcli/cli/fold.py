"""`normcli fold`: batch normalization folded into the layer before it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from click import option

from normcli.cli import options
from normcli.cli.destination import STATISTICS_SUFFIXES, choose_values_file, print_document
from normcli.cli.problem import adopt_eps, load_running
from normcli.cli.sources import load_affine, load_optional, load_parameter
from normcli.cli.types import Framework
from normcli.cli.verbs import Verb
from normcli.errors import DataError, UsageError
from normcli.norms.table import NORMS

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from normcli.cli.problem import Running
    from normcli.cli.settings import Settings
    from normcli.norms.rules import EpsMode
    from normcli.running.average import State
    from normcli.running.fold import Layer

_NORM = NORMS["bn"]

_LAYER = (
    option(
        "--conv-weight", metavar="FILE", help="The layer's weight: (out, in/groups, …), or as --like has it."
    ),
    option("--conv-bias", metavar="FILE", help="Its bias, one for each channel that comes out."),
    option("--groups", type=int, metavar="G", help="Of a grouped convolution. [default: 1]"),
    option("--transposed", is_flag=True, help="Of a transposed convolution: (in, out/groups, …)."),
)


def _run(settings: Settings, conv_weight: str | None, conv_bias: str | None, *, transposed: bool) -> None:
    """Fold batch normalization into the layer before it.

    The result is one layer that does the work of both after training, in the dtype of the weight. Both are run
    on a random batch, and the largest difference is printed.

    The weight is (out, in/groups, …) as torch's, under --like keras or flax-linen (…, in/groups, out), of
    Keras's transposed layers (…, out, in), of MLX (out, …, in). The result has the order of the weight.

    \b
      normcli fold --conv-weight w.npy --running-mean m.npy --running-var v.npy -o folded.npz
      normcli fold --conv-weight hwio.npy --like keras --running-mean m.npy --running-var v.npy -o folded.npz
      normcli fold --conv-weight w.npy --conv-bias c.npy --gamma g.npy --beta b.npy --state bn.npz
    """
    if conv_weight is None:
        raise UsageError("fold needs --conv-weight FILE")
    destination = choose_values_file(settings.answer.output, suffixes=STATISTICS_SUFFIXES)
    from normcli.answers.folding import Folding
    from normcli.running.fold import Affine, Layer, arrange, find_order, fold, prove

    weight, bias = load_parameter("conv-weight", conv_weight), load_optional("conv-bias", conv_bias)
    if weight.ndim < 1:
        raise DataError("--conv-weight holds a single number; a layer's weight has 2 axes or more")
    groups = settings.request.groups
    order = find_order(settings.request.like, transposed=transposed)
    arranged = arrange(weight, order, transposed=transposed)
    layer = Layer(arranged, bias, 1 if groups is None else groups, transposed)
    running = load_running(settings.running._replace(evaluation=True), _NORM.name)
    if running is None:
        raise UsageError("fold needs running statistics: --running-mean and --running-var, or --state FILE")
    if weight.ndim > 1:
        _require_channels(layer, running, weight, order)
    eps, eps_mode, eps_from = _choose_eps(settings, running.state)
    norm = Affine(running.statistics, eps, **load_affine(settings.parameters), eps_mode=eps_mode)
    folded = fold(layer, norm)
    document = Folding(layer, norm, folded, prove(layer, norm, folded), conv_weight, eps_from, order)
    if destination is not None:
        with contextlib.ExitStack() as files:
            destination.write_arrays(files, document.arrays())
    print_document(document, settings.answer)


def _require_channels(layer: Layer, running: Running, weight: NDArray[Any], order: tuple[str, ...]) -> None:
    """Raise `DataError`, with the order of axes, unless there are statistics of each channel that comes out."""
    from normcli.running.fold import find_order, format_outgoing

    found, count = running.statistics.mean.shape, layer.channels
    if found == (count,) or (running.state is None and found in ((), (1,))):
        return
    theirs = find_order("keras", transposed=layer.transposed)
    advice = f" of a weight ({', '.join(order)})"
    if order[0] != "…" and found == weight.shape[theirs.index("out") - 3 :][:1]:
        advice += f"; --like keras takes ({', '.join(theirs)})"
    raise DataError(f"{running.names[0]} has the shape {found}; {format_outgoing(count)}{advice}")


def _choose_eps(settings: Settings, state: State | None) -> tuple[float, EpsMode, str | None]:
    """Return eps, its mode, and where eps is from: option, framework or state file; None is the default."""
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


FOLD = Verb(
    "fold",
    _run,
    options=(
        *_LAYER,
        *options.RUNNING[1:],
        options.STATE,
        *options.declare_affine(("gamma", "beta"), with_synonyms=False),
        option("--eps", type=float, help=f"As in training. [default: the state's, or {_NORM.eps:g}]"),
        option("--like", type=Framework(_NORM.name), help="Take a framework's eps and order of axes."),
        options.output("Save weight and bias, as .npz or .json."),
        *options.TABLE,
        options.QUIET,
    ),
)
