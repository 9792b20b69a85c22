"""The table of conventions walked row by row, and what `--like` makes of a row."""

from __future__ import annotations

import numpy as np
import pytest

from normcli import NORMS, normalize
from normcli.dtypes import find_type
from normcli.errors import UsageError
from normcli.norms.conventions import CONVENTIONS, find_convention, list_frameworks
from normcli.norms.options import find_option
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.rules import AxesRule, EpsRule, GroupOrder

ROWS = [pytest.param(row, id=f"{row.norm} {row.framework}") for row in CONVENTIONS]


def test_each_row_has_a_version_a_source_and_a_precision():
    assert [row for row in CONVENTIONS if not (row.version and row.source and row.precision)] == []


def test_each_row_is_of_a_norm():
    assert {row.norm for row in CONVENTIONS} <= set(NORMS)


def test_eps_has_a_place_exactly_where_there_is_an_eps():
    assert [row for row in CONVENTIONS if (row.eps is None) != (row.eps_mode is None)] == []


def test_a_row_says_its_ddof_exactly_where_the_norm_has_one():
    ddof = find_option("ddof")
    assert [row for row in CONVENTIONS if (row.ddof is not None) != ddof.belongs_to(NORMS[row.norm])] == []


def test_every_norm_is_one_of_a_framework_but_midrange():
    assert [norm for norm in NORMS if not list_frameworks(norm)] == ["midrange"]


def test_a_framework_is_found_in_any_case():
    assert find_convention("Keras", "bn") is find_convention("keras", "bn")


@pytest.mark.parametrize(
    ("option", "value"),
    [("eps", 0.25), ("eps_mode", "outside"), ("ddof", 1), ("layout", "NCHW"), ("axes", (1, 2))],
)
def test_an_option_overrides_the_convention(option, value):
    def find(**options):
        plan = make_plan(Request("bn", like="keras", **options), (2, 3, 4, 5), np.dtype("f8"))
        return {**plan.spec._asdict(), "layout": plan.grid.layout.letters, "axes": plan.grid.axes}

    followed = find()
    assert (followed["layout"], followed["eps"], followed["ddof"]) == ("NHWC", 1e-3, 0)
    assert find(**{option: value})[option] == value


@pytest.mark.parametrize(
    ("dtype", "eps"),
    [
        pytest.param("float16", 2.0**-23, id="half is calculated in float32"),
        pytest.param("float32", 2.0**-23, id="float32"),
        pytest.param("float64", 2.0**-52, id="float64"),
        pytest.param("int64", 2.0**-52, id="integers count as float64"),
    ],
)
def test_the_machine_epsilon_is_that_of_the_arithmetic(dtype, eps):
    assert normalize(np.ones((2, 3), dtype), "rms", like="torch").plan.spec.eps == eps


def test_the_eps_of_per_image_standardization_is_of_the_image():
    plan = normalize(np.zeros((2, 3, 4, 5)), "zscore", like="tensorflow").plan
    assert (plan.grid.axes, plan.spec.eps) == ((1, 2, 3), 1 / np.sqrt(60))


@pytest.mark.parametrize(
    ("norm", "like", "options", "shape", "expected"),
    [
        pytest.param("ln", "torch", {}, (2, 3, 4, 5), (5,), id="the reduced axes"),
        pytest.param("ln", "equinox", {}, (2, 3, 4, 5), (3, 4, 5), id="a whole sample"),
        pytest.param("ln", "timm", {}, (2, 3, 4, 5), (3,), id="the channels of a position"),
        pytest.param("ln", "flax-linen", {"axes": (1, 2)}, (2, 3, 4), (4,), id="feature axes that stay"),
        pytest.param("gn", "onnx", {"groups": 3}, (2, 6, 4), (6,), id="a gamma for each channel"),
        pytest.param("gn", "onnx-18", {"groups": 3}, (2, 6, 4), (3,), id="a gamma for each group"),
        pytest.param("gn", "mlx", {"groups": 3}, (2, 4, 6), (6,), id="interleaved"),
        pytest.param("wn", "flax-nnx", {}, (3, 4, 5), (5,), id="weights with their output last"),
    ],
)
def test_parameter_shape(norm, like, options, shape, expected):
    plan = make_plan(Request(norm, like=like, **options), shape, np.dtype("f8"))
    assert plan.parameters.shape == expected


