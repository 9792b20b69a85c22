"""Every verb says of a tensor without values that it has none, and ends well."""

from __future__ import annotations

import os

import numpy as np
import pytest


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("ln -i x.npy", "y: no values to check"),
        ("check ln -i x.npy --actual x.npy", "✓ normalized: there are no values to compare"),
        ("restore bn -i x.npy", "nothing to recover: the tensor has no values"),
        ("draw bn -i x.npy", "3 groups × 0"),
        ("draw ln -i x.npy --plot histogram", "0 groups × 4"),
        ("doctor bn -i x.npy", "0 of 0 groups with var ≤ eps"),
        ("fit bn -i x.npy", "1 file   0 samples   (0, 3, 4)"),
        ("compare bn ln -i x.npy", "3 groups × 0"),
        ("backward bn -i x.npy", "no values"),
        ("ln -i x.npy -f html", "The tensor holds no values."),
    ],
)
@pytest.mark.all_quick
def test_that_there_are_no_values_is_said(normcli, here, arguments, said):
    np.save("x.npy", np.zeros((0, 3, 4)))
    ran = normcli(*arguments.split())
    assert ran.code == 0, ran.err
    assert said in ran.out


@pytest.mark.parametrize("shape", [(4, 0), (0, 0)])
def test_statistics_of_no_groups_are_not_kept(normcli, here, shape):
    np.save("x.npy", np.zeros(shape))
    ran = normcli("fit", "zscore", "x.npy", "-o", "s.npz")
    told = "normcli: there are no groups, and so no statistics to keep\n"
    assert (ran.code, ran.out, ran.err) == (3, "", told)
    assert os.listdir() == ["x.npy"]
