"""Every verb's answer in Chinese."""

import json
import tomllib

import numpy as np
import pytest
from rich.cells import cell_len

from normcli import normalize
from normcli.cli.commands import VERBS
from normcli.documents.document import Facts, Table, TableRow, View
from normcli.language import choose_language
from normcli.language.reading import find_foreign_words, is_formula
from normcli.norms.conventions import CONVENTIONS
from normcli.norms.table import BY_ANY_NAME
from normcli.printable import WideWrapper, gather_wide, spread_wide
from normcli.writers import FIELDS
from tests.conftest import ROOT, render

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]

ANSWERS = [
    "bn --shape 2,3,2,2",
    "gn --groups 2 --shape 2,4,2 --affine-seed 1 --show xhat,y,check",
    "sn --shape 3,4 --u [1,2,3] --iterations 2",
    "explain sn --shape 3,4 --at 0,1 --backward --u [1,2,3]",
    "explain bn --shape 2,3,2,2 --at 0,1,0,1",
    "explain ln --shape 2,4 --at 0,1 --affine-seed 3 --backward",
    "compare bn ln gn:groups=2 --shape 2,4,2,2",
    "compare ln --shape 2,4 --residual [[1,2,3,4],[4,3,2,0]]",
    "check bn -i x.npy --actual y.npy",
    "identify -i x.npy --actual y.npy",
    "identify -i w.npy --actual t.npy --u [1,2]",
    "check sn -i w.npy --actual t.npy --u [1,2] --iterations 3",
    "restore ln --shape 2,4,3",
    "doctor ln --shape 2,8 --dtype float16",
    "draw bn --shape 2,3,2,2",
    "draw lrn --shape 2,8,3,3",
    "draw ln --shape 2,3,2 --backward",
    "audit runs",
    "backward bn --shape 2,3,2,2",
    "simulate batch-size --draws 3 --batches 1,2",
    "simulate training --shape 8,2,2 --batch 4 --steps 2 --runs 2 --shift 1",
    "fit bn x.npy",
    "norms",
    "conventions gn",
    "help words",
    "--help",
    "bn --help",
    "fold --help",
]

WORDS_OF_EVERY_LANGUAGE = {
    # what one types, and what stands for it
    *VERBS, *BY_ANY_NAME, *FIELDS, *EXTRAS, *(convention.framework for convention in CONVENTIONS), "onnxruntime", "median", "channels",
    "normcli", "normalized", "help", "OPTIONS", "TOPIC", "ARGS", "LETTERS", "explain", "compare", "draw", "fit", "merge", "apply", "invert",
    "identify", "check", "restore", "input", "stats", "numpy", "flax-linen", "comma", "semicolon", "tab", "bar", "null", "none",
    # of the formula uᵀXv; names of a statistic and of the only group, which files hold as they are
    "Xv", "sigma", "all", "dB",
    # authors and names of programs and classes
    "Ioffe", "Szegedy", "Ba", "Kiros", "Hinton", "Ulyanov", "Vedaldi", "Lempitsky", "Wu", "He", "Zhang", "Sennrich", "Salimans",
    "Kingma", "Qiao", "Miyato", "Krizhevsky", "et", "al", "Welford", "StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler",
    "LLaMA", "Markdown", "AlexNet", "GoogLeNet", "Caffe", "Python", "Lines", "pickle", "pandas", "Ctrl", "shell", "Runtime", "MeanVarianceNormalization",
    "Sequential", "Equinox", "state", "dict", "out", "deprecated", "eval", "exact", "after", "before", "fuse", "long", "rank", "auto", "guessed", "pass", "propagate", "new", "outside", "inside", "rounded", "table", "randint", "token", "channel", "floor",
}  # fmt: skip


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(1).normal(size=(4, 3, 5))
    y = (x - x.mean((0, 2), keepdims=True)) / np.sqrt(x.var((0, 2), keepdims=True) + 1e-5)
    y[0, 1, 2] += 1
    np.save("x.npy", x)
    np.save("y.npy", y)
    w = np.array([[3.0, 1.0, 0.5], [4.0, 5.0, 2.0]])
    np.save("w.npy", w)
    (tmp_path / "runs").mkdir()
    np.save("runs/a.input.npy", x)
    np.save("runs/a.output.npy", y)
    np.save("t.npy", normalize(w, "sn", u=[1.0, 2.0], iterations=2).normalized)


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("line", ANSWERS)
def test_an_answer_has_no_words_of_english(line, normcli):
    printed = normcli(*line.split(), "--lang", "zh").out
    assert any("\u4e00" <= character <= "\u9fff" for character in printed)
    words = {
        word
        for line in printed.splitlines()
        if "normcli " not in line and "  --" not in line
        for text in line.split("   ")
        if not is_formula(text.strip())
        for word in find_foreign_words(text)
    }
    assert words - WORDS_OF_EVERY_LANGUAGE == set()


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    "line", ["bn --shape 2,3", "check bn -i x.npy --actual y.npy", "explain ln --shape 2,3 --at 0,1"]
)
def test_json_is_the_same_in_every_language(line, normcli):
    english, chinese = (normcli(*line.split(), "-f", "json", "--lang", language) for language in ("en", "zh"))
    assert english.raw == chinese.raw
    assert json.loads(english.raw)


def test_columns_of_a_file_keep_their_names(normcli):
    asked = ("zscore", "-i", "-", "--lang", "zh", "--show", "stats")
    printed = normcli(*asked, stdin=b"mean,group\n1,2\n3,5\n").out
    assert "c=0 mean" in printed
    assert "c=1 group" in printed


class _Document:
    def __init__(self, *sections):
        self._sections = sections

    def sections(self, view):
        return iter(self._sections)


@pytest.fixture
def _in_chinese():
    choose_language("zh")
    yield
    choose_language("en")


def list_lines(section, view):
    """Return the lines of a document of one section."""
    return render(_Document(section), view).splitlines()


@pytest.mark.usefixtures("_in_chinese")
def test_columns_are_aligned_by_the_width_of_characters():
    rows = [TableRow(("yes", "8", "4.75")), TableRow(("均值", "12", "1"))]
    lines = list_lines(Table(None, ("group", "count", "mean"), (False, True, True), rows), View())
    assert {cell_len(line) for line in lines} == {cell_len(lines[0])}


@pytest.mark.usefixtures("_in_chinese")
def test_long_sentences_are_broken_between_wide_characters():
    fact = "no two of these are equal on this tensor"
    lines = list_lines(Facts("group", (("input", (fact, fact, fact)),)), View(width=30))
    assert max(map(cell_len, lines)) <= 30
    assert len(lines) > 4
    assert not any(line.lstrip().startswith(("，", "。")) for line in lines)


@pytest.mark.usefixtures("_in_chinese")
@pytest.mark.parametrize("width", range(8, 20))
def test_no_line_ends_in_an_opening_mark_or_begins_with_a_closing_one(width):
    text = spread_wide("统计量（ONNX Runtime 的）和图 1《Group Normalization》，见「（归约）的轴」。")
    lines = [gather_wide(line).strip() for line in WideWrapper(width).wrap(text)]
    assert not [line for line in lines if line[-1] in "（《「" or line[0] in "）》」，。"]


def test_how_every_verb_is_called_is_in_chinese(normcli):
    for verb in VERBS:
        usage, *others = normcli(verb, "--help", "--lang", "zh").out.splitlines()
        assert usage.startswith(f"用法：normcli {verb}")
        assert "OPTIONS" not in usage
        assert not [line for line in others if line.endswith(":")]
