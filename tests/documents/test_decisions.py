"""Every decision has a status, a date, a sentence, and links to decisions that it concerns."""

import re
from typing import Final

import pytest

from tests.documents.links import DECISIONS, FIRST_LINES

PAGES: Final = {page.name: page.read_text() for page in sorted(DECISIONS.glob("0*.md"))}
#: More than a reader can know: fold a former decision into the guide to its subject first.
_MOST: Final = 40
_AMENDS: Final = re.compile(r"\bAmends ((?:\[ADR \d{4}\]\([\w.-]+\)(?:, )?)+)")
_AMENDED: Final = re.compile(r"\bAmended by ((?:\[ADR \d{4}\]\([\w.-]+\)(?:, )?)+)")
_LINK: Final = re.compile(r"\[ADR (\d{4})\]\(([\w.-]+)\)")


def linked(pattern: re.Pattern[str], page: str) -> set[str]:
    """Pages behind the links that follow the pattern's words in a page's status line."""
    first_lines = FIRST_LINES.match(PAGES[page])
    found = pattern.search(first_lines[4]) if first_lines is not None else None
    return set() if found is None else {target for _, target in _LINK.findall(found[1])}


@pytest.mark.parametrize("page", PAGES)
def test_a_decision_begins_with_title_status_date_and_one_sentence(page: str) -> None:
    assert FIRST_LINES.match(PAGES[page]), (
        f"{page}: title, `Status: accepted, YYYY-MM-DD.`, then the decision in one sentence"
    )


def test_there_are_few_decisions() -> None:
    assert len(PAGES) <= _MOST


@pytest.mark.parametrize("page", PAGES)
def test_decisions_that_amend_each_other_link_each_other(page: str) -> None:
    for amended in linked(_AMENDS, page):
        assert page in linked(_AMENDED, amended), f"{amended} does not link {page}"
    for amending in linked(_AMENDED, page):
        assert page in linked(_AMENDS, amending), (
            f"{amending} does not link {page}, which it amends"
        )


def test_links_of_decisions_name_the_page_that_they_lead_to() -> None:
    wrong = [
        (page, number, target)
        for page, text in PAGES.items()
        for number, target in _LINK.findall(text)
        if target not in PAGES or not target.startswith(number)
    ]
    assert wrong == []
