"""How `make docs` makes the site: Sphinx reads the Markdown as it lies here; a warning is an error.

A link from a page to a file of the repository that is no page leads to that file's text on the
site, `#Class.method` to its definition, so that pages read the same here and in a checkout's view.
"""
# ruff: noqa: INP001 - Sphinx reads this as a file: the documents are no package

import ast
import html
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_for_filename
from pygments.lexers.special import TextLexer
from pygments.util import ClassNotFound
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

DOCS: Final = Path(__file__).parent
ROOT: Final = DOCS.parent

project = "Tutti"
author = "the Tutti authors"
copyright = "the Tutti authors; Apache-2.0"  # noqa: A001 - Sphinx names it so
extensions = ["myst_parser"]
exclude_patterns = ["certificates/*.json"]
root_doc = "index"
myst_heading_anchors = 4
myst_enable_extensions = ["attrs_block"]
myst_url_schemes = {
    "http": None,
    "https": None,
    "file-of-repository": {"url": "{{path}}#{{fragment}}"},
}
nitpicky = True
highlight_language = "text"

html_theme = "furo"
html_title = "Tutti"
html_logo = "theme/logo.svg"
html_favicon = "theme/logo.svg"
html_static_path = ["theme"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#0b5394",
        "color-brand-content": "#0b5394",
        "font-stack--monospace": "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace",
    },
    "dark_css_variables": {
        "color-brand-primary": "#7fb2e5",
        "color-brand-content": "#7fb2e5",
    },
}

_LINK: Final = re.compile(r"(\[[^\]]*\])\((?!\w+:)([^)\s#]+)(#[^)\s]*)?\)")
#: Files of the repository that a page links to; their pages are made at the end.
_linked: set[str] = set()


def lead_to_files(_app: Sphinx, docname: str, source: list[str]) -> None:
    """Let links that leave docs/ lead to the file's page."""
    folder = posixpath.dirname(docname)

    def rewritten(found: re.Match[str]) -> str:
        text, path, fragment = found[1], found[2], found[3] or ""
        target = (DOCS / folder / path).resolve()
        if not target.is_relative_to(ROOT) or target.is_relative_to(DOCS):
            return found[0]
        if not target.is_file():
            raise ExtensionError(f"{docname}: {path} is no file, and no page")
        name = target.relative_to(ROOT).as_posix()
        _linked.add(name)
        to = posixpath.relpath(f"files/{name}.html", folder or ".")
        return f"{text}(file-of-repository:{to}{fragment})"

    source[0] = _LINK.sub(rewritten, source[0])


def file_pages(_app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """One page for each file that is linked to, its definitions reachable by name."""
    for name in sorted(_linked):
        text = (ROOT / name).read_text()
        title = html.escape(name)
        body = f"<section><h1>{title}</h1>{_numbered(name, text)}</section>"
        yield f"files/{name}", {"title": title, "body": body}, "page.html"


def _numbered(name: str, text: str) -> str:
    formatter = HtmlFormatter(linenos="inline", lineanchors="line", wrapcode=True)
    try:
        lexer = get_lexer_for_filename(name)
    except ClassNotFound:
        lexer = TextLexer()
    page = f'<div class="highlight">{highlight(text, lexer, formatter)}</div>'
    if name.endswith(".py"):
        for definition, line in _definitions(ast.parse(text)):
            page = page.replace(f'<a id="line-{line}"', f'<a id="{definition}"', 1)
    return page


def _definitions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, int]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{prefix}{child.name}"
            yield name, child.lineno
            yield from _definitions(child, f"{name}.")


def setup(app: Sphinx) -> None:
    """Sphinx calls this."""
    app.connect("source-read", lead_to_files)
    app.connect("html-collect-pages", file_pages)
