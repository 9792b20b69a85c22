import io

import numpy as np
import pytest

from normcli.errors import DataError
from normcli.tensors.tables.delimited import read_delimited
from normcli.tensors.tables.table_options import TableOptions
from normcli.tensors.tables.text_columns import _CellsSeen, doubt_identifiers

BOTH = "--thousands , reads such numbers, --decimal , reads"


def read(text: str, **options):
    """Return the numbers of a text, and the note of how they were read."""
    return read_delimited(io.BytesIO(text.encode()), "x.csv", TableOptions(**options), ",")[0].read()


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("text", "options", "expected", "said"),
    [
        pytest.param('a\n"1,234"\n"2,000"\n"900"\n', {}, [1234, 2000, 900], "--thousands ,", id="commas"),
        pytest.param("a;b\n1,234,567;0\n1;2\n", {}, [1234567, 0, 1, 2], "--thousands ,", id="two commas"),
        pytest.param("a;b\n1,234;0\n2,345.5;2\n", {}, [1234, 0, 2345.5, 2], "--thousands ,", id="with a point"),
        pytest.param("a\n1'500\n-2’500\n", {}, [1500, -2500], '--thousands "\'"', id="apostrophes"),
        pytest.param("a\n1 500\n2\u00a0500\n", {}, [1500, 2500], "--thousands space", id="spaces"),
        pytest.param(
            "a;b\n1.500,5;0\n", {"decimal": ","}, [1500.5, 0], "--decimal , --thousands .", id="points"
        ),
        pytest.param('a\n"1,234"\n1\n', {"thousands": ","}, [1234, 1], None, id="asked for"),
        pytest.param('a\n"9,007,199,254,740,993"\n', {"thousands": ","}, [2**53 + 1], None, id="beyond 2^53"),
    ],
)
def test_separators_of_thousands(text, options, expected, said):
    values, note = read(text, **options)
    assert values.ravel().tolist() == expected
    assert note is None if said is None else said in note


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        pytest.param("a;b\n1,5;2\n", {}, "; --decimal , reads decimal commas$", id="decimal commas"),
        pytest.param("a;b\n1,234;2\n5,678;2\n", {}, f"; {BOTH}", id="either"),
        pytest.param('a,b\n"1,234",2\n5000,2\n', {}, BOTH, id="not everywhere"),
        pytest.param("a;b\n1.234,5;2\n5;2\n", {}, "--decimal , --thousands . reads such numbers$", id="both"),
        pytest.param('a,b\n"1,23",2\n5.5,2\n', {}, "is not a number; --exclude a leaves it out$", id="a point"),
        pytest.param(
            'a\n"12,34"\n', {"thousands": ","}, "; no chosen column holds numbers$", id="other groups"
        ),
        pytest.param('a\n"1,234"\n"x"\n', {"columns": "a"}, "line 2.*'1,234' .* no chosen column", id="a word"),
    ],
)
def test_only_what_reads_all_cells_is_advised(text, options, message):
    with pytest.raises(DataError, match=message):
        read(text, **options)


def test_text_in_later_rows_is_said_of_all_columns_at_once():
    with pytest.raises(
        DataError, match=r"line 3, column b: 'x' is not a number; --exclude b,c leaves them out$"
    ):
        read("a,b,c\n1,2,3.5\n5,x,6\n2,1,2\n4,2,y\n")


def test_of_columns_that_statistics_name_others_are_taken_and_none_left_out():
    with pytest.raises(DataError, match="'foo' is not a number; --columns y takes the others$"):
        read("g,x,y\na,foo,1\n", wanted=("x", "y"), takes_wanted=True)


def test_identifiers_are_left_out_of_what_is_advised():
    told = r"--exclude id,name,zip leaves them out \(id, zip look like identifiers\)"
    with pytest.raises(DataError, match=told):
        read("id,name,x,zip\n7,ann,1.5,00123\n3,bob,1.5,10000\n9,cy,2.5,10000\n")


def doubt(text: str, **options):
    """Return the note of columns of a text that look like identifiers."""
    table = read_delimited(io.BytesIO(text.encode()), "x.csv", TableOptions(**options), ",")[0]
    return doubt_identifiers(table.rows, table.chosen, table.read()[0])


TWENTY = "n,x\n" + "".join(f"{7 * i % 100},1\n" for i in range(20))


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("text", "named"),
    [
        pytest.param("user_id,x\n70,1\n30,1\n90,2\n", "user_id looks like an identifier", id="by its name"),
        pytest.param("n,x\n4,1\n5,1\n6,2\n", "n looks like an identifier", id="counting on"),
        pytest.param("n,x\n010,1\n5,1\n5,2\n", "n looks like an identifier", id="a leading zero"),
        pytest.param(TWENTY, "n looks like", id="twenty distinct"),
        pytest.param("n,x\n7,1\n3,1\n9,2\n", None, id="few distinct"),
        pytest.param("id,x\n7,1\n7,1\n9,2\n", None, id="not distinct"),
        pytest.param("id,x\n7.5,1\n8,1\n9,2\n", None, id="not whole"),
        pytest.param("id,x\nNA,1\n8,1\n9,2\n", None, id="missing"),
        pytest.param("4,1\n5,1\n6,2\n", None, id="without names"),
        pytest.param("id\n4\n5\n6\n", None, id="the only one"),
    ],
)
def test_what_looks_like_an_identifier(text, named):
    said = doubt(text)
    assert said is None if named is None else said.startswith(named)


def test_the_advice_keeps_what_is_excluded():
    assert doubt("a,b,id\n1,1,4\n1,1,5\n2,2,6\n", exclude="b").endswith("--exclude b,id leaves them out")


@pytest.mark.slow
def test_large_columns_are_told_from_their_first_rows():
    rows = np.arange(70_000)
    text = "n,x\n" + "".join(f"{row % 66_000},{row % 7}\n" for row in rows.tolist())
    assert doubt(text).startswith("n looks like")


def test_a_column_of_text_is_refused_without_reading_on(monkeypatch):
    """Some rows more are read, which say what else is text; a number with commas is looked at in every row."""
    looked_at = []
    add = _CellsSeen.add
    monkeypatch.setattr(_CellsSeen, "add", lambda self, *cell: looked_at.append(cell[1]) or add(self, *cell))
    with pytest.raises(DataError, match=r"line 2, column shop: 'A' is not a number; --exclude shop,day"):
        read("shop,price,day\n" + "A,1,mon\n" * 5000)
    assert looked_at[-1] == "line 1025"
    looked_at.clear()
    assert read('price\n"1,000"\n' + "900\n" * 2000)[0][0, 0] == 1000
    assert looked_at[-1] == "line 2002"
