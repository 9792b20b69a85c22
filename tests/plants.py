"""Tensors of which it is known what made them: outputs of live frameworks, and of maps that are no norm.

What `identify` says of each is held against the truth by `judge`. Every convention of the table that can be run here
is planted on three kinds of data: without gamma and beta, with both given, and with both to be found.
"""

from __future__ import annotations

import enum
import itertools
import time
import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.algorithms.computation import list_accumulations, parse_computation
from normcli.algorithms.elements import Formula
from normcli.dtypes import find_type
from normcli.errors import NormError
from normcli.norms.plan import Plan, make_plan
from normcli.norms.request import Request
from normcli.norms.rules import EpsMode
from normcli.norms.table import NORMS
from normcli.verify.affine import ESTIMATED
from normcli.verify.groups import put_back, take_groups
from normcli.verify.identify import Identification, Kind, Question, identify
from tests.peers import PEERS, Peer, run_keras, run_nnx, run_torch
from tests.verify.not_norms import make_plants

if TYPE_CHECKING:
    from collections.abc import Iterator

    from normcli.verify.hypothesis import Match

    Array = np.ndarray[Any, np.dtype[Any]]

DTYPES = {
    "torch": ("float32", "float64", "float16", "bfloat16"),
    "keras": ("float32", "float64", "float16", "bfloat16"),
    "flax": ("float32", "float16", "bfloat16"),
    "jax": ("float32", "float16", "bfloat16"),
    "equinox": ("float32", "float16", "bfloat16"),
    "onnx": ("float32", "float64", "float16"),
    "sklearn": ("float32", "float64"),
    "scipy": ("float32", "float64"),
}
"""By module, what its framework calculates in."""

_LENGTHS = {0: 8, 1: 5, 2: 7, 3: 3, 4: 2}
_CHANNELS = 12
"""How long the axes of a plant are; the axis of 6 in the shapes of a peer is the channel."""


class Outcome(enum.Enum):
    """What `identify` made of a plant."""

    RIGHT = "right"
    AMONG = "among several"
    MISSED = "missed"
    WRONG = "wrong with certainty"


@dataclass(frozen=True)
class Plant:
    """A question whose answer is known.

    Parameters
    ----------
    name, kind : str
    question : Question
    truth : Plan or None
        None where no norm of the input made it.
    """

    name: str
    kind: str
    question: Question
    truth: Plan | None


class Verdict(NamedTuple):
    """The outcome of a plant, what was found, and the seconds of a processor that it took."""

    plant: Plant
    outcome: Outcome
    found: Identification
    seconds: float


KINDS = ("no gamma and beta", "gamma and beta given", "gamma and beta to be found")


