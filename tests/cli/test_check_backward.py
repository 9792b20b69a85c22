"""`normcli check NORM --backward`: somebody's gradients, and how wrong ones are wrong."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import backward
from tests.conftest import require_refusal, save


@pytest.fixture
def files(tmp_path, rng):
    """x, dy and gamma in files, the exact gradients, and a dx without its mean term."""
    x, dy = (rng.normal(mean, 3, (4, 3, 8)).astype(np.float32) for mean in (2, 0))
    gamma = np.array([1, 2, 3], np.float32)
    found = backward(x, dy, "bn", gamma=gamma)
    scale = gamma[:, None] / np.sqrt(x.var((0, 2), keepdims=True) + 1e-5)
    wrong = found.dx + scale * dy.mean((0, 2), keepdims=True)
    arrays = {"x": x, "dy": dy, "gamma": gamma, **found.collect(), "wrong": wrong}
    save(tmp_path, **arrays)
    return {name: tmp_path / f"{name}.npy" for name in arrays}


def call(normcli, files, *options):
    given = ("-i", files["x"], "--dy", files["dy"], "--gamma", files["gamma"])
    return normcli("check", "bn", "--backward", *given, *(str(o).format(**files) for o in options))


ALL = ("--actual-dx", "{dx}", "--actual-dgamma", "{dgamma}", "--actual-dbeta", "{dbeta}")


def test_exact_gradients_agree_to_half_a_ulp(files, normcli):
    ran = call(normcli, files, *ALL, "--max-ulp", "0.501")
    assert (ran.code, ran.err) == (0, "")
    marks = [line.split(":")[0] for line in ran.out.splitlines() if line.startswith("✓")]
    assert marks == ["✓ dx", "✓ dgamma", "✓ dbeta"]


def test_a_wrong_one_is_said_to_be_wrong_and_how(files, normcli):
    ran = call(normcli, files, "--actual-dx", "{wrong}", "--actual-dgamma", "{dbeta}", "-f", "json")
    assert ran.code == 1
    found = ran.json["gradients"]
    assert found["dgamma"]["sentence"] == "dgamma: it and dbeta are exchanged."
    assert (found["dx"]["fault"], found["dx"]["remedy"]) == ("dx-mean-missing", "subtract mean(dy · gamma)")
    assert found["dx"]["evidence"].startswith("so calculated, it is off by ")
    assert (found["dgamma"]["fault"], found["dgamma"]["alternatives"]) == ("dgamma-exchanged", [])
    assert set(found["dx"]["worst"]["index"]) == {"n", "c", "l"}
    assert set(found["dgamma"]["worst"]["index"]) == {"c"}
    table = call(normcli, files, "--actual-dx", "{wrong}").out.splitlines()
    assert "✗ dx: the mean(dy · gamma) term is left out." in table
    assert table[0] == "check backward bn · batch normalization"
    assert len(call(normcli, files, *ALL, "-f", "csv").lines) == 4
    assert len(call(normcli, files, *ALL, "-f", "jsonl").lines) == 3


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        ((), 2, "there is nothing to check: give --actual-dx FILE"),
        (("--actual-dx", "{dx}", "--actual", "{x}"), 2, "with --backward, name the gradient: --actual-dx"),
        (("--actual-dx", "{gamma}"), 3, "dx has the shape (3,); it takes (4, 3, 8)"),
        (("--actual-dx", "missing.npy"), 3, "--actual-dx: missing.npy"),
        (("--actual-dx", "{dx}", "--rtol", "-1"), 2, "rtol -1.0 is not a finite number"),
    ],
)
def test_bad_options_are_one_line(options, code, told, files, normcli):
    require_refusal(call(normcli, files, *options), code, told)


def test_norms_without_a_derivative_or_a_gamma(files, normcli):
    given = ("-i", files["x"], "--dy", files["dy"])
    assert "has no backward pass" in normcli("check", "robust", *given, "--actual-dx", files["dx"]).err
    ran = normcli("check", "lp", *given, "--actual-dgamma", files["gamma"])
    assert (ran.code, "lp has no gamma" in ran.err) == (2, True)
