"""Tables on the command line: columns keep their names, from reading to every output."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import require_refusal

P = "x,y\n1,100\n3,102\n"
Q = "y,x\n200,1\n202,3\n"
PEOPLE = 'name,height,"weight, kg",note\nann, 160 ,50.5,"a ""b"""\n"bob\nlee",NA,80,\ncid,180,95.5,-\n'


@pytest.fixture
def folder(here):
    files = {"p.csv": P, "q.csv": Q, "people.csv": PEOPLE, "bare.csv": "1,100\n3,102\n", "z.csv": "x,z\n1,2\n"}
    for name, text in files.items():
        (here / name).write_bytes(text.encode())
    np.save("x.npy", [[1.0, 100.0], [3.0, 102.0]])
    return here


pytestmark = pytest.mark.usefixtures("folder")


def read_lines(ran):
    assert ran.code == 0, ran.err
    return ran.lines


class TestFittedByName:
    def test_statistics_are_applied_by_name_and_the_file_keeps_its_order(self, normcli):
        normcli("fit", "zscore", "p.csv", "-o", "p.npz")
        normcli("apply", "p.npz", "q.csv", "-o", "z.csv")
        assert Path("z.csv").read_text() == "y,x\n99.0,-1.0\n101.0,1.0\n"
        assert read_lines(normcli("invert", "p.npz", "z.csv", "-o", "-")) == ["y,x", "200.0,1.0", "202.0,3.0"]

    @pytest.mark.parametrize(
        "line", ["fit zscore p.csv z.csv", "apply p.npz z.csv -o out.csv", "merge p.npz z.npz"]
    )
    def test_other_names_are_an_error_that_lists_them(self, line, normcli):
        normcli("fit", "zscore", "p.csv", "-o", "p.npz")
        normcli("fit", "zscore", "z.csv", "-o", "z.npz")
        ran = normcli(*line.split())
        assert (ran.code, ran.raw) == (3, b"")
        assert "x, y" in ran.err
        assert "z" in ran.err

    @pytest.mark.parametrize("name", ["bare.csv", "x.npy"])
    def test_what_has_no_names_is_taken_with_a_note(self, name, normcli):
        ran = normcli("fit", "zscore", "p.csv", name, "--print", "mean")
        assert ran.lines == ["2.0", "101.0"]
        assert ran.err == f"normcli: {name}: its columns have no names: they are taken to be x, y\n"

    def test_merging_what_has_no_names_is_told_of(self, normcli):
        normcli("fit", "zscore", "p.csv", "-o", "p.npz")
        normcli("fit", "zscore", "bare.csv", "-o", "bare.npz")
        for order in (("p.npz", "bare.npz"), ("bare.npz", "p.npz")):
            ran = normcli("merge", *order, "-f", "json")
            assert "one of them has no names" in ran.err
            assert ran.json["columns"] == ["x", "y"]

    def test_a_file_that_is_given_twice_is_told_of(self, normcli):
        ran = normcli("fit", "zscore", "p.csv", "p.csv", "--print", "count")
        assert ran.err == "normcli: p.csv: it is given 2 times, and counts as often\n"
        assert ran.lines == ["4", "4"]


class TestNames:
    def test_groups_warnings_and_json_have_them(self, normcli):
        Path("c.csv").write_text("flat,steep\n1,2\n1,5\n")
        ran = normcli("zscore", "-i", "c.csv")
        assert "c=0 flat" in ran.out
        assert "flat" in ran.err
        assert normcli("zscore", "-i", "c.csv", "-f", "json").json["columns"] == ["flat", "steep"]
        lines = read_lines(normcli("zscore", "-i", "c.csv", "-f", "jsonl"))
        assert [json.loads(line)["column"] for line in lines] == ["flat", "steep"]
        ran = normcli("fit", "zscore", "c.csv")
        assert "c=1 steep" in ran.out
        assert "flat" in ran.err

    @pytest.mark.all_quick
    @pytest.mark.parametrize("framework", ["sklearn", "torchvision", "keras", "json"])
    def test_emitted_code_has_them(self, framework, normcli):
        out = normcli("fit", "zscore", "p.csv", "--emit", framework).out
        assert "x" in out.split("mean")[-1]
        assert "columns" in out or "feature_names_in_ = np.array(['x', 'y'], dtype=object)" in out


