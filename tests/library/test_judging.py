from __future__ import annotations

import numpy as np
import pytest

from normcli import check, identify, normalize
from normcli.errors import DataError, UsageError
from tests.marks import costly


@pytest.fixture
def x(rng):
    return rng.normal(size=(6, 5))


def test_check_says_whether_all_agrees(x):
    judgement = check(normalize(x, "ln").normalized, x, "ln", max_ulp=0)
    assert judgement
    assert repr(judgement) == "<Judgement: ok>"
    assert judgement.found.comparisons["normalized"].mismatches == 0
    assert "✓" in str(judgement)


def test_check_warns_of_degenerate_groups_as_the_command_does():
    judgement = check([[0.0, 0.0]], [[3.0, 3.0]], "ln")
    assert [str(kind) for kind in judgement.warnings] == judgement.data()["warnings"]
    assert judgement.warnings[0].kind == "constant"


@pytest.mark.slow
def test_check_is_the_report_of_the_command(x, normcli, tmp_path):
    y = normalize(x, "rms").normalized
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    out = normcli("check", "ln", "-i", tmp_path / "x.npy", "--actual", tmp_path / "y.npy").out
    assert out.splitlines()[5:] == str(check(y, x, "ln")).splitlines()[5:]  # below the names of the tensors


@pytest.mark.slow
def test_identify_names_the_norm(x):
    judgement = identify(normalize(x, "ln", eps=1e-3).normalized, x)
    best = judgement.found.matches[0]
    assert judgement
    assert (best.norm, best.axes, best.eps) == ("ln", (1,), 1e-3)
    assert "✓ y is layer normalization over c, eps 0.001" in str(judgement)
    assert judgement.diagnosis.remedy == judgement.data()["remedy"] == "normcli ln … --eps 0.001"
    assert not identify(normalize(x, "ln").normalized, x, norm="rms")


@costly
@pytest.mark.parametrize(
    ("shape", "features", "lengths"),
    [
        pytest.param((4, 5, 16), "BD", (4, 16), id="of each sample"),
        pytest.param((2, 4, 5, 16), "HD", (4, 16), id="of each head"),
    ],
)
@pytest.mark.slow
def test_a_gamma_of_each_sample_or_head_is_taken_where_y_is_wrong(shape, features, lengths, rng):
    x, gamma, beta = rng.normal(size=shape), rng.normal(size=lengths), rng.normal(size=lengths)
    layout = "BLD" if len(shape) == 3 else "BHLD"
    given = {"gamma": gamma, "beta": beta, "layout": layout}
    y = normalize(x, "ln", feature_axes=features, eps=1e-3, **given).normalized
    judgement = check(y, x, "ln", feature_axes=features, **given)
    assert "ln differs: eps is 0.001, not 1e-05" in str(judgement)
    best = identify(y, x, **given).found.matches[0]
    assert (best.norm, best.axes, best.eps, best.affine) == ("ln", (x.ndim - 1,), 1e-3, "gamma, beta")


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


def test_bits_of_other_roundings_are_remarked_on_where_all_is_well():
    rng = np.random.default_rng(3)
    x, gamma = rng.normal(size=(16, 50)).astype("f2"), rng.uniform(0.5, 2.0, 50).astype("f2")
    actual = normalize(x, "rms", gamma=gamma, like="llama").normalized
    judged = check(actual, x, "rms", gamma=gamma, eps=1e-6)
    assert judged.ok
    assert "rms agrees but for its bits: x̂ is rounded first (as mlx)." in str(judged)
    assert "bits" not in str(check(actual, x, "rms", gamma=gamma, like="llama"))
