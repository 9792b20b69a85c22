"""What a TAB gives: as normcli tells it, and as each shell takes it."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import time

import numpy as np
import pytest

from normcli.cli.verbs.reference.completion import SCRIPTS
from normcli.norms.table import NORMS
from tests.marks import slowly

CASES = [
    pytest.param("normcli dra", "normcli draw ", id="verb"),
    pytest.param("normcli layernormal", "normcli layernormalization ", id="long name"),
    pytest.param("normcli explain lr", "normcli explain lrn ", id="norm behind a verb"),
    pytest.param("normcli ln --like to", "normcli ln --like torch ", id="framework"),
    pytest.param("normcli ln --like=ker", "normcli ln --like=keras ", id="with a sign of equality"),
    pytest.param("normcli ln --print mean,v", "normcli ln --print mean,var ", id="second field"),
    pytest.param("normcli ln --nan om", "normcli ln --nan omit ", id="choice"),
    pytest.param("normcli ln te", "normcli ln tens.npy ", id="file"),
    pytest.param("normcli ln -i arch.npz:al", "normcli ln -i arch.npz:alpha ", id="key"),
    pytest.param("normcli help lay", "normcli help layouts ", id="topic"),
]


@pytest.fixture
def here(here):
    np.save("tens.npy", np.ones(3))
    np.savez("arch.npz", alpha=np.ones(3), beta=np.ones(2))
    return here


@pytest.fixture
def ask(normcli, monkeypatch):
    def call(*words):
        monkeypatch.setenv("_NORMCLI_COMPLETE", "zsh")
        ran = normcli(*words)
        monkeypatch.delenv("_NORMCLI_COMPLETE")
        assert (ran.code, ran.err) == (0, "")
        return [line.split("\t") for line in ran.out.splitlines()]

    return call


def test_every_norm_is_told_with_what_it_is(ask):
    told = {text: what for _, text, what in ask("explain", "")}
    assert told == {name: norm.title for name, norm in NORMS.items()}


@pytest.mark.all_quick
@pytest.mark.parametrize(("line", "completed"), [case for case in CASES if case.id != "file"])
def test_what_may_stand_there_is_told(ask, here, line, completed):
    assert [text for _, text, _ in ask(*line.split()[1:])] == [completed.split()[-1]]


@pytest.mark.parametrize(("line", "told"), [("normcli ln --nan om", "omit"), ("normcli help ", "layouts")])
def test_bash_gives_the_line_up_to_the_cursor(normcli, monkeypatch, line, told):
    monkeypatch.setenv("_NORMCLI_COMPLETE", "bash")
    assert told in [text.split("\t")[1] for text in normcli(line).lines]


def test_files_and_folders_are_left_to_the_shell(ask):
    assert ask("bn", "-i", "te") == [["file", "te", ""]]
    assert ["dir", "", ""] in ask("check", "")


@pytest.mark.parametrize(
    "words", [["nothing", ""], ["bn", "--shape", "x", "--l=", ""], ["ln", "-i", "gone.npz:a"]]
)
def test_what_has_no_completion_is_no_error(words, ask):
    assert [kind for kind, *_ in ask(*words)] in ([], ["file"])


def test_keys_of_safetensors(here, normcli, ask):
    assert normcli("generate", "--shape", "2", "-o", "a.safetensors").code == 0
    assert ask("bn", "a.safetensors:") == [["plain", "a.safetensors:x", ""]]


def test_the_script_names_the_shells(normcli):
    assert [normcli("completion", shell).out for shell in SCRIPTS] == list(SCRIPTS.values())
    assert normcli("completion", "tcsh").code == 2


class Terminal:
    """A shell in a terminal, that one types into."""

    def __init__(self, command, environment):
        self._pid, self._fd = pty.fork()
        if not self._pid:
            os.execvpe(command[0], command, environment)

    def type(self, text, until):
        """Type, and return what the terminal shows once it shows `until`."""
        os.write(self._fd, text.encode())
        shown, end = "", time.monotonic() + 20
        while until not in shown and time.monotonic() < end:
            if select.select([self._fd], [], [], 0.2)[0]:
                shown += os.read(self._fd, 65536).decode(errors="replace")
        return shown

    def close(self):
        os.close(self._fd)
        os.waitpid(self._pid, 0)


STARTS = {
    "bash": (["bash", "--norc", "-i"], 'PS1="> "; eval "$(normcli completion bash)"; echo re""ady\n'),
    "zsh": (
        ["zsh", "-f", "-i"],
        'PS1="> "; autoload -U compinit; compinit -u; eval "$(normcli completion zsh)"; echo re""ady\n',
    ),
}


@pytest.fixture
def environment(here, served):
    return served | {"TERM": "dumb", "HOME": str(here)}


@pytest.mark.parametrize("shell", slowly(STARTS))
def test_a_tab_in_the_shell(shell, environment):
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    command, setup = STARTS[shell]
    terminal = Terminal(command, environment)
    assert "ready" in terminal.type(setup, "ready")
    for line, completed in (case.values for case in CASES):
        assert completed in terminal.type(f"\x15{line}\t", completed)
    terminal.close()


@pytest.mark.parametrize(("line", "completed"), slowly(CASES))
def test_a_tab_in_fish(line, completed, environment):
    if shutil.which("fish") is None:
        pytest.skip("needs fish")
    program = ["fish", "--no-config", "-c", f"normcli completion fish | source; complete -C '{line}'"]
    ran = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=60, check=True)
    assert completed.split()[-1] in ran.stdout.split()
