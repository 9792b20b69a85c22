"""A small Zarr store, fitted on one machine, in parts, and on a local cluster of dask: the same bits each time.

Needs the extras: pip install 'normcli[zarr,dask]'. Run it in an empty folder; it writes there.
"""

from __future__ import annotations

import subprocess
import sys

import dask.array as da
import numpy as np
import zarr

import normcli


def run(*words: str) -> None:
    """Run a command of normcli."""
    print("$ normcli", *words)
    subprocess.run([sys.executable, "-m", "normcli", *words, "-q"], check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    """Make the store, fit it in three ways, normalize it on the cluster, and compare."""
    x = np.random.default_rng(0).normal(1e5, 1.0, size=(64, 3, 60, 80)).astype("float32")
    zarr.create_array("x.zarr", data=x, chunks=(10, 2, 35, 80))

    run("fit", "bn", "x.zarr", "-o", "one.npz")
    for part in (1, 2, 3):
        run("fit", "bn", "x.zarr", "--shard", f"{part}/3", "-o", f"part{part}.npz")
    run("merge", "part3.npz", "part1.npz", "part2.npz", "-o", "merged.npz")
    run("fit", "bn", "x.zarr", "--workers", "2", "-o", "cluster.npz")
    run("apply", "cluster.npz", "x.zarr", "-o", "y.zarr", "--workers", "2")

    one, merged, cluster = (normcli.load(f"{name}.npz") for name in ("one", "merged", "cluster"))
    y = zarr.open("y.zarr", mode="r")[:]
    print("statistics of one machine, of parts and of the cluster:", one == merged == cluster)
    print("elements of one machine and of the cluster:", y.tobytes() == one.apply(x).tobytes())
    arrays = [da.from_array(x, chunks=chunks) for chunks in (16, 30, (64, 1, 7, 80))]
    print("dask.array's variances of the first channel:", {float(a[:, 0].var().compute()) for a in arrays})
    print("normcli's, of the same arrays:", {float(normcli.fit(a, "bn").var[0]) for a in arrays})


if __name__ == "__main__":
    main()
