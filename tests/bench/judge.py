"""What `identify` says of tensors of which it is known what made them: how often it is right, and how long it takes."""

from __future__ import annotations

import itertools
import json
import warnings
from collections import defaultdict
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from normcli.identifying.words.phrasing import diagnose
from tests.bench.pairs import Row, Table
from tests.plants import list_all
from tests.plants.judgement import judge
from tests.plants.plant import Outcome
from tests.plants.wrong_kernels import CHECKED

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping
    from pathlib import Path

    from tests.plants.plant import Plant


class Kept(NamedTuple):
    """What is kept of a verdict: a line of a file."""

    name: str
    kind: str
    outcome: str
    seconds: float
    sentence: str


def measure(options: Namespace) -> list[Table]:
    """Judge plants, and print what is not right.

    Verdicts are added to the file `options.verdicts`, one a line; plants whose verdicts are in it are not judged again.
    Those alone are judged whose kind or a fault's id begins with one of `options.only`, of them one in `options.every`.
    """
    file = options.verdicts
    known = {} if file is None or not file.exists() else _read(file.read_text())
    by_kind: dict[str, list[Kept]] = defaultdict(list)
    by_fault: dict[str, list[Kept]] = defaultdict(list)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the frameworks warn of is theirs
        for plant in itertools.islice(list_all(options.only), 0, None, options.every):
            verdict = known.get((plant.kind, plant.name)) or _judge(plant, file)
            by_kind[plant.kind].append(verdict)
            if plant.kind == CHECKED and plant.wrong is not None:
                by_fault[plant.wrong.ids[0]].append(verdict)
            if verdict.outcome != Outcome.RIGHT.value:
                print(f"{verdict.outcome}: {plant.kind}: {_name(plant)}: {verdict.sentence}", flush=True)
    tables = [_tabulate("What `identify` says of plants: seconds of a processor", "plants", by_kind)]
    if by_fault:
        tables.append(_tabulate("What `check` says of faults, by their ids", "fault", by_fault))
    return tables


def _name(plant: Plant) -> str:
    return plant.name if plant.wrong is None else f"{' or '.join(plant.wrong.ids)}: {plant.name}"


def _tabulate(title: str, first: str, kept: Mapping[str, list[Kept]]) -> Table:
    rows = [_count(name, some) for name, some in kept.items()]
    rows.append(_count("all", [verdict for some in kept.values() for verdict in some]))
    columns = (first, "count", *(outcome.value for outcome in Outcome), "median s", "longest s")
    return Table(title, columns, rows)


def _read(text: str) -> dict[tuple[str, str], Kept]:
    every = [Kept(*json.loads(line)) for line in text.splitlines()]
    return {(one.kind, one.name): one for one in every}


def _judge(plant: Plant, file: Path | None) -> Kept:
    verdict = judge(plant)
    sentence = diagnose(verdict.found).sentence
    kept = Kept(plant.name, plant.kind, verdict.outcome.value, verdict.seconds, sentence)
    if file is not None:
        with file.open("a") as lines:
            print(json.dumps(kept), file=lines)
    return kept


def _count(kind: str, verdicts: list[Kept]) -> Row:
    counts = [sum(verdict.outcome == outcome.value for verdict in verdicts) for outcome in Outcome]
    times = [verdict.seconds for verdict in verdicts]
    cells = (kind, str(len(verdicts)), *map(str, counts), f"{median(times):.2f}", f"{max(times):.2f}")
    return Row(cells, not any(verdict.outcome == Outcome.WRONG.value for verdict in verdicts))
