"""Stories as a reader sees them, kept as text. To renew them: `NORMCLI_UPDATE_SNAPSHOTS=1 pytest tests/teach`."""

from __future__ import annotations

import pytest

from tests.conftest import hold_snapshot
from tests.teach.printed import check_true

MATRIX = "sn --data [[3,0],[4,5]] --at 0,0"
BACKWARD = "--backward --dy [[1,2],[3,4]]"
GATED = "--data [[1,2,4,8]] --gate [[0.5,-1,2,0]] --gamma [1,-2,3,0.5]"
STORIES = {
    "explain-sn-from-u": f"{MATRIX} --u 1,0",
    "explain-sn-from-v": f"{MATRIX} --v 0,2 --iterations 3",
    "explain-sn-from-both": f"{MATRIX} --u 1,0 --v 1,0",
    "explain-sn-right-angle": "sn --data [[3,0],[0,0]] --at 0,0 --u 0,1",
    "explain-sn-zeros": "sn --data [[0,0],[0,0]] --at 0,0 --u 0,1",
    "explain-sn-backward": f"{MATRIX} {BACKWARD}",
    "explain-sn-backward-from-u": f"{MATRIX} --u 1,0 {BACKWARD}",
    "explain-sn-backward-of-equals": f"sn --data [[2,0],[0,2]] --at 0,0 {BACKWARD}",
    "explain-sn-backward-of-zeros": f"sn --data [[0,0],[0,0]] --at 0,0 {BACKWARD}",
    "explain-sn-backward-of-infinity": f"sn --data [[1,Infinity],[0,1]] --at 0,0 {BACKWARD}",
    "explain-ln-backward": "ln --data [[1,2,3,6]] --at 0,0 --backward --dy [[1,0,0,2]] --gamma [2,1,1,1] --eps 0.5",
    "explain-rms-gate": f"rms {GATED} --at 0,2",
    "explain-ln-gate-before": f"ln {GATED} --gate-order before --gate-act gelu --at 0,2",
    "explain-ln-gate-backward": f"ln {GATED} --at 0,2 --backward --dy [[1,0,-1,2]]",
    "explain-ln-gate-before-backward": f"ln {GATED} --gate-order before --at 0,2 --backward --dy [[1,0,-1,2]]",
    "explain-ln-residual": "ln --data [[1,2,4,8]] --residual [[0.5,0,1,-1]] --at 0,2",
    "explain-robust-quantiles": "robust --data [[1],[2],[4],[8]] --quantiles 10,90 --at 0,0",
}


@pytest.mark.all_quick
@pytest.mark.parametrize("name", STORIES)
def test_a_story_is_told_as_it_was(name, normcli):
    told = normcli("explain", *STORIES[name].split()).out
    hold_snapshot(f"{name}.txt", told)
    for line in told.splitlines():
        if line.startswith("   "):
            check_true(line.strip(), 8)
