"""Tables whose rows somebody normalized group by group: whether that is right, and what was done instead."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from normcli import check
from normcli.errors import DataError, UsageError
from tests.conftest import require_refusal

ASKED = ("check", "zscore", "-i", "x.csv", "--actual", "y.csv", "--by", "prompt", "-q")


class Rewards:
    """A table of rewards of 6 prompts, and what somebody makes of each group; in two columns, of 8 rows each."""

    def __init__(self, counts=(8,) * 6, columns=2):
        rng = np.random.default_rng(3)
        self.prompts = rng.permutation(np.repeat(np.arange(len(counts)), counts))
        self.x = rng.standard_normal((len(self.prompts), columns)).round(3)

    def make(self, call):
        y = np.empty(self.x.shape)
        for prompt in np.unique(self.prompts):
            y[self.prompts == prompt] = call(self.x[self.prompts == prompt])
        return y

    def write(self, call, name="y.csv"):
        y = self.make(call)
        rows = zip(self.prompts, y.tolist(), strict=True)
        lines = (f"{prompt},{a!r},{b!r}\n" for prompt, (a, b) in rows)
        Path(name).write_text("prompt,reward,length\n" + "".join(lines))
        return y

    def tell(self, y, **options):
        return check(y, self.x, "zscore", by=self.prompts, **options).diagnosis


@pytest.fixture
def rewards(here):
    made = Rewards()
    made.write(lambda x: x, "x.csv")
    return made


def score(x, ddof=0, eps=0.0):
    return (x - x.mean(0)) / (x.std(0, ddof=ddof) + eps)


def halve(x, ddof=0):
    return score(x, ddof).astype("f2").astype(float)


def noise(x):
    return np.random.default_rng(5).normal(0, 1e-3, x.shape)


@pytest.mark.parametrize(
    ("call", "options", "cause"),
    [
        pytest.param(score, {}, None, id="right"),
        pytest.param(lambda x: score(x, 1), {}, "it is that of --ddof 1", id="ddof"),
        pytest.param(lambda x: score(x, 1, 1e-4), {}, "it is that of --like trl", id="trl"),
        pytest.param(lambda x: score(x, 1, 1e-4), {"like": "trl"}, None, id="like trl"),
        pytest.param(lambda x: score(x, 1, 1e-3), {}, "it is that of --eps 0.001 --eps-mode outside --ddof 1", id="eps"),
        pytest.param(lambda x: score(x, 1), {"like": "trl"}, "it is that of --eps 0", id="no eps"),
        pytest.param(score, {"ddof": 1}, "it is that of --ddof 0", id="population"),
        pytest.param(lambda x: 2 * score(x), {}, "every value is multiplied by 2", id="factor"),
        pytest.param(lambda x: 1.002 * score(x), {}, "every value is multiplied by 1.002", id="a small one"),
        pytest.param(lambda x: x - x.mean(0), {"like": "trl"}, "the deviations are not divided", id="no scale"),
        pytest.param(lambda x: score(x) + noise(x), {}, "y is nearly the norm of each group", id="noise"),
        pytest.param(lambda x: score(x, 1) + noise(x), {}, "ddof is 1, and y is nearly the norm of each group", id="both"),
        pytest.param(halve, {}, "y holds float16 numbers, though x is float64", id="half precision"),
        pytest.param(lambda x: halve(x, 1), {}, "it is that of --ddof 1", id="half precision and ddof"),
    ],
)  # fmt: skip
def test_scores_within_groups_are_judged(call, options, cause):
    rewards = Rewards()
    told = rewards.tell(rewards.make(call), **options)
    assert told is None if cause is None else told.cause == f"zscore differs: {cause}"


def test_the_answer_counts_groups_and_values(rewards, normcli):
    rewards.write(lambda x: halve(x, 1))
    ran = normcli(*ASKED, "-f", "json")
    told = ran.json
    assert (ran.code, told["by"], told["group_count"], told["check"]["compared"]) == (1, ["prompt"], 12, 96)
    assert told["diagnosis"]["evidence"][0] == "y holds float16 numbers"


@pytest.mark.parametrize(
    ("ddof", "eps", "option"),
    [(0, 0.0, None), (1, 0.0, "--ddof 1"), (1, 1e-3, "--eps 0.001 --eps-mode outside --ddof 1")],
)
def test_rows_that_were_normalized_together_are_told(ddof, eps, option):
    rewards = Rewards()
    told = rewards.tell(score(rewards.x, ddof, eps))
    assert told.cause == "zscore differs: the rows of all groups were normalized together"
    assert told.evidence == (() if option is None else (f"every value agrees with {option}",))


def test_of_the_requests_that_agree_the_nearest_is_named():
    """A table is within the tolerance of --eps 1e-12 --eps-mode inside, too."""
    rewards = Rewards()
    told = rewards.tell(rewards.make(lambda x: score(x, 1, 1e-8)), like="trl")
    assert (told.cause, told.alternatives) == ("zscore differs: it is that of --eps 1e-08", ())
    told = rewards.tell(rewards.make(lambda x: score(x, 1)).astype("float32"), like="trl")
    assert told.cause == "zscore differs: it is that of --eps 0"
    assert "--eps 1e-08" in told.alternatives
    assert "--eps 1e-05" not in told.alternatives


def test_several_wrong_values_of_a_right_table_are_told():
    rewards = Rewards()
    y = rewards.make(score)
    y[3, 1], y[40, 0] = 0.0, np.nan
    told = rewards.tell(y)
    assert told.cause == "zscore differs: y is right, except for 2 values"
    assert told.evidence[0].startswith("row 41, column 0: nan, where ")
    assert told.fault == "where-values"


@pytest.mark.parametrize(
    ("ddof", "evidence"),
    [
        (0, "it is the standard deviation of all rows"),
        (1, "it is the standard deviation of all rows, with ddof 1"),
        (None, "it is the standard deviation of all rows about the means of their groups"),
    ],
)
def test_rows_that_share_one_divisor_are_told(ddof, evidence):
    rewards = Rewards()
    about = rewards.make(lambda x: x - x.mean(0))
    divisor = about.std(0) if ddof is None else rewards.x.std(0, ddof=ddof)
    told = rewards.tell(about / divisor)
    assert told.cause == f"zscore differs: one divisor serves all groups, {divisor[0]:.6g}"
    assert (told.evidence, told.fault) == ((evidence,), "stats-constant")


UNEVEN = Rewards(range(8, 15), 1)
"""Of 7 prompts with 8 to 14 rows."""


@pytest.mark.parametrize("ddof", [0, 1])
def test_a_mean_of_the_other_rows_is_named(ddof):
    told = UNEVEN.tell(UNEVEN.make(lambda x: (x - (x.sum() - x) / (len(x) - 1)) / x.std(ddof=ddof)))
    assert told.cause == "zscore differs: the mean leaves out the row itself, as RLOO"
    assert told.evidence[1:] == (() if ddof == 0 else ("ddof is 1, not 0",))


def test_a_factor_of_one_group_is_not_said_of_every_value():
    told = UNEVEN.tell(UNEVEN.make(lambda x: len(x) / 7 * score(x)))
    assert told.cause.endswith("every value is multiplied by 2; in group by=6 0, one of 7 of 7 that differ")


def test_the_worst_value_and_the_groups_that_differ_are_named(rewards, normcli):
    y = rewards.write(score)
    lines = Path("y.csv").read_text().splitlines()
    prompt = lines[5].split(",")[0]
    lines[5] = f"{prompt},{y[4, 0] + 1},{y[4, 1]}"
    Path("y.csv").write_text("\n".join(lines) + "\n")
    ran = normcli(*ASKED)
    right = f"row 5, column reward: {y[4, 0] + 1:.6g}, where {y[4, 0]:.6g} is right"
    for words in (f"n=4 c=0   group prompt={prompt} reward", "1 of 12 groups differs", "12.5 %", right):
        assert words in ran.out
    rows = normcli(*ASKED, "-f", "csv").lines
    assert rows[0] == "compared,prompt,column,mismatches,max_ulp"
    assert rows[1].startswith(f"normalized,{prompt},reward,1,")
    assert len(rows) == 2


def test_the_group_that_is_examined_varies():
    x = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 4.0, 8.0])
    told = check([9.0] * 4 + [-2.75, -1.75, 0.25, 4.25], x, "zscore", by=[*"aaaabbbb"]).diagnosis
    assert told.cause == "zscore differs: the deviations are not divided"


def test_rows_in_another_order_are_told(normcli, here):
    (here / "x.csv").write_text("prompt,reward\nb,1\na,2\na,4\nb,8\n")
    (here / "y.csv").write_text("prompt,reward\na,-1\na,1\nb,-1\nb,1\n")
    told = normcli(*ASKED).out
    assert "zscore differs: rows are in another order" in told
    assert "row 1 is of prompt a in --actual, of b in --input" in told


@pytest.mark.parametrize("lone", [0.0, 0.7])
def test_a_group_of_one_row_is_not_judged_where_ddof_is_1(lone, normcli, here):
    """TRL makes 0 of it, verl its reward."""
    (here / "x.csv").write_text("prompt,reward\na,1\na,0\nb,0.7\n")
    score = 0.5 / (0.5**0.5 + 1e-4)
    (here / "y.csv").write_text(f"reward\n{score}\n{-score}\n{lone}\n")
    ran = normcli(*ASKED[:-1], "--like", "trl")
    assert ran.code == 0
    assert ran.err.splitlines() == [
        "normcli: zscore: prompt=b reward: at most 1 value against ddof 1, so the variance is NaN",
        "normcli: zscore: not judged: 1 group of no more values than ddof",
    ]


ONE_FILE = [
    "check",
    "zscore",
    "-i",
    "x.csv:reward",
    "--actual",
    "x.csv:y",
    "--by",
    "prompt",
    "--ddof",
    "1",
    "-q",
]


def test_values_of_groups_that_are_not_judged_are_not_compared(normcli, here):
    (here / "x.csv").write_text("prompt,reward,y\nb,0.7,9\na,1,1\na,0,-1\nc,2,9\n")
    told = normcli(*ONE_FILE, "-f", "json").json
    assert (told["check"]["compared"], told["check"]["mismatches"]) == (2, 2)
    assert (told["check"]["worst"]["index"], told["check"]["worst"]["actual"]) == ({"n": 1, "c": 0}, 1.0)
    assert told["not_judged"] == {"groups": 2, "values": 2}
    assert "not judged  2 values   2 groups of no more values than ddof" in normcli(*ONE_FILE).out


def test_nothing_is_said_to_agree_where_nothing_is_judged(normcli, here):
    (here / "x.csv").write_text("prompt,reward,y\na,1,5\nb,2,7\nc,3,9\n")
    told = "x.csv:reward: no group has more values than ddof: nothing can be judged"
    require_refusal(normcli(*ONE_FILE), 3, told)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ([3], "; in group prompt=3 reward alone"),
        ([1, 3], " reward, one of 2 of 6 that differ"),
        ([0, 1, 2, 3, 4], " reward, one of 5 of 6 that differ"),
    ],
)
def test_what_is_wrong_in_some_groups_is_not_said_of_all(wrong, told, rewards, normcli):
    """Nor is it advised: what repairs some groups would break the others."""
    kinds = iter([(0, 0.0) if prompt in wrong else (1, 1e-4) for prompt in range(6)])
    rewards.write(lambda x: score(x, *next(kinds)))
    diagnosis = normcli(*ASKED, "--columns", "reward", "--like", "trl", "-f", "json").json["diagnosis"]
    assert diagnosis["cause"].endswith(told)
    assert "ddof is 0" in diagnosis["cause"]
    assert (diagnosis["remedy"], diagnosis["next_step"]) == (None, None)


@pytest.mark.parametrize("norm", ["minmax", "maxabs", "midrange", "robust"])
def test_what_normcli_makes_of_groups_is_right(norm, rewards, normcli):
    normcli(norm, "x.csv", "--by", "prompt", "-o", "y.csv", "-q")
    assert normcli("check", norm, *ASKED[2:], "--max-ulp", "0").code == 0


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ("--actual y.csv --actual-mean y.csv", 2, "--by checks --actual alone"),
        ("--actual y.csv --accumulate float32", 2, "--by checks --actual alone"),
        ("--actual y.csv --backward --dy y.csv", 2, "--by checks --actual alone"),
        ("--actual y.csv --quantize int8", 2, "--by checks --actual alone"),
        ("--actual y.csv --mask y.csv", 2, "--mask is of the whole tensor: leave it out beside --by"),
        ("--actual y.csv --data [[1]]", 2, "--input and --data each name a tensor"),
        ("--actual y.csv --seed 1", 2, "--seed is of a generated tensor"),
        ("--actual y.csv --residual-sum exact", 2, "--residual-sum is of the whole tensor"),
        ("--actual few.npy", 3, "--actual few.npy: the shape is (3, 2)"),
        ("", 2, "there is nothing to check"),
    ],
)
def test_refusals(words, code, told, rewards, normcli):
    rewards.write(score)
    np.save("few.npy", np.ones((3, 2)))
    require_refusal(normcli("check", "zscore", "-i", "x.csv", *words.split(), "--by", "prompt"), code, told)


def test_advantages_in_python_are_judged():
    """Of ones and zeros as well, where a prompt whose rewards are all alike has advantages of 0."""
    x = np.array([1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0], "float32").reshape(12, 1)
    prompts = np.repeat(["p", "q", "r"], 4)
    y = np.concatenate([score(part.astype(float), 1, 1e-4) for part in np.split(x, 3)]).astype("float32")
    assert check(y, x, "zscore", by=prompts, like="trl", max_ulp=1)
    wrong = check(y, x, "zscore", by=prompts, like="verl")
    assert not wrong
    assert "it is that of --like trl" in str(wrong)
    assert "rows by by   3 groups" in str(wrong)
    with pytest.raises(DataError, match="11 groups' names for 12 rows"):
        check(y, x, "zscore", by=prompts[1:])


def test_values_of_one_axis_are_judged_as_a_column():
    pandas = pytest.importorskip("pandas")
    x, prompts = np.array([1.0, 3.0, 5.0, 9.0]), ["p", "p", "q", "q"]
    assert check([-1.0, 1.0, -1.0, 1.0], x, "zscore", by=prompts)
    assert check(pandas.Series([-1.0, 1.0, -1.0, 1.0]), pandas.Series(x, name="reward"), "zscore", by=prompts)
    wrong = check(x, x, "zscore", by=prompts, like="trl")
    assert wrong.found.comparisons["normalized"].mismatches == 4


def test_arrays_in_blocks_are_refused_beside_groups():
    blocks = pytest.importorskip("dask.array").zeros((4, 1))
    with pytest.raises(UsageError, match="by groups the rows of an array in memory"):
        check(blocks, blocks, "zscore", by=[1, 1, 2, 2])


def test_of_one_group_nothing_is_said_of_all():
    x = np.array([[1.0], [2.0], [3.0]])
    judged = check([[-0.7], [0.7], [0.0]], x, "zscore", by=["p", "p", "q"], ddof=1)
    assert judged.diagnosis.cause == "zscore differs: every value is multiplied by 0.989949"


@pytest.mark.parametrize(("norm", "rows"), [("zscore", 1), ("bn", 1), ("bn", 2)])
def test_groups_of_ddof_values_are_nan_and_zeros_are_not(norm, rows):
    judged = check(np.zeros((rows, 3)), np.arange(3.0 * rows).reshape(rows, 3), norm, ddof=rows)
    assert not judged
    assert judged.diagnosis.cause == f"{norm} differs: every value of the actual tensor is 0"


@pytest.fixture
def shops(here):
    """A table of 60 rewards by shop and month, and a function that writes what somebody made of it."""
    rng = np.random.default_rng(5)
    keys = {"shop": rng.permutation(np.repeat(np.arange(5), 12)), "month": np.tile(np.arange(6), 10)}
    x = rng.standard_normal(60).round(3)
    rows = (f"s{a},{b},{c}\n" for a, b, c in zip(keys["shop"], keys["month"], x.tolist(), strict=True))
    (here / "x.csv").write_text("shop,month,reward\n" + "".join(rows))

    def write(change, ddof=0, column="shop"):
        y, by = np.empty(60), keys[column]
        for key in np.unique(by):
            y[by == key] = score(x[by == key], ddof)
        numbers = map("{!r}\n".format, y[change(keys["shop"])].tolist())
        (here / "y.csv").write_text("reward\n" + "".join(numbers))

    return write


SHOPS = "check zscore -i x.csv --by shop --exclude month --actual y.csv"


def permute_within(shop):
    order = np.arange(60)
    for key in range(5):
        order[shop == key] = np.roll(order[shop == key], 1)
    return order


@pytest.mark.parametrize(
    ("change", "cause", "evidence"),
    [
        pytest.param(
            lambda _: np.roll(np.arange(60), 1), "rows along n are rolled by 1", "row 60", id="rolled"
        ),
        pytest.param(lambda _: np.arange(60)[::-1], "rows along n are reversed", "row 60", id="reversed"),
        pytest.param(
            lambda shop: np.argsort(shop, kind="stable"), "rows are sorted by shop", "row", id="sorted"
        ),
        pytest.param(
            permute_within, "60 of 60 rows along n stand", "every row stands within its group", id="in"
        ),
    ],
)
def test_an_order_of_rows_is_told_by_their_values(change, cause, evidence, shops, normcli):
    shops(change)
    said = normcli(*SHOPS.split()).out
    assert f"zscore differs: {cause}" in said
    assert evidence in said


@pytest.mark.parametrize(("ddof", "more"), [(0, ""), (1, " --ddof 1")])
def test_rows_that_were_grouped_by_another_column_are_told(ddof, more, shops, normcli):
    shops(lambda _: np.arange(60), ddof, "month")
    said = normcli(*SHOPS.split()).out
    assert "zscore differs: rows are grouped by month, not by shop" in said
    assert f"normcli zscore … --by month{more}\n" in said


def test_a_column_that_names_each_row_is_no_group(here, normcli):
    """With ddof 1, groups of one row are not judged, and a missing cell agrees with a missing cell."""
    rng = np.random.default_rng(0)
    cells = [f"r{n},{'ab'[n % 2]},{value:.4f}" for n, value in enumerate(rng.normal(size=40))]
    cells[5] = "r5,b,"
    noise = rng.normal(size=40).tolist()
    noise[5] = float("nan")
    (here / "x.csv").write_text("\n".join(["id,shop,price", *cells]))
    (here / "y.csv").write_text("\n".join(["price", *map(str, noise)]))
    asked = "check zscore -i x.csv --columns price --by shop --nan omit --actual y.csv -f json"
    ran = normcli(*asked.split())
    assert (ran.code, ran.json["diagnosis"]["verdict"]) == (1, "none")
