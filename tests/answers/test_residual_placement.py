"""`compare NORM --residual`: post-norm beside pre-norm."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import normalize
from tests.conftest import hold_snapshot, require_refusal

X, R = [[1.0, 2.0, 3.0, 5.0], [0.5, 0.0, 2.0, 1.0]], [[3.0, 1.0, 4.0, 1.0], [5.0, 9.0, 2.0, 6.0]]
ASKED = ("compare", "ln", "--data", str(X), "--residual", str(R))


def test_the_norm_works_on_the_sum_behind_the_addition_and_on_the_residual_before_the_sublayer(normcli):
    answer = normcli(*ASKED, "--gamma", "2", "-f", "json").json
    post, pre = answer["columns"]
    for column, name, values in ((post, "post-norm", np.add(X, R)), (pre, "pre-norm", np.array(R))):
        assert column["name"] == name
        assert column["normalized"] == normalize(values, "ln", gamma=2.0).normalized.tolist()
        np.testing.assert_allclose(column["input_mean"], values.mean(), rtol=1e-15)
        np.testing.assert_allclose(column["input_var"], values.var(), rtol=1e-14)
    assert (post["works_on"], pre["works_on"]) == ("x + r", "r")
    assert (post["block"], pre["block"]) == ("norm(r + f(r)) = norm(x + r)", "r + f(norm(r))")


def test_both_stand_side_by_side(normcli):
    hold_snapshot("compare-residual.txt", normcli(*ASKED, "--full").out)


@pytest.mark.parametrize("name", ["a.svg", "a.html"])
def test_a_picture_and_a_page_have_both(normcli, tmp_path, name):
    assert normcli(*ASKED, "-o", tmp_path / name).code == 0
    written = (tmp_path / name).read_text()
    assert "post-norm: x + r" in written
    assert "pre-norm: r" in written


@pytest.mark.parametrize(
    ("more", "code", "message"),
    [
        (["--residual", "[[1]]"], 3, "the residual has the shape (1, 1)"),
        (["--residual", str(R), "--running-mean", "0"], 2, "give --running-var too"),
    ],
)
def test_what_cannot_be_is_one_line(normcli, more, code, message):
    require_refusal(normcli("compare", "ln", "--data", str(X), *more), code, message)


def test_degenerate_groups_are_told_by_their_place(normcli):
    flat = normcli("compare", "ln", "--data", "[[1,2]]", "--residual", "[[3,3]]")
    assert "pre-norm:" in flat.err
    assert "post-norm:" not in flat.err
    assert normcli("compare", "ln", "--data", "[[1,2]]", "--residual", "[[3,3]]", "--strict").code != 0
