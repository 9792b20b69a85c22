"""The house: which module may import which, and what is imported when."""

from __future__ import annotations

import ast
import functools
import json
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import normcli
from normcli import NORMS
from normcli.cli.commands import VERBS
from tests.conftest import ROOT
from tests.marks import costly

PACKAGE = ROOT / "normcli"
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in PACKAGE.rglob("*.py")
}


def read_floors() -> tuple[list[set[str]], dict[str, set[str]]]:
    """Return the table of CONTRIBUTING: the rooms of each floor, and for each room those that it knows nothing of."""
    floors, unknown = [], {}
    for line in (ROOT / "CONTRIBUTING.md").read_text().splitlines():
        if re.match(r"\| \d+ \|", line):
            _, number, rooms, _, others, _ = (cell.strip() for cell in line.split("|"))
            floors.append(set(re.findall(r"`(\w+)`", rooms)))
            assert int(number) == len(floors)
            unknown |= {name: set(re.findall(r"`(\w+)`", others)) for name in floors[-1]}
    return floors, unknown


FLOORS, UNKNOWN = read_floors()


def room(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else parts[0]


@functools.cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def walk_statements(node: ast.AST, *, typing_too: bool = True) -> Iterator[ast.AST]:
    """Yield the statements in a node, those for type checking alone only if asked."""
    for field in ("body", "handlers", "orelse", "finalbody", "cases"):
        for statement in getattr(node, field, ()):
            if not typing_too and isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.dump(statement.test):
                continue
            yield statement
            yield from walk_statements(statement, typing_too=typing_too)


@functools.cache
def imports(path: Path, *, typing_too: bool) -> set[str]:
    """Return the modules that a file imports, those for type checking alone only if asked."""
    found: set[str] = set()
    for statement in walk_statements(parse(path), typing_too=typing_too):
        if isinstance(statement, ast.Import):
            found.update(alias.name for alias in statement.names)
        if isinstance(statement, ast.ImportFrom) and statement.module:
            found.add(statement.module)
    return found


@pytest.mark.slow
def test_arrows_point_one_way():
    floors = {name: number for number, names in enumerate(FLOORS) for name in names}
    arrows = [
        (module, imported) for module in MODULES for imported in imports(MODULES[module], typing_too=True)
    ]
    rooms = {(one, other): (room(one), room(other)) for one, other in arrows if other.startswith("normcli")}
    between = {arrow: ends for arrow, ends in rooms.items() if ends[0] != ends[1]}
    assert len(between) > 100
    assert [arrow for arrow, (here, there) in between.items() if floors[there] >= floors[here]] == []
    assert [arrow for arrow, (here, there) in between.items() if there in UNKNOWN[here]] == []


def test_no_modules_go_in_a_circle():
    """Not even for types: graphlib names the first circle that there is."""
    named = {
        module: imports(path, typing_too=True) & MODULES.keys() - {"normcli"}
        for module, path in MODULES.items()
    }
    assert sum(map(len, named.values())) > 1000
    assert len([*TopologicalSorter(named).static_order()]) == len(MODULES)


def test_contributing_names_what_is_there():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    paths = {
        path
        for path in re.findall(r"`((?:normcli|tests|samples)/[\w./]+)`", text)
        if not re.search("ROOM|MODULE", path)
    }
    assert len(paths) > 10
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []


def test_where_it_is_names_files_that_are_there():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    table = text[text.index("\nWhere is it?") : text.index("\nIn a room,")]
    rows = [line.split("|")[2] for line in table.splitlines() if line.startswith("| ")][2:]
    assert len(rows) > 15
    names = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*")}
    for row in rows:
        for path in re.findall(r"`([\w/]+(?:\.py|/))`", row):
            assert any(f"/{name}/".endswith(f"/{path.rstrip('/')}/") for name in names), path


def test_the_table_of_verbs_names_what_does_their_work():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    table = text[text.index("\n| verb | command line") : text.index("## Glossary")]
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("| ")
    ]
    named = {verb.split()[0] for verb, *_ in rows[2:]}
    assert set(VERBS) - named == {"generate", "norms", "conventions", "completion", "help"}
    for verb, command, works, in_python, document in rows[2:]:
        called = (PACKAGE / "cli/verbs" / command.strip("`")).read_text()
        for names, path in re.findall(r"((?:`\w+`[^`;]*?)+) of `([\w/]+\.py)`", works):
            for name in re.findall(r"`(\w+)`", names):
                assert f"def {name}(" in (PACKAGE / path).read_text(), (verb, name)
                assert re.search(rf"\b{name}\(", called), (verb, name)
        assert in_python.strip("`") in ("", *normcli.__all__)
        assert not document or (PACKAGE / "answers" / document.strip("`")).is_file()


