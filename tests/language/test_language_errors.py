"""What a wide set of calls refuses or warns of, in Chinese: no sentence of English is left."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.language.reading import find_foreign_words
from normcli.norms.options import NAMES
from tests.language.test_language_answers import WORDS_OF_EVERY_LANGUAGE

WORDS = {*WORDS_OF_EVERY_LANGUAGE, *NAMES, "foo", "bnn", "id", "true", "false", "omit", "low", "high"}
TOPICS = {"formats", "layouts", "codes", "words", "dumps", "faults", "symptoms"}

LINES = [
    "bn --shape 2,3 --running-mean 0",
    "bn --shape 2,3 --ddof 3",
    "bn --shape 2,3 --eps -1",
    "gn --shape 2,4",
    "bn ln --shape 2,3",
    "check bn -i x.npy",
    "identify --actual x.npy",
    "ln --dim 2 --shape 2,4",
    "compare bn ln:axes --shape 2,3",
    "bn empty.csv",
    "bn .",
    "ln --data [[Infinity,1,1]]",
    "minmax --shape 3,2 --range 1,0",
    "explain bn --shape 2,3 --at 9,9",
    "restore robust --shape 3,2",
    "golden bn -o x.npy",
    "conventions bn foo",
    "bn --shape 2,3 --digits 0",
    "bn --shap 2,3",
    "bnn --shape 2,3",
    "bn --shape 2,3 --axes Q",
    "ln --data [[1,2],[3]]",
    "bn --shape 2,3 --dtype foo",
    "bn --shape 2,3 --like foo",
    "explain gn --groups 1 --shape 2,3 --at 0",
    "bn --shape 1,3",
    "bn --shape 2,3 --gamma none.npy",
    "ln --shape 2,3 --beta [[1,2]]",
    "bn --shape 2,3 --eval",
    "bn --shape 2,3 --eval --running-mean 0 --running-var -1",
    "bn --shape 2,3 --momentum 2",
    "ln --shape 2,3 --eval",
    "bn --shape 2,3 --print foo",
    "bn --shape 2,3 --axes N --keep C",
    "bn --shape 2,3 -o y.foo",
    "bn --shape 2,3 --mask [1,2,3]",
    "bn --data [1,NaN] --nan raise",
    "ln --data [[1,1,1]]",
    "ln --shape 2,3 --lengths 1,2",
    "explain bn --shape 2,3 --at 0 0",
    "draw --shape 2,3",
    "check -i x.npy --actual y.npy",
    "check bn -i x.npy --actual g4.npy",
    "identify -i x.npy --actual g4.npy",
    "ln --groups 2 --shape 2,4",
    "compare bn bn --shape 2,3",
    "compare bn:foo=1 ln --shape 2,3",
    "bn bad.json",
    "bn t.csv",
    "bn t.csv --columns q",
    "bn x.npy:key",
    "bn --shape 2,3 --low 5 --high 1",
    "lp --shape 2,3 --p nan",
    "robust --shape 3,2 --quantiles 90,10",
    "sn --shape 3,2 --iterations 2",
    "backward robust --shape 3,2",
    "backward ln --shape 3,2 --dy [1,2,3]",
    "explain bn --shape 2,3 --at n=0",
    "fit bn",
    "fit ln x.npy",
    "apply s.npz",
    "apply s.npz x.npy",
    "merge",
    "fold",
    "generate",
    "simulate batch-size --shape 8,2 --draws 1",
    "help foo",
    "bn --shape 2,3 --threads 0",
    "bn --shape 2,3 --affine-seed 1 --gamma 1",
]


@pytest.mark.all_quick
@pytest.mark.parametrize("line", LINES)
def test_what_is_refused_or_warned_of_has_no_words_of_english(line, normcli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(0).normal(size=(4, 3, 5))
    np.save("x.npy", x)
    np.save("y.npy", x + 1)
    np.save("g4.npy", np.ones(4))
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "t.csv").write_text("id,a,b\n1,2,3\n2,4,x\n")
    told = normcli(*line.split(), "--lang", "zh", stdin=b"a,b\n1,2\n").err
    assert set(find_foreign_words(told)) - WORDS - TOPICS == set()
    assert any("\u4e00" <= character <= "\u9fff" for character in told)
