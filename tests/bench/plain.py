"""`python -m tests.bench.plain NUMBER COUNT STORE STATS TARGET`: the part of a store's blocks that is one worker's, without dask.

What two of these take beside one is what two processors of the machine give to processes that share nothing.
Without TARGET, blocks are fitted.
"""

from __future__ import annotations

import os
import sys
from itertools import islice

import numpy as np
import zarr

from normcli.cluster.blocks import BlockUse, Whole
from normcli.cluster.stores import choose_lengths, open_source
from normcli.fitting.stats_file import read_stats
from normcli.fitting.use import Use
from normcli.norms.request import Request
from normcli.tensors.formats.stores import limit_threads
from normcli.version import __version__


def main() -> None:
    """Work on the blocks whose numbers leave NUMBER by COUNT."""
    number, count = map(int, sys.argv[1:3])
    os.sched_setaffinity(0, {number % (os.cpu_count() or 1)})
    limit_threads(1)
    store, stats, *target = sys.argv[3:]
    stored = open_source(store)
    shape, dtype = tuple(stored.array.shape), stored.array.dtype
    whole = Whole.choose(Request("bn"), shape, dtype, "propagate", store)
    use = BlockUse(Use(read_stats(stats)), shape)
    written = zarr.open(target[0], mode="r+") if target else None
    parts = []
    for box in islice(stored.cut(choose_lengths(stored, whole.subject.plan(1))), number, None, count):
        values = stored.read(box)
        if written is None:
            parts.append(whole.gather(box, values, __version__))
        else:
            written[box] = use.run(box, values, __version__)
    if parts:
        np.testing.assert_array_less(0, whole.add(parts).sums.count)


if __name__ == "__main__":
    main()
