"""Sentences that users see, compared with a golden text: one file for each command or renderer.

A test calls its fixture `golden` with what the product rendered. The file is `golden.txt` in the
folder of the test, or the nearest one above it that has the file. It has a section for each test,
in which the texts stand in the order of the calls. To write the sections of some tests again:

    GOLDEN=write pytest -n0 tests/tutti/why

A test that has no section fails, and so does one that renders fewer texts than its section has.
`tests/test_tidy.py` finds sections whose tests are gone.
"""

import os
from collections.abc import Generator
from pathlib import Path
from typing import Final

import pytest

NAME: Final = "golden.txt"
_TITLE: Final = "== "
_ITEM: Final = "- "
_MORE: Final = "  "
_ROOT: Final = Path(__file__).parents[1]


class Golden:
    """What one test rendered, and its section."""

    def __init__(self, test: Path, name: str, *, writes: bool) -> None:
        """`test`: its file; `name`: its function, with the id of its parameters."""
        self._file: Final = _file_of(test)
        self._title: Final = f"{test.relative_to(self._file.parent)}::{name}"
        self._writes: Final = writes
        self._expected: Final = sections(self._file).get(self._title)
        self._rendered: list[str] = []

    def __call__(self, *texts: str) -> None:
        """Compare the next texts of this test."""
        for text in texts:
            place = len(self._rendered)
            self._rendered.append(text)
            if self._writes:
                continue
            assert self._expected is not None, f"{self._file} has no section {self._title}"
            assert place < len(self._expected), f"more than {self._file} has: {text}"
            assert text == self._expected[place]

    def finish(self) -> None:
        """Compare how many texts there were, or write them."""
        if not self._writes:
            assert self._rendered, "a test with the fixture `golden` compares no text"
            assert len(self._rendered) == len(self._expected or ()), f"less than in {self._file}"
            return
        known = sections(self._file)
        known.pop(self._title, None)
        if self._rendered:
            known[self._title] = self._rendered
        self._file.write_text(_written(known))


def titles(text: str) -> list[str]:
    """The tests that have a section in the text of a golden file."""
    return [line.removeprefix(_TITLE) for line in text.splitlines() if line.startswith(_TITLE)]


def sections(file: Path) -> dict[str, list[str]]:
    """The texts of a golden file by test: its path from the file's folder, and its name."""
    found: dict[str, list[str]] = {}
    texts: list[str] = []
    text = file.read_text().removesuffix("\n") if file.is_file() else ""
    for line in text.split("\n"):
        if line.startswith(_TITLE):
            texts = found.setdefault(line.removeprefix(_TITLE), [])
        elif line.startswith(_ITEM):
            texts.append(line.removeprefix(_ITEM))
        elif texts:
            texts[-1] += "\n" + line.removeprefix(_MORE)
    return found


def _written(texts: dict[str, list[str]]) -> str:
    lines: list[str] = []
    for title in sorted(texts):
        lines.append(_TITLE + title)
        lines += [_ITEM + text.replace("\n", "\n" + _MORE) for text in texts[title]]
    return "\n".join(lines) + "\n"


def _file_of(test: Path) -> Path:
    for folder in test.parents:
        if (folder / NAME).is_file():
            return folder / NAME
        if folder == _ROOT:
            break
    return test.parent / NAME


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    writes = os.environ.get("GOLDEN") == "write"
    return Golden(request.path, request.node.name, writes=writes)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Finish what a test compared, unless the test has failed."""
    yield
    compared = getattr(item, "funcargs", {}).get("golden")
    if isinstance(compared, Golden):
        compared.finish()
