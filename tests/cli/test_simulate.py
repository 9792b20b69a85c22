"""`normcli simulate`: tables, JSON, pictures, pages, and what is refused."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from normcli.language.reading import find_foreign_words
from tests.conftest import require_refusal

SMALL = ("batch-size", "--shape", "16,4,2,2", "--batches", "1,4", "--draws", "5")


def test_the_table_says_what_moves_and_why(normcli):
    ran = normcli("simulate", *SMALL)
    assert (ran.code, ran.err) == (0, "")
    table = ran.lines.index("bn · batch normalization: reduces N×H×W")
    assert [line.split()[0] for line in ran.lines[table + 3 : table + 5]] == ["1", "4"]
    assert max(map(len, ran.lines[: table + 6])) <= 80
    moved, still = (line for line in ran.lines if "reduced, so that" in line)
    assert re.match(
        r"bn: y of the sample moves by [\d.]+ in batches of 1 and by [\d.]+ in batches of 4: N", moved
    )
    assert still.startswith("ln, gn do not move, whatever the batch: N is not reduced")


def test_every_format_has_every_norm_and_size(normcli):
    found = normcli("simulate", *SMALL, "-f", "json").json
    assert {norm["norm"]: norm["moves"] for norm in found["norms"]} == {"bn": True, "ln": False, "gn": False}
    assert [one["size"] for one in found["norms"][0]["batches"]] == [1, 4]
    assert found["norms"][1]["batches"][0]["output"] == {"low": 0.0, "median": 0.0, "high": 0.0}
    assert len(normcli("simulate", *SMALL, "-f", "jsonl").lines) == 6
    rows = [line.split(",") for line in normcli("simulate", *SMALL, "-f", "csv").lines]
    assert len(rows) == 7
    assert float(rows[1][rows[0].index("output_median")]) == found["norms"][0]["batches"][0]["output"]["median"]


@pytest.mark.parametrize(
    "what", [SMALL, ("training", "--shape", "16,4,2,2", "--steps", "4", "--runs", "2", "--shift", "1")]
)
def test_the_picture_names_its_curves_in_letters_for_a_slide(what, normcli, tmp_path):
    assert normcli("simulate", *what, "-o", tmp_path / "x.svg").code == 0
    texts = [text for text in ET.parse(tmp_path / "x.svg").iter() if text.tag.endswith("}text")]
    names = {"bn", "ln, gn"} if what is SMALL else {"training", "evaluation"}
    assert names <= {text.text for text in texts}
    assert min(float(text.get("font-size")) for text in texts) >= 20


@pytest.mark.parametrize(
    "line",
    [
        "simulate training --shape 16,4,2,2 --steps 4 --runs 2 --momentum 0.2 --shift 1",
        "simulate training --shape 16,4,2,2 --steps 4 --runs 2 --momentum none",
        "simulate batch-size --shape 16,4,2,2 --batches 1,4 --draws 3",
        "draw bn --shape 2,3,4",
        "compare bn ln --shape 2,3,4",
    ],
)
def test_the_description_of_a_chinese_picture_is_chinese(line, normcli, tmp_path):
    assert normcli(*line.split(), "--lang", "zh", "-o", tmp_path / "x.svg").code == 0
    shown = [part.text for part in ET.parse(tmp_path / "x.svg").iter() if part.tag.endswith(("}desc", "}text"))]
    texts = "\n".join(filter(None, shown))
    assert set(find_foreign_words(texts)) <= {"training", "none"}  # values of options
    assert not re.search(r"mean [-\d]|var [-\d]", texts)


def test_the_page_has_the_simulation_below_a_batch(normcli, tmp_path):
    assert normcli("simulate", *SMALL, "-o", tmp_path / "x.html").code == 0
    text = (tmp_path / "x.html").read_text()
    assert "samples 0, 1, 2 of" in text
    assert 'id="further"' in text
    assert "do not move, whatever the batch" in text


def test_training_is_held_against_evaluation(normcli):
    line = "simulate training --shape 16,4,2,2 --steps 3 --runs 2 --momentum none -f {}"
    found, table, rows = (normcli(*line.format(name).split()) for name in ("json", "table", "csv"))
    assert [step["step"] for step in found.json["steps"]] == [1, 2, 3]
    assert found.json["rule"]["momentum"] is None
    assert "momentum none, the cumulative average" in table.out
    assert table.lines[-1].startswith("At step 3, y of the sample is off by")
    assert len(rows.lines) == 4


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("batch-size", "--steps", "3"), 2, "--steps is of normcli simulate training"),
        (("training", "--norms", "bn"), 2, "--norms is of normcli simulate batch-size"),
        (("training", "--norm", "ln"), 2, "ln keeps no running statistics"),
        (("batch-size", "--batches", "2,x"), 2, "'2,x' is no list such as 1,2,4"),
        (("batch-size", "--shape", "4,2", "--batches", "8"), 3, "batches of 8 take as many samples"),
        (("batch-size", "--shape", "8,3", "--batches", "2"), 2, "gn: "),
        (("training", "--momentum", "nan"), 2, "momentum nan is not from 0 to 1"),
        (("batch-size", "--scale", "inf"), 2, "scale inf is not a finite number"),
        (("training", "--steps", "5", "--since", "99"), 2, "since 99 is none of the 5 steps"),
    ],
)
def test_what_makes_no_sense_is_one_line(arguments, code, told, normcli):
    require_refusal(normcli("simulate", *arguments), code, told)


def test_batches_go_up_to_the_whole_population_where_it_is_smaller(normcli):
    ran = normcli("simulate", "batch-size", "--shape", "6,4", "--draws", "2", "-f", "json")
    assert [one["size"] for one in ran.json["norms"][0]["batches"]] == [1, 2, 4, 6]
    assert ran.err == "normcli: simulate: the largest batch is 6, all samples, not 128\n"


def test_values_that_are_nan_are_told_in_a_line(normcli, tmp_path):
    x = np.ones((8, 4, 2))
    x[3, 0, 0] = np.nan
    np.save(tmp_path / "x.npy", x)
    ran = normcli("simulate", "batch-size", "-i", tmp_path / "x.npy", "--batches", "4", "--draws", "2")
    assert ran.code == 0
    assert ran.err == "normcli: simulate: the input holds NaN or infinities, and so distances are NaN\n"


@pytest.mark.parametrize("words", ["batch-size --draws 1000000000", "training --runs 1000000000"])
def test_what_would_take_days_is_refused_at_once(words, normcli):
    ran = normcli("simulate", *words.split())
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.endswith("0,000,000 batches are drawn; at most 10,000,000 are\n")


@pytest.mark.parametrize("what", ["training", "batch-size --norms ln", "batch-size --norms ln --batches 1"])
def test_a_tensor_of_no_axes_holds_no_samples(what, normcli):
    ran = normcli("simulate", *what.split(), "--data", "1.5")
    assert (ran.code, ran.err) == (2, "normcli: a tensor of 0 axes holds no samples\n")


def test_quartiles_have_as_many_digits_as_the_median(normcli):
    found = normcli("simulate", *SMALL, "-f", "json").json["norms"][0]["batches"][1]["output"]
    shown = "{median:.3g} ({low:.3g}–{high:.3g})".format(**found)
    assert any(line.endswith(shown) for line in normcli("simulate", *SMALL).lines)
