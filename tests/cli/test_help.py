"""Every command and every option says what it is."""

from __future__ import annotations

import inspect
import re

import click
import pytest

from normcli import NORMS, errors
from normcli.checking.gradient_faults import list_faults
from normcli.cli.commands import VERBS
from normcli.cli.main import commands
from normcli.cli.verbs.reference.help import TOPICS
from normcli.compiled import describe_kernel
from normcli.errors import ExitCode, NormError
from normcli.identifying.faults.claim import FAULTS as OF_KERNELS
from normcli.norms.layout import CHANNEL_LAST_LAYOUTS, DEFAULT_LAYOUTS
from normcli.norms.options import OPTIONS, list_own_options
from normcli.quantizing import judging, kernel_rules
from normcli.quantizing.formats import FORMATS as CODES
from normcli.tensors.formats.file_formats import FORMATS
from normcli.version import __version__
from normcli.writers import PICTURES, SUFFIXES, WRITERS
from tests.conftest import ROOT, require_refusal


def build(name: str) -> click.Command:
    command = commands.get_command(click.Context(commands), name)
    assert command is not None
    return command


NAMES = [*NORMS, *VERBS]
FAULTS = [*(row.fault for row in OF_KERNELS), *list_faults()]
OF_NORMS = [(verb, name) for verb in VERBS for name in NORMS if isinstance(build(verb), click.Group)]


@pytest.mark.parametrize("words", [*((name,) for name in NAMES), *OF_NORMS], ids=" ".join)
def test_each_command_has_help_with_an_example_and_of_each_option(words, normcli):
    ran = normcli(*words, "--help")
    assert (ran.code, ran.err) == (0, "")
    assert f"  normcli {' '.join(words)}" in ran.out
    command = build(words[0])
    if len(words) == 2:
        command = command.get_command(click.Context(commands), words[1])
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    assert [option.opts for option in options if not option.help] == []


@pytest.mark.parametrize("name", NORMS)
def test_each_norm_has_the_numeric_options_of_its_row_and_no_others(name):
    have = {parameter.name for parameter in build(name).params}
    assert have & {option.name for option in OPTIONS if option.is_of} == set(list_own_options(NORMS[name]))
    assert have & {"gamma", "beta"} == set(NORMS[name].parameter_names)


RULES = set(
    re.findall(r'"((?:scale|codes)-[a-z-]+)"', inspect.getsource(judging) + inspect.getsource(kernel_rules))
)
"""The ids of the rules by which somebody's scales and codes may be made."""


@pytest.mark.parametrize(
    ("topic", "names"),
    [
        pytest.param("formats", [*FORMATS, *WRITERS, *PICTURES, *SUFFIXES], id="formats"),
        pytest.param("exit-codes", [str(int(code)) for code in ExitCode], id="exit-codes"),
        pytest.param("layouts", [*DEFAULT_LAYOUTS.values(), *CHANNEL_LAST_LAYOUTS.values()], id="layouts"),
        pytest.param("faults", [fault.id for fault in FAULTS], id="faults"),
        pytest.param("dumps", ["NAME.input", "NAME.grad_output", "normcli-dump/1"], id="dumps"),
        pytest.param("codes", [*CODES, *RULES], id="codes"),
        pytest.param("words", ["rstd", "ulp", "numpy-legacy", "1c11", "x̂", "y"], id="words"),
    ],
)
def test_a_topic_names_each_row_of_its_tables(topic, names, normcli):
    ran = normcli("help", topic)
    assert (ran.code, ran.err) == (0, "")
    said = ran.out.replace("-\n", "-")  # a line may break behind a hyphen
    assert set(names) <= set(re.split(r"[\s;,:]+", said))
    assert topic in normcli("help", "--help").out


def test_rules_of_scales_and_codes_have_ids_of_their_own():
    assert len(RULES) == 32


def test_every_topic_is_tested():
    assert [*TOPICS] == ["formats", "exit-codes", "layouts", "codes", "words", "dumps", "faults", "symptoms"]


@pytest.mark.slow
def test_help_lists_each_fault_with_its_cause_its_remedy_and_an_example(normcli):
    printed = normcli("help", "faults").out
    listed = printed.replace("\n      ", "\n")
    for fault in FAULTS:
        words, remedy, example = fault.generalize()[1:4]
        block = listed.partition(f"\n  {fault.id}\n")[2].partition("\n  ")[0]
        assert " ".join(block.split()).startswith(f"{words} fix: {remedy} {' '.join(example.split())}"), (
            fault.id
        )
    assert max(map(len, printed.splitlines())) <= 80


def test_every_error_has_a_code_that_is_explained():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, NormError)]
    assert len(kinds) > 1
    assert all(isinstance(kind.exit_code, ExitCode) for kind in kinds)


@pytest.mark.parametrize("words", [["bn"], ["fit"], ["check", "gn"], []], ids=" ".join)
def test_help_of_a_command_is_its_own(words, normcli):
    assert normcli("help", *words).out == normcli(*words, "--help").out


@pytest.mark.parametrize("words", [["format"], ["check", "gm"], ["formats", "layouts"], ["bn", "check"]])
def test_help_on_what_there_is_not(words, normcli):
    require_refusal(normcli("help", *words), 2, repr(words[-1]))


def test_a_topic_is_searched_for_a_word(normcli):
    said = normcli("help", "faults", "Dgate").out
    named = {fault.id for fault in FAULTS if f"  {fault.id}\n" in said}
    assert named == {fault.id for fault in FAULTS if fault.id.startswith("dgate-")}
    assert "fix: turn the sign" in said
    assert "stored-not-rooted" in normcli("help", "faults", "开平方", "--lang", "zh").out


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_the_top_lists_every_norm_and_verb(arguments, normcli):
    ran = normcli(*arguments)
    assert ran.code == 0
    for name in NAMES:
        assert f"\n  {name} " in ran.out


def test_version(normcli):
    assert normcli("--version").out == f"normcli {__version__} ({describe_kernel()})\n"


def test_the_changelog_speaks_of_this_version():
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text()


REFUSED = [
    (verb, name, option)
    for verb in VERBS
    for name in (["bn"] if isinstance(build(verb), click.Group) else [""])
    for option in ("--mask", "--nan", "--eval", "--running-mean", "--state", "--gamma", "--affine-seed")
    if any(
        option in parameter.opts and getattr(parameter, "hidden", False)
        for parameter in (
            build(verb).get_command(click.Context(commands), name) if name else build(verb)
        ).params
    )
]


@pytest.mark.parametrize(("verb", "name", "option"), REFUSED)
def test_what_a_verb_refuses_is_said_in_its_help_with_the_reason(verb, name, option, normcli):
    words = [verb, name] if name else [verb]
    ran = normcli(*words, option, *(["1"] if option != "--eval" else []))
    assert (ran.code, ran.out) == (2, "")
    reason = re.search(rf"{option} is refused: (.*) \(see normcli", ran.err).group(1)
    told = "".join(normcli(*words, "--help").out.split())  # lines break within hyphenated words too
    assert f"refused: {reason}.".replace(" ", "") in told


def test_every_verb_that_is_asked_of_a_norm_takes_or_refuses_a_selection_and_evaluation():
    for verb in VERBS:
        if isinstance(build(verb), click.Group):
            command = build(verb).get_command(click.Context(commands), "bn")
            has = {option for parameter in command.params for option in parameter.opts}
            assert {"--mask", "--lengths", "--nan", "--fill", "--eval", "--running-mean"} <= has, verb
