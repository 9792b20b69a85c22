from __future__ import annotations

import numpy as np
import pytest

from normcli import check, identify, normalize
from normcli.errors import DataError, UsageError


@pytest.fixture
def x(rng):
    return rng.normal(size=(6, 5))


def test_check_says_whether_all_agrees(x):
    judgement = check(normalize(x, "ln").normalized, x, "ln", max_ulp=0)
    assert judgement
    assert repr(judgement) == "<Judgement: ok>"
    assert judgement.found.comparisons["normalized"].mismatches == 0
    assert "✓" in str(judgement)


def test_check_says_what_made_it_instead(x):
    judgement = check(normalize(x, "rms").normalized, x, "ln")
    assert not judgement.ok
    assert "root mean square normalization (rms)" in str(judgement)
    assert judgement.data()["ok"] is False


def test_check_is_the_report_of_the_command(x, normcli, tmp_path):
    y = normalize(x, "rms").normalized
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    out = normcli("check", "ln", "-i", tmp_path / "x.npy", "--actual", tmp_path / "y.npy").out
    assert out.splitlines()[5:] == str(check(y, x, "ln")).splitlines()[5:]  # below the names of the tensors


def test_identify_names_the_norm(x):
    judgement = identify(normalize(x, "ln", eps=1e-3).normalized, x)
    best = judgement.found.matches[0]
    assert judgement
    assert (best.norm, best.axes, best.eps) == ("ln", (1,), 1e-3)
    assert "layer normalization (ln)" in str(judgement)
    assert not identify(normalize(x, "ln").normalized, x, norm="rms")


def test_identify_takes_gamma_and_beta(x):
    gamma, beta = np.arange(1.0, 6.0), np.arange(5.0)
    y = normalize(x, "ln", gamma=gamma, beta=beta).normalized
    assert identify(y, x, gamma=gamma, beta=beta).found.matches[0].norm == "ln"


def test_what_makes_no_sense_is_refused(x):
    with pytest.raises(DataError, match="actual has the shape"):
        check(x[:2], x, "ln")
    with pytest.raises(UsageError, match="check has no option 'out'"):
        check(x, x, "ln", out=x)
    with pytest.raises(UsageError, match="rtol 'a' is not a number"):
        check(x, x, "ln", rtol="a")
    with pytest.raises(UsageError, match="threads 0 is less than one"):
        check(x, x, "ln", threads=0)
    with pytest.raises(UsageError, match="norm 3 is not a name"):
        identify(x, x, norm=3)
    with pytest.raises(DataError, match="shape"):
        identify(x[:2], x)


@pytest.mark.peers
def test_tensors_of_torch(x):
    torch = pytest.importorskip("torch")
    t = torch.tensor(x)
    assert check(torch.nn.functional.layer_norm(t, (5,)), t, "ln")
    assert identify(torch.nn.functional.layer_norm(t, (5,)), t)


def test_bits_of_other_roundings_are_remarked_on_where_all_is_well():
    rng = np.random.default_rng(3)
    x, gamma = rng.normal(size=(16, 50)).astype("f2"), rng.uniform(0.5, 2.0, 50).astype("f2")
    actual = normalize(x, "rms", gamma=gamma, like="llama").normalized
    judged = check(actual, x, "rms", gamma=gamma, eps=1e-6)
    assert judged.ok
    assert "100 % of the values are equal where x̂ is rounded first" in str(judged)
