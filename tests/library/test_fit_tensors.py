"""Rows normalized group by group."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import NormError, normalize_by
from tests.conftest import require_refusal


def test_rewards_may_be_one_column_and_groups_numbers():
    found = normalize_by([1, 5, 3, 5], np.array([7, 8, 7, 8]), "zscore")
    assert (found.names, found.counts) == (["7", "8"], [2, 2])
    assert found.normalized.tolist() == [-1.0, 0.0, 1.0, 0.0]


@pytest.mark.parametrize(("x", "by"), [([1.0, 2.0], ["a"]), (3.0, ["a"]), ([], []), (["a"], ["b"])])
def test_what_has_no_group_for_each_row_is_refused(x, by):
    with pytest.raises(NormError):
        normalize_by(x, by, "zscore")


@pytest.fixture
def shops(here):
    (here / "s.csv").write_text('shop,price,qty\nA,1,2\nB,5,4\nA,3,2\n"B, C",7,1\nB,9,8\n')


@pytest.mark.usefixtures("shops")
@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("s.csv", "--by", "foo"), "no column 'foo'"),
        (("--shape", "3,2", "--by", "foo"), "one table"),
        (("s.csv", "--by", "shop", "--emit", "numpy"), "--emit is of the whole tensor"),
        (("s.csv", "--by", "shop", "--stats-output", "a.npz"), "normcli fit zscore … --by shop -o STATS.npz"),
        (("s.csv", "--by", "shop", "--clip", "0,1"), "beside --by"),
        (("s.csv", "--by", "shop", "-o", "a.svg"), "no picture"),
        (("s.csv", "--by", "shop", "-f", "html"), "no page"),
    ],
)
def test_refusals(normcli, words, message):
    require_refusal(normcli("zscore", *words), 2, message)


@pytest.mark.parametrize("words", [("zscore", "-i"), ("fit", "zscore")], ids=["norm", "fit"])
def test_rows_without_a_name_of_their_group_are_told(words, tmp_path, normcli):
    (tmp_path / "t.csv").write_text("shop,price\nA,1\n,5\nA,3\n,9\n")
    ran = normcli(*words, tmp_path / "t.csv", "--by", "shop")
    assert ran.code == 0
    assert "rows whose group has no name make one group" in ran.err


def test_several_columns_group_rows(normcli, here):
    (here / "s.csv").write_text("month,shop,price\n10,A,1\n9,A,5\n10.0,A,3\n,A,4\n")
    lines = normcli("zscore", "s.csv", "--by", "shop, month", "-f", "csv", "-q").lines
    assert lines[0] == "shop,month,column,count,mean,var,std,rstd"
    assert lines[1:] == [
        "A,,price,1,4.0,0.0,0.0,1.0",
        "A,9,price,1,5.0,0.0,0.0,1.0",
        "A,10,price,2,2.0,1.0,1.0,1.0",
    ]
    answer = normcli("zscore", "s.csv", "--by", "shop,month", "-f", "json", "-q").json
    assert (answer["by"], answer["groups"][0]["group"]) == (["shop", "month"], ["A", None])
    ran = normcli("zscore", "s.csv", "--by", "shop,month", "-o", "-", "-q")
    assert ran.lines == ["month,shop,price", "10,A,-1.0", "9,A,0.0", "10.0,A,1.0", ",A,0.0"]
    (here / "c.csv").write_text('"a,b",v\nx,1\nx,3\n')
    for by in ("a,b", '"a,b"'):
        assert normcli("zscore", "c.csv", "--by", by, "-o", "-").lines[1:] == ["x,-1.0", "x,1.0"]


@pytest.mark.usefixtures("shops")
@pytest.mark.parametrize("norm", ["zscore", "robust"])
def test_what_is_normalized_and_what_is_fitted_and_applied_is_one(norm, normcli):
    direct = normcli(norm, "s.csv", "--by", "shop", "-o", "-", "-q").out
    assert normcli("fit", norm, "s.csv", "--by", "shop", "-o", "st.npz", "-q").code == 0
    assert normcli("apply", "st.npz", "s.csv", "-o", "-").out == direct
    assert normcli(norm, "s.csv", "--by", "shop", "--strict").code == 4