TABLES = {
    "csv": P,
    "tsv": P.replace(",", "\t"),
    "json": '[{"x": 1, "y": 100}, {"x": 3, "y": 102}]',
    "jsonl": '{"x": 1, "y": 100}\n{"x": 3, "y": 102}\n',
}


class TestFilters:
    @pytest.mark.parametrize("target", TABLES)
    @pytest.mark.parametrize("source", TABLES)
    def test_from_every_format_to_every_other(self, source, target, normcli):
        ran = normcli("zscore", "-i", "-", "-o", "-", "-f", target, stdin=TABLES[source].encode())
        assert ran.code == 0, ran.err
        again = normcli("zscore", "-i", "-", "-o", "-", "-f", "json", stdin=ran.raw)
        assert again.json == [{"x": -1.0, "y": -1.0}, {"x": 1.0, "y": 1.0}]

    @pytest.mark.all_quick
    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("zscore -i p.csv -o - -f table", "-o - writes the tensor: --format npy, csv, tsv, json"),
            ("zscore -i p.csv -f npy", "--format npy is of tensors: -o - writes one"),
            ("bn --shape 2,3,4 -o - -f csv", "it holds rows of columns"),
            ('zscore -i p.csv --columns "x', "is no list of names"),
            ("bn --shape 2,3,4 -o y.tsv", ".npy, .npz, .json, .jsonl, .safetensors hold it"),
        ],
    )
    def test_what_is_refused(self, line, message, normcli):
        require_refusal(normcli(*line.split()), 2, message)

    @pytest.mark.all_quick
    @pytest.mark.parametrize(
        ("text", "options", "printed"),
        [
            ("x,y\n1,NA\n3,4\n,6\n", "--nan omit -f json", '[\n{"x": -1.0, "y": null},'),
            (
                "n,x,y\na,1,NA\nb,3,4\nc,,6\n",
                "--exclude n --nan omit -f csv",
                "n,x,y\na,-1.0,NA\nb,1.0,-1.0\nc,,1.0\n",
            ),
            ("ann,1\nbob,3\n", "--exclude 0 -f json", '[\n{"0": "ann", "1": -1.0},'),
            ('a,b\n"1,5",x\n"2,5",y\n', "--decimal , --columns a -f csv", 'a,b\n"-1,0",x\n"1,0",y\n'),
        ],
        ids=["missing in JSON", "missing", "without names", "commas"],
    )
    def test_cells_are_written_as_the_format_has_them(self, text, options, printed, normcli):
        ran = normcli("zscore", "-i", "-", *options.split(), "-o", "-", stdin=text.encode())
        assert (ran.code, ran.out[: len(printed)]) == (0, printed)

    def test_columns_that_a_format_cannot_hold_are_told_of(self, normcli):
        asked = ("zscore", "-i", "people.csv", "--columns", "2", "-o", "y.npy")
        assert normcli(*asked, "-q").err == ""
        assert (
            "people.csv: npy holds numbers alone, without the columns name, height, note" in normcli(*asked).err
        )
        assert np.load("y.npy").shape == (3, 1)

    def test_nothing_that_no_terminal_shows_goes_to_one(self, normcli, monkeypatch):
        monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
        for line in ("bn --shape 2,3 -o -", "zscore -i p.csv -o - -f npy"):
            require_refusal(
                normcli(*line.split()), 2, "no terminal shows; --format csv, tsv, json, jsonl are text"
            )
        assert normcli("zscore", "-i", "p.csv", "-o", "-").code == 0

    def test_generate_and_apply_are_filters_too(self, normcli):
        generate = ("generate", "--shape", "2,3")
        assert normcli(*generate, "-f", "csv").lines == ["6,3,7", "4,6,9"]
        assert normcli(*generate, "-o", "-", "-f", "jsonl").lines == ["[6, 3, 7]", "[4, 6, 9]"]
        assert normcli(*generate).lines == ["[[6, 3, 7], [4, 6, 9]]"]


