"""The messages of the program: what of the texts in its code a person may come to see.

A message is a text of at least two words, or an f-string with one; the code does not mark it. `ROOMS` says in which
files they stand, `NO_MESSAGE` what else looks like one.
"""

from __future__ import annotations

import ast
import functools
import inspect
import re
import tomllib
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from normcli.checking.fault import Fault
from normcli.cli.verbs.reference.list_tables import read_symptoms
from normcli.language.reading import PLACE, find_foreign_words

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(__file__).parents[2] / "normcli"

ROOMS = (
    "answers", "cli", "documents", "norms", "page/content.py", "page/__init__.py", "page/arithmetic.py", "pictures", "results",
    "running", "auditing/audit.py", "auditing/layer_verdict.py", "auditing/modules.py", "auditing/runs.py", "simulate", "teach", "checking", "identifying", "doctor", "golden", "algorithms", "errors.py", "tensors/random/recipe.py", "tensors/tensor.py", "fitting/fit.py",
    "fitting/statistics.py", "quantizing/judging.py", "quantizing/kernel_rules.py", "writers",
)  # fmt: skip
"""The files and folders whose texts are shown."""

NO_ROOMS = (
    "cli/manual.py", "cli/verbs/reference/completion.py", "cli/run.py", "cli/parameters/types.py", "norms/calls.py", "norms/layout.py", "pictures/svg.py",
    "results/result.py", "results/arguments.py", "running/state_file.py", "teach/value_index.py",
)  # fmt: skip
"""Among them those that have no texts but the man page, code, and what errors say."""

NO_MESSAGE = re.compile(
    r"[<.\\#_(/-]|.*\\(varepsilon|cdot|times|ne)\b|find data|normcli generate|from \w+ import|import |\S*\{(tensor|square|root)\}|transforms\.|scaler\.|transform=|const data|default-src"  # code, troff, LaTeX, markup
    r"|(dx|dgamma|dgamma, dbeta|mean, var|var|std|xhat|g|groups) = \S|for row in |normcli \S*[:{]|.*\.(py|cpp|cu|cc)\b|float \||Callable|bold red|copysign|\S+ in (zip|values)|.*\(\{1\} for \{2\}\)$"
    r"|(an?|one|two|the|yes|neither|none|no|not) .*(number|integer|words|text|numbers|dtype|framework|letter|or no|channel or more"
    r"|10,90|holds|\{0\}|≥ 0|\{1\})$|.*it does not fit into memory$|.*: it (takes|has) |a tensor of this shape|far too many"
    r"|, and$|\{0\} goes from|.*gives? the weight in|.*is no part of several|NORM|COMMAND|\{0\} (is none|knows)"
    r"|.*; evaluation needs|.*needs the extra|norm or folder|a run with --state|and no variance|\{0\} \{1\} known|\{0\}\{1\}: \{2\}\. "
)
"""What looks like a message and is none: code and formulas, and what errors are made of."""

SENTENCE = re.compile(r"(?<=[.?!]) (?=[A-Z\[(“|-])")

_VALUE = re.compile(r"\{(\w+)\}")


@functools.cache
def find_messages() -> dict[str, list[str]]:
    """Return each message, and the files in which it stands."""
    found: dict[str, list[str]] = {}
    for name, message in _list_messages():
        if name not in found.setdefault(message, []):
            found[message].append(name)
    return found


def _list_messages() -> Iterator[tuple[str, str]]:
    """Yield the file and the text of each message, wherever it stands."""
    for room in ROOMS:
        place = PACKAGE / room
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            name = path.relative_to(PACKAGE.parent).as_posix()
            if name.removeprefix("normcli/") not in NO_ROOMS:
                yield from ((name, message) for text in _Texts(path).found for message in split_sentences(text))
    yield from _list_of_page()
    for name, text in _list_remarks():
        yield from ((name, message) for message in split_sentences(text))
    for name, text in _list_docstrings():
        for paragraph in inspect.cleandoc(text).split("\n\n"):
            yield from ((name, message) for message in _split_paragraph(paragraph))


