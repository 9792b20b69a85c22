"""A verb as a record, and the click commands that are built from it."""

from __future__ import annotations

import inspect
import os
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

import click

from normcli.cli.commands import CommandGroup, name_verbs
from normcli.cli.files.conflicting_files import require_unread_outputs
from normcli.cli.languages import LANGUAGE, TranslatedContext
from normcli.cli.parameters.types import FileName
from normcli.norms.rules import AxesRule
from normcli.norms.table import BY_ANY_NAME, NORMS, find_norm
from normcli.printable import agree
from normcli.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from click.shell_completion import CompletionItem

    from normcli.norms.norm import Norm

    Option = Callable[[Any], Any]


class NamedNorm(NamedTuple):
    """A norm as a command line names it.

    Parameters
    ----------
    name : str
        The norm's name, an alias or a preset.
    norm : Norm
    fixed : mapping of str to float
        The options that the name itself sets, by name: `{"p": 1}` for `l1`.
    """

    name: str
    norm: Norm
    fixed: Mapping[str, float]


_TENSORS = {AxesRule.LAST: "--layout NLC --shape 2,4,6", AxesRule.FIRST: "--shape 8,3"}
_TENSOR = "--shape 2,4,4,4"
"""The tensors of examples in help texts: by the norm's rule for axes; `_TENSOR` for all other rules."""

OF_ONE_TENSOR = ("--mask", "--lengths", "--fill")
SELECTION = ("--mask", "--lengths", "--nan", "--fill")
EVALUATION = ("--eval", "--running-mean", "--running-var", "--state")
TRAINING = ("--momentum", "--momentum-of", "--running-ddof", "--lock-timeout")
BOUNDS = ("--clip", "--clip-output")
AROUND = ("--clip", "--gate", "--gate-act", "--gate-order", "--clip-output")
CLUSTER = ("--scheduler", "--workers")
"""Options that belong together; verbs refuse each of these tuples as a whole."""


class Verb(NamedTuple):
    """A verb of the command line.

    Parameters
    ----------
    name : str
        The verb's key in `normcli.cli.commands.VERBS`; "" for the norms' own commands.
    run : callable
        Called with `Settings`, and the verb's own options by name. Its docstring is the verb's help.
    options : sequence of options, or callable
        The options. A callable returns the options for a `NamedNorm`; the verb then has a command for each
        norm.
    examples : sequence of str
        The arguments after the norm's name in the examples of a norm's help; `{tensor}` becomes a tensor that
        suits the norm. Only for verbs with a command for each norm.
    describe : callable or None
        Returns the help for a `NamedNorm`; None: the verb's help, with a paragraph on the norm.
    refused : mapping of (tuple of str) to str
        Options of other verbs that raise an error here → the reason, which the help states too.
    find_folder : callable or None
        Takes a name; returns the command for the folder of that name, or None if there is no such folder. None
        if the verb takes no folder.
    without_norm : str
        The verb whose command runs when options follow without a norm; "" if that is an error.
    """

    name: str
    run: Callable[..., None]
    options: Sequence[Option] | Callable[[NamedNorm], Sequence[Option]] = ()
    examples: Sequence[str] = ()
    describe: Callable[[NamedNorm], str] | None = None
    refused: Mapping[tuple[str, ...], str] = MappingProxyType({})
    find_folder: Callable[[str], click.Command | None] | None = None
    without_norm: str = ""

    def make_command(self) -> click.Command:
        """Return this verb's click command: a group with a command for each norm if `options` is callable."""
        text = inspect.cleandoc(self.run.__doc__ or "")
        if callable(self.options):
            return _VerbOfNorms(self, help=f"{text}\n\nnormcli {self.name} NORM --help lists the options.")
        return make_command(self.name, self.run, text, self.options, self.refused)

    def make_norm_command(self, name: str) -> click.Command:
        """Return this verb's command for one norm, by name, alias or preset; only if `options` is callable."""
        assert callable(self.options)
        named = NamedNorm(name, *find_norm(name))
        groups = "--groups 2" if named.norm.needs_groups else ""
        describe = self.describe or self._describe
        call = " ".join(filter(None, ("normcli", self.name, name, groups)))
        tensor = _TENSORS.get(named.norm.axes, _TENSOR)
        examples = (f"  {call} {example.format(tensor=tensor)}" for example in self.examples)
        text = "\n".join([describe(named), "\n\b", *examples])
        refused = {
            names: reason for names, reason in self.refused.items() if names != EVALUATION or named.norm.tracks
        }
        return make_command(name, self.run, text, self.options(named), refused, norm=name)

    def _describe(self, named: NamedNorm) -> str:
        """Return the verb's help without its examples, with a paragraph on the norm after the first one."""
        prose = inspect.cleandoc(self.run.__doc__ or "").split("\n\n\b\n")[0]
        summary, *rest = prose.split("\n\n")
        return "\n\n".join([summary, f"The norm is {named.norm.title}: {named.norm.summary}.", *rest])


