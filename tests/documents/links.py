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

Decisions that still bind, with what was rejected and why. A decision that no longer binds is
deleted, or becomes a sentence of the guide to its subject; git has its text. Made from the files'
first lines (`python -m tests.documents.links`).

| decision | status | date | in one sentence |
| --- | --- | --- | --- |
"""
#: The site's menu wants them, too.
_FOOT: Final = """
Former decisions are now in the guides: 0001, 0004, 0006, 0029, 0030, 0035 and 0038 in
[architecture](../architecture.md), 0010, 0013, 0014, 0027 and 0048 in [pacing](../pacing.md), 0036
in [security](../security.md), 0041 in `CONTRIBUTING.md`, 0103 in [queues](../queues.md#closing).
The status of a decision names those that it replaces.

```{toctree}
:hidden:
:glob:

0*
```
"""
#: How a decision begins: title, status, date, other decisions that it concerns, one sentence.
FIRST_LINES: Final = re.compile(
    r"# (.+)\n\nStatus: (accepted|superseded), (20\d\d-\d\d-\d\d)\.(.*)\n\n(.+\.)\n\n"
)
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
    return _HEAD + "".join(map(_row, decisions())) + _FOOT


def _row(path: Path) -> str:
    match = FIRST_LINES.match(path.read_text())
    if match is None:
        raise ValueError(f"{path.name} does not begin with title, status and one sentence")
    title, status, date, _, sentence = match.groups()
    return f"| [{title}]({path.name}) | {status} | {date} | {sentence} |\n"


def _anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


if __name__ == "__main__":
    INDEX.write_text(index())
