"""There are few terms of our own, each with one line."""

import re

from tests.documents.links import ROOT

PAGE = (ROOT / "docs" / "concepts.md").read_text()
TERMS_MAX = 19


def test_fewer_than_twenty_terms_are_our_own_and_each_has_one_row() -> None:
    _, _, section = PAGE.partition("## Terms of Tutti\n")
    rows = [line for line in section.partition("\n## ")[0].splitlines() if line.startswith("| **")]
    assert 0 < len(rows) <= TERMS_MAX
    assert [row for row in rows if not re.fullmatch(r"\| \*\*.+\*\* \| .+\. \|", row)] == []
