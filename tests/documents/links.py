"""Links of the documents, and the index of the decisions; run as a module it writes the index.

A link to a Python file may name a definition in it: `../shared/bus/fence.py#FencedLog.append`.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
DECISIONS: Final = ROOT / "docs" / "adr"
INDEX: Final = DECISIONS / "README.md"
_LINK: Final = re.compile(r"\]\((?!https?://)([^)\s#]*)(?:#([^)\s]*))?\)")
_HEAD: Final = """# Decisions

What was open when it was decided, with what was rejected and why. Made from the files' first lines
(`python -m tests.documents.links`).

"""
#: The site's menu wants them, too.
_FOOT: Final = """
```{toctree}
:hidden:
:glob:

0*
```
"""
#: Paths of our own that a page names, as `shared/bus/fence.py`.
_PATH: Final = re.compile(
    r"`((?:services|shared|tutti|tests|bench|deploy|docs|requirements)/[\w./-]+)`"
)


def documents() -> list[Path]:
    """All pages."""
    front = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
    return [*(ROOT / name for name in front), *sorted((ROOT / "docs").rglob("*.md"))]


def broken(page: Path, text: str) -> Iterator[str]:
    """Links of a page that lead nowhere."""
    for path, anchor in _LINK.findall(text):
        target = page.parent / path if path else page
        if not target.exists():
            yield f"{page.relative_to(ROOT)}: there is no {path}"
        elif anchor and target.suffix == ".py":
            if anchor not in definitions(target.read_text()):
                yield f"{page.relative_to(ROOT)}: {path} does not define {anchor}"
        elif anchor and anchor not in _anchors(text if target == page else target.read_text()):
            yield f"{page.relative_to(ROOT)}: {path or 'the page'} has no heading {anchor}"


#: A folder that programs create, and that no checkout has.
_MADE: Final = "bench/out/"


def missing_paths(text: str) -> list[str]:
    """Paths of ours in backticks that do not exist, and that no program creates."""
    return [
        path
        for path in _PATH.findall(text)
        if not (ROOT / path).exists() and not path.startswith(_MADE)
    ]


def definitions(text: str) -> set[str]:
    """Names of a module's classes and functions, methods as `Class.method`."""

    def within(node: ast.AST, prefix: str) -> Iterator[str]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield f"{prefix}{child.name}"
                yield from within(child, f"{prefix}{child.name}.")

    return set(within(ast.parse(text), ""))


def decisions() -> list[Path]:
    """The files of the decisions, in order."""
    return sorted(path for path in DECISIONS.glob("*.md") if path != INDEX)


def index() -> str:
    """The index as it should be."""
    titles = [path.read_text().partition("\n")[0].removeprefix("# ") for path in decisions()]
    lines = (f"* [{title}]({path.name})\n" for path, title in zip(decisions(), titles, strict=True))
    return _HEAD + "".join(lines) + _FOOT


def _anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


if __name__ == "__main__":
    INDEX.write_text(index())
