"""Stores on four workers of their own: any chunks, shards and kills, and the bits of one machine."""

from __future__ import annotations

import pytest

import normcli as library
from normcli.library.statistics import Statistics
from normcli.norms.request import Request
from tests.cluster.processes import Cluster, read
from tests.marks import EVERY_CASE

pytestmark = [pytest.mark.peers, pytest.mark.slow]

WORKERS = 4


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    pytest.importorskip("zarr")
    made = Cluster(tmp_path_factory.mktemp("workers"))
    made.add_workers(WORKERS)
    yield made
    made.close()


def choose_layout(rng, shape):
    """Return chunks of any lengths, and for every other array shards of several."""
    chunks = tuple(int(rng.integers(1, n + 1)) for n in shape)
    shards = tuple(c * int(rng.integers(1, 4)) for c in chunks)
    return {"chunks": chunks, "shards": shards if rng.integers(2) else None}


def test_any_chunks_and_shards_give_the_bits_of_one_machine(cluster, tmp_path, rng):
    import zarr

    from normcli.cluster.blocks import BlockUse
    from normcli.cluster.session import open_session
    from normcli.cluster.stores import fit_store, use_store
    from normcli.fitting.use import Use

    shape = (7, 3, 6, 5)
    x = (rng.normal(3.0, 2.0, shape) * 10.0 ** rng.integers(-6, 6, shape)).astype("float32")
    y, whole = library.normalize(x, "bn").normalized, library.fit(x, "bn")
    with open_session(cluster.address, None) as session:
        for number in range(20 if EVERY_CASE else 5):
            source, target = (str(tmp_path / f"{name}{number}.zarr") for name in "xy")
            zarr.create_array(source, data=x, **choose_layout(rng, shape))
            stats = fit_store(session, Request("bn"), source, "propagate")
            assert Statistics(stats) == whole
            made = zarr.create_array(target, shape=shape, dtype="float32", **choose_layout(rng, shape))
            use_store(session, BlockUse(Use(stats), shape), source, made)
            assert read(target).tobytes() == y.tobytes()
