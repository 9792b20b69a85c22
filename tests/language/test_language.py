import pytest

from normcli import language
from normcli.language import choose_language, is_translating, keep_names, speak_english, translate


@pytest.fixture(autouse=True)
def _english_again():
    yield
    choose_language("en")


@pytest.mark.parametrize(
    ("environment", "chosen"),
    [
        pytest.param({"LANG": "zh_CN.UTF-8"}, True, id="LANG"),
        pytest.param({"LC_MESSAGES": "zh_CN.UTF-8", "LANG": "en_US.UTF-8"}, True, id="LC_MESSAGES before LANG"),
        pytest.param({"LC_ALL": "C", "LC_MESSAGES": "zh_CN"}, False, id="LC_ALL before LC_MESSAGES"),
        pytest.param({"LANGUAGE": "fr:zh", "LC_ALL": "en_US"}, True, id="LANGUAGE first, in its order"),
        pytest.param({"LANGUAGE": "", "LANG": "zh_TW"}, True, id="what is empty says nothing"),
        pytest.param({"LANG": "ja_JP.UTF-8"}, False, id="no catalogue"),
    ],
)
def test_the_environment_is_read_as_gettext_reads_it(environment, chosen):
    choose_language(None, environment)
    assert is_translating() == chosen
    assert translate("formula") == ("公式" if chosen else "formula")


def test_what_is_asked_for_comes_before_the_environment():
    choose_language("en", {"LANG": "zh_CN"})
    assert translate("formula") == "formula"


def test_a_readers_own_names_stay():
    choose_language("zh")
    keep_names(["mean"])
    assert (translate("mean"), translate("var")) == ("mean", "方差")
    choose_language("zh")
    assert translate("mean") == "均值"


def test_a_part_may_be_in_english():
    choose_language("zh")
    with speak_english():
        assert translate("formula") == "formula"
    assert translate("formula") == "公式"


def test_english_reads_no_catalogue(monkeypatch):
    choose_language("en")
    monkeypatch.setattr(language, "_load", None)
    assert translate("formula") == "formula"