class TestParametersByName:
    @pytest.mark.parametrize(("name", "text"), [("g.csv", "y,x\n10,1\n"), ("g.json", '[{"y": 10, "x": 1}]')])
    @pytest.mark.parametrize(
        ("option", "told"),
        [("--gamma", ["x,y", "-1.0,-10.0", "1.0,10.0"]), ("--beta", ["x,y", "0.0,9.0", "2.0,11.0"])],
    )
    def test_gamma_and_beta_of_a_table_are_taken_by_name(self, option, told, name, text, normcli):
        Path(name).write_text(text)
        assert normcli("bn", "-i", "p.csv", option, name, "--eps", "0", "-o", "-", "-f", "csv").lines == told

    def test_a_single_column_of_another_name_is_taken_by_position(self, normcli):
        Path("g.csv").write_text("gamma\n1\n10\n")
        ran = normcli("bn", "-i", "p.csv", "--gamma", "g.csv", "--eps", "0", "-o", "-", "-f", "csv")
        assert ran.lines == ["x,y", "-1.0,-10.0", "1.0,10.0"]

    def test_some_other_names_are_an_error(self, normcli):
        Path("g.csv").write_text("x,z\n1,2\n")
        require_refusal(
            normcli("bn", "-i", "p.csv", "--gamma", "g.csv"),
            3,
            "--gamma: g.csv has other columns than x, y: there is no y; there is also z",
        )


class TestSeveralFiles:
    def test_a_file_that_does_not_fit_is_found_before_any_is_written(self, normcli):
        normcli("fit", "zscore", "p.csv", "-o", "p.npz")
        Path("in").mkdir()
        Path("in/a.csv").write_text(P)
        Path("in/b.csv").write_text("x,z\n1,2\n")
        require_refusal(
            normcli("apply", "p.npz", "in/a.csv", "in/b.csv", "-o", "in/"),
            3,
            "in/b.csv has other columns than x, y: there is no y; --columns x takes that alone",
        )
        assert Path("in/a.csv").read_text() == P

    def test_statistics_without_names_are_told_of(self, normcli):
        normcli("fit", "zscore", "bare.csv", "-o", "s.npz")
        assert "the statistics name no columns" in normcli("apply", "s.npz", "q.csv", "-o", "y.csv").err


class TestDoubts:
    def test_a_first_row_of_text_and_numbers_is_told_of(self, normcli):
        Path("w.csv").write_text("country,2019,2020\nDE,1.5,2\nFR,3,5\n")
        ran = normcli("fit", "zscore", "w.csv", "--columns", "1,2", "--print", "mean")
        assert ran.err == (
            "normcli: w.csv: its first row has text and numbers, and is taken for data: --header yes takes it for names\n"
        )
        ran = normcli("fit", "zscore", "w.csv", "--columns", "2019,2020", "--header", "yes", "--print", "mean")
        assert (ran.lines, ran.err) == (["2.25", "3.5"], "")
        assert normcli("fit", "zscore", "w.csv", "--columns", "1,2", "--header", "no", "-q").err == ""
        ran = normcli("zscore", "-i", "w.csv", "--columns", "2019,2020", "--header", "yes", "-o", "z.csv")
        assert "--header yes reads what is written" in ran.err

    @pytest.mark.parametrize(
        ("source", "option"),
        [("--shape 2,3", "--columns 0"), ("-i x.npy", "--columns 0"), ("-i x.npy", "--delimiter ;"),
         ("--data [[1,2]]", "--exclude 0"), ("-i r.json", "--header yes"), ("-i r.json", "--decimal ,")],
    )  # fmt: skip
    def test_what_is_of_tables_is_refused_elsewhere(self, source, option, normcli):
        Path("r.json").write_text('[{"x": 1}, {"x": 2}]')
        require_refusal(normcli("zscore", *source.split(), *option.split()), 2, option.split()[0])

    def test_columns_are_taken_in_the_order_that_is_asked_for(self, normcli):
        assert normcli("zscore", "-i", "p.csv", "--columns", "y,x", "--print", "mean").lines == ["101.0", "2.0"]
        assert normcli("zscore", "-i", "p.csv", "--columns", "y,x", "-o", "-", "-f", "csv").lines[0] == "x,y"