def find_words() -> set[str]:
    """Return every text of the code: what a message of one word may stand for."""
    words = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                words.add(node.value)
    words.update(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.toml"))
    return words


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text, each a message of its own."""
    sentences = SENTENCE.split(" ".join(text.split()))
    return [_number(part) for part in sentences if looks_like_message(part)]


def looks_like_message(text: str) -> bool:
    """Whether a text is one that a person reads: two words at least, of which one is no name, and no code."""
    return " " in text.strip() and bool(find_foreign_words(PLACE.sub("0", text))) and not NO_MESSAGE.match(text)


def _number(sentence: str) -> str:
    """Return a sentence with its values numbered from 0: not those of the sentences before it."""
    sentence = re.sub(r"^\{\w\} (?=[A-Z])", "", sentence)
    sentence = re.sub(r"(?<=[.?!])(\{\w\})+$", "", sentence)
    places = list(dict.fromkeys(_VALUE.findall(sentence)))
    return _VALUE.sub(lambda found: f"{{{places.index(found[1])}}}", sentence)


def _split_paragraph(paragraph: str) -> Iterator[str]:
    if not paragraph.startswith("\b"):
        yield from split_sentences(paragraph)
        return
    for line in paragraph.split("\n")[1:]:
        *_, text = re.split(r" {2,}", line.strip())
        if looks_like_message(text) and not text.startswith("normcli"):
            yield text


def _list_of_page() -> Iterator[tuple[str, str]]:
    """Yield what the script of pages says, and what stands in their HTML."""
    for path in sorted((PACKAGE / "page").glob("*.js")):
        for message in re.findall(r'\bsay\("((?:[^"\\]|\\.)*)"', path.read_text(encoding="utf-8")):
            yield f"normcli/page/{path.name}", message
    for message in re.findall(
        r"\[\[(.*?)\]\]", (PACKAGE / "page" / "page.html").read_text(encoding="utf-8"), re.DOTALL
    ):
        yield "normcli/page/page.html", " ".join(message.split())


def _list_remarks() -> Iterator[tuple[str, str]]:
    """Yield what the tables of symptoms, of faults and of conventions say."""
    for fault in tomllib.loads((PACKAGE / "checking" / "faults.toml").read_text(encoding="utf-8")).values():
        texts = (fault["words"], fault["remedy"], *fault.get("shown", ()))
        yield from (("normcli/checking/faults.toml", text) for text in texts)
    for row in read_symptoms():
        yield from (("normcli/cli/verbs/reference/symptoms.toml", text) for text in (row.symptom, row.fix))
    path = PACKAGE / "norms" / "conventions.toml"
    rows = tomllib.loads(path.read_text(encoding="utf-8")).values()
    for row in (row for part in rows if isinstance(part, list) for row in part):
        yield from (
            ("normcli/norms/conventions.toml", row[name]) for name in ("note", "precision") if name in row
        )


def _list_docstrings() -> Iterator[tuple[str, str]]:
    """Yield the docstrings that helps are made of."""
    from normcli.cli.commands import VERBS
    from normcli.cli.main import commands, import_verb
    from normcli.cli.verbs.reference.help import TOPICS
    from normcli.writers import PICTURES, WRITERS

    yield "normcli/cli/main.py", commands.help or ""
    for verb in VERBS:
        function = import_verb(verb).run
        yield function.__module__.replace(".", "/") + ".py", function.__doc__ or ""
    for listings in TOPICS.values():
        for list_rows in listings:
            _, _, text = inspect.cleandoc(list_rows.__doc__ or "").partition("\n\n")
            yield "normcli/cli/verbs/reference/help.py", text
    for module, function in (WRITERS | PICTURES).values():
        line = (getattr(import_module(module), function).__doc__ or "").split("\n")[0]
        yield module.replace(".", "/") + ".py", line.removeprefix("Write ").rstrip(".")


_EXAMPLE = Fault._fields.index("example")


class _Texts(ast.NodeVisitor):
    """Collects the texts of a file but docstrings, types and what errors say."""

    def __init__(self, path: Path) -> None:
        self.found: list[str] = []
        self.visit(ast.parse(path.read_text(encoding="utf-8")))

    def generic_visit(self, node: ast.AST) -> None:
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not _is_docstring(child):
                    self.visit(child)

    def visit_Raise(self, node: ast.Raise) -> None:
        """Errors stay in English."""

    def visit_Call(self, node: ast.Call) -> None:
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        if name in ("format_count", "agree"):
            texts = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
            if name == "format_count" and texts:
                one, more = texts[0], texts[1] if len(texts) > 1 else f"{texts[0]}s"
                self.found += [f"{{0}} {one}", f"{{0}} {more}"]
                return
        if name == "Row":  # which needs parts by their names
            node.args = node.args[:2]
        if name == "Fault":  # whose example is code
            self._visit_fault(node)
            return
        if name == "compile" or name.endswith(("Error", "refuse", "Refusal")):
            return
        self.generic_visit(node)

    def _visit_fault(self, node: ast.Call) -> None:
        """Collect the words and the remedy of a fault, and what lists show of its values."""
        _, *texts = (argument for place, argument in enumerate(node.args) if place != _EXAMPLE)
        for text in texts:
            self.visit(text)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        text, count = "", 0
        for value in node.values:
            if isinstance(value, ast.Constant):
                text += value.value
            else:
                text, count = f"{text}{{{count}}}", count + 1
        if looks_like_message(text):
            self.found.append(text)
        for value in node.values:
            if isinstance(value, ast.FormattedValue):
                self.visit(value.value)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and looks_like_message(node.value):
            self.found.append(node.value)


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
