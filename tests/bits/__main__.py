"""`python -m tests.bits`: compare the results of this machine with the hashes that are kept; exit code 1 if any differs.

python -m tests.bits --write                        keep what comes out now instead
python -m tests.bits --variation 1                  by other threads, tiles, memory order and files
python -m tests.bits --environments                 under other kernels of OpenBLAS and with fewer features of the CPU,
                                                    each with a variation of its own
python -m tests.bits --numpy 2.0.0 --numpy newest   in new virtual environments, which pip fills
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import NamedTuple

import numpy as np

from normcli.compiled import NUMPY, VARIABLE
from tests.bits.cases import PLAIN, VARIATIONS, list_cases

KEPT = Path(__file__).with_name("hashes.txt")
ROOT = Path(__file__).parents[2]

KERNELS = ("Nehalem", "Sandybridge", "Haswell", "Zen")
"""Of OpenBLAS, by the processors that they were written for."""


def read_kept() -> dict[str, str]:
    """Return the hashes that are kept, by the names of their cases."""
    lines = KEPT.read_text().splitlines()
    return {name: value for value, name in (line.split(" ", 1) for line in lines)}


def find_features() -> tuple[str, ...]:
    """Return the features of this CPU that NumPy may be told not to use: those that it has and was not built for alone."""
    from numpy._core import _multiarray_umath as core

    return tuple(name for name in core.__cpu_dispatch__ if core.__cpu_features__.get(name))


class Environment(NamedTuple):
    """What another process runs under.

    Parameters
    ----------
    variables : dict of str to str
        They change which code runs.
    variation : int
        The number of what it calculates by, in `ALL_VARIATIONS`.
    """

    variables: dict[str, str]
    variation: int = 0


ALL_VARIATIONS = (PLAIN, *VARIATIONS)


def list_environments() -> dict[str, Environment]:
    """Return a kernel of OpenBLAS each, with fewer and fewer features; one of them has each variation.

    Half of them do without the compiled kernel, which the others have where it is there.
    """
    features = find_features()
    new = tuple(name for name in features if "512" in name or name == "X86_V4")
    old = tuple(name for name in ("AVX2", "FMA3", "X86_V3") if name in features)
    disabled = dict(zip(KERNELS, (features, (*old, *new), new, ()), strict=True))
    return {
        f"OpenBLAS for {kernel}, NumPy without {' '.join(names) or 'nothing'}, variation {number}": Environment(
            {
                "OPENBLAS_CORETYPE": kernel,
                **({VARIABLE: NUMPY} if number % 2 == 0 else {}),
                **({"NPY_DISABLE_CPU_FEATURES": " ".join(names)} if names else {}),
            },
            number,
        )
        for number, (kernel, names) in enumerate(disabled.items())
    }


def compare_apart(environment: Environment, python: str = sys.executable, every: int = 1) -> list[str]:
    """Return the names of the cases, or of one in so many, that another process finds different."""
    ran = subprocess.run(
        [python, "-m", "tests.bits", "--variation", str(environment.variation), "--every", str(every)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment.variables, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        check=False,
    )
    if ran.returncode not in (0, 1) or (ran.returncode == 1 and not ran.stdout):
        raise RuntimeError(f"{python} -m tests.bits left with {ran.returncode}: {ran.stderr[-2000:]}")
    return ran.stdout.splitlines()


def compare_with_numpy(version: str) -> list[str]:
    """Return the cases that differ with a version of NumPy, in a new virtual environment."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / "bin" / "python")
        wanted = "numpy" if version == "newest" else f"numpy=={version}"
        subprocess.run([python, "-m", "pip", "install", "-q", wanted, "ml_dtypes>=0.5"], check=True)
        return compare_apart(Environment({}), python)


def main() -> int:
    """Compare or write; print the names of cases that differ, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="keep the hashes of this machine")
    parser.add_argument(
        "--variation",
        type=int,
        default=0,
        choices=range(len(ALL_VARIATIONS)),
        help="which of those in tests/bits/cases.py [default: 0, the plain one]",
    )
    parser.add_argument(
        "--every", type=int, default=1, metavar="N", help="take one case in N, others by each variation"
    )
    parser.add_argument("--environments", action="store_true", help="in other processes, under other variables")
    parser.add_argument(
        "--numpy", action="append", default=[], metavar="VERSION", help="in a new virtual environment"
    )
    options = parser.parse_args()
    if options.write:
        KEPT.write_text("".join(f"{case.hash()} {case.name}\n" for case in list_cases()))
        return 0
    others = list_environments() if options.environments else {}
    found = {name: compare_apart(environment) for name, environment in others.items()}
    found |= {f"NumPy {version}": compare_with_numpy(version) for version in options.numpy}
    for name, differing in found.items():
        print(f"{name}: {len(differing)} differ", *differing, sep="\n  ")
    if not found:
        kept, variation = read_kept(), ALL_VARIATIONS[options.variation]
        cases = list_cases()[options.variation % options.every :: options.every]
        found[np.__version__] = [case.name for case in cases if kept.get(case.name) != case.hash(variation)]
        print("".join(f"{name}\n" for name in found[np.__version__]), end="")
    return 1 if any(found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
