from __future__ import annotations

import pytest

from normcli.errors import UsageError
from normcli.norms.layout import find_layout, make_layout


@pytest.mark.parametrize(
    ("text", "ndim", "letters", "batch", "channel"),
    [
        pytest.param(None, 2, "NC", 0, 1, id="default 2-D"),
        pytest.param(None, 3, "NCL", 0, 1, id="default 3-D"),
        pytest.param(None, 5, "NCDHW", 0, 1, id="default 5-D"),
        pytest.param(None, 1, None, 0, None, id="1-D has no channel"),
        pytest.param(None, 0, None, None, None, id="0-D has nothing"),
        pytest.param(None, 6, None, 0, 1, id="6-D has numbers"),
        pytest.param("nhwc", 4, "NHWC", 0, 3, id="lower case"),
        pytest.param("BND", 3, "BND", 0, 2, id="the last letter is the channel"),
        pytest.param("HWCN", 4, "HWCN", 3, 2, id="batch last"),
        pytest.param("CHW", 3, "CHW", 0, 0, id="no batch letter"),
    ],
)
def test_layout(text, ndim, letters, batch, channel):
    layout = make_layout(text, ndim)
    assert (layout.letters, layout.batch, layout.channel) == (letters, batch, channel)


WORDS = "time,channel,lon"


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("layout", "spec", "axes"),
    [
        pytest.param("NCHW", "CHW", (1, 2, 3), id="letters"),
        pytest.param("NCHW", "chw", (1, 2, 3), id="lower case"),
        pytest.param("NCHW", "1,2,3", (1, 2, 3), id="numbers"),
        pytest.param("NCHW", "3 1", (1, 3), id="sorted"),
        pytest.param("NCHW", "-1", (3,), id="negative"),
        pytest.param("NCHW", -2, (2,), id="an integer"),
        pytest.param("NCHW", (0, "W", "-2"), (0, 2, 3), id="a mixture"),
        pytest.param("NCHW", "N,2", (0, 2), id="letter and number"),
        pytest.param("NCHW", "", (), id="none"),
        pytest.param(WORDS, "lon,time", (0, 2), id="words"),
        pytest.param(WORDS, "lon", (2,), id="one word"),
        pytest.param(WORDS, ("time", 1), (0, 1), id="a mixture with words"),
        pytest.param(WORDS, "0, lon", (0, 2), id="a number in a text"),
        pytest.param(WORDS, "()", (), id="none of words"),
    ],
)
def test_resolve(layout, spec, axes):
    assert make_layout(layout, {"NCHW": 4, WORDS: 3}[layout]).resolve(spec, "axes") == axes


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("layout", "spec", "message"),
    [
        pytest.param("NCHW", "4", r"axis 4 is out of range; the tensor's axes are 0 to 3", id="too high"),
        pytest.param("NCHW", "-5", "axis -5 is out of range", id="too low"),
        pytest.param("NCHW", "CC", r"names axis C \(1\) twice", id="twice"),
        pytest.param("NCHW", "C,1", "twice", id="twice by two names"),
        pytest.param("NCHW", "Z", "no axis 'Z' in the layout NCHW", id="unknown letter"),
        pytest.param("NCHW", "1;2", "';' is neither a letter nor a number", id="a stray character"),
        pytest.param(None, "C", "needs a layout", id="a letter without a layout"),
        pytest.param(WORDS, "lat", "no axis 'lat' among time, channel, lon", id="unknown word"),
        pytest.param(WORDS, "lon,2", r"names axis lon \(2\) twice", id="a word twice"),
    ],
)
def test_resolve_refuses(layout, spec, message):
    with pytest.raises(UsageError, match=message):
        make_layout(layout, {"NCHW": 4, WORDS: 3, None: 6}[layout]).resolve(spec, "axes")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("NCH", "names 3 axes; the tensor has 4", id="too short"),
        pytest.param("NCHH", "a letter twice", id="twice"),
        pytest.param("N1HW", "not one letter per axis", id="a digit"),
        pytest.param("time,lat", "names 2 axes; the tensor has 4", id="too few words"),
        pytest.param("time,lat,lat,lon", "has a word twice", id="a word twice"),
        pytest.param("time,2,lat,lon", "not one letter per axis", id="a number"),
    ],
)
def test_make_layout_refuses(text, message):
    with pytest.raises(UsageError, match=message):
        make_layout(text, 4)


def test_words_name_axes():
    layout = make_layout(WORDS, 3)
    assert (layout.names, layout.batch, layout.channel) == (("time", "channel", "lon"), 0, 1)
    assert make_layout(layout.text, 3) == layout
    assert make_layout(make_layout("sample,", 1).text, 1).names == ("sample",)
    assert make_layout("x,batch", 2).batch == 1


@pytest.mark.parametrize(
    ("dimensions", "text"),
    [
        pytest.param(("n", "C"), "nC", id="letters"),
        pytest.param(("n", "l"), "n,l", id="letters without a channel"),
        pytest.param(("n", "c1"), "n,c1", id="not all letters"),
        pytest.param(("time",), "time,", id="one word"),
        pytest.param((), None, id="none"),
        pytest.param(("x", "x"), None, id="twice"),
        pytest.param(None, None, id="no names"),
    ],
)
def test_names_of_axes_in_a_file_make_a_layout(dimensions, text):
    assert find_layout(dimensions) == text
