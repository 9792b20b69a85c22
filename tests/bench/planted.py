"""Models of transformers, Keras and Flax with a fault planted into one norm: how often `audit` names the layer and the cause."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.auditing.models.plants import judge_model, judge_recorded
from tests.auditing.models.zoo import NAMES, TORCH
from tests.bench.pairs import Row, Table

AT_LEAST = 0.9


def measure() -> Table:
    """Plant every fault into every model, and print of which the layer or the cause is not named."""
    rows, every = [], []
    with tempfile.TemporaryDirectory() as folder:
        for name in NAMES:
            found = list((judge_model if name in TORCH else judge_recorded)(name, Path(folder)))
            for one in found:
                if not one.ok:
                    print(f"{one.model}: {one.fault} at {one.place}: {one.named}: {one.said}", flush=True)
            rows.append(_count(name, [one.ok for one in found]))
            every += [one.ok for one in found]
    rows.append(_count("all", every))
    return Table("Faults planted into models", ("model", "faults", "named", "share"), rows)


def _count(name: str, found: list[bool]) -> Row:
    share = sum(found) / len(found)
    return Row((name, str(len(found)), str(sum(found)), f"{share:.0%}"), share >= AT_LEAST)
