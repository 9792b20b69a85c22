"""The state file: what it holds, what it refuses, and that nobody's update is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from normcli.errors import DataError, UsageError
from normcli.numerics.statistics.solution import Given
from normcli.numerics.sums.fixed_point import multiply_by_count
from normcli.running.average import State
from normcli.running.state_file import SCHEMA, hold, read_state, replace_state
from normcli.tensors.held_files import try_lock

STATE = State("bn", Given(np.array([1.0, 2.0]), np.array([0.5, 0.25])), 1e-3, "inside", 3)


def write_state(path, state):
    with replace_state(path, state):
        pass


def test_what_is_written_is_read_again(tmp_path):
    path = str(tmp_path / "bn.npz")
    assert read_state(path, "bn") is None
    write_state(path, STATE)
    again = read_state(path, "bn")
    assert (again.norm, again.batches, again.eps, again.eps_mode) == ("bn", 3, 1e-3, "inside")
    np.testing.assert_array_equal(again.statistics, STATE.statistics)
    with np.load(path) as archive:
        assert sorted(archive.files) == ["batches", "eps", "eps_mode", "mean", "norm", "schema", "var"]


@pytest.mark.all_quick
@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({"schema": np.array("normcli-state/9")}, f"is of normcli-state/9, not {SCHEMA}"),
        ({"schema": None}, "no state file of normcli"),
        ({"norm": np.array("in")}, "running statistics of in, not of bn"),
        ({"mean": None}, "mean is missing"),
        ({"mean": np.zeros(3)}, r"var has the shape \(2,\), not \(3,\)"),
        ({"var": np.array([-1.0, 1.0])}, "var is -1.0, and no variance is negative"),
        ({"batches": np.array(-1)}, "batches is -1, not from 0 to 9223372036854775807"),
        ({"batches": np.array(2**63, np.uint64)}, "batches is uint64, not int64"),
        ({"eps": np.array(np.nan)}, "eps is nan, not a finite number ≥ 0"),
        ({"eps_mode": np.array("beside")}, "eps_mode is 'beside', none of inside, outside"),
        ({"norm": np.array("\udc80")}, "norm has what is no character"),
        ({"mean": np.array([0.0, np.nan])}, "holds a running mean of nan"),
        ({"var": np.array([np.inf, 1.0])}, "holds a running variance of inf"),
        ({"mean_sum": np.ones((1, 3), np.int64)}, r"mean_sum has the shape \(1, 3\), not \(1, 2\)"),
        ({"var_sum": None}, "var_sum is missing"),
        ({"mean_sum_low": np.array(81)}, "mean_sum_low is 81, not from"),
        ({"mean": np.array([1.0, 2.5])}, "mean is 2.5, not mean_sum over batches"),
        ({"batches": np.array(0)}, "batches is 0, too few for mean_sum"),
    ],
)
def test_what_is_no_state_file_is_refused(members, told, tmp_path):
    path = tmp_path / "bn.npz"
    totals = tuple(multiply_by_count(values, 3) for values in STATE.statistics)
    write_state(str(path), STATE._replace(totals=totals))
    with np.load(path) as archive:
        kept = {**archive, **members}
    np.savez(path, **{name: values for name, values in kept.items() if values is not None})
    with pytest.raises(DataError, match=told):
        read_state(str(path), "bn")


def test_a_file_that_cannot_be_read_is_not_called_damaged(tmp_path, monkeypatch):
    path = tmp_path / "bn.npz"
    write_state(str(path), STATE)

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.open", refuse)
    with pytest.raises(DataError, match=r"bn.npz cannot be read: Permission denied$"):
        read_state(str(path), "bn")


@pytest.mark.parametrize(("name", "told"), [("", "this is a folder"), ("s.txt", r"ends in \.npz")])
def test_what_is_no_path_of_a_state_file(name, told, tmp_path):
    with pytest.raises(UsageError, match=told):
        read_state(str(tmp_path / name), "bn")


def test_a_new_state_takes_its_place_only_where_the_block_ends_well(tmp_path):
    path = str(tmp_path / "bn.npz")
    write_state(path, STATE)
    with pytest.raises(ValueError, match="stop"), replace_state(path, STATE._replace(batches=9)):
        assert read_state(path, "bn").batches == 3
        raise ValueError("stop")
    assert read_state(path, "bn").batches == 3
    assert [entry.name for entry in tmp_path.iterdir()] == ["bn.npz"]


@pytest.mark.parametrize("exists", [True, False], ids=["a file", "a new file"])
def test_a_state_that_is_held_is_waited_for(exists, tmp_path):
    path = str(tmp_path / "bn.npz")
    if exists:
        write_state(path, STATE)
    told = r"still holds it after 0.05 s \(--lock-timeout\)"
    other = hold(str(tmp_path / "other.npz"), 0.0)  # of the same folder
    with hold(path), other, pytest.raises(DataError, match=told), hold(path, 0.05):
        pass
    with hold(path, 0.0):
        pass
    assert [entry.name for entry in tmp_path.iterdir()] == ["bn.npz"] * exists


@pytest.mark.parametrize("exists", [True, False], ids=["is replaced", "appears"])
def test_a_state_that_changes_just_before_it_is_locked_is_locked_itself(exists, tmp_path, monkeypatch):
    path, other = tmp_path / "bn.npz", tmp_path / "other"
    other.mkdir()
    for folder in (other, tmp_path)[: 1 + exists]:
        write_state(str(folder / "bn.npz"), STATE)

    def lock(descriptor):
        if (other / "bn.npz").exists():
            (other / "bn.npz").replace(path)
        return try_lock(descriptor)

    monkeypatch.setattr("normcli.running.state_file.try_lock", lock)
    with hold(str(path), 1.0):
        assert sorted(entry.name for entry in tmp_path.iterdir()) == ["bn.npz", "other"]
        with pytest.raises(DataError), hold(str(path), 0.0):
            pass


def test_a_folder_without_locks_is_no_place_for_a_state(tmp_path, monkeypatch):
    def fail(descriptor):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("normcli.running.state_file.try_lock", fail)
    with (
        pytest.raises(DataError, match="cannot be locked: Operation not supported"),
        hold(str(tmp_path / "a.npz")),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_was_killed_holds_no_state(tmp_path):
    path = str(tmp_path / "bn.npz")
    code = (
        f"from normcli.running.state_file import hold\nwith hold({path!r}): print('held', flush=True); input()"
    )
    command, pipe = [sys.executable, "-c", code], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(DataError), hold(path, 0.0):
            pass
        process.kill()
    assert len(list(tmp_path.iterdir())) == 1  # the lock of a state that is yet to be
    with hold(path, 1.0):
        pass
    assert list(tmp_path.iterdir()) == []


def test_where_an_open_file_cannot_be_replaced_another_file_is_the_lock(tmp_path, monkeypatch):
    """As on Windows."""
    monkeypatch.setattr("normcli.running.state_file.os", SimpleNamespace(**{**vars(os), "name": "nt"}))
    path = str(tmp_path / "s.npz")
    with hold(path, 0.0, lambda: None):
        assert [file.name for file in tmp_path.iterdir()] == [".s.npz.lock"]
        with pytest.raises(DataError, match="another process still holds it"), hold(path, 0.0, lambda: None):
            pass
    assert not list(tmp_path.iterdir())
