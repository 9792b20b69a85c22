"""What the bench does with its measurements; it is run by itself."""

from __future__ import annotations

import pytest

from tests.bench.__main__ import RECORD, main, put_in_place, to_markdown
from tests.bench.pairs import Row, Table


def measure(title: str, *cells: str) -> Table:
    return Table(title, ["work", "ratio"], [Row(cells, ok=True)])


def test_a_section_is_recorded_in_its_place():
    old = to_markdown([measure("A", "a", "1"), measure("B", "b", "2")])
    assert put_in_place(to_markdown([measure("A", "a", "3")]), old) == to_markdown(
        [measure("A", "a", "3"), measure("B", "b", "2")]
    )
    assert put_in_place(to_markdown([measure("C", "c", "3")]), old) == to_markdown(
        [measure("A", "a", "1"), measure("B", "b", "2"), measure("C", "c", "3")]
    )


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        pytest.param(
            ["judge", "stats-padded"], ["no section is stats-padded", "startup, ", "--only"], id="section"
        ),
        pytest.param(
            ["judge", "--only", "stat-padded"], ["of stat-padded", "no norm", "stats-padded"], id="plants"
        ),
    ],
)
def test_words_that_are_not_known_are_refused_with_the_known_ones(asked, told, monkeypatch, capsys):
    if "--only" in asked:
        pytest.importorskip("torch")  # of what the frameworks make
    monkeypatch.setattr("sys.argv", ["bench", *asked])
    with pytest.raises(SystemExit) as ended:
        main()
    error = capsys.readouterr().err
    assert ended.value.code == 2
    assert all(words in error for words in told), error


def test_the_record_is_whole_after_nothing_is_put_in():
    assert (
        put_in_place(to_markdown([]), RECORD.read_text()).split("Medians")[0]
        == RECORD.read_text().split("Medians")[0]
    )
