"""Every number that the five documents print, through the command line.

The cases are those of `tests/data/seed_cases.json`; two of them are about restoring the input.
"""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from tests.conftest import DATA

EVERY = json.loads((DATA / "seed_cases.json").read_text())
RESTORED = [case for case in EVERY if case.get("restore")]
CASES = [case for case in EVERY if not case.get("restore")]


def to_arguments(case):
    arguments = [case["norm"], "--format", "json", "--layout", case["layout"], "--eps", case["eps"]]
    arguments += ["--eps-mode", case["eps_mode"]]
    if "axes" in case:
        arguments += ["--axes", case["axes"]]
    recipe = case.get("generate")
    if recipe is None:
        arguments += ["--data", json.dumps(case["input"])]
    else:
        arguments += ["--shape", ",".join(map(str, recipe["shape"]))]
        for name in ("rng", "dist", "low", "high", "seed", "skip"):
            arguments += [f"--{name}", recipe[name]] if name in recipe else []
    if "affine" in case:
        arguments += ["--affine-seed", case["affine"]["seed"]]
    return arguments


def test_all_documents_are_there():
    assert (len(CASES), len(RESTORED)) == (16, 2)
    assert {case["seed_file"][:3] for case in CASES} == {"000", "001", "002", "003", "004"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_seed_case(case, normcli):
    ran = normcli(*to_arguments(case))
    assert (ran.code, ran.err) == (0, "")
    answer, tol = ran.json, {"rtol": 0, "atol": case["tol"]}
    found = {**answer, **answer["stats"]}
    found |= {f"output_{name}": answer["check"].get(name, {}).get("overall") for name in ("mean", "var")}
    for key, expected in case["expect"].items():
        name, _, part = re.fullmatch("(.*?)(_(first|flat|prefix))?", key).groups()
        values, wanted = np.ravel(found[name]), np.ravel(expected)
        assert part in ("first", "prefix") or values.size == wanted.size, key
        np.testing.assert_allclose(values[: wanted.size], wanted, **tol, err_msg=key)


@pytest.mark.parametrize("case", RESTORED, ids=lambda case: case["name"])
def test_restored_seed_case(case, normcli):
    ran = normcli("restore", *to_arguments(case))
    assert (ran.code, ran.err) == (0 if case["expect"]["recovered"] else 1, "")
    answer, expect = ran.json, dict(case["expect"])
    for name in ("recovered", "rtol", "atol"):
        assert answer[name] == expect.pop(name)
    x = np.array(
        normcli("generate", *to_arguments(case)[to_arguments(case).index("--shape") :]).json, dtype="f4"
    )
    close = np.isclose(answer["restored"], x, rtol=answer["rtol"], atol=answer["atol"])
    assert close.all() if answer["recovered"] else not close.any(), "as the document prints of every value"
    if "normalized_without_affine" in expect:
        printed = expect.pop("normalized_without_affine")
        np.testing.assert_allclose(answer["normalized_without_affine"], printed, rtol=0, atol=1e-4)
    assert not expect, "every number of the case is held"
