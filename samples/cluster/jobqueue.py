"""Fit a store and normalize it on workers of dask that are jobs of SLURM.

`python jobqueue.py STORE OUTPUT` needs pip install 'normcli[zarr,dask]' dask-jobqueue. With --here, workers are
processes of this machine instead.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

STATISTICS = "stats.npz"


def start_cluster(jobs: int, *, here: bool) -> object:
    """Return a cluster of dask; SLURM gives each job 4 processors and 8 GiB."""
    if here:
        from distributed import LocalCluster

        return LocalCluster(n_workers=jobs, threads_per_worker=1, dashboard_address=None)
    from dask_jobqueue import SLURMCluster

    cluster = SLURMCluster(cores=4, processes=1, memory="8GiB", walltime="01:00:00", job_name="normcli")
    cluster.scale(jobs=jobs)
    return cluster


def main() -> None:
    """Fit the store, and normalize it with what was fitted, on one cluster."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("store")
    parser.add_argument("output")
    parser.add_argument("--jobs", type=int, default=16)
    parser.add_argument("--here", action="store_true")
    options = parser.parse_args()
    with start_cluster(options.jobs, here=options.here) as cluster:  # type: ignore[attr-defined]
        for words in (
            ["fit", "bn", options.store, "-o", STATISTICS],
            ["apply", STATISTICS, options.store, "-o", options.output],
        ):
            command = [
                sys.executable,
                "-m",
                "normcli",
                *words,
                "--scheduler",
                cluster.scheduler_address,
                "--quiet",
            ]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
