"""What formats cost on some data."""

from __future__ import annotations

import pytest

from normcli.quantizing import quantize as room
from normcli.quantizing.formats import FORMATS

LINE = ("doctor", "ln", "--shape", "4,64", "--dist", "normal", "--dtype", "float16")


@pytest.mark.slow
def test_doctor_says_what_each_format_costs(normcli):
    told = normcli(*LINE, "-f", "json").json["formats"]
    assert [one["format"] for one in told] == list(FORMATS)
    ran = normcli(*LINE)
    assert "exact, stored as   scale per   signal to noise" in ran.out
    for one in told:
        line = next(line for line in ran.lines if line.startswith(f"{one['format']} "))
        assert f"{one['signal_to_noise']:.3g} dB" in line


def test_formats_that_the_data_do_not_have_are_left_out(normcli, monkeypatch):
    line = ("doctor", "ln", "--shape", "2,20", "-f", "json")
    assert [one["format"] for one in normcli(*line).json["formats"]] == ["int8", "fp8-e4m3", "fp8-e5m2"]
    monkeypatch.setattr(room, "MOST_COSTED", 39)
    assert normcli(*line).json["formats"] == []
    assert "exact, stored as" not in normcli(*line[:-2]).out
