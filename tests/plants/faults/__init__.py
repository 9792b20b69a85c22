"""Wrong kernels of which it is known what is wrong: a table, a row a kernel.

- `kernel`: a norm in NumPy whose parts can be replaced, its layers and its data
- `row`: the columns of the tables
- `around`, `order`, `statistics`, `masking`, `stored`, `parameters`, `behind`, `where`: the rows, by the joint that is moved
- `today`: their kernels on layers with a slice, or with a gamma of each sample or head
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from normcli.engine.inputs import Inputs
from normcli.norms.plan import make_plan
from normcli.numerics.elements.gate import Gated
from normcli.numerics.rounding import widen
from normcli.results.given_inputs import SelectionRequest, select
from normcli.tensors.residual import Addends
from tests.plants.faults import around, behind, masking, order, parameters, statistics, stored, today, where
from tests.plants.faults.kernel import Array, Kernel, Layer, Way, make_kernel
from tests.plants.faults.row import Row

if TYPE_CHECKING:
    from normcli.norms.plan import Plan

TABLE = (
    *around.ROWS,
    *order.ROWS,
    *statistics.ROWS,
    *masking.ROWS,
    *stored.ROWS,
    *parameters.ROWS,
    *behind.ROWS,
    *where.ROWS,
    *today.ROWS,
)


@dataclass(frozen=True)
class Wrong:
    """What a wrong kernel made.

    Parameters
    ----------
    name : str
    row : Row
        What is wrong.
    kernel : Kernel
        What it was called with, and what it should do.
    really : Plan or None
        What it is, where a request is all that differs.
    y : ndarray
    right : ndarray
        What the same kernel makes without the fault.
    """

    name: str
    row: Row
    kernel: Kernel
    really: Plan | None
    y: Array
    right: Array

    @property
    def ids(self) -> tuple[str, ...]:
        """The faults that it may be named by."""
        return self.row.ids

    @property
    def addends(self) -> Addends | None:
        """What x is the sum of."""
        kernel = self.kernel
        return Addends(kernel.addend, kernel.other) if self.row.other == "residual" else None

    @property
    def inputs(self) -> Inputs:
        """What is given beside x, in the shapes of the plan."""
        kernel, plan, gate = self.kernel, self.kernel.plan, Gated(widen(self.kernel.other))
        fitted = {name: plan.fit_parameter(name, values) for name, values in kernel.parameters.items()}
        selection = select(plan, kernel.tensor, SelectionRequest(lengths=kernel.lengths or None))
        before = gate._replace(times=kernel.addend) if self.row.other == "gate before" else None
        after = gate if self.row.other == "gate" else None
        return Inputs(
            fitted.get("gamma"), fitted.get("beta"), kernel.given, selection, gate=after, gated_input=before
        )


def list_wrong() -> Iterator[Wrong]:
    """Yield what every kernel of the tables makes."""
    for row in TABLE:
        for number in range(len(row.layers) * row.times):
            yield make_wrong(row, number)


def make_wrong(row: Row, number: int) -> Wrong:
    """Return what a row makes of one of its layers; they and the ways are taken in turn."""
    layer = row.layers[number % len(row.layers)]
    first = zlib.crc32(row.words.encode())
    way = row.ways[(first + number + number // len(row.layers)) % len(row.ways)]
    turn = f", {number // len(row.layers) + 1}" if row.times > 1 else ""
    name = f"{row.words}: {layer}, {way.dtype}, mean {way.offset:g}{turn}"
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    kernel = make_kernel(layer, way, row.scale, rng, row.other)
    with np.errstate(all="ignore"):
        y, right = (_store(kernel, values) for values in (row.run(kernel), kernel.y))
    return Wrong(name, row, kernel, _find_request(row, layer, kernel), y, right)


def _store(kernel: Kernel, values: Array) -> Array:
    return np.ascontiguousarray(values.reshape(kernel.shape)).astype(kernel.addend.dtype)


def _find_request(row: Row, layer: Layer, kernel: Kernel) -> Plan | None:
    if layer.evaluates:
        return kernel.plan if "stored-unused" in row.ids else None
    changes = dict(row.really)
    return make_plan(layer.ask(**changes), kernel.shape, kernel.tensor.dtype) if changes else None


__all__ = ["TABLE", "Layer", "Row", "Way", "Wrong", "list_wrong", "make_wrong"]
