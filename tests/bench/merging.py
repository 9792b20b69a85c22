"""Simulated: the tree in which the states of 10⁶ chunks are added, on one processor, and what a cluster would take."""

from __future__ import annotations

import pickle
import resource
import time
from collections import Counter, defaultdict
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from normcli.cluster.blocks import FAN_IN, Whole
from normcli.norms.request import Request
from normcli.version import __version__
from tests.bench.files import MIB
from tests.bench.pairs import Row, Table, take_turns

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

STATES, GROUPS = 1_000_000, 64

DISTINCT = 256
"""So many states are made of random values, and come again and again."""

SAMPLES, SIDE = 256, 16
"""Of the tensor that is read, 16 MiB, to learn how fast a worker is."""

VALUES, WORKERS = 10**13, 1000


class Tree:
    """States added level by level, each pickled as it would travel; and what that took."""

    def __init__(self) -> None:
        self.seconds: dict[int, float] = defaultdict(float)
        self.moved: Counter[int] = Counter()
        self.added: Counter[int] = Counter()
        self._waiting: dict[int, list[bytes]] = defaultdict(list)

    def push(self, whole: Whole, state: bytes, level: int = 0) -> None:
        """Take a state, and add those of a level as soon as there are enough."""
        self._waiting[level].append(state)
        if len(self._waiting[level]) == FAN_IN:
            self._add(whole, level)

    def _add(self, whole: Whole, level: int) -> None:
        states = self._waiting.pop(level)
        self.moved[level] += sum(map(len, states))
        self.added[level] += len(states)
        start = time.process_time()
        total = pickle.dumps(whole.add([pickle.loads(state) for state in states]))
        self.seconds[level] += time.process_time() - start
        self.push(whole, total, level + 1)

    def finish(self, whole: Whole) -> tuple[int, bytes]:
        """Return the sum of all states, and its level."""
        while len(self._waiting) > 1 or len(next(iter(self._waiting.values()))) > 1:
            self._add(whole, min(self._waiting))
        ((level, (root,)),) = self._waiting.items()
        return level, root


def measure(options: Namespace) -> list[Table]:
    """Add states in a tree, and read one block."""
    whole = Whole.choose(Request("bn"), (STATES, GROUPS, 4), np.dtype(np.float32), "propagate", "x")
    tree = Tree()
    for state in _make_states(whole, range(STATES)):
        tree.push(whole, state)
    return describe(whole, tree, STATES)


def describe(whole: Whole, tree: Tree, states: int) -> list[Table]:
    """Return what the levels of a tree took, and what a cluster would take by that."""
    _, root = tree.finish(whole)
    if int(pickle.loads(root).sums.count.sum()) != states * GROUPS * 4:
        raise AssertionError("states were lost")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    levels = [(f"{n + 1}", tree.added[n], tree.moved[n], tree.seconds[n]) for n in sorted(tree.added)]
    levels.append(("all", *(sum(column) for column in list(zip(*levels, strict=True))[1:])))
    rows = [Row((name, f"{n:,}", f"{size / MIB:,.1f}", f"{s:.2f}"), ok=True) for name, n, size, s in levels]
    title = f"Simulated: the states of {states:,} chunks of {GROUPS} groups added {FAN_IN} at a time by one processor"
    title += f", with {peak // MIB} MiB at most"
    _, added, moved, seconds = levels[-1]
    columns = ("level", "states", "MiB moved", "s")
    return [Table(title, columns, rows), _estimate(seconds / added, moved / added)]


def _make_states(whole: Whole, numbers: range) -> Iterator[bytes]:
    """Yield the sums of single samples, pickled; each as if it were another chunk's."""
    draw = np.random.default_rng(0)
    made = []
    for number in numbers[:DISTINCT]:
        values = draw.normal(3.0, 2.0, (1, GROUPS, 4)).astype(np.float32)
        box = (slice(number, number + 1), slice(0, GROUPS), slice(0, 4))
        made.append(pickle.dumps(whole.gather(box, values, __version__)))
    for number in numbers:
        yield made[number % len(made)]


def _estimate(seconds: float, size: float) -> Table:
    """Return what a cluster would take by the rates that one processor has here."""
    shape = (SAMPLES, GROUPS, SIDE, SIDE)
    values = np.random.default_rng(1).normal(3.0, 2.0, shape).astype(np.float32)
    whole = Whole.choose(Request("bn"), shape, values.dtype, "propagate", "x")
    box = tuple(slice(0, length) for length in shape)
    (times,) = take_turns([lambda: whole.gather(box, values, __version__)], 7, 0, time.process_time)
    rate = values.size / median(times)
    blocks = VALUES / values.size
    works = {
        f"sums of {VALUES:.0e} values in memory, {rate / 1e6:.0f} million a second": VALUES / rate / WORKERS,
        f"{blocks:,.0f} states added, {seconds * 1e3:.2f} ms each": blocks * seconds / WORKERS,
        f"{blocks * size / 2**30:,.1f} GiB of states moved, 1 GiB a second for all": blocks * size / 2**30,
    }
    rows = [Row((work, f"{cost:,.1f}"), ok=True) for work, cost in works.items()]
    title = f"Simulated: {VALUES:.0e} values on {WORKERS:,} workers by these rates, without reading and unpacking them"
    return Table(title, ("work", "s"), rows)
