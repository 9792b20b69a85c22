"""A recorded run of a stack of blocks: what recording and auditing cost, beside a copy of the values and `check`."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from statistics import median

import torch
from torch import nn

from normcli import audit, check, record
from normcli.auditing.layer import open_dump
from tests.bench.files import MIB
from tests.bench.pairs import Row, Table, compare, judge, measure_peak, take_turns
from tests.bench.startup import NORMCLI

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


def measure(runs: int, folder: str | None) -> Table:
    """Measure in a temporary folder on the disk of `folder`."""
    torch.manual_seed(0)
    model, x = nn.Sequential(*(Block(SHAPE[-1]) for _ in range(LAYERS))), torch.randn(SHAPE)
    with tempfile.TemporaryDirectory(dir=folder) as name, torch.no_grad():
        others = [torch.randn(SHAPE).numpy().data for _ in range(8)]  # more than a cache holds
        dump, copy = Path(name) / "dump.safetensors", Path(name) / "copy"

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

        recorded, copied = take_turns((run_and_record, run_and_copy), runs)
        copy.unlink()
        layers = open_dump(str(dump))

        def check_each() -> None:
            for layer in layers:
                y, given, gamma, beta = (layer.load(role) for role in ("output", "input", "weight", "bias"))
                assert check(
                    y.values, given.values, "ln", axes=-1, gamma=gamma.values, beta=beta.values, like="torch"
                )

        audited, checked = take_turns((lambda: audit(dump), check_each), runs)
        peak = measure_peak([*NORMCLI, "audit", str(dump), "-q"])
    rows = []
    for work, ours, theirs, most in (
        ("record, beside the run and a copy of as many bytes", recorded, copied, HOOKS_AT_MOST),
        ("audit, beside `check` of each layer in one process", audited, checked, AUDIT_AT_MOST),
    ):
        ratio, limit, ok = judge(compare(ours, theirs), most)
        rows.append(Row((work, f"{median(ours):.2f}", f"{median(theirs):.2f}", ratio, limit), ok))
    size = f"{peak / MIB:.0f} MiB"
    rows.append(Row(("audit, peak memory", size, "–", "–", f"{PEAK_AT_MOST // MIB} MiB"), peak <= PEAK_AT_MOST))
    shape = " × ".join(map(str, SHAPE))
    title = f"{LAYERS} layer norms of {shape} float32, 1 GiB of activations: seconds and ratios"
    return Table(title, ("work", "normcli", "beside it", "ratio", "at most"), rows)
