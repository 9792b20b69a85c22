"""The arithmetic of a story is true, whatever the norm: as it is printed, and in full."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import mpmath
import numpy as np
import pytest

from normcli import NORMS, normalize
from normcli.documents.notation import build_equation, format_code
from normcli.engine.inputs import Inputs
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.numerics.statistics.solution import Given
from normcli.results.given_inputs import fit_inputs
from normcli.teach.explain.explain import explain
from normcli.teach.explain.measured_group import find_group
from tests.conftest import pose
from tests.marks import sampled, slowly
from tests.strategies import options_for
from tests.teach.printed import check_true

if TYPE_CHECKING:
    from normcli.teach.explain.story import Story

SMALL = np.random.default_rng(5).integers(-9, 10, (2, 4, 3))
NOISE = np.random.default_rng(6).normal(1.0, 3.0, (2, 4, 3)).astype(np.float32)
WIDE = np.random.default_rng(7).normal(-1.0, 2.0, (2, 4, 3))
FAR = 1e6 + np.random.default_rng(8).normal(size=(2, 4, 3))
CASES = {
    **{name: {"norm": name, **options_for(name, SMALL.shape)} for name in NORMS},
    "bn outside": {"norm": "bn", "eps_mode": "outside", "eps": 0.25},
    "bn ddof": {"norm": "bn", "ddof": 1},
    "bn affine": {"norm": "bn", "gamma": [1.5, -2.0, 0.1, 3.0], "beta": [0.0, 1.0, -0.5, 1e-3]},
    "ln float16": {"norm": "ln", "dtype": "float16"},
    "ln mlx": {"norm": "ln", "like": "mlx", "gamma": [0.5, -1.0, 2.0], "beta": 0.25},
    "gn interleaved": {"norm": "gn", "groups": 2, "group_order": "interleaved", "gamma": [1, 2, 3, 4]},
    "gn onnx-18": {"norm": "gn", "groups": 2, "like": "onnx-18", "gamma": [2.0, 3.0]},
    "rms gemma": {"norm": "rms", "like": "gemma", "gamma": [0.5, -1.0, 2.0]},
    "rms llama": {"norm": "rms", "like": "llama", "gamma": [0.5, -1.0, 2.0], "dtype": "float16"},
    "l1": {"norm": "l1"},
    "l2": {"norm": "l2"},
    "lp 0": {"norm": "lp", "p": 0},
    "lp inf": {"norm": "lp", "p": math.inf},
    "lp -1": {"norm": "lp", "p": -1.0},
    "lp 3": {"norm": "lp", "p": 3},
    "lp tensorflow": {"norm": "lp", "like": "tensorflow", "axes": -1},
    "wn gain": {"norm": "wn", "gamma": [2.0, 0.5]},
    "minmax affine": {"norm": "minmax", "gamma": [2.0, 2.0, 0.5], "beta": -1.0},
    "robust all": {"norm": "robust", "axes": (0, 1, 2)},
    "lrn torch": {"norm": "lrn", "like": "torch", "size": 4, "alpha": 0.5},
    "lrn whole power": {"norm": "lrn", "size": 3, "alpha": 3.0, "exponent": 2.0},
}  # fmt: skip
TENSORS = {"whole": SMALL, "float32": NOISE, "float64": WIDE, "far": FAR}


def tell(x: Any, at: tuple[int, ...] | None = None, every: bool = False, **options: Any) -> Story:
    gamma, beta = (None if options.get(n) is None else np.asarray(options.pop(n)) for n in ("gamma", "beta"))
    x = np.asarray(x)
    plan = make_plan(Request(**options), x.shape, x.dtype)
    return explain(pose(plan, x, fit_inputs(plan, x, {"gamma": gamma, "beta": beta})), at=at, every=every)


def lines(story: Story, digits: int | None = None, full: bool = True) -> list[str]:
    spelled = (build_equation(step, digits, full=full) for step in story.steps)
    return [equation.text for equation in spelled if equation is not None]


def line(story: Story, name: str) -> str:
    (step,) = (step for step in story.steps if step.name == name)
    equation = build_equation(step)
    assert equation is not None
    return equation.text


SOME_OR_ALL = [pytest.param(["float32"], id="float32"), *slowly([pytest.param(list(TENSORS), id="each")])]
"""The tensors that the quick loop tells of, and all."""


@sampled
@pytest.mark.parametrize("tensors", SOME_OR_ALL)
@pytest.mark.parametrize(("number", "case"), list(enumerate(CASES)))
def test_what_is_printed_is_true_with_any_digits(number, case, tensors):
    for place, tensor in enumerate(tensors):
        digits = (None, 3, 17)[(number + place) % 3]
        story = tell(TENSORS[tensor], every=True, **CASES[case])
        assert sum(check_true(text, digits or 8) for text in lines(story, digits)) >= 2, (tensor, digits)


@sampled
@pytest.mark.parametrize("tensors", SOME_OR_ALL)
@pytest.mark.parametrize("case", CASES)
def test_the_code_of_a_step_gives_its_value(case, tensors):
    for tensor in tensors:
        evaluate_code(case, tensor)


def evaluate_code(case, tensor):
    story = tell(TENSORS[tensor], (1, 2, 1), **CASES[case])
    assert story.group is not None
    statistics = story.group.statistics
    centre = statistics.get("mean", statistics.get("median", statistics.get("min", 0.0)))
    mean = abs(centre)
    count = 0
    for step in story.steps:
        if not step.chain or step.value is None:
            continue
        names = {"sqrt": mpmath.sqrt, "abs": abs, "max": max, "values": story.group.values.reshape(-1).tolist()}
        code = format_code(step.chain[0])
        got = eval(wrap_numbers(code), names | {"N": mpmath.mpf})
        unit = np.spacing(abs(float(step.value.value)))
        # A mean is a double here, and was a pair: of what is far from 0, that shows in the difference.
        apart = min(abs(story.group.outcomes[0].value - centre), statistics.get("iqr", math.inf)) or 1.0
        slack = 6 + 4 * mean / apart
        if step.name == "squares" and mean:
            slack = 6 + 8 * story.group.count * mean / math.sqrt(float(step.value.value))
        if step.name == "iqr":  # quartiles that are rounded, and then cancel
            slack = 6 + 4 * mean / abs(float(step.value.value))
        assert abs(got - mpmath.mpf(step.value.value)) <= slack * unit, (code, step.value)
        count += 1
    assert count >= (2 if story.plan.spec.rows is None else 1), tensor  # no arithmetic leads to σ


def wrap_numbers(code: str) -> str:
    import re

    return re.sub(r"(?<![\w.])\d+(?:\.\d+)?(?:e[-+]?\d+)?", lambda found: f"N('{found[0]}')", code)


@sampled
@pytest.mark.parametrize("tensors", SOME_OR_ALL)
@pytest.mark.parametrize("case", CASES)
def test_statistics_and_results_are_those_of_the_result(case, tensors):
    options = dict(CASES[case])
    for x in map(TENSORS.get, tensors):
        result = normalize(x, **options)
        for at in [(0, 0, 0), (1, 3, 2), (1, 1, 0)]:
            group = tell(x, at, **options).group
            number, place = find_group(result.plan, at)
            assert group.statistics == {n: a.reshape(-1)[number] for n, a in result.statistics.items()}
            assert group.outcomes[0].normalized == result.normalized[at]
            assert (group.outcomes[0].index, group.outcomes[0].value) == (at, x[at])
            assert group.index(place) == at or result.plan.spec.window is not None


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("options", "name", "expected"),
    [
        pytest.param({"norm": "ln"}, "mean", "μ = (1 + 2 + 3 + 4) / 4 = 2.5", id="mean"),
        pytest.param({"norm": "ln", "eps": 0.0}, "quotient", "x̂ ≈ (1 − 2.5) / 1.118034 ≈ -1.3416408", id="quotient"),
        pytest.param({"norm": "ln"}, "eps", "σ² + ε = 1.25 + 1e-05 = 1.25001", id="inside"),
        pytest.param({"norm": "ln", "eps_mode": "outside", "eps": 0.5}, "eps", "σ + ε ≈ 1.118034 + 0.5 = 1.618034", id="outside"),
        pytest.param({"norm": "ln", "ddof": 1}, "variance", "σ² = 5 / (4 − 1) ≈ 1.6666667", id="ddof"),
        pytest.param({"norm": "rms", "eps": 0.0}, "mean square", "ms = 30 / 4 = 7.5", id="mean square"),
        pytest.param({"norm": "l2"}, "squares", "Σx² = 1² + 2² + 3² + 4² = 1 + 4 + 9 + 16 = 30", id="squares"),
        pytest.param({"norm": "l2"}, "eps", "max(‖x‖₂, ε) ≈ max(5.4772256, 1e-12) = 5.4772256", id="floor"),
        pytest.param({"norm": "lp", "like": "tensorflow", "axes": -1}, "eps", "max(Σx², ε) = max(30, 1e-12) = 30", id="square floor"),
        pytest.param({"norm": "lp", "p": math.inf}, "length", "‖x‖∞ = max(|1|, |2|, |3|, |4|) = 4", id="inf"),
        pytest.param({"norm": "lp", "p": -math.inf}, "length", "‖x‖₋∞ = min(|1|, |2|, |3|, |4|) = 1", id="-inf"),
        pytest.param({"norm": "lp", "p": 0}, "length", "‖x‖₀ = 1 + 1 + 1 + 1 = 4", id="count"),
        pytest.param({"norm": "lp", "p": 3}, "length", "‖x‖₃ = 100^(1 / 3) ≈ 4.6415888", id="p"),
        pytest.param({"norm": "lrn", "size": 3, "alpha": 3.0}, "base", "base = 1 + 3 · 5 / 3 = 6", id="window"),
        pytest.param({"norm": "lrn", "size": 3, "alpha": 3.0}, "divisor", "d = 6^0.75 ≈ 3.8336586", id="power"),
        pytest.param({"norm": "rms", "like": "gemma", "eps": 0.0, "gamma": [-0.5] * 4}, "affine", "y ≈ (1 + (-0.5)) · 0.36514837 ≈ 0.18257419", id="offset"),
        pytest.param({"norm": "ln", "eps": 0.0, "gamma": [2.0] * 4, "beta": [0.5] * 4}, "affine", "y ≈ 2 · (-1.3416408) + 0.5 = -2.1832816", id="affine"),
    ],
)  # fmt: skip
def test_a_line(options, name, expected):
    assert line(tell([[1, 2, 3, 4]], (0, 0), **options), name) == expected


def test_gamma_multiplies_what_was_rounded_where_the_convention_rounds_first():
    story = tell(np.array([[1, 2, 3, 4]], "f2"), (0, 0), norm="rms", like="llama", gamma=[3.0] * 4)
    assert [step.name for step in story.steps][-4:] == ["quotient", "round", "affine", "result"]
    rounded = next(step for step in story.steps if step.name == "round").value.value
    assert rounded == np.float16(1 / math.sqrt(7.500001))
    affine = next(step for step in story.steps if step.name == "affine")
    assert affine.chain[0].right.value == rounded
    assert np.float16(affine.value.value) == story.group.outcomes[0].normalized


def test_numbers_that_cancel_are_printed_with_the_digits_it_takes():
    text = line(tell(np.array([[1e6 + 0.25, 1e6, 1e6 + 1e-3]]), (0, 1), norm="ln"), "quotient")
    assert "1000000.0836" in text
    assert check_true(text, 8) == 1


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("x", "options", "told"),
    [
        pytest.param([[5, 5, 5]], {"norm": "zscore", "axes": 1}, "The divisor is 0: it counts as 1", id="one"),
        pytest.param([[0, 0]], {"norm": "wn"}, "The divisor is 0, as all values are: it counts as 1", id="zero"),
        pytest.param([[0.0, 0.0]], {"norm": "wn", "like": "torch"}, "by which nothing can be divided", id="nan"),
        pytest.param([[1.0, math.nan]], {"norm": "ln"}, "holds NaN", id="nan in"),
        pytest.param([[1.0, math.inf]], {"norm": "rms"}, "holds an infinity", id="inf in"),
        pytest.param([[1.0, math.inf]], {"norm": "lrn"}, "infinity", id="inf in a window"),
        pytest.param([[7]], {"norm": "ln"}, "holds 1 value", id="single"),
        pytest.param([[7]], {"norm": "ln", "ddof": 1}, "n − ddof = 1 − 1 = 0", id="ddof"),
        pytest.param([[1e300, 2e300]], {"norm": "ln"}, "leave the range of float64; their root does not", id="squares overflow"),
        pytest.param([[1e-200, 2e-200]], {"norm": "ln", "eps": 0.0}, "leave the range", id="squares underflow"),
        pytest.param([[1e308, 1.7e308]], {"norm": "ln"}, "It is beyond float64", id="sum overflows"),
        pytest.param([[300.0, 1.0]], {"norm": "lp", "p": 1e9}, "beyond float64", id="power overflows Decimal"),
        pytest.param([[300.0, 1.0]], {"norm": "lp", "p": 300}, "beyond float64", id="power overflows"),
        pytest.param([[1e308] * 4], {"norm": "lp"}, "The length is beyond float64.", id="length overflows"),
        pytest.param(
            [[1e308] * 2] * 2, {"norm": "sn"}, "The largest singular value is beyond float64.", id="singular value overflows"
        ),
        pytest.param(np.zeros((0, 3)), {"norm": "ln"}, "has no values", id="no groups"),
        pytest.param(np.zeros((3, 0)), {"norm": "ln"}, "holds no values", id="empty groups"),
    ],
)  # fmt: skip
def test_odd_groups_are_told_of_in_a_sentence(x, options, told):
    story = tell(x, **options)
    assert told in " ".join(step.sentence for step in story.steps)
    for text in lines(story):
        check_true(text, 8)
    for step in story.steps:
        assert step.value is None or math.isfinite(step.value.value)


def test_a_value_too_far_out_for_the_output_is_warned_of_as_in_the_result():
    x = np.array([0.0, 0.0, 1e-3, 1e-3, 1e-4, 60000.0])
    result = normalize(x, "robust", axes=0, dtype="float16")
    story = tell(x, (5,), norm="robust", axes=0, dtype="float16")
    assert tuple(map(str, story.group.degeneracies)) == result.warnings
    assert "not finite in float16" in result.warnings[0]


def test_given_statistics_take_the_place_of_measured_ones_whatever_else_is_in_the_group():
    result = normalize(np.array([[1.0, 2], [3, 8]]), "bn", gamma=2.0)
    inputs = Inputs(result.gamma, None, Given(result.mean, result.var))
    spoilt = pose(result.plan, np.array([[math.nan, 2], [3, 8]]), inputs)
    story = explain(spoilt, at=(1, 0))
    printed = lines(story)
    assert printed[:3] == ["μ = 2", "σ² = 1", "σ² + ε = 1 + 1e-05 = 1.00001"]
    assert "running mean" in story.steps[1].sentence
    assert "x̂ ≈ (3 − 2) / 1.000005 ≈ 0.999995" in printed
    assert printed[-1] == f"y ≈ {result.normalized[1, 0]:.8g}"
    assert "NaN" in explain(spoilt, at=(0, 0)).steps[-1].sentence


def test_a_long_group_is_told_by_its_statistics():
    x = np.random.default_rng(3).integers(0, 9, (3000, 2))
    story = tell(x, norm="bn")
    assert [outcome.place for outcome in story.group.outcomes] == [0, 1, 2, 2999]
    steps = {step.name: step for step in story.steps}
    values = {"fsum": math.fsum, "values": x[:, 0].tolist()}
    for name, expected in (("sum", x[:, 0].sum()), ("squares", 3000 * x[:, 0].var())):
        assert steps[name].value.value == pytest.approx(expected, rel=1e-15)
        assert eval(format_code(steps[name].chain[0]), values) == pytest.approx(expected, rel=1e-14)
    first, second, third, *_, last = x[:, 0]
    assert lines(story, full=False)[0] == f"Σx = {first} + {second} + {third} + … + {last} = {x[:, 0].sum()}"
