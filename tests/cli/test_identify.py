"""`normcli identify` as it is typed."""

from __future__ import annotations

import numpy as np
import pytest

from tests.conftest import require_refusal, save

X = np.random.default_rng(5).normal(1.0, 2.0, (4, 6, 50)).astype("f4")


ASKED = ("identify", "-i", "x.npy", "--actual", "y.npy")


@pytest.fixture(autouse=True)
def _files(here):
    """An input, and what LayerNorm as the Annotated Transformer has it makes of it."""
    spread = X.std(-1, ddof=1, keepdims=True)
    save(x=X, y=(X - X.mean(-1, keepdims=True)) / (spread + np.float32(1e-3)))


@pytest.mark.slow
def test_the_answer_is_a_table_and_what_made_it(normcli):
    ran = normcli(*ASKED, "--layout", "bnd")
    assert ran.code == 0
    assert "✓ y is layer normalization over d, eps 0.001 outside the root, ddof 1." in ran.out
    assert "  reproduce   normcli ln … --eps 0.001 --eps-mode outside --ddof 1" in ran.out


@pytest.mark.slow
def test_json_has_every_field_of_a_match(normcli):
    data = normcli(*ASKED, "-f", "json").json
    assert data["schema"] == "normcli/1"
    match = data["matches"][0]
    assert {"norm", "axes", "groups", "group_order", "eps", "eps_range", "eps_mode", "ddof", "affine", "precision",
            "like", "max_ulp", "max_abs"} <= set(match)  # fmt: skip
    assert (match["norm"], match["axes"], match["eps"], match["ddof"]) == ("ln", [2], 1e-3, 1)
    low, high = match["eps_range"]
    assert low <= 1e-3 <= high
    assert data["sentence"].startswith(data["cause"])
    assert data["cause"].startswith("y is layer normalization over l, eps 0.001")
    assert (data["verdict"], data["fault"]) == ("norm", None)
    assert isinstance(data["evidence"], list)
    assert isinstance(data["alternatives"], list)
    assert data["remedy"] == "normcli ln … --eps 0.001 --eps-mode outside --ddof 1"


@pytest.mark.slow
def test_a_fault_is_no_norm_and_exit_1(normcli):
    mean, var = X.mean(-1, keepdims=True), X.var(-1, keepdims=True)
    save(y=(X - mean) / (var + np.float32(1e-5)))
    ran = normcli(*ASKED, "-f", "json")
    assert (ran.code, ran.json["verdict"], ran.json["fault"]) == (1, "fault", "stats-not-rooted")


def test_a_constant_input_tells_nothing(normcli):
    np.save("y.npy", np.zeros((3, 4)))
    ran = normcli("identify", "--data", "[[5,5,5,5],[5,5,5,5],[5,5,5,5]]", "--actual", "y.npy")
    assert ran.code == 1
    assert "No norm can be identified: the input is constant" in ran.out


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        pytest.param(["-i", "x.npy"], 2, "needs --actual", id="no actual"),
        pytest.param(["--actual", "y.npy"], 2, "there is no tensor", id="no input"),
        pytest.param(["-i", "x.npy", "--actual", "no.npy"], 3, "no.npy: there is no such file", id="missing"),
        pytest.param(["--data", "[1,2,3]", "--actual", "y.npy"], 3, "(4, 6, 50), which is (3,) in no order", id="shape"),
        pytest.param(["-i", "x.npy", "--actual", "y.npy", "--norm", "no"], 2, "no", id="norm"),
        pytest.param(["-i", "x.npy", "--actual", "y.npy", "--gamma", "[1,2,3,4,5,6,7]"], 3, "gamma has the shape (7,)", id="gamma"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(arguments, code, message, normcli):
    require_refusal(normcli("identify", *arguments), code, message)


@pytest.mark.slow
def test_check_without_a_norm_asks_which_it_is_and_says_so(normcli):
    question = ("-i", "x.npy", "--actual", "y.npy", "--layout", "bnd")
    ran = normcli("check", *question)
    assert (ran.code, ran.out) == (0, normcli("identify", *question).out)
    assert ran.err == "normcli: check: no norm is named, so this looks for one, as normcli identify does\n"
