"""A recorded run of a stack of blocks: what recording and auditing cost, beside a copy of the values and `check`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import torch
from torch import nn

from normcli import audit, check, record
from normcli.auditing.layer import open_dump
from tests.bench.files import MIB
from tests.bench.pairs import Row, Table, measure_peak, measure_row
from tests.bench.startup import NORMCLI

if TYPE_CHECKING:
    from argparse import Namespace

LAYERS, SHAPE = 24, (4, 1365, 1024)
"""Blocks, and the shape of their float32 activations: an input and an output each, 1 GiB in all."""

HOOKS_AT_MOST, AUDIT_AT_MOST, PEAK_AT_MOST = 1.1, 1.5, 400 * MIB


class Block(nn.Module):
    """A residual block of nothing but a norm."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 0.5 * self.norm(x)


def measure(options: Namespace) -> list[Table]:
    """Measure recording, auditing, and the memory of that."""
    torch.manual_seed(0)
    model, x = nn.Sequential(*(Block(SHAPE[-1]) for _ in range(LAYERS))), torch.randn(SHAPE)
    dump, copy = options.place / "dump.safetensors", options.place / "copy"
    others = [torch.randn(SHAPE).numpy().data for _ in range(8)]  # more than a cache holds

    def run_and_record() -> None:
        dump.unlink(missing_ok=True)
        with record(model, dump):
            model(x)

    def run_and_copy() -> None:
        copy.unlink(missing_ok=True)
        model(x)
        with copy.open("wb") as stream:
            for number in range(2 * LAYERS):
                stream.write(others[number % len(others)])
            stream.flush()
            os.fsync(stream.fileno())

    with torch.no_grad():
        name = "record, beside the run and a copy of as many bytes"
        rows = [measure_row(name, (run_and_record, run_and_copy), options.runs, HOOKS_AT_MOST)]
    copy.unlink()
    layers = open_dump(str(dump))

    def check_each() -> None:
        for layer in layers:
            y, given, gamma, beta = (layer.load(role).values for role in ("output", "input", "weight", "bias"))
            assert check(y, given, "ln", axes=-1, gamma=gamma, beta=beta, like="torch")

    works = (lambda: audit(dump), check_each)
    rows.append(
        measure_row("audit, beside `check` of each layer in one process", works, options.runs, AUDIT_AT_MOST)
    )
    peak = measure_peak([*NORMCLI, "audit", str(dump), "-q"])
    cells = ("audit, peak memory", f"{peak / MIB:.0f} MiB", "–", "–", f"{PEAK_AT_MOST // MIB} MiB")
    rows.append(Row(cells, peak <= PEAK_AT_MOST))
    title = f"{LAYERS} layer norms of {' × '.join(map(str, SHAPE))} float32, 1 GiB of activations: seconds and ratios"
    return [Table(title, ("work", "normcli", "beside it", "ratio", "at most"), rows)]
