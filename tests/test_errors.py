"""Errors keep what they are when they are told again, and say which extra is missing."""

import pkgutil
import sys

import numpy as np
import pytest

import normcli
from normcli.errors import MissingExtraError, NormError, name_subject
from tests.conftest import require_refusal


def list_kinds(kind):
    """Return a class and all that are made of it."""
    return [kind, *(one for child in kind.__subclasses__() for one in list_kinds(child))]


@pytest.mark.parametrize("kind", list_kinds(NormError))
def test_an_error_keeps_its_kind_when_its_subject_is_named(kind):
    with pytest.raises(NormError, match=r"^--gamma: no such key$") as told, name_subject("--gamma"):
        raise kind("no such key")
    assert (type(told.value), told.value.exit_code) == (kind, kind.exit_code)


def test_a_missing_extra_is_named_behind_its_subject():
    with pytest.raises(MissingExtraError, match=r"^--u: a needs .*'normcli\[b\]'$"), name_subject("--u"):
        raise MissingExtraError.of("a", "b")


@pytest.mark.parametrize("name", ["g.safetensors:g", "g.zarr:g", "g.h5:g"])
def test_an_option_whose_file_needs_a_missing_extra_says_which(normcli, here, monkeypatch, name):
    for module in ("safetensors", "zarr", "h5py"):
        monkeypatch.setitem(sys.modules, module, None)
    (here / "g.safetensors").write_bytes(b"\2" + bytes(7) + b"{}")
    require_refusal(
        normcli("bn", "--shape", "2,3,4", "--gamma", name), 3, "needs the extra: pip install 'normcli["
    )


@pytest.mark.parametrize("missing", ["dask", "distributed"])
@pytest.mark.parametrize("option", ["--workers 2", "--scheduler tcp://127.0.0.1:1"])
@pytest.mark.parametrize(
    "line",
    [
        "fit zscore x.npy",
        "zscore -i x.npy -o y.npy",
        "apply s.npz x.npy -o y.npy",
        "check zscore -i x.npy --actual x.npy",
    ],
)
def test_work_on_a_cluster_asks_for_dask_in_the_same_words(normcli, here, monkeypatch, line, option, missing):
    np.save("x.npy", np.arange(12.0).reshape(4, 3))
    assert normcli("fit", "zscore", "x.npy", "-o", "s.npz").code == 0
    for module in [name for name in sys.modules if name.startswith("normcli.cluster")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, missing, None)
    ran = normcli(*line.split(), *option.split())
    assert (ran.code, ran.raw) == (3, b"")
    assert ran.err == "normcli: dask needs the extra: pip install 'normcli[dask]'\n"


def test_modules_of_a_missing_extra_are_passed_over_where_all_are_walked(monkeypatch):
    for module in [name for name in sys.modules if name.startswith("normcli.cluster")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "dask", None)
    found = {module.name for module in pkgutil.walk_packages(normcli.__path__, "normcli.")}
    assert {"normcli.cluster", "normcli.writers.table"} <= found
