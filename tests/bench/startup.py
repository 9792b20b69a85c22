"""How long a first answer takes, beside the imports that it cannot do without."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.pairs import Row, Table, compare, judge, list_works, take_turns

if TYPE_CHECKING:
    from argparse import Namespace

PYTHON = [sys.executable, "-c"]
NORMCLI = [str(Path(sys.executable).with_name("normcli"))]

PAIRS = (
    ("bn --shape 2,3,4,4", "import click, numpy.random, rich.console, rich.table", 1.25),
    ("bn --shape 2,3,4,4 -f json", "import click, numpy.random", 1.25),
    ("--help", "import click", 1.3),
)


def measure(options: Namespace) -> list[Table]:
    """Measure whole processes."""
    rows = []
    for arguments, imports, at_most in PAIRS:
        works = list_works([[*NORMCLI, *arguments.split()], [*PYTHON, imports]])
        ratio, limit, ok = judge(compare(*take_turns(works, 3 * options.runs)), at_most)
        rows.append(Row((f"`normcli {arguments}`", f'`python -c "{imports}"`', ratio, limit), ok))
    return [Table("Start-up", ("work", "against", "ratio", "at most"), rows)]