def _draw(kind: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Return values about 0; like pixels; or small and skewed, so that eps shows."""
    if kind == KINDS[0]:
        return rng.normal(0.3, 1.7, shape)
    if kind == KINDS[1]:
        return rng.integers(0, 256, shape) / 64.0
    return rng.lognormal(-4.0, 0.7, shape)


def list_plants() -> Iterator[Plant]:
    """Yield the plants of live frameworks: each convention on each kind of data in two dtypes, the second in turn."""
    for number, peer in enumerate(peer for peer in PEERS if peer.module in DTYPES):
        first, *others = DTYPES[peer.module]
        for place, kind in enumerate(KINDS):
            for dtype in (first, others[(number + place) % len(others)]):
                plant = plant_peer(peer, dtype, kind)
                if plant is not None:
                    yield plant


def plant_peer(peer: Peer, dtype: str, kind: str, batch: int | None = None) -> Plant | None:
    """Return the plant of a framework's norm; None where it does not take the dtype, or leaves all values as they are."""
    shape = min(peer.shapes, key=lambda shape: abs(len(shape) - 3))
    lengths = _LENGTHS if batch is None else {**_LENGTHS, 0: batch}
    shape = tuple(_CHANNELS if n == 6 else lengths[axis] for axis, n in enumerate(shape))
    options = " ".join(f"{name}={value}" for name, value in peer.options.items())
    name = f"{peer.norm} {peer.framework} {options} {dtype}, {kind}" + (
        "" if batch is None else f", batch of {batch}"
    )
    rng, type_ = np.random.default_rng(zlib.crc32(name.encode())), find_type(dtype)
    x = _draw(kind, shape, rng).astype(type_)
    plan = make_plan(Request(peer.norm, like=peer.framework, **peer.options), shape, x.dtype)
    drawn = {
        "gamma": rng.normal(1.0, 0.3, plan.parameters.shape),
        "beta": rng.normal(0.0, 0.5, plan.parameters.shape),
    }
    names = peer.affine if kind != KINDS[0] else ()
    parameters = {name: drawn[name].astype(type_) for name in names}
    try:
        y = np.asarray(peer.call(x, **parameters, **peer.options))
    except (RuntimeError, TypeError):  # onnx's evaluator has no such operator of every dtype
        return None
    if np.array_equal(x, y):  # a window whose squares are too small beside k
        return None
    given = parameters if kind == KINDS[1] else {}
    return Plant(name, kind, Question(x, y, **given), plan)


# -- what no norm of the input made


def list_evaluations() -> Iterator[Plant]:
    """Yield evaluations with running statistics, and scalers that were fitted to other data."""
    for number, (name, call) in enumerate(_EVALUATIONS.items()):
        for names in ((), ("gamma", "beta")):
            rng = np.random.default_rng(number)
            x, mean = rng.normal(0.3, 1.7, (16, 5, 7, _CHANNELS)).astype("f4"), rng.normal(size=_CHANNELS)
            running = {"mean": mean.astype("f4"), "var": rng.uniform(0.5, 2.0, _CHANNELS).astype("f4")}
            drawn = {"gamma": rng.normal(1.0, 0.3, _CHANNELS), "beta": rng.normal(0.0, 0.5, _CHANNELS)}
            parameters = {name: drawn[name].astype("f4") for name in names}
            y = call(x, **running, **parameters)
            yield Plant(f"{name} {' '.join(names)}", EVALUATION, Question(x, y, **parameters), None)


EVALUATION = "evaluation"


def _evaluate_torch(
    x: Array, mean: Array, var: Array, gamma: Array | None = None, beta: Array | None = None
) -> Array:
    import torch

    module = torch.nn.BatchNorm2d(_CHANNELS).eval()
    module.running_mean, module.running_var = map(torch.from_numpy, (mean, var))
    return run_torch(module, x.transpose(0, 3, 1, 2), gamma, beta).transpose(0, 2, 3, 1)


def _evaluate_keras(
    x: Array, mean: Array, var: Array, gamma: Array | None = None, beta: Array | None = None
) -> Array:
    import keras

    layer = keras.layers.BatchNormalization()
    layer.build(x.shape)
    layer.moving_mean.assign(mean)
    layer.moving_variance.assign(var)
    return run_keras(layer, x, gamma, beta, training=False)


def _evaluate_nnx(
    x: Array, mean: Array, var: Array, gamma: Array | None = None, beta: Array | None = None
) -> Array:
    from flax import nnx

    module = nnx.BatchNorm(_CHANNELS, use_running_average=True, rngs=nnx.Rngs(0))
    module.mean[...], module.var[...] = mean, var
    return run_nnx(module, x, gamma, beta)


def _scale_elsewhere(x: Array, gamma: float | Array = 1.0, beta: float | Array = 0.0, **_: Array) -> Array:
    from sklearn.preprocessing import StandardScaler

    rows = x.reshape(-1, _CHANNELS)
    scaler = StandardScaler().fit(rows[: len(rows) // 2])
    return (scaler.transform(rows) * gamma + beta).reshape(x.shape).astype(x.dtype)


_EVALUATIONS = {
    "bn torch": _evaluate_torch,
    "bn keras": _evaluate_keras,
    "bn flax-nnx": _evaluate_nnx,
    "zscore sklearn of other data": _scale_elsewhere,
}


MAP = "no norm"


def list_maps() -> Iterator[Plant]:
    """Yield maps and transforms that are no norm."""
    for plant in make_plants():
        yield Plant(plant.name, MAP, Question(plant.x, plant.y), None)


# -- sums of half precision

HALF_SUMS = "sums of half precision, gamma to be found"


def list_sums_of_half_precision() -> Iterator[Plant]:
    """Yield layers of half precision whose sums were of it too: a gamma and a beta to be found may not hide that."""
    cases = itertools.product(
        ("float16", "bfloat16"), ("rms", "ln"), ((16, 128), (24, 64), (40, 96)), ((), (0.5,))
    )
    for number, (dtype, norm, shape, spread) in enumerate(cases):
        rng, half = np.random.default_rng(number), find_type(dtype)
        x, gamma = rng.normal(0.7, 2.0, shape).astype(half), rng.normal(1.0, 0.3, shape[1])
        beta = sum(rng.normal(0.0, deviation, shape[1]) for deviation in spread)
        rest = x - _average_in_turn(x) if norm == "ln" else x
        y = rest / np.sqrt(_average_in_turn(rest * rest).astype("f4") + np.float32(1e-5)) * gamma + beta
        name = f"{norm} of {shape} {dtype} with gamma{' and beta' * len(spread)}"
        yield Plant(name, HALF_SUMS, Question(x, y.astype(half)), None)


def _average_in_turn(rows: Array) -> Array:
    """Return the means of rows, each sum rounded to the dtype of the values."""
    return np.add.accumulate(rows, axis=1, dtype=rows.dtype)[:, -1:] / rows.dtype.type(rows.shape[1])


# -- batches of 1

SINGLE = "a batch of 1"


def list_batches_of_1() -> Iterator[Plant]:
    """Yield norms of a batch of one image, where groupings may be the same."""
    peers = [peer for peer in PEERS if peer.norm in ("bn", "ln", "in", "gn") and peer.module in DTYPES]
    for number, peer in enumerate(peers):
        plant = plant_peer(peer, "float32", KINDS[number % 2], batch=1)
        if plant is not None:
            yield replace(plant, kind=SINGLE)


def list_all() -> Iterator[Plant]:
    """Yield every plant."""
    yield from list_plants()
    yield from list_batches_of_1()
    yield from list_evaluations()
    yield from list_maps()
    yield from list_sums_of_half_precision()
    yield from list_algorithms()


def judge(plant: Plant) -> Verdict:
    """Return what `identify` makes of a plant."""
    started = time.process_time()
    try:
        found = identify(plant.question)
    except NormError as error:
        found = Identification(plant.question, (), reason=str(error))
    seconds = time.process_time() - started
    return Verdict(plant, _compare(found, plant), found, seconds)


def _compare(found: Identification, plant: Plant) -> Outcome:
    if plant.truth is None:
        return Outcome.WRONG if found.kind is Kind.NORM else Outcome.RIGHT
    hypotheses = found.matches or found.doubtful
    agreeing = [_agrees(match, plant.truth, found.question) for match in hypotheses]
    if found.kind is Kind.NORM and not any(agreeing):
        return Outcome.WRONG
    if found.kind is Kind.NORM and agreeing[0]:
        return Outcome.RIGHT
    # A map along gamma's own axes may be any norm with such a gamma and beta.
    parameters = plant.truth.parameters.axes if plant.kind in (KINDS[2], SINGLE) else ()
    is_open = found.plain is not None and {*found.plain.axes} <= {*parameters}
    return Outcome.AMONG if any(agreeing) or is_open else Outcome.MISSED


def _agrees(match: Match, truth: Plan, question: Question) -> bool:
    """Whether a match groups and divides as the truth does, as far as gamma and beta leave that to be seen."""
    row, spec = NORMS[match.norm], truth.spec
    if (row.divisor, row.centre) != (truth.norm.divisor, truth.norm.centre):
        return False
    if match.window is not None and spec.window is not None:
        constants = [(w.alpha / w.divisor, w.exponent, w.k) for w in (match.window, spec.window)]
        return truth.grid.reach == match.window[:2] and np.allclose(*constants, rtol=0.01)
    request = Request(match.norm, axes=match.axes, groups=match.groups, group_order=match.group_order)
    if match.groups is not None:  # along the truth's channel
        request = request._replace(layout=truth.grid.layout.letters)
    grid = make_plan(request, question.x.shape, question.x.dtype).grid
    is_fitted = match.affine == ESTIMATED
    return (
        grid.canonical == truth.grid.canonical
        and np.isclose(match.p or 2.0, spec.p or 2.0, rtol=1e-3)
        and (is_fitted or match.ddof == spec.ddof)
        and _holds_eps(match, truth)
    )


_ABOUT = 1.0 + 1e-6


def _holds_eps(match: Match, truth: Plan) -> bool:
    """Whether the eps is among those that fit; one that is only a floor need not show."""
    (low, high), eps = match.eps_range, truth.spec.eps or 0.0
    if not match.takes_eps or truth.spec.eps_mode in (EpsMode.FLOOR, EpsMode.SQUARE_FLOOR):
        return low == 0.0
    return low <= eps * _ABOUT and eps <= high * _ABOUT


# -- algorithms whose sums are not exact

ALGORITHM = "an algorithm"


def list_algorithms() -> Iterator[Plant]:
    """Yield every common algorithm with sums of every dtype, on tensors of every dtype that is short."""
    for norm, axes in (("ln", (2,)), ("rms", (2,)), ("bn", (0, 2))):
        for dtype in ("float16", "bfloat16", "float32"):
            x = np.random.default_rng(len(norm)).normal(0.5, 1.5, (6, 5, 32)).astype(find_type(dtype))
            plan = make_plan(Request(norm, axes=axes), x.shape, x.dtype)
            rows, formula = take_groups(plan.grid, x), Formula.of(plan)
            for accumulation in list_accumulations(formula):
                computation = parse_computation(accumulation.name)
                y = put_back(plan.grid, computation.run(rows, formula, x.dtype))
                name = f"{norm} by {computation.name} of {dtype}"
                yield Plant(name, ALGORITHM, Question(x, y), plan)
