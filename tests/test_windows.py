"""What the program does where the system is Windows, as far as another one can be made to look like it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import tests.as_on_windows

BUSY = 3
"""The exit code where a file is in use."""

COMMANDS = {
    "generate --shape 8,30,40 --dist normal -o x.npy": 0,
    "ln -i x.npy -o y.npy": 0,
    "check ln -i x.npy --actual y.npy --max-ulp 0.51": 0,
    "ln -i y.npy -o y.npy": BUSY,  # a large input in a file cannot be replaced by its result
    "fit bn x.npy y.npy -o s.npz": 0,
    "apply s.npz x.npy -o z.npy": 0,
    "bn -i x.npy --state st.npz --momentum 0.1 -o w.npy": 0,
    "bn -i x.npy --state st.npz --momentum 0.2 -o w.npy": 0,
    "bn --shape 2,3 -o x.csv": 0,
    "zscore x.csv -o o.csv": 0,
    "golden ln --shape 2,3 -o golden": 0,
    "draw bn --shape 2,3,4,4 -o p.svg": 0,
    "ln -i x.npy -o q.npz --stats-output q.json": 0,
    "backward ln -i x.npy -o b.npz": 0,
}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks for open files in Linux' /proc")
def test_files_are_read_and_replaced_where_open_ones_cannot_be(tmp_path):
    ran = subprocess.run(
        [sys.executable, tests.as_on_windows.__file__, *COMMANDS],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(ran.stdout.splitlines()[-1]) == list(COMMANDS.values()), ran.stderr
    assert "y.npy cannot be written" in ran.stderr
    assert not [*tmp_path.glob(".normcli*"), *tmp_path.glob("*.lock")]
