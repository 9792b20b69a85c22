"""Simulated: what a cluster would take to add the states of 10¹³ values, by the rates of one processor."""

from __future__ import annotations

import pickle
import time
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from normcli.cluster.blocks import FAN_IN, Whole
from normcli.norms.request import Request
from normcli.version import __version__
from tests.bench.pairs import Row, Table, take_turns

if TYPE_CHECKING:
    from argparse import Namespace

SHAPE = (256, 64, 16, 16)
"""Of the tensor that is read, 16 MiB, to learn how fast a worker is."""

VALUES, WORKERS = 10**13, 1000


def measure(options: Namespace) -> list[Table]:
    """Gather the state of a block, and add as many states as one task of a cluster adds, pickled as they travel."""
    values = np.random.default_rng(1).normal(3.0, 2.0, SHAPE).astype(np.float32)
    whole = Whole.choose(Request("bn"), SHAPE, values.dtype, "propagate", "x")
    samples = len(values) // FAN_IN
    states = []
    for first in range(0, len(values), samples):
        box = (slice(first, first + samples), *(slice(0, length) for length in SHAPE[1:]))
        states.append(pickle.dumps(whole.gather(box, values[first : first + samples], __version__)))

    def gather() -> None:
        whole.gather(tuple(slice(0, length) for length in SHAPE), values, __version__)

    def add() -> None:
        pickle.dumps(whole.add([pickle.loads(state) for state in states]))

    gathering, adding = map(median, take_turns([gather, add], options.runs, clock=time.process_time))
    rate, blocks = values.size / gathering, VALUES / values.size
    seconds, size = adding / FAN_IN, blocks * len(states[0]) / 2**30
    works = {
        f"sums of {VALUES:.0e} values in memory, {rate / 1e6:.0f} million a second": VALUES / rate / WORKERS,
        f"{blocks:,.0f} states added, {seconds * 1e3:.2f} ms each": blocks * seconds / WORKERS,
        f"{size:,.1f} GiB of states moved, 1 GiB a second for all": size,
    }
    rows = [Row((work, f"{cost:,.1f}"), ok=True) for work, cost in works.items()]
    title = f"Simulated: {VALUES:.0e} values on {WORKERS:,} workers by these rates, without reading and unpacking them"
    return [Table(title, ("work", "s"), rows)]
