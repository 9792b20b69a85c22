"""Every command of the command line: which there are, and how one is built of its `Verb` record."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from normcli.errors import UsageError
from normcli.norms.options import find_option
from normcli.norms.table import NORMS, Norm, find_norm
from normcli.version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Option = Callable[[Any], Any]

VERBS: Mapping[str, tuple[str, str]] = {
    "explain": ("explain", "Show the arithmetic of one value, step by step, as on paper."),
    "compare": ("compare", "Set norms side by side on one tensor; say which are equal, and why."),
    "draw": ("draw", "Draw a tensor, each value in the colour of its group: SVG, PNG, terminal."),
    "restore": ("restore", "See whether gamma = std and beta = mean can undo a norm."),
    "check": ("check", "Check a tensor against the exact result of a norm."),
    "identify": ("identify", "Find what made a tensor: norm, axes, eps, ddof, gamma and beta."),
    "golden": ("golden", "Write input, parameters and exact results for another project's tests."),
    "fit": ("fit", "Fit a norm to files: exact statistics over all of them, mergeable."),
    "merge": ("fit", "Merge stats files, or print one."),
    "apply": ("apply", "Normalize files with fitted statistics."),
    "invert": ("apply", "Undo what apply did."),
    "fold": ("fold", "Fold batch normalization into the layer before it."),
    "generate": ("generate", "Write a seeded tensor and nothing else."),
    "norms": ("tables", "Print the table of norms: axes, formulas, parameters, sources."),
    "conventions": ("tables", "Print what each framework does where a norm leaves a choice."),
    "help": ("help", "Explain file formats, exit codes or layouts; show the help of a command."),
}
"""Verb → the module of this folder that has its record, under its name in capitals, and what it does."""

_NAME_WIDTH = 11


class NamedNorm(NamedTuple):
    """A norm as a command line names it.

    Parameters
    ----------
    name : str
        The norm's name, an alias or a preset.
    norm : Norm
    fixed : mapping of str to float
        The options that the name itself sets: p = 1 for `l1`.
    """

    name: str
    norm: Norm
    fixed: Mapping[str, float]


class Refusal(NamedTuple):
    """Options of other verbs that a verb does not take, and the reason."""

    names: tuple[str, ...]
    reason: str


SELECTION = ("--mask", "--lengths", "--nan", "--fill")
EVALUATION = ("--eval", "--running-mean", "--running-var", "--state")


@dataclass(frozen=True)
class Verb:
    """A verb of the command line.

    Parameters
    ----------
    name : str
        As in `VERBS`; empty for the norms' own commands.
    run : callable
        Takes `Settings`, and the verb's own options by name. Its docstring is the verb's help.
    options : sequence of options, or callable
        Of a verb that is asked of a norm: returns the options for a `NamedNorm`.
    examples : sequence of str
        Of a verb that is asked of a norm: what stands behind the norm's name in the examples of its help.
    describe : callable or None
        Returns what the help of a `NamedNorm` says, if not what that of the verb does.
    refused : sequence of Refusal
        Options that the help names with the reason, and that are an error.
    subject : str
        What has to follow the verb, for messages.
    find_other : callable or None
        Returns the command of a word that is the name of no norm, or None.
    """

    name: str
    run: Callable[..., None]
    options: Sequence[Option] | Callable[[NamedNorm], Sequence[Option]] = ()
    examples: Sequence[str] = ()
    describe: Callable[[NamedNorm], str] | None = None
    refused: Sequence[Refusal] = ()
    subject: str = "norm"
    find_other: Callable[[str], click.Command | None] | None = None

    def make_command(self) -> click.Command:
        """Return the verb's command, which has one for each norm if it is asked of a norm."""
        text = inspect.cleandoc(self.run.__doc__ or "")
        if callable(self.options):
            return _VerbOfNorms(self, help=f"{text}\n\nnormcli {self.name} NORM --help lists the options.")
        return self._make(self.name, text, self.options, self.refused)

    def make_norm_command(self, name: str) -> click.Command:
        """Return the command of a verb that is asked of a norm, for the norm of that name, alias or preset."""
        assert callable(self.options)
        named = NamedNorm(name, *find_norm(name))
        groups = "--groups 2" if find_option("groups").belongs_to(named.norm) else ""
        call = " ".join(filter(None, ("normcli", self.name, name, groups)))
        text = "\n".join([self._describe(named), "\n\b", *(f"  {call} {example}" for example in self.examples)])
        refused = [refusal for refusal in self.refused if refusal.names != EVALUATION or named.norm.tracks]
        return self._make(name, text, self.options(named), refused, norm=name)

    def _describe(self, named: NamedNorm) -> str:
        if self.describe is not None:
            return self.describe(named)
        prose = inspect.cleandoc(self.run.__doc__ or "").split("\n\n\b\n")[0]
        summary, *rest = prose.split("\n\n")
        return "\n\n".join([summary, f"The norm is {named.norm.title}: {named.norm.summary}.", *rest])

    def _make(
        self, name: str, text: str, options: Sequence[Option], refused: Sequence[Refusal], norm: str = ""
    ) -> click.Command:
        reasons = [f"\n\n{', '.join(names)} are refused: {reason}." for names, reason in refused]
        hidden = [_refuse(option, reason) for names, reason in refused for option in names]
        return make_command(name, self.run, "".join([text, *reasons]), [*options, *hidden], norm)


