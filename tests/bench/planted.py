"""Models of transformers, Keras and Flax with a fault planted into one norm: how often `audit` names the layer and the cause."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.auditing.models.plants import judge_model, judge_recorded
from tests.auditing.models.zoo import NAMES, TORCH
from tests.bench.pairs import Row, Table

if TYPE_CHECKING:
    from argparse import Namespace

AT_LEAST = 0.9


def measure(options: Namespace) -> list[Table]:
    """Plant every fault into every model, and print of which the layer or the cause is not named."""
    rows, every = [], []
    for name in NAMES:
        found = list((judge_model if name in TORCH else judge_recorded)(name, options.place))
        for one in found:
            if not one.ok:
                print(f"{one.model}: {one.fault} at {one.place}: {one.named}: {one.said}", flush=True)
        rows.append(_count(name, [one.ok for one in found]))
        every += [one.ok for one in found]
    columns = ("model", "faults", "named", "share")
    return [Table("Faults planted into models", columns, [*rows, _count("all", every)])]


def _count(name: str, found: list[bool]) -> Row:
    share = sum(found) / len(found)
    return Row((name, str(len(found)), str(sum(found)), f"{share:.0%}"), share >= AT_LEAST)
