"""`python samples/site/build.py FOLDER`: the site in both languages, written of what the program says of itself.

Needs the extra: pip install '.[docs]'. Every page is made anew: of helps, tables, answers of commands, `samples/` and
docstrings. Sphinx takes each warning for an error; at the end each link within the site is followed.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urljoin, urlparse
from urllib.request import url2pathname

import click
import numpy as np

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT))  # for tests.readme_parts, which runs commands

import normcli  # noqa: E402
import normcli.testing  # noqa: E402
from normcli.cli.commands import VERBS  # noqa: E402
from normcli.cli.languages import TranslatedContext  # noqa: E402
from normcli.cli.main import commands  # noqa: E402
from normcli.cli.verbs.reference.help import TOPICS  # noqa: E402
from normcli.cli.verbs.reference.list_tables import read_symptoms  # noqa: E402
from normcli.language import LANGUAGES, choose_language, translate  # noqa: E402
from normcli.norms.conventions import CONVENTIONS  # noqa: E402
from normcli.norms.table import BY_ANY_NAME, NORMS  # noqa: E402
from tests.readme_parts import show  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LECTURE = "normcli compare bn ln in gn:groups=2 --shape 2,4,3,3 -o {}"

EXAMPLES = {
    "explain": ["normcli explain ln --data '[[1,2,6]]' --eps 0 --at 0,0"],
    "compare": ["normcli compare ln:axes=CHW gn:groups=1 in bn --shape 1,4,3,3 --show equalities"],
    "draw": ["normcli draw bn --shape 2,3,2,2 --color never"],
    "backward": ["normcli backward ln --data '[[1,2,6]]' --dy '[[1,0,0]]'"],
    "restore": ["normcli restore bn --shape 3,4 --rng torch --dist normal --seed 0"],
    "check": ["normcli check ln -i x.npy --actual port.npy"],
    "identify": ["normcli identify -i x.npy --actual port.npy"],
    "audit": ["normcli audit --pairs 'x.npy=port.npy' --norm ln"],
    "doctor": ["normcli doctor ln -i x.npy --dtype float16"],
    "golden": [
        "normcli golden ln --shape 4,16 --dist normal --dtype float32 -o golden-ln",
        "normcli check golden-ln",
    ],
    "simulate": ["normcli simulate batch-size --draws 20"],
    "fit": ["normcli fit zscore x.npy -o stats.npz --print mean,std"],
    "merge": ["normcli fit zscore x.npy -o stats.npz -q > merged.txt", "normcli merge stats.npz stats.npz"],
    "apply": ["normcli apply stats.npz x.npy -o z.npy"],
    "invert": ["normcli invert stats.npz z.npy -o back.npy"],
    "fold": ["normcli fold --conv-weight '[[1,2],[3,4]]' --running-mean 0,1 --running-var 1,4"],
    "generate": ["normcli generate --shape 2,3 --print x"],
    "conventions": ["normcli conventions wn"],
    "norms": ["normcli norms"],
}
"""Verb → commands whose answers its page shows, run in a folder that holds x.npy, port.npy, …."""


class Site:
    """One language: its folder of Markdown, and how things are called in it."""

    def __init__(self, language: str, folder: Path) -> None:
        self.language, self.folder = language, folder
        choose_language(language)

    def say(self, english: str, chinese: str) -> str:
        """Return the one of two texts that is in the language."""
        return english if self.language == "en" else chinese

    def write(self, name: str, *parts: str) -> None:
        """Write a page of paragraphs."""
        path = self.folder / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n\n".join(part for part in parts if part) + "\n", encoding="utf-8")

    def run(self, *lines: str, folder: Path | None = None) -> str:
        """Return commands with what they print."""
        shown = show(*lines, language=self.language, folder=folder)
        choose_language(self.language)
        return shown

    def table(self, line: str) -> str:
        """Return what a command prints in Markdown."""
        printed = self.run(f"{line} -f markdown").split("\n")
        return "\n".join(printed[2:-1])


class MarkdownHelp(click.HelpFormatter):
    """A help as Markdown, in the language that was chosen; its sections are of the third level."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        self.write(f"```text\n{prog} {translate(args)}\n```\n\n")

    def write_heading(self, heading: str) -> None:
        self.write(f"### {translate(heading)}\n\n")

    def write_paragraph(self) -> None:
        self.write("\n")

    def write_text(self, text: str) -> None:
        for paragraph in inspect.cleandoc(text).split("\n\n"):
            if paragraph.startswith("\b"):
                lines = inspect.cleandoc(paragraph.removeprefix("\b").lstrip("\n")).split("\n")
                self.write("```text\n" + "\n".join(map(_translate_columns, lines)) + "\n```\n\n")
            else:
                self.write(escape(translate(" ".join(paragraph.split()))) + "\n\n")

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        for term, text in rows:
            self.write(f"`{term.strip()}`\n: {escape(translate(' '.join(text.split()))) or '–'}\n\n")

    @contextlib.contextmanager
    def indentation(self) -> Iterator[None]:
        yield