_MAY_BE_BLANK = "delimiter"
"""The option whose value may be blank: a blank may separate the cells of a table."""


class _Command(click.Command):
    """A click command that refuses empty values (of unset shell variables) and options given twice."""

    context_class = TranslatedContext

    def make_parser(self, ctx: click.Context) -> Any:
        """Return click's parser, which raises click's `UsageError` for empty values and repeated options too.

        An unknown option raises click's `NoSuchOption`, with the verbs that have it.
        """
        parser = super().make_parser(ctx)
        parse = parser.parse_args

        def parse_args(args: list[str]) -> tuple[dict[str, Any], list[str], list[click.Parameter]]:
            try:
                given, rest, order = parse(args)
            except click.NoSuchOption as error:
                name_verbs(ctx, error.option_name)
                raise
            if not ctx.resilient_parsing:
                _check_given(ctx, given, order)
            return given, rest, order

        vars(parser)["parse_args"] = parse_args
        return parser

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as click does; the error for an extra argument names the options that take files."""
        ctx.allow_extra_args = True
        rest = super().parse_args(ctx, args)
        if rest and not ctx.resilient_parsing:
            takers = [param for param in self.params if param.metavar == "FILE" and param.name != "output"]
            remedy = f"; a file goes to {', '.join(param.opts[0] for param in takers)}" if takers else ""
            which = agree(len(rest), "argument", "arguments")
            raise click.UsageError(f"Got unexpected extra {which} ({' '.join(rest)}){remedy}", ctx)
        return rest


def _check_given(ctx: click.Context, given: Mapping[str, Any], order: Sequence[click.Parameter]) -> None:
    """Raise click's `UsageError` if a value is empty, or an option that takes one value is given several times.

    `given` has the values by parameter, `order` the parameters in the order of the command line.
    """
    for param in dict.fromkeys(order):
        is_option = isinstance(param, click.Option)
        name = "/".join(param.opts) if is_option else param.human_readable_name.strip("[]")
        value = given.get(str(param.name))
        texts = [
            text for text in (value if isinstance(value, list | tuple) else [value]) if isinstance(text, str)
        ]
        if any(not text or (param.name != _MAY_BE_BLANK and text.isspace()) for text in texts):
            raise click.UsageError(f"{name} is empty; is a variable not set?", ctx)
        takes_one = isinstance(param, click.Option) and not (param.multiple or param.is_flag)
        if takes_one and order.count(param) > 1:
            raise click.UsageError(f"{name} is given {order.count(param)} times; it takes one value", ctx)


def make_command(
    name: str,
    run: Callable[..., None],
    text: str,
    options: Sequence[Option],
    refused: Mapping[tuple[str, ...], str] = MappingProxyType({}),
    norm: str = "",
) -> click.Command:
    """Return a command that calls `run` with `Settings` and the verb's own options by name.

    Parameters
    ----------
    name : str
        The command's name.
    run : callable
    text : str
        The help.
    options : sequence of options
    refused : mapping of (tuple of str) to str
        Options that raise an error → the reason, which is added to the help.
    norm : str
        The norm's name; "" for a verb that takes none.
    """
    reasons = [
        f"\n\n{', '.join(names)} {agree(len(names), 'is', 'are')} refused: {reason}."
        for names, reason in refused.items()
    ]
    hidden = [_refuse(option, reason) for names, reason in refused.items() for option in names]

    def callback(**values: Any) -> None:
        from normcli.cli.parameters.settings import parse_settings

        _require_files(norm, values)
        require_unread_outputs(values)
        settings, own = parse_settings(norm, values, click.get_current_context().command.params)
        run(settings, **own)

    for option in reversed([*options, *hidden]):
        callback = option(callback)
    short = find_norm(norm)[0].summary if norm else None
    command = click.command(name=name, cls=_Command, help="".join([text, *reasons]), short_help=short)(callback)
    command.params.append(LANGUAGE)
    for param in command.params:
        if param.type is click.STRING and any(word in (param.metavar or "") for word in _NAMES_FILE):
            param.type = FileName()
    return command


def _require_files(norm: str, values: Mapping[str, Any]) -> None:
    """Raise click's `UsageError`, with a hint, if an input that does not exist was not meant as a file.

    It may be the name of a norm, or a number that belongs to `--at`.
    """
    for word in values.get("files") or ():
        if os.path.exists(word):  # noqa: PTH110
            continue
        if norm and word.lower() in BY_ANY_NAME:
            raise click.UsageError(
                f"{word} is a norm, where a file goes; did you mean normcli compare {norm} {word}?"
            )
        if values.get("at") is not None and word.lstrip("-").isdigit():
            raise click.UsageError(f"--at takes one word with commas: --at {values['at']},{word}")


_NAMES_FILE = ("FILE", "DIR", "STATS", "VALUE")
"""The words in metavars of options whose value may be a file."""


def _refuse(name: str, reason: str) -> Option:
    """Return a hidden option that raises click's `UsageError`, with the reason, if it is given."""

    def complain(ctx: click.Context, param: click.Parameter, given: Any) -> None:
        if given:
            raise click.UsageError(f"{name} is refused: {reason}", ctx)

    is_flag = True if name == "--eval" else None
    return click.option(name, hidden=True, expose_value=False, callback=complain, help=reason, is_flag=is_flag)


