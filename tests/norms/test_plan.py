from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from normcli.errors import DataError, UsageError
from normcli.norms.plan import make_plan
from normcli.norms.request import Request

SHAPE = (2, 6, 4, 5)


@pytest.mark.parametrize(
    ("request_", "axes", "kept", "count", "size", "keepdims"),
    [
        pytest.param(Request("bn"), (0, 2, 3), (1,), 6, 40, (1, 6, 1, 1), id="bn"),
        pytest.param(Request("ln"), (3,), (0, 1, 2), 48, 5, (2, 6, 4, 1), id="ln"),
        pytest.param(Request("in"), (2, 3), (0, 1), 12, 20, (2, 6, 1, 1), id="in"),
        pytest.param(Request("gn", groups=3), (1, 2, 3), (0, 1), 6, 40, (2, 3, 1, 1), id="gn"),
        pytest.param(Request("wn"), (1, 2, 3), (0,), 2, 120, (2, 1, 1, 1), id="wn"),
        pytest.param(Request("zscore"), (0,), (1, 2, 3), 120, 2, (1, 6, 4, 5), id="zscore"),
        pytest.param(Request("lrn"), (1,), (0, 1, 2, 3), 240, 5, SHAPE, id="lrn"),
        pytest.param(Request("bn", layout="NHWC"), (0, 1, 2), (3,), 5, 48, (1, 1, 1, 5), id="channel last"),
        pytest.param(Request("ln", axes="CHW"), (1, 2, 3), (0,), 2, 120, (2, 1, 1, 1), id="axes"),
        pytest.param(Request("ln", keep="N"), (1, 2, 3), (0,), 2, 120, (2, 1, 1, 1), id="keep"),
        pytest.param(Request("bn", axes=""), (), (0, 1, 2, 3), 240, 1, SHAPE, id="nothing reduced"),
        pytest.param(Request("bn", keep=""), (0, 1, 2, 3), (), 1, 240, (1, 1, 1, 1), id="all reduced"),
    ],
)
def test_groups(request_, axes, kept, count, size, keepdims):
    plan = make_plan(request_, SHAPE, np.dtype("f8"))
    assert (plan.grid.axes, plan.grid.kept) == (axes, kept)
    assert (plan.grid.group_count, plan.grid.group_size) == (count, size)
    assert plan.grid.keepdims_shape == keepdims


@pytest.mark.parametrize("shape", [(5,), (2, 6), (5, 1), (2, 6, 1, 1), (1, 1, 6, 1, 1)])
def test_parameters_of_another_shape_are_refused(shape):
    with pytest.raises(DataError, match=r"gamma has the shape .*; bn of \(2, 6, 4, 5\) takes \(6,\)"):
        make_plan(Request("bn"), SHAPE, np.dtype("f8")).fit_parameter("gamma", np.ones(shape))


@pytest.mark.parametrize(
    ("request_", "advice"),
    [
        pytest.param(Request("bn"), "; --layout NHWC where channels are last", id="bn"),
        pytest.param(Request("bn", layout="NCHW"), "", id="a layout is given"),
        pytest.param(Request("bn", axes=(1, 2, 3)), "", id="the channels are reduced"),
    ],
)
def test_parameters_of_channels_that_are_last_are_refused_with_the_layout(request_, advice):
    plan = make_plan(request_, (2, 6, 6, 4), np.dtype("f8"))
    assert plan.advise_layout((4,)) == advice
    assert plan.advise_layout((5,)) == ""
    with pytest.raises(DataError, match=rf" takes \(\d,\){advice}$"):
        plan.fit_parameter("gamma", np.ones(4))


