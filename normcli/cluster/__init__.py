"""Statistics and normalization on dask: of its arrays, and of stores and files by the workers of a cluster.

Needs the extra `dask`. The result is the same to the bit for any chunks, workers and order of arrival.

* `arrays`: arrays of dask, block by block
* `blocks`: a worker's task for a block, and the sum of blocks
* `block_comparison`: a tensor compared with the exact one block by block
* `session`: a cluster, connected to or started, and left
* `stores`: arrays of stores and files, block by block
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
