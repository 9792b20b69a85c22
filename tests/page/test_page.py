"""A page without a browser: which part of a tensor it shows, what it holds, and that it can do no harm."""

from __future__ import annotations

import base64
import functools
import hashlib
import html
import json
import math
import re

import numpy as np
import pytest

from normcli import NORMS, normalize
from normcli.answers.calculating.calculation import Answer
from normcli.answers.calculating.catalogue import Catalogue
from normcli.documents.document import Page, View
from normcli.documents.palette import PALETTE
from normcli.norms.rules import EpsMode
from normcli.page.content import LONGEST_SIDE, MOST_CELLS, SLICE_CELLS, choose_slice, make_content
from normcli.printable import make_printable
from normcli.tensors.tensor import Tensor
from tests.conftest import ROOT, Ran, render, require_refusal
from tests.marks import sampled, slowly
from tests.page.reader import Stub
from tests.strategies import options_for

SHAPE = (2, 4, 3, 2)
HARM = "</script><img src=x onerror=alert(1)><!--<script>\u2028\u2029&amp;]]>"


def make(values, norm="bn", at=None, source="x.npy", **options) -> Page:
    values = np.asarray(values)
    result = normalize(values, norm, **(options_for(norm, values.shape) | options))
    return Page("title", [result], Tensor(values, source), at)


def describe(page, view=None):
    """Return the content as a reader of its JSON gets it."""
    return json.loads(json.dumps(make_content(page, view or View()), allow_nan=False))


def read_back(page_text):
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page_text, re.DOTALL)
    return json.loads(data)


def spread(tables):
    """Return the number of each cell, of what each position along each axis adds to it."""
    return functools.reduce(np.add.outer, map(np.array, tables), np.zeros((), int)).reshape(-1).tolist()


def normal(*shape, dtype="float32"):
    return np.random.default_rng(5).normal(2, 3, shape).astype(dtype)


# -- the slice


@pytest.mark.parametrize("shape", [(), (7,), (0, 3), (64, 64), (4096,), (2, 2, 2, 2, 2, 3)], ids=str)
def test_a_small_tensor_is_shown_whole(shape):
    assert choose_slice(shape) == tuple(map(range, shape))


@pytest.mark.parametrize(
    "shape", [(4097,), (65, 64), (8, 64, 32, 32), (2, 3, 5, 7, 11, 13), (1, 1, 10**9), (5000, 1)], ids=str
)
def test_a_large_tensor_is_cut_to_a_block_within_the_limits(shape):
    assert math.prod(shape) > MOST_CELLS
    stretches = choose_slice(shape)
    sides = list(map(len, stretches))
    assert all(stretch.start == 0 for stretch in stretches)
    assert all(1 <= side <= min(length, LONGEST_SIDE) for side, length in zip(sides, shape, strict=True))
    assert math.prod(sides) <= SLICE_CELLS
    assert all(side > 1 for side, length in zip(sides, shape, strict=True) if length > 1)


@pytest.mark.parametrize(
    ("shape", "at", "sides"),
    [
        ((8, 64, 32, 32), (7, 63, 31, 31), [4, 4, 8, 8]),
        ((8, 64, 32, 32), (5, 17, 8, 30), [4, 4, 8, 8]),
        ((3, 50, 70, 90), (2, 49, 69, 89), [3, 4, 8, 8]),
    ],
)
def test_the_block_holds_the_index_that_the_page_opens_at(shape, at, sides):
    stretches = choose_slice(shape, at)
    assert all(i in stretch for stretch, i in zip(stretches, at, strict=True))
    assert all(stretch.stop <= length for stretch, length in zip(stretches, shape, strict=True))
    assert list(map(len, stretches)) == sides


