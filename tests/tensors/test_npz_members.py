"""Members of stats and state files: what is not what it can be is refused by its name."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.errors import DataError
from normcli.tensors.formats.npz import FileKind, Members

MEMBERS = {
    "schema": np.array("s/1"),
    "count": np.array([1, 2, 3]),
    "mean": np.array([0.5, np.nan]),
    "word": np.array("omit"),
    "names": np.array(["a", "b\u202e"]),
    "half": np.array("\ud800"),
}


@pytest.fixture
def members(tmp_path):
    path = tmp_path / "m.npz"
    np.savez(path, **MEMBERS)
    return Members(str(path), FileKind("stats", "s/1", "fit writes one"))


def test_what_can_be_is_returned(members):
    assert members.get_shape("count") == (3,)
    assert members.take_integers("count", (3,), 1, 3).tolist() == [1, 2, 3]
    np.testing.assert_array_equal(members.take_floats("mean", (2,)), MEMBERS["mean"])
    assert members.take_word("word") == members.take_word("word", ("omit", "propagate")) == "omit"
    assert members.take_words("names", 2) == ("a", "b\u202e")
    assert "word" in members
    assert "other" not in members


@pytest.mark.parametrize(
    ("take", "told"),
    [
        pytest.param(lambda m: m.get_shape("other"), "other is missing", id="missing"),
        pytest.param(lambda m: m.take_integers("count", (3,), 2, 3), "count is 1, not from 2 to 3", id="below"),
        pytest.param(lambda m: m.take_integers("count", (3,), 1, 2), "count is 3, not from 1 to 2", id="above"),
        pytest.param(lambda m: m.take_integers("mean", (2,), 0, 1), "mean is float64, not int64", id="dtype"),
        pytest.param(lambda m: m.take_floats("mean", (1, 2)), r"mean has the shape \(2,\), not \(1, 2\)", id="shape"),
        pytest.param(lambda m: m.take_integer("count", 0, 9), r"count has the shape \(3,\), not \(\)", id="several"),
        pytest.param(lambda m: m.take_word("count"), "count is int64, and no text", id="no text"),
        pytest.param(lambda m: m.take_word("word", ("a", "b")), "word is 'omit', none of a, b", id="unknown word"),
        pytest.param(lambda m: m.take_words("names", 3), r"names has the shape \(2,\), not \(3,\)", id="words"),
        pytest.param(lambda m: m.take_word("half"), "half has what is no character", id="half a character"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_named(take, told, members):
    with pytest.raises(DataError, match=f"m.npz is no stats file of normcli: {told}$"):
        take(members)
