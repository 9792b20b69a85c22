"""Record what the frameworks give, for the tests that run without them: `python tests/data/record_conventions.py`.

What cannot be imported here keeps what was recorded of it elsewhere.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from normcli.norms.conventions import find_convention
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from tests.edges import EDGES
from tests.peers import PEERS, SCALES, Peer, make_parameters, make_values

TARGET = Path(__file__).with_name("conventions.json")


def record(peer: Peer, scales: tuple[float, ...]) -> list[dict[str, object]]:
    """Return one case a scale, the first with gamma and beta, of the smallest shape that has positions."""
    shape = min(peer.shapes, key=lambda shape: (len(shape) < 3, np.prod(shape)))
    plan = make_plan(Request(peer.norm, like=peer.framework, **peer.options), shape, np.dtype("f8"))
    cases = []
    for scale in scales:
        if scale not in peer.scales:
            continue
        affine = peer.affine if scale == SCALES[1] else ()
        parameters = make_parameters(affine, plan.parameters.shape)
        values = peer.call(make_values(shape, scale), **parameters, **peer.options)
        cases.append(
            {
                "norm": peer.norm,
                "framework": peer.framework,
                "version": describe_version(peer),
                "options": dict(peer.options),
                "shape": shape,
                "scale": scale,
                "affine": affine,
                "normalized": [float(f"{value:.8g}") for value in np.asarray(values, float).ravel()],
            }
        )
    return cases


def describe_version(peer: Peer) -> str:
    """Return what ran; of what was only read, the version that was read."""
    if peer.module == "numpy":
        return f"not run: written down from {find_convention(peer.framework, peer.norm).version}"
    return f"{peer.module.split('.')[0]} {import_module(peer.module).__version__}"


def is_importable(module: str) -> bool:
    """Whether a framework is here."""
    try:
        import_module(module)
    except Exception:  # whatever keeps a framework from loading
        return False
    return True


def main() -> None:
    """Record what can be imported, keep the rest."""
    before = json.loads(TARGET.read_text()) if TARGET.exists() else {}
    kept = before.get("cases", [])
    cases = []
    for norm, framework in dict.fromkeys((peer.norm, peer.framework) for peer in PEERS):
        peers = [peer for peer in PEERS if (peer.norm, peer.framework) == (norm, framework)]
        peers.sort(key=lambda peer: len(peer.options))
        if all(is_importable(peer.module) for peer in peers):
            cases += record(peers[0], (SCALES[1], SCALES[-1]))
            cases += [case for peer in peers[1:2] for case in record(peer, SCALES[1:2])]
        else:
            cases += [case for case in kept if (case["norm"], case["framework"]) == (norm, framework)]
    edges = before.get("edges", {})
    found = {str(edge): edge.run() if is_importable(edge.module) else edges[str(edge)] for edge in EDGES}
    lines = ",\n".join(json.dumps(case) for case in cases)
    edge_lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(values)}" for name, values in found.items())
    TARGET.write_text(f'{{"cases": [\n{lines}\n], "edges": {{\n{edge_lines}\n}}}}\n')


if __name__ == "__main__":
    main()
