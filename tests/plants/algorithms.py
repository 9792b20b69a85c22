"""What kernels of other sums made: of half precision, or by another algorithm than the exact one."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from normcli.algorithms.row_computation import list_accumulations, parse_computation
from normcli.algorithms.row_formula import RowFormula
from normcli.dtypes import find_type, is_half
from normcli.identifying.question import Question
from normcli.identifying.sampling import put_back, take_groups
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from tests.plants.plant import Array, Plant

if TYPE_CHECKING:
    from collections.abc import Iterator

# -- sums of half precision

HALF_SUMS = "sums of half precision, gamma to be found"


def list_sums_of_half_precision() -> Iterator[Plant]:
    """Yield layers of half precision whose sums were of it too: a gamma and a beta to be found may not hide that."""
    cases = itertools.product(
        ("float16", "bfloat16"), ("rms", "ln"), ((16, 128), (24, 64), (40, 96)), ((), (0.5,))
    )
    for number, (dtype, norm, shape, spread) in enumerate(cases):
        rng, half = np.random.default_rng(number), find_type(dtype)
        x, gamma = rng.normal(0.7, 2.0, shape).astype(half), rng.normal(1.0, 0.3, shape[1])
        beta = sum(rng.normal(0.0, deviation, shape[1]) for deviation in spread)
        rest = x - _average_in_turn(x) if norm == "ln" else x
        y = rest / np.sqrt(_average_in_turn(rest * rest).astype("f4") + np.float32(1e-5)) * gamma + beta
        name = f"{norm} of {shape} {dtype} with gamma{' and beta' * len(spread)}"
        yield Plant(name, HALF_SUMS, Question(x, y.astype(half)), None)


def _average_in_turn(rows: Array) -> Array:
    """Return the means of rows, each sum rounded to the dtype of the values."""
    return np.add.accumulate(rows, axis=1, dtype=rows.dtype)[:, -1:] / rows.dtype.type(rows.shape[1])


# -- algorithms whose sums are not exact

ALGORITHM = "an algorithm"


def list_algorithms() -> Iterator[Plant]:
    """Yield every common algorithm with sums of every dtype, on tensors of every dtype that is short."""
    for norm, axes in (("ln", (2,)), ("rms", (2,)), ("bn", (0, 2))):
        for dtype in ("float16", "bfloat16", "float32"):
            x = np.random.default_rng(len(norm)).normal(0.5, 1.5, (6, 5, 32)).astype(find_type(dtype))
            plan = make_plan(Request(norm, axes=axes), x.shape, x.dtype)
            rows, formula = take_groups(plan.grid, x), RowFormula.of(plan)
            for accumulation in list_accumulations(formula):
                computation = parse_computation(accumulation.name)
                y = put_back(plan.grid, computation.run(rows, formula, x.dtype))
                name = f"{norm} by {computation.name} of {dtype}"
                in_half = is_half(np.dtype(find_type(accumulation.dtype)))
                overflows = in_half and not np.isfinite(y).all()  # of a sum, or of its square
                nearly = ("stats-half-sums", *["stats-overflow"] * overflows) if in_half else ()
                yield Plant(name, ALGORITHM, Question(x, y), plan, nearly=nearly)