@pytest.mark.parametrize("layout", ["NCHW", "NHWC", "HWCN"])
@pytest.mark.parametrize("groups", [1, 2, 3, 6])
def test_interleaved_groups_are_every_nth_channel(layout, groups, rng):
    shape = tuple({"N": 2, "C": 6, "H": 3, "W": 4}[letter] for letter in layout)
    x = rng.normal(size=shape)
    gamma, beta = rng.normal(size=(2, 6))
    ours = normalize(x, "gn", groups=groups, group_order="interleaved", layout=layout, gamma=gamma, beta=beta)
    channel = layout.index("C")
    order = np.argsort(np.arange(6) % groups, kind="stable")
    sorted_ = normalize(
        np.take(x, order, channel), "gn", groups=groups, layout=layout, gamma=gamma[order], beta=beta[order]
    )
    np.testing.assert_array_equal(np.take(ours.normalized, order, channel), sorted_.normalized)
    np.testing.assert_array_equal(ours.mean, sorted_.mean)
    assert ours.plan.grid.group_order is GroupOrder.INTERLEAVED


def test_a_parameter_of_groups_is_that_of_its_channels(rng):
    x, gamma = rng.normal(size=(2, 6, 4)), rng.normal(size=3)
    by_group = normalize(x, "gn", groups=3, like="onnx-18", gamma=gamma).normalized
    by_channel = normalize(x, "gn", groups=3, gamma=np.repeat(gamma, 2)).normalized
    np.testing.assert_array_equal(by_group, by_channel)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_gamma_offset(dtype, rng):
    x, gamma = rng.normal(size=(4, 7)).astype(dtype), rng.normal(size=7).astype(dtype)
    offset = normalize(x, "rms", like="gemma", gamma=gamma).normalized
    np.testing.assert_array_equal(
        offset, normalize(x, "rms", eps=1e-6, gamma=1.0 + gamma.astype("float64")).normalized
    )


def test_a_gamma_of_minus_0_keeps_its_sign():
    normalized = normalize(np.array([[1.0, 3.0]], "float32"), "rms", gamma=-0.0).normalized
    np.testing.assert_array_equal(np.signbit(normalized), [[True, True]])


def test_the_formula_tells_the_offset(normcli):
    given = ("rms", "--shape", "2,3", "--gamma", 1, "--like", "gemma")
    assert "x / √(ms + eps) · (1 + gamma)" in normcli(*given).out
    answer = normcli(*given, "-f", "json").json
    assert (answer["gamma_offset"], answer["like"]) == (1, "gemma")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("shape", [(6, 33), (3, 70_000)], ids=["one pass", "long rows"])
@pytest.mark.parametrize("like", ["llama", "onnx", "t5"])
def test_what_is_rounded_before_gamma(like, dtype, shape, rng):
    kind = find_type(dtype)
    x, gamma = rng.normal(size=shape).astype(kind), rng.normal(size=shape[-1]).astype(kind)
    ours = normalize(x, "rms", like=like, gamma=gamma).normalized
    rounded = normalize(x, "rms", like=like).normalized.astype("float64")
    product = rounded * gamma.astype("float64")  # exact
    np.testing.assert_array_equal(
        ours.astype("float64"), product.astype("float32").astype(kind).astype("float64")
    )
    once = normalize(x, "rms", eps=find_convention(like, "rms").eps, gamma=gamma).normalized
    assert (ours != once).any()


def test_an_even_window_of_openvino_has_one_channel_less():
    plan = make_plan(Request("lrn", like="openvino", axes=1, size=4), (1, 5), np.dtype("f8"))
    window = plan.spec.window
    assert window is not None
    assert (window.before, window.after, plan.grid.group_size, window.size, window.divisor) == (1, 1, 3, 4, 4)


@pytest.mark.parametrize("format_", ["table", "json", "jsonl", "csv", "markdown"])
def test_conventions_in_every_format(format_, normcli):
    ran = normcli("conventions", "batchnorm", "--format", format_)
    assert (ran.code, ran.err) == (0, "")
    assert all(framework in ran.out for framework in list_frameworks("bn"))
    assert "annotated-transformer" not in ran.out


def test_conventions_as_json_and_of_a_framework(normcli):
    rows = normcli("conventions", "-f", "json").json["conventions"]
    torch = next(row for row in rows if (row["framework"], row["norm"]) == ("torch", "bn"))
    assert torch["running"] == {"momentum": 0.1, "weight_of": "new", "ddof": 1}
    of_keras = normcli("conventions", "Keras", "-f", "json").json["conventions"]
    assert of_keras == [row for row in rows if row["framework"] == "keras"]


@pytest.mark.parametrize("row", ROWS)
def test_every_answer_names_its_convention(row, normcli):
    given = ["--eps", 1e-5] if row.eps is EpsRule.GIVEN else []
    given += ["--axes", "1"] if row.axes is AxesRule.GIVEN else []
    given += ["--groups", 2] if row.norm == "gn" else []
    ran = normcli(row.norm, "--shape", "2,4,4,4", "--like", row.framework, *given)
    assert ran.code == 0, ran.err
    assert f"like {row.framework}" in ran.out


