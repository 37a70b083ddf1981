"""Code blocks of the documents, and the mark before each that names the test that runs it.

A mark is an HTML comment on the line above the block, so that no reader sees it:

    <!-- run -->               by tests/documents/test_commands.py, in `make test`
    <!-- run: certify -->      as well, in `make certify`
    <!-- run by: PATH -->      by that test or program, which does the same
    <!-- not run: REASON -->   by no test, and why not
    <!-- file: NAME -->        it is a file of that name, which commands further down read
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from tests.documents.links import ROOT

_BLOCK: Final = re.compile(
    r"(?:^<!-- (?P<mark>[^>]*?) -->\n)?^```(?P<language>[\w-]*)[^\n]*\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
#: A line of a block that begins with one of these programs is a command.
_PROGRAMS: Final = (
    r"make|tutti|kubectl|helm|vcctl|vsub|vjobs|vcancel|vsuspend|vresume|vqueues|docker|git|pip|"
    r"python3?|nats-server|curl|grep|cd|export"
)
_TYPED: Final = re.compile(rf"^(?:\$ |(?:\.venv/bin/)?(?:{_PROGRAMS})(?= (?!is )|$))")
#: Blocks in these languages are read, not typed.
_DATA: Final = {"yaml", "json", "python", "mermaid", "promql", "toml"}
PAGES: Final = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/*.md", "docs/*/*.md")


class Command(NamedTuple):
    """One command as it is typed, and its output on the page; "" when the page has none."""

    typed: str
    output: str


class Block(NamedTuple):
    """One fenced block."""

    page: str
    line: int
    mark: str
    language: str
    text: str

    @property
    def title(self) -> str:
        """Where it is, for messages."""
        return f"{self.page}:{self.line}"

    @property
    def what(self) -> str:
        """The mark's first word or words: run, run by, not run, file; "" without a mark."""
        return self.mark.partition(":")[0].strip()

    @property
    def detail(self) -> str:
        """The text of the mark after its colon."""
        return self.mark.partition(":")[2].strip()

    @property
    def typed(self) -> bool:
        """Whether it shows commands."""
        lines = self.text.splitlines()
        return self.language not in _DATA and any(_TYPED.match(line) for line in lines)

    def commands(self) -> list[Command]:
        """The commands in order. If commands begin with `$ `, the other lines are their output."""
        lines = self.text.splitlines()
        if not any(line.startswith("$ ") for line in lines):
            return [Command(line, "") for line in lines if _TYPED.match(line)]
        found: list[Command] = []
        for line in lines:
            if line.startswith("$ "):
                found.append(Command(line[2:], ""))
            elif found and found[-1].typed.endswith("\\"):
                found[-1] = Command(f"{found[-1].typed}\n{line}", "")
            elif found:
                found[-1] = Command(found[-1].typed, f"{found[-1].output}{line}\n")
        return found


def pages() -> list[Path]:
    """The pages whose commands are meant to be typed. Decisions and certificates are history."""
    found = {path for pattern in PAGES for path in ROOT.glob(pattern)}
    history = {ROOT / "docs" / "adr", ROOT / "docs" / "certificates"}
    return sorted(path for path in found if path.parent not in history)


def blocks(page: str, text: str) -> Iterator[Block]:
    """All fenced blocks of a page."""
    for found in _BLOCK.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        yield Block(page, line, found["mark"] or "", found["language"], found["text"])


def all_blocks() -> list[Block]:
    """Every fenced block of every page."""
    return [
        block
        for path in pages()
        for block in blocks(path.relative_to(ROOT).as_posix(), path.read_text())
    ]