def read_end_to_end() -> list[tuple[str, str]]:
    """Return the files and functions that CONTRIBUTING says one command goes through, in order."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    section = text[text.index("## One command, end to end") :].split("\n## ")[0]
    return re.findall(r"^\d+\. `(normcli/[\w/]+\.py)`, `([\w.]+)`", section, flags=re.MULTILINE)


_TRACED = """
import json, sys
from pathlib import Path
called = {}
def note(frame, event, _):
    if event == "call":
        called.setdefault((frame.f_code.co_filename, frame.f_code.co_qualname))
sys.argv = ["normcli", "bn", "--shape", "2,3,4,4"]
import os
import normcli.__main__ as program
os._exit = sys.exit
sys.setprofile(note)
try:
    program.main()
except SystemExit:
    pass
sys.setprofile(None)
print(json.dumps(list(called)), file=sys.stderr)
"""


def test_contributing_tells_how_one_command_goes():
    told = read_end_to_end()
    assert len(told) == 10
    ran = subprocess.run(
        [sys.executable, "-c", _TRACED],
        capture_output=True,
        check=True,
        cwd=ROOT,
        env=os.environ | {"NORMCLI_KERNEL": "numpy"},
    )
    called = [(file.rpartition("normcli/")[2], name) for file, name in json.loads(ran.stderr)]
    places = [called.index((path.removeprefix("normcli/"), name)) for path, name in told]
    assert places == sorted(places)


def test_each_room_stands_on_one_floor():
    rooms = [name for names in FLOORS for name in names]
    assert sorted(rooms) == sorted({room(module) for module in MODULES})


@pytest.mark.slow
def test_the_tests_of_a_room_are_found_by_its_name():
    here = ROOT / "tests"
    rooms = {room(module) for module in MODULES if MODULES[module].name == "__init__.py"}
    assert {path.parent.name for path in here.glob("*/test_*.py")} <= rooms
    for path in here.glob("*/test_*.py"):
        inside = (PACKAGE / path.parent.name).rglob("*")
        names = {module.stem for module in inside} | {path.parent.name}  # modules, and rooms of this room
        tested = path.stem.removeprefix("test_")
        assert any(tested == name or tested.startswith(f"{name}_") for name in names), path


@pytest.mark.parametrize(
    "folder",
    [
        pytest.param(path.parent, id=module)
        for module, path in MODULES.items()
        if path.name == "__init__.py" and room(module) != "normcli"
    ],
)
def test_a_folder_lists_its_files(folder):
    listed = re.findall(r"^\* `(\w+)`: ", ast.get_docstring(parse(folder / "__init__.py")), flags=re.M)
    files = {path.stem for path in folder.glob("*.py")} | {
        path.parent.name for path in folder.glob("*/__init__.py")
    }
    assert (sorted(listed), len(listed) <= 15) == (sorted(files - {"__init__"}), True)


TWO_HOMES = {"Difference", "Kept", "Records", "Rows", "Solved", "Sums", "Whole"}
"""Classes that share their name with another; no new one does."""


def test_no_two_classes_have_one_name():
    names = [
        node.name for path in MODULES.values() for node in parse(path).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]  # fmt: skip
    assert {name for name, count in Counter(names).items() if count > 1} <= TWO_HOMES


def test_click_is_imported_in_cli_alone_and_rich_in_writers_and_for_progress_alone():
    packages = {
        module: {name.split(".")[0] for name in imports(path, typing_too=True)}
        for module, path in MODULES.items()
    }
    assert {room(module) for module, names in packages.items() if "click" in names} == {"cli"}
    of_rich = {module for module, names in packages.items() if "rich" in names}
    assert {module for module in of_rich if room(module) != "writers"} == {"normcli.cli.progress"}


@pytest.mark.slow
def test_named_tuples_are_those_that_are_quickly_imported():
    of_typing = {
        module
        for module, path in MODULES.items()
        for node in walk_statements(parse(path))
        if isinstance(node, ast.ImportFrom) and node.module == "typing"
        if "NamedTuple" in {alias.name for alias in node.names}
    }
    assert of_typing == {"normcli.tuples"}


@pytest.mark.slow
def test_no_norm_is_called_by_name_outside_the_table_and_the_plan():
    others = [module for module in MODULES if room(module) != "norms"]
    names = re.compile(rf"['\"]({'|'.join(NORMS)})['\"]")
    compared = [
        f"{module}, line {node.lineno}: {constant.value}"
        for module in others
        if names.search(MODULES[module].read_text())
        for node in ast.walk(parse(MODULES[module]))
        if isinstance(node, ast.Compare)
        for constant in ast.walk(node)
        if isinstance(constant, ast.Constant) and constant.value in list(NORMS)
    ]
    assert others
    assert compared == []


@pytest.mark.slow
@costly
@pytest.mark.parametrize(
    ("line", "absent"),
    [
        ("--help", "numpy rich"),
        ("--version", "numpy rich"),
        ("bn --shape 2,3", "tempfile mmap csv"),
        (
            "bn --shape 2,3 -f json",
            "rich numpy.ma pathlib shlex fractions decimal normcli.tensors.tables.tables",
        ),
        ("bn --shape 2,3 -f csv", "rich normcli.tensors.random.torch_stream"),
        ("bn --shape 2,3 --print mean", "rich ml_dtypes safetensors"),
    ],
)
def test_what_a_command_does_not_import(line, absent):
    code = (
        "import sys, json, io, contextlib\n"
        "from normcli.cli.run import run\n"
        f"with contextlib.redirect_stdout(io.StringIO()): run({line!r}.split())\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    plain = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env=plain)
    assert not set(absent.split()) & set(json.loads(ran.stdout))


def test_the_library_works_without_click_and_rich():
    code = (
        "import sys\n"
        "sys.modules['click'] = sys.modules['rich'] = None\n"
        "import normcli\n"
        "print(normcli.normalize([[1., 3.]], 'ln', eps=0).normalized.tolist())"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert ran.stdout == b"[[-1.0, 1.0]]\n"


def test_an_installed_package_has_every_file():
    with (ROOT / "pyproject.toml").open("rb") as stream:
        tool = tomllib.load(stream)["tool"]["setuptools"]
    packed, laid = tool["package-data"], tool["data-files"].values()
    patterns = [
        (ROOT / package.replace(".", "/"), pattern) for package, names in packed.items() for pattern in names
    ]
    kept = {path for folder, pattern in patterns for path in folder.glob(pattern)}
    kept |= {ROOT / name for names in laid for name in names}
    others = {path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")}
    assert others == kept


def test_the_top_level_holds_what_it_may():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    tops = {line.split("/")[0] for line in listed.stdout.decode().splitlines()}
    allowed = {"pyproject.toml", "normcli", "tests", "samples", "LICENSE"} | {
        f"{name}.md" for name in ("README", "CONTRIBUTING", "CHANGELOG")
    }
    assert {top for top in tops if not top.startswith(".")} <= allowed
