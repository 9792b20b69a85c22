"""Unpacking and formatting tell the observer of the run how far they are, as passes over files do."""

from __future__ import annotations

import contextlib
import io

import numpy as np
import pytest

from normcli.cli.parameters.settings import RunOptions
from normcli.tensors import pieces
from normcli.tensors.files import load
from normcli.tensors.pieces import Watch
from normcli.tensors.random.generate import generate
from normcli.tensors.random.recipe import Recipe
from tests.marks import costly


@pytest.fixture
def told(monkeypatch):
    told = {"expect": [], "advance": []}

    class Observer:
        expect, advance = staticmethod(told["expect"].append), staticmethod(told["advance"].append)

    monkeypatch.setattr(pieces, "_LEAST", 1000)
    monkeypatch.setattr(Watch, "observer", Observer)
    return told


@pytest.mark.slow
@costly
@pytest.mark.parametrize("written", ["-f csv", "--print y", "-o - -f csv"])
def test_writing_is_watched(written, told, normcli, monkeypatch):
    monkeypatch.setattr(RunOptions, "show_progress", lambda *_, **__: contextlib.nullcontext())
    assert normcli("ln", "--shape", "200,100", *written.split()).code == 0
    assert sum(told["expect"]) == sum(told["advance"]) == 200 * 100 * 8


def test_skipping_is_watched(told):
    generate(Recipe((2,), "normal", skip=3000, dtype="float16"))
    assert (sum(told["expect"]), sum(told["advance"])) == (24_000, 24_000)


def test_unpacking_is_watched(told, tmp_path, monkeypatch):
    monkeypatch.setattr("normcli.tensors.mapped.SMALLEST_MAPPED", 1)
    np.savez_compressed(tmp_path / "x.npz", np.zeros(1000))
    load(str(tmp_path / "x.npz"))
    assert (sum(told["expect"]), sum(told["advance"])) == (8000, 8000)


def test_nobody_watches_behind_the_block_or_beside_a_terminal(monkeypatch):
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.delenv("TERM", raising=False)
    with RunOptions().show_progress() as bar:
        assert Watch.observer is bar is not None
    assert Watch.observer is None
    with RunOptions().show_progress(beside=terminal) as bar:
        assert bar is None
