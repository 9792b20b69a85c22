"""What kernels in NumPy made of data at several distances from 0, by the ways in which a variance is summed."""

from __future__ import annotations

import itertools
import zlib
from typing import TYPE_CHECKING

import numpy as np

from normcli.identifying.question import Question
from tests.plants.faults.kernel import ADALN, BN, GN, IN, LN, QK, RMS, Array, Kernel, Way, make_kernel
from tests.plants.frameworks import OFFSETS
from tests.plants.plant import Plant

if TYPE_CHECKING:
    from collections.abc import Iterator

KERNEL = "a kernel, off centre"


def _to_rows(k: Kernel) -> Array:
    """Return the values of each group, one row a value, so that a loop runs over a group."""
    return np.moveaxis(k.x, k.axes, range(len(k.axes))).reshape(k.n, -1)


def _finish(k: Kernel, mean: Array, square: Array) -> Array:
    return k.finish(mean.reshape(k.batch_mean.shape), square.reshape(k.batch_mean.shape))


def _add_in_turn(rows: Array) -> Array:
    return np.add.accumulate(rows, axis=0)[-1]


def run_welford(k: Kernel) -> Array:
    """Return y by Welford's updates, one value after the other."""
    rows = _to_rows(k)
    mean, total = np.zeros_like(rows[0]), np.zeros_like(rows[0])
    for count, row in enumerate(rows, 1):
        rest = row - mean
        mean = mean + rest / k.work(count)
        total = total + rest * (row - mean)
    return _finish(k, mean, total / k.work(k.n))


def run_two_passes(k: Kernel) -> Array:
    """Return y of the mean, then of the deviations from it, each summed in turn."""
    rows = _to_rows(k)
    mean = _add_in_turn(rows) / k.work(k.n)
    return _finish(k, mean, _add_in_turn((rows - mean) ** 2) / k.work(k.n))


def run_one_pass(k: Kernel) -> Array:
    """Return y of E[x²] − E[x]², summed in turn."""
    rows = _to_rows(k)
    mean = _add_in_turn(rows) / k.work(k.n)
    return _finish(k, mean, np.maximum(_add_in_turn(rows**2) / k.work(k.n) - mean**2, k.work(0.0)))


def run_pairwise(k: Kernel) -> Array:
    """Return y of NumPy's own sums."""
    return k.y


def _run_mean_square_in_turn(k: Kernel) -> Array:
    return k.finish(square=(_add_in_turn(_to_rows(k) ** 2) / k.work(k.n)).reshape(k.square.shape))


CENTRED = {
    "welford": run_welford,
    "two passes": run_two_passes,
    "one pass": run_one_pass,
    "pairwise": run_pairwise,
}
NOT_CENTRED = {"in turn": _run_mean_square_in_turn, "pairwise": run_pairwise}

DTYPES = ("float32", "float64", "float16", "bfloat16")
_FURTHEST = 100.0
"""How far off a variance in one pass has digits left in float32."""


def list_kernels() -> Iterator[Plant]:
    """Yield each way of summing at every offset: in float32, and in another dtype in turn that tells values apart."""
    cases = [(layer, *each) for layer in (LN, BN, IN, GN) for each in CENTRED.items()]
    cases += [(RMS, *each) for each in NOT_CENTRED.items()]
    cases += [(ADALN, *each) for each in CENTRED.items()] + [(QK, *each) for each in NOT_CENTRED.items()]
    for number, ((layer, words, run), offset) in enumerate(itertools.product(cases, (0.0, *OFFSETS))):
        if run is run_one_pass and offset > _FURTHEST:
            continue
        others = [
            dtype for dtype in DTYPES[1:] if offset <= {"float16": 100.0, "bfloat16": 30.0}.get(dtype, offset)
        ]
        for dtype in ("float32", others[number % len(others)])[: 1 + number % 2]:
            name = f"{words}: {layer}, {dtype}, mean {offset:g}"
            rng = np.random.default_rng(zlib.crc32(name.encode()))
            k = make_kernel(layer, Way(dtype, offset), 1.0, rng)
            y = run(k).astype(k.tensor.dtype)
            question = Question(k.tensor, y, **k.parameters)
            yield Plant(name, KERNEL, question, k.plan, one_pass=run is run_one_pass)
