"""Record what torch draws, for the tests that run without it: `python tests/data/record_torch_stream.py`.

On an x86 CPU with AVX2: elsewhere torch's normal values are others.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import torch

SEEDS = (0, 1, 2, 3, 42)


def record(seed: int) -> dict[str, object]:
    """Draw one of everything, each from the seed."""

    def draw(function):
        torch.manual_seed(seed)
        return function().tolist()

    def leftover():
        first, second, third = torch.randn(3), torch.rand(2), torch.randn(2)
        return torch.cat([first, second, third])

    wide = torch.float64
    return {
        "seed": seed,
        "rand": draw(lambda: torch.rand(8)),
        "rand_float64": draw(lambda: torch.rand(8, dtype=wide)),
        "uniform": draw(lambda: torch.empty(8).uniform_(-2.5, 3.7)),
        "uniform_narrow": draw(lambda: torch.empty(8).uniform_(1, 1 + 2**-22)),
        "uniform_float64": draw(lambda: torch.empty(8, dtype=wide).uniform_(-2.5, 3.7)),
        "randn_7": draw(lambda: torch.randn(7)),
        "randn_15": draw(lambda: torch.randn(15)),
        "randn_7_float64": draw(lambda: torch.randn(7, dtype=wide)),
        "randn_16": draw(lambda: torch.randn(16)),
        "randn_37": draw(lambda: torch.randn(37)),
        "randn_100003": _hash(torch.randn(100_003, generator=torch.Generator().manual_seed(seed))),
        "randn_37_float64": draw(lambda: torch.randn(37, dtype=wide)),
        "leftover": draw(leftover),
        "randint": draw(lambda: torch.randint(0, 10, (8,))),
        "randint_below": draw(lambda: torch.randint(-5, 2**28 - 6, (8,))),
        "randint_wide": draw(lambda: torch.randint(-5, 2**28 - 5, (8,))),
        "randint_64": draw(lambda: torch.randint(-(2**62), 2**62, (8,))),
    }


def _hash(values: torch.Tensor) -> str:
    return hashlib.sha256(values.numpy().astype("<f4").tobytes()).hexdigest()


if __name__ == "__main__":
    recorded = {"torch": torch.__version__, "draws": [record(seed) for seed in SEEDS]}
    Path(__file__).with_name("torch_stream.json").write_text(json.dumps(recorded, indent=1) + "\n")
