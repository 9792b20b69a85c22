"""What the bench does with its measurements; it is run by itself."""

from __future__ import annotations

from tests.bench.__main__ import RECORD, put_in_place, to_markdown
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


def test_the_record_is_whole_after_nothing_is_put_in():
    assert (
        put_in_place(to_markdown([]), RECORD.read_text()).split("Medians")[0]
        == RECORD.read_text().split("Medians")[0]
    )
