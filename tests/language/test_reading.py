import pytest

from normcli.language.reading import Reader

READER = Reader(
    {
        "mean": "均值",
        "input": "输入",
        "{0} group": "{0} 组",
        "{0} groups": "{0} 组",
        "{0} of {1} differ": "{1}中有 {0} 个不同",
        "The {0} of {1}.": "{1}的{0}。",
        "Fields: {0}.": "字段：{0!}。",
        "the largest": "最大的",
    }
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("mean", "均值", id="constant"),
        pytest.param("12 groups", "12 组", id="a value"),
        pytest.param("3 of 12 groups differ", "12 组中有 3 个不同", id="a message as a value"),
        pytest.param("Fields: mean, input.", "字段：mean, input。", id="a value that stays"),
        pytest.param("The mean of x.npy.", "x.npy 的均值。", id="a name"),
        pytest.param("✓ 3 groups", "✓ 3 组", id="marked"),
        pytest.param("2. 3 groups", "2. 3 组", id="numbered"),
        pytest.param("3 groups (mean)", "3 组（均值）", id="in brackets"),
        pytest.param("mean, 3 groups and input", "均值、3 组 和 输入".replace(" 和 ", "和"), id="joined"),
        pytest.param("Input: 3 groups", "输入：3 组", id="begins a sentence"),
        pytest.param("(x − mean) / √(var + eps)", "(x − mean) / √(var + eps)", id="formula"),
        pytest.param("n=0 c=1   --eps 1e-05", "n=0 c=1   --eps 1e-05", id="numbers and names"),
    ],
)
def test_a_text_is_said_in_the_other_language(text, said):
    assert READER.translate(text) == said


@pytest.mark.parametrize(
    "text", ["mean of nothing known", "3 sheep", "The mean of the sheep.", "mean, and what else"]
)
def test_a_text_of_which_a_part_is_unknown_stays_whole(text):
    assert READER.translate(text) == text


def test_names_are_not_translated_within_a_text():
    assert READER.translate("The mean of input.", frozenset({"input"})) == "input 的均值。"
