"""What `identify` says of tensors of which it is known what made them: how often it is right, and how long it takes."""

from __future__ import annotations

import warnings
from collections import defaultdict
from statistics import median

from tests.bench.pairs import Row, Table
from tests.plants import Outcome, Verdict, judge, list_all


def measure() -> Table:
    """Judge every plant, and print what is not right."""
    verdicts: dict[str, list[Verdict]] = defaultdict(list)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the frameworks warn of is theirs
        for plant in list_all():
            verdict = judge(plant)
            verdicts[plant.kind].append(verdict)
            if verdict.outcome is not Outcome.RIGHT:
                print(f"{verdict.outcome.value}: {plant.name}", flush=True)
    rows = [_count(kind, some) for kind, some in verdicts.items()]
    rows.append(_count("all", [verdict for some in verdicts.values() for verdict in some]))
    columns = ("plants", "count", *(outcome.value for outcome in Outcome), "median s", "longest s")
    return Table("What `identify` says of plants", columns, rows)


def _count(kind: str, verdicts: list[Verdict]) -> Row:
    counts = [sum(verdict.outcome is outcome for verdict in verdicts) for outcome in Outcome]
    times = [verdict.seconds for verdict in verdicts]
    cells = (kind, str(len(verdicts)), *map(str, counts), f"{median(times):.2f}", f"{max(times):.2f}")
    return Row(cells, not any(verdict.outcome is Outcome.WRONG for verdict in verdicts))