def test_a_slice_is_named_and_its_numbers_are_those_of_the_whole_tensor():
    values = normal(8, 64, 32, 32)
    page = make(values, at=(3, 10, 20, 31))
    content = describe(page)
    assert content["slice"] == "n=0…3 of 8, c=8…11 of 64, h=16…23 of 32, w=24…31 of 32"
    assert (content["start"], content["size"]) == ([0, 8, 16, 24], [4, 4, 8, 8])
    result, cut = page.results[0], np.s_[0:4, 8:12, 16:24, 24:32]
    shown = content["results"][0]
    np.testing.assert_array_equal(np.float32(content["input"]), values[cut].reshape(-1))
    np.testing.assert_array_equal(np.float32(shown["normalized"]), result.normalized[cut].reshape(-1))
    assert shown["numbers"] == [8, 9, 10, 11]
    assert shown["counts"] == [8 * 32 * 32] * 4
    assert shown["statistics"]["mean"] == result.mean[8:12].tolist()


# -- the numbers


@pytest.mark.parametrize("shape", [SHAPE, *slowly([(3, 4), (2, 4, 3), (2, 4, 2, 1, 2, 2)])], ids=str)
@pytest.mark.parametrize("norm", NORMS)
@sampled
def test_every_norm_gives_what_the_json_gives(norm, shape):
    page = make(normal(*shape), norm)
    answer, shown = Answer(page.results[0], page.tensor), describe(page)["results"][0]
    assert shown["normalized"] == answer.result.normalized.astype(float).reshape(-1).tolist()
    records = list(answer.records())
    assert shown["counts"] == [record["count"] for record in records]
    assert shown["groups"] == [
        " ".join(f"{name}={place}" for name, place in record["group"].items()) or "all" for record in records
    ]
    for name in NORMS[norm].statistics:
        assert shown["statistics"][name] == [record[name] for record in records]


@pytest.mark.parametrize("norm", NORMS)
def test_owners_are_the_groups_that_the_plan_locates(norm):
    page = make(normal(*SHAPE), norm)
    plan = page.results[0].plan
    shown = describe(page)["results"][0]
    expected = plan.grid.locate_groups(np.ix_(*map(np.arange, SHAPE))).reshape(-1)
    owners = spread(shown["owner"])
    assert [shown["numbers"][owner] for owner in owners] == expected.tolist()
    if plan.spec.window is None:
        assert np.bincount(owners).tolist() == shown["counts"]


def test_owners_of_a_slice_that_begins_within_a_round_of_interleaved_groups():
    shape, at = (2, 40, 64, 64), (0, 39, 3, 3)
    page = make(normal(*shape), "gn", at, groups=5, group_order="interleaved")
    shown = describe(page)["results"][0]
    expected = page.results[0].plan.grid.locate_groups(np.ix_(*choose_slice(shape, at))).reshape(-1)
    assert [shown["numbers"][owner] for owner in spread(shown["owner"])] == expected.tolist()


