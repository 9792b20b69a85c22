"""How Sphinx builds one language of the site; `build.py` writes the pages and calls it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import latex2mathml.converter
from docutils import nodes
from sphinx.search.zh import SearchChinese

from normcli.version import __version__

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "normcli"
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
source_suffix = {".md": "markdown"}
myst_enable_extensions = ["deflist", "attrs_block"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 3
suppress_warnings = ["config.cache"]
default_role = "code"  # of docstrings, which write names as Markdown does
autodoc_typehints = "none"  # docstrings say it in words
autodoc_member_order = "bysource"
napoleon_preprocess_types = False
copybutton_only_copy_prompt_lines = True
copybutton_prompt_text = "$ "
html_theme = "furo"
html_title = f"normcli {__version__}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_show_copyright = False
html_sidebars = {
    "**": [
        "sidebar/brand.html", "sidebar/search.html", "other-language.html", "sidebar/scroll-start.html",
        "sidebar/navigation.html", "sidebar/scroll-end.html",
    ]
}  # fmt: skip
templates_path = ["_templates"]
SearchChinese.language_name = (
    "English"  # whose stemmer it has: Sphinx 9.0 writes the name of one that there is none of
)
html_math_renderer = "mathml"  # which browsers draw by themselves


def _write_math(writer: Any, node: nodes.math | nodes.math_block) -> None:
    """Write a formula as MathML."""
    shown = "block" if isinstance(node, nodes.math_block) else "inline"
    markup = latex2mathml.converter.convert(node.astext().replace("{aligned}", "{align*}"), display=shown)
    writer.body.append(f'<div class="formula">{markup}</div>' if shown == "block" else markup)
    raise nodes.SkipNode


def _keep_bars(_app: Sphinx, _what: str, _name: str, _object: Any, _options: Any, lines: list[str]) -> None:
    """Have |x| stand for itself: in reStructuredText it is replaced."""
    lines[:] = [
        line if line.lstrip().startswith((">>>", "...")) else line.replace("|", r"\|") for line in lines
    ]


def setup(app: Sphinx) -> None:
    """Register how formulas and docstrings are read."""
    app.connect("autodoc-process-docstring", _keep_bars)
    app.add_html_math_renderer("mathml", (_write_math, None), (_write_math, None))