def _translate_columns(line: str) -> str:
    command, gap, text = line.partition("   ")
    return f"{command}{gap}{translate(text.strip())}" if gap else translate(line)


def escape(text: str) -> str:
    """Return a text of which Markdown takes no character for its own."""
    return re.sub(r"([\\`*_<>\[\]{}|$~#])", r"\\\1", text)


def format_help(*names: str) -> str:
    """Return the help of a command as Markdown, without its title."""
    context, command = TranslatedContext(commands, info_name="normcli"), commands
    for name in names:
        command = command.get_command(context, name)
        context = TranslatedContext(command, info_name=name, parent=context)
    context.formatter_class = MarkdownHelp
    return command.get_help(context)


def write_norms(site: Site) -> None:
    """Write a page for each norm: formula, picture, defaults of frameworks, pitfalls, sources, options."""
    symptoms = list(enumerate(read_symptoms()))
    for name, norm in NORMS.items():
        example = re.search(rf"normcli ({name} .*--shape \S+)", format_help(name))[1]
        picture = site.folder / "norms" / f"{name}.svg"
        picture.parent.mkdir(parents=True, exist_ok=True)
        site.run(f"normcli draw {example} -o {picture}")
        rows = [row for row in CONVENTIONS if row.norm == name]
        pitfalls = [f"- **{escape(row.framework)}**: {escape(translate(row.note))}" for row in rows if row.note]
        pitfalls += [
            f"- [{escape(translate(row.symptom))}](../symptoms.md#symptom-{number})"
            for number, row in symptoms
            if {BY_ANY_NAME[word].name for word in row.command.split() if word in BY_ANY_NAME} == {name}
        ]
        site.write(
            f"norms/{name}",
            f"# {name} · {translate(norm.title)}",
            " ".join(
                escape(f"{text[0].upper()}{text[1:]}{site.say('.', '。')}")
                for text in map(translate, (norm.summary, norm.use))
            ),
            f"## {site.say('Formula', '公式')}",
            f"```text\n{re.search('y = .*', format_help(name))[0]}\n```",
            _keep_steps(site.table(f"normcli explain {_shrink(example)}")),
            f"## {site.say('Picture', '图')}",
            site.say("Each colour is one group.", "每种颜色是一组。"),
            f"![normcli draw {example}]({name}.svg)",
            f"```sh\nnormcli draw {example} -o {name}.svg\n```",
            f"## {site.say('On a tensor', '一个张量')}",
            site.run(f"normcli {example} --show stats"),
            f"## {site.say('Defaults of each framework', '各框架的默认值')}",
            site.table(f"normcli conventions {name}").split("\n\n")[0] if rows else "–",
            f"## {site.say('Pitfalls', '陷阱')}",
            *(pitfalls and ["\n".join(pitfalls)]),
            site.say("Groups without spread:", "没有差异的组："),
            site.run(f"normcli {name} {'--groups 1 ' if name == 'gn' else ''}--data '[[2,2],[2,2]]' --print y"),
            f"## {site.say('Sources', '来源')}",
            f"{escape(norm.source)}.",
            f"## {site.say('The command', '命令')} {name}",
            format_help(name),
        )
    pages = "\n".join(NORMS)
    site.write(
        "norms/index",
        f"# {site.say('Norms', '归一化')}",
        site.table("normcli norms").replace("\n### ", "\n## "),
        f"```{{toctree}}\n:hidden:\n\n{pages}\n```",
    )


