"""`normcli.normalize` by both kernels beside torch and plain NumPy, on the same array and processors, and how exact each is."""

from __future__ import annotations

import functools
import os
import timeit
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from normcli import normalize
from normcli.compiled import NUMPY, VARIABLE
from normcli.dtypes import find_type
from normcli.engine.walk import count_processors
from tests.bench.pairs import Row, Table, measure_row, touch_memory
from tests.reference.groups import solve_group
from tests.reference.measuring import Elements, measure_elements

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable

    from numpy.typing import NDArray

BYTES = 128 << 20
EPS = 1e-5
SAMPLED = 4000
"""Values of each result that are held against exact arithmetic."""

LARGEST_GROUP = 1 << 20
"""Of larger groups, rational arithmetic takes minutes."""

SMALL_AT_MOST = 25.0
"""Microseconds."""

LIMITS = {"float32": 0.5, "float64": 0.75}
HALVES = ("float16", "bfloat16")
HALF_LIMIT = 0.75


class Case(NamedTuple):
    """A norm over an array of `BYTES`.

    Parameters
    ----------
    name : str
    shape : tuple of int
        The first length is what is left of the values.
    axes : tuple of int
        Reduced, for NumPy; of the array as torch's channels-first frameworks see it.
    ours : dict
        What `normalize` is called with.
    torch : callable
        From torch.nn.functional and a tensor to the result.
    limited : tuple of str
        The dtypes for which a limit is set; the worst shapes have none.
    """

    name: str
    shape: tuple[int, ...]
    axes: tuple[int, ...]
    ours: dict[str, Any]
    torch: Callable[[Any, Any], Any]
    limited: tuple[str, ...] = tuple(LIMITS)


def _batch_norm(f: Any, t: Any) -> Any:
    return f.batch_norm(t, None, None, training=True)


IMAGES = (64, 32, 32)
CASES = (
    Case("`ln`, rows of 1024", (1024,), (1,), {"norm": "ln"}, lambda f, t: f.layer_norm(t, (1024,))),
    Case("`rms`, rows of 1024", (1024,), (1,), {"norm": "rms"}, lambda f, t: f.rms_norm(t, (1024,), eps=EPS)),
    Case("`bn`, 64 channels of 32×32", IMAGES, (0, 2, 3), {"norm": "bn"}, _batch_norm),
    Case("`in`, 64 channels of 32×32", IMAGES, (2, 3), {"norm": "in"}, lambda f, t: f.instance_norm(t)),
    Case(
        "`gn`, 8 groups of 8 channels of 32×32", (8, 8, 32, 32), (2, 3, 4),
        {"norm": "ln", "axes": (2, 3, 4)}, lambda f, t: f.group_norm(t.flatten(1, 2), 8),
    ),
    Case("`ln`, rows of 4", (4,), (1,), {"norm": "ln"}, lambda f, t: f.layer_norm(t, (4,)), ("float32",)),
    Case(
        "`ln`, rows of 4, `statistics=False`", (4,), (1,), {"norm": "ln", "statistics": False},
        lambda f, t: f.layer_norm(t, (4,)), ("float32",),
    ),
    Case(
        "`bn` NHWC, 3 channels", (256, 256, 3), (0, 1, 2), {"norm": "bn", "layout": "NHWC"},
        lambda f, t: _batch_norm(f, t.permute(0, 3, 1, 2)), (),
    ),
    Case("`bn` over axis 0, 64 columns", (64,), (0,), {"norm": "bn", "layout": "NC"}, _batch_norm, ("float32",)),
)  # fmt: skip


def measure(options: Namespace) -> list[Table]:
    """Measure both dtypes, and the call of a small tensor."""
    torch.set_num_threads(count_processors())
    touch_memory()
    runs = options.runs
    return [*(_measure_dtype(dtype, runs) for dtype in LIMITS), _measure_halves(runs), _measure_small()]


def _measure_dtype(dtype: str, runs: int) -> Table:
    rows = []
    for case in CASES:
        rest = BYTES // np.dtype(dtype).itemsize // int(np.prod(case.shape))
        x = np.random.default_rng(0).standard_normal((rest, *case.shape), dtype=dtype)
        works = [*_list_works(x, torch.from_numpy(x), case), functools.partial(_normalize_plainly, x, case)]
        limit = LIMITS[dtype] if dtype in case.limited else None
        row = measure_row(case.name, works, runs, limit, against=2, digits=3)
        rows.append(Row((*row.cells, *_measure_distances(x, case, [works[0], *works[2:]])), row.ok))
    title = f"In memory, {dtype}, {BYTES >> 20} MiB, {count_processors()} processors: seconds, and the worst ulp of {SAMPLED} values"
    columns = (
        "work", "normcli", "NumPy kernel", "torch", "NumPy", "normcli : torch", "at most", "ulp", "torch's", "NumPy's",
    )  # fmt: skip
    return Table(title, columns, rows)


