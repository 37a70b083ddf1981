"""Tests that pages name as evidence exist."""

import re
from pathlib import Path
from typing import Final

import pytest

from tests.documents.links import ROOT

_NAMED: Final = re.compile(r"`(tests/[\w/]+\.(?:py|yaml))(?:::(\w+))?`")
_DOCS: Final = ROOT / "docs"
#: Certificates describe past runs.
_PAGES: Final = [page for page in sorted(_DOCS.rglob("*.md")) if "certificates" not in page.parts]


@pytest.mark.parametrize("page", _PAGES, ids=lambda page: str(page.relative_to(_DOCS)))
def test_each_test_that_a_page_names_exists(page: Path) -> None:
    for path, test in _NAMED.findall(page.read_text()):
        source = (ROOT / path).read_text()
        assert not test or re.search(rf"\b{test}\b", source), f"{path} has no {test}"


def test_the_threat_model_names_its_tests() -> None:
    assert len(_NAMED.findall((_DOCS / "security.md").read_text())) > 20
