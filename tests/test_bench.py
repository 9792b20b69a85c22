"""What the bench does with its measurements; it is run by itself."""

from __future__ import annotations

import pytest

from tests.bench.__main__ import RECORD, main, put_in_place, to_markdown
from tests.bench.pairs import Row, Table


def measure(title: str, *cells: str) -> Table:
    return Table(title, ["work", "ratio"], [Row(cells, ok=True)])


def test_a_section_is_recorded_in_its_place():
    a, b, new_a, c = (measure(*cells) for cells in ("Aa1", "Bb2", "Aa3", "Cc3"))
    old = to_markdown([a, b])
    assert put_in_place(to_markdown([new_a]), old) == to_markdown([new_a, b])
    assert put_in_place(to_markdown([c]), old) == to_markdown([a, b, c])


def test_a_section_that_is_not_known_is_refused_with_the_known_ones(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["bench", "judge", "stats-padded"])
    with pytest.raises(SystemExit) as ended:
        main()
    error = capsys.readouterr().err
    assert ended.value.code == 2
    assert all(words in error for words in ("no section is stats-padded", "startup, ", "--only")), error


def test_the_record_is_whole_after_nothing_is_put_in():
    record = RECORD.read_text()
    assert put_in_place(to_markdown([]), record).split("Medians")[0] == record.split("Medians")[0]