def _list_works(x: NDArray[Any], tensor: torch.Tensor, case: Case) -> list[Callable[[], Any]]:
    """Return the work of the kernel that is chosen where nothing is said, of the NumPy one, and of torch."""

    def work(kernel: str) -> Any:
        os.environ[VARIABLE] = kernel
        try:
            return normalize(x, eps=EPS, **case.ours).normalized
        finally:
            del os.environ[VARIABLE]

    theirs = functools.partial(case.torch, torch.nn.functional, tensor)
    return [*(functools.partial(work, kernel) for kernel in ("", NUMPY)), theirs]


def _measure_halves(runs: int) -> Table:
    rows = []
    for dtype in HALVES:
        single = np.random.default_rng(0).standard_normal((BYTES // 2 // 1024, 1024), dtype="float32")
        tensor = torch.from_numpy(single).to(getattr(torch, dtype))
        x = tensor.view(torch.int16).numpy().view(find_type(dtype))
        for case in CASES[:2]:
            works = _list_works(x, tensor, case)
            rows.append(measure_row(f"{case.name}, {dtype}", works, runs, HALF_LIMIT, against=2, digits=3))
    title = f"In memory, {' and '.join(HALVES)}, {BYTES >> 20} MiB, {count_processors()} processors: seconds"
    return Table(title, ("work", "normcli", "NumPy kernel", "torch", "normcli : torch", "at most"), rows)


def _normalize_plainly(x: NDArray[Any], case: Case) -> NDArray[Any]:
    eps = x.dtype.type(EPS)
    result: NDArray[Any]
    if case.ours["norm"] == "rms":
        result = x / np.sqrt((x * x).mean(case.axes, keepdims=True) + eps)
    else:
        centred = x - x.mean(case.axes, keepdims=True)
        result = centred / np.sqrt(x.var(case.axes, keepdims=True) + eps)
    return result


def _measure_distances(x: NDArray[Any], case: Case, works: list[Callable[[], Any]]) -> list[str]:
    """Return each result's largest distance from the exact one, over the first values of the first group."""
    plan = normalize(x[:2], eps=EPS, **case.ours).plan
    kept = [axis for axis in range(x.ndim) if axis not in case.axes]
    place = tuple(0 if axis in kept else slice(None) for axis in range(x.ndim))
    if x[place].size > LARGEST_GROUP:
        return ["–"] * len(works)
    solved, values = solve_group(plan, x[place]), x[place].reshape(-1)[:SAMPLED]
    assert solved is not None
    taken = (Elements(_take(work(), x, place), values) for work in works)
    return [_phrase(max(measure_elements(elements, solved))) for elements in taken]


def _take(result: Any, x: NDArray[Any], place: tuple[Any, ...]) -> NDArray[Any]:
    array = np.asarray(result)
    if array.shape != x.shape and array.size == x.size and array.shape[0] == x.shape[0]:
        moved = array.ndim == x.ndim  # what torch takes channels first
        array = np.moveaxis(array, 1, -1) if moved else array.reshape(x.shape)
    return array[place].reshape(-1)[:SAMPLED]


def _phrase(ulp: float) -> str:
    return f"{ulp:.3f}" if ulp < 10 else f"{ulp:.0f}" if ulp < 1e4 else f"{ulp:.0e}"


def _measure_small() -> Table:
    rows = []
    for dtype in LIMITS:
        x = np.random.default_rng(0).standard_normal((2, 3, 4, 4), dtype=dtype)
        calls = 500
        best = min(timeit.repeat(lambda x=x: normalize(x), number=calls, repeat=7)) / calls * 1e6
        cells = (f"`normalize` of a (2, 3, 4, 4) of {dtype}", f"{best:.0f} µs", f"{SMALL_AT_MOST:.0f} µs")
        rows.append(Row(cells, best <= SMALL_AT_MOST))
    return Table("Small tensors: the best of 7 times 500 calls", ("work", "time", "at most"), rows)
