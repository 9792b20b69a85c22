"""What is said of each kind of finding: short, subject first, one fact a sentence."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.identifying.faults.variant import IndexRegion
from normcli.identifying.identify import identify
from normcli.identifying.question import VERDICTS, Question
from normcli.identifying.words.phrasing import diagnose
from normcli.identifying.words.request_phrasing import diagnose_request
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.rules import GroupOrder
from tests.identifying.diagnoses import (
    CLAIM,
    DOUBTFUL,
    FOUND,
    X,
    find,
    list_diagnoses,
    make_map,
    reproduce,
)
from tests.identifying.plain_words import require_plain_words

LN = "layer normalization over c"


def test_causes_are_short_and_begin_with_their_subject():
    every = [*list_diagnoses()]
    for told in every:
        require_plain_words(told)
    assert {told.verdict for told in every} == {*VERDICTS} - {"fault"}
    assert len({told.cause for told in every}) > 150


def test_a_norm_is_named_with_its_options_and_who_has_them():
    match = FOUND._replace(eps=1e-6, eps_mode="outside", ddof=1, like=("annotated-transformer",))
    told = diagnose(find(match))
    assert told.cause == f"y is {LN}, eps 1e-06 outside the root, ddof 1 (annotated-transformer)"
    assert told.evidence == ("every value is the exact one, rounded",)
    assert (told.alternatives, told.next_step) == ((), None)
    several = diagnose(
        find(FOUND._replace(like=("torch", "jax", "equinox", "mlx", "onnx"), ddof=1, axes=(1, 2)))
    )
    assert several.cause == "y is layer normalization over l c, eps 1e-05, ddof 1 (torch, jax, equinox, mlx, …)"
    assert several.evidence[0] == "so do torch, jax, equinox, mlx, onnx"


def test_what_a_cause_has_no_room_for_is_evidence():
    changed = {"norm": "gn", "axes": (0, 1, 2), "groups": 2, "group_order": GroupOrder.INTERLEAVED, "eps_mode": "outside", "ddof": 1, "affine": "gamma, beta"}  # fmt: skip
    told = diagnose(find(FOUND._replace(**changed), gamma=np.ones(4), beta=np.ones(4)))
    assert told.cause == "y is group normalization over n l c, 2 interleaved groups, ddof 1 (torch)"
    assert told.evidence[:2] == ("eps 1e-05 outside the root", "then gamma and beta")


def test_what_fits_as_well_is_listed_with_the_command_that_tells():
    one, two = (FOUND._replace(axes=axes, like=()) for axes in [(1,), (0, 1)])
    told = diagnose(find(FOUND, one, two))
    assert told.alternatives == tuple(f"layer normalization over {axes}, eps 1e-05" for axes in ("l", "n l"))
    assert told.next_step == "normcli identify … --suggest"


def test_a_fault_is_said_as_its_claim_is():
    other = CLAIM._replace(causes=("the variance counts 5 padded zeros",))
    told = diagnose(find(doubtful=(DOUBTFUL,), claims=(CLAIM, other)))
    assert (told.verdict, told.fault) == ("fault", "stats-padded-variance")
    assert told.cause == "y is ln, but the variance counts 4 padded zeros"
    assert told.alternatives == ("the variance counts 5 padded zeros",)


@pytest.mark.parametrize(("others", "unsaid"), [((), "this is so"), (("y is 0",), "y is 0")])
def test_where_a_fault_is_stands_below_a_cause_that_has_no_room_for_it(others, unsaid):
    region = IndexRegion("for n=2, c=1, 3, 5 and 4 more", np.ones(X.shape, np.bool_))
    told = diagnose(find(claims=(CLAIM._replace(causes=(*CLAIM.causes, *others), region=region),)))
    require_plain_words(told)
    assert told.cause == "y is ln, but the variance counts 4 padded zeros"
    assert told.evidence[0] == f"{unsaid} for n=2, c=1, 3, 5 and 4 more"


def test_a_part_that_a_cause_has_no_room_for_leaves_a_whole_sentence():
    region = IndexRegion("from an index of n on that differs by c", np.ones(X.shape, np.bool_))
    where = CLAIM._replace(causes=("y is right, except",), region=region)
    told = diagnose(find(claims=(where,)))
    require_plain_words(told)
    assert (told.cause, told.evidence[0]) == ("y is ln, except in a part", f"y is wrong {region.words}")
    plan = make_plan(Request("ln"), X.shape, X.dtype)
    assert diagnose_request(plan, find(claims=(where,))).cause == "ln differs: y is right, except in a part"


@pytest.mark.parametrize("between", [": ", ", as where "])
def test_why_nothing_can_be_told(between):
    told = diagnose(find(reason=f"the input is constant{between}every norm makes the same of it"))
    assert told.cause == "no norm can be identified: the input is constant"
    assert told.evidence == ("every norm makes the same of it",)


@pytest.mark.slow
def test_what_nothing_known_makes_is_not_guessed():
    rng = np.random.default_rng(3)
    x = rng.normal(0.5, 2.0, (40, 30))
    told = diagnose(identify(Question(x, np.sin(3.0 * x))))
    assert told.cause == "nothing known explains y"
    assert told.next_step == "give --gamma and --beta, if the kernel has them"


@pytest.mark.parametrize(
    ("noise", "cause", "evidence"),
    [
        (
            0.003,
            "y is nearly batch normalization over n l",
            "values are off by 0.0029 on average, which is 0.29 %",
        ),
        (0.05, "nothing known explains y", "every norm was tried over all axes, and every map a · x + b"),
    ],
)
def test_a_norm_with_small_errors_all_over_is_nearly_that_norm(noise, cause, evidence):
    rng, axes = np.random.default_rng(4), (0, 2)
    x = rng.normal(size=(8, 6, 20)) * rng.uniform(0.5, 2.0, (8, 6, 1)) + rng.uniform(-1.0, 1.0, (8, 6, 1))
    y = (x - x.mean(axes, keepdims=True)) / x.std(axes, keepdims=True) + rng.normal(0.0, noise, x.shape)
    told = diagnose(identify(Question(x, y)))
    assert told.cause == cause
    assert told.evidence[0].startswith(evidence)


@pytest.mark.slow
def test_noise_in_one_sample_is_told_by_its_place():
    rng = np.random.default_rng(8)
    x = rng.standard_normal((4, 8, 64)).astype("f4")
    wide = x.astype(float)
    y = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5)
    y[1] += rng.normal(0.0, 0.01, (8, 64))
    assert diagnose(identify(Question(x, y.astype("f4")))).cause == "y is ln, except for n=1"


@pytest.mark.slow
def test_groups_of_equal_values_are_no_evidence_of_a_norm():
    rng = np.random.default_rng(0)
    x = (rng.random((32, 8)) < 0.5).astype(float)
    x[[3, 7, 9, 11]] = [[0], [1], [0], [1]]
    y = np.where(x.std(1, keepdims=True) > 0, rng.normal(size=x.shape), 0.0)
    assert diagnose(identify(Question(x, y))).cause == "nothing known explains y"
    noisy = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    near = diagnose(identify(Question(x, noisy * (1.0 + 0.01 * rng.normal(size=x.shape)))))
    assert near.cause == "y is nearly layer normalization over c"


def test_steps_of_a_power_of_two_are_no_half_precision():
    rng = np.random.default_rng(7)
    x = rng.standard_normal((4, 8, 64)).astype("f4")
    y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    found = diagnose(identify(Question(x, (np.round(y * 32) / 32).astype("f4"))))
    assert found.cause == "y is ln, but y is rounded to steps of 0.0312"


@pytest.mark.slow
def test_a_line_with_noise_is_nearly_no_norm():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(3, 2048))  # of such rows ln is a line, but for 2 %
    assert diagnose(identify(Question(x, x + rng.normal(0.0, 0.01, x.shape)))).verdict == "none"


def test_another_input_tells_where_gamma_is_given():
    told = diagnose(find(gamma=np.ones(5)))
    assert (
        told.next_step == "normcli generate --shape 3,4,5 --dist normal -o try.npy writes another input to try"
    )


@pytest.mark.parametrize(
    ("changed", "cause", "alternatives"),
    [
        pytest.param({}, f"y may be {LN}", ("root mean square normalization",), id="few"),
        pytest.param({"is_odd": True, "eps": 3.03}, f"{LN} needs an eps of 3.03 to give y", (), id="odd"),
        pytest.param(
            {"has_default_eps": False, "fine": 19.0, "bits": 20.0, "affine": "gamma"}, f"y may be {LN}, eps 9e-06 to 1.1e-05, then gamma",
            ("another eps, with statistics that are rounded to float32",), id="hidden",
        ),
        pytest.param(
            {"precision": "float16, rounded before gamma", "equal": 0.12345}, f"y is nearly {LN}, eps 1e-05",
            ("a kernel that calculates in float16, or rounds to it on the way",), id="half",
        ),
    ],
)  # fmt: skip
def test_what_there_is_too_little_evidence_for(changed, cause, alternatives):
    told = diagnose(find(doubtful=(DOUBTFUL._replace(**changed), DOUBTFUL._replace(norm="rms"))))
    assert (told.verdict, told.cause, told.alternatives) == ("undecided", cause, alternatives)


def test_the_algorithm_that_gives_most_bits_of_what_is_no_certain_norm_fits_as_well():
    told = diagnose(find(doubtful=(DOUBTFUL,), reproductions=(reproduce("two-pass:float32", 0.995),)))
    assert told.alternatives[0].startswith(
        f"{LN}; two-pass:float32 gives 99.5 % of the bits: float32 sums, the"
    )
    told = diagnose(find(plain=make_map([0.5], [0.0]), reproductions=(reproduce("welford:float32"),)))
    assert told.alternatives[0].startswith(f"{LN}; welford:float32 gives every bit: ")
