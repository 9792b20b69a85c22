"""Tensors of which it is known what made them: outputs of live frameworks, and of maps that are no norm.

What `identify` says of each is held against the truth by `judge`. Every convention of the table that can be run here
is planted in each dtype that its framework calculates in, on three kinds of data: without gamma and beta, with both
given, and with both to be found.
"""

from __future__ import annotations

import enum
import time
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from normcli.dtypes import find_type
from normcli.norms.layout import make_layout
from normcli.norms.plan import Plan, make_plan
from normcli.norms.request import Request
from normcli.norms.table import NORMS
from normcli.verify.identify import Identification, Question, identify
from tests.peers import PEERS, Peer

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
"""By module, what its framework calculates in: the first is tried by the short run."""

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
    """The outcome of a plant, what was found, and the seconds that it took."""

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


def list_plants(dtypes: slice = slice(None), modules: tuple[str, ...] = tuple(DTYPES)) -> Iterator[Plant]:
    """Yield the plants of live frameworks; with fewer dtypes of each where only some are chosen."""
    for peer in PEERS:
        for dtype in DTYPES.get(peer.module, ())[dtypes] if peer.module in modules else ():
            for kind in KINDS:
                plant = plant_peer(peer, dtype, kind)
                if plant is not None:
                    yield plant


def plant_peer(peer: Peer, dtype: str, kind: str, batch: int | None = None) -> Plant | None:
    """Return the plant of a framework's norm; None where it does not take the dtype."""
    rank = max((len(shape) for shape in peer.shapes if len(shape) <= 4), default=0)
    shape = next(shape for shape in peer.shapes if len(shape) == rank)
    lengths = _LENGTHS if batch is None else {**_LENGTHS, 0: batch}
    shape = tuple(_CHANNELS if n == 6 else lengths[axis] for axis, n in enumerate(shape))
    options = " ".join(f"{name}={value}" for name, value in peer.options.items())
    name = f"{peer.norm} {peer.framework} {options} {dtype}, {kind}" + ("" if batch is None else f", batch of {batch}")
    rng, type_ = np.random.default_rng(zlib.crc32(name.encode())), find_type(dtype)
    x = _draw(kind, shape, rng).astype(type_)
    plan = make_plan(Request(peer.norm, like=peer.framework, **peer.options), shape, x.dtype)
    drawn = {"gamma": rng.normal(1.0, 0.3, plan.parameters.shape), "beta": rng.normal(0.0, 0.5, plan.parameters.shape)}
    names = peer.affine if kind != KINDS[0] else ()
    parameters = {name: drawn[name].astype(type_) for name in names}
    try:
        y = np.asarray(peer.call(x, **parameters, **peer.options))
    except (RuntimeError, TypeError):  # onnx's evaluator has no such operator of every dtype
        return None
    given = parameters if kind == KINDS[1] else {}
    return Plant(name, kind, Question(x, y, **given), plan)


def judge(plant: Plant) -> Verdict:
    """Return what `identify` makes of a plant."""
    started = time.perf_counter()
    found = identify(plant.question)
    seconds = time.perf_counter() - started
    return Verdict(plant, _compare(found, plant.truth), found, seconds)


def _compare(found: Identification, truth: Plan | None) -> Outcome:
    if truth is None:
        return Outcome.WRONG if found.matches else Outcome.RIGHT
    if not found.matches:
        return Outcome.MISSED
    agreeing = [_agrees(match, truth, found.question) for match in found.matches]
    if not any(agreeing):
        return Outcome.WRONG
    return Outcome.RIGHT if agreeing[0] else Outcome.AMONG


def _agrees(match: Match, truth: Plan, question: Question) -> bool:
    """Whether a match groups and divides as the truth does."""
    row, spec = NORMS[match.norm], truth.spec
    if (row.divisor, row.centre) != (truth.norm.divisor, truth.norm.centre):
        return False
    if match.window is not None:
        return (match.window, match.axes) == (spec.window, truth.grid.axes)
    request = Request(match.norm, axes=match.axes, groups=match.groups, group_order=match.group_order)
    if match.groups is not None:  # the split axis is that of the truth's channel
        request = request._replace(layout=truth.grid.layout.letters)
    grid = make_plan(request, question.x.shape, question.x.dtype).grid
    if grid.canonical != truth.grid.canonical or (match.p or 2.0) != (spec.p or 2.0):
        return False
    low, high = match.eps_range
    is_fitted = match.affine not in ("none",) and question.gamma is None
    return (low <= (spec.eps or 0.0) * 1.000001 and (spec.eps or 0.0) <= high * 1.000001 or not match.takes_eps) and (
        is_fitted or match.ddof == spec.ddof
    )