@pytest.mark.parametrize(
    "given", ["--eval --state s.npz", "--eval --running-mean [1,2,3,4] --running-var 1"], ids=["state", "given"]
)
def test_running_statistics_of_channels_that_are_last_are_refused(given, normcli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    photos = ("bn", "--shape", "2,6,6,4")
    assert normcli(*photos, "--layout", "NHWC", "--momentum", "0.1", "--state", "s.npz").code == 0
    ran = normcli(*photos, *given.split())
    assert (ran.code, ran.err.endswith(" takes (6,); --layout NHWC where channels are last\n")) == (3, True)


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("request_", "message"),
    [
        pytest.param(Request("bn", groups=2), "bn has no option groups", id="groups of another norm"),
        pytest.param(Request("minmax", eps=1.0), "minmax has no option eps", id="eps of minmax"),
        pytest.param(Request("zscore", eps_mode="inside"), "give eps too", id="a place of no eps"),
        pytest.param(Request("l1", p=3.0), "l1 fixes p", id="p of l1"),
        pytest.param(Request("bn", eps=-1.0), "not a finite number ≥ 0", id="negative eps"),
        pytest.param(Request("bn", axes="C", keep="N"), "give one of them", id="axes and keep"),
        pytest.param(Request("ln", like="flax"), "did you mean flax-linen or flax-nnx?", id="half a name"),
        pytest.param(Request("mvn", like="openvino"), "no default axes; give them", id="no default axes"),
        pytest.param(Request("gn", groups=2, like="openvino"), "no default eps; give it", id="no default eps"),
        pytest.param(Request("l1", axes="C", like="tensorflow"), "squares of ℓ2; p 1 has none", id="p of ℓ2"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(request_, message):
    with pytest.raises(UsageError, match=message):
        make_plan(request_, SHAPE, np.dtype("f8"))


@pytest.mark.parametrize("shape", [(0, 2**20 + 1), (0, 2**31, 4), (2**62, 0)])
def test_very_many_groups_of_no_values_are_refused(shape):
    with pytest.raises(DataError, match=r"groups and no values; .* are given for 1,048,576 groups at most"):
        make_plan(Request("zscore", axes=shape.index(0)), shape, np.dtype("f8"))


@pytest.mark.parametrize(
    ("shape", "count"), [((0, 2**20), 2**20), ((1, 2**31), 2**31), ((0, 3, 2**31), 3), ((0, 0), 0)]
)
def test_many_groups_or_no_values_are_no_error(shape, count):
    assert make_plan(Request("bn"), shape, np.dtype("f8")).grid.group_count == count


def test_a_channel_among_words_is_named_and_not_guessed():
    with pytest.raises(UsageError, match="none of the axes time, lat, lon is called channel"):
        make_plan(Request("bn", layout="time,lat,lon"), (3, 4, 5), np.dtype("f8"))
    plan = make_plan(Request("bn", layout="time,band,lon"), (3, 4, 5), np.dtype("f8"))
    assert plan.grid.axes == (0, 2)
    assert plan.grid.group_name(1) == "band=1"


@pytest.mark.parametrize(
    ("norm", "name", "shape", "fitted"),
    [
        pytest.param("bn", "gamma", (), (6,), id="a number"),
        pytest.param("bn", "gamma", (6, 1), (6,), id="a column"),
        pytest.param("bn", "gamma", (1, 6, 1, 1), (6,), id="at the rank of the tensor, in the middle"),
        pytest.param("ln", "gamma", (1,), (5,), id="one for all"),
        pytest.param("ln", "beta", (1, 1, 1, 5), (5,), id="at the rank of the tensor"),
        pytest.param("wn", "gamma", (2, 1, 1, 1), (2,), id="at the rank of the tensor, kept"),
    ],
)
def test_parameters_are_fitted_in_their_order(norm, name, shape, fitted):
    plan = make_plan(Request(norm), SHAPE, np.dtype("f8"))
    values = np.arange(float(np.prod(shape))).reshape(shape)
    found = plan.fit_parameter(name, values)
    np.testing.assert_array_equal(found, np.broadcast_to(values.reshape(-1), fitted), strict=True)
    assert not found.flags.writeable


def test_running_statistics_are_of_the_groups_that_batches_share():
    plan = make_plan(Request("in"), SHAPE, np.dtype("f8"))
    assert plan.fit_running("mean", np.arange(6, dtype="f4")).tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    assert plan.fit_running("mean", np.ones((1, 6, 1, 1))).dtype == np.float64
    with pytest.raises(DataError, match=r"mean has the shape \(2, 6\); in of \(2, 6, 4, 5\) takes \(6,\)"):
        plan.fit_running("mean", np.ones((2, 6)))
    with pytest.raises(UsageError, match="ln has no mean: no running statistics are kept of it"):
        make_plan(Request("ln"), SHAPE, np.dtype("f8")).fit_running("mean", np.ones(1))


def test_plans_are_the_same_for_the_same_request_and_nobody_changes_them():
    plan = make_plan(Request("ln"), SHAPE, np.dtype("f8"))
    assert make_plan(Request("ln"), SHAPE, np.dtype("f8")) is plan
    with pytest.raises(FrozenInstanceError):
        plan.spec = plan.spec._replace(eps=1.0)


def place(request, shape, **given):
    plan = make_plan(request, shape, np.dtype("f8"))
    return plan.adopt_parameters({name: np.ones(lengths) for name, lengths in given.items()}).parameters


@pytest.mark.parametrize(
    ("request_", "shape", "given", "axes"),
    [
        pytest.param(Request("ln"), (2, 3, 8), (2, 1, 8), (0, 2), id="of each sample"),
        pytest.param(Request("bn"), (2, 6, 4, 5), (2, 6, 1, 1), (0, 1), id="of each sample and channel"),
        pytest.param(Request("rms"), (2, 3, 4, 8), (4, 8), (2, 3), id="of each head"),
        pytest.param(Request("rms"), (2, 4, 3, 8), (4, 1, 8), (1, 3), id="of each head before positions"),
        pytest.param(Request("rms"), (2, 3, 4, 8), (32,), (2, 3), id="flat over the projection"),
        pytest.param(Request("rms"), (2, 3, 4, 8), (96,), (1, 2, 3), id="flat over three axes"),
        pytest.param(Request("gn", groups=3), (2, 6, 4, 5), (3,), (1,), id="of each group"),
        pytest.param(Request("ln", axes=(1, 2)), (2, 3, 8), (3, 1), (1,), id="along one of the reduced axes"),
        pytest.param(Request("ln"), (2, 2), (2, 1), (0,), id="of each row, though there are as many columns"),
    ],
)
def test_gamma_of_any_shape_that_broadcasts_is_taken_as_it_is(request_, shape, given, axes):
    found = place(request_, shape, gamma=given)
    assert (found.axes, found.shape, found.alike) == (axes, given, True)


@pytest.mark.parametrize(
    ("request_", "shape", "given", "own"),
    [
        pytest.param(Request("ws"), (4, 4), (4,), (0,), id="rows or columns"),
        pytest.param(Request("bn"), (2, 5, 3, 5), (5,), (1,), id="channels or columns"),
        pytest.param(Request("gn", groups=5), (2, 5, 3, 5), (5,), (1,), id="groups or columns"),
        pytest.param(Request("ln"), (2, 3, 8), (), (2,), id="one number"),
        pytest.param(Request("ln", feature_axes=(1, 2)), (2, 3, 8), (3, 8), (1, 2), id="as it is asked for"),
    ],
)
def test_a_shape_that_could_mean_two_things_lies_along_the_norms_own_axes(request_, shape, given, own):
    found = place(request_, shape, gamma=given)
    assert (found.axes, found.own) == (own, None)


def test_gamma_and_beta_of_different_shapes_lie_along_the_axes_of_both():
    found = place(Request("bn"), (2, 6, 4), gamma=(6,), beta=(2, 1, 1))
    assert (found.axes, found.shape, found.alike) == ((0, 1), (2, 6, 1), False)


def test_a_channel_that_is_last_is_no_gamma_of_columns():
    plan = make_plan(Request("bn"), (2, 4, 5, 3), np.dtype("f8"))
    assert plan.adopt_parameters({"gamma": np.ones(3)}) is plan


def test_results_of_long_doubles_are_doubles_and_others_in_the_machines_byte_order():
    plan = make_plan(Request("ln"), SHAPE, np.dtype("f8"))
    assert plan.choose_output_dtype(np.dtype(np.longdouble)) == np.float64
    assert plan.choose_output_dtype(np.dtype(">f4")).isnative
