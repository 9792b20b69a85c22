"""What was guessed of a tensor's axes is said, where another guess has other groups, or names them otherwise."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.documents.axes_words import list_assumed
from normcli.norms.plan import make_plan
from normcli.norms.request import Request
from normcli.norms.table import NORMS

TOKENS = "layout NCL; --layout NLC for tokens"
IMAGES = "W alone is reduced; --axes CHW for images"


def list_facts(*requests, shape):
    plans = [make_plan(request, shape, np.dtype("f8")) for request in requests]
    return [fact for _, facts in list_assumed(plans) for fact in facts]


@pytest.mark.parametrize(
    ("norm", "options", "shape", "facts"),
    [
        pytest.param("bn", {}, (2, 4, 6), [TOKENS], id="tokens"),
        pytest.param("gn", {"groups": 2}, (2, 4, 6), [TOKENS], id="groups of channels"),
        pytest.param("gn", {"groups": 4}, (2, 4, 6), [], id="groups that tokens cannot have"),
        pytest.param("bn", {"axes": "0,2"}, (2, 4, 6), [], id="axes by number"),
        pytest.param("bn", {"axes": "NL"}, (2, 4, 6), [TOKENS], id="axes by letter"),
        pytest.param("ln", {}, (2, 4, 6), [TOKENS], id="names of tokens that are reduced alone"),
        pytest.param("bn", {"like": "keras"}, (2, 4, 6), [], id="a framework's layout"),
        pytest.param(
            "bn", {}, (2, 8, 8, 3), ["layout NCHW; --layout NHWC where channels are last"], id="photos"
        ),
        pytest.param("ln", {}, (2, 3, 4, 4), [IMAGES], id="ln of images"),
        pytest.param("rms", {"layout": "NCHW"}, (2, 3, 4, 4), [IMAGES], id="the axes alone are guessed"),
        pytest.param("ln", {"layout": "NHWC"}, (2, 4, 4, 3), [], id="features last"),
        pytest.param("ln", {}, (2, 3, 2, 4, 4), ["W alone is reduced; --axes CDHW for volumes"], id="volumes"),
        pytest.param("bn", {}, (2, 2, 2, 2, 2, 2), [], id="no letters"),
    ],
)
def test_what_was_guessed_is_said_where_it_matters(norm, options, shape, facts):
    assert list_facts(Request(norm, **options), shape=shape) == facts


def test_of_several_norms_it_is_said_which_reduces_the_last_axis_alone():
    requests = (Request("bn"), Request("ln"), Request("rms"))
    assert list_facts(*requests, shape=(2, 3, 4, 4)) == [
        f"{norm} reduces W alone; {norm}:axes=CHW for images" for norm in ("ln", "rms")
    ]


def test_a_batch_norm_of_other_axes_says_that_it_leaves_the_batch():
    found = list_facts(Request("bn", axes="CHW"), Request("ln", axes="CHW"), shape=(2, 3, 4, 4))
    assert found == ["bn does not reduce N with these axes: each sample has its own statistics"]


@pytest.mark.parametrize("norm", NORMS)
def test_the_example_of_each_help_guesses_nothing(norm, normcli):
    first = next(line for line in normcli(norm, "--help").out.splitlines() if f"  normcli {norm} " in line)
    ran = normcli(*first.split()[1:])
    assert (ran.code, ran.err) == (0, "")
    assert "assumed" not in ran.out
