"""`python -m tests.search CELL FAMILY SEED`: one case of a long search again, with all of its values.

    python -m tests.search "ln, float64, rows" moderate 17

Exit code 1 if a result is further off than is specified.
"""

from __future__ import annotations

import argparse
import sys

from tests.search.cells import list_cells
from tests.search.climb import explore


def main() -> int:
    """Print what is found and the worst group; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cell", help="norm, dtype and path, as results.md has them")
    parser.add_argument("family")
    parser.add_argument("seed", type=int)
    options = parser.parse_args()
    cells = {str(cell): cell for cell in list_cells()}
    if options.cell not in cells:
        parser.error(f"there is no cell {options.cell!r}; one is {next(iter(cells))!r}")
    found = explore(cells[options.cell], options.family, options.seed)
    print(found.describe())
    print(f"\n{found.case.groups.dtype} {found.case.groups[found.group].tolist()}")
    return 0 if found.verdict.excess <= 1.0 else 1


if __name__ == "__main__":
    sys.exit(main())
