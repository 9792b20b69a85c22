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
        "{0} is empty": "{0!} 为空",
        "standard input": "标准输入",
        "the largest": "最大的",
        "in": "in",
        "in {0}": "在 {0} 中",
        "{0} = {1}": "{0} = {1}",
        "y is {0}": "y 为 {0}",
        "{0} stays": "{0} 不变",
        "{0} along {1}": "沿 {1#} 有 {0#} 个",
        "number {0}": "第 {0} 个",
        "Also called {0}.": "也称为 {0&}。",
    }
)


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("3 of 12 groups differ", "12 组中有 3 个不同", id="a message as a value"),
        pytest.param("The mean of x.npy.", "x.npy 的均值。", id="a name"),
        pytest.param("3 groups (mean)", "3 组（均值）", id="in brackets"),
        pytest.param("standard input is empty", "标准输入为空", id="no name"),
        pytest.param("(x − mean) / √(var + eps)", "(x − mean) / √(var + eps)", id="formula"),
        pytest.param("in = bn", "in = bn", id="a norm that is called as a preposition"),
        pytest.param("y is -2.5. The largest.", "y 为 -2.5。最大的。", id="a stop behind a number"),
        pytest.param("1. The largest. Input.", "1. 最大的。输入。", id="the number of a step, and sentences"),
        pytest.param("bn, ln:axes=HW", "bn、ln:axes=HW", id="names"),
        pytest.param("float32, (2, 3)", "float32、(2, 3)", id="a shape keeps its commas"),
        pytest.param("bn, in stays", "bn、in 不变", id="names, one of which is a word, as a value"),
        pytest.param("The mean of h; w.", "h；w 的均值。", id="a semicolon in a value"),
        pytest.param("Also called norm, batch-norm.", "也称为 norm、batch-norm。", id="names that stay"),
        pytest.param("2 along N, number 0", "沿 N 有 2 个、第 0 个", id="a value does not reach over a comma"),
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
