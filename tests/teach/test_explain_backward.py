"""The chain rule in numbers: its dx is that of the backward pass, to the bit, for every norm and option."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import NORMS, backward
from normcli.documents.notation import build_equation
from normcli.errors import DataError, UsageError
from normcli.results.arguments import read_arguments
from normcli.teach.explain import explain as explaining
from tests.conftest import pose

SHAPE = (2, 4, 3)
AT = (1, 2, 1)


def draw(seed=0, shape=SHAPE):
    rng = np.random.default_rng(seed)
    return rng.normal(1.0, 2.0, shape), rng.normal(size=shape)


def explain(x, dy, norm, at=AT, **options):
    """Return a story, and the gradients that it has to lead to."""
    asked = read_arguments(x, norm, options)
    problem = pose(asked.plan, asked.values, asked.inputs, np.asarray(dy))
    return explaining.explain(problem, at=at), backward(x, dy, norm, **options)


def find_numbers(story, name):
    """Return the numbers that the steps of a name come to."""
    return [step.value.value for step in story.steps if step.name == name and step.value is not None]


def require_same(story, found, at=AT):
    assert find_numbers(story, "dx") == [found.dx[at]]
    assert find_numbers(story, "result") == [found.dx[at]]


CASES = [
    *(pytest.param(norm, {}, id=norm) for norm, row in NORMS.items() if row.gradient_names and norm != "gn"),
    ("bn", {"running_mean": [1, 2, 3, 4], "running_var": [1, 2, 3, 4], "gamma": [1, -2, 3, 0.5]}),
    ("bn", {"running_mean": [1, 2, 3, 4], "running_var": [1, 2, 3, 4], "eps_mode": "outside"}),
    ("gn", {"groups": 2, "gamma": [1, 2, 3, 4]}),
    ("ln", {"eps": 0.0, "ddof": 1}),
    ("ln", {"eps": 0.5, "eps_mode": "outside", "ddof": 1}),
    ("ln", {"axes": (1, 2), "eps": 0.25}),
    ("rms", {"like": "gemma", "gamma": [0.5, -1.0, 2.0]}),
    ("rms", {"eps": 0.5, "eps_mode": "outside"}),
    ("lp", {"p": 0}),
    ("lp", {"p": 1}),
    ("lp", {"p": 3}),
    ("lp", {"p": 0.5}),
    ("lp", {"p": -np.inf}),
    ("lp", {"like": "tensorflow", "axes": 1, "eps": 40.0}),
    ("zscore", {"like": "keras"}),
    ("lrn", {"size": 2, "alpha": 0.5}),
    ("lrn", {"size": 3, "alpha": 3.0, "exponent": 1.3, "k": 0.5, "axes": 2}),
    ("sn", {"axes": (1, 2), "rows": 2}),
    ("sn", {"u": [1.0, 2.0], "iterations": 3}),
    ("sn", {"u": [0.5, 2.0], "v": np.arange(1.0, 13.0)}),
]


@pytest.mark.all_tried
@pytest.mark.parametrize(("norm", "options"), CASES)
def test_the_chain_rule_leads_to_the_exact_dx(norm, options):
    require_same(*explain(*draw(), norm, **options))


GATED = {"gate": draw(5)[1], "gamma": [1, -2, 3, 0.5][:3]}


@pytest.mark.parametrize("order", ["after", "before"])
@pytest.mark.parametrize(
    ("norm", "options"),
    [
        ("rms", {"gate": GATED["gate"]}),
        ("ln", {**GATED, "beta": [1.0, 2.0, 4.0]}),
        ("rms", {**GATED, "gate_act": "gelu"}),
        ("ln", {"gate": GATED["gate"][0, 0], "gate_act": "none", "axes": (1, 2)}),
        ("gn", {"gate": GATED["gate"][:, :1], "gate_act": "tanh", "groups": 2, "gamma": [1, 2, 3, 4]}),
        ("bn", {"running_mean": [1, 2, 3, 4], "running_var": [1, 2, 3, 4], "gate": GATED["gate"]}),
        ("lp", {"gate": GATED["gate"], "p": 3}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_chain_rule_leads_through_a_gate_to_the_exact_dx(norm, options, order):
    story, found = explain(*draw(), norm, gate_order=order, **options)
    require_same(story, found)
    gate = np.asarray(options["gate"])
    whole = {**options, "gate": np.broadcast_to(gate, SHAPE)}
    exact = backward(*draw(), norm, gate_order=order, **whole).dgate[AT]
    assert find_numbers(story, "dgate") == [pytest.approx(exact, rel=1e-15)]


def test_a_gate_that_is_not_finite_has_no_derivative():
    story, _ = explain(*draw(), "ln", gate=np.full(SHAPE, np.nan))
    assert "has a gate that is not finite: there is no derivative." in story.steps[-2].sentence


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32"])
def test_the_result_is_rounded_once_to_the_dtype(dtype):
    x, dy = draw(1)
    x = (x * 10).astype(dtype)
    story, found = explain(x, dy, "ln")
    assert find_numbers(story, "result") == [found.dx[AT]]
    assert story.steps[-1].sentence.endswith(f"to {found.dx.dtype.name}.")


@pytest.mark.slow
@pytest.mark.parametrize(("norm", "options"), [("ln", {"gamma": np.linspace(1, 2, 1100)}), ("lp", {"p": 3})])
def test_a_long_group_is_added_up_as_pairs(norm, options):
    x, dy = draw(4, (1, 1100))
    story, found = explain(1e8 + x, dy, norm, (0, 77), **options)
    assert find_numbers(story, "dx") == pytest.approx([found.dx[0, 77]], rel=1e-12)
    assert find_numbers(story, "result") == [found.dx[0, 77]]
    assert all(len(build_equation(step).text) < 700 for step in story.steps if step.formula)


def test_a_divisor_that_eps_rules_does_not_follow_the_values():
    story, found = explain(*draw(), "lp", eps=40.0)
    require_same(story, found)
    (sentence,) = [step.sentence for step in story.steps if step.name == "slope" and "not" in step.sentence]
    assert sentence == "The loss does not change with the length, as eps is the larger."


@pytest.mark.parametrize(
    ("x", "norm", "options"),
    [
        ([[2.0], [2.0], [2.0]], "zscore", {}),
        ([[1.0], [1.0 + 2**-52], [1.0]], "zscore", {"like": "sklearn"}),
    ],
)
def test_a_divisor_that_counts_as_1_is_a_constant(x, norm, options):
    story, found = explain(x, np.arange(3.0).reshape(np.shape(x)), norm, (0, 0), **options)
    require_same(story, found, (0, 0))
    assert any("it counts as 1" in step.sentence for step in story.steps)


def test_where_0_stands_for_a_quotient_there_is_no_derivative():
    story, found = explain([[0.0, 0.0]], [[1.0, 2.0]], "lp", (0, 0), eps=0.0)
    assert np.isnan(found.dx[0, 0])
    assert [step.name for step in story.steps[-2:]] == ["zero", "result"]
    assert find_numbers(story, "result") == []


@pytest.mark.all_quick
@pytest.mark.parametrize("what", ["x", "dy"])
@pytest.mark.parametrize("norm", ["ln", "lrn"])
def test_what_is_not_finite_has_no_derivative(what, norm):
    x, dy = draw()
    {"x": x, "dy": dy}[what][1, 2, 0] = np.nan
    {"x": x, "dy": dy}[what][1, 1, 1] = np.nan
    story, found = explain(x, dy, norm)
    assert np.isnan(found.dx[AT])
    assert find_numbers(story, "dx") == []
    assert story.steps[-1].sentence.endswith("float64, is NaN.")
    assert any("not finite" in step.sentence or "NaN" in step.sentence for step in story.steps[:-1])


def test_a_gamma_that_is_not_finite_has_no_derivative():
    story, found = explain([[1.0, 2.0, 4.0]], [[1.0, 0.0, 0.0]], "ln", (0, 0), gamma=[np.nan, 1.0, 2.0])
    assert np.isnan(found.dx[0, 0])
    assert story.steps[-2].sentence.endswith("has a gamma that is not finite: there is no derivative.")


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("x", "p"),
    [([[0.0, 0.0]], -1.0), ([[1e200, 2e200]], 64.5), ([[8.0] * 1025], 1000.0)],
    ids=["divided-by-0", "too-long-a-power", "too-large-a-term"],
)
def test_numbers_beyond_float64_have_no_derivative_in_steps(x, p):
    story, found = explain(x, np.ones(np.shape(x)), "lp", (0, 0), p=p)
    assert story.steps[-2].sentence == "The numbers of the derivative are beyond float64."
    assert find_numbers(story, "result") == [found.dx[0, 0]]


def test_what_has_no_derivative_is_refused():
    asked = read_arguments(np.ones((2, 3)), "minmax", {})
    with pytest.raises(UsageError, match="minmax has no backward pass"):
        explaining.explain(pose(asked.plan, asked.values, dy=np.ones((2, 3))))
    asked = read_arguments(np.ones((2, 3)), "ln", {})
    with pytest.raises(DataError, match=r"dy has the shape \(3,\)"):
        explaining.explain(pose(asked.plan, asked.values, dy=np.ones(3)))
