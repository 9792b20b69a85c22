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
    from normcli.cli.settings import Settings
    from normcli.norms.rules import EpsMode
    from normcli.running.average import State

_NORM = NORMS["bn"]

_LAYER = (
    option("--conv-weight", metavar="FILE", help="The layer's weight, (out, in/groups, …) as in torch."),
    option("--conv-bias", metavar="FILE", help="Its bias, one for each channel that comes out."),
    option("--groups", type=int, metavar="G", help="Of a grouped convolution. [default: 1]"),
    option("--transposed", is_flag=True, help="The weight is (in, out/groups, …)."),
)


def _run(settings: Settings, conv_weight: str | None, conv_bias: str | None, *, transposed: bool) -> None:
    """Fold batch normalization into the layer before it.

    The result is one layer that does the work of both after training, in the dtype of the weight. Both are run
    on a random batch, and the largest difference is printed.

    \b
      normcli fold --conv-weight w.npy --running-mean m.npy --running-var v.npy -o folded.npz
      normcli fold --conv-weight w.npy --conv-bias c.npy --gamma g.npy --beta b.npy --state bn.npz
    """
    if conv_weight is None:
        raise UsageError("fold needs --conv-weight FILE")
    destination = choose_values_file(settings.answer.output, suffixes=STATISTICS_SUFFIXES)
    from normcli.answers.folding import Folding
    from normcli.running.fold import Affine, Layer, fold, prove

    weight, bias = load_parameter("conv-weight", conv_weight), load_optional("conv-bias", conv_bias)
    if weight.ndim < 1:
        raise DataError("--conv-weight holds a single number; a layer's weight has 2 axes or more")
    groups = settings.request.groups
    layer = Layer(weight, bias, 1 if groups is None else groups, transposed)
    running = load_running(settings.running._replace(evaluation=True), _NORM.name)
    if running is None:
        raise UsageError("fold needs running statistics: --running-mean and --running-var, or --state FILE")
    if running.state is not None and weight.ndim > 1:
        running.state.require_shape((layer.channels,), running.names[0], "the layer")
    eps, eps_mode, eps_from = _choose_eps(settings, running.state)
    norm = Affine(running.statistics, eps, **load_affine(settings.parameters), eps_mode=eps_mode)
    folded = fold(layer, norm)
    document = Folding(layer, norm, folded, prove(layer, norm, folded), conv_weight, eps_from)
    if destination is not None:
        with contextlib.ExitStack() as files:
            destination.write_arrays(files, document.arrays())
    print_document(document, settings.answer)


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
        option("--like", type=Framework(_NORM.name), help="Take the eps of a framework's batch norm."),
        options.output("Save weight and bias, as .npz or .json."),
        *options.TABLE,
        options.QUIET,
    ),
)
