"""Spectral normalization folded beside what torch and Flax make of their layers without it."""

from __future__ import annotations

import numpy as np
import pytest

from normcli.running.matrix_fold import fold_state
from tests.test_peers import peer

pytestmark = [
    pytest.mark.peers,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


@pytest.fixture(scope="module")
def torch():
    return peer("torch")


def make_module(torch, *, hooked, dtype):
    """Return a module of layers of several kinds, some training steps old, in evaluation."""
    torch.manual_seed(5)
    utils = torch.nn.utils
    wrap = utils.spectral_norm if hooked else utils.parametrizations.spectral_norm
    made = [
        wrap(torch.nn.Linear(6, 4)),
        wrap(torch.nn.Conv2d(3, 5, 2, bias=False)),
        wrap(torch.nn.ConvTranspose1d(4, 4, 3)),
        torch.nn.BatchNorm1d(3),
        wrap(torch.nn.Embedding(7, 3)),
    ]
    module = torch.nn.Sequential(*made).to(getattr(torch, dtype))
    for layer, x in ((module[0], (2, 6)), (module[1], (1, 3, 4, 4)), (module[2], (1, 4, 5))):
        for _ in range(4):
            layer(torch.randn(x, dtype=getattr(torch, dtype)))
    module[4](torch.tensor([1, 2]))
    return module.eval()


def remove(torch, module, *, hooked):
    for number in (0, 1, 2, 4):
        if hooked:
            torch.nn.utils.remove_spectral_norm(module[number])
        else:
            torch.nn.utils.parametrize.remove_parametrizations(module[number], "weight")


@pytest.mark.parametrize("hooked", [True, False], ids=["hook", "parametrization"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_state_dict_is_that_of_torch_without_the_norm(hooked, dtype, torch):
    module = make_module(torch, hooked=hooked, dtype=dtype)
    folded, after = fold_state({name: values.numpy() for name, values in module.state_dict().items()})
    assert [each.rows for each in folded] == [(0,), (0,), (1,), (0,)]
    if dtype == "float32":  # its σ is off by roundings of float32: of the same numbers in float64 it is exact
        module.double()
    remove(torch, module, hooked=hooked)
    theirs = {name: values.numpy() for name, values in module.state_dict().items()}
    assert sorted(after) == sorted(theirs)
    for name, values in theirs.items():
        if dtype == "float32":
            np.testing.assert_array_equal(after[name], values.astype(after[name].dtype), err_msg=name)
        else:
            np.testing.assert_array_max_ulp(after[name].astype("f8"), values.astype("f8"), maxulp=4)
