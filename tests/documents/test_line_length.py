"""Lines of prose have at most 200 characters, so that a change of a page can be read line by line.

Rows of tables, code, generated parts and comments cannot be broken. Decisions and certificates
describe their own time and are left as they are.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.documents.links import DECISIONS, ROOT, documents

LENGTH_MAX = 200
HISTORY = (DECISIONS, ROOT / "docs" / "certificates")
GENERATED = "<!-- Made from the code"


def long_lines(text: str) -> Iterator[int]:
    """Numbers of the lines of prose that are too long."""
    in_code = in_generated_part = False
    for number, line in enumerate(text.splitlines(), 1):
        start = line.lstrip()
        if start.startswith(("```", "~~~")):
            in_code = not in_code
        elif start.startswith("<!-- table:"):
            in_generated_part = True
        elif start.startswith("<!-- end"):
            in_generated_part = False
        elif in_code or in_generated_part or start.startswith(("|", "<!--")):
            continue
        elif len(line) > LENGTH_MAX:
            yield number


@pytest.mark.parametrize(
    "page",
    [page for page in documents() if page.parent not in HISTORY],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_lines_of_prose_have_at_most_200_characters(page: Path) -> None:
    text = page.read_text()
    if GENERATED not in text:
        assert list(long_lines(text)) == []


def test_a_long_line_of_prose_is_noticed() -> None:
    assert list(long_lines(f"# A page\n\n{'word ' * 41}\n* {'word ' * 41}\n")) == [3, 4]


def test_rows_code_comments_and_generated_parts_may_be_long() -> None:
    long = "word " * 41
    kept = (f"| {long} |", f"<!-- {long} -->", "```", long, "```", "<!-- table: x -->", long)
    assert list(long_lines("\n".join((*kept, "<!-- end -->", long)))) == [9]
