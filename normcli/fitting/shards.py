"""The part of the data that one of several commands fits: their statistics are merged later."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from normcli.errors import UsageError
from normcli.norms.divisors import Measurement
from normcli.norms.plan import make_plan
from normcli.norms.table import find_norm
from normcli.printable import format_count
from normcli.tensors.many import Named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from normcli.norms.request import Request
    from normcli.tensors.tensor import Tensor


def take_shard(named: Sequence[Named], request: Request, number: int, count: int) -> list[Named]:
    """Return one of several equal parts of tensors: every N-th of several; of one, a stretch of its samples.

    Parameters
    ----------
    named : sequence of Named
    request : Request
        Which says what the samples of a tensor are.
    number, count : int
        The first part is number 1.

    Raises
    ------
    UsageError
        If there are fewer tensors, or samples, than parts.
    """
    norm = find_norm(request.norm)[0]
    if norm.divisor.measurement is Measurement.QUANTILES:
        raise UsageError(
            f"--shard: {norm.name} has quantiles, which follow from no parts: fit all data at once"
        )
    if len(named) == 1:
        return [Named(named[0].name, partial(_load_part, named[0], request, number, count))]
    if len(named) < count:
        raise UsageError(
            f"--shard {number}/{count}: there are {format_count(len(named), 'tensor')} to share out"
        )
    return list(named[number - 1 :: count])


def _load_part(one: Named, request: Request, number: int, count: int, wanted: tuple[str, ...] | None) -> Tensor:
    tensor = one.load(wanted)
    shape = tensor.values.shape
    batch = make_plan(request, shape, tensor.dtype).grid.layout.batch or 0
    samples = shape[batch] if shape else 0
    if samples < count:
        raise UsageError(f"--shard {number}/{count}: {one.name} has {format_count(samples, 'sample')}")
    part = slice((number - 1) * samples // count, number * samples // count)
    return tensor._replace(values=tensor.values[(slice(None),) * batch + (part,)])
