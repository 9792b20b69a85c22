"""`normcli fold`: batch normalization folded into the layer before it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from normcli.cli import options
from normcli.cli.types import Framework
from normcli.errors import DataError, UsageError
from normcli.norms.table import NORMS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from normcli.norms.table import EpsMode
    from normcli.numerics.solution import Given
    from normcli.running.average import State

_NORM = NORMS["bn"]

_PARAMETERS = ("conv_weight", "conv_bias", "gamma", "beta")

_SUFFIXES = (".npz", ".json")

_LAYER = (
    options.make("--conv-weight", metavar="FILE", help="The layer's weight, (out, in/groups, …) as in torch."),
    options.make("--conv-bias", metavar="FILE", help="Its bias, one for each channel that comes out."),
    options.make("--groups", type=int, default=1, metavar="G", help="Of a grouped convolution. [default: 1]"),
    options.make("--transposed", is_flag=True, help="The weight is (in, out/groups, …)."),
)


@click.command(name="fold")
@options.apply(
    [
        *_LAYER,
        *(option for option in options.RUNNING[1:]),
        options.STATE,
        options.GAMMA,
        options.BETA,
        options.make("--eps", type=float, help=f"As in training. [default: the state's, or {_NORM.eps:g}]"),
        options.make("--like", type=Framework(_NORM.name), help="Take the eps of a framework's batch norm."),
        options.make("-o", "--output", metavar="FILE", help="Save weight and bias, as .npz or .json."),
        options.FORMAT,
        options.DIGITS,
        options.FULL,
        options.COLOUR,
        options.QUIET,
    ]
)
def command(**settings: Any) -> None:
    """Fold batch normalization into the convolution or linear layer before it.

    What comes out is one layer that does the work of both after training, in the dtype of the weight. Both are
    run on a random batch, and the largest difference is told.

    \b
      normcli fold --conv-weight w.npy --running-mean m.npy --running-var v.npy -o folded.npz
      normcli fold --conv-weight w.npy --conv-bias b.npy --gamma g.npy --beta b.npy --state bn.npz
    """
    if settings["conv_weight"] is None:
        raise UsageError("fold needs --conv-weight FILE")
    output = settings["output"]
    if output is not None:
        from normcli.tensors.files import require_saveable

        require_saveable(output, "--output", _SUFFIXES)
    import sys

    from normcli.answers.folding import Folding
    from normcli.cli.view import make_view
    from normcli.running.fold import Affine, Layer, fold, prove
    from normcli.writers import write

    loaded = {name: _load(name, settings[name]) for name in _PARAMETERS}
    weight = loaded["conv_weight"]
    if weight is None or weight.ndim < 1:
        raise DataError("--conv-weight holds a single number; a layer's weight has 2 axes or more")
    layer = Layer(weight, loaded["conv_bias"], settings["groups"], settings["transposed"])
    running, state = _load_running(settings)
    eps, eps_mode, eps_from = _choose_eps(settings, state)
    norm = Affine(running, eps, loaded["gamma"], loaded["beta"], eps_mode)
    folded = fold(layer, norm)
    document = Folding(layer, norm, folded, prove(layer, norm, folded), settings["conv_weight"], eps_from)
    if output is not None:
        document.save(output)
    view = make_view(settings["colour"], settings["digits"], full=settings["full"])
    write(document, settings["format_"] or "table", sys.stdout, view)


def _load(name: str, text: str | None) -> NDArray[Any] | None:
    from normcli.cli.sources import load_parameter

    return None if text is None else load_parameter(name.replace("_", "-"), text)


def _choose_eps(settings: dict[str, Any], state: State | None) -> tuple[float, EpsMode, str | None]:
    """Return eps, its place, and who said it: the option, the framework, the state file, or nobody."""
    import numpy as np

    from normcli.norms.plan import make_plan
    from normcli.norms.request import Request
    from normcli.norms.table import EpsMode

    like, said, told = settings["like"], settings["eps"], None
    if said is not None:
        told = "--eps"
    elif like is not None:
        told = f"like {like}"
    elif state is not None:
        told = f"of {settings['state']}"
    mode = None
    if state is not None and like is None:
        said, mode = (state.eps if said is None else said), state.eps_mode
    plan = make_plan(
        Request(_NORM.name, axes=0, eps=said, eps_mode=mode, like=like), (1, 1), np.dtype(np.float64)
    )
    return plan.spec.eps or 0.0, plan.spec.eps_mode or EpsMode.INSIDE, told


def _load_running(settings: dict[str, Any]) -> tuple[Given, State | None]:
    """Return the running statistics, of the options or of a state file, and what that holds."""
    from normcli.numerics.solution import Given

    given = [_load(name, settings[name]) for name in ("running_mean", "running_var")]
    mean, var = given
    if settings["state"] is not None:
        if mean is not None or var is not None:
            raise UsageError("--state holds running statistics; give it, or --running-mean and --running-var")
        from normcli.running.state_file import read_state

        state = read_state(settings["state"], _NORM.name)
        if state is None:
            raise DataError(f"--state {settings['state']}: there is no such file")
        return state.statistics, state
    if mean is None or var is None:
        raise UsageError("fold needs running statistics: --running-mean and --running-var, or --state FILE")
    return Given(mean, var), None