@pytest.mark.parametrize(
    ("norm", "like", "options"),
    [
        pytest.param("ln", "flax-linen", {"axes": (1, 2), "feature_axes": (1, 2)}, id="reduced"),
        pytest.param("rms", "flax-nnx", {"axes": 2, "feature_axes": (1, 2)}, id="kept and reduced"),
        pytest.param("bn", None, {"feature_axes": (1, 2)}, id="beyond the channel"),
        pytest.param("wn", "flax-linen", {"keep": (1, 2)}, id="weight norm"),
    ],
)
def test_gamma_lies_along_the_feature_axes(norm, like, options, rng):
    x, gamma = rng.normal(size=(2, 3, 4)), rng.normal(size=(3, 4))
    bare = normalize(x, norm, like=like, **options)
    assert bare.plan.parameters.shape == (3, 4)
    scaled = normalize(x, norm, like=like, gamma=gamma, **options).normalized
    np.testing.assert_allclose(scaled, bare.normalized * gamma, rtol=1e-15)


@pytest.mark.parametrize("norm", ["zscore", "minmax", "maxabs", "robust"])
def test_nan_does_not_count_where_the_framework_omits_it(norm, normcli):
    given = (norm, "--data", '[[1],["nan"],[3],[4]]', "-f", "json")
    answer = normcli(*given, "--like", "sklearn").json
    assert answer["normalized"] == normcli(*given, "--nan", "omit").json["normalized"]
    asked = normcli(*given, "--like", "sklearn", "--nan", "propagate")
    assert asked.json["normalized"] == [["nan"]] * 4
    assert "holds NaN: its statistics and values are NaN, though sklearn omits it" in asked.err


@pytest.mark.parametrize(
    ("given", "data", "sentence"),
    [
        pytest.param("lp --like torch --dtype float16", "[[30000, 40000]]", "", id="its input is float64"),
        pytest.param("bn --like torch", "[[1, 2]]", "torch refuses to train on one value a group", id="one value"),
        pytest.param("bn --like torch --eps 0", "[[1, 2], [3, 5]]", "refuses to train with an eps of 0", id="no eps"),
        pytest.param("maxabs --like sklearn", '[[1], ["inf"]]', "sklearn refuses infinities", id="infinity"),
        pytest.param(
            "minmax --like sklearn", "[[1e9], [1000000000.000001]]",
            "subtracts min / range from x / range, which float64 has no digits for", id="cancels",
        ),
        pytest.param("zscore --like scipy", "[[3]]", "its normalized value NaN", id="a single value"),
        pytest.param(
            "minmax --like sklearn", "[[0], [1e-17]]",
            "a range below 10 machine epsilons, which counts as 0: it is divided by 1", id="nearly constant",
        ),
    ],
)  # fmt: skip
def test_what_is_not_followed_is_said(given, data, sentence, normcli):
    ran = normcli(*given.split(), "--data", data)
    assert ran.code == 0
    assert sentence in ran.err if sentence else ran.err == ""


def test_what_is_not_followed_is_said_by_every_verb_and_an_error_under_strict(normcli, tmp_path):
    far = ["ln", "--like", "flax-linen", "--data", "[[1e9, 1000000001]]"]
    normcli(*far, "-o", tmp_path / "y.npy")
    checked, refused = normcli("check", *far, "--actual", tmp_path / "y.npy"), normcli(*far, "--strict")
    assert (checked.code, refused.code, refused.out) == (0, 4, "")
    assert all("flax-linen takes its variance as E[x²] − E[x]²" in ran.err for ran in (checked, refused))


def test_what_the_columns_do_not_hold_is_in_the_notes(normcli):
    out = " ".join(normcli("conventions", "maxabs").out.split())
    assert "MaxAbsScaler. A length below 10 machine epsilons counts as 0. NaN is omitted." in out


@pytest.mark.parametrize(
    ("norm", "name", "hint"),
    [
        pytest.param("mvn", "openvinx", "did you mean openvino or openvino-2?", id="near to three"),
        pytest.param("ln", "Torchvision", "did you mean torch?", id="begins as one does"),
        pytest.param("wn", "paddle", "wn knows torch, flax-linen, flax-nnx, equinox", id="near to none"),
        pytest.param("wn", "", "wn knows torch, flax-linen, flax-nnx, equinox", id="nothing"),
    ],
)
def test_a_framework_that_is_not_there_is_refused_with_those_near_it(norm, name, hint):
    with pytest.raises(UsageError) as raised:
        find_convention(name, norm)
    assert str(raised.value) == f"like={name!r}: {hint}"


@pytest.mark.parametrize("like", ["torch", None])
def test_eps_is_of_the_dtype_that_it_is_added_in(like):
    """A convention that calculates short floats in their own dtype rounds it to that."""
    for dtype in (np.float16, np.float32):
        plan = make_plan(Request("lp", like=like, eps=1e-3), (4, 4), np.dtype(dtype))
        assert plan.spec.eps == (float(dtype(1e-3)) if like and dtype is np.float16 else 1e-3)
