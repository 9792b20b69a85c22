"""`normcli completion SHELL`: the script for a shell's startup file, and the completions that it asks for."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

import click

from normcli.cli.verb_commands import Verb
from normcli.errors import NormError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from normcli.cli.parameters.settings import Settings

ASKED = "_NORMCLI_COMPLETE"
"""The environment variable with the shell's name; if it is set, normcli prints completions of its arguments."""

_BREAKS = ":="
"""The characters at which bash ends a word: it replaces only what follows the last of them."""

_BASH = """\
_normcli_complete() {
    local kind value
    COMPREPLY=()
    while IFS=$'\\t' read -r kind value _; do
        case $kind in
            plain) COMPREPLY+=("$value") ;;
            dir) compopt -o filenames; mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -d -- "$value") ;;
            file) compopt -o filenames; mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$value") ;;
        esac
    done < <(_NORMCLI_COMPLETE=bash normcli "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
}
complete -F _normcli_complete normcli
"""

_ZSH = """\
#compdef normcli
_normcli_complete() {
    local kind value text found=1
    local -a values texts
    while IFS=$'\\t' read -r kind value text; do
        case $kind in
            plain) values+=("$value"); texts+=("$value${text:+  -- $text}") ;;
            dir) _path_files -/ && found=0 ;;
            file) _path_files && found=0 ;;
        esac
    done < <(_NORMCLI_COMPLETE=zsh normcli "${(@Q)words[2,CURRENT]}" 2>/dev/null)
    (( ${#values} )) && compadd -l -d texts -a values && found=0
    return found
}
compdef _normcli_complete normcli
"""

_FISH = """\
function _normcli_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in (env _NORMCLI_COMPLETE=fish normcli $words[2..] 2>/dev/null)
        set -l item (string split \\t -- $line)
        switch $item[1]
            case plain
                printf '%s\\t%s\\n' $item[2] "$item[3]"
            case dir
                __fish_complete_directories $item[2]
            case file
                __fish_complete_path $item[2]
        end
    end
end
complete -c normcli -f -a '(_normcli_complete)'
"""

SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
"""Shell → the script that runs normcli at each TAB and reads lines of kind, completion and description."""


def complete(commands: click.Command, arguments: Sequence[str]) -> None:
    """Print the completions of the last argument, one a line: kind, text and help, with tabs between them.

    Nothing is printed if the words before it are no valid command line.

    Parameters
    ----------
    commands : Command
        The program's command.
    arguments : sequence of str
        The words after the program's name; the last is completed and may be empty. Bash, which splits words at
        colons, gives the whole line up to the cursor as the first argument.
    """
    from click.shell_completion import ShellComplete

    shell = os.environ[ASKED]
    *words, incomplete = _split_line(*arguments[:1]) if shell == "bash" else arguments or [""]
    option, equals, _ = incomplete.partition("=")
    before = option + equals if equals and option.startswith("--") else ""  # click leaves it out
    kept = max(incomplete.rfind(mark) for mark in _BREAKS) + 1 if shell == "bash" else 0
    with contextlib.suppress(click.ClickException, click.exceptions.Exit, NormError):
        for item in ShellComplete(commands, {}, "normcli", ASKED).get_completions(words, incomplete):
            click.echo(f"{item.type}\t{(before + item.value)[kept:]}\t{' '.join((item.help or '').split())}")


def _split_line(line: str = "") -> list[str]:
    """Return the words of a line without the first; the last is "" if the line ends with a blank."""
    from click.shell_completion import split_arg_string

    words = split_arg_string(line)[1:]
    return words if words and not line.endswith(" ") else [*words, ""]


def _run(settings: Settings, shell: str) -> None:
    """Print what makes a shell complete commands, options, their values, files and their keys.

    \b
      eval "$(normcli completion bash)"      in ~/.bashrc
      eval "$(normcli completion zsh)"       in ~/.zshrc, behind compinit
      normcli completion fish | source       in ~/.config/fish/config.fish
    """
    click.echo(SCRIPTS[shell], nl=False)


COMPLETION = Verb("completion", _run, options=(click.argument("shell", type=click.Choice(tuple(SCRIPTS))),))