@pytest.mark.parametrize("name", ["y.npy", "y.csv", "bare.csv"])
def test_what_is_checked_need_not_have_the_columns_that_are_left_out(name, normcli):
    Path("in.csv").write_text("n,x,y\na,-7,102\nb,-1,114\nc,1,86\nd,7,98\n")
    np.save("y.npy", [[-1.4, 0.2], [-0.2, 1.4], [0.2, -1.4], [1.4, -0.2]])
    Path("y.csv").write_text("y,x\n0.2,-1.4\n1.4,-0.2\n-1.4,0.2\n-0.2,1.4\n")
    Path("bare.csv").write_text("-1.4,0.2\n-0.2,1.4\n0.2,-1.4\n1.4,-0.2\n")
    for options in (("--exclude", "n"), ("--columns", "x,y")):
        assert normcli("check", "zscore", "-i", "in.csv", *options, "--actual", name).code == 0
        assert normcli("identify", "-i", "in.csv", *options, "--actual", name, "-f", "json").code == 0


class TestStatesByName:
    def test_batches_enter_by_name(self, normcli):
        normcli(*["bn", "-i", "p.csv", "-i", "q.csv", "--momentum", "none", "--state", "s.npz", "-q"])
        with np.load("s.npz") as state:
            assert state["columns"].tolist() == ["x", "y"]
            np.testing.assert_array_equal(state["mean"], [2, 151])

    def test_they_are_evaluated_by_name(self, normcli):
        trained = "bn -i p.csv --momentum 1 --running-ddof 0 --eps 0 --state s.npz -q"
        assert normcli(*trained.split()).code == 0
        ran = normcli("bn", "-i", "q.csv", "--eval", "--state", "s.npz", "-o", "-", "-f", "csv")
        assert ran.lines == ["y,x", "99.0,-1.0", "101.0,1.0"]

    @pytest.mark.parametrize("options", [(), ("--eval",)], ids=["training", "evaluation"])
    def test_other_names_are_refused(self, options, normcli):
        normcli("bn", "-i", "p.csv", "--state", "s.npz", "-q")
        before = Path("s.npz").read_bytes()
        require_refusal(
            normcli("bn", "-i", "z.csv", "--state", "s.npz", *options), 3, "z.csv has other columns than x, y"
        )
        assert Path("s.npz").read_bytes() == before


class TestStream:
    """`-o -` keeps the format of the table that its tensor is columns of."""

    @pytest.fixture(autouse=True)
    def _folder(self, here):
        Path("t.csv").write_text("n,x,y\na,1,2\nb,3,4\n")

    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("t.csv", "n,x,y\na,{},2\nb,{},4\n"),
            ("t.tsv", "n\tx\ty\na\t{}\t2\nb\t{}\t4\n"),
            ("s.csv", "n;x;y\na;{};2\nb;{};4\n"),
            ("t.jsonl", '{{"n": "a", "x": {}, "y": 2}}\n{{"n": "b", "x": {}, "y": 4}}\n'),
        ],
    )
    def test_of_a_table_it_is_a_table(self, name, text, normcli):
        Path(name).write_text(text.format(1, 3))
        assert normcli("zscore", "-i", name, "--columns", "x", "-o", "-").out == text.format(-1.0, 1.0)

    def test_parquet_stays_parquet(self, normcli):
        pytest.importorskip("pyarrow")
        normcli("zscore", "-i", "t.csv", "--columns", "x", "-o", "t.parquet")
        assert normcli("zscore", "-i", "t.parquet", "--columns", "x", "-o", "-").raw.startswith(b"PAR1")


@pytest.mark.parametrize(
    ("given", "other"), [(("--thousands", "."), ","), (("--decimal", ",", "--thousands", ","), ".")]
)
def test_a_separator_of_thousands_is_no_decimal_point(normcli, here, given, other):
    Path("t.csv").write_text("a;b\n1.234;5\n4.567;4\n")
    require_refusal(
        normcli("zscore", "-i", "t.csv", *given, "--print", "mean"),
        2,
        f"is the decimal point as well; give --decimal {other} beside it",
    )


def test_norms_name_the_presets_with_what_they_are_asked_by_and_their_source(normcli):
    printed = normcli("norms").out
    presets = json.loads(normcli("norms", "-f", "json").out)["presets"]
    assert (len(presets), presets[0]["command"]) == (5, "normcli in --like revin")
    for preset in presets:
        assert preset["preset"] in printed
        assert preset["source"] in printed
