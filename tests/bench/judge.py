"""What `identify` says of tensors of which it is known what made them: how often it is right, and how long it takes."""

from __future__ import annotations

import json
import warnings
from collections import defaultdict
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from normcli.verify.sentence import format_sentence
from tests.bench.pairs import Row, Table
from tests.plants import Outcome, judge, list_all

if TYPE_CHECKING:
    from pathlib import Path

    from tests.plants import Plant


class Kept(NamedTuple):
    """What is kept of a verdict: a line of a file."""

    name: str
    kind: str
    outcome: str
    seconds: float
    sentence: str


def measure(file: Path | None = None) -> Table:
    """Judge every plant, and print what is not right.

    Parameters
    ----------
    file : Path or None
        Verdicts are added to it, one a line; plants whose verdicts are in it are not judged again.
    """
    known = {} if file is None or not file.exists() else _read(file.read_text())
    kept: dict[str, list[Kept]] = defaultdict(list)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the frameworks warn of is theirs
        for plant in list_all():
            verdict = known.get((plant.kind, plant.name)) or _judge(plant, file)
            kept[plant.kind].append(verdict)
            if verdict.outcome != Outcome.RIGHT.value:
                print(f"{verdict.outcome}: {plant.name}: {verdict.sentence}", flush=True)
    rows = [_count(kind, some) for kind, some in kept.items()]
    rows.append(_count("all", [verdict for some in kept.values() for verdict in some]))
    columns = ("plants", "count", *(outcome.value for outcome in Outcome), "median s", "longest s")
    return Table("What `identify` says of plants: seconds of a processor", columns, rows)


def _read(text: str) -> dict[tuple[str, str], Kept]:
    every = [Kept(*json.loads(line)) for line in text.splitlines()]
    return {(one.kind, one.name): one for one in every}


def _judge(plant: Plant, file: Path | None) -> Kept:
    verdict = judge(plant)
    kept = Kept(plant.name, plant.kind, verdict.outcome.value, verdict.seconds, format_sentence(verdict.found))
    if file is not None:
        with file.open("a") as lines:
            print(json.dumps(kept), file=lines)
    return kept


def _count(kind: str, verdicts: list[Kept]) -> Row:
    counts = [sum(verdict.outcome == outcome.value for verdict in verdicts) for outcome in Outcome]
    times = [verdict.seconds for verdict in verdicts]
    cells = (kind, str(len(verdicts)), *map(str, counts), f"{median(times):.2f}", f"{max(times):.2f}")
    return Row(cells, not any(verdict.outcome == Outcome.WRONG.value for verdict in verdicts))
