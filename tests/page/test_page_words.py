import json
import re

import pytest

from normcli.language import LANGUAGES, choose_language

CONTENT = re.compile(r'id="data">(.*?)</script>', re.DOTALL)


def read_page(text):
    script = text.rpartition("<script>")[2]
    return json.loads(CONTENT.search(text)[1]), set(re.findall(r'\bsay\("((?:[^"\\]|\\.)*)"', script))


@pytest.fixture(scope="module")
def pages():
    import contextlib
    import io

    from normcli.cli.run import run

    made = {}
    for language in LANGUAGES:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            assert run(["bn", "--shape", "2,3,2", "--affine-seed", "1", "-f", "html", "--lang", language]) == 0
        made[language] = out.getvalue()
    choose_language("en")
    return made


def test_every_message_of_the_script_is_in_the_words_of_the_page(pages):
    content, said = read_page(pages["zh"])
    assert said - set(content["words"]) == set()
    assert content["words"]["minus mean"] == "减均值"


def test_a_page_in_english_has_no_words_of_another_language(pages):
    content, _ = read_page(pages["en"])
    assert content["words"] == {}
    assert '<html lang="en">' in pages["en"]
    assert '<html lang="zh">' in pages["zh"]
    assert "[[" not in CONTENT.sub("", pages["zh"]).partition("<script>")[0]


def test_its_numbers_are_the_same(pages):
    english, chinese = (read_page(pages[language])[0]["results"][0] for language in LANGUAGES)
    told = ("title", "facts")
    assert {key: value for key, value in english.items() if key not in told} == {
        key: value for key, value in chinese.items() if key not in told
    }