def _shrink(example: str) -> str:
    """Return an example on a tensor of a few values, whose story is short."""
    few = {2: "3,1", 3: "1,1,3", 4: "1,4,1,2"}
    return re.sub(r"(?<=--shape )\S+", lambda found: few[found[0].count(",") + 1], example)


def _keep_steps(story: str) -> str:
    """Return the steps of an explanation, without what comes before; their titles are bold, as there are many."""
    return re.sub(r"(?m)^### (.*)$", r"**\1**", story[story.index("\n### ") :])


def write_verbs(site: Site, folder: Path) -> None:
    """Write a page for each verb: what it does, an answer, and its options."""
    for name, line in VERBS.items():
        command = commands.get_command(click.Context(commands), name)
        answers = [site.run(*EXAMPLES[name], folder=folder)] if name in EXAMPLES else []
        of_norm = ()
        if isinstance(command, click.Group) and "bn" in command.list_commands(click.Context(command)):
            of_norm = (f"## normcli {name} bn", format_help(name, "bn"))
        site.write(
            f"verbs/{name}",
            f"# {name}",
            escape(translate(line)),
            *answers,
            f"## normcli {name}",
            format_help(name),
            *of_norm,
        )
    rows = [f"[`{name}`]({name}.md)\n: {escape(translate(line))}" for name, line in VERBS.items()]
    site.write(
        "verbs/index",
        f"# {site.say('Commands', '命令')}",
        *rows,
        "```{toctree}\n:hidden:\n\n" + "\n".join(VERBS) + "\n```",
    )


def write_topics(site: Site) -> None:
    """Write the topics of help, and what people report with whole answers."""
    for topic, listings in TOPICS.items():
        if topic == "symptoms":
            continue
        parts = [f"# {topic}"]
        for list_rows in listings:
            title, rows = list_rows()
            parts.append(f"## {escape(translate(title))}")
            for term, text in rows.items():
                lines = "\\\n".join(escape(translate(line)) for line in text.split("\n"))
                parts.append(f"`{translate(term).strip()}`\n: {lines.replace(chr(10), chr(10) + '  ')}")
            _, _, text = inspect.cleandoc(list_rows.__doc__ or "").partition("\n\n")
            parts += [escape(translate(" ".join(part.split()))) for part in text.split("\n\n") if part.strip()]
        site.write(f"topics/{topic}", *parts)
    topics = "\n".join(topic for topic in TOPICS if topic != "symptoms")
    site.write("topics/index", f"# {site.say('Topics', '主题')}", f"```{{toctree}}\n\n{topics}\n```")
    parts = [f"# {site.say('Symptom → command', '症状 → 命令')}"]
    parts.append(
        site.say(
            "What people report in public, and the command that names the cause. Each runs on the tensors that the lines of Python write.",
            "人们公开报告的现象，以及找出原因的命令。每条命令都在所列 Python 写出的张量上运行。",
        )
    )
    for number, row in enumerate(read_symptoms()):
        with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(scratch):
            exec(row.make, {"np": np})
            answer = site.run(row.command, folder=Path(scratch))
        parts += [
            f"(symptom-{number})=",
            f"## {escape(translate(row.symptom))}",
            f"[{row.thread.removeprefix('https://github.com/')}]({row.thread})",
            f"```python\nimport numpy as np\n\n{row.make.strip()}\n```",
            answer,
            f"**{site.say('The fix', '补救')}**{site.say(': ', '：')}{escape(translate(row.fix))}",
        ]
    site.write("symptoms", *parts)