def make_command(
    name: str, run: Callable[..., None], text: str, options: Sequence[Option], norm: str = ""
) -> click.Command:
    """Return a command that hands `run` its options: `Settings`, and those of its own by name."""

    def callback(**values: Any) -> None:
        from normcli.cli.settings import parse_settings

        settings, own = parse_settings(norm, values)
        run(settings, **own)

    for option in reversed(options):
        callback = option(callback)
    short = find_norm(norm)[0].summary if norm else None
    return click.command(name=name, help=text, short_help=short)(callback)


def _refuse(name: str, reason: str) -> Option:
    """Return a hidden option that is an error, with the reason as its message."""

    def complain(ctx: click.Context, param: click.Parameter, given: Any) -> None:
        if given:
            raise click.UsageError(f"{name} is refused: {reason}", ctx)

    is_flag = True if name == "--eval" else None
    return click.option(name, hidden=True, expose_value=False, callback=complain, help=reason, is_flag=is_flag)


class _Group(click.Group):
    """Commands by name, with an error for unknown names that suggests similar ones."""

    subject = "norm or command"
    others: Sequence[str] = tuple(VERBS)
    """What a word may be beside a norm."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve a command as click does; the error names what is similar."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            from difflib import get_close_matches

            known = [*(alias for norm in NORMS.values() for alias in norm.names), *self.others]
            near = get_close_matches(name.lower(), known, n=2)
            hint = f"did you mean {' or '.join(near)}?" if near else f"the norms are {', '.join(NORMS)}"
            raise click.UsageError(f"there is no {self.subject} {name!r}; {hint}")
        return super().resolve_command(ctx, args)


class _VerbOfNorms(_Group):
    """A verb with a command for every norm, built when it is called."""

    def __init__(self, verb: Verb, **settings: Any) -> None:
        metavar = "NORM …" if verb.find_other is None else "NORM|DIR …"
        super().__init__(verb.name, subcommand_metavar=metavar, no_args_is_help=False, **settings)
        self._verb, self.subject, self.others = verb, verb.subject, ()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as click does; without arguments, raise an error that names the norms."""
        if not args:
            raise click.UsageError(
                f"{ctx.info_name} needs a {self.subject}; the norms are {', '.join(NORMS)}", ctx
            )
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the norms in the order of the table."""
        return list(NORMS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of the norm of that name, alias or preset."""
        if _is_norm(cmd_name):
            return self._verb.make_norm_command(cmd_name)
        return None if self._verb.find_other is None else self._verb.find_other(cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the names of the norms on one line; `normcli norms` explains them."""
        with formatter.section("Norms"):
            formatter.write_text(", ".join(NORMS))


class _Commands(_Group):
    """Every norm of the table and every verb, each imported and built when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the tables."""
        return [*NORMS, *VERBS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a verb's command, or that of the norm of that name, alias or preset."""
        if cmd_name in VERBS:
            return _find_verb(VERBS[cmd_name][0], cmd_name).make_command()
        return _find_verb("calculate", "calculate").make_norm_command(cmd_name) if _is_norm(cmd_name) else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the norms and the verbs as two lists, from their tables."""
        norms = [(name.ljust(_NAME_WIDTH), f"{norm.title}: {norm.summary}") for name, norm in NORMS.items()]
        verbs = [(name.ljust(_NAME_WIDTH), line) for name, (_, line) in VERBS.items()]
        with formatter.section("Norms"):
            formatter.write_dl(norms)
        with formatter.section("Commands"):
            formatter.write_dl(verbs)


def _find_verb(module: str, name: str) -> Verb:
    verb: Verb = getattr(import_module(f"normcli.cli.{module}"), name.upper())
    return verb


def _is_norm(name: str) -> bool:
    try:
        find_norm(name)
    except UsageError:
        return False
    return True


@click.command(
    cls=_Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="normcli", message="%(prog)s %(version)s")
@click.pass_context
def commands(ctx: click.Context) -> None:
    """Calculate exactly what a normalization does to these numbers.

    \b
      normcli bn --shape 2,3,4,4               a seeded tensor, batch-normalized
      normcli ln -i x.npy -o y.npy             from file to file
      normcli zscore -i iris.csv --print mean  one number a line, for scripts

    Long names work too: normcli layernorm. Each command has its own --help.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
