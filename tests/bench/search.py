"""The guided search for as long as it is told: the worst cell that each family of groups leads to."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING

from normcli.dtypes import find_type
from tests.bench.pairs import Row, Table
from tests.reference.limits import ELEMENT, STATISTIC
from tests.search.cells import Cell, list_cells
from tests.search.climb import Finding, explore
from tests.search.families import Stream, list_families

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

MOST_LETTERS = 160
"""Longer inputs are recorded in part: `python -m tests.search CELL FAMILY SEED` gives them again."""


def measure(options: Namespace) -> list[Table]:
    """Search the cells whose names begin with one of `options.cell` (all by default); print what is worse."""
    worst: dict[str, Finding] = {}
    of_cells: dict[Cell, tuple[float, float]] = {}
    until = time.monotonic() + options.seconds
    for count, found in enumerate(_search(options.cell), 1):
        before, verdict = worst.get(found.family), found.verdict
        element, statistic = of_cells.get(found.cell, (0.0, 0.0))
        of_cells[found.cell] = max(element, verdict.element), max(statistic, verdict.statistic)
        if before is None or verdict.excess > before.verdict.excess:
            worst[found.family] = found
            if verdict.excess > 1.0:
                print(found.describe(), flush=True)
        if time.monotonic() > until:
            print(f"{count} climbs")
            break
    return [_make_table(worst), _summarize(of_cells)]


def _search(names: list[str]) -> Iterator[Finding]:
    """Yield findings for ever: of every cell and family in turn, in an order that mixes them."""
    asked = tuple(f"{name}," for name in names) or ""
    cells = [cell for cell in list_cells() if f"{cell},".startswith(asked)]
    for seed in itertools.count():
        order = Stream("order", seed).draw(len(cells)).argsort(kind="stable")
        for number, place in enumerate(order.tolist()):
            cell = cells[place]
            if cell.is_long and number % 8:
                continue
            families = list_families(find_type(cell.dtype))
            yield explore(cell, families[(seed + place) % len(families)], seed)


def _make_table(worst: dict[str, Finding]) -> Table:
    rows = []
    for family, found in worst.items():
        told = found.describe().replace("|", "\\|")
        told = told if len(told) <= MOST_LETTERS else told[: MOST_LETTERS - 1] + "…"
        cells = (
            family, f"`{found.cell.norm}`", found.cell.dtype, found.cell.path.name, str(found.seed),
            f"{found.verdict.element:.4g}", f"{found.verdict.statistic:.8g}", told,
        )  # fmt: skip
        rows.append(Row(cells, found.verdict.excess <= 1.0))
    columns = ("family", "norm", "dtype", "path", "seed", "element", "statistic", "input")
    title = f"Guided search: the worst errors, ulp (at most {ELEMENT:g} and {STATISTIC:.7f})"
    return Table(title, columns, rows)


def _summarize(of_cells: dict[Cell, tuple[float, float]]) -> Table:
    """Return a line for each norm and dtype: the worst element and statistic of any path, and which path."""
    best: dict[tuple[str, str], list[tuple[float, float, str]]] = {}
    for cell, (element, statistic) in of_cells.items():
        best.setdefault((cell.norm, cell.dtype), []).append((element, statistic, cell.path.name))
    rows = []
    for (norm, dtype), found in best.items():
        element, statistic = max(found), max(found, key=lambda item: item[1])
        cells = (f"`{norm}`", dtype, f"{element[0]:.4g}", element[2], f"{statistic[1]:.8g}", statistic[2])
        rows.append(Row(cells, element[0] <= ELEMENT and statistic[1] <= STATISTIC))
    rows.sort(key=lambda row: list(row.cells[:2]))
    columns = ("norm", "dtype", "element", "on the path", "statistic", "on the path")
    return Table("Guided search: the worst of each norm and dtype, ulp", columns, rows)