@pytest.mark.parametrize(
    ("norm", "options"),
    [
        *((norm.name, {}) for norm in NORMS.values() if norm.parameter_names),
        pytest.param("gn", {"group_order": "interleaved"}, id="interleaved"),
        pytest.param("gn", {"axes": (1, 2, 3), "groups": 4}, id="gn of 4"),
        pytest.param("ln", {"axes": (1, 2, 3)}, id="ln of CHW"),
        pytest.param("rms", {"like": "gemma"}, id="offset"),
    ],
)
def test_each_cell_has_its_gamma_and_beta(norm, options):
    values = normal(*SHAPE, dtype="float64")
    chosen = options_for(norm, SHAPE) | options
    plan, rng = normalize(values, norm, **chosen).plan, np.random.default_rng(0)
    parameters = {name: rng.normal(size=plan.parameters.shape) for name in NORMS[norm].parameter_names}
    shown = describe(make(values, norm, **chosen, **parameters))["results"][0]
    held = {
        name: np.array(shown["parameters"]["values"][name])[spread(shown["parameters"]["owner"])]
        for name in parameters
    }
    assert all(set(held[name]) == set(parameter.reshape(-1)) for name, parameter in parameters.items())
    standard = normalize(values, norm, **chosen).normalized.reshape(-1)
    expected = standard * (held["gamma"] + plan.spec.gamma_offset) + held.get("beta", 0.0)
    np.testing.assert_allclose(shown["normalized"], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.all_quick
@pytest.mark.parametrize("norm", NORMS)
def test_every_name_in_the_arithmetic_has_a_value(norm):
    page = make(normal(*SHAPE), norm, **dict.fromkeys(NORMS[norm].parameter_names, 2.0))
    shown = describe(page)["results"][0]
    known = {"n", "eps", "x", "y", "rounded", "nan", "gamma", "beta", *shown["statistics"], *shown["constants"]}
    assert shown["eps"] is not None or "eps" not in str(shown["groupArithmetic"])
    for definition in [*shown["groupArithmetic"][0], *shown["valueArithmetic"]]:
        assert names_in(definition.get("formula")) | names_in(definition.get("value")) <= known
        known.add(definition.get("name"))
    assert {"divisor", "y"} <= known


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("parameters", [{}, {"gamma": 2.0}], ids=["bare", "scaled"])
def test_a_gate_behind_the_norm_is_a_part_of_the_arithmetic(parameters, dtype):
    values, gate = normal(*SHAPE, dtype=dtype), normal(SHAPE[-1])
    page = make(values, "rms", gate=gate, **parameters)
    shown = describe(page)["results"][0]
    assert shown["formula"][-1] == [" · silu(z)", []]
    factor = shown["factor"]
    assert (factor["name"], factor["label"]) == ("act(z)", "silu(z)")
    named = {each.get("name"): each.get("formula") for each in shown["valueArithmetic"]}
    before = "norm(x)" if parameters else "x̂"
    assert named["y"] == ["product", before, "act(z)"]
    (result,) = page.results
    bare = np.array(shown["standardized"]) * parameters.get("gamma", 1.0)
    assert bare * np.array(factor["values"]) == pytest.approx(result.normalized.reshape(-1), rel=1e-6)


def test_a_gate_before_the_norm_makes_the_tensor_of_a_page():
    shown = describe(make(normal(*SHAPE), "rms", gate=normal(*SHAPE), gate_order="before"))["results"][0]
    assert shown["formula"][-1] == [" of x · silu(z)", []]
    assert shown["factor"] is None


def names_in(tree):
    """Return the names that a tree is made of; the label of a part that is worked out is none."""
    if isinstance(tree, list):
        parts = tree[1:2] if tree[0] == "worked" else tree[1:]
        return set().union(*map(names_in, parts))
    return {tree} if isinstance(tree, str) else set()


@pytest.mark.parametrize("script", sorted((ROOT / "normcli" / "page").glob("*.js")), ids=lambda path: path.name)
def test_the_scripts_know_no_norm_no_divisor_and_no_place_of_eps(script):
    words = {word for row in NORMS.values() for word in (*row.names, *row.divisor.statistics)} | set(EpsMode)
    words -= {"norm", "middle"}  # which also are what a column is headed, and where a text is anchored
    code = re.sub(r"(?s:/\*.*?\*/)|//.*", "", script.read_text())
    assert not words & set(re.findall(r'"([^"\n]*)"', code))
    shared = {"in", "floor", "min", "max"}  # those are English and JavaScript too
    assert not words - shared & set(re.findall(r"[\w-]+", code))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_what_was_rounded_before_gamma_is_told(dtype):
    values, gamma = normal(*SHAPE, dtype=dtype), np.linspace(0.5, 2, SHAPE[-1])
    (result,) = make(values, "rms", like="llama").results
    shown = describe(make(values, "rms", like="llama", gamma=gamma))["results"][0]
    assert shown["standardized"] == result.normalized.reshape(-1).tolist()
    assert shown["roundsTwice"]
    assert not describe(make(values, "rms", like="llama"))["results"][0]["roundsTwice"]
    assert not describe(make(values, "rms", gamma=gamma))["results"][0]["roundsTwice"]
    doubles = describe(make(values.astype("f8"), "rms", like="llama", gamma=gamma))["results"][0]
    assert not doubles["roundsTwice"]


def test_what_is_not_finite_is_spelled():
    content = describe(make([[1.0, np.nan], [np.inf, 2.0]], "ln", gamma=[-np.inf, 1.0]))
    assert content["input"] == [1.0, "nan", "inf", 2.0]
    assert content["results"][0]["parameters"]["values"]["gamma"] == ["-inf", 1.0]
    assert len(content["results"][0]["warnings"]) == 2


@pytest.mark.parametrize("shape", [(), (1,), (0, 3), (3, 0), (0,)], ids=str)
def test_tensors_of_few_or_no_values(shape):
    content = describe(make(np.ones(shape), "ln"))
    assert len(content["input"]) == math.prod(shape)
    assert len(spread(content["results"][0]["owner"])) == math.prod(shape)
    assert content["size"] == list(shape)


# -- the file


def test_the_page_is_one_small_file_of_ascii_that_refers_to_nothing():
    text = render(Answer(*make_answer(normal(2, 3, 4, 4))), format_name="html")
    assert text.isascii()
    assert len(text) < 100_000
    assert not re.search(r"(?:src|href)=\"(?!data:,)", text)
    assert set(re.findall(r"https?:[^\"]*", text)) == {"http://www.w3.org/2000/svg"}  # a name, not a place
    assert "@import" not in text
    assert "url(" not in text


def make_answer(values, norm="bn", source="x.npy", **options):
    page = make(values, norm, source=source, **options)
    return page.results[0], page.tensor


def test_the_policy_names_the_one_script_and_the_one_style():
    text = render(Answer(*make_answer(normal(2, 3))), format_name="html")
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    for directive, content in (("script-src", script), ("style-src", style)):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    for background, ink in PALETTE:
        assert f"--fill:{background};--ink:{ink}" in style


def test_names_from_outside_do_no_harm():
    result, _ = make_answer(normal(2, 2))
    unreadable = Stub([result], Tensor(result.input, "\udcff.npy"), title="\udcff.npy")
    assert render(unreadable, format_name="html").isascii()
    tensor = Tensor(result.input, HARM, (HARM, "b"))
    text = render(Stub([result], tensor, title=HARM), format_name="html")
    assert "<img" not in text
    assert text.count("</script>") == 2
    assert text.isascii()
    content = read_back(text)
    shown = make_printable(HARM)
    assert content["source"] == shown
    assert content["columns"] == [shown, "b"]
    assert f"<h1>{html.escape(HARM)}</h1>".encode("ascii", "xmlcharrefreplace").decode() in text


def test_a_document_of_no_results_is_a_page_of_its_sections():
    text = render(Catalogue(), format_name="html")
    assert "<h1>normcli</h1>" in text
    assert "batch normalization" in text
    assert "<script" not in text


# -- the command line


@pytest.mark.parametrize("norm", ["bn", "lrn"])
def test_a_page_goes_to_standard_output_or_to_a_file_alike(norm, normcli, tmp_path):
    path = tmp_path / "page.htm"
    assert normcli(norm, "--shape", "3,4,3,3", "-o", path) == Ran(0, b"", "")
    ran = normcli(norm, "--shape", "3,4,3,3", "-f", "html")
    assert (ran.code, ran.err, ran.raw) == (0, "", path.read_bytes())
    shown, told = read_back(ran.out)["results"][0], normcli(norm, "--shape", "3,4,3,3", "-f", "json").json
    assert shown["label"] == norm
    assert shown["normalized"] == np.reshape(told["normalized"], -1).tolist()


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["-o", "x.npy", "-f", "html"], "has the suffix .npy; .html, .htm, .svg, .png are known"),
        (["-o", "x.html", "-f", "json"], "--format json and --output x.html are two formats"),
        (["-o", "x.html", "--print", "mean"], "--print prints bare numbers"),
        (["-o", "-", "-f", "html"], "--format html alone puts a page there"),
        (["-o", "none/x.html"], "there is no folder none"),
    ],
    ids=["npy as html", "json", "--print", "both on stdout", "no folder"],
)
def test_what_is_no_page_is_said_on_one_line(arguments, told, normcli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    require_refusal(normcli("bn", "--shape", "2,3", *arguments), 2, told)
    assert not list(tmp_path.iterdir())
