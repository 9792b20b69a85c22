"""What live frameworks made: each convention of the table that can be run here, on several kinds of data.

Without gamma and beta, with both given, and with both to be found.
"""

from __future__ import annotations

import zlib
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from normcli.dtypes import find_type
from normcli.identifying.question import Question
from normcli.norms.conventions import find_convention
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from tests.peers import PEERS, Peer
from tests.plants.plant import Array, Plant

if TYPE_CHECKING:
    from collections.abc import Iterator

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
CHANNELS = 12
"""How long the axes of a plant are; the axis of 6 in the shapes of a peer is the channel."""


KINDS = ("no gamma and beta", "gamma and beta given", "gamma and beta to be found")


def _draw(kind: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Return values about 0; like pixels; or small and skewed, so that eps shows."""
    if kind == KINDS[0]:
        return rng.normal(0.3, 1.7, shape)
    if kind == KINDS[1]:
        return rng.integers(0, 256, shape) / 64.0
    return rng.lognormal(-4.0, 0.7, shape)


OFFSETS = {10.0: "bfloat16", 30.0: "bfloat16", 100.0: "float16", 1000.0: "float32"}
"""How many spreads the mean of data may be from 0, and the shortest dtype that tells such values apart."""

_BY_LENGTH = ("bfloat16", "float16", "float32", "float64")


def _draw_far(kind: str, shape: tuple[int, ...], offset: float, rng: np.random.Generator) -> Array:
    """Return values of a spread of 1 or 40; or of 0.05, so that eps shows."""
    return rng.normal(offset, 1.0, shape) * dict(zip(KINDS, (1.0, 40.0, 0.05), strict=True))[kind]


def list_plants() -> Iterator[Plant]:
    """Yield the plants of live frameworks: each convention on each kind of data in two dtypes, the second in turn."""
    for number, peer in enumerate(peer for peer in PEERS if peer.module in DTYPES):
        first, *others = DTYPES[peer.module]
        for place, kind in enumerate(KINDS):
            for dtype in (first, others[(number + place) % len(others)]):
                plant = plant_peer(peer, dtype, kind)
                if plant is not None:
                    yield plant


def plant_peer(
    peer: Peer, dtype: str, kind: str, batch: int | None = None, offset: float | None = None
) -> Plant | None:
    """Return the plant of a framework's norm; None where it does not take the dtype, or leaves all values as they are.

    Parameters
    ----------
    peer : Peer
    dtype, kind : str
    batch : int or None
        Another length of the first axis.
    offset : float or None
        How many spreads the mean of the data is from 0; None for those of the kind.
    """
    shape = min(peer.shapes, key=lambda shape: abs(len(shape) - 3))
    lengths = _LENGTHS if batch is None else {**_LENGTHS, 0: batch}
    shape = tuple(CHANNELS if n == 6 else lengths[axis] for axis, n in enumerate(shape))
    options = " ".join(f"{name}={value}" for name, value in peer.options.items())
    name = f"{peer.norm} {peer.framework} {options} {dtype}, {kind}"
    name += ("" if batch is None else f", batch of {batch}") + ("" if offset is None else f", mean {offset:g}")
    rng, type_ = np.random.default_rng(zlib.crc32(name.encode())), find_type(dtype)
    x = (_draw(kind, shape, rng) if offset is None else _draw_far(kind, shape, offset, rng)).astype(type_)
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
    if offset is not None and not np.all(np.isfinite(y) & (y != 0)):  # where squares overflow
        return None
    given = parameters if kind == KINDS[1] else {}
    one_pass = find_convention(peer.framework, peer.norm).one_pass
    return Plant(name, kind, Question(x, y, **given), plan, is_open=kind == KINDS[2], one_pass=one_pass)


# -- off centre

OFF_CENTRE = "a framework, off centre"


def list_far() -> Iterator[Plant]:
    """Yield each convention at every offset from 0, on two kinds of data and in two dtypes, all of which in turn."""
    for number, peer in enumerate(peer for peer in PEERS if peer.module in DTYPES):
        for place, (offset, shortest) in enumerate(OFFSETS.items()):
            kept = _BY_LENGTH[_BY_LENGTH.index(shortest) :]
            dtypes = [dtype for dtype in DTYPES[peer.module] if dtype in kept]
            for turn in (number + place, number + place + 1):
                plant = plant_peer(peer, dtypes[turn % len(dtypes)], KINDS[turn % 3], offset=offset)
                if plant is not None:
                    yield replace(plant, kind=OFF_CENTRE)


# -- batches of 1

SINGLE = "a batch of 1"


def list_batches_of_1() -> Iterator[Plant]:
    """Yield norms of a batch of one image, where groupings may be the same."""
    peers = [peer for peer in PEERS if peer.norm in ("bn", "ln", "in", "gn") and peer.module in DTYPES]
    for number, peer in enumerate(peers):
        plant = plant_peer(peer, "float32", KINDS[number % 2], batch=1)
        if plant is not None:
            yield replace(plant, kind=SINGLE, is_open=True)
