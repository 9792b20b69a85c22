"""The part of the data that one of several commands fits, and which parts merged statistics hold."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import TYPE_CHECKING

from normcli.errors import DataError, UsageError
from normcli.norms.divisors import Measurement
from normcli.norms.layout import find_layout
from normcli.norms.plan import make_plan
from normcli.norms.table import find_norm
from normcli.printable import agree, format_count
from normcli.tensors.many import Named, describe_source
from normcli.tensors.tables.column_choice import list_names
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from normcli.norms.request import Request
    from normcli.tensors.tensor import Tensor


DIGEST = 16
"""The number of characters in the digest of the inputs that are shared out."""


class Shards(NamedTuple):
    """The shards of a fit that statistics hold, recorded so that no shard is merged twice.

    Parameters
    ----------
    of : int
        The number of all shards into which the inputs were divided.
    held : tuple of int
        The numbers of the shards that the statistics hold, from 1, ascending.
    inputs : str
        A digest of the inputs that were divided (`digest_inputs`); "" in files of earlier versions.
    """

    of: int
    held: tuple[int, ...]
    inputs: str = ""

    @property
    def missing(self) -> tuple[int, ...]:
        """The numbers of the parts that are not held, ascending."""
        return tuple(sorted({*range(1, self.of + 1)} - {*self.held}))

    def __str__(self) -> str:
        return f"{format_shards(self.held)} of {self.of}"


def format_shards(numbers: Sequence[int]) -> str:
    """Return the numbers of parts in words, as `shards 1, 3`."""
    return f"{agree(len(numbers), 'shard', 'shards')} {list_names([str(number) for number in numbers])}"


def join_shards(mine: Shards | None, theirs: Shards | None) -> Shards | None:
    """Return the shards that two sets of statistics hold together; None stands for a fit that is complete.

    None and some shards give these shards, as the complete fit is taken for other data. Two `Shards` that are
    each complete give None. Otherwise both must be of one fit, and the result has the shards of both.

    Raises
    ------
    DataError
        If both hold the same shard, or differ in the count of all shards or in the inputs.
    """
    if mine is None or theirs is None:
        return mine or theirs
    if not mine.missing and not theirs.missing:
        return None
    if mine.of != theirs.of:
        raise DataError(f"one is of {mine}, the other of {theirs}: they are not parts of one fit")
    if mine.inputs and theirs.inputs and mine.inputs != theirs.inputs:
        raise DataError("they are shards of different inputs, whose names or sizes differ: no parts of one fit")
    twice = sorted({*mine.held} & {*theirs.held})
    if twice:
        raise DataError(f"both hold {format_shards(twice)} of {mine.of}, which would count twice")
    return Shards(mine.of, tuple(sorted(mine.held + theirs.held)), mine.inputs or theirs.inputs)


def digest_inputs(named: Sequence[Named]) -> str:
    """Return 16 hexadecimal digits that identify tensors by their names without folders, sizes and order.

    Machines that have the same files in other folders have the same digest.
    """
    text = "\n".join(describe_source(one.name) for one in named)
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:DIGEST]


def require_all(shards: Shards | None, purpose: str = "merge") -> None:
    """Raise `DataError` if shards are missing; nothing happens for None, a complete fit.

    The message names the missing shards, and the option --partial, which lets the user go without them.
    `purpose` is the verb of that sentence, such as merge.
    """
    if shards is not None and shards.missing:
        missing, verb = format_shards(shards.missing), agree(len(shards.missing), "is", "are")
        raise DataError(
            f"{missing} of {shards.of} {verb} missing; give partial (--partial) to {purpose} those there are"
        )


def take_shard(named: Sequence[Named], request: Request, number: int, count: int) -> list[Named]:
    """Return shard `number` of `count`: every `count`-th tensor, or consecutive samples of a single tensor.

    A single tensor is not loaded here, but by the `load` of the result. That raises `UsageError` if the tensor
    has fewer samples than there are shards.

    Parameters
    ----------
    named : sequence of Named
        All tensors that are divided.
    request : Request
        The norm; its layout says which axis is that of the samples.
    number, count : int
        The number of the shard, from 1, and the count of all shards.

    Raises
    ------
    UsageError
        If there are several tensors, but fewer than shards, or the norm's statistics are quantiles.
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
    """Load a tensor and return the samples of shard `number`, from 1, of `count` nearly equal shards.

    Parameters
    ----------
    one : Named
    request : Request
        The norm; its layout, or the names of the tensor's axes, say which axis is that of the samples.
    number, count : int
    wanted : tuple of str or None
        The names of the columns in their order, for `Named.load`.

    Raises
    ------
    UsageError
        If the tensor has fewer samples than `count`.
    """
    tensor = one.load(wanted)
    shape = tensor.values.shape
    request = request.adopt_layout(find_layout(tensor.dimensions))
    batch = make_plan(request, shape, tensor.dtype).grid.layout.batch or 0
    samples = shape[batch] if shape else 0
    if samples < count:
        raise UsageError(f"--shard {number}/{count}: {one.name} has {format_count(samples, 'sample')}")
    part = slice((number - 1) * samples // count, number * samples // count)
    by = None if tensor.by is None else tensor.by._replace(rows=part)
    return tensor._replace(values=tensor.values[(slice(None),) * batch + (part,)], by=by)
