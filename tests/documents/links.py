"""Links of the documents, and the index of the decisions; run as a module it writes the index."""

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


def documents() -> list[Path]:
    """Everything that people read."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def broken(page: Path, text: str) -> Iterator[str]:
    """Links of a page that lead nowhere."""
    for path, anchor in _LINK.findall(text):
        target = page.parent / path if path else page
        if not target.exists():
            yield f"{page.relative_to(ROOT)}: there is no {path}"
        elif anchor and anchor not in _anchors(text if target == page else target.read_text()):
            yield f"{page.relative_to(ROOT)}: {path or 'the page'} has no heading {anchor}"


def decisions() -> list[Path]:
    """The files of the decisions, in order."""
    return sorted(path for path in DECISIONS.glob("*.md") if path != INDEX)


def index() -> str:
    """The index as it should be."""
    titles = [path.read_text().partition("\n")[0].removeprefix("# ") for path in decisions()]
    lines = (f"* [{title}]({path.name})\n" for path, title in zip(decisions(), titles, strict=True))
    return _HEAD + "".join(lines)


def _anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


if __name__ == "__main__":
    INDEX.write_text(index())
