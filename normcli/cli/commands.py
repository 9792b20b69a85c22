"""The names of all commands (norms and verbs), and a group of commands that suggests names for wrong ones."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, cast

import click

from normcli.cli.languages import TranslatedContext
from normcli.norms.table import BY_ANY_NAME, NORMS, find_norm
from normcli.printable import make_printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from click.shell_completion import CompletionItem


VERBS: Mapping[str, str] = {
    "explain": "Show the arithmetic of one value, step by step, as on paper.",
    "compare": "Set norms side by side on one tensor; say which are equal, and why.",
    "draw": "Draw a tensor, each value in the colour of its group: SVG, PNG, terminal.",
    "backward": "Differentiate a loss by the tensor, gamma and beta: dx, dgamma, dbeta, exact.",
    "restore": "See whether gamma = std and beta = mean can undo a norm.",
    "check": "Check a tensor against the exact result of a norm.",
    "identify": "Find what made a tensor: norm, axes, eps, ddof, gamma and beta.",
    "audit": "Judge every norm of a recorded model run; name the first bad one.",
    "doctor": "Find which algorithms are safe on a tensor in low precision.",
    "golden": "Write input, parameters and exact results for another project's tests.",
    "simulate": "Draw batches around one sample; see how far it moves with them.",
    "fit": "Fit a norm to files: exact statistics over all of them, mergeable.",
    "merge": "Merge stats files, or print one.",
    "apply": "Normalize files with fitted statistics.",
    "invert": "Undo what apply did.",
    "fold": "Fold batch or spectral normalization into a layer.",
    "generate": "Write a seeded tensor and nothing else.",
    "norms": "Print the table of norms: axes, formulas, parameters, sources.",
    "conventions": "Print what each framework does where a norm leaves a choice.",
    "completion": "Print what makes bash, zsh or fish complete commands and values.",
    "help": "Explain formats, exit codes, layouts, words, faults, symptoms or dumps; show a command's help.",
}
"""Verb → its line in the list of commands."""

_FOREIGN_OPTIONS = {
    **dict.fromkeys(("--dim", "--dims", "--axis", "--normalized-shape"), "--axes"),
    **dict.fromkeys(("--num-groups", "--num_groups", "--n-groups"), "--groups"),
    "--epsilon": "--eps",
    "--correction": "--ddof",
}
"""Frameworks' name of an option → its name here."""

_OUTPUTS = {
    **dict.fromkeys(("page", "html", "web"), "normcli compare bn ln --shape 2,3,4 -o page.html"),
    **dict.fromkeys(("picture", "plot", "svg", "png"), "normcli draw bn --shape 2,3,4 -o picture.svg"),
}
"""What users may take for a command, and is a kind of output → a command that makes one."""

_MOST_VERBS = 4
"""The most verbs that the error for an unknown option names as having it."""

_ALIKE = 0.7
"""The least likeness, from 0 to 1, of a word and the name suggested for it: `help` is not like `lp`."""


def complete_names(
    incomplete: str, others: Mapping[str, str] = MappingProxyType({})
) -> list[CompletionItem[str]]:
    """Return completions for the start of a word: names of norms and `others`, each with its description.

    Aliases of norms are completed only if no name of a norm and no other word begins in this way.
    """
    from click.shell_completion import CompletionItem

    known = {**{name: norm.title for name, norm in NORMS.items()}, **others}
    names = known if any(name.startswith(incomplete) for name in known) else BY_ANY_NAME
    return [
        CompletionItem(name, help=known.get(name) or BY_ANY_NAME[name].title)
        for name in names
        if name.startswith(incomplete.lower())
    ]


class CommandGroup(click.Group):
    """A click group of commands by name; the error for an unknown name suggests similar ones."""

    context_class = TranslatedContext
    subject = "norm or command"
    others: Sequence[str] = tuple(VERBS)
    """The commands that are not norms."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of norms, then the other names, in the order of the tables."""
        return [*NORMS, *self.others]

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """Return the commands and options that begin with a text; aliases of norms only if no name does."""
        return [
            *complete_names(incomplete, {name: VERBS[name] for name in self.others}),
            *click.Command.shell_complete(self, ctx, incomplete),
        ]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve a command as click does; click's `UsageError` for an unknown name suggests similar ones."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            from difflib import get_close_matches

            if name.lower() in _OUTPUTS and self.others:
                raise click.UsageError(
                    f"there is no {self.subject} {name!r}; -o makes one: {_OUTPUTS[name.lower()]}"
                )
            known = [*BY_ANY_NAME, *self.others]
            near = get_close_matches(name.lower(), known, n=2, cutoff=_ALIKE)
            if near:
                raise click.UsageError(
                    f"there is no {self.subject} {name!r}; did you mean {' or '.join(near)}?"
                )
            norms, others = ", ".join(NORMS), ", ".join(self.others)
            if not others:
                raise click.UsageError(f"there is no {self.subject} {name!r}; the norms are {norms}")
            raise click.UsageError(
                f"there is no {self.subject} {name!r}; the norms are {norms}, the commands {others}"
            )
        shown, command, rest = super().resolve_command(ctx, args)
        return make_printable(shown or ""), command, rest  # a folder's name, in its help


def name_verbs(ctx: click.Context, option: str) -> None:
    """Raise click's `NoSuchOption` for an option that this command does not have, with a hint.

    The hint is the option's name in normcli (`--dim` is `--axes`), or the norms or verbs that have the option.
    If none has it, nothing is raised.
    """
    from normcli.norms.options import OPTIONS

    root, norm = ctx.find_root(), str(ctx.info_name)
    if option in _FOREIGN_OPTIONS:
        own = _FOREIGN_OPTIONS[option]
        raise click.NoSuchOption(option, f"No such option {option!r}; it is {own} here", ctx=ctx)
    row = next((row for row in OPTIONS if f"--{row.word}" == option), None)
    if norm.lower() in BY_ANY_NAME and row is not None and not row.belongs_to(find_norm(norm)[0]):
        having = ", ".join(name for name, other in NORMS.items() if row.belongs_to(other))
        raise click.NoSuchOption(
            option, f"No such option {option!r} of {norm}; it is an option of {having}", ctx=ctx
        )
    norm = norm if norm.lower() in BY_ANY_NAME else next(iter(NORMS))
    found = []
    for name in (norm, *VERBS):
        command = cast("click.Group", root.command).get_command(root, name)
        if isinstance(command, click.Group):
            command = command.get_command(root, norm)
        params = () if command is None else command.params
        if any(option in param.opts and not getattr(param, "hidden", False) for param in params):
            found.append(name)
    if found:
        listed = ", ".join(found[:_MOST_VERBS]) + (", …" if len(found) > _MOST_VERBS else "")
        raise click.NoSuchOption(option, f"No such option {option!r}; it is an option of {listed}", ctx=ctx)