def write_tables(site: Site) -> None:
    """Write the conventions of frameworks, the options of norms, and the measurements."""
    table, *notes = site.table("normcli conventions").split("\n\n")
    site.write("conventions", f"# {site.say('Conventions', '约定')}", table, *notes)
    context = TranslatedContext(commands, info_name="normcli")
    takers: dict[tuple[str, str], list[str]] = {}
    for name in NORMS:
        command = commands.get_command(context, name)
        for parameter in command.params:
            record = parameter.get_help_record(context)
            if record is not None:
                takers.setdefault(record, []).append(name)
    rows = [
        f"| `{escape_cell(term)}` | {escape(translate(' '.join(text.split())))} | "
        f"{'–' if len(names) == len(NORMS) else ' '.join(names)} |"
        for (term, text), names in takers.items()
    ]
    site.write(
        "options",
        f"# {site.say('Options of norms', '各归一化的选项')}",
        site.say(
            "The last column says which norms take an option; – is all of them.",
            "最后一列是接受该选项的归一化；– 为全部。",
        ),
        "\n".join(
            [
                site.say("| option | what it does | norms |", "| 选项 | 作用 | 归一化 |"),
                "| :--- | :--- | :--- |",
                *rows,
            ]
        ),
    )
    site.write(
        "measurements",
        f"# {site.say('Measurements', '测量')}",
        (ROOT / "tests" / "bench" / "results.md").read_text(),
    )


def escape_cell(text: str) -> str:
    """Return a term for a cell of a table."""
    return text.replace("|", "\\|")


def copy_samples(site: Site) -> None:
    """Copy the gallery and the samples; links to other files of the folder lead to copies."""
    suffix = site.say("", ".zh-CN")
    known = {"README": "samples", "gallery": "gallery"}
    for name, page in known.items():
        text = (ROOT / "samples" / f"{name}{suffix}.md").read_text(encoding="utf-8")
        text = re.sub(r"<!-- \[\[\[(?:(?!-->).)*-->\n|<!-- \[\[\[end\]\]\] -->\n?", "", text, flags=re.DOTALL)
        text = re.sub(r"\n\[(中文|English)\]\([^)]*\)\n", "\n", text)
        text = re.sub(r"\]\((README|gallery)(\.zh-CN)?\.md\)", lambda found: f"]({known[found[1]]}.md)", text)
        site.write(page, text)
    shutil.copytree(ROOT / "samples" / "pictures", site.folder / "pictures", dirs_exist_ok=True)


def write_api(site: Site) -> None:
    """Write the functions and classes of Python, of their docstrings, which are English."""
    parts = ["# Python"]
    for module in (normcli, normcli.testing):
        names = [name for name in module.__all__ if callable(getattr(module, name))]
        parts.append(f"## {module.__name__}")
        for name in names:
            kind = "autoclass" if isinstance(getattr(module, name), type) else "autofunction"
            members = "\n   :members:" if kind == "autoclass" else ""
            parts.append(f"```{{eval-rst}}\n.. {kind}:: {module.__name__}.{name}{members}\n```")
    site.write("api", *parts)


def write_frames(site: Site, live: Path) -> None:
    """Write the pages that hold another page: the lecture, and the notebook."""
    lecture = f"lecture-{site.language}.html"
    site.run(LECTURE.format(live / lecture))
    site.write(
        "lecture",
        f"# {site.say('The lecture page', '讲义页面')}",
        site.say(
            "One file that works by itself, step by step and norm by norm; change values, gamma, beta and eps in it.",
            "一个独立可用的文件，逐步、逐个归一化地讲；其中的值、gamma、beta 和 eps 都可以改。",
        ),
        f"```sh\n{LECTURE.format('lecture.html')}\n```",
        f'<iframe src="../live/{lecture}" title="normcli compare"></iframe>',
        f'<p><a href="../live/{lecture}">{site.say("The page alone", "只看此页")}</a></p>',
    )
    site.write(
        "notebook",
        f"# {site.say('The notebook', '笔记本')}",
        site.say(
            "samples/lecture.ipynb, as it runs: five texts on BatchNorm and LayerNorm, calculated again.",
            "运行后的 samples/lecture.ipynb：重新计算关于批归一化和层归一化的五篇文章。",
        ),
        '<iframe src="../live/lecture-notebook.html" title="lecture.ipynb"></iframe>',
        f'<p><a href="../live/lecture-notebook.html">{site.say("The notebook alone", "只看笔记本")}</a></p>',
    )