class _VerbOfNorms(CommandGroup):
    """The click group of a verb that has a command for each norm; a command is built when it is called."""

    def __init__(self, verb: Verb, **settings: Any) -> None:
        metavar, self.subject = (
            ("NORM …", "norm") if verb.find_folder is None else ("NORM|DIR …", "norm or folder")
        )
        super().__init__(verb.name, subcommand_metavar=metavar, no_args_is_help=False, **settings)
        self._make_norm_command, self._verb = cache(verb.make_norm_command), verb
        self.others = ()
        self.params.append(LANGUAGE)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as click does; if an option stands in place of the norm, run the verb `Verb.without_norm`.

        Raises click's `UsageError` if there is no such verb, or if there are no arguments.
        """
        if not args and not ctx.resilient_parsing:
            raise click.UsageError(
                f"{ctx.info_name} needs a {self.subject}; the norms are {', '.join(NORMS)}", ctx
            )
        known = {*ctx.help_option_names, *(name for param in self.params for name in param.opts)}
        if args and args[0].startswith("-") and args[0].partition("=")[0] not in known:
            if self._verb.without_norm:
                return super().parse_args(ctx, [self._verb.without_norm, *args])
            raise click.UsageError(
                f"{ctx.info_name} needs a norm first: normcli {ctx.info_name} NORM {args[0]} …; the norms are "
                f"{', '.join(NORMS)}",
                ctx,
            )
        return super().parse_args(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command for the name of a norm, alias, preset or folder, or of the verb without norm.

        For `check` that verb is `identify` (`Verb.without_norm`); folders are found by `Verb.find_folder`. None
        for any other name.
        """
        if cmd_name.lower() in BY_ANY_NAME:
            return self._make_norm_command(cmd_name)
        if cmd_name == self._verb.without_norm:
            return cast("click.Group", ctx.find_root().command).get_command(ctx.find_root(), cmd_name)
        return None if self._verb.find_folder is None else self._verb.find_folder(cmd_name)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        """Return the norms that begin with a text, and folders if the verb takes them."""
        from click.shell_completion import CompletionItem

        folders = [] if self._verb.find_folder is None else [CompletionItem(incomplete, type="dir")]
        return [*super().shell_complete(ctx, incomplete), *folders]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the names of the norms on one line; `normcli norms` explains them."""
        with formatter.section("Norms"):
            formatter.write_text(", ".join(NORMS))
