"""Statistics and normalization on dask: of its arrays, and of stores and files by the workers of a cluster.

Needs the extra `dask`. The result is the same to the bit for any chunks, workers and order of arrival.

* `arrays`: dask arrays fitted, normalized lazily and checked: `fit`, `normalize`, `check` in Python
* `blocks`: what a worker does with one block: sums, or normalization; the tree that adds up sums
* `block_comparison`: `check` block by block, and the comparisons joined
* `session`: a dask client: connected to a scheduler or local workers, running tasks, retries, errors
* `stores`: zarr, HDF5 and files fitted, normalized and checked by a cluster's workers
"""

import contextlib
from collections.abc import Iterator

from normcli.errors import MissingExtraError


@contextlib.contextmanager
def require_dask() -> Iterator[None]:
    """Return a context manager that turns an `ImportError` of its block into a `MissingExtraError`."""
    try:
        yield
    except ImportError as error:
        raise MissingExtraError.of("dask", "dask") from error


with require_dask():
    import dask  # noqa: F401