def write_index(site: Site) -> None:
    """Write the first page, and the order of all."""
    pages = [
        "gallery", "lecture", "notebook", "symptoms", "norms/index", "verbs/index", "options", "conventions", "topics/index",
        "samples", "api", "measurements",
    ]  # fmt: skip
    text = (HERE / f"index.{site.language}.md").read_text(encoding="utf-8")
    site.write("index", text, "```{toctree}\n:hidden:\n\n" + "\n".join(pages) + "\n```")


def make_tensors(folder: Path) -> None:
    """Write what the examples of verbs read: x, and a layer normalization of it that lacks a convention."""
    x = np.random.default_rng(0).normal(size=(8, 64)).astype(np.float32)
    port = (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True, ddof=1) + np.float32(1e-6))
    np.save(folder / "x.npy", x), np.save(folder / "port.npy", port)


def build(language: str, work: Path, target: Path) -> None:
    """Write the pages of a language and let Sphinx make HTML of them."""
    site = Site(language, work / language)
    tensors = work / f"tensors-{language}"
    tensors.mkdir()
    make_tensors(tensors)
    write_norms(site)
    write_verbs(site, tensors)
    write_topics(site)
    write_tables(site)
    copy_samples(site)
    write_api(site)
    write_frames(site, target / "live")
    write_index(site)
    for folder, name in (("_static", "site.css"), ("_templates", "other-language.html")):
        (site.folder / folder).mkdir()
        shutil.copy(HERE / name, site.folder / folder)
    subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-j", "auto", "-c", HERE,
         "-D", f"language={site.say('en', 'zh_CN')}", "-D", f"html_static_path={site.folder / '_static'}",
         "-D", f"templates_path={site.folder / '_templates'}", "-d", work / f"doctrees-{language}",
         site.folder, target / language],
        check=True,
    )  # fmt: skip


def run_notebook(live: Path) -> None:
    """Execute the notebook and write it as a page."""
    import nbformat
    from nbclient import NotebookClient
    from nbconvert import HTMLExporter

    notebook = nbformat.read(ROOT / "samples" / "lecture.ipynb", as_version=4)
    NotebookClient(notebook, resources={"metadata": {"path": ROOT / "samples"}}).execute()
    page, _ = HTMLExporter().from_notebook_node(notebook)
    (live / "lecture-notebook.html").write_text(page, encoding="utf-8")


class Links(HTMLParser):
    """The links and anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and name in ("id", "name"):
                self.anchors.add(value)
            if value and name in ("href", "src") and not re.match(r"[a-z]+:|//", value):
                self.links.append(value)


def find_broken_links(target: Path) -> list[str]:
    """Return the links within the site that lead to no file, or to no place on its page."""
    pages = {}
    for path in target.rglob("*.html"):
        pages[path] = Links()
        pages[path].feed(path.read_text(encoding="utf-8"))
    broken = []
    for path, page in pages.items():
        for link in page.links:
            address, _, anchor = urljoin(path.as_uri(), link).partition("#")
            place = Path(url2pathname(urlparse(address).path))
            if place.is_dir():
                place /= "index.html"
            is_there = place.exists() and (
                not anchor or place not in pages or unquote(anchor) in pages[place].anchors
            )
            if not is_there and "/live/" not in str(path):
                broken.append(f"{path.relative_to(target)}: {link}")
    return broken


if __name__ == "__main__":
    goal = Path(sys.argv[1]).resolve()
    os.environ["NO_COLOR"] = "1"
    (goal / "live").mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as made,
        ProcessPoolExecutor(3) as processes,
    ):  # a process has one language
        jobs = [processes.submit(build, each, Path(made), goal) for each in LANGUAGES]
        for job in (*jobs, processes.submit(run_notebook, goal / "live")):
            job.result()
    (goal / "index.html").write_text(
        '<!doctype html><meta charset="utf-8"><title>normcli</title><meta http-equiv="refresh" content="0; url=en/index.html">'
        '<p><a href="en/index.html">English</a> · <a href="zh/index.html">中文</a></p>',
        encoding="utf-8",
    )
    sys.exit("\n".join(["broken links:", *found]) if (found := find_broken_links(goal)) else 0)
