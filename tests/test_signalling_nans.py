"""Signalling NaNs, of which NumPy warns, are NaNs like any other: in answers, pages and pictures."""

from __future__ import annotations

import numpy as np
import pytest

SIGNALLING = {"float32": ("u4", 0x7FA00000), "float64": ("u8", 0x7FF4000000000000)}


@pytest.fixture(params=SIGNALLING)
def file(request, tmp_path):
    bits, pattern = SIGNALLING[request.param]
    values = np.ones((3, 3), request.param)
    values.view(bits)[0, 1] = pattern
    np.save(tmp_path / "x.npy", values)
    np.save(tmp_path / "row.npy", values[0])
    return tmp_path / "x.npy"


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("ln -i x.npy -f json", 0),
        ("bn -i x.npy -f html -o out.html", 0),
        ("compare bn zscore ln mvn rms l2 -i x.npy -f json", 0),
        ("explain lrn -i x.npy --at 0,0", 0),
        ("bn -i x.npy --running-mean row.npy --running-var 1", 3),
        ("bn -i x.npy --gamma row.npy --beta row.npy", 0),
        ("identify -i x.npy --actual x.npy --gamma row.npy", 1),
        ("draw bn -i x.npy -o out.svg", 0),
        ("bn -i x.npy --mask x.npy", 3),
        ("check ln -i x.npy --actual x.npy", 1),
    ],
)
def test_signalling_nans_are_nans_like_any_other(command, code, file, normcli, monkeypatch):
    monkeypatch.chdir(file.parent)
    ran = normcli(*command.split())
    assert (ran.code, "Warning" in ran.err) == (code, False), ran.err


def test_a_column_of_a_table_that_holds_one_does_not_count_on(normcli, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    values = np.arange(64.0)
    values.view("u8")[5] = SIGNALLING["float64"][1]
    table = pyarrow.table({"id": values, "x": np.ones(64)})
    pytest.importorskip("pyarrow.parquet").write_table(table, tmp_path / "x.parquet")
    assert "Warning" not in normcli("zscore", "-i", tmp_path / "x.parquet", "--print", "mean").err
